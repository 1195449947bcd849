"""SubsetPredictor: the base class of all predictors of p(y | x_S), and their guarantees."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from askwise.errors import InvalidInput
from askwise.model.wrapped import FrozenModel, fitted_classifier
from askwise.predict.belief import Belief
from askwise.predict.rules.explanation import Explanation
from askwise.table.rows import EncodedRows
from askwise.table.schema import Groups, as_table, read_table

ROWS_AT_ONCE = 4096


class SubsetPredictor(BaseEstimator):
    """Predicts from any subset of the columns; the wrapped model is never changed.

    The public methods take tables. Internally rows are encoded once and passed to `fit_encoded`, `proba`,
    `full_proba`, `open_columns`, `explain_encoded` and `believe`, which take `EncodedRows`. Subclasses implement
    `_fit(rows, y)` and `_predict(rows)`. Guarantees, each tested for every subclass: rows sum to one; hidden cells do
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
    training_rows_, training_labels_ : the encoded rows given to `fit`, and their labels as positions in `classes_`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import numpy as np
    >>> from askwise.predict import SubsetPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> class MedianPredictor(SubsetPredictor):
    ...     def _fit(self, rows, y):
    ...         self.median_ = np.nanmedian(rows.values, axis=0)
    ...
    ...     def _predict(self, rows):
    ...         return self.model_(rows.filled(self.median_))
    >>> predictor = MedianPredictor(model).fit(X, y)
    >>> predictor.predict_proba([[np.nan] * 4]).round(2).tolist()
    [[0.0, 1.0, 0.0]]
    """

    averages_the_model = False
    """Whether the answer is the mean answer on completed rows, so that many models can be evaluated together."""

    chosen_on_unseen_rows: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes that a selector chooses on rows the model has not seen; see `askwise.epistemic.BeliefModel`."""

    slow_to_fit = False
    """Whether models are trained for subsets, so that calibration takes fewer folds."""

    stores_rows = True
    """Whether `_fit` keeps training rows, or values out of them, beside what it learns."""

    model_: Any

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, *, groups: Groups = None) -> Self:
        """Learn what is needed to answer on subsets from complete or incomplete rows (NaN = missing).

        `groups` are those of `DynamicFeatureSelector`: images need an `askwise.vision.PatchGrid`.
        """
        X = X if hasattr(groups, "read") else as_table(X)
        y = check_labels(X, y)
        schema, rows = read_table(X, groups)
        model = FrozenModel(fitted_classifier(self.estimator, X, y), schema)
        return self.fit_encoded(model, rows, class_positions(model.classes, y))

    def fit_encoded(self, model: FrozenModel, rows: EncodedRows, y: np.ndarray) -> Self:
        """`fit` on rows that are encoded already, around a model that is fitted; `y` are positions in its classes."""
        self.schema_, self.estimator_, self.model_, self.classes_ = model.schema, model.estimator, model, model.classes
        self.takes_missing_ = model.takes_missing(rows)
        self.training_rows_, self.training_labels_ = rows, y
        self._fit(rows, y)
        return self

    def predict_proba(self, X: Any, mask: Any = None) -> np.ndarray:
        """p(y | x_S) per row, (n, C); S = the cells that are set in `mask` (n, D) and not NaN."""
        return self.proba(self._encode(X, mask))

    def predict(self, X: Any, mask: Any = None) -> np.ndarray:
        """The most probable class per row."""
        proba = self.predict_proba(X, mask)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def predict_full(self, X: Any) -> np.ndarray:
        """The reference p(y | x): the wrapped model itself wherever it takes the row, else all that is available."""
        return self.full_proba(self._encode(X))

    def candidates(self, X: Any, mask: Any = None) -> np.ndarray:
        """(n, D) columns that can still matter; by default, all that are not observed."""
        return self.open_columns(self._encode(X, mask))

    def explain(self, X: Any, mask: Any = None, most: int = 5) -> list[Explanation] | None:
        """The rules behind the prediction of each row, at most `most` of each kind; None where there are no rules."""
        return self.explain_encoded(self._encode(X, mask), most)

    def proba(self, rows: EncodedRows, leave_out: np.ndarray | None = None) -> np.ndarray:
        """p(y | x_S) of encoded rows, (n, C).

        `leave_out` (n,) names the training row that each case is, so that its answer makes no use of that row.
        """
        if not len(rows):
            return np.empty((0, self.model_.n_outputs))
        return self._predict(rows) if leave_out is None else self._predict_new(rows, leave_out)

    def believe(
        self, rows: EncodedRows, *, previous: Belief | None = None, leave_out: np.ndarray | None = None
    ) -> Belief:
        """Everything derived from what is observed of encoded rows, in one pass.

        Parameters
        ----------
        previous
            The belief about the same cases when less was known; what can be extended is not computed again.
        leave_out
            As in `proba`.
        """
        return Belief(self.proba(rows, leave_out).reshape(len(rows), -1, len(self.classes_)))

    def full_proba(self, rows: EncodedRows) -> np.ndarray:
        """`predict_full` of encoded rows."""
        return self._by_rows(self.accepts(rows), rows, self.proba)

    def accepts(self, rows: EncodedRows) -> np.ndarray:
        """(n,) whether the wrapped model itself accepts a row, with the cells that are missing from it."""
        return np.asarray((rows.observed | self.takes_missing_).all(axis=1))

    def open_columns(self, rows: EncodedRows) -> np.ndarray:
        """`candidates` of encoded rows, (n, D)."""
        return ~rows.observed

    def explain_encoded(self, rows: EncodedRows, most: int = 5) -> list[Explanation] | None:
        """`explain` of encoded rows."""
        return None

    def with_model(self, model: Any) -> Self:
        """The same completions around another model, or around several side by side (`model.stacked`)."""
        other = copy.copy(self)
        other.model_ = model
        return other

    def with_rows(self, rows: EncodedRows, y: np.ndarray) -> Self:
        """The same predictor with other training rows; what it stores of rows is built from these."""
        other = copy.copy(self)
        other.training_rows_, other.training_labels_ = rows, y
        if self.stores_rows:
            other._fit(rows, y)
        return other

    def for_training(self) -> Self:
        """The predictor used while a policy is trained, which takes many answers; a cheaper one where available."""
        return self

    @property
    def rows_at_once(self) -> int:
        """How many cases to process together, so that what is stored for them fits into memory."""
        return ROWS_AT_ONCE

    def training_rows_for_models(self) -> np.ndarray:
        """Training rows that the wrapped model can be trained on: complete in every column where it needs that."""
        usable = (self.training_rows_.observed | self.takes_missing_).all(axis=1)
        return np.flatnonzero(usable)

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        raise NotImplementedError

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        raise NotImplementedError

    def _predict_new(self, rows: EncodedRows, leave_out: np.ndarray) -> np.ndarray:
        """`_predict` for training rows as if they were new; predictors that store rows leave them out here."""
        return self._predict(rows)

    def _encode(self, X: Any, mask: Any = None) -> EncodedRows:
        """A table and a mask -> encoded rows in which every hidden cell is NaN; every public method uses it."""
        check_is_fitted(self, "model_")
        rows = self.schema_.encode(X)
        return rows if mask is None else rows.masked(mask)

    def _by_rows(
        self, direct: np.ndarray, rows: EncodedRows, answer: Callable[[EncodedRows], np.ndarray]
    ) -> np.ndarray:
        """The wrapped model on the rows marked `direct`, `answer(rows)` on the others."""
        if direct.all():
            return self.model_(rows)
        if not direct.any():
            return answer(rows)
        proba = np.empty((len(rows), self.model_.n_outputs))
        proba[direct] = self.model_(rows.take(direct))
        proba[~direct] = answer(rows.take(~direct))
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
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(labels) != n:
        raise InvalidInput(
            f"y must hold one label per row of X: X has {n} rows and y {len(labels)} labels. Give the same."
        )
    if not len(labels):
        raise InvalidInput("X and y have no rows; fit needs some of at least two classes.")
    check_classification_targets(labels)
    if len(np.unique(labels)) < 2:
        raise InvalidInput(f"y must hold at least two classes; got one class only: {labels[:1].tolist()[0]!r}.")
    return np.asarray(labels)


def class_positions(classes: np.ndarray, y: np.ndarray, name: str = "y") -> np.ndarray:
    """(n,) position of each label in `classes`, in any order; unknown labels are refused."""
    position = {label: c for c, label in enumerate(classes.tolist())}
    unknown = [label for label in y.tolist() if not isinstance(label, Hashable) or label not in position]
    if unknown:
        raise InvalidInput(
            f"{name} holds {unknown[0]!r}, which the wrapped model does not know; its classes are {classes.tolist()}."
        )
    return np.array([position[label] for label in y.tolist()], dtype=int)
