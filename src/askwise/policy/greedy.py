"""The greedy policy: the feature with the highest expected gain for its price."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from sklearn.base import clone

from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.parameters import FINITE, Choice, check_limits
from askwise.policy.base import Policy, PolicyContext
from askwise.predict.base import SubsetPredictor
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.prices import Prices
from askwise.value import (
    PRICE_RULES,
    NeighborValue,
    UsualGains,
    Value,
    ValueEstimator,
    by_rule,
    gain,
    per_cost,
    price_power,
)


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
        ``"per price"``: gain / price, the rule of the paper; ``"root"``: gain / sqrt(price); ``"auto"``: root where a
        case has a budget, else per price.

    Attributes
    ----------
    value_ : the `Value` in use
    usual_ : what features usually tell, mixed into their expected reductions of u; None = the case's own alone

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Greedy
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> policy = Greedy(price_rule="per price")
    >>> selector = DynamicFeatureSelector(model, costs=[1, 1, 2, 2], policy=policy, random_state=0)
    >>> selector = selector.fit(X, y)
    >>> selector.acquire(X[:2], budget=3).spent_after(-1).tolist()
    [3.0, 3.0]
    """

    compares_gains = True
    never_declines = True
    usual_: UsualGains | None = None
    reason = "It is expected to tell most for its price."

    def __init__(
        self, value: str | Value = "neighbors", risk_weight: float | None = None, price_rule: str = "auto"
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
        return self if isinstance(self.value_, ValueEstimator) else super().with_rows(context).with_usual(self.usual_)

    def refitted(self, context: PolicyContext) -> Policy:
        found = super().refitted(context)
        return found.with_usual(self.usual_) if isinstance(found, Greedy) else found

    def with_usual(self, usual: UsualGains | None) -> Self:
        """The same policy with what features usually tell; what it was fitted to is shared."""
        other = copy.copy(self)
        other.usual_ = usual
        return other

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
        scores = by_rule(worth, state.weighed_now, self.price_rule, state.remaining[:, :1])
        return np.where(state.mask, -np.inf, scores)

    def depends_on_budget(self, prices: Prices) -> bool:
        return self.reads_budget or (self.price_rule == "auto" and not (prices.uniform and prices.weighed.uniform))

    def gains(self, scores: np.ndarray, state: Acquisition) -> np.ndarray:
        rest = 1 - price_power(self.price_rule, state.remaining[:, :1])
        return per_cost(scores, state.weighed_now**rest)

    def worth(self, state: Acquisition) -> np.ndarray:
        """(n, M) expected gain of each feature, whatever its price."""
        return self.weighed(*self.reductions(state), state)

    def reductions(self, state: Acquisition) -> tuple[np.ndarray, np.ndarray]:
        """Expected reductions of u and of e by each feature of the case itself, (n, M) each."""
        return self.value_.reductions(state, risk=self.reads_members(state.risk_weight))

    def weighed(self, discrepancy: np.ndarray, epistemic: np.ndarray, state: Acquisition) -> np.ndarray:
        """(n, M) the gains from the `reductions` of a state."""
        if self.usual_ is not None:
            discrepancy = self.usual_.mixed(discrepancy, state.mask)
        return gain(discrepancy, epistemic, state.risk_weight if self.risk_weight is None else self.risk_weight)


def completing(context: PolicyContext) -> BeliefModel:
    """The given beliefs if their predictor uses completions, else those of one that does, around the same model."""
    predictor: SubsetPredictor = context.beliefs.predictor
    if isinstance(predictor, ConditionalPredictor):
        return context.beliefs
    completing = ConditionalPredictor(predictor.estimator_, random_state=context.random_state)
    return BeliefModel(completing.fit_encoded(predictor.model_, context.rows, context.y), context.beliefs.epistemic)
