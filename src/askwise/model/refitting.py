"""Fitting models like the user's own again, on other rows or with another seed; the user's model stays as it is."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from askwise.model.black_box import BlackBox
from askwise.model.parts import unfrozen
from askwise.model.wrapped import fitted_classifier, seeds_among
from askwise.progress import interruptible

LOG = logging.getLogger(__name__)


def can_be_cloned(classifier: Any) -> bool:
    """Whether there is an unfitted copy of a classifier, which may hold frozen parts."""
    if isinstance(classifier, BlackBox) or not hasattr(classifier, "fit") or not hasattr(classifier, "get_params"):
        return False
    try:
        clone(classifier)
    except Exception as error:  # see `unfitted_clone`
        LOG.debug("%s cannot be cloned: %s", type(classifier).__name__, error)
        return False
    return True


def unfitted_clone(estimator: Any) -> Any:
    """A clone that can be fitted as a whole, also of what a `FrozenEstimator` holds; None where there is none."""
    try:
        copied = _thawed(estimator)
        parts = [copied, *copied.get_params().values()]
    except Exception as error:  # third-party classes raise anything, as CatBoost does with cat_features
        LOG.debug("%s cannot be cloned: %s", type(estimator).__name__, error)
        return None
    return None if any(isinstance(part, BlackBox | FrozenEstimator) for part in parts) else copied


def refitted(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any = None, random_state: Any = None) -> Any:
    """A clone of a fitted classifier, fitted on other rows; its warnings repeat those of the classifier itself."""
    with _quiet():
        return fitted_classifier(unfitted_clone(estimator), X, y, sample_weight, random_state)


def fit_quietly(estimator: Any, X: Any, y: np.ndarray) -> Any:
    """Fit an estimator in place; its warnings repeat those of the wrapped model."""
    with _quiet(), interruptible():
        return estimator.fit(X, y)


def reseeded(estimator: Any, seed: int) -> Any:
    """The estimator itself with another seed in every parameter that is one."""
    names = seeds_among(estimator.get_params())
    return estimator.set_params(**dict.fromkeys(names, seed)) if names else estimator


def _thawed(estimator: Any) -> Any:
    """A clone in which the classifier is not frozen, neither as a whole nor as the last step of a `Pipeline`."""
    copied = clone(unfrozen(estimator))
    if isinstance(copied, Pipeline):
        name, last = copied.steps[-1]
        copied.steps[-1] = (name, _thawed(last))
    return copied


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*does not accept missing cells.*")
        yield
