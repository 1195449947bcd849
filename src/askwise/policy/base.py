"""Policies score features; the acquisition determines which can be acquired and takes the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.value import HeldOutStates


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
    nothing else: no label, no hidden cell, no other case. It does not decide when to stop. A policy whose `worth` reads
    `state.left` sets `reads_budget`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.policy import Policy
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> class CheapestFirst(Policy):
    ...     def scores(self, state):
    ...         return np.where(state.mask, -np.inf, -state.prices.now(state.mask))
    >>> selector = DynamicFeatureSelector(model, costs=[3, 2, 1, 4], policy=CheapestFirst(), random_state=0).fit(X, y)
    >>> selector.acquire(X[:1]).order.tolist()
    [[2, 1, 0, 3]]
    """

    reads_budget = False
    reads_belief = True  # where the scores do without `state.belief`, predictions are computed when they are read
    compares_gains = False
    """Whether `gains` are expected gains, so that those of two features can be compared."""
    never_declines = False
    """Whether every feature that can be acquired has a finite score: if there is only one, it comes next."""
    reason = "The policy in use ranks it first."
    """Why the feature with the highest score comes next, in words."""
    reason_under_budget: str | None = None
    """The same for a case with a budget, where that is another reason."""

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

    def refitted(self, context: PolicyContext) -> Policy:
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

    def depends_on_budget(self, prices: Prices) -> bool:
        """Whether the scores depend on the budget left at these prices."""
        return self.reads_budget

    def gains(self, scores: np.ndarray, state: Acquisition) -> np.ndarray:
        """(n, M) the expected gains per price behind the `scores` of a state; by default the scores themselves."""
        return scores

    def reads_members(self, risk_weight: float) -> bool:
        """Whether the scores need the members of `state.belief` for this `state.risk_weight`."""
        return True


class WithoutRows:
    """Mixin of policies that, once they are fitted, keep no training rows and read no members."""

    def with_rows(self, context: PolicyContext) -> Self:
        return self

    def reads_members(self, risk_weight: float) -> bool:
        return False


class OncePerState(Policy):
    """Wraps a policy that runs on several copies of the same cases at once, such as one for each budget.

    Until their budget runs out, they visit much the same states: the features of each are valued once.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.never_declines = policy.never_declines

    def scores(self, state: Acquisition) -> np.ndarray:
        if self.policy.reads_budget:
            return self.policy.scores(state)
        states = np.column_stack([state.ids, np.packbits(state.mask, axis=1)])
        _, first, inverse = np.unique(states, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)  # the position of each distinct state among those that are valued
        new = np.zeros(len(states), dtype=bool)
        new[first] = True
        worth = self.policy.worth(state if new.all() else state.part(new))
        return self.policy.ranked(worth[np.argsort(order)[inverse.reshape(-1)]], state)
