"""Gaussians for each class, with exact marginals: p(y | x_S) from the labels alone, for any subset S."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax
from sklearn.covariance import ledoit_wolf

from askwise.table.rows import CELLS_AT_ONCE
from askwise.table.subsets import sample_of_sizes, unique_masks

LARGEST_SCORE = 2.5
"""Normal scores are clipped here: single extreme cells must not decide alone."""
RIDGE = 0.02
"""Added to variances of 1: columns that repeat each other must not give infinite evidence."""
PRIOR_ROWS = 3.0
"""In rows: how strongly the means of a class are drawn to those of all rows."""
CATEGORY_ROWS = 10.0
"""In rows: how strongly the shares of the classes among rows of a category are drawn to those among all rows."""
COMMON_ROWS: tuple[float | None, ...] = (None, 300.0, 100.0, 30.0, 10.0)
"""In rows: how strongly the covariance of a class is drawn to that of all classes, to choose from; None: entirely."""
MOST_COLUMNS = 100
"""With more numbers, all classes share one covariance: theirs would take long to compute and to compare."""
FEWEST_ROWS, ROWS_TO_CHOOSE, ROWS_WITH_HOLES = 30, 1500, 300
"""Rows by which covariances are compared: with fewer than the first all classes share one, and where numbers are
missing the last is the most, because each pattern of known columns has to be computed on its own."""
N_FOLDS, N_SUBSETS = 3, 10
LEAST_SHARE = 1e-3
"""A class is not held less likely than this when covariances are compared, nor where answers are pooled."""


class ClassGaussians:
    r"""Numbers are Gaussian within a class, categories independent of each other and of the numbers.

    .. math:: \log q(y \mid x_S) = \log \pi_y + \log N(z_S; \mu_{yS}, \Sigma_{yS})
              + \sum_{j \in S \text{ category}} \log q(x_j \mid y) + \text{const}, \qquad
              \Sigma_y = \frac{n_y \hat\Sigma_y + k \Sigma}{n_y + k}

    with the covariance :math:`\Sigma` within all classes, and that of the :math:`n_y` rows of a class, which is drawn
    to it; of a column with missing cells, the rows that have it count. Missing cells make columns look less correlated
    than they are.

    Parameters
    ----------
    scores
        (N, D) normal scores of numbers and codes of categories, NaN where missing.
    y
        (N,) classes, as positions.
    is_category
        (D,) bool.
    n_classes
        C.
    common_rows
        k; None: all classes have the covariance :math:`\Sigma`.
    """

    def __init__(
        self,
        scores: np.ndarray,
        y: np.ndarray,
        is_category: np.ndarray,
        n_classes: int,
        common_rows: float | None = None,
    ) -> None:
        self.numbers = np.flatnonzero(~is_category)
        self.common_rows = common_rows
        one_hot = np.eye(n_classes)[y]  # (N, C)
        self.log_prior = np.log((one_hot.sum(axis=0) + 1) / (len(y) + n_classes))
        cells = _clipped(scores[:, self.numbers])
        there = ~np.isnan(cells)
        filled = np.where(there, cells, 0.0)
        self.means = (one_hot.T @ filled) / (one_hot.T @ there + PRIOR_ROWS)  # (C, numbers)
        deviations = np.where(there, cells - self.means[y], 0.0)
        self.covariances = _covariances(deviations, there, one_hot, common_rows)  # (C or 1, numbers, numbers)
        codes = {int(j): scores[:, j] for j in np.flatnonzero(is_category)}
        self.log_ratios = {j: _log_ratios(column, one_hot) for j, column in codes.items()}

    def log_proba(self, scores: np.ndarray) -> np.ndarray:
        """(n, C) log q(y | x_S), S = what is not NaN in `scores` (n, D)."""
        logs = np.repeat(self.log_prior[None], len(scores), axis=0)
        for j, ratios in self.log_ratios.items():
            known = np.flatnonzero(scores[:, j] < len(ratios))  # neither missing nor a new category
            logs[known] += ratios[scores[known, j].astype(int)]
        cells = _clipped(scores[:, self.numbers])
        patterns, of_row = unique_masks(~np.isnan(cells))
        order = np.argsort(of_row, kind="stable")
        ends = np.cumsum(np.bincount(of_row, minlength=len(patterns)))
        for pattern, rows in zip(patterns, np.split(order, ends[:-1]), strict=True):
            step = max(1, CELLS_AT_ONCE // (max(1, pattern.sum()) * len(self.log_prior)))
            for start in range(0, len(rows) if pattern.any() else 0, step):
                part = rows[start : start + step]
                logs[part] += self._log_densities(cells[part][:, pattern], pattern)
        return np.asarray(log_softmax(logs, axis=1))

    def _log_densities(self, cells: np.ndarray, pattern: np.ndarray) -> np.ndarray:
        """(n, C) log densities of the numbers marked by `pattern`, up to what all classes share."""
        triangles = np.linalg.cholesky(self.covariances[:, pattern][:, :, pattern])
        deviations = cells.T - self.means[:, pattern, None]  # (C, S, n)
        squares = (np.linalg.solve(triangles, deviations) ** 2).sum(axis=1)
        log_volumes = np.log(np.diagonal(triangles, axis1=1, axis2=2)).sum(axis=1)  # (C or 1,)
        return np.asarray(-(squares / 2 + log_volumes[:, None]).T)


def chosen_gaussians(
    scores: np.ndarray, y: np.ndarray, is_category: np.ndarray, n_classes: int, rng: np.random.Generator
) -> ClassGaussians:
    """`ClassGaussians` with the `COMMON_ROWS` of least log loss on left-out rows, of which random columns are known."""
    common_rows = None
    if 0 < np.sum(~is_category) <= MOST_COLUMNS and len(y) >= FEWEST_ROWS:
        holes = np.isnan(scores[:, ~is_category]).any()
        at = rng.permutation(len(y))[: ROWS_WITH_HOLES if holes else ROWS_TO_CHOOSE]
        size = rng.integers(1, max(2, len(is_category) // 2 + 1), size=N_SUBSETS)
        shown = sample_of_sizes(size, len(is_category), rng)
        common_rows = min(COMMON_ROWS, key=lambda k: _loss(scores[at], y[at], is_category, n_classes, k, shown))
    return ClassGaussians(scores, y, is_category, n_classes, common_rows)


def _loss(
    scores: np.ndarray,
    y: np.ndarray,
    is_category: np.ndarray,
    n_classes: int,
    common_rows: float | None,
    shown: np.ndarray,
) -> float:
    """Log loss on shuffled rows, a fold of them left out at a time, if the columns `shown` (subsets, D) are known."""
    fold, total = np.arange(len(y)) % N_FOLDS, 0.0
    for k in np.unique(fold):
        held = fold == k
        made = ClassGaussians(scores[~held], y[~held], is_category, n_classes, common_rows)
        for columns in shown:
            logs = made.log_proba(np.where(columns, scores[held], np.nan))[np.arange(held.sum()), y[held]]
            total -= np.maximum(logs, np.log(LEAST_SHARE)).sum()
    return total


def _clipped(scores: np.ndarray) -> np.ndarray:
    return np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)


def _covariances(
    deviations: np.ndarray, there: np.ndarray, one_hot: np.ndarray, common_rows: float | None
) -> np.ndarray:
    """(C, D, D) covariance of each class, or (1, D, D) that of all, from deviations (N, D) from class means.

    Cells that are not `there` (N, D) have a deviation of 0, and do not make their column less variable.
    """
    n_columns = deviations.shape[1]
    if not n_columns:
        return np.empty((1, 0, 0))
    ridge = RIDGE * np.eye(n_columns)
    scale = np.sqrt(np.maximum(there.mean(axis=0), 1 / len(there)))
    common = ledoit_wolf(deviations / scale, assume_centered=True)[0] + ridge
    if common_rows is None:
        return np.asarray(common[None])
    found = []
    for member in one_hot.T.astype(bool):
        n_cells = there[member].sum(axis=0)  # (D,)
        scaled = deviations[member] / np.sqrt(np.maximum(n_cells, 1))
        own, drawn = np.sqrt(n_cells / (n_cells + common_rows)), np.sqrt(common_rows / (n_cells + common_rows))
        found.append(np.outer(own, own) * (scaled.T @ scaled + ridge) + np.outer(drawn, drawn) * common)
    return np.stack(found)


def _log_ratios(codes: np.ndarray, one_hot: np.ndarray) -> np.ndarray:
    """(categories, C) log of the share of each class among the rows of a category over that among all rows.

    By Bayes' rule that is q(x_j | y) / q(x_j). What is shrunk is the share, so that a category with few rows says
    little, however many categories there are.
    """
    there = ~np.isnan(codes)
    known = codes[there].astype(int)
    n_categories = int(known.max(initial=-1)) + 1
    counts = np.stack([np.bincount(known, member, n_categories) for member in one_hot[there].T], axis=1)
    overall = (counts.sum(axis=0) + 1) / (counts.sum() + counts.shape[1])
    within = (counts + CATEGORY_ROWS * overall) / (counts.sum(axis=1, keepdims=True) + CATEGORY_ROWS)
    return np.asarray(np.log(within / overall))
