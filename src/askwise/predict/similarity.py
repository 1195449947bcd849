"""Training rows that resemble what is observed of a case: a sample of p(hidden columns | x_S) without training."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

from askwise.table.rows import EncodedRows

UNRELATED = 2.0
"""Squared distance of two unrelated cells: its mean for two independent normal scores."""
DISTANCES_AT_ONCE = 4_000_000
"""Distances of a cell to a pool row that are in memory at a time."""
FINEST, DIGITS = 20, 53
"""Binary digits after the point to which numbers are rounded at most, so that their sums are exact and do not depend on
the order of summation; and the digits of a float."""


class Neighbors:
    """A pool of training rows, searched by the observed columns only.

    Numbers are compared by their normal scores (ranks, so that skewed values and outliers do no harm),
    categories by equality, and a cell missing from the training row counts as unrelated.

    Parameters
    ----------
    rows
        N encoded training rows, NaN where a cell is missing.
    is_category
        (D,) bool.
    n_neighbors, bandwidth
        How many rows are taken, and the width of the Gaussian kernel (in normal scores) that weights them.

    Attributes
    ----------
    column_weights : (D,) factors of the squared distances by column, or None
    """

    column_weights: np.ndarray | None = None

    def __init__(self, rows: EncodedRows, is_category: np.ndarray, n_neighbors: int, bandwidth: float) -> None:
        self.is_category = is_category
        self.n_neighbors = min(n_neighbors, len(rows))
        self.bandwidth = bandwidth
        self._grids: list[tuple[np.ndarray, np.ndarray] | None] = [None] * len(is_category)
        for j in np.flatnonzero(~is_category):
            self._grids[j] = normal_scores(rows.values[rows.observed[:, j], j])
        self.scores = self.scale(rows.values)  # (N, D)
        self._complete: np.ndarray = np.all(rows.observed, axis=0)  # (D,) columns without missing cells in the pool
        self._by_column = np.ascontiguousarray(self.scores.T)  # (D, N)

    def scale(self, values: np.ndarray, wanted: np.ndarray | None = None) -> np.ndarray:
        """Encoded cells -> normal scores (numbers) and codes (categories); NaN stays NaN.

        Only columns `wanted` (D,) bool are scaled; None = all.
        """
        scores = values.copy()
        for j, grid in enumerate(self._grids):
            if grid is not None and (wanted is None or wanted[j]):
                scores[:, j] = np.interp(values[:, j], *grid)  # NaN stays NaN
        return scores

    def squared_distances(
        self, rows: EncodedRows, before: np.ndarray | None = None, covered: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, N) over the observed columns.

        Parameters
        ----------
        before, covered
            Distances (n, N) of the same cases over the columns `covered` (n, D): only the others are added.
        """
        return squared_distances([self], rows, [before], covered)[0]

    def nearest(self, squared: np.ndarray, leave_out: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The pool rows with the smallest squared distances (n, N), and their weights: (n, K) each.

        `leave_out` (n,) is a pool row that must not be taken, -1 for none.
        """
        squared = squared if leave_out is None else without(squared, leave_out)
        index = np.argpartition(squared, self.n_neighbors - 1, axis=1)[:, : self.n_neighbors]
        index.sort(axis=1)
        weights = kernel(np.take_along_axis(squared, index, axis=1), self.bandwidth)
        return index, weights / weights.sum(axis=1, keepdims=True)

    def weighted(self, column_weights: np.ndarray) -> Neighbors:
        """The same rows with other column weights."""
        other = copy.copy(self)
        other.column_weights = column_weights
        return other

    def first(self, n_rows: int) -> Neighbors:
        """The first rows of the pool alone, compared by the same scale; a column complete in the pool is so in them."""
        other = copy.copy(self)
        other.scores, other._by_column = self.scores[:n_rows], np.ascontiguousarray(self._by_column[:, :n_rows])
        other.n_neighbors = min(self.n_neighbors, n_rows)
        return other

    def filled(self, rows: EncodedRows, columns: np.ndarray) -> np.ndarray:
        """Pool rows with missing cells of `columns` (D,) bool taken from the most similar pool row that has one."""
        filled, missing = rows.values.copy(), ~rows.observed & columns
        for r in np.flatnonzero(missing.any(axis=1)):
            squared = self.squared_distances(rows.take([r]))[0]
            for j in np.flatnonzero(missing[r]):
                filled[r, j] = rows.values[np.where(rows.observed[:, j], squared, np.inf).argmin(), j]
        return filled

    def cell_distances(self, scores: np.ndarray, column: np.ndarray) -> np.ndarray:
        """(cells, N) squared distances of observed cells (cells,) of some columns, as `scale` has them, to the pool."""
        own, pool = scores[:, None], self._by_column[column]
        squared = (own - pool) ** 2
        category = self.is_category[column]
        if category.any():
            squared[category] = UNRELATED * (own[category] != pool[category])
        if not self._complete[column].all():
            squared[np.isnan(pool)] = UNRELATED
        return squared


def normal_scores(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values among `cells` (n,), ascending, and the normal score of the middle rank of each.

    >>> values, scores = normal_scores(np.array([3.0, 1.0, 3.0, 8.0]))
    >>> values.tolist(), scores.round(2).tolist()
    ([1.0, 3.0, 8.0], [-1.15, 0.0, 1.15])
    """
    values, counts = np.unique(cells, return_counts=True)
    return values, ndtri((np.cumsum(counts) - counts / 2) / counts.sum())


def squared_distances(
    searches: Sequence[Neighbors],
    rows: EncodedRows,
    before: Sequence[np.ndarray | None],
    covered: np.ndarray | None = None,
) -> list[np.ndarray]:
    """The distances (n, N) of `Neighbors.squared_distances` for searches that differ in their column weights only.

    Those of cells are rounded, so that their sums are exact in any order: a distance that grew column by column equals
    one that was computed at once, and a session has the neighbors of its row in a batch.
    """
    one, (n, n_columns), grid = searches[0], rows.values.shape, 2.0**FINEST
    found = [np.zeros((n, len(one.scores))) if known is None else known.copy() for known in before]
    wanted = rows.observed if covered is None else rows.observed & ~covered
    scores = one.scale(rows.values, np.any(wanted, axis=0))
    step = max(1, DISTANCES_AT_ONCE // (len(one.scores) * n_columns))
    for part in (slice(start, start + step) for start in range(0, n, step)):
        case, column = np.nonzero(wanted[part])
        of_cells = one.cell_distances(scores[part][case, column], column)
        n_cells = wanted[part].sum(axis=1)
        sums: csr_array | None = None
        if not (n_cells == 1).all():  # after most purchases each case has one new cell: there is nothing to sum
            ends = np.concatenate([[0], n_cells.cumsum()])
            sums = csr_array((np.ones(len(case)), np.arange(len(case)), ends), shape=(len(n_cells), len(case)))
        for search, squared in zip(searches, found, strict=True):
            weights = search.column_weights
            added = np.rint((of_cells if weights is None else of_cells * weights[column, None]) * grid) / grid
            squared[part] += added if sums is None else sums @ added
    return found


def without(squared: np.ndarray, leave_out: np.ndarray) -> np.ndarray:
    """Squared distances (n, N) that are infinite to the pool row that each case must not use; -1 for none."""
    squared, left_out = squared.copy(), np.flatnonzero(leave_out >= 0)
    squared[left_out, leave_out[left_out]] = np.inf
    return squared


def kernel(squared: np.ndarray, width: float | np.ndarray | None = None) -> np.ndarray:
    """Gaussian kernel of squared distances (n, K), 1 for the nearest row; one width, or (n, 1).

    Without a width, the distances have been divided by twice its square.
    """
    nearer = squared.min(axis=1, keepdims=True) - squared
    return np.asarray(np.exp(nearer if width is None else nearer / (2 * width**2)))


def rounded(numbers: np.ndarray, n_rows: int) -> np.ndarray:
    """Numbers from 0 to 1 with so few digits that a sum of `n_rows` products of two of them is exact in any order.

    >>> float(rounded(np.array([1 / 3]), 5000)[0] * 2**20)
    349525.0
    """
    grid = 2.0 ** min(FINEST, (DIGITS - n_rows.bit_length()) // 2)
    return np.asarray(np.rint(numbers * grid) / grid)
