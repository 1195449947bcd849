"""CPU time of `fit`, of `evaluate`, and of three questions about the same rows, as a share of that of another version.

    python benchmarks/fit_and_evaluate.py ../older/src [--repeats 5] [--only wine]

A forest, a network and XGBoost, each on wine, breast_cancer and heart (with prices). One process for each version,
one thread each; they take turns, so that both meet the same machine. Printed are the ratio of the medians, newer to
older, the median seconds of the newer, and how much of `fit` the newer spends in fitting clones of the user's own
model (members and folds), which no version can make faster. The three questions are `calibrate_stop`, `savings` and
`evaluate`, asked one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

MODELS = {
    "forest": RandomForestClassifier(random_state=0),
    "MLP": MLPClassifier(max_iter=500, random_state=0),
    "XGBoost": XGBClassifier(n_jobs=1, random_state=0),
}
TABLES = ("wine", "breast_cancer", "heart")
AGREEMENT = 0.9
PARTS = ("fit", "evaluate", "three", "clones")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", type=Path, help="the src folder of the older version")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=(), help="tables or models to run; all by default")
    parser.add_argument("--turns", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns:
        take_turns(*options.turns.split("/"))
        return
    newer = Path(__file__).resolve().parents[1] / "src"
    print(f"{'':24}{'fit':>8}{'seconds':>9}{'clones':>8}{'evaluate':>10}{'seconds':>9}{'three':>8}{'seconds':>9}")
    ratios: dict[str, list[float]] = {"fit": [], "evaluate": [], "three": []}
    for table in TABLES:
        for name in MODELS:
            if options.only and not {table, name} & set(options.only):
                continue
            processes = [started(src, table, name) for src in (options.older.resolve(), newer)]
            spent: list[dict[str, list[float]]] = [{part: [] for part in PARTS} for _ in processes]
            for _ in range(options.repeats):
                for process, times in zip(processes, spent, strict=True):
                    for part, seconds in turn(process).items():
                        times[part].append(seconds)
            for process in processes:
                process.communicate()
            old, new = ({part: median(times[part]) for part in PARTS} for times in spent)
            for part, found in ratios.items():
                found.append(new[part] / old[part])
            print(
                f"{table + ', ' + name:24}{new['fit'] / old['fit']:8.2f}{new['fit']:9.2f}"
                f"{new['clones'] / new['fit']:8.0%}"
                f"{new['evaluate'] / old['evaluate']:10.2f}{new['evaluate']:9.2f}"
                f"{new['three'] / old['three']:8.2f}{new['three']:9.2f}",
                flush=True,
            )
    fit, evaluate, three = (median(found) for found in ratios.values())
    print(f"{'median':24}{fit:8.2f}{'':17}{evaluate:10.2f}{'':9}{three:8.2f}")


def started(src: Path, table: str, name: str) -> subprocess.Popen[str]:
    """A process of one version that waits for its turn."""
    command = [sys.executable, __file__, str(src), "--turns", f"{table}/{name}"]
    environment = {**os.environ, "PYTHONPATH": str(src), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def turn(process: subprocess.Popen[str]) -> dict[str, float]:
    """The CPU seconds of one more fit and evaluation."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError("a process has ended before its turn")
    found: dict[str, float] = json.loads(answer)
    return found


def take_turns(table: str, name: str) -> None:
    """Fit and evaluate once for every line that is read; the first, which imports everything, is not timed."""
    from askwise import DynamicFeatureSelector

    warnings.simplefilter("ignore")
    X, y, options = data(table)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = with_steps(MODELS[name], table).fit(X_train, y_train)
    clones = time_of_fits(type(MODELS[name]))

    def run() -> dict[str, float]:
        clones.clear()
        start = time.process_time()
        selector = DynamicFeatureSelector(model, random_state=0, progress=False, **options).fit(X_train, y_train)
        fitted, spent = time.process_time(), sum(clones)
        selector.evaluate(X_test, y_test)
        evaluated = time.process_time()
        selector.__dict__.pop("_runs", None)  # what `evaluate` has run would answer the next questions
        asked = time.process_time()
        selector.calibrate_stop(X_test, y_test, agreement=AGREEMENT)
        selector.savings(X_test)
        selector.evaluate(X_test, y_test)
        three = time.process_time() - asked
        return {"fit": fitted - start, "evaluate": evaluated - fitted, "three": three, "clones": spent}

    run()
    for _ in sys.stdin:
        print(json.dumps(run()), flush=True)


def time_of_fits(kind: type[Any]) -> list[float]:
    """The CPU seconds of each later call of the class's `fit`."""
    seconds: list[float] = []
    fit = kind.fit

    def timed(self: Any, *args: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return fit(self, *args, **options)
        finally:
            seconds.append(time.process_time() - start)

    kind.fit = timed
    return seconds


def data(table: str) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """A table, its labels, and what the selector is told about it."""
    if table != "heart":
        X, y = (load_wine if table == "wine" else load_breast_cancer)(return_X_y=True, as_frame=True)
        return X, np.asarray(y), {}
    from askwise.datasets import load

    found = load(table)
    return found.X, np.unique(found.y, return_inverse=True)[1], {"costs": found.prices, "groups": found.groups}


def with_steps(model: Any, table: str) -> Any:
    """The model behind the steps that it needs."""
    if table != "heart":
        return make_pipeline(StandardScaler(), model) if isinstance(model, MLPClassifier) else model
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, model)


if __name__ == "__main__":
    main()
