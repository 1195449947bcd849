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
    """

    def __init__(self, policy: ExpectedSaving) -> None:
        self.policy = policy

    def __repr__(self) -> str:
        return f"PaysOff({self.policy!r})"

    def stops(self, state: Acquisition) -> np.ndarray:
        return ~self.policy.scores_and_worth(state)[1]
