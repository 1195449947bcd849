"""A promise that is watched: how often is a false alarm given, and how soon is a broken promise noticed?

Stops are calibrated for an agreement of 95 % on small samples; each deployment then serves cases of the population, one
after another, all of them checked. Without a change no alarm should be given; with a shift, the cases whose decision
breaks become twice as frequent (or so frequent that twice the promised share breaks) after some cases. A fixed test, at
the same level, looks once, and only at cases after the change.

    python benchmarks/monitor.py --deployments 200
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector
from askwise.stopping import StopMonitor
from askwise.stopping.calibrated_stop import Goal, calibrated_threshold
from askwise.stopping.guarantee import FullRuns

LEVEL, CONFIDENCE = 0.95, 0.9
WEIGHTS = np.array([2.0, 1.5, 1.2, 1.0, 0.8, 0.6, 0.4, 0.2])


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, len(WEIGHTS)))
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X @ WEIGHTS))).astype(int)


def pool_of(seed: int, n: int) -> tuple[FullRuns, np.ndarray]:
    """Runs of many cases along a policy, and how novel the cases are."""
    rng = np.random.default_rng(seed)
    X, y = drawn(600, rng)
    model = LogisticRegression().fit(X, y)
    options: dict[str, Any] = {"epistemic": None, "calibration": None, "policy": "greedy", "progress": False}
    selector = DynamicFeatureSelector(model, random_state=seed, **options).fit(X, y)
    new = drawn(n, rng)[0]
    truth = selector._encode(new)
    return selector._full_runs(truth, selector.policy_, selector.prices_.limits(None, 1)[0]), selector.novelty_of_rows(
        new
    )


def served(monitor: StopMonitor, lost: np.ndarray, full: np.ndarray, novelty: np.ndarray) -> int | None:
    """After how many cases an alarm is given, if it is."""
    for t, (one, decided, far) in enumerate(zip(lost, full, novelty, strict=True), start=1):
        monitor.update(one, decided=int(decided), novelty=far)
        if monitor.alarms:
            return t
    return None


def deployments(
    runs: FullRuns, novelty: np.ndarray, n: int, rows: int, cases: int, change: int, seed: int
) -> pd.DataFrame:
    found = []
    goal = Goal(agreement=LEVEL, confidence=CONFIDENCE, per_class=False)
    for k in range(n):
        rng = np.random.default_rng([seed, k])
        at = rng.choice(len(runs), rows, replace=False)
        sample = runs.take(at)
        threshold, _ = calibrated_threshold(sample, goal, goal.requirements(sample, np.arange(2)))
        lost = np.take_along_axis(runs.changed, runs.stops_at(np.array([threshold])), axis=1)[:, 0]
        rest = np.setdiff1d(np.arange(len(runs)), at)
        rate = float(lost[rest].mean())
        shifts = {"no change": rate, "broken decisions doubled": 2 * rate, "twice what is promised": 2 * (1 - LEVEL)}
        for way, after in shifts.items():
            share = np.where(lost[rest], after / rate, (1 - after) / (1 - rate))
            then = rng.choice(rest, cases - change, p=share / share.sum())
            order = np.concatenate([rng.choice(rest, change), then])
            monitor = StopMonitor(1 - LEVEL, 1 - CONFIDENCE, usual_novelty=novelty[at])
            alarm = served(monitor, lost[order], runs.full[order], novelty[order])
            found.append({"way": way, "alarm": alarm, "rate": rate, "after": after})
    return pd.DataFrame(found)


def fixed_test(after: np.ndarray, n: int) -> float:
    """The power of one exact test after `n` cases of the new kind, averaged over the deployments."""
    critical = binom.isf(1 - CONFIDENCE, n, 1 - LEVEL)
    return float(binom.sf(critical, n, after).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=200)
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--rows", type=int, default=1000, help="calibration rows")
    parser.add_argument("--cases", type=int, default=1200, help="checked cases of a deployment")
    parser.add_argument("--change", type=int, default=200, help="checked cases before the change")
    parser.add_argument("--pool", type=int, default=4000)
    given = parser.parse_args()
    parts = []
    for fit in range(given.fits):
        runs, novelty = pool_of(fit, given.pool)
        n = given.deployments // given.fits
        parts.append(deployments(runs, novelty, n, given.rows, given.cases, given.change, fit))
    rows = pd.concat(parts)
    holds = rows["rate"] <= 1 - LEVEL
    print(f"promise of {LEVEL:.0%} kept by the stop: {holds.mean():.1%} of {len(rows) // 3} deployments")
    for way in rows["way"].unique():
        of = rows[rows["way"] == way]
        alarmed, after = of["alarm"].notna(), of["after"].to_numpy()
        print(f"{way}: {after.mean():.2%} of the decisions broken, alarms in {alarmed.mean():.1%}", end="")
        if way == "no change":
            print(f" ({alarmed[of['rate'] <= 1 - LEVEL].mean():.1%} where the stop keeps its promise)")
            continue
        late = ~(of["alarm"] <= given.change)
        delay = (of["alarm"] - given.change).where(alarmed, np.inf)[late]
        low, middle, high = (delay.quantile(q, interpolation="nearest") for q in (0.25, 0.5, 0.75))
        print(f"; cases from the change to it: {middle:.0f} (quartiles {low:.0f} and {high:.0f})")
        for n in (50, 100, 200, 400, 1000):
            found = fixed_test(after, n)
            print(f"  one fixed test after {n} cases finds it in {found:.1%}, the monitor in {(delay <= n).mean():.1%}")


if __name__ == "__main__":
    main()
