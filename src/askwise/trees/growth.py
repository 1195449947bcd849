"""Shared by both trees: checks, the training data as arrays, and the split criterion of Appendix D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from askwise.errors import InvalidInput

TIE = 1e-12
"""Impurities closer than this are equal up to rounding."""
CELLS_AT_ONCE = 4_000_000
"""Cells of a table of class counts that are in memory at a time: 32 MB of doubles."""


class ProbableClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose label is the most probable one."""

    def predict(self, X: Any) -> np.ndarray:
        """(n,) the most probable label."""
        best = self.predict_proba(X).argmax(axis=1)  # first: an unfitted classifier has no classes
        return np.asarray(self.classes_[best])


def refuse_missing_labels(y: Any) -> None:
    """Raise an error for a label that is None, NA or NaN; scikit-learn itself checks that `y` holds labels."""
    missing = np.atleast_1d(pd.isna(np.asarray(y, dtype=object)))
    if missing.any() and missing.ndim == 1 and y is not None:
        raise InvalidInput(f"Input y contains NaN (row {int(np.argmax(missing))}); leave out the rows without a label.")


def training_arrays(
    classifier: Any, X: Any, y: Any, sample_weight: Any, dtype: type
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (n, D), weight of each row in its class's column (n, C), and the classes (C,); rows of weight 0 left out."""
    refuse_missing_labels(y)
    n_rows, n_labels, n_weights = _length(X), _length(y), _length(sample_weight)
    if n_rows is not None and n_labels not in (None, n_rows):
        raise InvalidInput(f"y must hold one label per row of X: X has {n_rows} rows and y {n_labels} labels.")
    if n_rows is not None and n_weights not in (None, n_rows):
        raise InvalidInput(f"sample_weight must hold one number per row of X, {n_rows} in all; got {n_weights}.")
    X, y = validate_data(classifier, X, y, dtype=dtype)
    check_classification_targets(y)
    classes, codes = np.unique(column_or_1d(y), return_inverse=True)
    if sample_weight is not None and not np.asarray(sample_weight).any():
        raise InvalidInput("sample_weight must be positive for at least one row; all are zero.")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    rows = np.flatnonzero(weights)
    by_class = np.zeros((len(rows), len(classes)))
    by_class[np.arange(len(rows)), codes[rows]] = weights[rows]
    return X[rows], by_class, classes


def _length(given: Any) -> int | None:
    """Its length; None for what has none, which scikit-learn judges."""
    if issparse(given):  # the length of some is the number of their cells
        return None
    try:
        return len(given)
    except TypeError:
        return None


def gini(counts: np.ndarray) -> np.ndarray:
    r"""Gini impurity :math:`1 - \sum_k p_k^2` of class weights (..., C); 0 where there is no weight."""
    total = over_classes(counts)
    squares = np.einsum("...c,...c->...", counts, counts)
    return np.where(total > 0, 1.0 - squares / np.where(total > 0, total, 1.0) ** 2, 0.0)


def over_classes(counts: np.ndarray) -> np.ndarray:
    """(...) sum of class weights (..., C); a product is faster than a sum along a short axis."""
    return counts @ np.ones(counts.shape[-1])


def gini_decrease(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    r"""Weighted decrease of impurity :math:`\Delta I_G` (App. D) by splits into class weights (..., C) and (..., C).

    >>> gini_decrease(np.array([2.0, 0.0]), np.array([0.0, 2.0]))
    array(0.5)
    """
    left_weight, right_weight = over_classes(left), over_classes(right)
    total = left_weight + right_weight
    children = left_weight * gini(left) + right_weight * gini(right)
    return np.asarray(gini(left + right) - children / np.where(total > 0, total, 1.0))


def sampled_conditions(n_conditions: int, n_subsets: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    r"""Which of a node's conditions stay under :math:`S_1, \ldots, S_K` of App. D: the cases, and their shares.

    A subset that holds feature j has :math:`S \setminus j` of a size uniform on 0..M-1, then uniform among those of
    that size. This equals drawing p uniformly and then each other feature with probability p, so one draw per
    condition serves all candidates j, and features without a condition need not be drawn. Whether a condition on j
    itself is drawn does not matter: it always stays for a split on j.

    Returns
    -------
    kept
        (cases, n_conditions) bool.
    share
        (cases,) share of the subsets; sums to 1. Without subsets or conditions: one case, in which all stay.
    """
    if n_subsets == 0 or n_conditions == 0:
        return np.ones((1, n_conditions), dtype=bool), np.ones(1)
    drawn = rng.random((n_subsets, n_conditions)) < rng.random((n_subsets, 1))
    kept, times = np.unique(drawn, axis=0, return_counts=True)
    return kept, times / n_subsets


def midway(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Numbers halfway between lower and upper ones, and always less than the upper ones."""
    middle = lower / 2 + upper / 2
    return np.where(middle < upper, middle, lower)


def first_best(scores: np.ndarray) -> int:
    """Index of the highest score, the first one among equals."""
    return int(np.argmax(scores >= scores.max() - TIE))
