"""How good the predictions are under a budget: one row of measures per budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.metrics import log_loss, recall_score

from askwise.acquire.acquisition import Acquisition, purchases, run_episodes
from askwise.acquire.policies import CachedPolicy, Policy
from askwise.metrics import expected_calibration_error
from askwise.prices import Prices, affordable


def default_budgets(prices: Prices) -> list[float]:
    """1..10 features where all cost the same, else 5 %..50 % of the price of everything."""
    costs = np.asarray(prices.costs, dtype=float)
    paid = costs[costs > 0]
    if prices.uniform and len(paid):
        return [float(paid[0] * k) for k in range(1, min(10, len(paid)) + 1)]
    return [round(prices.total() * percent / 100, 10) for percent in range(5, 55, 5)]


class FinalState(NamedTuple):
    """Where cases end: what is predicted (n, C), what was spent (n,), and the features known (n, M)."""

    proba: np.ndarray
    spent: np.ndarray
    mask: np.ndarray

    @classmethod
    def concatenated(cls, parts: Sequence[FinalState]) -> FinalState:
        """The ends of several blocks of cases as one."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def ends_of_one_run(state: Acquisition, truth: np.ndarray, policy: Policy, budgets: np.ndarray) -> list[FinalState]:
    """The ends under each budget by one run under the largest: equal prices make the others its beginnings."""
    state.left = np.full(len(truth), max(budgets, default=0.0))
    run = run_episodes(state, truth, policy)
    rows = np.arange(len(truth))
    spent = np.column_stack([np.zeros(len(truth)), run.costs.cumsum(axis=1)])
    ends = []
    for budget in budgets:
        last = affordable(spent, budget).sum(axis=1) - 1
        ends.append(FinalState(run.proba[rows, last], spent[rows, last], run.known_after(last)))
    return ends


def ends_of_each_budget(state: Acquisition, truth: np.ndarray, policy: Policy, budgets: np.ndarray) -> list[FinalState]:
    """The ends under each budget by an episode of its own; nothing is predicted before the money is spent."""
    cached = CachedPolicy(policy)
    ends = []
    for budget in budgets:
        cached.start()
        episode = state.copy()
        episode.left = np.full(len(truth), budget)
        spent = np.zeros(len(truth))
        for _, paid in purchases(episode, truth, cached):
            spent += paid
        ends.append(FinalState(state.beliefs.predictor.proba(episode.rows), spent, episode.mask))
    return ends


def measures(y: np.ndarray, end: FinalState) -> dict[str, float]:
    """Measures of where cases end, whose labels are `y` (n,), given as column indices."""
    predicted = end.proba.argmax(axis=1)
    proba = end.proba / end.proba.sum(axis=1, keepdims=True)  # single-precision answers sum to one only so well
    return {
        "accuracy": float((predicted == y).mean()),
        "balanced_accuracy": float(recall_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0)),
        "log_loss": float(log_loss(y, proba, labels=np.arange(proba.shape[1]))),
        "ece": float(expected_calibration_error(y, proba)),
        "spent": float(end.spent.mean()),
        "features": float(end.mask.sum(axis=1).mean()),
    }
