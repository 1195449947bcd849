"""The interfaces between values and policies."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.predict.belief import Belief
from askwise.table.rows import EncodedRows


class State(Protocol):
    """Partly observed cases, such as an `askwise.acquisition.Acquisition`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import nothing_known
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> state = nothing_known(selector.schema_, selector.prices_, selector.beliefs_, selector.schema_.encode(X[:2]))
    >>> state.mask.shape, state.belief.proba.shape
    ((2, 4), (2, 3))
    """

    rows: EncodedRows
    mask: np.ndarray  # (n, M) features known
    beliefs: BeliefModel

    def belief_of(self, rows: np.ndarray) -> Belief:
        """The belief about the cases that `rows` (n,) bool marks."""
        ...


class Value(Protocol):
    """The value of each feature: expected reductions of u and of e, (n, M) each.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.policy import Greedy
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> class LastFirst:
    ...     def fit(self, context):
    ...         return self
    ...
    ...     def reductions(self, state, risk=True):
    ...         worth = np.broadcast_to(np.arange(4.0), state.mask.shape)
    ...         return worth, np.zeros_like(worth)
    >>> selector = DynamicFeatureSelector(model, policy=Greedy(LastFirst()), random_state=0).fit(X, y)
    >>> selector.acquire(X[:1], budget=2).order.tolist()
    [[3, 2]]
    """

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]: ...
