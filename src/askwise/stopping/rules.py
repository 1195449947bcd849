"""Rules for stopping before the budget is spent. Without a rule the whole budget is used."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy as np

from askwise.errors import InvalidInput

if TYPE_CHECKING:
    from askwise.acquisition import Acquisition


class Stopping:
    """A rule that ends the acquisition for a case; subclasses implement `stops`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.stopping import Stopping
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> class AfterTwo(Stopping):
    ...     def stops(self, state):
    ...         return state.mask.sum(axis=1) >= 2
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> selector.acquire(X[:3], stop=AfterTwo()).n_steps
    2
    """

    def stops(self, state: Acquisition) -> np.ndarray:
        """(n,) bool: the cases that acquire nothing more; `state` lacks those that stopped before (see its `ids`)."""
        raise NotImplementedError


class Confidence(Stopping):
    """Stop where the largest class probability, calibrated where the selector is, reaches `threshold`.

    The paper warns against it: confidence does not grow steadily with more features and does not distinguish a good
    choice of features from a bad one, so that more features could still have changed the prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.stopping import Confidence
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> run = selector.acquire(X, stop=Confidence(0.9))
    >>> bool(run.spent_after(-1).mean() < 4)
    True
    """

    def __init__(self, threshold: float) -> None:
        if not isinstance(threshold, numbers.Real) or not 0 < float(threshold) <= 1:
            raise InvalidInput(f"threshold must be a probability in (0, 1]; got {threshold!r}.")
        self.threshold: float = float(threshold)

    def stops(self, state: Acquisition) -> np.ndarray:
        return np.asarray(state.belief.proba.max(axis=1) >= self.threshold)
