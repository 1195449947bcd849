"""Acquisition with known costs of errors: the policy that scores expected savings."""

from __future__ import annotations

from typing import Self

import numpy as np

from askwise.acquisition import Acquisition
from askwise.errors import InvalidInput
from askwise.parameters import Number, check_limits
from askwise.policy.base import Policy, PolicyContext
from askwise.policy.greedy import completing
from askwise.table.prices import Prices, affordable
from askwise.uncertainty import SMALLEST
from askwise.value import NeighborSavings, Savings, per_cost


class ExpectedSaving(Policy):
    """The feature with the highest expected saving in the cost of errors per unit of price.

    A feature is scored on its own and in pairs that can be paid together, at the price of both, whichever is better:
    two tests that only help together, or that share a set-up cost, are found. Where no feature and no pair pays for
    itself but everything together does, the features are ranked by their information about the class per price, and
    the best one has the score of everything.

    The selector uses it as ``"greedy"`` if `error_costs` are given.

    Parameters
    ----------
    caution
        Standard errors of an estimate, which has few completions, that are subtracted from the expected saving of a
        feature or pair before it is compared with the price: the largest of many estimates is optimistic. It affects
        when to stop, not the ranking. On validation rows of heart and hepatitis 1.5 is slightly better than 1 and 0.
        Everything together is one estimate, and pays as soon as it saves its price.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import ExpectedSaving
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> costs = {0: 1, 1: 20, 2: 20}
    >>> selector = DynamicFeatureSelector(model, error_costs=costs, random_state=0).fit(X, y)
    >>> isinstance(selector.policy_, ExpectedSaving)
    True
    """

    reads_budget = True  # a pair must be affordable
    refits = True
    compares_gains = True
    reason = "It is expected to save the most in the cost of errors for its price."

    def __init__(self, caution: float = 1.5) -> None:
        self.caution = caution

    def fit(self, context: PolicyContext) -> Self:
        check_limits(self, {"caution": Number()})
        costs = context.beliefs.error_costs
        if costs is None:
            raise InvalidInput("ExpectedSaving needs the cost of errors; pass error_costs to the selector.")
        self.value_ = NeighborSavings(completing(context), context.schema, costs, context.random_state)
        return self

    def reads_members(self, risk_weight: float) -> bool:
        return False

    def scores(self, state: Acquisition) -> np.ndarray:
        return self.scores_and_worth(state)[0]

    def scores_and_worth(self, state: Acquisition) -> tuple[np.ndarray, np.ndarray]:
        """(n, M) scores, and (n,) whether anything that can be acquired pays for itself."""
        found, buyable, now = self.value_.savings(state), state.buyable(), state.weighed_now
        scores = _alone_or_in_pairs(state, found, buyable, now)
        together = _by_everything(state, found, buyable)
        cautious = _alone_or_in_pairs(state, found.less_errors(self.caution), buyable, now)
        worth = np.where(buyable, cautious, 0.0).max(axis=1) > 1
        relevance = np.where(buyable, per_cost(np.maximum(found.information, SMALLEST), now), 0.0)
        relevance /= np.maximum(relevance.max(axis=1, keepdims=True), SMALLEST)
        only_together = (together > 1) & ~worth
        ranked = np.where(only_together[:, None], together[:, None] * relevance, scores)
        return np.where(state.mask, -np.inf, ranked), worth | only_together


def _alone_or_in_pairs(state: Acquisition, found: Savings, buyable: np.ndarray, now: np.ndarray) -> np.ndarray:
    """(n, M) saving per price of each feature, on its own or in its best pair that can be acquired."""
    n, n_pairs = found.paired.shape
    both = np.repeat(state.mask[:, None], n_pairs, axis=1)
    np.put_along_axis(both, found.pairs, True, axis=2)
    both = both.reshape(n * n_pairs, state.mask.shape[1])

    def together(prices: Prices) -> np.ndarray:
        return np.asarray(prices.total(both).reshape(n, n_pairs) - prices.total(state.mask)[:, None])

    possible = np.take_along_axis(buyable[:, None], found.pairs, axis=2).all(axis=2)
    for part, left in state.purses:
        possible &= affordable(together(part), left[:, None])
    price = together(state.prices.weighed)
    if state.schema.rules is not None:
        possible &= ~state.schema.rules.excluding[found.pairs[..., 0], found.pairs[..., 1]]
    in_pairs = np.where(possible, per_cost(found.paired, price), -np.inf)
    scores = per_cost(found.single, now)
    for side in (0, 1):
        np.maximum.at(scores, (np.arange(n)[:, None], found.pairs[..., side]), in_pairs)
    return scores


def _by_everything(state: Acquisition, found: Savings, buyable: np.ndarray) -> np.ndarray:
    """(n,) saving per price of all features that can be acquired; 0 where the budget is too small for them.

    Where only some of the unknown features can be acquired, they save their share of the information.
    """

    def everything(prices: Prices) -> np.ndarray:
        return np.asarray(prices.total(state.mask | buyable) - prices.total(state.mask))

    price = everything(state.prices.weighed)
    within = np.logical_and.reduce([affordable(everything(part), left) for part, left in state.purses])
    information = np.maximum(found.information, 0.0)
    share = (information * buyable).sum(axis=1) / np.maximum(information.sum(axis=1), SMALLEST)
    share = np.where((state.mask | buyable).all(axis=1), 1.0, share)
    return np.where(within, per_cost(found.all * share, price), 0.0)
