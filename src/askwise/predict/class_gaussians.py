"""Gaussians for each class, with exact marginals: p(y | x_S) from the labels alone, for any subset S."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_softmax
from sklearn.covariance import ledoit_wolf

LARGEST_SCORE = 2.5
"""Normal scores are clipped here: single extreme cells must not decide alone."""
RIDGE = 0.02
PRIOR_ROWS = 3.0
"""In rows: how strongly means and frequencies of a class are drawn to those of all rows."""


class ClassGaussians:
    r"""Numbers are Gaussian within a class, with one covariance :math:`\Sigma` for all classes; categories independent.

    .. math:: \log q(y \mid x_S) = \log \pi_y + \mu_{yS}^T \Sigma_S^{-1} (z_S - \mu_{yS} / 2)
              + \sum_{j \in S \text{ category}} \log q(x_j \mid y) + \text{const}

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
    """

    def __init__(self, scores: np.ndarray, y: np.ndarray, is_category: np.ndarray, n_classes: int) -> None:
        self.numbers = np.flatnonzero(~is_category)
        one_hot = np.eye(n_classes)[y]  # (N, C)
        self.log_prior = np.log((one_hot.sum(axis=0) + 1) / (len(y) + n_classes))
        cells = _clipped(scores[:, self.numbers])
        there = ~np.isnan(cells)
        filled = np.where(there, cells, 0.0)
        self.means = (one_hot.T @ filled) / (one_hot.T @ there + PRIOR_ROWS)  # (C, numbers)
        self.covariance = _within(np.where(there, cells - self.means[y], 0.0), there)
        codes = {int(j): scores[:, j] for j in np.flatnonzero(is_category)}
        self.log_ratios = {j: _log_ratios(column, one_hot) for j, column in codes.items()}

    def log_proba(self, scores: np.ndarray) -> np.ndarray:
        """(n, C) log q(y | x_S), S = what is not NaN in `scores` (n, D)."""
        logs = np.repeat(self.log_prior[None], len(scores), axis=0)
        for j, ratios in self.log_ratios.items():
            known = np.flatnonzero(scores[:, j] < len(ratios))  # neither missing nor a new category
            logs[known] += ratios[scores[known, j].astype(int)]
        cells = _clipped(scores[:, self.numbers])
        patterns, of_row = np.unique(~np.isnan(cells), axis=0, return_inverse=True)
        order = np.argsort(of_row.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(of_row.reshape(-1), minlength=len(patterns)))
        for pattern, rows in zip(patterns, np.split(order, ends[:-1]), strict=True):
            if pattern.any():
                logs[rows] += self._log_densities(cells[rows][:, pattern], pattern)
        return np.asarray(log_softmax(logs, axis=1))

    def _log_densities(self, cells: np.ndarray, pattern: np.ndarray) -> np.ndarray:
        """(n, C) log densities of the numbers marked by `pattern`, up to what all classes share."""
        means = self.means[:, pattern]
        directions = cho_solve(cho_factor(self.covariance[np.ix_(pattern, pattern)]), means.T)  # (S, C)
        return np.asarray(cells @ directions - (means * directions.T).sum(axis=1) / 2)


def _clipped(scores: np.ndarray) -> np.ndarray:
    return np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)


def _within(residuals: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Ledoit-Wolf covariance of deviations from class means; missing cells, 0 here, do not make it smaller."""
    if not residuals.shape[1]:
        return np.empty((0, 0))
    scaled = residuals / np.sqrt(np.maximum(there.mean(axis=0), 1 / len(there)))
    return np.asarray(ledoit_wolf(scaled, assume_centered=True)[0] + RIDGE * np.eye(residuals.shape[1]))


def _log_ratios(codes: np.ndarray, one_hot: np.ndarray) -> np.ndarray:
    """(categories, C) log of the frequency of each category within a class over that among all rows."""
    there = ~np.isnan(codes)
    counts = np.eye(int(codes[there].max()) + 1)[codes[there].astype(int)].T @ one_hot[there]  # (categories, C)
    overall = (counts.sum(axis=1) + 1) / (counts.sum() + len(counts))
    within = (counts + PRIOR_ROWS * overall[:, None]) / (counts.sum(axis=0) + PRIOR_ROWS)
    return np.asarray(np.log(within / overall[:, None]))
