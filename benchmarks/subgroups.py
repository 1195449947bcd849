"""Promises per subgroup: in how many repeats are they all kept, and what do they cost?

A population of three subgroups, one of which is harder and rarer. Each repeat draws calibration rows, calibrates a stop
with and without a promise for each subgroup, and looks up the true share of decisions kept in each.

    python benchmarks/subgroups.py --repeats 200
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector
from askwise.stopping.calibrated_stop import Goal, calibrated_threshold
from askwise.stopping.guarantee import FullRuns

GROUPS, SHARES = np.array(["north", "south", "east"]), (0.5, 0.3, 0.2)
WEIGHTS = np.array([2.0, 1.5, 1.2, 1.0, 0.8, 0.6])


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cases, classes and subgroups; in the east the first features tell little."""
    group = rng.choice(GROUPS, n, p=SHARES)
    X = rng.normal(size=(n, len(WEIGHTS)))
    X[:, :3] *= np.where(group == "east", 0.3, 1.0)[:, None]
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X @ WEIGHTS))).astype(int), group


def pool_of(seed: int, n: int) -> tuple[FullRuns, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y, _ = drawn(600, rng)
    options: dict[str, Any] = {"epistemic": None, "calibration": None, "policy": "greedy", "progress": False}
    selector = DynamicFeatureSelector(LogisticRegression().fit(X, y), random_state=seed, **options).fit(X, y)
    new, _, group = drawn(n, rng)
    truth = selector._encode(new)
    return selector._full_runs(truth, selector.policy_, selector.prices_.limits(None, 1)[0]), group


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--pool", type=int, default=4000)
    given = parser.parse_args()
    found = []
    for fit in range(given.fits):
        runs, group = pool_of(fit, given.pool)
        for repeat in range(given.repeats // given.fits):
            at = np.random.default_rng([fit, repeat]).choice(len(runs), given.rows, replace=False)
            rest = np.setdiff1d(np.arange(len(runs)), at)
            sample = runs.take(at)
            for level in (0.9, 0.95):
                goal = Goal(agreement=level, per_class=False)
                for way, groups in {"overall": None, "each subgroup": group[at]}.items():
                    threshold, _ = calibrated_threshold(sample, goal, goal.requirements(sample, np.arange(2), groups))
                    steps = runs.stops_at(np.array([threshold]))
                    kept = ~np.take_along_axis(runs.changed, steps, axis=1)[rest, 0]
                    price = np.take_along_axis(runs.spent, steps, axis=1)[rest, 0].mean()
                    by = {one: kept[group[rest] == one].mean() for one in GROUPS}
                    every = min(by.values()) >= level
                    found.append({"level": level, "way": way, **by, "all kept": every, "price": price / len(WEIGHTS)})
    table = pd.DataFrame(found).groupby(["level", "way"]).mean()
    print(table.assign(repeats=given.repeats).round(3).to_string())


if __name__ == "__main__":
    main()
