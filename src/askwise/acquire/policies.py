"""Policies: which feature next. A policy scores; the acquisition decides what can be bought and takes the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_selection import mutual_info_classif
from sklearn.utils import check_random_state

from askwise.prices import AFFORDABLE_WITHIN, Prices
from askwise.schema import Schema
from askwise.value import NeighbourValue, per_cost


class Policy:
    """Scores the features of each row; subclasses write `scores`, and bind prices when they are made.

    A policy sees what is known of a row and nothing else: no label, no hidden cell, no other row. When to stop is
    not its business. One that reads `left` beyond skipping what nobody can afford sets `reads_budget`.
    """

    reads_budget = False

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        """(n, M), higher is better, -inf = never.

        `X` is (n, D) encoded with NaN where hidden, `mask` (n, M) the features had, `left` (n,) the money left.
        """
        raise NotImplementedError


class Greedy(Policy):
    """The feature with the highest expected gain per cost (Section 3.2 of the paper)."""

    def __init__(self, value: NeighbourValue, prices: Prices) -> None:
        self.value = value
        self.prices = prices

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        now = self.prices.now(mask)
        scores = np.full(mask.shape, -np.inf)
        buying = (~mask & (now <= left[:, None] + AFFORDABLE_WITHIN)).any(axis=1)
        if buying.any():
            scores[buying] = per_cost(self.value.gains(X[buying], mask[buying]), now[buying])
        return scores


class Static(Policy):
    """One ranking for all rows: `relevance` (M,) per cost."""

    def __init__(self, relevance: np.ndarray, prices: Prices) -> None:
        self.relevance = relevance
        self.prices = prices

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        return np.where(mask, -np.inf, per_cost(self.relevance, self.prices.now(mask)))


class Random(Policy):
    """A random order for each row, drawn from the seed and the row's position in the batch."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        return np.where(mask, -np.inf, np.random.default_rng(self.seed).random(mask.shape))


def mutual_information_ranking(
    values: np.ndarray, y: np.ndarray, schema: Schema, random_state: Any = None
) -> np.ndarray:
    """(M,) mutual information with the label, over the rows that have the feature; a group: its best column."""
    rng = check_random_state(random_state)
    relevance = np.zeros(values.shape[1])
    for j, is_category in enumerate(schema.is_category):
        there = ~np.isnan(values[:, j])
        if there.sum() > 3:
            seed = int(rng.randint(2**31 - 1))
            relevance[j] = mutual_info_classif(
                values[there, j, None], y[there], discrete_features=bool(is_category), random_state=seed
            )[0]
    return np.array([relevance[members].max() for members in schema.members])
