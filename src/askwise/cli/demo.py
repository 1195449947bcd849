"""What the demonstration shows: ways of asking compared on held-out rows, and one case followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from askwise.acquire import Policy, Random, Trajectory
from askwise.acquire.session import described
from askwise.predict.rules.explanation import Explanation
from askwise.reference_models import ReferenceModel
from askwise.selector import DynamicFeatureSelector

RANDOM_ORDERS = 5


@dataclass(frozen=True)
class Comparison:
    """How ways of asking do on held-out rows.

    Attributes
    ----------
    curves
        One row per budget: `budget`; the accuracy of `askwise`, of the `static` order and of `random` orders (mean
        over seeds, `random_low`, `random_high`); and the other measures of `evaluate` for askwise.
    full
        Accuracy of the model with everything known.
    priced
        Whether budgets are money; otherwise they count features.
    trajectory
        What askwise bought under the largest budget.
    """

    curves: pd.DataFrame
    full: float
    priced: bool
    trajectory: Trajectory


@dataclass(frozen=True)
class Story:
    """One case: `trace` as in ``Session.report()["trace"]``, and the true label where it is known."""

    title: str
    trace: list[dict[str, Any]]
    truth: Any = None


def compare(
    selector: DynamicFeatureSelector,
    rows: ReferenceModel,
    budgets: Sequence[float],
    seed: int,
    say: Callable[[str], None],
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
    curves.insert(3, "random", np.mean(runs, axis=0))
    curves.insert(4, "random_low", np.min(runs, axis=0))
    curves.insert(5, "random_high", np.max(runs, axis=0))
    say("following every case")
    full = selector.classes_[selector.predictor_.predict_full(rows.X_test).argmax(axis=1)]
    trajectory = selector.acquire(rows.X_test, budget=max(budgets))
    return Comparison(curves, float(np.mean(full == rows.y_test)), not selector.prices_.uniform, trajectory)


def tell_story(selector: DynamicFeatureSelector, rows: ReferenceModel, trajectory: Trajectory) -> Story:
    """The held-out case whose prediction turned most towards the truth, step by step; the first where none did."""
    case = _turning_case(trajectory, np.searchsorted(selector.classes_, rows.y_test))
    cells = selector.schema_.encode(rows.X_test.iloc[[case]])[0]
    uncertainty = trajectory.uncertainty.as_dict()
    bought = trajectory.order[case][trajectory.order[case] >= 0]
    rules = _rules_by_step(selector, trajectory, case, cells, len(bought))
    trace: list[dict[str, Any]] = []
    for t, feature in enumerate([-1, *bought]):
        trust = {name: values[case, t] for name, values in uncertainty.items()}
        trace.append(
            {
                "event": "answer" if t else "start",
                "feature": trajectory.features[feature] if t else None,
                "value": selector.schema_.show_feature(feature, cells) if t else None,
                "cost": float(trajectory.costs[case, t - 1]) if t else 0.0,
                **described(selector.classes_, trajectory.proba[case, t], trust, rules[t]),
            }
        )
    return Story(f"Held-out case {rows.X_test.index[case]}", trace, _plain(rows.y_test[case]))


def _rules_by_step(
    selector: DynamicFeatureSelector, trajectory: Trajectory, case: int, cells: np.ndarray, last: int
) -> Sequence[Explanation | None]:
    """The rules behind each prediction of one case (D,), from the start to step `last`; None where there are none."""
    known = np.stack([trajectory.mask_after(t)[case] for t in range(last + 1)])  # (last + 1, M)
    rows = np.repeat(cells[None], len(known), axis=0)
    return selector.predictor_.explain(rows, selector.schema_.expand(known)) or [None] * len(known)


def _accuracy(
    selector: DynamicFeatureSelector, policy: Policy | str, rows: ReferenceModel, budgets: Sequence[float]
) -> np.ndarray:
    return selector.with_policy(policy).evaluate(rows.X_test, rows.y_test, budgets)["accuracy"].to_numpy()


def _turning_case(trajectory: Trajectory, truth: np.ndarray) -> int:
    """Among cases that end right after having been wrong: the one with the largest rise in the true class."""
    predicted = trajectory.proba.argmax(axis=2)
    chance = np.take_along_axis(trajectory.proba, truth[:, None, None], axis=2)[:, :, 0]  # (n, T + 1)
    turned = (predicted[:, -1] == truth) & (predicted[:, 1:] != truth[:, None]).any(axis=1)
    return int(np.where(turned, chance[:, -1] - chance.min(axis=1), 0.0).argmax())


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
