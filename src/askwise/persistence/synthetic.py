"""A model of a table, to draw rows that are like the training rows and are none of them."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from askwise.predict.similarity import normal_scores
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

MOST_LEVELS = 20
"""A number with no more distinct values than this is drawn from these; any other between its observed values."""

FEWEST_ROWS = 20
"""A class with fewer rows takes the distributions of all rows."""


class TableModel:
    r"""A Gaussian copula for each class: :math:`x_j = F_j^{-1}(\Phi(z_j))` with :math:`z \sim N(0, R)`.

    The distributions :math:`F_j` of the columns are the observed ones, interpolated between values. Categories are
    put in the order of the wrapped model's mean answer. Whether a cell is missing is one more column of 0 and 1. The
    correlations :math:`R` of a class are those of its normal scores, shrunk towards those of all rows.

    Parameters
    ----------
    rows, y
        Encoded training rows, and the class position of each.
    answers
        (N, C) what the wrapped model predicts for the rows; orders the categories.
    schema
        The columns.
    """

    def __init__(self, rows: EncodedRows, y: np.ndarray, answers: np.ndarray, schema: Schema) -> None:
        self.schema = schema
        self.n_columns = len(schema.columns)
        self._order = _category_orders(rows, _direction(answers), schema.is_category)
        values = self._ranked(rows.values)
        lacking = np.flatnonzero(~rows.observed.all(axis=0))
        self._lacking = lacking
        cells = np.hstack([values, (~rows.observed[:, lacking]).astype(float)])
        everything = _correlations(_normal_scores(cells))
        self.frequencies = np.bincount(y, minlength=answers.shape[1]) / len(y)
        self._correlations: list[np.ndarray] = []
        self._cells: list[list[np.ndarray]] = []
        for label in range(answers.shape[1]):
            own = cells[y == label] if (y == label).sum() >= FEWEST_ROWS else cells
            weight = len(own) / (len(own) + 2 * cells.shape[1])
            mixed = weight * _correlations(_normal_scores(own)) + (1 - weight) * everything
            self._correlations.append(_positive_definite(mixed))
            present = [column[~np.isnan(column)] for column in own.T]
            complete = [
                part if len(part) else whole[~np.isnan(whole)] for part, whole in zip(present, cells.T, strict=True)
            ]
            self._cells.append([np.sort(part) for part in complete])

    def draw(self, n: int, rng: np.random.Generator) -> tuple[EncodedRows, np.ndarray]:
        """`n` encoded rows and their class positions."""
        y = rng.choice(len(self.frequencies), size=n, p=self.frequencies)
        values = np.empty((n, self.n_columns))
        for label in np.unique(y):
            of_class = np.flatnonzero(y == label)
            values[of_class] = self._drawn(int(label), len(of_class), rng)
        for j in np.flatnonzero(np.isnan(values).all(axis=0)):  # a column needs one value at least
            values[0, j] = np.median(self._cells[int(y[0])][j])
        return EncodedRows(self._unranked(values)), y

    def _drawn(self, label: int, n: int, rng: np.random.Generator) -> np.ndarray:
        correlations = self._correlations[label]
        normal = rng.standard_normal((n, len(correlations))) @ np.linalg.cholesky(correlations).T
        shares = ndtr(normal)
        cells = np.column_stack([self._quantiles(label, k, shares[:, k]) for k in range(shares.shape[1])])
        values, missing = cells[:, : self.n_columns], cells[:, self.n_columns :] > 0
        values[:, self._lacking] = np.where(missing, np.nan, values[:, self._lacking])
        return values

    def _quantiles(self, label: int, k: int, shares: np.ndarray) -> np.ndarray:
        cells = self._cells[label][k]
        few = len(np.unique(cells)) <= MOST_LEVELS
        if few or k >= self.n_columns or self.schema.is_category[k]:
            return np.quantile(cells, shares, method="inverted_cdf")
        between = np.quantile(cells, shares)
        return np.rint(between) if (cells == np.rint(cells)).all() else between

    def _ranked(self, values: np.ndarray) -> np.ndarray:
        """Values with categories as ranks in the chosen order."""
        ranked = values.copy()
        for j, order in self._order.items():
            there = ~np.isnan(values[:, j])
            ranked[there, j] = np.argsort(order)[values[there, j].astype(int)]
        return ranked

    def _unranked(self, values: np.ndarray) -> np.ndarray:
        codes = values.copy()
        for j, order in self._order.items():
            there = ~np.isnan(values[:, j])
            codes[there, j] = order[values[there, j].astype(int)]
        return codes


def _direction(answers: np.ndarray) -> np.ndarray:
    """(N,) the answers along the direction in which they vary most."""
    centered = answers - answers.mean(axis=0)
    return np.asarray(centered @ np.linalg.svd(centered, full_matrices=False)[2][0])


def _category_orders(rows: EncodedRows, direction: np.ndarray, is_category: np.ndarray) -> dict[int, np.ndarray]:
    """For each column of categories, the codes in the order of the mean of `direction` over their rows."""
    orders = {}
    for j in np.flatnonzero(is_category):
        there = rows.observed[:, j]
        codes = rows.values[there, j].astype(int)
        counts = np.bincount(codes)
        orders[int(j)] = np.argsort(np.bincount(codes, direction[there]) / np.maximum(counts, 1), kind="stable")
    return orders


def _normal_scores(cells: np.ndarray) -> np.ndarray:
    """The normal score of the middle rank of each cell; NaN stays NaN."""
    scores = np.full(cells.shape, np.nan)
    for k, column in enumerate(cells.T):
        there = ~np.isnan(column)
        if there.any():
            scores[there, k] = np.interp(column[there], *normal_scores(column[there]))
    return scores


def _correlations(scores: np.ndarray) -> np.ndarray:
    """Correlations over the rows that have both cells; 0 where there are too few, or no variation."""
    there = ~np.isnan(scores)
    deviation = np.nanstd(np.where(there.any(axis=0), scores, 0.0), axis=0)
    filled = np.where(there, scores, 0.0) / np.where(deviation > 0, deviation, 1.0)
    both = there.T.astype(float) @ there
    found = np.where(both > 3, (filled.T @ filled) / np.maximum(both, 1.0), 0.0)
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)


def _positive_definite(correlations: np.ndarray) -> np.ndarray:
    """The correlations with negative eigenvalues raised to a small positive one, scaled back to a diagonal of ones."""
    values, vectors = np.linalg.eigh(correlations)
    raised = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    scale = np.sqrt(np.diag(raised))
    return np.asarray(raised / np.outer(scale, scale))
