"""`selector.flowchart`: the rows are split, the chart is grown on one part and measured on the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise.acquisition import Acquisition, nothing_known
from askwise.errors import InvalidInput
from askwise.explain.chart import Agreement, Flowchart
from askwise.explain.growth import AtMost, Ends, Grower
from askwise.parameters import Whole
from askwise.policy.base import Policy
from askwise.stopping.rules import Stopping
from askwise.table.columns import plain
from askwise.table.prices import check_budget
from askwise.table.rows import EncodedRows

FEWEST_ROWS = 10
HELD_OUT_SHARE = 1 / 3
SEED = 0


class FlowchartMixin:
    """Adds `flowchart` to an estimator with a fitted predictor, prices and a policy."""

    def flowchart(self: Any, X: Any, max_depth: int = 4, stop: Stopping | str | None = None) -> Flowchart:
        """The policy as a tree of questions that can be printed and followed by hand.

        Two thirds of the rows, drawn with a fixed seed, grow the chart: each node asks what the policy would ask for
        most of the rows that arrive there, and the answers are grouped where the next question or the decision
        changes. On the other rows its decisions are compared with those of the policy, which stops by the same rule
        and after as many features.

        Parameters
        ----------
        X
            The true values of rows, preferably ones that `fit` has not seen; NaN = unavailable. No labels are needed.
        max_depth
            The most questions on a path. Free features count only where the chart uses their answer.
        stop
            A `Stopping` rule or ``"calibrated"``; None spends the budget of the selector on up to `max_depth` features,
            with `error_costs` as long as they pay.
        """
        truth = self._encode(X)
        ending: Stopping | None = self._stopping(stop, None, 1)
        _check(self.schema_.tabular, len(truth), max_depth)
        order = np.random.default_rng(SEED).permutation(len(truth))
        held, grown = np.split(order, [round(HELD_OUT_SHARE * len(truth))])
        rule = AtMost(int(max_depth), ending)
        start, policy = _start(self, truth.take(grown), ending)
        root = Grower(start, truth.values[grown], policy, rule).grow(int(max_depth))
        unmeasured = Agreement(0, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan)
        chart = Flowchart(root, self.schema_, self.prices_, self.classes_, int(max_depth), len(grown), unmeasured)
        return chart.with_agreement(_measured(self, chart, truth.take(held), rule))


def _check(tabular: bool, n_rows: int, max_depth: Any) -> None:
    if not tabular:
        raise InvalidInput(
            "flowchart needs a table: a question about an image patch has no values that a person could compare."
        )
    if not Whole(1).allows(max_depth):
        raise InvalidInput(f"flowchart: max_depth must be {Whole(1)}; got {max_depth!r}.")
    if n_rows < FEWEST_ROWS:
        raise InvalidInput(
            f"flowchart needs at least {FEWEST_ROWS} rows to grow the chart and measure it; X has {n_rows}."
        )


def _start(selector: Any, truth: EncodedRows, stop: Stopping | None) -> tuple[Acquisition, Policy]:
    """The rows with nothing known and the budget of the selector, and the policy for them."""
    policy, weight = selector._policy_for(truth), selector._risk_weight()
    members = stop is not None or policy.reads_members(weight)
    beliefs = selector.beliefs_ if members else selector.beliefs_.without_members()
    state = nothing_known(selector.schema_, selector.prices_, beliefs, truth, risk_weight=weight)
    state.left = check_budget(selector.budget, len(truth))
    return state, policy


def _measured(selector: Any, chart: Flowchart, truth: EncodedRows, rule: AtMost) -> Agreement:
    """Decisions and prices of the chart, of the policy and of the full row on held-out rows."""
    start, policy = _start(selector, truth, rule.stop)
    ends = Ends.of(start, truth.values, policy, rule)
    full = selector.beliefs_.decisions(selector.predictor_.full_proba(truth))
    leaves, asked = chart.follow_encoded(truth)
    decided = np.array([leaf.decision for leaf in chart.leaves])[leaves]
    return Agreement(
        n_rows=len(truth),
        policy=float((decided == ends.decision).mean()),
        full=float((decided == full).mean()),
        policy_full=float((ends.decision == full).mean()),
        price=float(selector.prices_.total(asked).mean()),
        policy_price=float(ends.spent.mean()),
        full_price=selector.prices_.total(),
        by_class=[
            (plain(selector.classes_[c]), int((full == c).sum()), float((decided == full)[full == c].mean()))
            for c in np.unique(full)
        ],
    )
