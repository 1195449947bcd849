"""The wrapped classifier: anything that returns probabilities, as a checked function of completed rows."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from askwise.errors import AskwiseWarning, InvalidInput, listed
from askwise.model.black_box import BlackBox, as_classifier
from askwise.model.fast.forests import FORESTS, TreeByTree
from askwise.model.modules import SUMS_TO_ONE_WITHIN, is_torch_module
from askwise.model.parts import asked, split_pipeline, unfrozen
from askwise.progress import interruptible
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

LOG = logging.getLogger(__name__)

ROWS_PER_CALL = Schema.rows_per_call
ROWS_TO_SETTLE = 1000
LARGEST_SINGLE = float(np.finfo(np.float32).max)
"""Trees compare single-precision numbers; what is larger, or missing, the model itself accepts or refuses."""


def fitted_classifier(
    estimator: Any, X: Any, y: np.ndarray, sample_weight: Any = None, random_state: Any = None
) -> Any:
    """A fitted classifier: `estimator` itself when it is fitted already, otherwise a fitted clone of it.

    `random_state` seeds every part of the clone that has no seed of its own.
    """
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
            f"estimator must be a classifier; {type(estimator).__name__} is a regressor. If its number is compared "
            "with limits, give them: askwise.wrap_regressor(model, cuts=[...], X=X, y=y) decides between classes."
        )
    if not _is_fitted(estimator):
        estimator = _fitted_clone(estimator, X, y, sample_weight, random_state)
    elif sample_weight is not None:
        raise InvalidInput("sample_weight is for fitting the estimator, and this one is fitted already; leave it out.")
    if isinstance(getattr(estimator, "classes_", None), list) and np.ndim(estimator.classes_[0]):
        raise InvalidInput(
            f"estimator must predict one label per row; {type(estimator).__name__} is multi-output (not supported)."
        )
    if not hasattr(estimator, "predict_proba"):
        raise InvalidInput(
            f"{type(estimator).__name__} gives no probabilities (no predict_proba). Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )
    return estimator


def seeded_clone(estimator: Any, random_state: Any) -> Any:
    """An unfitted clone in which `random_state` seeds every part, nested ones included, that has no seed of its own."""
    try:
        cloned = clone(estimator)
    except (RuntimeError, TypeError) as error:
        raise InvalidInput(
            f"{type(estimator).__name__} is not fitted and cannot be cloned to be fitted here ({error}). Fit it first."
        ) from error
    if random_state is None or not hasattr(cloned, "get_params"):
        return cloned
    names = seeds_among(name for name, value in cloned.get_params().items() if value is None)
    rng = generator(random_state)
    return cloned.set_params(**{name: seed_from(rng) for name in sorted(names)}) if names else cloned


def seeds_among(names: Iterable[str]) -> list[str]:
    """Those parameters, nested ones included, that are seeds."""
    return [name for name in names if name.split("__")[-1] == "random_state"]


def warn_if_worse_than_prior(proba: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> None:
    """Warn if a model is clearly less accurate than always predicting the most common class.

    Parameters
    ----------
    proba
        (n, C) the model's answers on the rows of `fit`.
    labels
        (n,) their classes, as positions in `classes`.
    classes
        (C,) in the order of the columns of `proba`.
    """
    accuracy = float((proba.argmax(axis=1) == labels).mean())
    frequencies = np.bincount(labels, minlength=len(classes)) / len(labels)
    chance = 2 * np.sqrt(frequencies.max() * (1 - frequencies.max()) / len(labels))  # two standard errors
    if accuracy < frequencies.max() - chance:
        warnings.warn(
            f"The wrapped model is right for {accuracy:.1%} of the rows given to fit; always predicting "
            f"{classes.tolist()[frequencies.argmax()]!r} is right for {frequencies.max():.1%}. Check that its columns "
            f"are in the order of classes, {classes.tolist()}, and that it was trained on rows of this kind.",
            AskwiseWarning,
            stacklevel=2,
        )


class FrozenModel:
    """The fitted classifier as a function from encoded, completed rows to checked probabilities.

    Parameters
    ----------
    estimator, schema
        The classifier, and the columns of its table.
    takes_at_most
        (D,) the columns in which a missing cell may be accepted: those in which the model that this one is a clone of
        accepts it. None: any.
    """

    def __init__(self, estimator: Any, schema: Schema, takes_at_most: np.ndarray | None = None) -> None:
        self.estimator = estimator
        self.schema = schema
        self._takes_at_most = takes_at_most
        self.classes = np.asarray(estimator.classes_)
        self.n_outputs = len(self.classes)
        self._framed = _wants_frame(estimator, schema)
        # Trained on a DataFrame but given arrays: restore the names.
        self._names = None if schema.framed else getattr(estimator, "feature_names_in_", None)
        _ = self.takes_cells  # made now: no question changes a fitted object; saved without it, and made again

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        """Encoded, completed rows -> (n, C)."""
        cells = rows.values
        if self.takes_cells and len(cells) and bool(np.all(np.abs(cells) <= LARGEST_SINGLE)):
            assert self.forest is not None
            return self.forest(cells)
        return self.by_table(rows, self.answer, len(self.classes))

    def by_table(self, rows: EncodedRows, ask: Callable[[Any], np.ndarray], n_outputs: int) -> np.ndarray:
        """The answers of `ask`, (n, n_outputs), given the rows as tables of a bounded size.

        Rows that the dtypes of the training table cannot hold exactly are predicted separately, so that no row depends
        on the others in its batch.
        """
        castable = self.schema.castable(rows.values)
        n, most = len(rows.values), self.schema.rows_per_call
        if n <= most and (castable.all() or not castable.any()):
            return ask(self.table(rows, bool(castable.all()))) if n else np.empty((0, n_outputs))
        answers = np.empty((n, n_outputs))
        for typed in (True, False):
            kind = np.flatnonzero(castable == typed)
            for start in range(0, len(kind), most):
                part = kind[start : start + most]
                answers[part] = ask(self.table(rows.take(part), typed))
        return answers

    @cached_property
    def parts(self) -> tuple[Any, Any]:
        """The fitted steps before the classifier, or None; and the classifier."""
        return split_pipeline(self.estimator)

    @cached_property
    def forest(self) -> TreeByTree | None:
        """The classifier, if it is a forest; None for any other one."""
        classifier = self.parts[1]
        return TreeByTree(classifier) if type(classifier) in FORESTS else None

    @cached_property
    def takes_cells(self) -> bool:
        """Whether it is a forest that compares the numbers of a table as they are: then no table has to be made."""
        numbers = self.schema.tabular and not self.schema.is_category.any()
        return self.forest is not None and self.parts[0] is None and bool(numbers)

    def answer(self, table: Any) -> np.ndarray:
        """(n, C) checked probabilities of a decoded table."""
        if self.forest is None:
            return self.checked(asked(self.estimator, "predict_proba", table), len(table))
        steps = self.parts[0]
        return self.forest(table if steps is None else asked(steps, "transform", table))

    def reads_like(self, other: FrozenModel) -> bool:
        """Whether `other` takes rows in the same form."""
        names, theirs = self._names, other._names
        same_names = names is theirs or (names is not None and theirs is not None and list(names) == list(theirs))
        return self.schema is other.schema and self._framed == other._framed and same_names

    def table(self, rows: EncodedRows, typed: bool | None = None) -> Any:
        """Encoded rows as the wrapped model takes them; `typed` as in `Schema.decode`."""
        table = self.schema.decode(rows, framed=self._framed, typed=typed)
        return table if self._names is None else pd.DataFrame(table, columns=self._names)

    def takes_missing(self, rows: EncodedRows) -> np.ndarray:
        """(D,) columns in which the model accepts a missing cell, by trial; its answer on a full row is checked."""
        n_columns = rows.values.shape[1]
        self.settle(rows)
        if not self.schema.tabular:  # too many pixels to try one by one
            return np.zeros(n_columns, dtype=bool)
        allowed = np.ones(n_columns, dtype=bool) if self._takes_at_most is None else self._takes_at_most
        if not allowed.any():
            return allowed
        tried = np.where(np.eye(n_columns, dtype=bool), np.nan, some_complete_row(rows))
        if self._answers(tried[allowed]):
            return allowed
        if not isinstance(self.estimator, Pipeline):
            return np.zeros(n_columns, dtype=bool)
        # Steps of a Pipeline may differ by column.
        return np.array([may and self._answers(row[None]) for may, row in zip(allowed, tried, strict=True)])

    def settle(self, rows: EncodedRows) -> None:
        """Predict completed training rows, to check the answers and to determine what a torch module returns."""
        last = self.parts[1]
        is_module = isinstance(last, BlackBox) and is_torch_module(last.function)
        self(rows.take(slice(ROWS_TO_SETTLE if is_module else 1)).filled(some_complete_row(rows)))

    def _answers(self, values: np.ndarray) -> bool:
        try:
            self(EncodedRows(values))
        except Exception as error:  # a third-party model may raise any error for missing cells
            LOG.debug("%s does not take missing cells: %s", type(self.estimator).__name__, error)
            return False
        return True

    def checked(self, proba: Any, n_rows: int) -> np.ndarray:
        """(n, C) answers of the wrapped model; an error if they are not probabilities."""
        proba = np.asarray(proba)
        expected = (n_rows, len(self.classes))
        name = type(self.estimator).__name__
        if proba.shape != expected:
            raise InvalidInput(
                f"The wrapped model {name} must return probabilities of shape {expected} (rows, classes "
                f"{self.classes.tolist()}); got {proba.shape}. Give a callable's classes with askwise.wrap."
            )
        try:
            proba = proba.astype(float)
        except (TypeError, ValueError):
            raise InvalidInput(f"The wrapped model {name} must return numbers; got {proba[0].tolist()}.") from None
        sums = proba.sum(axis=1)
        if not np.all(np.abs(sums - 1) < SUMS_TO_ONE_WITHIN) or proba.min() < 0:
            row = int(np.argmax(~(np.abs(sums - 1) < SUMS_TO_ONE_WITHIN) | (proba.min(axis=1) < 0)))
            raise InvalidInput(
                f"The wrapped model {name} must return probabilities >= 0 that sum to one; got {proba[row].tolist()}. "
                "If these are logits, apply a softmax (a torch.nn.Module gets it from askwise.wrap)."
            )
        return proba


def some_complete_row(rows: EncodedRows) -> np.ndarray:
    """(D,) the first observed value of each column."""
    return np.asarray(rows.values[rows.observed.argmax(axis=0), np.arange(rows.values.shape[1])])


def _check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """One number per row; which numbers make sense is for the estimator to say."""
    weights = np.asarray(sample_weight)
    if weights.ndim != 1 or len(weights) != n or weights.dtype.kind not in "biuf":
        raise InvalidInput(
            f"sample_weight must hold one number per row of X, {n} in all; got "
            f"{f'an array of shape {weights.shape}' if weights.ndim else repr(sample_weight)} of type {weights.dtype}."
        )
    return weights


def _fitted_clone(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any, random_state: Any) -> Any:
    """A clone fitted on all rows, or, with a warning, on the complete ones if it does not accept missing cells."""
    weights = {} if sample_weight is None else {"sample_weight": _check_weights(sample_weight, len(y))}
    complete = ~np.asarray(pd.isna(X)).reshape(len(y), -1).any(axis=1)
    try:
        with interruptible():
            return seeded_clone(estimator, random_state).fit(X, y, **weights)
    except (ValueError, TypeError) as error:
        if complete.all() or not complete.any():
            _refuse_columns(estimator, X, error)
    weights = {name: given[complete] for name, given in weights.items()}
    try:
        with interruptible():
            fitted = seeded_clone(estimator, random_state).fit(X[complete], y[complete], **weights)
    except (ValueError, TypeError) as error:
        _refuse_columns(estimator, X, error)
    warnings.warn(
        f"{type(estimator).__name__} does not accept missing cells and was fitted on the {complete.sum()} of {len(y)} "
        "rows that are complete. A Pipeline that begins with an imputer uses them all.",
        AskwiseWarning,
        stacklevel=2,
    )
    return fitted


def _refuse_columns(estimator: Any, X: Any, error: Exception) -> NoReturn:
    """`InvalidInput` where an estimator cannot be fitted because a column is text; any other error as it is."""
    columns = list(X.select_dtypes(exclude=["number", "bool"])) if isinstance(X, pd.DataFrame) else []
    if not columns or not isinstance(error, ValueError) or isinstance(error, InvalidInput):
        raise error
    raise InvalidInput(
        f"{type(estimator).__name__} could not be fitted on these columns ({str(error).strip().rstrip('.')}). Not "
        f"numbers: {listed(columns, spell=str)}. Use a Pipeline that begins with an encoder, such as OneHotEncoder."
    ) from error


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except (TypeError, AttributeError):  # not a scikit-learn estimator: fitted if it has classes_
        return hasattr(estimator, "classes_")
    return hasattr(estimator, "classes_")


def _wants_frame(estimator: Any, schema: Schema) -> bool:
    """Whether the model gets a DataFrame; an error if it was trained on other columns."""
    if not schema.tabular:
        return False
    labels = [column.label for column in schema.columns]
    n_expected = getattr(estimator, "n_features_in_", None)
    if n_expected is not None and n_expected != len(labels):
        raise InvalidInput(f"The wrapped model was trained on {n_expected} columns; X has {len(labels)}.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and schema.framed and _plain_names(names) != _plain_names(labels):
        raise InvalidInput(f"The wrapped model was trained on the columns {list(names)}; X has {labels}.")
    if isinstance(estimator, BlackBox) and not is_torch_module(estimator.function) and n_expected is None:
        return schema.framed
    kind = type(unfrozen(estimator))
    if (kind in FORESTS or kind.__module__.startswith("xgboost.")) and not schema.is_category.any():
        return False  # it takes arrays, with the same answers in less time
    return schema.framed and (names is not None or bool(schema.is_category.any()) or n_expected is None)


def _plain_names(names: Any) -> list[str]:
    """Column names as LightGBM stores them, without blanks."""
    return [str(name).replace(" ", "_") for name in names]
