"""Plans: sets of features that a budget can pay for, and what each of them tells about cases like the present one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from askwise.predict.conditional import ConditionalPredictor
from askwise.predict.similarity import Neighbors, kernel
from askwise.table.constraints import HouseRules
from askwise.table.prices import Prices, affordable
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.value.joint import LABEL_PRIOR, JointGain
from askwise.value.sets import Set, SetSearch

ROWS = 400
"""Training rows by which sets are valued."""
MOST_CANDIDATES = 40
"""Features that are combined: of more, those that tell most on their own for the root of their price."""
N_TRIED = 6
"""Features that are tried at each step of the search."""
LEAST_GAIN = -0.02
"""Nats. The estimate by a kernel counts what tells little as a loss, but money that is left over buys nothing."""
LEVELS = (*np.arange(0.05, 0.525, 0.05), 0.65, 0.8)
"""Shares of the price of everything within which sets are searched."""
KEPT = 20
"""Sets that are kept for each of `N_PRICES` prices, the best within it."""
N_PRICES = 60
DIGITS = 9
"""Values are rounded, so that those of a row do not depend on the size of the batch."""
PRIOR_ROWS = 50.0
"""In rows: how strongly the value of a set for the rows that resemble a case is drawn to that for all rows."""


@dataclass(frozen=True, eq=False)
class Plans:
    """Sets of features, and what each tells about each of some training rows.

    Attributes
    ----------
    sets
        (Q, M) bool.
    gains
        (Q, R) what each set tells about each row, in nats.
    neighbors
        The R rows.
    """

    sets: np.ndarray
    gains: np.ndarray
    neighbors: Neighbors

    def values(self, rows: EncodedRows) -> np.ndarray:
        """(n, Q) expected gain of each set for cases with these known cells.

        The mean over the training rows that resemble the case, drawn to the mean over all as far as there are few.
        """
        weights = kernel(self.neighbors.squared_distances(rows), self.neighbors.bandwidth)
        weights /= weights.sum(axis=1, keepdims=True)
        n_alike = 1 / (weights**2).sum(axis=1, keepdims=True)
        share = n_alike / (n_alike + PRIOR_ROWS)
        values = share * (weights @ self.gains.T) + (1 - share) * self.gains.mean(axis=1)
        return np.asarray(values.round(DIGITS))

    def promise(
        self,
        rows: EncodedRows,
        mask: np.ndarray,
        available: np.ndarray,
        left: np.ndarray,
        prices: Prices,
        rules: HouseRules | None = None,
    ) -> np.ndarray:
        """(n, M) expected gain of the best set with each feature that what is `left` (n, R) completes; -inf: none."""
        if rules is not None:
            available = available & ~rules.hopeless(mask, rows.values)
        lacking = (~mask & ~available & (np.asarray(prices.weighed.costs) > 0)).astype(float) @ self.sets.T > 0
        within = prices.fits(mask, self.sets, left) & ~lacking
        if rules is not None:
            within &= ~rules.too_many(mask, self.sets)
        values = np.where(within, self.values(rows), -np.inf)
        found = [values[:, with_it].max(axis=1, initial=-np.inf) for with_it in self.sets.T]
        return np.where(mask, -np.inf, np.stack(found, axis=1))

    def best(self, prices: Prices, budget: float) -> np.ndarray:
        """(M,) the best set within a budget for a case of which nothing is known."""
        within = affordable(prices.total(self.sets), budget)
        return np.asarray(self.sets[np.where(within, self.gains.mean(axis=1), -np.inf).argmax()])


def make_plans(predictor: ConditionalPredictor, schema: Schema, prices: Prices) -> Plans:
    """The sets that tell most about the labels of training rows within some prices.

    A row is predicted from the answers of the wrapped model on the rows that resemble it in the features of the set.
    """
    n = min(ROWS, len(predictor.pool_))  # the pool is shuffled
    neighbors = predictor.neighbors_.first(n)
    answers = predictor.model_(EncodedRows(predictor.pool_[:n]))[:, : len(predictor.classes_)]
    labels, weights = predictor.pool_labels()[:n], np.full(n, 1 / n)
    joint = JointGain(neighbors.scores, weights, answers, schema, neighbors.bandwidth, labels, LABEL_PRIOR)
    free, rules = np.asarray(prices.weighed.costs) == 0, schema.rules
    start = (
        free
        if rules is None
        else rules.must | (free & ~rules.hopeless(rules.must[None], np.full((1, len(schema.columns)), np.nan))[0])
    )
    search = SetSearch(
        joint,
        prices,
        np.zeros(len(free), dtype=bool),
        np.flatnonzero(~start),
        MOST_CANDIDATES,
        start=frozenset(np.flatnonzero(start).tolist()),
        least_gain=LEAST_GAIN,
        n_tried=N_TRIED,
        possible=None if rules is None else rules.together,
    )
    for level in LEVELS:
        search.best(level * prices.total())
    kept = _worth_keeping(search)
    return Plans(np.stack([search.mask(chosen) for chosen in kept]), np.stack(list(map(search.gains, kept))), neighbors)


def _worth_keeping(search: SetSearch) -> list[Set]:
    """The best sets within each of some prices, in the order in which they were found."""
    sets, gains = list(search.tried), np.array(list(search.tried.values()))
    order, price = np.argsort(-gains, kind="stable"), np.array([search.price(chosen) for chosen in sets])
    budgets = np.linspace(0, search.prices.total(), N_PRICES)
    kept = np.unique(np.concatenate([order[affordable(price[order], budget)][:KEPT] for budget in budgets]))
    return [sets[k] for k in kept]
