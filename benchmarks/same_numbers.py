"""Same seed, same numbers, however busy the machine is: fits five models on an idle and on a busy machine.

Each is fitted twice in a process of its own, once alone and once beside processes that keep every core busy, and saved.
The saved files are compared bit for bit. Exits with 1 if any differ.

    python benchmarks/same_numbers.py --rows 120 --busy 12
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from askwise import DynamicFeatureSelector


def models() -> dict[str, Any]:
    """One of each kind, with the same seed every time."""
    return {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(50, random_state=0),
        "XGBoost": XGBClassifier(n_estimators=50, random_state=0, n_jobs=1),
        "MLP": make_pipeline(StandardScaler(), MLPClassifier(max_iter=100, random_state=0)),
        "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    }


def fit_and_save(name: str, n_rows: int, folder: Path) -> None:
    """Fit a selector around the model, with prices that differ, and save it."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:n_rows, :12], y[:n_rows]
    costs = np.linspace(1, 3, X.shape[1])
    selector = DynamicFeatureSelector(models()[name], costs=costs, random_state=0, progress=False).fit(X, y)
    selector.save(folder)


def keep_busy() -> None:
    """Compute until ended, or until the process that started it has ended."""
    parent = multiprocessing.parent_process()
    while parent is not None and parent.is_alive():
        np.linalg.svd(np.random.default_rng(0).normal(size=(100, 100)))


def in_process(name: str, n_rows: int, folder: Path) -> float:
    """Fit and save in a process of its own; the seconds it took."""
    start = time.perf_counter()
    process = multiprocessing.get_context("spawn").Process(target=fit_and_save, args=(name, n_rows, folder))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{name}: the fit failed with exit code {process.exitcode}.")
    return time.perf_counter() - start


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a saved selector."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def main() -> int:
    """Print a line per model; 1 if files differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--busy", type=int, default=12, help="processes beside the fit")
    options = parser.parse_args()
    n_different = 0
    with tempfile.TemporaryDirectory() as made:
        for name in models():
            quiet, loaded = Path(made) / f"{name} idle", Path(made) / f"{name} busy"
            seconds = [in_process(name, options.rows, quiet)]
            others = [multiprocessing.get_context("spawn").Process(target=keep_busy) for _ in range(options.busy)]
            try:
                for other in others:
                    other.start()
                seconds.append(in_process(name, options.rows, loaded))
            finally:
                for other in others:
                    other.terminate()
                    other.join()
            before, after = files_of(quiet), files_of(loaded)
            different = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
            n_different += len(different)
            verdict = f"differ: {', '.join(different)}" if different else f"{len(before)} files equal bit for bit"
            print(f"{name}: idle {seconds[0]:.0f} s, busy {seconds[1]:.0f} s, {verdict}", flush=True)
    return int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main())
