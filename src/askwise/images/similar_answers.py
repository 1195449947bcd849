"""Predictions from completions by similar training images, and the value of hidden patches from similar images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.images.dropout import PatchDropout
from askwise.parameters import POSITIVE, Whole, check_limits
from askwise.predict.belief import Belief, Completions
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.rows import EncodedRows
from askwise.value import NeighborValue, ValueEstimator
from askwise.value.base import State
from askwise.value.targets import HeldOutStates

FEW_MEMBERS = 5
"""Members used to compute a value: more change e little and cost time."""
WHOLE_IMAGES, WHOLE_BANDWIDTH = 200, 0.3


class _AnsweredPool(ConditionalPredictor):
    """A pool of training images, and the answers of the model (and members) on them, computed once."""

    def with_model(self, model: Any) -> Self:
        other = super().with_model(model)
        other._answer_pool()
        return other

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        super()._fit(rows, y)
        self._answer_pool()

    def _answer_pool(self) -> None:
        answers = self.model_(EncodedRows(self.pool_))
        self.pool_answers_ = answers.reshape(len(self.pool_), -1, len(self.classes_))  # (N, 1 + k, C)

    def _whole_images(self, distances: np.ndarray, leave_out: np.ndarray | None) -> Completions:
        """Unchanged similar images as completions."""
        positions = None if leave_out is None else self.pool_position_[leave_out]
        index, weights = self.neighbors_.nearest(distances, positions)
        return Completions(index, weights, self.pool_answers_[index])


class SimilarImagePredictor(_AnsweredPool):
    """The wrapped model averaged over an image completed with the hidden patches of similar training images.

    With few known patches, a few completions are not enough. The answers on `WHOLE_IMAGES` unchanged similar images,
    which need no call of the model, are mixed in, with a weight of 1 where nothing is known that falls to 0 at an
    eighth of the patches. Parameters as in `ConditionalPredictor`; a bandwidth is in standard deviations of a pixel.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.vision import PatchGrid, SimilarImagePredictor, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> adaptation = SimilarImagePredictor(n_neighbors=5)
    >>> selector = DynamicFeatureSelector(net, groups=PatchGrid(2, 2), adaptation=adaptation, random_state=0)
    >>> selector.fit(images, y).acquire(images[:3], budget=2).proba.shape
    (3, 3, 10)
    """

    def __init__(
        self,
        estimator: Any = None,
        n_neighbors: int = 10,
        bandwidth: float = 0.5,
        max_rows: int = 5000,
        random_state: Any = None,
    ) -> None:
        super().__init__(estimator, n_neighbors, bandwidth, max_rows, random_state)

    @property
    def rows_at_once(self) -> int:
        """How many images to process together."""
        return max(1, super().rows_at_once * self.neighbors_.n_neighbors // WHOLE_IMAGES)

    def believe(
        self, rows: EncodedRows, *, previous: Belief | None = None, leave_out: np.ndarray | None = None
    ) -> Belief:
        """The completions of encoded images, and the answers by them and by similar images."""
        belief = super().believe(rows, previous=previous, leave_out=leave_out)
        known = self.schema_.any_column(rows.observed)
        share = np.minimum(1.0, known.sum(axis=1) / max(1, known.shape[1] // 8))[:, None, None]
        few = np.flatnonzero(share[:, 0, 0] < 1)
        if not len(few):
            return belief
        assert belief.distances is not None
        wider = self.with_neighbors(WHOLE_IMAGES)
        wider.neighbors_.bandwidth = WHOLE_BANDWIDTH
        whole = wider._whole_images(belief.distances[few], None if leave_out is None else leave_out[few]).mean()
        answers = belief.answers.copy()
        answers[few] = share[few] * answers[few] + (1 - share[few]) * whole
        return replace(belief, answers=answers)


class _WholeImages(_AnsweredPool):
    """Uses unchanged similar images as completions, without a call of the model."""

    def _complete(self, rows: EncodedRows, distances: np.ndarray, leave_out: np.ndarray | None) -> Completions:
        return self._whole_images(distances, leave_out)


class SimilarImageValue(ValueEstimator):
    r"""Expected reductions of u and e by each patch, from the answers on the most similar training images.

    As `NeighborValue` (Eq. 8 over completions of the case), but with unchanged similar images as completions. The
    model's answers on the training images are known, so a state costs two matrix products and no call of the model, and
    hundreds of images can be used. Nothing is trained. Pass it as ``Greedy(SimilarImageValue())``.

    Parameters
    ----------
    n_neighbors, bandwidth
        Similar images per state, and the width of the kernel that weights them, in standard deviations of a pixel.
    max_rows
        Training images kept for the search.
    random_state
        Seed of the choice of these, and of the clusters of patches.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Greedy
    >>> from askwise.vision import PatchGrid, SimilarImageValue, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> policy = Greedy(SimilarImageValue(n_neighbors=50))
    >>> selector = DynamicFeatureSelector(net, groups=PatchGrid(2, 2), policy=policy, random_state=0).fit(images, y)
    >>> selector.acquire(images[:3], budget=2).order.shape
    (3, 2)
    """

    def __init__(
        self, n_neighbors: int = 200, bandwidth: float = 0.8, *, max_rows: int = 5000, random_state: int = 0
    ) -> None:
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, held_out: HeldOutStates) -> Self:
        """Store the training images and the answers on them."""
        check_limits(self, {"n_neighbors": Whole(1), "max_rows": Whole(1), "bandwidth": POSITIVE})
        used = held_out.beliefs[0]
        given = used.predictor
        similar = _WholeImages(
            given.estimator_, self.n_neighbors, self.bandwidth, self.max_rows, random_state=self.random_state
        ).fit_encoded(given.model_, held_out.rows, given.training_labels_)
        # Only members that predict complete images can be evaluated together with the model.
        few = used.epistemic.fewer(FEW_MEMBERS) if isinstance(used.epistemic, PatchDropout) else None
        self.value_ = NeighborValue(BeliefModel(similar, few), held_out.schema, self.random_state)
        return self

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Expected reductions of u and of e by each patch, (n, M) each."""
        return self.value_.reductions(state, risk)
