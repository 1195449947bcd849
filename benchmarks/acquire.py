"""How fast cases are worked through: `acquire` against another version of askwise, and one step of a single case
against one `predict_proba` of the wrapped model.

    python benchmarks/acquire.py                        # steps of a single case, as ratios
    python benchmarks/acquire.py --against OLD/src      # and `acquire`, with another version's source folder

Both versions run in turns in processes of their own on the same machine, so that its load falls on both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "mlp": lambda: make_pipeline(StandardScaler(), MLPClassifier(random_state=0, max_iter=300)),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "lightgbm": lambda: LGBMClassifier(random_state=0, n_jobs=1, verbose=-1),
}


def made_table(return_X_y: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """20,000 rows of 40 numbers, three classes."""
    return make_classification(20_000, 40, n_informative=12, n_classes=3, random_state=0)


TABLES: dict[str, Callable[..., Any]] = {"wine": load_wine, "breast_cancer": load_breast_cancer, "made": made_table}
OURS = Path(__file__).parents[1] / "src"
N_CASES, REPEATS = 60, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="the src folder of another version")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), help="for --against")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.job:
        print(json.dumps(_job(*options.job.split("/"))))
        return
    print("one step of a single case (belief with members, suggestion), in units of one predict_proba of one row")
    for model in MODELS:
        print(f"  wine  {model:10} {_run(OURS, f'step/wine/{model}'):5.1f}")
    if options.against:
        print(f"acquire of {N_CASES} cases, members on: how many times as fast as {options.against}")
        for table in options.tables:
            for model in ("forest", "boosting", "lightgbm", "mlp"):
                turns = [[_run(src, f"acquire/{table}/{model}") for src in (options.against, OURS)] for _ in range(2)]
                old, new = np.min(turns, axis=0)
                print(f"  {table:14} {model:10} {old / new:5.2f}   ({old:.2f} s -> {new:.2f} s)", flush=True)


def _run(src: Path, job: str) -> float:
    env = {**os.environ, "PYTHONPATH": str(src.resolve()), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__, "--job", job], env=env, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def _job(what: str, table: str, model: str) -> float:
    from askwise import DynamicFeatureSelector

    X, y = TABLES[table](return_X_y=True)
    wrapped = MODELS[model]().fit(X, y)
    selector = DynamicFeatureSelector(wrapped, random_state=0).fit(X, y)
    if what == "acquire":
        return min(_seconds(lambda: selector.acquire(X[:N_CASES], budget=8)) for _ in range(REPEATS))
    plain = min(_seconds(lambda: wrapped.predict_proba(X[:1])) for _ in range(50))
    return _step_seconds(selector, X) / plain


def _step_seconds(selector: Any, X: np.ndarray) -> float:
    """The fastest of many steps: an answer comes in, the next feature is suggested."""
    fastest = np.inf
    for row in X[:10]:
        session = selector.start(budget=6)
        while (suggestion := session.suggest()) is not None:
            value = float(row[selector.features_.index(suggestion.feature)])
            fastest = min(fastest, _seconds(partial(_answer_and_ask, session, suggestion.feature, value)))
    return fastest


def _answer_and_ask(session: Any, feature: str, value: float) -> None:
    session.answer(feature, value)
    session.suggest()


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
