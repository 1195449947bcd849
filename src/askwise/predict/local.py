"""One model per subset, trained only on its columns: the reference for a shared model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from askwise.errors import InvalidInput
from askwise.locking import Lock
from askwise.model.black_box import BlackBox
from askwise.parameters import Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.table.rows import EncodedRows
from askwise.table.subsets import unique_masks


class LocalPredictor(SubsetPredictor):
    r"""A fresh clone of the wrapped model for each subset of columns: :math:`f_{\theta_S^*}` of Eq. 2.

    Trained on first use and cached. It is the reference for the subset risk gap (Eq. 3). `predict_full` is still the
    wrapped model itself.

    Parameters
    ----------
    estimator
        A scikit-learn style classifier; its class and parameters are cloned for each subset. A callable or a
        torch module cannot be trained again and is refused.
    max_models
        How many fitted models are kept; the least recently used is dropped first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import numpy as np
    >>> from askwise.predict import LocalPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = LocalPredictor(model).fit(X, y)
    >>> only_first = np.array([[True, False, False, False]])
    >>> proba = predictor.predict_proba(X[[120]], only_first)
    >>> proba.round(1).tolist()
    [[0.0, 0.2, 0.8]]
    """

    slow_to_fit = True

    def __init__(self, estimator: Any, max_models: int = 1024) -> None:
        super().__init__(estimator)
        self.max_models = max_models

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        check_limits(self, {"max_models": Whole(1)})
        source = self.estimator_.estimator if isinstance(self.estimator_, FrozenEstimator) else self.estimator_
        if isinstance(source, BlackBox):
            raise InvalidInput(
                "LocalPredictor trains a copy of the model for each subset, which a callable or a torch module does "
                "not allow. Use ConditionalPredictor or ImputedPredictor."
            )
        self._source = clone(source)
        self._y = y
        self._prior = np.bincount(y, minlength=len(self.classes_)) / len(y)
        self._models = _LatestModels(int(self.max_models))

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        proba = np.empty((len(rows), len(self.classes_)))
        subsets, which = unique_masks(rows.observed)
        for s, subset in enumerate(subsets):
            proba[which == s] = self._answer(subset, rows.take(which == s))
        return proba

    def _answer(self, subset: np.ndarray, rows: EncodedRows) -> np.ndarray:
        model = self._local_model(subset)
        if model is None:
            return np.tile(self._prior, (len(rows), 1))
        proba = np.zeros((len(rows), len(self.classes_)))
        columns = np.flatnonzero(subset)
        castable = self.schema_.castable(rows.values, columns)
        for kind in (castable, ~castable):  # predicted separately, so that no row depends on its batch
            if kind.any():
                asked = model.predict_proba(self.schema_.decode(rows.take(kind), columns))
                proba[np.ix_(kind, model.classes_)] = asked
        return proba

    def _local_model(self, subset: np.ndarray) -> Any:
        """The model of a subset; None (the class frequencies) where there is nothing to learn from."""
        return self._models.get(np.packbits(subset).tobytes(), lambda: self._trained(np.flatnonzero(subset)))

    def _trained(self, columns: np.ndarray) -> Any:
        usable = (self.training_rows_.observed[:, columns] | self.takes_missing_[columns]).all(axis=1)
        if not len(columns) or len(np.unique(self._y[usable])) < 2:
            return None
        table = self.schema_.decode(self.training_rows_.take(usable), columns)
        try:
            return clone(self._source).fit(table, self._y[usable])
        except Exception as error:
            names = [self.schema_.columns[j].name for j in columns]
            raise InvalidInput(
                f"The wrapped model could not be trained on the columns {names} alone: {error}"
            ) from error


class _LatestModels:
    """The most recently used models, at most `size`; thread-safe."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes, train: Callable[[], Any]) -> Any:
        """The model of `key`; trained outside the lock, and the first one to finish is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        trained = train()
        with self._lock:
            model = self._kept.setdefault(key, trained)
            self._kept.move_to_end(key)
            if len(self._kept) > self.size:
                self._kept.popitem(last=False)
            return model
