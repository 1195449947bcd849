"""The base class of epistemic estimators: members around a fitted predictor, and e(x_S) (Section 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from askwise.epistemic.novelty import Novelty
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief
from askwise.predict.stacked import stack
from askwise.rows import EncodedRows
from askwise.uncertainty import Uncertainty, smoothed, summarize


class EpistemicEstimator(BaseEstimator):
    """Uncertainty around a fitted `SubsetPredictor`; subclasses implement `_fit`.

    One with members sets `_models`, to be stacked beside the wrapped model where the predictor averages it over
    completions, or else `_separate`, a predictor for each member.
    """

    _models: Sequence[Any] = ()
    _separate: Sequence[SubsetPredictor] = ()

    @property
    def around_the_mean(self) -> bool:
        """Whether e is the divergence of the members from their mean (Eq. 17), not from the prediction (Eq. 13)."""
        return False

    def fit(self, predictor: SubsetPredictor) -> Self:
        """Prepare the members around `predictor`, from the rows it was fitted on."""
        self._fit(predictor)
        return self

    def joined(self, predictor: SubsetPredictor) -> SubsetPredictor:
        """`predictor` with the members stacked beside its model, if all average over the same completions."""
        if not self._models or not predictor.averages_the_model:
            return predictor
        return predictor.with_model(stack([predictor.model_, *self._models]))

    def extended(self, belief: Belief, rows: EncodedRows, leave_out: np.ndarray | None) -> Belief:
        """`belief` with what this estimator adds, if the members could not be called together with the model."""
        if not self._separate or belief.members is not None:
            return belief
        return belief.with_members([member.proba(rows, leave_out) for member in self._separate])

    def _fit(self, predictor: SubsetPredictor) -> None:
        raise NotImplementedError


class BeliefModel:
    """Computes beliefs: a predictor, the members around it, and the distance to the training rows.

    Parameters
    ----------
    predictor
        A fitted `SubsetPredictor`.
    epistemic
        An `EpistemicEstimator` fitted around it, or around one with the same training rows; None for no members.
    novelty
        Distance to the training rows; None leaves it out, as in training.
    """

    def __init__(
        self, predictor: SubsetPredictor, epistemic: EpistemicEstimator | None = None, novelty: Novelty | None = None
    ) -> None:
        self.predictor = predictor
        self.epistemic = epistemic
        self.novelty = novelty
        self._joined = predictor if epistemic is None else epistemic.joined(predictor)

    @property
    def rows_at_once(self) -> int:
        """How many cases to process together, so that their beliefs fit into memory."""
        return self._joined.rows_at_once

    def believe(
        self,
        rows: EncodedRows,
        *,
        members: bool = True,
        previous: Belief | None = None,
        leave_out: np.ndarray | None = None,
    ) -> Belief:
        """Everything derived from what is observed of each row; equal rows are computed once.

        Parameters
        ----------
        members
            Whether the members predict as well.
        previous, leave_out
            As in `SubsetPredictor.believe`.
        """
        if leave_out is not None or len(rows) < 2:
            return self._believe(rows, members, previous, leave_out)
        first, inverse = _alike(rows.values)
        if len(first) == len(rows):
            return self._believe(rows, members, previous, None)
        before = None if previous is None else previous.take(first)
        return self._believe(rows.take(first), members, before, None).take(inverse)

    def uncertainty(
        self, belief: Belief, rows: EncodedRows | None = None, smooth_with: np.ndarray | None = None
    ) -> Uncertainty:
        """The uncertainties of a belief, (n,) each; NaN where members are needed and there are none.

        Parameters
        ----------
        rows
            The rows of the belief, to add their distance to the training data to e; None leaves it out.
        smooth_with
            (C,) mixed into the prediction that members are compared with, so that their divergence is finite.
        """
        if np.isnan(belief.answers).any():
            row = int(np.isnan(belief.answers).any(axis=(1, 2)).argmax())
            raise InvalidInput(f"The model or a member predicts NaN for row {row}; check its values and their units.")
        primary = belief.proba if smooth_with is None else smoothed(belief.proba, smooth_with)
        found = summarize(primary, belief.members)
        if belief.epistemic is not None:
            found = replace(found, epistemic=belief.epistemic)
        elif self.epistemic is not None and self.epistemic.around_the_mean:
            found = replace(found, epistemic=found.mutual_information)
        return found if rows is None or self.novelty is None else self._with_novelty(found, belief, rows)

    def _believe(
        self, rows: EncodedRows, members: bool, previous: Belief | None, leave_out: np.ndarray | None
    ) -> Belief:
        if not members or self.epistemic is None:
            return self.predictor.believe(rows, previous=previous, leave_out=leave_out)
        belief = self._joined.believe(rows, previous=previous, leave_out=leave_out)
        return self.epistemic.extended(belief, rows, leave_out)

    def _with_novelty(self, found: Uncertainty, belief: Belief, rows: EncodedRows) -> Uncertainty:
        """e plus the distance to the training data, which adds at most ln C."""
        assert self.novelty is not None
        shared = getattr(self.predictor, "neighbors_", None) is self.novelty.neighbors
        excess = self.novelty.excess(rows, belief.distances if shared else None)
        if belief.epistemic is None:  # an e that is a distance already includes it
            found = replace(found, epistemic=found.epistemic - np.log(belief.answers.shape[2]) * np.expm1(-excess))
        return replace(found, novelty=excess)


def _alike(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the distinct rows, and for each row the number of its distinct row."""
    as_bytes = np.ascontiguousarray(values).view(np.dtype((np.void, values.shape[1] * values.itemsize))).reshape(-1)
    _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    return first, inverse
