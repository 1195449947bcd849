"""Training rows that resemble what is observed of a case: a sample of p(hidden columns | x_S) without training."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

UNRELATED = 2.0
"""Squared distance of two cells that have nothing to do with each other: the mean for two normal scores."""

CELLS_AT_ONCE = 4_000_000


class Neighbors:
    """A pool of training rows, searched by the observed columns only.

    Numbers are compared by their normal scores (ranks, so that skewed laboratory values and outliers do no harm),
    categories by equality, and a cell that the training row lacks counts as unrelated.

    Parameters
    ----------
    values
        (N, D) encoded training rows, NaN where nobody has the cell.
    is_category
        (D,) bool.
    n_neighbors, bandwidth
        How many rows are taken, and the width of the Gaussian kernel (in normal scores) that weights them.
    """

    def __init__(self, values: np.ndarray, is_category: np.ndarray, n_neighbors: int, bandwidth: float) -> None:
        self.is_category = is_category
        self.n_neighbors = min(n_neighbors, len(values))
        self.bandwidth = bandwidth
        self._grids = [
            None if is_category[j] else _normal_scores(values[~np.isnan(values[:, j]), j])
            for j in range(values.shape[1])
        ]
        self.scores = self.scale(values)  # (N, D)

    def scale(self, values: np.ndarray) -> np.ndarray:
        """Encoded cells -> normal scores (numbers) and codes (categories); NaN stays NaN."""
        scores = values.copy()
        for j, grid in enumerate(self._grids):
            if grid is not None:
                there = ~np.isnan(values[:, j])
                scores[there, j] = np.interp(values[there, j], *grid)
        return scores

    def find(
        self, values: np.ndarray, mask: np.ndarray, leave_out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pool rows nearest to each case in its observed columns, and their weights: (n, K) each.

        `leave_out` (n,) is a pool row that must not be taken, -1 for none.
        """
        index = np.empty((len(values), self.n_neighbors), dtype=int)
        weights = np.empty(index.shape)
        step = max(1, CELLS_AT_ONCE // len(self.scores))
        for start in range(0, len(values), step):
            rows = slice(start, start + step)
            squared = self._squared_distances(self.scale(values[rows]), mask[rows])
            if leave_out is not None:
                left_out = np.flatnonzero(leave_out[rows] >= 0)
                squared[left_out, leave_out[rows][left_out]] = np.inf
            nearest = np.argpartition(squared, self.n_neighbors - 1, axis=1)[:, : self.n_neighbors]
            nearest.sort(axis=1)
            found = np.take_along_axis(squared, nearest, axis=1)
            kernel = np.exp((found.min(axis=1, keepdims=True) - found) / (2 * self.bandwidth**2))
            index[rows], weights[rows] = nearest, kernel / kernel.sum(axis=1, keepdims=True)
        return index, weights

    def filled(self, values: np.ndarray) -> np.ndarray:
        """Pool `values` with each missing cell taken from the most similar pool row that has it."""
        filled = values.copy()
        present = ~np.isnan(values)
        for r in np.flatnonzero(~present.all(axis=1)):
            squared = self._squared_distances(self.scores[r : r + 1], present[r : r + 1])[0]
            for j in np.flatnonzero(~present[r]):
                filled[r, j] = values[np.where(present[:, j], squared, np.inf).argmin(), j]
        return filled

    def _squared_distances(self, scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """(n, N) over observed columns; column by column, so that a row's result never depends on the batch."""
        squared = np.zeros((len(scores), len(self.scores)))
        for j in range(self.scores.shape[1]):
            rows = np.flatnonzero(mask[:, j])
            if len(rows):
                squared[rows] += cell_distances(
                    scores[rows, j, None], self.scores[None, :, j], bool(self.is_category[j])
                )
        return squared


def cell_distances(a: np.ndarray, b: np.ndarray, is_category: bool) -> np.ndarray:
    """Squared distances of cells of one column, broadcast; NaN on either side counts as unrelated."""
    squared = UNRELATED * (a != b) if is_category else (a - b) ** 2
    return np.where(np.isnan(a) | np.isnan(b), UNRELATED, squared)


def _normal_scores(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column, and the normal score of the middle rank of each."""
    distinct, counts = np.unique(cells, return_counts=True)
    return distinct, ndtri((np.cumsum(counts) - counts / 2) / len(cells))
