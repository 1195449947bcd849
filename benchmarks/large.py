"""A whole table, diabetes130 with 101,766 rows and 47 features, and a wrapped HistGradientBoosting.

    python benchmarks/large.py [--rows 101766] [--acquire 20000] [--compare 4000]

Fit time in units of fitting the model, peak memory, row-steps per second of the distilled policy (with the time of the
matrix products that it needs as a floor), and its accuracy against the exact policy on rows that were not in `fit`.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from askwise import DynamicFeatureSelector
from askwise.datasets import load

BUDGET = 10


def boosting() -> Any:
    """HistGradientBoosting on codes of the categories; more than 200 in a column share the last code."""
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=np.nan, max_categories=200
    )
    columns = make_column_transformer((codes, make_column_selector(dtype_exclude="number")), remainder="passthrough")
    return make_pipeline(columns, HistGradientBoostingClassifier(random_state=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=101_766, help="rows to fit on; of fewer, the others are acquired")
    parser.add_argument("--acquire", type=int, default=20_000, help="rows to acquire 10 features for")
    parser.add_argument("--compare", type=int, default=4000, help="rows to compare with the exact policy on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load("diabetes130")
    order = np.random.default_rng(0).permutation(len(data.X))
    X, y = data.X.iloc[order], np.asarray(data.y)[order]
    fitted, n = slice(options.rows), options.rows
    model, seconds = timed(lambda: boosting().fit(X[fitted], y[fitted]))
    print(f"the model: fit on {n:,} rows in {seconds:.1f} s", flush=True)
    selector, whole = timed(
        lambda: DynamicFeatureSelector(model, random_state=0, progress=False).fit(X[fitted], y[fitted])
    )
    print(f"the selector, default settings: {whole:.1f} s, {whole / seconds:.1f} x the model; {memory()}", flush=True)
    distilled, extra = timed(lambda: selector.with_policy("distilled"))
    print(f"distilling: {extra:.1f} s, {extra / seconds:.1f} x; {memory()}\n  {distilled.policy_.report_}", flush=True)
    rest = slice(n, n + options.acquire) if n < len(X) else slice(options.acquire)
    run, spent = timed(lambda: distilled.acquire(X[rest], budget=BUDGET))
    steps = int((run.order >= 0).sum())
    floor = products(distilled.policy_, steps)
    print(
        f"acquire, distilled: {steps / spent:,.0f} row-steps/s ({spent:.1f} s; its products: {floor:.2f} s); {memory()}"
    )
    part = slice(rest.start or 0, (rest.start or 0) + options.compare)
    exact, slow = timed(lambda: selector.acquire(X[part], budget=BUDGET))
    steps = int((exact.order >= 0).sum())
    print(f"acquire, exact: {steps / slow:,.0f} row-steps/s; {memory()}", flush=True)
    compare(distilled.acquire(X[part], budget=BUDGET), exact, y[part])


def compare(distilled: Any, exact: Any, y: np.ndarray) -> None:
    """Print the accuracy of both after each purchase, and the paired difference in points, with its standard error."""
    lost = []
    for t in range(1, BUDGET + 1):
        ours, theirs = (run.predict(t) == y for run in (distilled, exact))
        lost.append(100 * (theirs.astype(float) - ours))
        print(f"  after {t:2}: exact {theirs.mean():.4f}, distilled {ours.mean():.4f}, regret {with_error(lost[-1])}")
    print(f"  mean of 1 to {BUDGET}: regret {with_error(np.mean(lost, axis=0))}")


def with_error(values: np.ndarray) -> str:
    return f"{values.mean():+.2f} ± {values.std() / np.sqrt(len(values)):.2f}"


def products(policy: Any, steps: int) -> float:
    """Seconds of the matrix products of as many decisions, in blocks of 3,200."""
    inputs = np.random.default_rng(0).random((3200, policy.inputs_.n_inputs))
    _, seconds = timed(lambda: [policy.network_.layers(inputs) for _ in range(max(1, steps // 3200))])
    return seconds


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    found = work()
    return found, time.perf_counter() - started


def memory() -> str:
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"


if __name__ == "__main__":
    main()
