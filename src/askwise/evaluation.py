"""Quality of the predictions under a budget: one row of metrics per budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import log_loss

from askwise.acquisition import Acquisition, purchases
from askwise.metrics import expected_calibration_error
from askwise.policy.base import OncePerState, Policy
from askwise.progress import track
from askwise.stopping.rules import Stopping
from askwise.table.error_costs import decide
from askwise.table.prices import Prices, affordable
from askwise.trajectory import Trajectory

__all__ = ["FinalState", "default_budgets", "final_states", "measures"]


def default_budgets(prices: Prices) -> list[float]:
    """1..10 features where all cost the same, else 5 %..50 % of the price of everything.

    Examples
    --------
    >>> from askwise import Prices
    >>> default_budgets(Prices([2, 2, 2]).resolve(["a", "b", "c"]))
    [2.0, 4.0, 6.0]
    >>> default_budgets(Prices([4, 6, 10]).resolve(["a", "b", "c"]))[:3]
    [1.0, 2.0, 3.0]
    """
    costs = np.asarray(prices.costs, dtype=float)
    paid = costs[costs > 0]
    if prices.uniform and len(paid):
        return [float(paid[0] * k) for k in range(1, min(10, len(paid)) + 1)]
    return [round(prices.total() * percent / 100, 10) for percent in range(5, 55, 5)]


class FinalState(NamedTuple):
    """The final state of cases: prediction (n, C), price paid (n,), known features (n, M), and what was spent of the
    resources other than money (n, R - 1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.evaluation import final_states
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> end = final_states(selector, X[:5], budgets=[2])[0]
    >>> end.proba.shape, end.spent.tolist(), end.mask.sum(axis=1).tolist()
    ((5, 3), [2.0, 2.0, 2.0, 2.0, 2.0], [2, 2, 2, 2, 2])
    """

    proba: np.ndarray
    spent: np.ndarray
    mask: np.ndarray
    further: np.ndarray

    @classmethod
    def concatenated(cls, parts: Sequence[FinalState]) -> FinalState:
        """The final states of several blocks of cases as one."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def final_states(acquirer: Any, X: Any, budgets: Sequence[Any], policy: Policy | None = None) -> list[FinalState]:
    """The final state of each case under each budget; `X` holds the true values.

    Parameters
    ----------
    acquirer
        A fitted `DynamicFeatureSelector`, or a rival.
    policy
        Used in place of the fitted one, such as `askwise.policy.Random(0)`. With equal prices one run serves all
        budgets, unless the policy reads the budget.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_wine(return_X_y=True)
    >>> selector = DynamicFeatureSelector(GaussianNB(), random_state=0).fit(X, y)
    >>> [float(end.spent.max()) for end in final_states(selector, X[:5], budgets=[1, 3])]
    [1.0, 3.0]
    """
    found: list[FinalState] = acquirer._final_states(X, budgets, policy)
    return found


def ends_of_one_run(run: Trajectory, limits: Sequence[np.ndarray]) -> list[FinalState]:
    """Final states under each limit of money, from one run under the largest: at equal prices, others are its prefixes.

    Each of the `limits` is (R,), that of money first.
    """
    rows = np.arange(len(run.order))
    spent = np.column_stack([np.zeros(len(rows)), run.costs.cumsum(axis=1)])
    ends = []
    for limit in limits:
        last = affordable(spent, limit[0]).sum(axis=1) - 1
        further = np.empty((len(rows), len(run.further)))
        for k, amounts in enumerate(run.further.values()):
            further[:, k] = np.column_stack([np.zeros(len(rows)), amounts.cumsum(axis=1)])[rows, last]
        ends.append(FinalState(run.proba[rows, last], spent[rows, last], run.known_after(last), further))
    return ends


def ends_of_each_budget(
    state: Acquisition,
    truth: np.ndarray,
    policy: Policy,
    stop: Stopping | None,
    budgets: np.ndarray,
    progress: bool | str = False,
) -> list[FinalState]:
    """Final states under each of the `budgets` (B, R) from one run, of a copy of the cases for each.

    Predictions are made at the end.
    """
    n, most_steps = len(truth), state.mask.shape[1]
    copies = state.take(np.tile(np.arange(n), len(budgets)))
    copies.remaining = np.repeat(budgets, n, axis=0)
    spent = np.zeros_like(copies.remaining)
    buying = purchases(copies, np.tile(truth, (len(budgets), 1)), OncePerState(policy), stop)
    for _, paid in track(buying, "acquiring", most_steps, progress):
        spent += paid
    parts = state.beliefs.proba(copies.rows, copies.complete), spent, copies.mask
    by_budget = [part.reshape(len(budgets), n, *part.shape[1:]) for part in parts]
    return [FinalState(proba, paid[:, 0], mask, paid[:, 1:]) for proba, paid, mask in zip(*by_budget, strict=True)]


def measures(
    y: np.ndarray, end: FinalState, error_costs: np.ndarray | None = None, resources: Sequence[str] = ()
) -> dict[str, float]:
    """Metrics of final states, given the labels `y` (n,) as column indices, and (C, C) what errors cost.

    `resources` are the names of those other than money.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.evaluation import final_states, measures
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> end = final_states(selector, X, budgets=[1])[0]
    >>> list(measures(y, end))
    ['accuracy', 'balanced_accuracy', 'log_loss', 'ece', 'spent', 'features']
    """
    predicted = decide(end.proba, error_costs)
    proba = end.proba / end.proba.sum(axis=1, keepdims=True)  # in single precision they sum to one only roughly
    found = {
        "accuracy": float((predicted == y).mean()),
        "balanced_accuracy": float(np.mean([(predicted[y == c] == c).mean() for c in np.unique(y)])),
        "log_loss": float(log_loss(y, proba, labels=np.arange(proba.shape[1]))),
        "ece": float(expected_calibration_error(y, proba)),
        "spent": float(end.spent.mean()),
        "features": float(end.mask.sum(axis=1).mean()),
        **dict(zip(resources, end.further.mean(axis=0).tolist(), strict=False)),
    }
    if error_costs is not None:
        found["error_cost"] = float(error_costs[y, predicted].mean())
        found["total_cost"] = found["spent"] + found["error_cost"]
    return found
