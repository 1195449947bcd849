"""What the demo computes: ways of asking compared on held-out rows, and one case followed step by step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from askwise.cli.findings import Summary, by_class, by_stop
from askwise.errors import InvalidInput
from askwise.explain import Flowchart
from askwise.explain.policy_chart import FEWEST_ROWS
from askwise.options import PolicyName
from askwise.policy import Policy, Random
from askwise.reference_models import ReferenceModel
from askwise.selector import DynamicFeatureSelector
from askwise.table.columns import plain
from askwise.trajectory import Trajectory

RANDOM_ORDERS = 5
AGREEMENT = 0.9
"""Share of the decisions that the stop of the demo promises to keep."""
FEWEST_QUESTIONS = 3
"""Of a case that is worth telling of."""
MISSING_CELLS = {"mean": "askwise puts typical values there", "rules": "askwise leaves out conditions on them"}
"""What an adaptation does about cells that are missing for real, where it is not the default."""


@dataclass(frozen=True)
class Comparison:
    """How ways of asking do on held-out rows.

    `curves` has a row per budget: the accuracy of askwise, of the static order and of random orders (mean over seeds,
    lowest, highest), and the other measures of `evaluate` for askwise. `full` is the accuracy with everything known,
    `priced` whether budgets are money, `trajectory` what askwise bought under the largest one. `note` says why buying
    everything is not the same as the model with everything, and is empty where it is. `static` and `units` are what the
    static order and the features are called, `unit` is the currency. `savings` is what `selector.savings` finds on the
    held-out rows, None for images; `stopped` what the calibrated stop does there, None where there is none.
    """

    curves: pd.DataFrame
    full: float
    priced: bool
    trajectory: Trajectory
    note: str = ""
    static: str = "static order"
    units: str = "features"
    savings: pd.DataFrame | None = None
    stopped: Stopped | None = None
    unit: str = ""


@dataclass(frozen=True)
class Stopped:
    """What the calibrated stop does on held-out rows, in all and to each class, and the run itself."""

    summary: Summary
    by_class: list[dict[str, Any]]
    run: Trajectory

    @property
    def asked(self) -> float:
        """The mean number of features that are asked for."""
        return float((self.run.order >= 0).sum(axis=1).mean())

    def how(self, priced: bool) -> str:
        """What askwise does with a case, in one sentence."""
        most = "that which tells most for its price first" if priced else "that which tells most first"
        everything = f"the {len(self.run.features)} features of a case"
        return f"Of {everything} askwise asks for one at a time, {most}, and stops when the decision is settled."

    def headline(self, priced: bool, unit: str) -> str:
        """What is saved, in one sentence."""
        summary, n = self.summary, len(self.run.order)
        if summary.saved <= 0:
            return f"On these {n} new cases nothing is saved: decisions are settled only when everything is known."
        same = f"The same decision in {summary.kept:.0%} of {n} new cases"
        if not priced:
            return f"{same} with {self.asked:.1f} features instead of {len(self.run.features)}."
        less = f"{summary.everything - summary.price:,.0f} {unit}".strip()
        return f"{same} for {less} less: {summary.price:,.0f} instead of {summary.everything:,.0f} per case."

    def kept_by_class(self) -> str:
        """Of each class, the share of its decisions that is kept, and how often decisions are right."""
        kept = ", ".join(
            f"{entry['class']} {entry['kept']:.0%} of {entry['decided']}"
            for entry in self.by_class
            if entry["kept"] is not None
        )
        right = f"Right: {self.summary.accuracy:.1%}, and {self.summary.full_accuracy:.1%} with everything known."
        return f"Decisions kept by class: {kept}. {right}"


@dataclass(frozen=True)
class Story:
    """One case: `trace` as in ``Session.report()["trace"]``, the true label, and what was known from the start.

    `usual` is the order in which most cases are asked, where that of this one differs; `ending` says how it ends.
    """

    title: str
    trace: Sequence[Any]
    truth: Any = None
    known: dict[str, Any] = field(default_factory=dict)
    usual: list[str] = field(default_factory=list)
    ending: str = ""


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


def stop_in_time(selector: DynamicFeatureSelector, rows: ReferenceModel) -> Stopped | None:
    """Calibrate when to stop on the training rows, and measure it on the held-out ones; None where impossible."""
    try:
        stop = selector.calibrate_stop(agreement=AGREEMENT)
    except InvalidInput:  # too few rows, or a model that cannot be fitted again
        return None
    run = selector.acquire(rows.X_test, stop="calibrated")
    truth = np.searchsorted(selector.classes_, rows.y_test)
    decided, end = selector.predictor_.predict_full(rows.X_test).argmax(axis=1), run.decision[:, -1]
    there = selector.schema_.any_column(selector.schema_.encode(rows.X_test).observed)
    everything = float(np.mean(selector.prices_.total(there)))
    summary = by_stop(stop.promise, run, decided, truth, everything)
    return Stopped(summary, by_class(selector.classes_, end, decided, truth), run)


def tell_story(selector: DynamicFeatureSelector, rows: ReferenceModel, comparison: Comparison) -> Story:
    """One held-out case, step by step, up to the calibrated stop if there is one."""
    truth, stopped = np.searchsorted(selector.classes_, rows.y_test), comparison.stopped
    run = comparison.trajectory if stopped is None else stopped.run
    usual = usual_order(run)
    case = turning_case(run, truth) if stopped is None else unusual_case(run, truth, usual)
    cells = selector.schema_.encode(rows.X_test.iloc[[case]]).values[0]
    session = selector.start()
    for feature in run.order[case]:
        if feature >= 0:
            session.answer(run.features[feature], selector.schema_.show_feature(feature, cells))
    own = [int(feature) for feature in run.order[case] if feature >= 0]
    differs = stopped is not None and own[: len(usual)] != usual[: len(own)]
    return Story(
        f"Held-out case {rows.X_test.index[case]}",
        session.report()["trace"],
        plain(rows.y_test[case]),
        usual=[run.features[i] for i in usual] if differs else [],
        ending=_ending(selector, rows, case, own) if stopped is not None else "",
    )


def usual_order(run: Trajectory) -> list[int]:
    """The feature that most cases acquire at each step, as long as most cases go on."""
    order: list[int] = []
    for column in run.order.T:
        counts = np.bincount(column[column >= 0], minlength=len(run.features))
        counts[order] = 0
        if (column >= 0).mean() < 0.5 or not counts.any():
            break
        order.append(int(counts.argmax()))
    return order


def unusual_case(run: Trajectory, truth: np.ndarray, usual: Sequence[int]) -> int:
    """Of the cases that end right for no more than the average price and are asked in another order, the turn.

    The turn is the case whose probability of the true class rose most. Where there is no such case, the conditions
    are dropped, the last one first.
    """
    spent, asked = run.spent_after(-1), (run.order >= 0).sum(axis=1)
    right = (run.decision[:, -1] == truth) & (asked >= FEWEST_QUESTIONS)
    cheap = spent <= spent.mean()
    other = np.array(
        [row[: min(len(usual), k)].tolist() != list(usual)[:k] for row, k in zip(run.order, asked, strict=True)]
    )
    chance = np.take_along_axis(run.proba, truth[:, None, None], axis=2)[:, :, 0]
    return int(np.lexsort((chance[:, -1] - chance.min(axis=1), other & cheap & right, cheap & right, right))[-1])


def _ending(selector: DynamicFeatureSelector, rows: ReferenceModel, case: int, asked: Sequence[int]) -> str:
    """What was left unasked, and what the model says with it."""
    left = [name for i, name in enumerate(selector.features_) if i not in asked]
    if not left:
        return ""
    row = rows.X_test.iloc[[case]]
    full = plain(selector.classes_[selector.predictor_.predict_full(row).argmax()])
    rest = f"the other {len(left)}" if len(left) > 1 else left[0]
    return f"Here it stops. With {rest} known too, the model says: {full}."


def flowchart(selector: DynamicFeatureSelector, rows: ReferenceModel, budget: float | None) -> Flowchart | None:
    """The policy as a tree of questions, grown and measured on the held-out rows; None where they are too few."""
    if len(rows.X_test) < FEWEST_ROWS:
        return None
    bounded = copy.copy(selector)
    bounded.budget = budget
    return bounded.flowchart(rows.X_test, stop="calibrated" if selector.stop_ is not None else None)


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
