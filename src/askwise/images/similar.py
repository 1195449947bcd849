"""Training images that resemble the observed patches of an image, found by matrix products on downsampled pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from askwise.predict.similarity import Neighbors
from askwise.table.rows import EncodedRows

if TYPE_CHECKING:
    from askwise.images.grid import ImageSchema

CELLS_PER_SIDE = 4
"""Maximum number of cells per side by whose means a patch is compared."""
STEPS = 256.0
"""Cells are rounded to multiples of 1 / STEPS standard deviations. Sums of their products are then exact in double
precision, whatever the order, so that the neighbors of an image do not depend on its batch."""
MOST_CELLS_AT_ONCE = 32_000_000


class SimilarImages(Neighbors):
    """A pool of training images, searched by the observed patches only.

    The squared distance is the sum over observed patches of the mean squared difference of their cells, in units of
    the variance of all pixels. Has the methods of `Neighbors`.

    Parameters
    ----------
    rows
        N encoded training images; a missing pixel counts as the mean of all pixels.
    schema
        The patches.
    n_neighbors, bandwidth
        How many images are taken, and the width of the Gaussian kernel that weights them.
    """

    def __init__(self, rows: EncodedRows, schema: ImageSchema, n_neighbors: int, bandwidth: float) -> None:
        self.schema = schema
        self.n_neighbors = min(n_neighbors, len(rows))
        self.bandwidth = bandwidth
        self.mean = float(np.nanmean(rows.values, dtype=float))
        self.spread = float(np.nanstd(rows.values, dtype=float)) or 1.0
        _, _, height, _, width = schema.block_shape
        self._rows, self._columns = _starts(height), _starts(width)
        self.cells_per_patch = schema.patch_shape[0] * len(self._rows) * len(self._columns)
        self._pool = self._downsampled(np.nan_to_num(rows.values, nan=self.mean))  # (N, M, cells)
        self.scores = self._pool.reshape(len(self._pool), -1)
        self._pool_squared = (self._pool**2).sum(axis=2)  # (N, M)

    def scale(self, values: np.ndarray, wanted: np.ndarray | None = None) -> np.ndarray:
        """Encoded images in standard deviations from the mean of all pixels, all of them whatever is `wanted`."""
        return np.asarray((values - self.mean) / self.spread)

    def filled(self, rows: EncodedRows, columns: np.ndarray) -> np.ndarray:
        """Pool images with missing pixels out of `columns` filled with the mean of all pixels."""
        return np.where(~rows.observed & columns, self.mean, rows.values)

    def squared_distances(
        self, rows: EncodedRows, before: np.ndarray | None = None, covered: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, N) over the observed patches; with `before`, only what is not `covered` (n, D) is added."""
        mask = self.schema.any_column(rows.observed if covered is None else rows.observed & ~covered)
        squared = np.zeros((len(rows), len(self._pool))) if before is None else before.copy()
        pool = self.scores.T
        step = max(1, MOST_CELLS_AT_ONCE // rows.values.shape[1])
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            own = self._downsampled(np.nan_to_num(rows.values[part], nan=self.mean)) * mask[part, :, None]
            shown = mask[part].astype(float)
            cross = own.reshape(len(own), -1) @ pool
            found = (own**2).sum(axis=(1, 2))[:, None] + shown @ self._pool_squared.T - 2 * cross
            squared[part] += found / self.cells_per_patch
        return squared

    def _downsampled(self, values: np.ndarray) -> np.ndarray:
        """(n, D) complete images -> (n, M, cells) rounded means of cells."""
        channels, n_rows, height, n_columns, width = self.schema.block_shape
        blocks = self.scale(values).reshape(len(values), channels, n_rows, height, n_columns, width)
        sums = np.add.reduceat(np.add.reduceat(blocks, self._rows, axis=3), self._columns, axis=5)
        sizes = np.outer(np.diff([*self._rows, height]), np.diff([*self._columns, width]))
        means = sums.astype(float) / sizes[:, None, :]
        by_patch = means.transpose(0, 2, 4, 1, 3, 5).reshape(len(values), n_rows * n_columns, -1)
        return np.asarray(np.rint(by_patch * STEPS) / STEPS)


def _starts(size: int) -> list[int]:
    """Where each of the cells along one side of a patch begins."""
    return sorted({int(start) for start in np.linspace(0, size, min(size, CELLS_PER_SIDE) + 1)[:-1]})
