"""Cross-fitting: the model, the pool and the policy fitted without some training rows, which are then unseen."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from askwise.acquire.policies.base import Policy
from askwise.epistemic import BeliefModel
from askwise.predict.base import SubsetPredictor
from askwise.predict.black_box import BlackBox
from askwise.predict.final_layer import unfrozen
from askwise.predict.wrapped import fitted_classifier
from askwise.value.targets import folds

N_FOLDS = 5
MOST_FIT_TIMES, LEAST_SECONDS = 30, 10.0


class Allowance:
    """Limits what `fit` spends on its own choices: 30 fit times of the wrapped model or 10 s, whichever is longer.

    Folds are refitted and examined until it is used up, at least one of them. There is one refit per fold.

    Attributes
    ----------
    refits
        How often a clone of the wrapped model was fitted.
    cut_short
        Whether folds were left out.
    """

    def __init__(self) -> None:
        self.refits = 0
        self.cut_short = False
        self._longest_fit = 0.0
        self._start = time.perf_counter()

    def refitted(self, estimator: Any, *rows: Any, **options: Any) -> Any:
        """The function of this name, counted and timed."""
        start = time.perf_counter()
        model = refitted(estimator, *rows, **options)
        self.refits += 1
        self._longest_fit = max(self._longest_fit, time.perf_counter() - start)
        return model

    def allows(self, share: float = 1.0) -> bool:
        """Whether less than a share of the allowed time has passed; if not, something is left out."""
        allowed = share * max(LEAST_SECONDS, MOST_FIT_TIMES * self._longest_fit)
        within = time.perf_counter() - self._start < allowed
        self.cut_short |= not within
        return within

    def described(self) -> dict[str, Any]:
        """For `choices_`, ready for JSON."""
        return {"settling": {"refits": self.refits, "cut_short": self.cut_short}}


@dataclass(frozen=True, eq=False)
class Fold:
    """Some training rows, and what was fitted without them.

    Attributes
    ----------
    held
        (n_k,) positions of training rows that neither the model nor the pool has seen. No fold holds rows of a class
        with fewer rows than folds, which every model must know, nor rows with a category that only their fold has,
        which a model may refuse.
    beliefs
        Predictor around a clone of the wrapped model, without members.
    policy
        The policy fitted around it where that is fast, otherwise the one in use.
    """

    held: np.ndarray
    beliefs: BeliefModel
    policy: Policy


def cross_fitted(
    predictor: SubsetPredictor,
    refit: Callable[[np.ndarray], BeliefModel],
    policy_of: Callable[[BeliefModel], Policy],
    *,
    n_folds: int = N_FOLDS,
    n_rows: int | None = None,
    random_state: int = 0,
    allowance: Allowance | None = None,
) -> list[Fold] | None:
    """The folds of the training rows of `predictor`; None where its model cannot be fitted without some of them.

    That is: a callable, a torch module, images, fewer than two classes with as many rows as folds, a column without
    values outside of a fold, a category of its own in nearly every row, or a model that fails on so few rows. A fold
    whose model does not know every class is left out.

    Parameters
    ----------
    refit
        Function of positions of training rows that returns a belief model fitted without them.
    policy_of
        Function of that belief model that returns a policy fitted around it.
    n_rows
        Stop after the folds that hold so many rows; None = all folds.
    allowance
        Stop, after the first fold, once half of it is used up; None = all folds. `refit` counts and times refits by it.
    """
    rows, y = predictor.training_rows_, predictor.training_labels_
    if not predictor.schema_.tabular or unfitted_clone(predictor.estimator_) is None:
        return None
    fold = _folds_of_frequent(rows.values, y, n_folds, random_state)
    if fold is None or len(np.unique(y)) < len(predictor.classes_):
        return None
    found: list[Fold] = []
    for k in range(n_folds):
        if n_rows is not None and sum(len(part.held) for part in found) >= n_rows:
            break
        if found and allowance is not None and not allowance.allows(0.5):
            break
        try:
            beliefs = refit(np.flatnonzero(fold == k))
        except Exception:  # a third-party model may raise any error on fewer rows
            return None
        if len(beliefs.predictor.classes_) < len(predictor.classes_):  # all of a class have missing cells
            continue
        held = np.flatnonzero((fold == k) & _familiar(rows.values, fold != k, predictor.schema_.is_category))
        if len(held):
            found.append(Fold(held, beliefs, policy_of(beliefs)))
    return found or None


def _folds_of_frequent(values: np.ndarray, y: np.ndarray, n_folds: int, random_state: int) -> np.ndarray | None:
    """(N,) the fold of each row, -1 for rows of classes with fewer rows than folds; None if there are no folds."""
    frequent = np.bincount(y)[y] >= n_folds
    labels = np.unique(y[frequent], return_inverse=True)[1]
    fold = np.full(len(y), -1)
    found = folds(values[frequent], labels, n_folds, random_state) if len(np.unique(labels)) > 1 else None
    if found is None:
        return None
    fold[frequent] = found
    return fold


def refitted(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any = None, random_state: Any = None) -> Any:
    """A clone of a fitted classifier, fitted on other rows; its warnings repeat those of the classifier itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*does not accept missing cells.*")
        return fitted_classifier(unfitted_clone(estimator), X, y, sample_weight, random_state)


def unfitted_clone(estimator: Any) -> Any:
    """A clone that can be fitted, also of what a `FrozenEstimator` holds; None where there is none."""
    try:
        copied = _thawed(estimator)
        parts = [copied, *copied.get_params().values()]
    except Exception:  # third-party classes raise anything, as CatBoost does with cat_features
        return None
    return None if any(isinstance(part, BlackBox | FrozenEstimator) for part in parts) else copied


def _thawed(estimator: Any) -> Any:
    """A clone in which the classifier is not frozen, neither as a whole nor as the last step of a `Pipeline`."""
    copied = clone(unfrozen(estimator))
    if isinstance(copied, Pipeline):
        name, last = copied.steps[-1]
        copied.steps[-1] = (name, _thawed(last))
    return copied


def _familiar(values: np.ndarray, rest: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """(N,) rows all of whose categories occur among the rows marked `rest`."""
    familiar = np.ones(len(values), dtype=bool)
    for j in np.flatnonzero(is_category):
        familiar &= np.isnan(values[:, j]) | np.isin(values[:, j], values[rest, j])
    return familiar
