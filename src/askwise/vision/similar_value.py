"""The value of a patch without training: what similar training images, whose answers are known, say about it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.parameters import POSITIVE, Whole, check_limits
from askwise.predict.belief import Completions
from askwise.predict.conditional import ConditionalPredictor
from askwise.rows import EncodedRows
from askwise.value import NeighborValue, ValueEstimator
from askwise.value.base import State
from askwise.value.targets import HeldOutStates
from askwise.vision.dropout import PatchDropout


class SimilarImageValue(ValueEstimator):
    r"""Expected reductions of u and e by each patch, from the answers on the most similar training images.

    As `NeighborValue` (Eq. 8 over completions of the case), but a similar image stands for a completion as it is. The
    model's answers on the training images are known, so a state costs two matrix products and no call of the model, and
    hundreds of images can be used. Nothing is trained. Pass it as ``Greedy(SimilarImageValue())``.

    Parameters
    ----------
    n_neighbors, bandwidth
        Similar images per state, and the width of the kernel that weights them, in standard deviations of a pixel.
    max_rows
        Training images kept for the search.
    random_state
        Seed of the choice of these, and of the clusters that the looks of a patch are sorted into.
    """

    def __init__(
        self, n_neighbors: int = 200, bandwidth: float = 0.8, *, max_rows: int = 5000, random_state: int = 0
    ) -> None:
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, held_out: HeldOutStates) -> Self:
        """Keep the training images and the answers on them."""
        check_limits(self, {"n_neighbors": Whole(1), "max_rows": Whole(1), "bandwidth": POSITIVE})
        used = held_out.beliefs[0]
        given = used.predictor
        similar = _AnswersOnThePool(
            given.estimator_, self.n_neighbors, self.bandwidth, self.max_rows, random_state=self.random_state
        ).fit_encoded(given.model_, held_out.rows, given.training_labels_)
        # Only members that answer on complete images can be asked beside the model.
        epistemic = used.epistemic if isinstance(used.epistemic, PatchDropout) else None
        self.value_ = NeighborValue(BeliefModel(similar, epistemic), held_out.schema, self.random_state)
        return self

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Expected reductions of u and of e by each patch, (n, M) each."""
        return self.value_.reductions(state, risk)


class _AnswersOnThePool(ConditionalPredictor):
    """Completes an image by similar ones as they are: the answers on the pool are computed once."""

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

    def _complete(self, rows: EncodedRows, distances: np.ndarray, leave_out: np.ndarray | None) -> Completions:
        positions = None if leave_out is None else self.pool_position_[leave_out]
        index, weights = self.neighbors_.nearest(distances, positions)
        return Completions(index, weights, self.pool_answers_[index])
