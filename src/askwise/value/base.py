"""The interfaces between values and policies."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.predict.belief import Belief
from askwise.table.rows import EncodedRows


class State(Protocol):
    """Partly observed cases, such as an `askwise.acquisition.Acquisition`."""

    rows: EncodedRows
    mask: np.ndarray  # (n, M) features known
    beliefs: BeliefModel

    def belief_of(self, rows: np.ndarray) -> Belief:
        """The belief about the cases that `rows` (n,) bool marks."""
        ...


class Value(Protocol):
    """The value of each feature: expected reductions of u and of e, (n, M) each."""

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]: ...
