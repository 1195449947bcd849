"""Distance to the training data in the model's feature space, for any model."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from askwise.epistemic.base import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.model.final_layer import FinalLayer, final_layer
from askwise.parameters import Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief
from askwise.predict.imputed import typical_row
from askwise.randomness import generator
from askwise.table.rows import EncodedRows

CELLS_AT_ONCE = 1_000_000


class FeatureDistance(EpistemicEstimator):
    """How far a case is from the training data in the model's feature space; for any model, without training.

    The feature space is the input of the last linear layer (torch modules, MLPClassifier, LogisticRegression) or the
    model's log probabilities and scaled inputs together (any other). Hidden cells are filled with typical values.
    The mean distance to the `n_neighbors` nearest training rows is given in units of its median over the training
    rows. There are no members: the other ensemble quantities are NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise.epistemic import BeliefModel, FeatureDistance
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ImputedPredictor(model).fit(X, y)
    >>> beliefs = BeliefModel(predictor, FeatureDistance(random_state=0).fit(predictor))
    >>> rows = predictor.schema_.encode([X[0], X[0] + 20])
    >>> near, far = beliefs.uncertainty(beliefs.believe(rows), rows).epistemic
    >>> bool(near < far)
    True
    """

    def __init__(self, n_neighbors: int = 10, *, max_rows: int = 2000, random_state: Any = None) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def extended(self, belief: Belief, rows: EncodedRows, leave_out: np.ndarray | None) -> Belief:
        return replace(belief, epistemic=self.distance(rows, leave_out))

    def with_rows_of(self, predictor: SubsetPredictor) -> Self:
        return copy.copy(self).fit(predictor)

    def distance(self, rows: EncodedRows, leave_out: np.ndarray | None = None) -> np.ndarray:
        """(n,) distance of the observed part of each row to the training data; `leave_out` as in `SubsetPredictor`."""
        step = max(1, CELLS_AT_ONCE // rows.values.shape[1])
        parts = [slice(start, start + step) for start in range(0, max(len(rows), 1), step)]
        left_out = [None if leave_out is None else leave_out[part] for part in parts]
        found = [self._distance(rows.take(part), own) for part, own in zip(parts, left_out, strict=True)]
        return np.concatenate(found)

    def _distance(self, rows: EncodedRows, leave_out: np.ndarray | None) -> np.ndarray:
        if not len(rows):
            return np.empty(0)
        features = self._features(rows.filled(self._typical))
        if leave_out is None:
            return np.asarray(self._search.kneighbors(features)[0].mean(axis=1) / self._unit)
        k = self._search.n_neighbors
        distances, nearest = self._search.kneighbors(features, n_neighbors=k + 1)
        own = self._rows[nearest] == leave_out[:, None]
        own[~own.any(axis=1), k] = True  # the row itself is not among them: leave the farthest out
        return np.asarray(distances[~own].reshape(-1, k).mean(axis=1) / self._unit)

    def _fit(self, predictor: SubsetPredictor) -> None:
        from sklearn.neighbors import NearestNeighbors

        check_limits(self, {"n_neighbors": Whole(1), "max_rows": Whole(2)})
        rows = predictor.training_rows_
        self._rows = generator(self.random_state).permutation(len(rows))[: self.max_rows]
        self._typical = typical_row(rows, predictor.schema_.is_category)
        self._model = predictor.model_
        self._scale = np.maximum(np.nanstd(rows.values, axis=0), 1e-12)
        completed = rows.take(self._rows).filled(self._typical)
        try:
            self._layer: FinalLayer | None = final_layer(predictor.model_, completed.take(slice(20)))
        except InvalidInput:
            self._layer = None
        features = self._features(completed)
        k = min(self.n_neighbors, len(features) - 1)
        self._search = NearestNeighbors(n_neighbors=k).fit(features)
        typical = float(np.median(self._search.kneighbors()[0].mean(axis=1)))
        self._unit = typical if typical > 0 else 1.0

    def _features(self, completed: EncodedRows) -> np.ndarray:
        if self._layer is not None:
            return self._layer.features(completed)
        scaled = (completed.values - self._typical) / self._scale
        return np.hstack([scaled / np.sqrt(scaled.shape[1]), np.log(np.maximum(self._model(completed), 1e-3))])
