"""Acquisition with known costs of errors: the policy that scores expected savings, and the rule when to stop."""

from __future__ import annotations

from typing import Self

import numpy as np

from askwise.acquire.acquisition import Acquisition
from askwise.acquire.policies import Policy, PolicyContext, completing
from askwise.acquire.stopping import Stopping
from askwise.errors import InvalidInput
from askwise.prices import affordable
from askwise.value import NeighborSavings, Savings, per_cost


class ExpectedSaving(Policy):
    """The feature with the highest expected saving in the cost of errors per unit of price.

    A feature is scored on its own and in pairs that can be paid together, at the price of both, whichever is better:
    two tests that only help together, or that share a set-up cost, are found. Where no feature and no pair pays for
    itself but everything together does, the features are ranked by their information about the class per price, and
    the best one has the score of everything. So a score above 1 means: pays for itself.

    The selector uses it as ``"greedy"`` if `error_costs` are given.
    """

    reads_budget = True  # a pair must be affordable
    refits = True

    def fit(self, context: PolicyContext) -> Self:
        if context.beliefs.error_costs is None:
            raise InvalidInput("ExpectedSaving needs the cost of errors; pass error_costs to the selector.")
        self.value_ = NeighborSavings(
            completing(context), context.schema, context.beliefs.error_costs, context.random_state
        )
        return self

    def reads_members(self, risk_weight: float) -> bool:
        return False

    def scores(self, state: Acquisition) -> np.ndarray:
        found, buyable, now = self.value_.savings(state), state.buyable(), state.prices.now(state.mask)
        scores = per_cost(found.single, now)
        in_pairs = _by_pair(state, found, buyable)
        for side in (0, 1):
            np.maximum.at(scores, (np.arange(len(scores))[:, None], found.pairs[..., side]), in_pairs)
        together = _by_everything(state, found, buyable)[:, None]
        relevance = np.where(buyable, per_cost(found.information, now), 0.0)
        relevance /= np.maximum(relevance.max(axis=1, keepdims=True), 1e-12)
        only_together = (together > 1) & (np.where(buyable, scores, 0.0).max(axis=1, keepdims=True) <= 1)
        return np.where(state.mask, -np.inf, np.where(only_together, together * relevance, scores))


class PaysOff(Stopping):
    """Stop where no affordable feature, no pair of them, and not all of them together are expected to save their price.

    The rule of a selector with `error_costs` if no other is given. Free features are acquired in any case.

    Parameters
    ----------
    policy
        A fitted `ExpectedSaving`.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __repr__(self) -> str:
        return "PaysOff()"

    def stops(self, state: Acquisition) -> np.ndarray:
        scores = np.where(state.buyable(), self.policy.scores(state), -np.inf)
        return np.asarray(scores.max(axis=1) <= 1)


def _by_pair(state: Acquisition, found: Savings, buyable: np.ndarray) -> np.ndarray:
    """(n, P) saving per price of each pair; -inf where it cannot be acquired."""
    n, n_pairs = found.paired.shape
    both = np.repeat(state.mask[:, None], n_pairs, axis=1)
    np.put_along_axis(both, found.pairs, True, axis=2)
    price = state.prices.total(both.reshape(n * n_pairs, -1)).reshape(n, n_pairs)
    price -= state.prices.total(state.mask)[:, None]
    possible = np.take_along_axis(buyable[:, None], found.pairs, axis=2).all(axis=2)
    possible &= affordable(price, state.left[:, None])
    return np.where(possible, per_cost(found.paired, price), -np.inf)


def _by_everything(state: Acquisition, found: Savings, buyable: np.ndarray) -> np.ndarray:
    """(n,) saving per price of all features that can be acquired; -inf where the budget is too small for them.

    Where only some of the unknown features can be acquired, they save their share of the information.
    """
    price = state.prices.total(state.mask | buyable) - state.prices.total(state.mask)
    known_value = np.maximum(found.information, 0.0)
    share = (known_value * buyable).sum(axis=1) / np.maximum(known_value.sum(axis=1), 1e-12)
    return np.where(affordable(price, state.left), per_cost(found.all * share, price), -np.inf)
