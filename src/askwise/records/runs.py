"""Runs of a policy over records, and what they tell about its use where every test can be had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from askwise.records.completions import Describer, completions
from askwise.records.estimators import (
    MISSING,
    N_DRAWS,
    CaseValues,
    Overlap,
    Paths,
    Questions,
    States,
    overlap_of,
    plain_values,
    questions,
    robust_values,
    simulated_values,
    weighted_values,
)
from askwise.table.prices import affordable
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.trajectory import Trajectory

Limits = tuple[float, ...]
"""A budget: the limit of each resource, money first."""
Run = Callable[[EncodedRows, np.ndarray, Limits], Trajectory]
"""Acquires rows with the true values given, of the features (n, M) that can be had, under a budget."""


@dataclass(eq=False)
class RecordRuns:
    """A policy on records with missing cells, under several budgets.

    Parameters
    ----------
    truth
        The records, encoded; NaN = not recorded.
    labels
        (n,) positions of the true classes.
    schema
        Features and columns.
    budgets
        The budgets to be asked about.
    never
        (M,) features whose missing cells could not have been had: they stay unavailable.
    run
        How rows are acquired.
    full_decisions
        The decisions of full rows, (n,).
    donors
        Further rows, and their labels, from which completions may take cells.
    n_draws
        Completions of each record.
    one_run
        Whether one run under the largest budget serves all.
    error_costs
        (C, C) what errors cost, or None.
    columns
        Each budget as the columns of a table.
    resources
        The names of those other than money.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DynamicFeatureSelector(GaussianNB().fit(X, y), random_state=0).fit(X[::2], y[::2])
    >>> X[1::8, 2] = np.nan
    >>> table = selector.evaluate(X[1::2], y[1::2], budgets=[2], missing="all")
    >>> table[["missing", "trusted"]].values.tolist()
    [['blocked', True], ['weighted', True], ['simulated', True], ['doubly_robust', True]]
    """

    truth: EncodedRows
    labels: np.ndarray
    schema: Schema
    budgets: Sequence[Limits]
    never: np.ndarray
    run: Run
    full_decisions: Callable[[EncodedRows], np.ndarray]
    donors: tuple[np.ndarray, np.ndarray] | None = None
    n_draws: int = N_DRAWS
    one_run: bool = False
    error_costs: np.ndarray | None = None
    columns: Sequence[dict[str, float]] = ()
    resources: Sequence[str] = ()
    _kept: dict[Any, Trajectory] = field(default_factory=dict, init=False)
    _asked: dict[Limits, tuple[States, Questions]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.there = self.schema.any_column(self.truth.observed)
        self.recorded = self.there | self.never
        """(n, M) features of which the records say all that there is to know."""
        self.can_be_had = self.there | ~self.never
        self.whole = self.recorded.all(axis=1)

    def values(self, way: str, budget: Limits) -> CaseValues:
        """What each case contributes to the estimate made this `way`, one of `MISSING`, under one of the budgets."""
        assert way in MISSING
        costs = self.error_costs
        if way == "blocked":
            paths = self._paths(way, self.truth, self.there, budget, self._full_blocked)
            return plain_values(paths, self.labels, costs)
        if way == "simulated":
            return simulated_values(self._simulated(budget), self.labels, costs)
        states, asked = self._on_records(budget)
        if way == "weighted":
            return weighted_values(states.paths, asked, self.recorded, self.labels, costs)
        drawn = zip(self._simulated(budget), self._completed, strict=True)
        simulated = [states.others(paths, values) for paths, values in drawn]
        return robust_values(states, asked, self.recorded, simulated, self.labels, costs)

    def overlap(self, budget: Limits) -> Overlap:
        """Which questions under one of the budgets the records answer."""
        states, asked = self._on_records(budget)
        effective = weighted_values(states.paths, asked, self.recorded, self.labels, None).effective()
        return overlap_of(states.paths, asked, self.recorded, effective)

    def _on_records(self, budget: Limits) -> tuple[States, Questions]:
        """The states on the way as far as the records go, and the chance of each answer."""
        if budget not in self._asked:
            full = np.full(len(self.truth), -1)
            if self.whole.any():
                full[self.whole] = self._full_blocked[self.whole]
            paths = self._paths("open", self.truth, self.can_be_had, budget, full)
            like = Describer(self.truth.values, self.schema.is_category)
            always = self.recorded.all(axis=0)
            states = States(paths, self.truth.values, self.labels, always, self.schema, like)
            self._asked[budget] = states, questions(states, self.recorded)
        return self._asked[budget]

    @cached_property
    def _full_blocked(self) -> np.ndarray:
        """(n,) decisions from all that is recorded."""
        return self.full_decisions(self.truth)

    @cached_property
    def _completed(self) -> np.ndarray:
        """(draws, n, D) the records, completed."""
        lacking, donors = ~self.recorded, self.donors
        return completions(self.truth.values, lacking, self.labels, self.schema, self.n_draws, 0, donors=donors)

    @cached_property
    def _stacked(self) -> tuple[EncodedRows, np.ndarray, np.ndarray]:
        """The records that lack nothing, then each draw of the others; what can be had; and their full decisions."""
        values = np.concatenate([self.truth.values[self.whole], *self._completed[:, ~self.whole]])
        had = np.concatenate([self.can_be_had[self.whole], *[self.can_be_had[~self.whole]] * self.n_draws])
        rows = self.truth.with_values(values)
        return rows, had, self.full_decisions(rows)

    def _simulated(self, budget: Limits) -> list[Paths]:
        """The paths of each draw; a record that lacks nothing is run once."""
        rows, had, full = self._stacked
        paths = self._paths("simulated", rows, had, budget, full)
        n_whole, n_open = int(self.whole.sum()), int((~self.whole).sum())
        found, at = [], np.empty(len(self.truth), dtype=int)
        at[self.whole] = np.arange(n_whole)
        for draw in range(self.n_draws):
            at[~self.whole] = n_whole + draw * n_open + np.arange(n_open)
            found.append(paths.take(at.copy()))
        return found

    def _paths(self, kind: str, rows: EncodedRows, available: np.ndarray, budget: Limits, full: np.ndarray) -> Paths:
        under = max(self.budgets) if self.one_run else budget
        if (kind, under) not in self._kept:
            self._kept[kind, under] = self.run(rows, available, under)
        run = self._kept[kind, under]
        spent = np.column_stack([np.zeros(len(rows)), run.costs.cumsum(axis=1)])
        end = (run.order >= 0).sum(axis=1)
        if self.one_run:
            end = np.minimum(end, affordable(spent, budget[0]).sum(axis=1) - 1)
        order = np.where(np.arange(run.order.shape[1]) < end[:, None], run.order, -1)
        so_far = [np.column_stack([np.zeros(len(rows)), paid.cumsum(axis=1)]) for paid in run.further.values()]
        further = np.stack(so_far, axis=2) if so_far else None
        return Paths(order, spent, run.proba, run.decision, end, full, further)
