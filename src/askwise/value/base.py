"""What a value is computed from and what it gives, as policies see it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.predict.belief import Belief
from askwise.rows import EncodedRows


class State(Protocol):
    """Cases of which something is known; `askwise.acquire.Acquisition` is one."""

    rows: EncodedRows
    mask: np.ndarray  # (n, M) features known
    beliefs: BeliefModel

    def belief_of(self, rows: np.ndarray) -> Belief:
        """The belief of the cases that `rows` (n,) bool marks."""
        ...


class Value(Protocol):
    """What a feature is worth: expected reductions of u and of e, (n, M) each."""

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]: ...
