"""Belief models: everything said about partly observed cases, and e(x_S) (Section 3.2.2)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from askwise.epistemic.base import EpistemicEstimator
from askwise.epistemic.novelty import Novelty
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief, Completions
from askwise.predict.calibration import Calibration
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.error_costs import decide
from askwise.table.rows import EncodedRows
from askwise.uncertainty import SMALLEST, Uncertainty, smoothed, summarize

ARRAYS = ("proba", "decision", "agreement", "final")


@dataclass(frozen=True, eq=False)
class Assessment:
    """What is said about n cases: the prediction, the decision, how likely it is to stand, and the uncertainties.

    Attributes
    ----------
    proba
        (n, C) p(y | x_S).
    decision
        (n,) position of the class decided for.
    agreement
        (n,) share of the completions on which the wrapped model decides alike; 1 for a complete row. Of a predictor
        without completions, the probability of that class.
    final
        (n, C) probability that the full row is decided for a class.
    uncertainty
        The uncertainties, (n,) each.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> ends = selector.acquire(X[:3], budget=2).ends
    >>> ends.decision.tolist()
    [0, 0, 0]
    >>> bool((ends.decision_is_final <= 1).all())
    True
    """

    proba: np.ndarray
    decision: np.ndarray
    agreement: np.ndarray
    final: np.ndarray
    uncertainty: Uncertainty

    @property
    def decision_is_final(self) -> np.ndarray:
        """(n,) probability that the full row is decided alike: the agreement, calibrated if possible."""
        return np.take_along_axis(self.final, self.decision[..., None], axis=-1)[..., 0]

    def replaced(self, rows: np.ndarray, new: Assessment) -> Assessment:
        """A copy with the entries of `rows` (n,) bool replaced by those of `new`, in order."""
        arrays = {name: getattr(self, name).copy() for name in ARRAYS}
        for name, values in arrays.items():
            values[rows] = getattr(new, name)
        return Assessment(**arrays, uncertainty=self.uncertainty.replaced(rows, new.uncertainty))

    @classmethod
    def stacked(cls, steps: Sequence[Assessment]) -> Assessment:
        """The assessments of several steps as one, whose arrays are (n, steps) and (n, steps, C)."""
        arrays = {name: np.stack([getattr(step, name) for step in steps], axis=1) for name in ARRAYS}
        return cls(**arrays, uncertainty=Uncertainty.stacked([step.uncertainty for step in steps]))

    @classmethod
    def concatenated(cls, blocks: Sequence[Assessment]) -> Assessment:
        """The assessments of several blocks of cases as one."""
        arrays = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in ARRAYS}
        return cls(**arrays, uncertainty=Uncertainty.concatenated([block.uncertainty for block in blocks]))


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
    error_costs
        (C, C) cost of deciding for a class (column) where another is true (row); None = the most probable class.
    calibration
        Calibrates the answers about incomplete rows, and the agreement; None leaves them as they are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise.epistemic import AuxiliaryEnsemble, BeliefModel
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ImputedPredictor(model).fit(X, y)
    >>> beliefs = BeliefModel(predictor, AuxiliaryEnsemble(2, random_state=0).fit(predictor))
    >>> rows = predictor.schema_.encode(X[:5])
    >>> belief = beliefs.believe(rows)
    >>> belief.proba.shape, beliefs.uncertainty(belief, rows).epistemic.shape
    ((5, 3), (5,))
    """

    def __init__(
        self,
        predictor: SubsetPredictor,
        epistemic: EpistemicEstimator | None = None,
        novelty: Novelty | None = None,
        error_costs: np.ndarray | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.predictor = predictor
        self.epistemic = epistemic
        self.novelty = novelty
        self.error_costs = error_costs
        self.calibration = calibration
        # Made now: no question changes a fitted object; saved without them, and made again.
        _ = self._joined, self.around_the_mean

    @cached_property
    def _joined(self) -> SubsetPredictor:
        """The predictor with the members beside its model."""
        return self.predictor if self.epistemic is None else self.epistemic.joined(self.predictor)

    @cached_property
    def around_the_mean(self) -> bool:
        """Whether e is the divergence of the members from their mean (Eq. 17)."""
        return self.epistemic is not None and self.epistemic.around_the_mean

    def settle(self, **chosen: Any) -> None:
        """Set fitted attributes of the predictor that are chosen on unseen rows; the members use them as well."""
        for name, value in chosen.items():
            setattr(self.predictor, name, value)
            setattr(self._joined, name, value)

    def with_rows(self, rows: EncodedRows, y: np.ndarray, seed: int) -> BeliefModel:
        """The same model and members with other training rows, from which distances and completions are taken."""
        other = copy.copy(self)
        other.__dict__.pop("_joined", None)
        other.predictor = self.predictor.with_rows(rows, y)
        other.epistemic = None if self.epistemic is None else self.epistemic.with_rows_of(other.predictor)
        other.novelty = None if self.novelty is None else type(self.novelty)(other.predictor, seed)
        return other

    def without_members(self) -> BeliefModel:
        """The same predictions and decisions without members and distances, which is faster."""
        return BeliefModel(self.predictor, error_costs=self.error_costs, calibration=self.calibration)

    def with_neighbors(self, n_neighbors: int) -> BeliefModel:
        """The same model and members with another number of completions, without distances and calibration."""
        assert isinstance(self.predictor, ConditionalPredictor)
        assert isinstance(self._joined, ConditionalPredictor)
        other = copy.copy(self)
        other.novelty = other.calibration = None
        other.predictor = self.predictor.with_neighbors(n_neighbors)
        other.__dict__["_joined"] = self._joined.with_neighbors(n_neighbors)
        return other

    def whole_pool(self) -> Completions | None:
        """See `ConditionalPredictor.whole_pool`; with the members, where they complete rows together with the model."""
        assert isinstance(self._joined, ConditionalPredictor)
        return self._joined.whole_pool()

    def settled_like(self, settled: BeliefModel) -> BeliefModel:
        """The same model and members with the calibration of others, and with what they chose on unseen rows."""
        other = copy.copy(self)
        other.predictor, other.calibration = copy.copy(self.predictor), settled.calibration
        together = self._joined is self.predictor
        other.__dict__["_joined"] = other.predictor if together else copy.copy(self._joined)
        chosen = settled.predictor.chosen_on_unseen_rows
        other.settle(**{name: getattr(settled.predictor, name) for name in chosen})
        return other

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
        inverse: np.ndarray | None = None
        if leave_out is None and len(rows.values) > 1:
            first, inverse = rows.distinct()
            if len(first) == len(rows.values):
                inverse = None
            else:
                rows, previous = rows.take(first), None if previous is None else previous.take(first)
        if not members or self.epistemic is None:
            belief = self.predictor.believe(rows, previous=previous, leave_out=leave_out)
        else:
            belief = self._joined.believe(rows, previous=previous, leave_out=leave_out)
            if belief.members is None:
                belief = self.epistemic.extended(belief, rows, leave_out)
        answers = belief.answers if self.calibration is None else self._calibrated(belief.answers, rows)
        belief = replace(belief, answers=answers, complete=np.asarray(rows.observed.all(axis=1)))
        return belief if inverse is None else belief.take(inverse)

    def completed(self, belief: Belief, rows: EncodedRows, complete: np.ndarray) -> Belief:
        """The belief, if nothing more will become known about the rows that `complete` (n,) marks.

        Where the wrapped model accepts them with the cells that are missing, the answer is its own.
        """
        assert belief.complete is not None
        new = complete & ~belief.complete
        if not new.any():
            return belief
        own = new & self.predictor.accepts(rows)
        answers = belief.answers
        if own.any():
            found = (self.predictor if belief.members is None else self._joined).full_proba(rows.take(own))
            found = found.reshape(len(found), -1, answers.shape[2])
            answers = answers.copy()
            answers[own, : found.shape[1]] = found
        return replace(belief, answers=answers, complete=belief.complete | complete)

    def proba(self, rows: EncodedRows, complete: np.ndarray | None = None) -> np.ndarray:
        """(n, C) p(y | x_S), calibrated: `believe`, then `completed`, without what else they compute."""
        first, inverse = rows.distinct()
        found = self._calibrated(self.predictor.proba(rows.take(first)), rows.take(first))[inverse]
        if complete is not None:
            own = complete & ~rows.observed.all(axis=1) & self.predictor.accepts(rows)
            if own.any():
                found[own] = self.predictor.full_proba(rows.take(own))
        return found

    def decisions(self, proba: np.ndarray) -> np.ndarray:
        """(..., C) -> (...) position of the class to decide for: the most probable one, or that of least cost."""
        return np.asarray(proba.argmax(axis=-1)) if self.error_costs is None else decide(proba, self.error_costs)

    def assess(self, belief: Belief, rows: EncodedRows) -> Assessment:
        """Prediction, decision, agreement and uncertainties of the belief about `rows`."""
        return Assessment(belief.proba, *self._settled(belief), self.uncertainty(belief, rows))

    def final(self, belief: Belief) -> np.ndarray:
        """(n, C) probability that the full row is decided for a class.

        For the present decision it is the agreement, calibrated if there is a `Calibration`; the other classes share
        the rest as they share votes and p(y | x_S).
        """
        return self._settled(belief)[2]

    def decision_is_final(self, belief: Belief) -> np.ndarray:
        """(n,) probability that the full row is decided alike: the raw agreement if there is no `Calibration`."""
        decision, _, final = self._settled(belief)
        return _of_decision(final, decision)

    def _settled(self, belief: Belief) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) the decision, (n,) its raw agreement, and (n, C) `final`.

        The raw agreement is the share of the votes for the decision, 1 for a complete row.
        """
        assert belief.complete is not None
        votes, decision = self.votes(belief), self.decisions(belief.proba)
        agreement = np.where(belief.complete, 1.0, _of_decision(votes, decision))
        stays = agreement
        if self.calibration is not None:
            calibrated = self.calibration.final(agreement, _of_decision(belief.proba, decision))
            stays = np.where(belief.complete, 1.0, calibrated)
        others = votes + belief.proba
        at = np.arange(len(decision)), decision
        others[at] = 0.0
        # Votes and probabilities of 0 for every other class leave nothing to share by.
        final = others / np.maximum(others.sum(axis=1), SMALLEST)[:, None] * (1 - stays)[:, None]
        final[at] = stays
        return decision, agreement, final

    def votes(self, belief: Belief) -> np.ndarray:
        """(n, C) share of the completions for which the wrapped model decides for a class; without any, p(y | x_S)."""
        if belief.completions is None:
            return belief.proba
        decided = self.decisions(belief.completions.answers[:, :, 0])
        chosen = decided[..., None] == np.arange(belief.answers.shape[2])
        return np.minimum(np.einsum("nk,nkc->nc", belief.completions.weights, chosen), 1.0)

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
        elif self.around_the_mean:
            found = replace(found, epistemic=found.mutual_information)
        return found if rows is None or self.novelty is None else self._with_novelty(found, belief, rows)

    def _calibrated(self, answers: np.ndarray, rows: EncodedRows) -> np.ndarray:
        """(n, ..., C) answers by the model and the members, calibrated; those about complete rows stay their own."""
        if self.calibration is None or not len(rows):
            return answers
        size = self.predictor.schema_.any_column(rows.observed).sum(axis=1)
        complete = rows.observed.all(axis=1).reshape(-1, *[1] * (answers.ndim - 1))
        return np.where(complete, answers, self.calibration.proba(answers, size))

    def excess(self, belief: Belief, rows: EncodedRows) -> np.ndarray:
        """(n,) how novel the rows of a belief are; see `Novelty.excess`."""
        assert self.novelty is not None
        shared = getattr(self.predictor, "neighbors_", None) is self.novelty.neighbors
        return self.novelty.excess(rows, belief.distances if shared else None)

    def _with_novelty(self, found: Uncertainty, belief: Belief, rows: EncodedRows) -> Uncertainty:
        """e plus the distance to the training data, which adds at most ln C."""
        excess = self.excess(belief, rows)
        if belief.epistemic is None:  # an e that is a distance already includes it
            found = replace(found, epistemic=found.epistemic - np.log(belief.answers.shape[2]) * np.expm1(-excess))
        return replace(found, novelty=excess)


def _of_decision(values: np.ndarray, decision: np.ndarray) -> np.ndarray:
    """(n,) the entries of `values` (n, C) for the class decided for."""
    return np.asarray(values[np.arange(len(values)), decision])
