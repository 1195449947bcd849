"""Acquisition with known costs of errors: the rule when to stop."""

from __future__ import annotations

import numpy as np

from askwise.acquisition import Acquisition
from askwise.policy.expected_saving import ExpectedSaving
from askwise.stopping.rules import Stopping


class PaysOff(Stopping):
    """Stop where no affordable feature, no pair, and not everything together is expected to save its price.

    The rule of a selector with `error_costs` if no other is given. Free features are acquired in any case.

    Parameters
    ----------
    policy
        A fitted `ExpectedSaving`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> errors = {0: 1, 1: 20, 2: 20}
    >>> selector = DynamicFeatureSelector(model, error_costs=errors, random_state=0).fit(X, y)
    >>> selector.pays_off_
    PaysOff(ExpectedSaving())
    >>> bool(selector.acquire(X).spent_after(-1).mean() < 4)
    True
    """

    def __init__(self, policy: ExpectedSaving) -> None:
        self.policy = policy

    def __repr__(self) -> str:
        return f"PaysOff({self.policy!r})"

    def stops(self, state: Acquisition) -> np.ndarray:
        return ~self.policy.scores_and_worth(state)[1]
