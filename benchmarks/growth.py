"""How time and memory grow with rows, features, classes and members: fitted exponents.

    python benchmarks/growth.py [n M C k] [--model logistic] [--policy auto]
    python benchmarks/growth.py --wide      # 500 features, 5,000 rows: whether it works

Each size runs in a process of its own, whose peak memory is measured. Time ~ size ** exponent, by least squares on
logarithms; beside it the exponent from the second-largest size to the largest, which is higher where fixed costs
dominate at first. The model's own fit is measured as well. Times are CPU times.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}
USUAL = {"n": 4000, "M": 20, "C": 2, "k": 5}
SIZES = {"n": (4000, 16_000, 64_000, 256_000), "M": (20, 40, 80, 160, 320), "C": (2, 4, 8, 16), "k": (2, 5, 10, 20)}
NAMES = {"n": "rows", "M": "features", "C": "classes", "k": "members"}
N_CASES, BUDGET = 100, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*SIZES, []], help="sizes to vary; default: all")
    parser.add_argument("--model", choices=MODELS, default="logistic")
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure(**json.loads(options.job))))
        return
    given = {"model": options.model, "policy": options.policy}
    if options.wide:
        print(json.dumps(run({**USUAL, "n": 5000, "M": 500, **given}), indent=1))
        return
    for name in options.what or SIZES:
        found = [run({**USUAL, name: size, **given}) for size in SIZES[name]]
        sizes = SIZES[name]
        print(f"{NAMES[name]} {sizes}, {options.model}, policy {options.policy}")
        for part in ("fit", "model", "acquire", "memory"):
            values = [row[part] for row in found]
            whole, last = exponent(sizes, values), exponent(sizes[-2:], values[-2:])
            listed = [round(value, 2) for value in values]
            print(f"  {part:8} exponent {whole:5.2f}, at the end {last:5.2f}   {listed}", flush=True)


def exponent(sizes: Any, values: Any) -> float:
    """The slope of log values by log sizes."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-6)), 1)[0])


def run(job: dict[str, Any]) -> dict[str, Any]:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def measure(n: int, M: int, C: int, k: int, model: str, policy: str) -> dict[str, Any]:
    """Seconds of the model's fit, of the selector's and of `acquire`, and peak memory in MiB."""
    from askwise import DynamicFeatureSelector
    from askwise.epistemic import AuxiliaryEnsemble

    warnings.simplefilter("ignore")
    X, y = make_classification(n + N_CASES, M, n_informative=min(M, 10), n_redundant=0, n_classes=C, random_state=0)
    wrapped = MODELS[model]()
    started = time.process_time()
    wrapped.fit(X[:n], y[:n])
    of_model = time.process_time() - started
    options: dict[str, Any] = {"policy": policy, "random_state": 0, "progress": False}
    selector = DynamicFeatureSelector(wrapped, epistemic=AuxiliaryEnsemble(k, random_state=0), **options)
    started = time.process_time()
    selector.fit(X[:n], y[:n])
    of_fit = time.process_time() - started
    started = time.process_time()
    selector.acquire(X[n:], budget=BUDGET)
    return {
        "fit": of_fit,
        "model": of_model,
        "acquire": time.process_time() - started,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "policy": selector.choices_["policy"],
    }


if __name__ == "__main__":
    main()
