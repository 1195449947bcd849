"""Policies that do not look at the case: one ranking for all, and a random order for each."""

from __future__ import annotations

from typing import Self

import numpy as np

from askwise.acquisition import Acquisition
from askwise.errors import InvalidInput
from askwise.parameters import Whole, check_limits
from askwise.policy.base import Policy, PolicyContext, WithoutRows
from askwise.policy.information import discretized, greedy_order, rank_scores
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.value import per_cost

N_BINS = 3
"""Bins of a number in the ranking of `Static`."""


class Static(WithoutRows, Policy):
    """One ranking for all cases.

    Parameters
    ----------
    relevance
        (M,) worth of each feature; the ranking is by worth per price. None ranks by information about the label per
        price, each feature given those before it, as `baselines.StaticCMI` does.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Static
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, costs=[1, 1, 2, 2], policy=Static(), random_state=0)
    >>> selector = selector.fit(X, y)
    >>> selector.acquire(X[:2], budget=3).spent_after(-1).tolist()
    [3.0, 3.0]
    """

    refits = True
    reads_belief = False
    reason = "It is next in the fixed order of the policy."

    def __init__(self, relevance: np.ndarray | None = None) -> None:
        self.relevance = relevance

    def fit(self, context: PolicyContext) -> Self:
        if self.relevance is None:
            return self.fit_order(context.rows, context.y, context.schema, context.prices)
        given, n_features = np.asarray(self.relevance), len(context.schema.features)
        if given.dtype.kind not in "iuf" or given.shape != (n_features,) or np.isnan(given).any():
            raise InvalidInput(
                f"Static: relevance must be one number for each of the {n_features} features; got {self.relevance!r}."
            )
        self.relevance_ = given.astype(float)
        return self

    def fit_order(self, rows: EncodedRows, y: np.ndarray, schema: Schema, prices: Prices) -> Self:
        """Rank by conditional information; the order already takes the prices into account."""
        self.relevance_ = rank_scores(greedy_order(discretized(rows, y, schema, N_BINS), y, prices, "cmim"))
        return self

    def scores(self, state: Acquisition) -> np.ndarray:
        priced = per_cost(self.relevance_, state.weighed_now)
        return np.where(state.mask, -np.inf, self.relevance_ if self.relevance is None else priced)


class Random(WithoutRows, Policy):
    """A random order for each case, drawn from the seed and the number of the case in its batch.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Random
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, costs=[1, 1, 2, 2], policy=Random(0), random_state=0)
    >>> selector = selector.fit(X, y)
    >>> selector.acquire(X[:2], budget=3).spent_after(-1).tolist()
    [2.0, 2.0]
    """

    refits = True
    reads_belief = False
    reason = "The policy asks in random order."

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed

    def fit(self, context: PolicyContext) -> Self:
        check_limits(self, {"seed": Whole(0, optional=True)})
        self.seed_ = context.random_state
        return self

    def scores(self, state: Acquisition) -> np.ndarray:
        rng = np.random.default_rng(self.seed_ if self.seed is None else self.seed)
        drawn = rng.random((int(state.ids.max(initial=-1)) + 1, state.mask.shape[1]))
        return np.where(state.mask, -np.inf, drawn[state.ids])
