"""SubsetPredictor: everything that answers p(y | x_S), and what it promises."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from askwise.errors import InvalidInput
from askwise.predict.rules.explanation import Explanation
from askwise.predict.wrapped import FrozenModel, fitted_classifier
from askwise.schema import Schema
from askwise.subsets import apply_mask


class SubsetPredictor(BaseEstimator):
    """Predicts from any subset of the columns, with the wrapped model left as it is.

    Subclasses write `_fit(values, y)` and `_predict(values, mask)`; both see encoded rows only, with every cell
    that is not observed set to NaN. Promises, each tested for every subclass: rows sum to one; hidden cells do
    not matter; a row's answer does not depend on other rows; input is not changed; same seed, same numbers.

    Parameters
    ----------
    estimator
        A fitted classifier (used as it is), an unfitted one (a clone is fitted), a torch module or a callable.

    Attributes
    ----------
    schema_ : Schema
    estimator_ : the fitted classifier
    classes_ : (C,) class labels, in the order of the columns of every `proba`
    training_values_, training_labels_ : the encoded rows given to `fit`, and their labels as positions in `classes_`
    """

    averages_the_model = False
    """Whether the answer is a mean of the model's answers on completed rows, so that many models are asked at once."""

    model_: Any

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, *, schema: Schema | None = None) -> Self:
        """Learn what is needed to answer on subsets from complete or incomplete rows (NaN = nobody has it).

        `schema` is that of the whole table where `X` is a part of it, so that codes mean the same.
        """
        y = check_labels(X, y)
        self.schema_ = Schema.read(X) if schema is None else schema
        self.estimator_ = fitted_classifier(self.estimator, X, y)
        self.model_ = FrozenModel(self.estimator_, self.schema_)
        self.classes_ = self.model_.classes
        labels = class_positions(self.classes_, y)
        values = self.schema_.encode(X).copy()
        self.takes_missing_ = self.model_.takes_missing(values)
        self.training_values_, self.training_labels_ = values, labels
        self._fit(values, labels)
        return self

    def predict_proba(self, X: Any, mask: Any = None, *, leave_out: np.ndarray | None = None) -> np.ndarray:
        """p(y | x_S) per row, (n, C); S = the cells that are set in `mask` (n, D) and not NaN.

        `leave_out` (n,) names the training row that a case is, so that its answer makes no use of that row.
        """
        check_is_fitted(self, "model_")
        values, observed = apply_mask(self.schema_.encode(X), mask)
        if not len(values):
            return np.empty((0, self.model_.n_outputs))
        return self._predict(values, observed) if leave_out is None else self._predict_new(values, observed, leave_out)

    def predict(self, X: Any, mask: Any = None) -> np.ndarray:
        """The most probable class per row."""
        proba = self.predict_proba(X, mask)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def predict_full(self, X: Any) -> np.ndarray:
        """The reference p(y | x): the wrapped model itself wherever it takes the row, else all that is available."""
        check_is_fitted(self, "model_")
        values, observed = apply_mask(self.schema_.encode(X))
        taken = (observed | self.takes_missing_).all(axis=1)
        return self._by_rows(taken, values, observed, self._predict)

    def candidates(self, X: Any, mask: Any = None) -> np.ndarray:
        """(n, D) columns that can still matter; here every one that is not observed."""
        check_is_fitted(self, "model_")
        return ~apply_mask(self.schema_.encode(X), mask)[1]

    def explain(self, X: Any, mask: Any = None, most: int = 5) -> list[Explanation] | None:
        """The rules behind the prediction of each row, at most `most` of each kind; None where there are no rules."""
        return None

    def _fit(self, values: np.ndarray, y: np.ndarray) -> None:
        raise NotImplementedError

    def _predict(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _predict_new(self, values: np.ndarray, mask: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """`_predict` for training rows as if they were new; one that remembers rows leaves them out here."""
        return self._predict(values, mask)

    def with_model(self, model: Any) -> Self:
        """The same completions around another model, or around several side by side (`predict.stacked`)."""
        other = copy.copy(self)
        other.model_ = model
        return other

    def for_training(self) -> Self:
        """A predictor for the many answers that training a policy takes; a cheaper one where there is one."""
        return self

    def training_rows_for_models(self) -> np.ndarray:
        """Rows of the training table that the wrapped model could be trained on: complete where it must be."""
        usable = (~np.isnan(self.training_values_) | self.takes_missing_).all(axis=1)
        return np.flatnonzero(usable)

    def _by_rows(self, direct: np.ndarray, values: np.ndarray, mask: np.ndarray, answer: Any) -> np.ndarray:
        """The wrapped model on the rows marked `direct`, `answer(values, mask)` on the others."""
        if direct.all():
            return self.model_(values)
        if not direct.any():
            return np.asarray(answer(values, mask))
        proba = np.empty((len(values), self.model_.n_outputs))
        proba[direct] = self.model_(values[direct])
        proba[~direct] = answer(values[~direct], mask[~direct])
        return proba


def check_labels(X: Any, y: Any) -> np.ndarray:
    """Class labels as a checked 1-d array of two or more classes."""
    if y is None:
        raise InvalidInput("This estimator requires y to be passed, but the target y is None.")
    shape = np.asarray(y).shape
    if len(shape) > 1 and shape[1] > 1:
        raise InvalidInput(f"y must be one label per row; multi-output targets of shape {shape} are not supported.")
    labels = column_or_1d(y, warn=True)
    missing = np.array([label is None or label != label for label in labels.tolist()], dtype=bool)
    if missing.any():
        raise InvalidInput(f"Input y contains NaN (row {int(np.argmax(missing))}); leave out the rows without a label.")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise InvalidInput("Input y contains infinity; class labels must be finite.")
    check_consistent_length(X, labels)
    if not len(labels):
        raise InvalidInput("X and y have no rows; fit needs some of at least two classes.")
    check_classification_targets(labels)
    if len(np.unique(labels)) < 2:
        raise InvalidInput(f"y must hold at least two classes; got one class only: {labels[0]!r}.")
    return np.asarray(labels)


def class_positions(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n,) position of each label in `classes`, whatever their order; a label that is not there is refused."""
    position = {label: c for c, label in enumerate(classes.tolist())}
    unknown = [label for label in y.tolist() if label not in position]
    if unknown:
        raise InvalidInput(
            f"y holds {unknown[0]!r}, which the wrapped model does not know; its classes are {classes.tolist()}."
        )
    return np.array([position[label] for label in y.tolist()], dtype=int)
