"""Cross-fitting: the model, the pool and the policy fitted without some training rows, which are then unseen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.model.parts import split_pipeline, unfrozen
from askwise.model.refitting import refitted as refitted  # part of what cross-fitting offers
from askwise.model.refitting import unfitted_clone
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.progress import track
from askwise.value.targets import folds

N_FOLDS = 5
MOST_CASES, FEWEST_CASES = 400, 80
"""Unseen cases to calibrate on: more change little; fewer, down to a fifth, where a model takes long to answer."""
FEWEST_UNSEEN = 5
"""Cases without which nothing is calibrated; each of five parts of them is judged by the others."""
MOST_WORK = 1_000_000_000
"""Numbers, in the unit of `work_of_an_answer`, to be read in calibration; about half a minute on one core."""
PARAMETERS_PER_UNIT = 1000
"""Weights of a network that take as long as a tree, a stored row, or a feature and class."""
USUAL_TREES = 100


def work_of_an_answer(estimator: Any, n_features: int, n_classes: int) -> int:
    """How much work an answer and the gains of the features are, in trees evaluated, about.

    Counted by what the fitted model consists of, never by a clock: the same on every machine, however busy it is.
    """
    return n_features * n_classes + _size_of(split_pipeline(estimator)[1], n_classes)


def _size_of(estimator: Any, n_classes: int) -> int:
    """Trees, stored rows, or thousands of weights of a fitted classifier; 1 where nothing is known of it."""
    classifier = unfrozen(estimator)
    members = getattr(classifier, "estimators_", None)
    if members is None:
        members = [part.estimator for part in getattr(classifier, "calibrated_classifiers_", [])]
    if len(members) and hasattr(members[0], "tree_"):
        return len(members)
    if len(members):
        return sum(_size_of(member, n_classes) for member in np.ravel(np.array(members, dtype=object)))
    for rows in ("support_", "_fit_X", "X_train_"):  # support vectors, neighbors, a Gaussian process
        if hasattr(classifier, rows):
            return max(1, np.shape(getattr(classifier, rows))[0])
    if hasattr(classifier, "coefs_"):
        return 1 + sum(map(np.size, classifier.coefs_)) // PARAMETERS_PER_UNIT
    rounds = next((name for name in ("n_iter_", "tree_count_", "n_estimators") if hasattr(classifier, name)), None)
    if rounds is None or np.ndim(getattr(classifier, rounds)):  # of a linear model n_iter_ is an array
        return 1
    return int(getattr(classifier, rounds) or USUAL_TREES) * (n_classes if n_classes > 2 else 1)


def cases_to_examine(predictor: SubsetPredictor, n_states: int) -> int:
    """How many unseen cases `fit` examines to calibrate `predictor`, at `n_states` states each."""
    n_answers = getattr(predictor, "n_neighbors", 1) * n_states
    work = work_of_an_answer(predictor.estimator_, len(predictor.schema_.features), len(predictor.classes_))
    return int(np.clip(MOST_WORK // (n_answers * work), FEWEST_CASES, MOST_CASES))


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


class CrossFit(NamedTuple):
    """The folds that were fitted, none where there are none; the clones of the model fitted for it; and why so many."""

    folds: list[Fold]
    refits: int
    reason: str


def out_of_bag(rows: np.ndarray, y: np.ndarray, trained_on: np.ndarray, random_state: int) -> np.ndarray | None:
    """(N,) for each training row one of the members that have not seen it, all equally often; -1 where there is none.

    Rows of classes with few rows, which every model must know, are given to none. None where fewer than two classes are
    frequent, a member has left out nothing, or a column of the `rows` (N, D) would have no value without its rows.

    Parameters
    ----------
    trained_on
        (k, N) whether a member was trained on a row.
    """
    part, held = np.full(len(y), -1), np.zeros(len(trained_on), dtype=int)
    frequent = np.bincount(y)[y] >= N_FOLDS
    for row in np.random.default_rng(random_state).permutation(len(y)):
        unaware = np.flatnonzero(~trained_on[:, row])
        if frequent[row] and len(unaware):
            part[row] = unaware[held[unaware].argmin()]
            held[part[row]] += 1
    usable = held.all() and len(np.unique(y[part >= 0])) > 1
    usable &= all(not np.isnan(rows[part != k]).all(axis=0).any() for k in range(len(held)))
    return part if usable else None


def cross_fitted(
    predictor: SubsetPredictor,
    refit: Callable[[np.ndarray], BeliefModel],
    policy_of: Callable[[BeliefModel], Policy],
    *,
    n_folds: int = N_FOLDS,
    n_rows: int | None = None,
    fold: np.ndarray | None = None,
    random_state: int = 0,
    progress: bool | str = False,
) -> CrossFit:
    """The training rows of `predictor` in folds, and what is fitted without each.

    There are no folds where the model cannot be fitted without some of the rows: a callable, a torch module, images,
    fewer than two classes with as many rows as folds, a column without values outside of a fold, a category of its own
    in nearly every row, or a model that fails on so few rows. A fold whose model does not know every class is left out.

    Parameters
    ----------
    refit
        Function of positions of training rows that returns a belief model fitted without them.
    policy_of
        Function of that belief model that returns a policy fitted around it.
    n_rows
        Stop after the folds that hold so many rows; None = all folds. Nothing else ends it early.
    fold
        (N,) the fold of each row, 0 to `n_folds` - 1, or -1 for those that are in none, where `refit` need not fit a
        clone of the model, as of `out_of_bag`; None = folds with the same share of each class.
    """
    rows, y = predictor.training_rows_, predictor.training_labels_
    if not predictor.schema_.tabular or unfitted_clone(predictor.estimator_) is None:
        return CrossFit([], 0, "no folds: the model cannot be fitted again (a callable, a torch module, images)")
    clones = fold is None
    if fold is None:
        fold = _folds_of_frequent(rows.values, y, n_folds, random_state)
    if fold is None or len(np.unique(y)) < len(predictor.classes_):
        few = f"fewer than two classes with {n_folds} rows, a class without rows, or a column that one fold alone has"
        return CrossFit([], 0, f"no folds: {few}")
    familiar = [_familiar(rows.values, fold != k, predictor.schema_.is_category) for k in range(n_folds)]
    held = [np.flatnonzero((fold == k) & familiar[k]) for k in range(n_folds)]
    wanted = len(y) if n_rows is None else n_rows
    n_expected = int(np.searchsorted(np.cumsum([len(part) for part in held]), wanted)) + 1
    found: list[Fold] = []
    refits = 0
    for k in track(range(n_folds), "cross-fitting", min(n_expected, n_folds), progress):
        if sum(len(part.held) for part in found) >= wanted:
            break
        try:
            beliefs = refit(np.flatnonzero(fold == k))
        except Exception as error:  # a third-party model may raise any error on fewer rows
            return CrossFit([], refits, f"no folds: the model cannot be fitted on fewer rows ({error})")
        refits += clones
        # Without a class: all of its rows have missing cells.
        if len(beliefs.predictor.classes_) == len(predictor.classes_) and len(held[k]):
            found.append(Fold(held[k], beliefs, policy_of(beliefs)))
    if sum(len(part.held) for part in found) < FEWEST_UNSEEN:
        found = []
    if not found:
        return CrossFit(
            [],
            refits,
            f"no folds: without any, the model knows too few classes, or {FEWEST_UNSEEN} rows cannot be left out",
        )
    held_by = "folds of the training rows" if clones else "members, each about training rows that it has not seen"
    return CrossFit(found, refits, f"{len(found)} of {n_folds} {held_by}")


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


def _familiar(values: np.ndarray, rest: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """(N,) rows all of whose categories occur among the rows marked `rest`."""
    familiar = np.ones(len(values), dtype=bool)
    for j in np.flatnonzero(is_category):
        familiar &= np.isnan(values[:, j]) | np.isin(values[:, j], values[rest, j])
    return familiar
