"""How good the predictions are under a budget: one row of measures per budget."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import log_loss, recall_score

from askwise.acquire.acquisition import Trajectory
from askwise.metrics import expected_calibration_error
from askwise.prices import AFFORDABLE_WITHIN, Prices
from askwise.subsets import extended


def default_budgets(prices: Prices) -> list[float]:
    """1..10 features where all cost the same, else 5 %..50 % of the price of everything."""
    costs = np.asarray(prices.costs, dtype=float)
    paid = costs[costs > 0]
    if prices.uniform and len(paid):
        return [float(paid[0] * k) for k in range(1, min(10, len(paid)) + 1)]
    return [round(prices.total() * percent / 100, 10) for percent in range(5, 55, 5)]


def state_within(run: Trajectory, budget: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(proba (n, C), spent (n,), known features (n, M)) of each row at its last step within `budget`."""
    n = len(run.order)
    spent = np.column_stack([np.zeros(n), run.costs.cumsum(axis=1)])
    within = spent <= budget + AFFORDABLE_WITHIN
    rows, last = np.arange(n), within.sum(axis=1) - 1
    mask = run.start
    for features in np.where(within[:, 1:], run.order, -1).T:
        mask = extended(mask, features)
    return run.proba[rows, last], spent[rows, last], mask


def measures(y: np.ndarray, proba: np.ndarray, spent: np.ndarray, mask: np.ndarray) -> dict[str, float]:
    """Measures of a final state (see `state_within`), with the labels `y` (n,) given as column indices."""
    predicted = proba.argmax(axis=1)
    proba = proba / proba.sum(axis=1, keepdims=True)  # single-precision answers sum to one only so well
    return {
        "accuracy": float((predicted == y).mean()),
        "balanced_accuracy": float(recall_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0)),
        "log_loss": float(log_loss(y, proba, labels=np.arange(proba.shape[1]))),
        "ece": float(expected_calibration_error(y, proba)),
        "spent": float(spent.mean()),
        "features": float(mask.sum(axis=1).mean()),
    }
