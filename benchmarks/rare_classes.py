"""Promises per class where one class is rare: are they kept, and what do they cost?

A population of known truth: pools of negatives and of positives are run along the policy once, and cases are drawn from
them with the share of positives asked for, so that the risk of every rule is known exactly. Each repeat draws
calibration rows, calibrates the stop of each kind, and looks up its true risks.

    python benchmarks/rare_classes.py --shares 0.02 0.05 0.2 --fits 4 --repeats 50
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector
from askwise.stopping.calibrated_stop import Goal, calibrated_threshold
from askwise.stopping.guarantee import FullRuns, last_passed
from askwise.stopping.savings import candidate_budgets

SHIFTS = np.array([2.2, 1.8, 1.4, 1.0, 0.8, 0.5, 0.2, 0.0, 0.0, 0.0])
PRICES = np.array([4.0, 3.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
MODELS = {
    "forest": lambda seed: RandomForestClassifier(50, min_samples_leaf=2, random_state=seed),
    "logistic regression": lambda seed: LogisticRegression(),
}
POSITIVE_ROWS = 120
"""Calibration rows that the model calls positive, on average."""


def drawn(y: np.ndarray, rng: np.random.Generator, scale: float = 1.0) -> np.ndarray:
    X = rng.normal(size=(len(y), len(SHIFTS))) + y[:, None] * SHIFTS * scale
    X[:, 5] += 0.7 * X[:, 0]
    X[:, 6] += 0.7 * X[:, 1]
    return X


def pooled_runs(model: str, share: float, seed: int, n_pool: int) -> tuple[FullRuns, np.ndarray]:
    """Runs of as many negatives as positives, and the usual shares of the classes."""
    rng = np.random.default_rng(seed)
    y = (rng.random(1500) < share).astype(int)
    X = drawn(y, rng)
    selector = DynamicFeatureSelector(MODELS[model](seed).fit(X, y), costs=PRICES, random_state=seed, progress=False)
    selector.fit(X, y)
    labels = np.repeat([0, 1], n_pool)
    truth = selector._encode(drawn(labels, rng))
    return selector._full_runs(
        truth, selector.policy_, selector.prices_.limits(None, 1)[0], labels
    ), selector._usual_shares()


def fixed_budget(sample: FullRuns, pool: FullRuns, goal: Goal) -> np.ndarray:
    """(n, 1) where the cases of the pool end with the smallest common budget that passes the same tests."""
    budgets = candidate_budgets(pool)[::-1]
    steps = sample.stops_within(budgets)
    p = np.max([one.p_values(steps) for one in goal.requirements(sample, np.arange(2))], axis=0)
    last = last_passed(p, goal.confidence)
    return pool.stops_within(budgets[[0 if last is None else last]])


def measured(model: str, share: float, n_fits: int, n_repeats: int, n_pool: int) -> pd.DataFrame:
    found = []
    for fit, level in itertools.product(range(n_fits), (0.9, 0.95)):
        if level == 0.9:
            runs, shares = pooled_runs(model, share, fit, n_pool)
            weights = np.where(runs.labels == 1, share, 1 - share) / n_pool
        n_cal = int(POSITIVE_ROWS / weights[runs.full == 1].sum())
        rng = np.random.default_rng([fit, int(100 * level)])
        by_class = runs.judged_by_class(shares)
        for _ in range(n_repeats):
            at = rng.choice(len(runs), size=n_cal, p=weights)
            overall, classes = Goal(agreement=level, per_class=False), Goal(agreement=level, per_class="auto")
            ends = {}
            for way, goal, pool in (("overall", overall, runs), ("per class", classes, by_class)):
                sample = pool.take(at)
                threshold, _ = calibrated_threshold(sample, goal, goal.requirements(sample, np.arange(2)))
                ends[way] = pool.stops_at(np.array([threshold]))
            ends["fixed budget"] = fixed_budget(runs.take(at), runs, classes)
            for way, steps in ends.items():
                kept = ~np.take_along_axis(runs.changed, steps, axis=1)[:, 0]
                price = np.take_along_axis(runs.spent, steps, axis=1)[:, 0]
                by = {f"kept {c}": np.average(kept[runs.full == c], weights=weights[runs.full == c]) for c in (0, 1)}
                row = {"model": model, "positives": share, "level": level, "way": way, "rows": n_cal, **by}
                found.append({**row, "price": np.average(price, weights=weights) / PRICES.sum()})
    return pd.DataFrame(found)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    held = rows[["kept 0", "kept 1"]].ge(rows["level"] - 1e-12, axis=0)
    rows = rows.assign(**{"promise 0": held["kept 0"], "promise 1": held["kept 1"], "jointly": held.all(axis=1)})
    by = rows.groupby(["model", "positives", "level", "way"])
    table = by[["promise 0", "promise 1", "jointly", "kept 0", "kept 1"]].mean()
    return table.assign(price=by["price"].median(), repeats=by.size()).round(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.02, 0.05, 0.2])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=50, help="of each fit and level")
    parser.add_argument("--pool", type=int, default=1500, help="negatives, and as many positives, per fit")
    given = parser.parse_args()
    for model, share in itertools.product(given.models, given.shares):
        rows = measured(model, share, given.fits, given.repeats, given.pool)
        print(summary(rows).to_string(), flush=True)


if __name__ == "__main__":
    main()
