"""What the demo computes: ways of asking compared on held-out rows, and one case followed step by step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from askwise.explain import Flowchart
from askwise.explain.policy_chart import FEWEST_ROWS
from askwise.options import PolicyName
from askwise.policy import Policy, Random
from askwise.reference_models import ReferenceModel
from askwise.selector import DynamicFeatureSelector
from askwise.table.columns import plain
from askwise.trajectory import Trajectory

RANDOM_ORDERS = 5
MISSING_CELLS = {"mean": "askwise puts typical values there", "rules": "askwise leaves out conditions on them"}
"""What an adaptation does about cells that are missing for real, where it is not the default."""


@dataclass(frozen=True)
class Comparison:
    """How ways of asking do on held-out rows.

    `curves` has a row per budget: the accuracy of askwise, of the static order and of random orders (mean over seeds,
    lowest, highest), and the other measures of `evaluate` for askwise. `full` is the accuracy with everything known,
    `priced` whether budgets are money, `trajectory` what askwise bought under the largest one. `note` says why buying
    everything is not the same as the model with everything, and is empty where it is. `static` and `units` are what the
    static order and the features are called. `savings` is what `selector.savings` finds on the held-out rows, None for
    images.
    """

    curves: pd.DataFrame
    full: float
    priced: bool
    trajectory: Trajectory
    note: str = ""
    static: str = "static order"
    units: str = "features"
    savings: pd.DataFrame | None = None


@dataclass(frozen=True)
class Story:
    """One case: `trace` as in ``Session.report()["trace"]``, the true label, and what was known from the start."""

    title: str
    trace: Sequence[Any]
    truth: Any = None
    known: dict[str, Any] = field(default_factory=dict)


def compare(
    selector: DynamicFeatureSelector, rows: Any, budgets: Sequence[float], seed: int, say: Callable[[str], None]
) -> Comparison:
    """Accuracy by budget of askwise, of one static order and of random orders, all with the same predictions."""
    say("asking wisely")
    curves = selector.evaluate(rows.X_test, rows.y_test, budgets).rename(columns={"accuracy": "askwise"})
    say("asking in one static order")
    curves.insert(2, "static", _accuracy(selector, "static", rows, budgets))
    runs = []
    for k in range(RANDOM_ORDERS):
        say(f"asking at random, {k + 1} of {RANDOM_ORDERS}")
        runs.append(_accuracy(selector, Random(seed + k), rows, budgets))
    found = {"random": np.mean(runs, axis=0), "random_low": np.min(runs, axis=0), "random_high": np.max(runs, axis=0)}
    for at, (name, values) in enumerate(found.items(), start=3):
        curves.insert(at, name, values)
    say("following every case")
    full = selector.classes_[selector.predictor_.predict_full(rows.X_test).argmax(axis=1)]
    accuracy = float(np.mean(full == rows.y_test))
    trajectory = selector.acquire(rows.X_test, budget=max(budgets))
    priced = not selector.prices_.uniform
    if not selector.schema_.tabular:
        return Comparison(curves, accuracy, priced, trajectory)
    say("stopping each case in time")
    note = missing_note(selector, rows, accuracy)
    return Comparison(curves, accuracy, priced, trajectory, note, savings=selector.savings(rows.X_test))


def tell_story(selector: DynamicFeatureSelector, rows: ReferenceModel, trajectory: Trajectory) -> Story:
    """The held-out case whose prediction turned most towards the truth, step by step; the first where none did."""
    case = turning_case(trajectory, np.searchsorted(selector.classes_, rows.y_test))
    cells = selector.schema_.encode(rows.X_test.iloc[[case]]).values[0]
    session = selector.start()
    for feature in trajectory.order[case]:
        if feature >= 0:
            session.answer(trajectory.features[feature], selector.schema_.show_feature(feature, cells))
    return Story(f"Held-out case {rows.X_test.index[case]}", session.report()["trace"], plain(rows.y_test[case]))


def flowchart(selector: DynamicFeatureSelector, rows: ReferenceModel, budget: float | None) -> Flowchart | None:
    """The policy as a tree of questions, grown and measured on the held-out rows; None where they are too few."""
    if len(rows.X_test) < FEWEST_ROWS:
        return None
    bounded = copy.copy(selector)
    bounded.budget = budget
    return bounded.flowchart(rows.X_test)


def missing_note(selector: DynamicFeatureSelector, rows: ReferenceModel, full: float) -> str:
    """Why the model with everything and askwise with everything differ on rows with missing cells, if they do."""
    incomplete = int(rows.X_test.isna().any(axis=1).sum())
    bought = float(np.mean(selector.predict(rows.X_test) == rows.y_test))
    if not incomplete or bought == full:
        return ""
    otherwise = "askwise averages the model over completions from similar training rows"
    return (
        f"With everything bought askwise is right in {bought:.1%}, the model itself in {full:.1%}: {incomplete} of "
        f"{len(rows.X_test)} held-out rows have cells that are missing for real. The model fills these in its own way; "
        f"{MISSING_CELLS.get(str(selector.adaptation), otherwise)}."
    )


def _accuracy(
    selector: DynamicFeatureSelector, policy: Policy | PolicyName, rows: Any, budgets: Sequence[float]
) -> np.ndarray:
    return selector.with_policy(policy).evaluate(rows.X_test, rows.y_test, budgets)["accuracy"].to_numpy()


def turning_case(trajectory: Trajectory, truth: np.ndarray) -> int:
    """Among cases that end right after having been wrong: the one with the largest rise in the true class."""
    predicted = trajectory.proba.argmax(axis=2)
    chance = np.take_along_axis(trajectory.proba, truth[:, None, None], axis=2)[:, :, 0]  # (n, T + 1)
    turned = (predicted[:, -1] == truth) & (predicted[:, 1:] != truth[:, None]).any(axis=1)
    return int(np.where(turned, chance[:, -1] - chance.min(axis=1), 0.0).argmax())
