"""The wrapped classifier: anything that gives probabilities, as one checked function on completed rows."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from askwise.errors import InvalidInput
from askwise.progress import interruptible
from askwise.rows import EncodedRows
from askwise.schema import Schema

ROWS_PER_CALL = 65_536
SUMS_TO_ONE_WITHIN = 1e-3


class BlackBox(ClassifierMixin, BaseEstimator):
    """A callable ``X -> proba``, or a torch module giving logits, as a fitted classifier; made by `wrap`."""

    def __init__(self, function: Callable[..., Any], classes: Sequence[Any]) -> None:
        self.function = function
        self.classes = classes

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.classes)

    def fit(self, X: Any, y: Any) -> BlackBox:
        raise InvalidInput(
            "A wrapped function or module is used as it is and cannot be fitted; train it before wrapping."
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        if is_torch_module(self.function):
            return _softmax_of_module(self.function, X)
        return np.asarray(self.function(X))

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> BlackBox:
        return self


def wrap(function: Callable[..., Any], classes: Sequence[Any]) -> BlackBox:
    """A black box as a classifier.

    Parameters
    ----------
    function
        A callable that takes rows (the kind of table that is given to `fit`) and returns one row of class
        probabilities each, or a `torch.nn.Module` that returns logits.
    classes
        The class labels, in the order of the columns that `function` returns.

    Examples
    --------
    >>> black_box = wrap(lambda X: np.tile([0.2, 0.8], (len(X), 1)), classes=["no", "yes"])
    >>> black_box.predict(np.zeros((2, 3))).tolist()
    ['yes', 'yes']
    """
    if not callable(function):
        raise InvalidInput(
            f"wrap takes a callable X -> probabilities or a torch.nn.Module; got {type(function).__name__}."
        )
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(np.unique(labels)) < max(2, len(labels)):
        raise InvalidInput(f"wrap: classes must be two or more different labels; got {classes!r}.")
    return BlackBox(function, classes)


def as_classifier(estimator: Any, classes: np.ndarray) -> Any:
    """A torch module or a callable wrapped, with `classes` in the order of its outputs; anything else as it is."""
    if is_torch_module(estimator) or (callable(estimator) and not hasattr(estimator, "predict")):
        return wrap(estimator, classes.tolist())
    return estimator


def fitted_classifier(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any = None) -> Any:
    """A fitted classifier: `estimator` itself when it is fitted already, otherwise a fitted clone of it."""
    if isinstance(estimator, type):
        raise InvalidInput(
            f"estimator must be an object, not the class {estimator.__name__}; write {estimator.__name__}()."
        )
    estimator = as_classifier(estimator, np.unique(y))
    if not hasattr(estimator, "fit") and not hasattr(estimator, "predict_proba"):
        raise InvalidInput(
            "estimator must be a classifier with predict_proba, a torch.nn.Module or a callable X -> probabilities; "
            f"got {type(estimator).__name__}."
        )
    if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
        raise InvalidInput(
            f"estimator must be a classifier; {type(estimator).__name__} is a regressor (not supported)."
        )
    if _is_fitted(estimator):
        if sample_weight is not None:
            raise InvalidInput(
                "sample_weight is for fitting the estimator, and this one is fitted already; leave it out."
            )
    else:
        estimator = _fitted_clone(estimator, X, y, sample_weight)
    if isinstance(getattr(estimator, "classes_", None), list) and np.ndim(estimator.classes_[0]):
        raise InvalidInput(
            f"estimator must predict one label per row; {type(estimator).__name__} is multi-output (not supported)."
        )
    if not hasattr(estimator, "predict_proba"):
        raise InvalidInput(
            f"{type(estimator).__name__} gives no probabilities (no predict_proba). Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, or turn its probabilities on (SVC: probability=True)."
        )
    return estimator


class FrozenModel:
    """The fitted classifier as a function from encoded, completed rows to checked probabilities."""

    def __init__(self, estimator: Any, schema: Schema) -> None:
        self.estimator = estimator
        self.schema = schema
        self.classes = np.asarray(estimator.classes_)
        self.n_outputs = len(self.classes)
        self._framed = _wants_frame(estimator, schema)
        # Trained on a DataFrame and given arrays: put the names back.
        self._names = None if schema.framed else getattr(estimator, "feature_names_in_", None)

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        """Encoded, completed rows -> (n, C)."""
        proba = np.empty((len(rows), len(self.classes)))
        castable = self.schema.castable(rows.values)
        # Rows that the training dtypes cannot hold exactly are asked apart, so that no row depends on its batch.
        for kind in (castable, ~castable):
            which = np.flatnonzero(kind)
            for start in range(0, len(which), self.schema.rows_per_call):
                part = which[start : start + self.schema.rows_per_call]
                proba[part] = self._checked(self.table(rows if len(part) == len(rows) else rows.take(part)))
        return proba

    def table(self, rows: EncodedRows) -> Any:
        """Encoded rows as the wrapped model takes them."""
        table = self.schema.decode(rows, framed=self._framed)
        return table if self._names is None else pd.DataFrame(table, columns=self._names)

    def takes_missing(self, rows: EncodedRows) -> np.ndarray:
        """(D,) columns in which the model takes a missing cell, by trial; its answer on a full row is checked."""
        n_columns = rows.values.shape[1]
        complete = rows.values[rows.observed.argmax(axis=0), np.arange(n_columns)]  # a value of each column
        self(EncodedRows(complete[None]))
        if not self.schema.tabular:  # a pixel more or less: no trial of each
            return np.zeros(n_columns, dtype=bool)
        tried = np.where(np.eye(n_columns, dtype=bool), np.nan, complete)
        if self._answers(tried):
            return np.ones(n_columns, dtype=bool)
        if not isinstance(self.estimator, Pipeline):
            return np.zeros(n_columns, dtype=bool)
        return np.array([self._answers(row[None]) for row in tried])  # steps of a Pipeline may differ by column

    def _answers(self, values: np.ndarray) -> bool:
        try:
            self(EncodedRows(values))
        except Exception:  # whatever a foreign model raises, it means no
            return False
        return True

    def _checked(self, table: Any) -> np.ndarray:
        proba = np.asarray(self.estimator.predict_proba(table))
        expected = (len(table), len(self.classes))
        name = type(self.estimator).__name__
        if proba.shape != expected:
            raise InvalidInput(
                f"The wrapped model {name} must return probabilities of shape {expected} (rows, classes "
                f"{self.classes.tolist()}); got {proba.shape}. Give a callable's classes with askwise.wrap."
            )
        proba = proba.astype(float)
        sums = proba.sum(axis=1)
        if not np.all(np.abs(sums - 1) < SUMS_TO_ONE_WITHIN) or proba.min() < 0:
            row = int(np.argmax(~(np.abs(sums - 1) < SUMS_TO_ONE_WITHIN) | (proba.min(axis=1) < 0)))
            raise InvalidInput(
                f"The wrapped model {name} must return probabilities >= 0 that sum to one; got {proba[row].tolist()}. "
                "If these are logits, apply a softmax (a torch.nn.Module gets it from askwise.wrap)."
            )
        return proba


def _fitted_clone(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any) -> Any:
    """A clone fitted on all rows; on the complete ones, with a warning, where it refuses missing cells."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    complete = ~np.asarray(pd.isna(X)).reshape(len(y), -1).any(axis=1)
    try:
        with interruptible():
            return clone(estimator).fit(X, y, **weights)
    except (ValueError, TypeError):
        if complete.all() or not complete.any():
            raise
    warnings.warn(
        f"{type(estimator).__name__} does not take missing cells and was fitted on the {complete.sum()} of {len(y)} "
        "rows that are complete. A Pipeline that begins with an imputer uses them all.",
        stacklevel=2,
    )
    weights = {name: np.asarray(given)[complete] for name, given in weights.items()}
    with interruptible():
        return clone(estimator).fit(X[complete], y[complete], **weights)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except TypeError:  # an object that is no scikit-learn estimator: fitted if it knows its classes
        return hasattr(estimator, "classes_")
    return hasattr(estimator, "classes_")


def _wants_frame(estimator: Any, schema: Schema) -> bool:
    """Whether the model gets a DataFrame; raises where it was trained on other columns."""
    if not schema.tabular:
        return False
    labels = [column.label for column in schema.columns]
    n_expected = getattr(estimator, "n_features_in_", None)
    if n_expected is not None and n_expected != len(labels):
        raise InvalidInput(f"The wrapped model was trained on {n_expected} columns; X has {len(labels)}.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and schema.framed and _plain_names(names) != _plain_names(labels):
        raise InvalidInput(f"The wrapped model was trained on the columns {list(names)}; X has {labels}.")
    if isinstance(estimator, BlackBox) and not is_torch_module(estimator.function):
        return schema.framed
    return schema.framed and (names is not None or bool(schema.is_category.any()) or n_expected is None)


def _plain_names(names: Any) -> list[str]:
    """Column names as LightGBM keeps them, which has no blanks."""
    return [str(name).replace(" ", "_") for name in names]


def is_torch_module(thing: Any) -> bool:
    """Whether `thing` is a `torch.nn.Module`, asked without importing torch."""
    torch = sys.modules.get("torch")  # a module cannot exist before torch is imported
    return torch is not None and isinstance(thing, torch.nn.Module)


def _softmax_of_module(module: Any, X: Any) -> np.ndarray:
    """Class probabilities from the logits of `module`, in evaluation mode, which is put back as it was."""
    import torch

    with evaluating(module), torch.no_grad():
        logits = module(as_tensor(X, module))
    if logits.ndim != 2:
        raise InvalidInput(
            f"The wrapped module must return logits of shape (rows, classes); got {tuple(logits.shape)}."
        )
    return np.asarray(torch.softmax(logits.double(), dim=1).cpu().numpy())


def as_tensor(X: Any, module: Any) -> Any:
    """Rows as a tensor of the type and on the device of the module's own numbers."""
    import torch

    parameter = next(module.parameters(), torch.zeros(1))
    if isinstance(X, torch.Tensor):
        return X.to(dtype=parameter.dtype, device=parameter.device)
    return torch.as_tensor(np.array(X, dtype=float), dtype=parameter.dtype, device=parameter.device)


@contextlib.contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """The module in evaluation mode inside; every part in its own mode again outside."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training
