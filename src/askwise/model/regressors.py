"""A regressor whose number is compared with limits, as a classifier: the classes lie between the limits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from askwise.errors import InvalidInput
from askwise.model.black_box import BlackBox
from askwise.model.modules import is_torch_module
from askwise.model.parts import asked
from askwise.model.refitting import fit_quietly, unfitted_clone
from askwise.model.wrapped import seeded_clone
from askwise.progress import interruptible
from askwise.randomness import generator, seed_from

N_FOLDS = 5
FEWEST_ROWS = 20
"""Errors that say anything about a class: of twenty, each is five per cent."""


class CutRegressor(BlackBox):
    """A regressor and the errors it makes on rows that it has not seen, as a classifier; created by `wrap_regressor`.

    Attributes
    ----------
    cuts
        (C - 1,) the limits, ascending.
    residuals
        (N,) what the number should have been, minus what it was, ascending.
    """

    def __init__(self, function: Any, classes: Sequence[Any], cuts: Sequence[float], residuals: np.ndarray) -> None:
        super().__init__(function, classes)
        self.cuts = cuts
        self.residuals = residuals

    def __getattr__(self, name: str) -> Any:
        # The columns that the regressor was trained on, where it knows them: then rows are checked, and named, by them.
        if name in ("feature_names_in_", "n_features_in_") and "function" in self.__dict__:
            return getattr(self.function, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def predict_number(self, X: Any) -> np.ndarray:
        """(n,) the numbers that the regressor itself predicts."""
        return _numbers_of(self.function, X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, C) how likely the number is to lie in each class, if it errs as it did on unseen rows.

        With predictions f(x), residuals r_1 ... r_N and a class from a to b, (#{i: a <= f(x) + r_i < b} + 1 / C) /
        (N + 1): one more error, of which nothing is known, keeps what has not been seen from being impossible.
        """
        n_below = np.searchsorted(self.residuals, np.asarray(self.cuts) - self.predict_number(X)[:, None], side="left")
        counts = np.diff(n_below, axis=1, prepend=0, append=len(self.residuals))
        return np.asarray((counts + 1 / len(self.classes)) / (len(self.residuals) + 1))

    def label(self, y: Any) -> np.ndarray:
        """(n,) the classes of numbers: what `fit`, `evaluate` and `calibrate_stop` of a selector take as `y`."""
        return np.asarray(self.classes_[np.digitize(_checked_numbers(y, "label"), self.cuts)])


def wrap_regressor(
    model: Any,
    cuts: Sequence[float],
    *,
    X: Any,
    y: Any,
    labels: Sequence[Any] | None = None,
    unseen: bool = False,
    random_state: Any = 0,
) -> CutRegressor:
    """Wrap a regressor whose number is compared with limits: then it decides between classes.

    The probability of a class is the share of unseen rows whose error, added to the predicted number, leads into it.
    The decision is the most probable class, which need not be the one that the predicted number lies in.
    Errors are taken to be alike for every number that is predicted; where large numbers err more, a model of the
    logarithm, with the logarithms of the cuts, is the better one to wrap.

    Parameters
    ----------
    model
        A regressor with `predict`, or a callable that takes rows and returns one number each. A fitted one is used as
        it is and never changed; an unfitted one is cloned, and the clone is fitted on `X`, `y`.
    cuts
        The limits, ascending. A number that equals one belongs to the class above it.
    X, y
        Rows and their numbers, from which the errors are learnt. They may be those that the model was trained on:
        clones of it are fitted, each without a fifth of the rows, and err on that fifth.
    labels
        A label per class, one more than there are cuts. None: such as ``"below 3.5"``, ``"3.5 to 7"``, ``"from 7"``.
    unseen
        Whether the model has not seen `X`, `y`. Then no clones are fitted: the errors are its own. A model that
        cannot be cloned, such as a callable, needs such rows.
    random_state
        Draws the fifths, and seeds the clones.

    Returns
    -------
    CutRegressor
        A fitted classifier for `DynamicFeatureSelector`. ``label(y)`` turns numbers into its classes, and
        ``predict_number(X)`` is what the regressor says.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = 5 + 2 * X[:, 0] + X[:, 1] + rng.normal(size=400)
    >>> model = LinearRegression().fit(X, y)
    >>> decides = wrap_regressor(model, cuts=[3.5, 7], X=X, y=y)
    >>> decides.classes_.tolist()
    ['below 3.5', '3.5 to 7', 'from 7']
    >>> decides.label([2.9, 3.5, 8.0]).tolist()
    ['below 3.5', '3.5 to 7', 'from 7']
    >>> decides.predict_proba([[0.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).round(1).tolist()
    [[0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]

    The selector takes it like any classifier, with labels for numbers:

    >>> from askwise import DynamicFeatureSelector
    >>> selector = DynamicFeatureSelector(decides, random_state=0).fit(X, decides.label(y))
    >>> selector.start().suggest().feature
    'x0'
    """
    function = _checked_regressor(model)
    limits = _checked_cuts(cuts)
    classes = _checked_labels(labels, limits)
    numbers = _checked_numbers(y, "wrap_regressor")
    n_rows = len(X) if hasattr(X, "__len__") else np.shape(X)[0]
    if n_rows != len(numbers) or n_rows < FEWEST_ROWS:
        raise InvalidInput(
            f"wrap_regressor: X and y must hold the same {FEWEST_ROWS} rows or more; got {n_rows} rows and "
            f"{len(numbers)} numbers."
        )
    rng = generator(random_state)
    own_seed, seed_of_folds = seed_from(rng), seed_from(rng)
    unfitted = unfitted_clone(model) if hasattr(model, "fit") else None
    if not _is_fitted(model):
        if unfitted is None or unseen:
            raise InvalidInput(
                f"wrap_regressor: {type(model).__name__} is not fitted. Fit it first"
                + (", on other rows than these." if unseen else ".")
            )
        function = _fit(seeded_clone(unfitted, own_seed), X, numbers)
    if unseen:
        errors = numbers - _numbers_of(function, X)
    elif unfitted is None:
        raise InvalidInput(
            f"wrap_regressor: {type(model).__name__} cannot be cloned and fitted on fewer rows, which shows how it "
            "errs. Give X, y that it was not trained on, and say so with unseen=True."
        )
    else:
        errors = np.empty(len(numbers))
        for rest, held in KFold(N_FOLDS, shuffle=True, random_state=seed_of_folds).split(numbers):
            fitted = _fit(seeded_clone(unfitted, seed_from(rng)), _rows(X, rest), numbers[rest])
            errors[held] = numbers[held] - _numbers_of(fitted, _rows(X, held))
    return CutRegressor(function, classes, limits, np.sort(errors))


def _checked_regressor(model: Any) -> Any:
    """What is asked for numbers: the regressor itself, or a function."""
    if isinstance(model, type):
        raise InvalidInput(f"wrap_regressor: model must be an object, not the class {model.__name__}.")
    if hasattr(model, "predict_proba") or (hasattr(model, "__sklearn_tags__") and is_classifier(model)):
        raise InvalidInput(
            f"wrap_regressor: model must predict a number; {type(model).__name__} is a classifier, which "
            "DynamicFeatureSelector takes as it is."
        )
    if is_torch_module(model):
        raise InvalidInput(
            f"wrap_regressor: {type(model).__name__} is a torch module. Give a function that takes rows and returns "
            "its numbers as a numpy array."
        )
    if hasattr(model, "predict"):  # of what is not like scikit-learn the method is all that is needed
        return model if hasattr(model, "get_params") else model.predict
    if not callable(model):
        raise InvalidInput(
            "wrap_regressor: model must be a regressor with predict, or a callable that takes rows and returns "
            f"numbers; got {type(model).__name__}."
        )
    return model


def _checked_cuts(cuts: Any) -> list[float]:
    try:
        limits = np.asarray(cuts, dtype=float)
    except (TypeError, ValueError):
        limits = np.array(np.nan)
    if limits.ndim != 1 or not len(limits) or not np.isfinite(limits).all() or (np.diff(limits) <= 0).any():
        raise InvalidInput(
            "wrap_regressor: cuts must be a list of one or more finite numbers, ascending, such as [3.5] or [3.5, 7]; "
            f"got {cuts!r}."
        )
    return [float(limit) for limit in limits]


def _checked_labels(labels: Any, cuts: list[float]) -> list[Any]:
    if labels is None:
        said = [repr(cut).removesuffix(".0") for cut in cuts]
        between = [f"{low} to {high}" for low, high in pairwise(said)]
        return [f"below {said[0]}", *between, f"from {said[-1]}"]
    given = [] if isinstance(labels, str) or np.ndim(labels) != 1 else np.asarray(labels).tolist()
    if len(given) != len(cuts) + 1 or len(set(given)) < len(given):
        raise InvalidInput(
            f"wrap_regressor: labels must be {len(cuts) + 1} different labels, from the lowest class to the highest "
            f"(one more than there are cuts); got {labels!r}."
        )
    return given


def _checked_numbers(y: Any, owner: str) -> np.ndarray:
    try:
        numbers = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(f"{owner}: y must be numbers, which are then compared with the cuts; got {y!r}.") from None
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1:
        raise InvalidInput(f"{owner}: y must be one number per row; got an array of shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        at = int(np.argmin(np.isfinite(numbers)))
        raise InvalidInput(f"{owner}: y must be finite; row {at} is {numbers[at]}. Leave out rows without a number.")
    return numbers


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    except TypeError:  # not an estimator in the manner of scikit-learn
        return True
    return True


def _fit(model: Any, X: Any, y: np.ndarray) -> Any:
    try:
        return fit_quietly(model, X, y)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"wrap_regressor: {type(model).__name__} could not be fitted on rows of X ({str(error).strip().rstrip('.')}"
            "). Give rows of the kind that it was trained on, or unseen=True if it has not seen these."
        ) from error


def _rows(X: Any, at: np.ndarray) -> Any:
    return X.iloc[at] if isinstance(X, pd.DataFrame) else np.asarray(X)[at]


def _numbers_of(function: Any, X: Any) -> np.ndarray:
    """(n,) the predictions of a regressor or a callable; an error if they are not one finite number per row."""
    method = "predict" if hasattr(function, "predict") else "__call__"
    with interruptible():
        found = np.asarray(asked(function, method, X))
    name = getattr(function, "__name__", type(function).__name__)
    n_rows = len(X)
    if found.shape not in ((n_rows,), (n_rows, 1)):
        raise InvalidInput(
            f"The wrapped regressor {name} must return one number per row, {n_rows} in all; got an array of shape "
            f"{found.shape}."
        )
    try:
        numbers = found.reshape(-1).astype(float)
    except (TypeError, ValueError):
        raise InvalidInput(f"The wrapped regressor {name} must return numbers; got {found[0]!r}.") from None
    if not np.isfinite(numbers).all():
        at = int(np.argmin(np.isfinite(numbers)))
        raise InvalidInput(f"The wrapped regressor {name} must return finite numbers; got {numbers[at]} for row {at}.")
    return numbers
