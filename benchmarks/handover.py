"""Which cases to hand to a person: is the accuracy promised kept, and how many are handed over?

A population of known truth: a pool of cases is acquired once with a calibrated stop, and calibration rows are drawn
from it, so that the accuracy of every rule is known exactly. Beside the share handed over stands that of the best
single measure of uncertainty in hindsight, whose threshold is chosen on the whole pool.

    python -m benchmarks.handover --fits 4 --repeats 50
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from benchmarks.rare_classes import MODELS, PRICES, drawn

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.epistemic import Assessment
from askwise.stopping.handover import HandoverGoal, calibrated_handover, measures
from askwise.uncertainty import Uncertainty


def measured(model: str, accuracy: float, n_fits: int, n_repeats: int, n_cal: int, n_pool: int) -> pd.DataFrame:
    found = []
    for fit in range(n_fits):
        rng = np.random.default_rng(fit)
        y = (rng.random(600 + 800 + n_pool) < 0.3).astype(int)
        X = drawn(y, rng, 0.55)
        train, cal, pool = np.split(np.arange(len(y)), [600, 1400])
        classifier = MODELS[model](fit).fit(X[train], y[train])
        selector = DynamicFeatureSelector(classifier, costs=PRICES, random_state=fit, progress=False)
        selector.fit(X[train], y[train]).calibrate_stop(X[cal], agreement=0.9)
        run = selector.acquire(X[pool], stop="calibrated")
        ends, labels = run.said.after(run.n_steps), y[pool]
        right = ends.decision == labels
        hindsight = min(_handed_over(scores, right, accuracy) for scores in measures(ends).T)
        for repeat in range(n_repeats):
            at = np.random.default_rng([fit, repeat]).integers(len(pool), size=n_cal)
            row = {"model": model, "accuracy": accuracy, "of all": right.mean(), "hindsight": hindsight}
            try:
                rule = calibrated_handover(
                    taken(ends, at), labels[at], HandoverGoal(accuracy), None, None, np.inf, np.arange(2)
                )
            except InvalidInput:
                found.append({**row, "refused": True})
                continue
            decided = ~rule.hands_over(ends)
            kept = right[decided].mean() >= accuracy
            found.append({**row, "refused": False, "kept": kept, "handed over": 1 - decided.mean()})
    return pd.DataFrame(found)


def taken(ends: Assessment, at: np.ndarray) -> Assessment:
    """The assessments of some cases."""
    uncertainty = Uncertainty(**{name: values[at] for name, values in ends.uncertainty.as_dict().items()})
    return Assessment(ends.proba[at], ends.decision[at], ends.agreement[at], ends.final[at], uncertainty)


def _handed_over(scores: np.ndarray, right: np.ndarray, accuracy: float) -> float:
    order = np.argsort(scores, kind="stable")
    enough = np.flatnonzero(right[order].cumsum() / np.arange(1, len(right) + 1) >= accuracy)
    return 1 - (enough[-1] + 1) / len(right) if len(enough) else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--accuracies", type=float, nargs="+", default=[0.88, 0.9])
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=50, help="of each fit")
    parser.add_argument("--rows", type=int, default=1500, help="calibration rows")
    parser.add_argument("--pool", type=int, default=3000)
    given = parser.parse_args()
    for model in given.models:
        for accuracy in given.accuracies:
            rows = measured(model, accuracy, given.fits, given.repeats, given.rows, given.pool)
            kept = rows["kept"].dropna().astype(float)
            mean = rows[["of all", "handed over", "hindsight"]].mean().round(3)
            broken = (kept == 0).sum() / len(rows)
            print(
                f"{model}, accuracy {accuracy:.2f} (of all cases {mean['of all']}): kept in {kept.mean():.3f} of the "
                f"{len(kept)} repeats with a promise, {rows['refused'].sum()} refused, broken in "
                f"{broken:.3f} of all {len(rows)}; handed over {mean['handed over']} (best single measure in "
                f"hindsight {mean['hindsight']})",
                flush=True,
            )


if __name__ == "__main__":
    main()
