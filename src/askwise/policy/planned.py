"""A policy that plans what a budget can buy: features of good sets that the money can complete come first."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from askwise.acquisition import Acquisition
from askwise.errors import InvalidInput
from askwise.policy.base import Policy, PolicyContext
from askwise.policy.greedy import Greedy
from askwise.table.prices import Prices
from askwise.value import NeighborValue
from askwise.value.plans import LEVELS, Plans, make_plans

SHARPNESS = 100.0
"""Per nat: a feature whose best plan is worth .01 nats less than that of another counts e times less."""
LEAST_WEIGHT = 1e-20
"""Least weight of a feature, so that its gain can be told from its score."""


class Planned(Greedy):
    r"""Greedy, weighed by the best set of features that the money left can complete with each feature.

    .. math:: score_i = \frac{gain_i}{\sqrt{price_i}} \exp\left(\frac{plan_i - \max_j plan_j}{0.01}\right),
              \qquad plan_i = \max_{T \ni i,\; price(T \mid S) \le left} gain(T \mid x_S)

    The gain of one feature does not say what the rest of the money can buy with it: under a budget the best single
    feature may leave too little for two others that tell more together. `fit` searches sets of features within budgets
    from 5 % to 80 % of the price of everything, and values them by how well the labels of training rows are predicted
    from similar rows (`Plans`). For a case, the rows that resemble it count more. After each answer the plan is made
    again. Without a budget it is `Greedy`, and features that are expected to tell nothing are not weighed. The sets are
    found by forward selection with swaps, which can miss features that tell something only together; `Lookahead` finds
    those.

    Parameters
    ----------
    risk_weight, price_rule
        As in `Greedy`.

    Attributes
    ----------
    plans_ : the sets, and what they tell about training rows
    planned_ : list of dicts, ready for JSON: the best set for some budgets where nothing is known yet

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Planned
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, costs=[1, 1, 2, 2], policy=Planned(), random_state=0)
    >>> selector = selector.fit(X, y)
    >>> selector.acquire(X[:2], budget=3).spent_after(-1).tolist()
    [3.0, 3.0]
    """

    reason_under_budget = (
        "Together with what the rest of the budget can buy, it is expected to tell most for its price."
    )

    def __init__(self, risk_weight: float | None = None, price_rule: str = "auto") -> None:
        super().__init__("neighbors", risk_weight, price_rule)

    def fit(self, context: PolicyContext) -> Self:
        if not context.schema.tabular:
            raise InvalidInput("Planned is for tables; for images, use Greedy().")
        super().fit(context)
        return self._plan(context)

    @classmethod
    def around(cls, greedy: Greedy, context: PolicyContext) -> Planned:
        """The same policy, fitted already, with plans."""
        planned = cls(greedy.risk_weight, greedy.price_rule)
        planned.__dict__ |= {name: part for name, part in vars(greedy).items() if name.endswith("_")}
        return planned._plan(context)

    def _plan(self, context: PolicyContext) -> Self:
        assert isinstance(self.value_, NeighborValue)
        self.plans_ = make_plans(self.value_.predictor, context.schema, context.prices)
        self.planned_ = [_described(self.plans_, context, level) for level in LEVELS]
        return self

    def refitted(self, context: PolicyContext) -> Policy:
        """Cross-fitting has no budgets, so there is nothing to plan."""
        greedy = Greedy(risk_weight=self.risk_weight, price_rule=self.price_rule).fit(context)
        return greedy.with_usual(self.usual_)

    def depends_on_budget(self, prices: Prices) -> bool:
        return True

    def ranked(self, worth: np.ndarray, state: Acquisition) -> np.ndarray:
        scores = super().ranked(worth, state)
        return np.where(scores > 0, scores * self._preference(state), scores)

    def gains(self, scores: np.ndarray, state: Acquisition) -> np.ndarray:
        return super().gains(np.where(scores > 0, scores / self._preference(state), scores), state)

    def _preference(self, state: Acquisition) -> np.ndarray:
        """(n, M) 1 for the features of the best plan, less for others; 1 for all where there is no plan."""
        preference = np.ones(state.mask.shape)
        limited = np.isfinite(state.left)
        if limited.any():
            part = state.rows.take(limited), state.mask[limited], state.available[limited], state.remaining[limited]
            promise = self.plans_.promise(*part, state.prices, state.schema.rules)
            best = promise.max(axis=1, keepdims=True)
            some = np.isfinite(best)
            less = np.where(some, promise, 0.0) - np.where(some, best, 0.0)
            preference[limited] = np.maximum(np.exp(SHARPNESS * less), LEAST_WEIGHT)
        return preference


def _described(plans: Plans, context: PolicyContext, level: float) -> dict[str, Any]:
    budget = level * context.prices.total()
    chosen = plans.best(context.prices, budget)
    names = [context.schema.features[i] for i in np.flatnonzero(chosen)]
    return {"budget": float(budget), "price": float(context.prices.total(chosen[None])[0]), "features": names}
