"""A simulated clinic: how much sooner do cases close if tests are ordered while results are out, and what does it cost?

    python benchmarks/clinic.py [--splits 10] [--cases 60]

Heart with the published prices and delays (a result is back at once, or one delay later). A forest, a stop calibrated
on other rows for 90 % agreement, and the same stop for all: a case is decided as soon as the rule stops it on what is
back; what was ordered is paid, whether it is back or not. *Waiting* orders one delayed test at a time. The others keep
up to two or three results out, each ordered for what it is expected to tell beyond those that are out. Every case takes
one appointment at the start, and one each time that results are back; the clinic has ten a day.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector
from askwise.datasets import load

AT_ONCE = {"waiting": 1, "two out": 2, "three out": 3}
APPOINTMENTS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--cases", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for split in range(options.splits):
        rows += of_split(split, options.cases)
        print(pd.DataFrame([row for row in rows if row["split"] == split]).to_string(index=False), flush=True)
    table = pd.DataFrame(rows)
    measured = ["delays", "price", "kept", "right", "decisions per day"]
    mean, spread = (table.groupby("way", sort=False)[measured].agg(how) for how in ("mean", "std"))
    print(f"\nmean ± standard deviation over {options.splits} splits")
    print((mean.round(2).astype(str) + " ± " + spread.round(2).astype(str)).to_string())
    waiting = table[table["way"] == "waiting"].set_index("split")[measured]
    for way in list(AT_ONCE)[1:]:
        other = table[table["way"] == way].set_index("split")[measured] - waiting
        half = 1.96 * other.std() / np.sqrt(len(other))
        said = (f"{name} {other[name].mean():+.2f} ± {half[name]:.2f}" for name in measured)
        print(f"{way} minus waiting, paired: {', '.join(said)}")


def of_split(split: int, n_cases: int) -> list[dict[str, Any]]:
    heart = load("heart")
    X, rest, y, y_rest = train_test_split(heart.X, heart.y, test_size=0.5, random_state=split, stratify=heart.y)
    model = RandomForestClassifier(random_state=split).fit(X, y)
    quick: dict[str, Any] = {"epistemic": None, "calibration": None, "random_state": split, "progress": False}
    selector = DynamicFeatureSelector(model, costs=heart.prices, **quick).fit(X, y)
    selector.calibrate_stop(rest[n_cases:], agreement=0.9)
    full = selector.predict(rest[:n_cases])
    found = []
    for way, most in AT_ONCE.items():
        cases = [worked(selector, rest.iloc[r], most) for r in range(n_cases)]
        delays, price, decision = (np.array([case[k] for case in cases]) for k in range(3))
        found.append(
            {
                "split": split,
                "way": way,
                "delays": delays.mean(),
                "price": price.mean(),
                "kept": (decision == full).mean(),
                "right": (decision == y_rest[:n_cases]).mean(),
                "decisions per day": APPOINTMENTS / (1 + delays.mean()),
            }
        )
    return found


def worked(selector: DynamicFeatureSelector, row: pd.Series, most: int) -> tuple[float, float, Any]:
    """One case with up to `most` results out: delays waited, money spent, decision."""
    session, delays = selector.start(stop="calibrated"), 0
    hours = dict(zip(selector.features_, selector.prices_.hours, strict=True))
    while True:
        suggestion, out = session.suggest(), session.pending
        if suggestion is None and session.why(outcomes=False)["advice"] != "wait":
            break
        if suggestion is not None and (hours[suggestion.feature] == 0 or len(out) < most):
            name = suggestion.feature
            if np.isnan(row[name]):
                session.unavailable(name)
            elif hours[name] == 0:
                session.answer(name, float(row[name]))
            else:
                session.order(name)
            continue
        delays += 1
        session.at(float(delays))
        for name in out:  # all that were ordered before are back
            session.answer(name, float(row[name]))
    report = session.report()
    return delays, report["spent"], report["prediction"]


if __name__ == "__main__":
    main()
