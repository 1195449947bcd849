"""What every epistemic estimator is: members around a fitted predictor, and e(x_S) (Section 3.2.2)."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.stacked import StackedModels
from askwise.uncertainty import Uncertainty, smoothed, summarize


class EpistemicEstimator(BaseEstimator):
    """Uncertainty around a fitted `SubsetPredictor`; subclasses write `_fit` and, with members, `stacked`."""

    @property
    def around_the_mean(self) -> bool:
        """Whether e is the divergence of the members from their mean (Eq. 17), not from the prediction (Eq. 13)."""
        return False

    def fit(self, predictor: SubsetPredictor, X: Any, y: Any) -> Self:
        """Prepare the members around `predictor`, from the rows it was fitted on."""
        self._separate: list[SubsetPredictor] = []
        self._fit(predictor, X, np.asarray(y))
        self._bind(predictor)
        return self

    def around(self, predictor: SubsetPredictor) -> Self:
        """The same members with another predictor's completions."""
        other = copy.copy(self)
        other._bind(predictor)
        return other

    def _bind(self, predictor: SubsetPredictor) -> None:
        """Ask the model and the members in one pass, where their answers are averages over the same completions."""
        self._predictor = predictor
        self._joint = None
        stacked = self.stacked()
        if stacked is not None and predictor.averages_the_model:
            self._joint = predictor.with_model(StackedModels([predictor.model_, stacked]))

    def assess(
        self,
        values: np.ndarray,
        mask: np.ndarray,
        *,
        leave_out: np.ndarray | None = None,
        smooth_with: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Uncertainty]:
        """The prediction for encoded rows with the mask per column, (n, C), and its uncertainties, (n,) each.

        `leave_out` as in `SubsetPredictor.predict_proba`; `smooth_with` (C,) is mixed into the prediction that
        members are compared with, so that their divergence is finite.
        """
        asked = self._ask(values, mask, leave_out)
        if np.isnan(asked).any():
            row = int(np.isnan(asked).any(axis=(0, 2)).argmax())
            raise InvalidInput(
                f"The members around the model have no answer for row {row}; is a value of it too extreme?"
            )
        proba, members = asked[0], asked[1:]
        primary = proba if smooth_with is None else smoothed(proba, smooth_with)
        return proba, summarize(primary, members)

    def members(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """(k, n, C) members' p(y | x_S)."""
        return self._ask(values, mask, None)[1:]

    def stacked(self) -> Any:
        """The members side by side as one model (`predict.stacked`); None where there are no members."""
        return None

    def _ask(self, values: np.ndarray, mask: np.ndarray, leave_out: np.ndarray | None) -> np.ndarray:
        """(1 + k, n, C): the primary prediction, then the members'."""
        if self._joint is not None:
            side_by_side = self._joint.predict_proba(values, mask, leave_out=leave_out)  # (n, (1 + k) * C)
            n_classes = len(self._predictor.classes_)
            return side_by_side.reshape(len(values), -1, n_classes).transpose(1, 0, 2)
        asked = [self._predictor, *self._separate]
        return np.stack([one.predict_proba(values, mask, leave_out=leave_out) for one in asked])

    def _fit(self, predictor: SubsetPredictor, X: Any, y: np.ndarray) -> None:
        raise NotImplementedError


def assess(
    predictor: SubsetPredictor, epistemic: EpistemicEstimator | None, values: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray, Uncertainty]:
    """The prediction from what is observed, (n, C), and how far to trust it; NaN where there are no members."""
    if epistemic is not None:
        return epistemic.assess(values, mask)
    proba = predictor.predict_proba(values, mask)
    return proba, summarize(proba)
