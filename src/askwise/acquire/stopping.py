"""When to stop before the money does. Spending the whole budget is the default and needs no rule."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy as np

from askwise.errors import InvalidInput

if TYPE_CHECKING:
    from askwise.acquire.acquisition import Acquisition


class Stopping:
    """A rule that ends the buying of a row; subclasses write `stops`."""

    def stops(self, state: Acquisition) -> np.ndarray:
        """(n,) bool: rows that buy nothing more."""
        raise NotImplementedError


class Confidence(Stopping):
    """Stop where the largest class probability reaches `threshold`.

    The paper warns against it: confidence neither grows steadily with more features nor tells a good choice of
    features from a bad one, so an early stop may come before the prediction would have turned.
    """

    def __init__(self, threshold: float) -> None:
        if not isinstance(threshold, numbers.Real) or not 0 < float(threshold) <= 1:
            raise InvalidInput(f"threshold must be a probability in (0, 1]; got {threshold!r}.")
        self.threshold: float = float(threshold)

    def stops(self, state: Acquisition) -> np.ndarray:
        return np.asarray(state.belief.proba.max(axis=1) >= self.threshold)
