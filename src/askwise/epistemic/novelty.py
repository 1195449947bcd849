"""Outside of what was seen: cells beyond their training range, and cases far from every training row."""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise.columns import plain
from askwise.predict.base import SubsetPredictor
from askwise.predict.neighbors import UNRELATED, Neighbors
from askwise.rows import EncodedRows
from askwise.subsets import sample_of_sizes

MARGIN = 0.25
"""A number is far outside when it is beyond its training range by more than this share of the range."""

USUAL = 0.99
"""Share of the training rows whose distance to the others counts as usual."""

MOST_ROWS, MOST_QUERIES, MOST_SIZES = 1000, 200, 6


class Novelty:
    """How far cases are from all that was seen in training; 0 for those that are not.

    The distance of a case to its nearest training row, over the observed columns, is compared with what is usual among
    the training rows for as many columns; each cell far outside its training range adds to it. See `excess`.

    Parameters
    ----------
    predictor
        A fitted predictor, whose training rows are what was seen.
    seed
        Seed of the rows and subsets from which the usual distances are estimated.
    """

    def __init__(self, predictor: SubsetPredictor, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        rows, self.schema = predictor.training_rows_, predictor.schema_
        self.low, self.high = np.nanmin(rows.values, axis=0), np.nanmax(rows.values, axis=0)
        spread = self.high - self.low
        self.spread = np.where(spread > 0, spread, np.maximum(np.abs(self.low), 1.0))
        self.n_known = np.array([len(column.known) for column in self.schema.columns])
        self.neighbors, pool = self._search(predictor, rng)
        self.sizes, self.usual = self._usual_distances(pool, rng)

    def outside(self, rows: EncodedRows) -> np.ndarray:
        """(n, D) how far each cell is outside its training range: 0 within, 1 for a category never seen."""
        beyond = np.maximum(self.low - rows.values, rows.values - self.high) / self.spread - MARGIN
        unseen = rows.values >= self.n_known
        return np.nan_to_num(np.where(self.schema.is_category, unseen, np.maximum(beyond, 0.0)))

    def excess(self, rows: EncodedRows, distances: np.ndarray | None = None) -> np.ndarray:
        """(n,) 0 for a case within what was seen, growing without bound outside.

        Parameters
        ----------
        distances
            (n, N) squared distances to the rows of `neighbors`, where they are known already.
        """
        squared = self.neighbors.squared_distances(rows) if distances is None else distances
        size = rows.observed.sum(axis=1)
        distance = np.sqrt(squared.min(axis=1) / np.maximum(size, 1))
        usual = np.interp(size, self.sizes, self.usual)
        return np.maximum(distance / usual - 1, 0.0) + self.outside(rows).sum(axis=1)

    def describe(self, rows: EncodedRows) -> list[list[dict[str, Any]]]:
        """For each row the cells outside what was seen: feature, column, value, and what was seen; ready for JSON."""
        found: list[list[dict[str, Any]]] = [[] for _ in range(len(rows))]
        for r, j in zip(*np.nonzero(self.outside(rows) > 0), strict=True):
            column = self.schema.columns[j]
            found[r].append(
                {
                    "feature": self.schema.features[self.schema.owner[j]],
                    "column": column.name,
                    "value": column.show(rows.values[r, j], rows.unseen.get(int(j), ())),
                    "seen": [plain(value) for value in column.known]
                    if column.is_category
                    else [column.show(self.low[j]), column.show(self.high[j])],
                }
            )
        return found

    def _search(self, predictor: SubsetPredictor, rng: np.random.Generator) -> tuple[Neighbors, EncodedRows]:
        """The predictor's own pool of training rows where it has one, else a sample of them."""
        rows = predictor.training_rows_
        if hasattr(predictor, "neighbors_"):
            pool = rows.take(np.argsort(np.where(predictor.pool_position_ < 0, len(rows), predictor.pool_position_)))
            return predictor.neighbors_, pool.take(slice(len(predictor.neighbors_.scores)))
        pool = rows.take(rng.permutation(len(rows))[:MOST_ROWS])
        return Neighbors(pool, self.schema.is_category, 1, 1.0), pool

    def _usual_distances(self, pool: EncodedRows, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Subset sizes, and the distance to the nearest other row that most training rows stay within."""
        n_columns = pool.values.shape[1]
        sizes = np.unique(np.linspace(1, n_columns, min(n_columns, MOST_SIZES)).astype(int))
        asked = rng.permutation(len(pool))[:MOST_QUERIES]
        usual = np.empty(len(sizes))
        for s, size in enumerate(sizes):
            masked = pool.take(asked).masked(sample_of_sizes(np.full(len(asked), size), n_columns, rng))
            squared = self.neighbors.squared_distances(masked)
            squared[np.arange(len(asked)), asked] = np.inf
            observed = np.maximum(masked.observed.sum(axis=1), 1)
            nearest = squared.min(axis=1)
            usual[s] = np.quantile(np.sqrt(nearest[np.isfinite(nearest)] / observed[np.isfinite(nearest)]), USUAL)
        # One category more or less than the nearest training row is never a surprise.
        return sizes, np.maximum(usual, np.sqrt(UNRELATED / sizes))
