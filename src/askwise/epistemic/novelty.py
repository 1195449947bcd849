"""Novelty: cells outside their training range, and cases far from every training row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askwise.predict.base import SubsetPredictor
from askwise.predict.similarity import UNRELATED, Neighbors
from askwise.table.columns import plain
from askwise.table.rows import EncodedRows

MARGIN, TAIL = 0.25, 0.05
"""A number is far outside when it is beyond its training range by more than a share of `MARGIN` of the range, and by
more than the width of the tail, which holds a share of `TAIL` of its distinct values: a long tail has no sharp end."""

USUAL = 0.99
"""Share of the training rows whose distance to the others counts as usual."""

MOST_ROWS, FEWEST_QUERIES, MOST_QUERIES, MOST_SIZES, MOST_CELLS = 1000, 30, 200, 6, 30_000_000


def unlike_training(outside: Sequence[Mapping[str, Any]], novelty: Any) -> str:
    """How a case is unlike everything seen in training, in words; "" where it is not.

    Parameters
    ----------
    outside
        Its cells far outside of their training range, as `Novelty.describe` lists them.
    novelty
        Its `Novelty.excess`; None or NaN = not measured, "infinite" as in a report.

    Examples
    --------
    >>> unlike_training([{"column": "pulse"}], 2.0), unlike_training([], 0.0)
    ("the value of 'pulse' is outside of everything seen in training", '')
    """
    if outside:
        return f"the value of {outside[0]['column']!r} is outside of everything seen in training"
    if novelty is None or (novelty != "infinite" and not novelty > 0):
        return ""
    return "the case as a whole is unlike everything seen in training"


class Novelty:
    """How far cases are outside of everything seen in training; 0 within it.

    The distance of a case to its nearest training row, over the observed columns, is compared with what is usual among
    the training rows for the same number of columns; each cell far outside its training range adds to it. See `excess`.

    Parameters
    ----------
    predictor
        A fitted predictor, which has the training rows.
    seed
        Seed of the rows and subsets from which the usual distances are estimated.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise.epistemic import Novelty
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ImputedPredictor(model).fit(X, y)
    >>> rows = predictor.schema_.encode([[5.0, 3.0, 1.5, 0.2], [50.0, 3.0, 1.5, 0.2]])
    >>> near, far = Novelty(predictor).excess(rows)
    >>> bool(near < 1 < far)
    True
    """

    def __init__(self, predictor: SubsetPredictor, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        rows, self.schema = predictor.training_rows_, predictor.schema_
        self.low, tail_below, tail_above, self.high = _ranges(rows)
        with np.errstate(over="ignore"):
            spread = self.high - self.low
            self.spread = np.where(spread > 0, spread, np.maximum(np.abs(self.low), 1.0))
            self.lowest = self.low - np.maximum(MARGIN * self.spread, tail_below - self.low)
            self.highest = self.high + np.maximum(MARGIN * self.spread, self.high - tail_above)
        self.n_known = np.array([len(column.known) for column in self.schema.columns])
        self.neighbors, position = self._search(predictor, rng)
        self.sizes, self.usual = self._usual_distances(rows, position, rng)

    def outside(self, rows: EncodedRows) -> np.ndarray:
        """(n, D) how far each cell is outside its training range: 0 within, 1 for an unseen category."""
        with np.errstate(over="ignore"):
            beyond = np.maximum(self.lowest - rows.values, rows.values - self.highest) / self.spread
        unseen = rows.values >= self.n_known
        return np.nan_to_num(np.where(self.schema.is_category, unseen, np.maximum(beyond, 0.0)), posinf=np.inf)

    def excess(self, rows: EncodedRows, distances: np.ndarray | None = None) -> np.ndarray:
        """(n,) 0 for a case within what was seen, growing without bound outside.

        Parameters
        ----------
        distances
            (n, N) squared distances to the rows of `neighbors`, if already computed.
        """
        return np.maximum(self._ratio(rows, distances) - 1, 0.0) + self.outside(rows).sum(axis=1)

    def relative(self, rows: EncodedRows) -> np.ndarray:
        """(n,) `excess` that also tells cases apart that are within what was seen: above 1, where that is above 0."""
        return self._ratio(rows, None) + self.outside(rows).sum(axis=1)

    def _ratio(self, rows: EncodedRows, distances: np.ndarray | None) -> np.ndarray:
        """(n,) the distance to the nearest training row, divided by what is usual for as many columns."""
        squared = self.neighbors.squared_distances(rows) if distances is None else distances
        size = rows.observed.sum(axis=1)
        distance = np.sqrt(squared.min(axis=1) / np.maximum(size, 1))
        return np.asarray(distance / np.interp(size, self.sizes, self.usual))

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

    def _search(self, predictor: SubsetPredictor, rng: np.random.Generator) -> tuple[Neighbors, np.ndarray]:
        """The predictor's pool of training rows, or a sample of them; and the position of each row in it, -1 = none."""
        if hasattr(predictor, "neighbors_"):
            return predictor.neighbors_, predictor.pool_position_
        rows = predictor.training_rows_
        pooled = rng.permutation(len(rows))[:MOST_ROWS]
        position = np.full(len(rows), -1)
        position[pooled] = np.arange(len(pooled))
        return Neighbors(rows.take(pooled), self.schema.is_category, 1, 1.0), position

    def _usual_distances(
        self, rows: EncodedRows, position: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of observed columns, and for each a high quantile of the training rows' distances to the nearest row.

        The columns of each row of a sample are revealed in a random order.
        """
        n_columns, n_pool = rows.values.shape[1], len(self.neighbors.scores)
        n_asked = min(MOST_QUERIES, max(MOST_CELLS // (n_pool * n_columns), FEWEST_QUERIES))
        asked = rng.permutation(len(rows))[:n_asked]
        own, rows = position[asked], rows.take(asked)
        squared, covered = np.zeros((len(asked), n_pool)), np.zeros(rows.values.shape, dtype=bool)
        squared[own >= 0, own[own >= 0]] = np.inf
        order = np.where(rows.observed, rng.random(rows.values.shape), np.inf).argsort(axis=1).argsort(axis=1)
        counts, nearest = [], []
        for size in np.unique(np.linspace(1, n_columns, min(n_columns, MOST_SIZES)).astype(int)):
            shown = rows.masked(order < size)
            squared = self.neighbors.squared_distances(shown, squared, covered)
            covered = shown.observed
            counts.append(covered.sum(axis=1))
            nearest.append(squared.min(axis=1))
        return _usual(np.concatenate(counts), np.concatenate(nearest))


def _ranges(rows: EncodedRows) -> np.ndarray:
    """(4, D) lowest value of each column, where its lower and its upper tail begin, and its highest value."""
    present = [np.unique(cells[there]) for cells, there in zip(rows.values.T, rows.observed.T, strict=True)]
    return np.transpose([np.quantile(values, [0.0, TAIL, 1 - TAIL, 1.0]) for values in present])


def _usual(counts: np.ndarray, nearest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of columns, and the usual root mean square distance for each; rows with similar numbers are pooled.

    A difference of one category from the nearest training row is always usual.
    """
    sizes, usual = [], []
    ends = np.unique(np.quantile(counts[counts > 0], np.linspace(0, 1, 2 * MOST_SIZES), method="nearest"))
    for low, high in zip([0, *ends[:-1]], ends, strict=True):
        group = (counts > low) & (counts <= high) & np.isfinite(nearest)
        if group.any():
            sizes.append(counts[group].mean())
            usual.append(np.quantile(np.sqrt(nearest[group] / counts[group]), USUAL))
    if not sizes:  # a pool of one row
        sizes, usual = [1.0], [0.0]
    return np.array(sizes), np.maximum(usual, np.sqrt(UNRELATED / np.array(sizes)))
