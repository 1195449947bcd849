"""Distance to the training data in the model's feature space, for any model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from askwise.epistemic.base import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.final_layer import FinalLayer, final_layer
from askwise.predict.imputed import typical_row
from askwise.randomness import generator
from askwise.uncertainty import Uncertainty, summarize

CELLS_AT_ONCE = 1_000_000


class FeatureDistance(EpistemicEstimator):
    """How far a case is from the training data in the model's feature space; any model, nothing trained.

    The feature space is what the last linear layer sees (torch modules, MLPClassifier, LogisticRegression) or the
    model's log probabilities and scaled inputs together (any other). Hidden cells are filled with the typical row.
    The mean distance to the `n_neighbors` nearest training rows is given in units of its median over the training
    rows. There are no members: the other ensemble quantities are NaN.
    """

    def __init__(self, n_neighbors: int = 10, *, max_rows: int = 2000, random_state: Any = None) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def assess(
        self,
        values: np.ndarray,
        mask: np.ndarray,
        *,
        leave_out: np.ndarray | None = None,
        smooth_with: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Uncertainty]:
        proba = self._predictor.predict_proba(values, mask, leave_out=leave_out)
        return proba, replace(summarize(proba), epistemic=self.distance(values, mask, leave_out))

    def distance(self, values: np.ndarray, mask: np.ndarray, leave_out: np.ndarray | None = None) -> np.ndarray:
        """(n,) distance of what is known of each row to the training data; `leave_out` as in `predict_proba`."""
        found = np.empty(len(values))
        step = max(1, CELLS_AT_ONCE // values.shape[1])
        for start in range(0, len(values), step):
            rows = slice(start, start + step)
            features = self._features(np.where(mask[rows], values[rows], self._typical))
            found[rows] = self._to_nearest(features, None if leave_out is None else leave_out[rows])
        return found / self._unit

    def _to_nearest(self, features: np.ndarray, leave_out: np.ndarray | None) -> np.ndarray:
        if leave_out is None:
            return np.asarray(self._search.kneighbors(features)[0].mean(axis=1))
        k = self._search.n_neighbors
        distances, nearest = self._search.kneighbors(features, n_neighbors=k + 1)
        own = self._rows[nearest] == leave_out[:, None]
        own[~own.any(axis=1), k] = True  # the row itself is not among them: leave the farthest out
        return np.asarray(distances[~own].reshape(-1, k).mean(axis=1))

    def _fit(self, predictor: SubsetPredictor, X: Any, y: np.ndarray) -> None:
        from sklearn.neighbors import NearestNeighbors

        values = predictor.training_values_
        if self.n_neighbors < 1 or self.max_rows < 2:
            raise InvalidInput(
                f"n_neighbors must be at least 1; got {self.n_neighbors!r}; max_rows at least 2; got {self.max_rows!r}."
            )
        rows = self._rows = generator(self.random_state).permutation(len(values))[: self.max_rows]
        self._typical = typical_row(values, predictor.schema_.is_category)
        self._model = predictor.model_
        self._scale = np.maximum(np.nanstd(values, axis=0), 1e-12)
        completed = np.where(np.isnan(values[rows]), self._typical, values[rows])
        try:
            self._layer: FinalLayer | None = final_layer(predictor.model_, completed[:20])
        except InvalidInput:
            self._layer = None
        features = self._features(completed)
        k = min(self.n_neighbors, len(features) - 1)
        self._search = NearestNeighbors(n_neighbors=k).fit(features)
        typical = float(np.median(self._search.kneighbors()[0].mean(axis=1)))
        self._unit = typical if typical > 0 else 1.0

    def _features(self, completed: np.ndarray) -> np.ndarray:
        if self._layer is not None:
            return self._layer.features(completed)
        scaled = (completed - self._typical) / self._scale
        return np.hstack([scaled / np.sqrt(scaled.shape[1]), np.log(np.maximum(self._model(completed), 1e-3))])
