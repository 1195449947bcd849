"""Policies: which feature next. A policy scores; the acquisition decides what can be bought and takes the best."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.feature_selection import mutual_info_classif

from askwise.epistemic import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.conditional import ConditionalPredictor
from askwise.prices import AFFORDABLE_WITHIN, Prices
from askwise.randomness import generator, seed_from
from askwise.schema import Schema
from askwise.value import HeldOutStates, NeighborValue, ValueEstimator, per_cost


class Value(Protocol):
    """What a feature is worth: expected reductions of u and of e, (n, M) each."""

    def reductions(self, values: np.ndarray, mask: np.ndarray, risk: bool = True) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True)
class PolicyContext:
    """What a policy may learn from: the training rows, the prices, and all that is fitted around the wrapped model."""

    values: np.ndarray  # (N, D) encoded
    y: np.ndarray  # (N,) class positions
    schema: Schema
    prices: Prices
    predictor: SubsetPredictor
    epistemic: EpistemicEstimator | None
    risk_weight: float
    held_out: Callable[[], HeldOutStates]
    random_state: int
    progress: bool | str


class Policy:
    """Scores the features of each row; subclasses write `scores`.

    A policy sees what is known of a row and nothing else: no label, no hidden cell, no other row. When to stop is
    not its business. One that reads `left` beyond skipping what nobody can afford sets `reads_budget`; one whose scores
    depend on the position of a row in its batch sets `by_position`.
    """

    reads_budget = False
    by_position = False

    def fit(self, context: PolicyContext) -> Policy:
        """The policy ready to score; one that was made with all it needs, prices included, is ready as it is."""
        return self

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        """(n, M), higher is better, -inf = never.

        `X` is (n, D) encoded with NaN where hidden, `mask` (n, M) the features had, `left` (n,) the money left.
        """
        raise NotImplementedError


class CachedPolicy(Policy):
    """Another policy, for the same rows under one budget after the other: a state that the last episode met at the same
    step is not scored again, and until the money runs out they meet the same ones.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._last: list[tuple[np.ndarray, np.ndarray]] = []  # (mask, scores) by step
        self._now: list[tuple[np.ndarray, np.ndarray]] = []

    def start(self) -> None:
        """Another episode begins."""
        self._last, self._now = self._now, []

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        step = len(self._now)
        scores = np.full(mask.shape, -np.inf)
        known = np.zeros(len(mask), dtype=bool)
        if step < len(self._last) and not (self.policy.reads_budget or self.policy.by_position):
            before, found = self._last[step]
            # Who could afford nothing was not scored.
            known = (before == mask).all(axis=1) & np.isfinite(found).any(axis=1)
            scores[known] = found[known]
        if not known.all():
            scores[~known] = self.policy.scores(X[~known], mask[~known], left[~known])
        self._now.append((mask.copy(), scores))
        return scores


class Greedy(Policy):
    r"""The feature with the highest expected gain per cost (Section 3.2 of the paper).

    .. math:: gain_i = E[u(S) - u(S + i)] + \lambda\, E[e(S) - e(S + i)]

    Parameters
    ----------
    value
        ``"neighbors"`` (training-free), ``"network"`` (the paper's estimator; needs torch), a
        `ValueEstimator` with options of your own, or any `Value`.
    prices, risk_weight
        Prices and :math:`\lambda`; where they are None, `fit` takes the selector's.
    """

    def __init__(
        self, value: str | Value = "neighbors", prices: Prices | None = None, risk_weight: float | None = None
    ) -> None:
        if isinstance(value, str) and value not in ("neighbors", "network"):
            raise InvalidInput(f'Greedy: value must be "neighbors", "network" or a Value; got {value!r}.')
        self.value = value
        self.prices = prices
        self.risk_weight = risk_weight

    def fit(self, context: PolicyContext) -> Greedy:
        value: str | Value = self.value
        if value == "network":
            value = ValueEstimator(random_state=context.random_state, progress=context.progress)
        if hasattr(value, "fit") and not hasattr(value, "layers_"):
            value = copy.copy(value).fit(context.held_out())
        elif value == "neighbors":
            value = NeighborValue(_completing(context), context.schema, context.epistemic, context.random_state)
        weight = context.risk_weight if self.risk_weight is None else self.risk_weight
        return Greedy(value, self.prices or context.prices, weight)

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        assert self.prices is not None
        assert not isinstance(self.value, str)
        now = self.prices.now(mask)
        scores = np.full(mask.shape, -np.inf)
        buying = (~mask & (now <= left[:, None] + AFFORDABLE_WITHIN)).any(axis=1)
        if buying.any():
            weight = self.risk_weight or 0.0
            discrepancy, epistemic = self.value.reductions(X[buying], mask[buying], risk=weight != 0)
            scores[buying] = per_cost(discrepancy + weight * epistemic, now[buying])
        return np.where(mask, -np.inf, scores)


class Static(Policy):
    """One ranking for all rows: `relevance` (M,) per cost; by mutual information with the label where it is None."""

    def __init__(self, relevance: np.ndarray | None = None, prices: Prices | None = None) -> None:
        self.relevance = relevance
        self.prices = prices

    def fit(self, context: PolicyContext) -> Static:
        relevance = self.relevance
        if relevance is None:
            relevance = mutual_information_ranking(context.values, context.y, context.schema, context.random_state)
        return Static(relevance, self.prices or context.prices)

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        assert self.relevance is not None
        assert self.prices is not None
        return np.where(mask, -np.inf, per_cost(self.relevance, self.prices.now(mask)))


class Random(Policy):
    """A random order for each row, drawn from the seed and the row's position in the batch."""

    by_position = True

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed

    def fit(self, context: PolicyContext) -> Random:
        return Random(context.random_state if self.seed is None else self.seed)

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        return np.where(mask, -np.inf, np.random.default_rng(self.seed).random(mask.shape))


def mutual_information_ranking(
    values: np.ndarray, y: np.ndarray, schema: Schema, random_state: Any = None
) -> np.ndarray:
    """(M,) mutual information with the label, over the rows that have the feature; a group: its best column."""
    rng = generator(random_state)
    relevance = np.zeros(values.shape[1])
    for j, is_category in enumerate(schema.is_category):
        there = ~np.isnan(values[:, j])
        if there.sum() > 3:
            relevance[j] = mutual_info_classif(
                values[there, j, None], y[there], discrete_features=bool(is_category), random_state=seed_from(rng)
            )[0]
    return np.array([relevance[members].max() for members in schema.feature_columns])


def _completing(context: PolicyContext) -> ConditionalPredictor:
    """The predictor itself where it completes rows, else one that does around the same model."""
    if isinstance(context.predictor, ConditionalPredictor):
        return context.predictor
    predictor = ConditionalPredictor(context.predictor.estimator_, random_state=context.random_state)
    rows, labels = context.schema.decode(context.values), context.predictor.classes_[context.y]
    return predictor.fit(rows, labels, schema=context.predictor.schema_)
