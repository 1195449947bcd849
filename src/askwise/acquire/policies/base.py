"""Policies score features; the acquisition determines which can be acquired and takes the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from askwise.acquire.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.information import discretized, greedy_order, rank_scores
from askwise.parameters import FINITE, Choice, Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.predict.conditional import ConditionalPredictor
from askwise.prices import Prices
from askwise.rows import EncodedRows
from askwise.schema import Schema
from askwise.value import (
    PRICE_RULES,
    HeldOutStates,
    NeighborValue,
    Value,
    ValueEstimator,
    by_rule,
    per_cost,
    price_power,
    purchases_left,
)

N_BINS = 3
"""Bins of a number in the ranking of `Static`."""


@dataclass(frozen=True)
class PolicyContext:
    """What a policy may learn from: the training rows, the prices, and what was fitted around the wrapped model."""

    rows: EncodedRows
    y: np.ndarray  # (N,) class positions
    schema: Schema
    prices: Prices
    beliefs: BeliefModel
    risk_weight: float
    held_out: Callable[[], HeldOutStates]
    random_state: int
    progress: bool | str


class Policy(BaseEstimator):
    """Scores the features of each case; subclasses implement `scores` and, if they are trained, `fit`.

    A policy is a scikit-learn estimator: the constructor stores its parameters, `fit` learns. It reads what is known
    about each case (`state.rows`, `state.mask`, `state.belief`), the prices and the budget left (`state.left`), and
    nothing else: no label, no hidden cell, no other case. It does not decide when to stop. A policy that reads
    `state.left` sets `reads_budget`.
    """

    reads_budget = False
    reads_belief = True  # where the scores do without `state.belief`, predictions are computed when they are read
    compares_gains = False
    """Whether `gains` are expected gains, so that those of two features can be compared."""
    reason = "The policy in use ranks it first."
    """Why the feature with the highest score comes next, in words."""

    @property
    def refits(self) -> bool:
        """Whether it is fitted again in cross-fitting: where fitting is fast, or scores depend on the training rows."""
        return False

    def fit(self, context: PolicyContext) -> Self:
        """Learn from the training rows; by default there is nothing to learn."""
        return self

    def with_rows(self, context: PolicyContext) -> Self:
        """The same policy without the training rows it was fitted with; by default it is fitted to those of `context`.

        A policy that keeps no rows, but only what it learned from them, returns itself.
        """
        return clone(self).fit(context)

    def refitted(self, context: PolicyContext) -> Self:
        """The policy for a fold of cross-fitting: fitted again if it `refits`, else the one in use."""
        return clone(self).fit(context) if self.refits else self

    def scores(self, state: Acquisition) -> np.ndarray:
        """(n, M) scores, higher is better, -inf = never acquire."""
        raise NotImplementedError

    def worth(self, state: Acquisition) -> np.ndarray:
        """(n, M) what the scores are computed from, whatever the budget; by default the scores themselves."""
        return self.scores(state)

    def ranked(self, worth: np.ndarray, state: Acquisition) -> np.ndarray:
        """(n, M) the scores, from the `worth` of the features and the budget left."""
        return worth

    def gains(self, scores: np.ndarray, state: Acquisition) -> np.ndarray:
        """(n, M) the expected gains per price behind the `scores` of a state; by default the scores themselves."""
        return scores

    def reads_members(self, risk_weight: float) -> bool:
        """Whether the scores need the members of `state.belief` for this `state.risk_weight`."""
        return True


class CachedPolicy(Policy):
    """Wraps a policy that runs on the same cases under one budget after another.

    The features of a state that the previous episode visited at the same step are not valued again; until the budget
    runs out, episodes visit much the same states.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._last: list[dict[int, tuple[bytes, np.ndarray]]] = []  # case -> (mask, worth), by step
        self._current: list[dict[int, tuple[bytes, np.ndarray]]] = []

    def start(self) -> None:
        """Start another episode."""
        self._last, self._current = self._current, []

    def scores(self, state: Acquisition) -> np.ndarray:
        step = len(self._current)
        if self.policy.reads_budget:
            return self.policy.scores(state)
        last = self._last[step] if step < len(self._last) else {}
        keys = [row.tobytes() for row in np.packbits(state.mask, axis=1)]
        cases = state.ids.tolist()
        known = np.array([last.get(case, (b"",))[0] == key for case, key in zip(cases, keys, strict=True)], dtype=bool)
        worth = np.empty(state.mask.shape)
        for r in np.flatnonzero(known):
            worth[r] = last[cases[r]][1]
        if not known.all():
            worth[~known] = self.policy.worth(state if not known.any() else state.part(~known))
        self._current.append(dict(zip(cases, zip(keys, worth, strict=True), strict=True)))
        return self.policy.ranked(worth, state)


class Greedy(Policy):
    r"""The feature with the highest expected gain for its price (Section 3.2 of the paper).

    .. math:: gain_i = E[u(S) - u(S + i)] + \lambda\, E[e(S) - e(S + i)]

    Parameters
    ----------
    value
        ``"neighbors"`` (training-free), ``"network"`` (the paper's estimator; needs torch), a configured
        `ValueEstimator`, or any `Value`.
    risk_weight
        :math:`\lambda`; None uses the risk weight of the selector.
    price_rule
        ``"per price"``: gain / price, the rule of the paper; ``"root"``: gain / sqrt(price), a little better under a
        budget and worse without one; ``"purchases left"``: in between, by how many features the money left pays for.
    """

    compares_gains = True
    reason = "It has the highest expected gain for its price."

    def __init__(
        self, value: str | Value = "neighbors", risk_weight: float | None = None, price_rule: str = "per price"
    ) -> None:
        self.value = value
        self.risk_weight = risk_weight
        self.price_rule = price_rule

    def fit(self, context: PolicyContext) -> Self:
        if self.value not in ("neighbors", "network") and not hasattr(self.value, "reductions"):
            raise InvalidInput(f'Greedy: value must be "neighbors", "network" or a Value; got {self.value!r}.')
        if self.risk_weight is not None:
            check_limits(self, {"risk_weight": FINITE})
        check_limits(self, {"price_rule": Choice(PRICE_RULES)})
        self.value_ = self._fitted_value(context)
        return self

    def with_rows(self, context: PolicyContext) -> Self:
        return self if isinstance(self.value_, ValueEstimator) else super().with_rows(context)

    def _fitted_value(self, context: PolicyContext) -> Value:
        if self.value == "neighbors":
            return NeighborValue(completing(context), context.schema, context.random_state)
        if self.value == "network":
            network = ValueEstimator(random_state=context.random_state, progress=context.progress)
            return network.fit(context.held_out())
        if isinstance(self.value, ValueEstimator):
            return clone(self.value).fit(context.held_out())
        assert not isinstance(self.value, str)
        return self.value

    @property
    def refits(self) -> bool:
        return isinstance(self.value, str) and self.value == "neighbors"

    def reads_members(self, risk_weight: float) -> bool:
        return (risk_weight if self.risk_weight is None else self.risk_weight) != 0

    def scores(self, state: Acquisition) -> np.ndarray:
        return self.ranked(self.worth(state), state)

    def ranked(self, worth: np.ndarray, state: Acquisition) -> np.ndarray:
        scores = by_rule(worth, state.prices.now(state.mask), self.price_rule, purchases_of(state))
        return np.where(state.mask, -np.inf, scores)

    def gains(self, scores: np.ndarray, state: Acquisition) -> np.ndarray:
        rest = 1 - price_power(self.price_rule, purchases_of(state))
        return per_cost(scores, state.prices.now(state.mask) ** rest)

    def worth(self, state: Acquisition) -> np.ndarray:
        """(n, M) expected gain of each feature, whatever its price."""
        weight = state.risk_weight if self.risk_weight is None else self.risk_weight
        discrepancy, epistemic = self.value_.reductions(state, risk=weight != 0)
        return discrepancy + weight * epistemic


class Static(Policy):
    """One ranking for all cases.

    Parameters
    ----------
    relevance
        (M,) worth of each feature; the ranking is by worth per price. None ranks by information about the label per
        price, each feature given those before it, as `baselines.StaticCMI` does.
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

    def with_rows(self, context: PolicyContext) -> Self:
        return self

    def reads_members(self, risk_weight: float) -> bool:
        return False

    def scores(self, state: Acquisition) -> np.ndarray:
        priced = per_cost(self.relevance_, state.prices.now(state.mask))
        return np.where(state.mask, -np.inf, self.relevance_ if self.relevance is None else priced)


class Random(Policy):
    """A random order for each case, drawn from the seed and the number of the case in its batch."""

    refits = True
    reads_belief = False
    reason = "The policy asks in random order."

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed

    def fit(self, context: PolicyContext) -> Self:
        check_limits(self, {"seed": Whole(0, optional=True)})
        self.seed_ = context.random_state
        return self

    def with_rows(self, context: PolicyContext) -> Self:
        return self

    def reads_members(self, risk_weight: float) -> bool:
        return False

    def scores(self, state: Acquisition) -> np.ndarray:
        rng = np.random.default_rng(self.seed_ if self.seed is None else self.seed)
        drawn = rng.random((int(state.ids.max(initial=-1)) + 1, state.mask.shape[1]))
        return np.where(state.mask, -np.inf, drawn[state.ids])


def purchases_of(state: Acquisition) -> np.ndarray:
    """(n, 1) how many features the money left of each case pays for."""
    return purchases_left(state.prices.now(state.mask), state.left, ~state.mask & state.available)


def completing(context: PolicyContext) -> BeliefModel:
    """The given beliefs if their predictor uses completions, else those of one that does, around the same model."""
    predictor: SubsetPredictor = context.beliefs.predictor
    if isinstance(predictor, ConditionalPredictor):
        return context.beliefs
    completing = ConditionalPredictor(predictor.estimator_, random_state=context.random_state)
    return BeliefModel(completing.fit_encoded(predictor.model_, context.rows, context.y), context.beliefs.epistemic)
