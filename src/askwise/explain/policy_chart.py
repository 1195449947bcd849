"""A policy as a flowchart: the rows are split, the chart is grown on one part and measured on the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from askwise.acquisition import Acquisition
from askwise.errors import InvalidInput
from askwise.explain.chart import Agreement, Flowchart
from askwise.explain.growth import AtMost, Ends, Grower
from askwise.parameters import Whole
from askwise.policy.base import Policy
from askwise.stopping.rules import Stopping
from askwise.table.columns import plain
from askwise.table.rows import EncodedRows

FEWEST_ROWS = 10
HELD_OUT_SHARE = 1 / 3
SEED = 0

Start = Callable[[EncodedRows], tuple[Acquisition, Policy]]
"""Cases of which nothing is known, from their true values, and the policy for them."""


def policy_chart(
    start: Start, truth: EncodedRows, classes: np.ndarray, max_depth: int, stop: Stopping | None
) -> Flowchart:
    """The flowchart of a policy, grown and measured on the cases `truth`; see `FeatureAcquirer.flowchart`."""
    order = np.random.default_rng(SEED).permutation(len(truth))
    held, grown = np.split(order, [round(HELD_OUT_SHARE * len(truth))])
    rule = AtMost(int(max_depth), stop)
    state, policy = start(truth.take(grown))
    root = Grower(state, truth.values[grown], policy, rule).grow(int(max_depth))
    unmeasured = Agreement(0, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan)
    chart = Flowchart(root, state.schema, state.prices, classes, int(max_depth), len(grown), unmeasured)
    return chart.with_agreement(_measured(start, chart, truth.take(held), rule))


def check_chart(tabular: bool, n_rows: int, max_depth: Any) -> None:
    """Refuse images, a depth that is no number of questions, and rows too few to measure anything."""
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


def _measured(start: Start, chart: Flowchart, truth: EncodedRows, rule: AtMost) -> Agreement:
    """Decisions and prices of the chart, of the policy and of the full row on held-out rows."""
    state, policy = start(truth)
    beliefs, prices = state.beliefs, state.prices
    ends = Ends.of(state, truth.values, policy, rule)
    full = beliefs.decisions(beliefs.predictor.full_proba(truth))
    leaves, asked = chart.follow_encoded(truth)
    decided = np.array([leaf.decision for leaf in chart.leaves])[leaves]
    return Agreement(
        n_rows=len(truth),
        policy=float((decided == ends.decision).mean()),
        full=float((decided == full).mean()),
        policy_full=float((ends.decision == full).mean()),
        price=float(prices.total(asked).mean()),
        policy_price=float(ends.spent.mean()),
        full_price=prices.total(),
        by_class=[
            (plain(chart.classes[c]), int((full == c).sum()), float((decided == full)[full == c].mean()))
            for c in np.unique(full)
        ],
    )
