"""Completions of records: missing cells drawn given the recorded ones and the label, by chained regressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import KDTree

from askwise.predict.similarity import normal_scores
from askwise.table.schema import Schema

SWEEPS = 5
"""Times that every feature is drawn again, given the others as they are then."""
N_DONORS = 5
"""Rows that are predicted most alike, of which one lends its cells."""
RIDGE = 1.0
MOST_CATEGORIES = 20
"""Categories of a column that a regression tells apart, the most frequent ones."""


class Describer:
    """Encoded rows as numbers for regressions: normal scores of numbers, a column for each category, 0 where hidden."""

    def __init__(self, values: np.ndarray, is_category: np.ndarray) -> None:
        self.is_category = is_category
        self._grids: list[np.ndarray] = []
        for j, category in enumerate(is_category):
            cells = values[~np.isnan(values[:, j]), j]
            if category:
                codes, counts = np.unique(cells, return_counts=True)
                self._grids.append(codes[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]])
            else:
                self._grids.append(np.unique(cells))
        self._scores: list[tuple[np.ndarray, np.ndarray] | None] = [
            None if category or not len(grid) else normal_scores(values[~np.isnan(values[:, j]), j])
            for j, (category, grid) in enumerate(zip(is_category, self._grids, strict=True))
        ]
        widths = [len(grid) if category else 1 for category, grid in zip(is_category, self._grids, strict=True)]
        ends = np.cumsum(widths)
        self.blocks = [np.arange(end - width, end) for end, width in zip(ends, widths, strict=True)]
        self.width = int(ends[-1]) if len(ends) else 0

    def describe(self, values: np.ndarray) -> np.ndarray:
        """(n, D) encoded cells -> (n, P)."""
        found = np.zeros((len(values), self.width))
        for j, block in enumerate(self.blocks):
            found[:, block] = self.column(j, values[:, j])
        return found

    def column(self, j: int, cells: np.ndarray) -> np.ndarray:
        """(n, p) numbers for the cells (n,) of one column."""
        if self.is_category[j]:
            return (cells[:, None] == self._grids[j]).astype(float)
        scores = self._scores[j]
        if scores is None:
            return np.zeros((len(cells), 1))
        return np.nan_to_num(np.interp(cells, *scores))[:, None]


def one_hot(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """(n, C) a column for each class."""
    return (labels[:, None] == np.arange(n_classes)).astype(float)


def completions(
    values: np.ndarray,
    lacking: np.ndarray,
    labels: np.ndarray | None,
    schema: Schema,
    n_draws: int,
    seed: int,
    donors: tuple[np.ndarray, np.ndarray | None] | None = None,
) -> np.ndarray:
    """(draws, n, D) rows whose features `lacking` (n, M) are drawn given the recorded cells and the label.

    Feature by feature, several times over: a ridge regression on all other cells and the label, fitted on a bootstrap
    sample of the rows that have the feature, predicts it for all rows; the cells are then those of one of the rows that
    are predicted most alike. Cells of a group stay together, and every value is one that occurs.

    Parameters
    ----------
    values
        (n, D) encoded records, NaN where a cell is missing.
    lacking
        (n, M) features to draw; others that are missing stay so.
    labels
        (n,) positions of classes; None = drawn without them.
    donors
        Further rows (N, D) and their labels (N,).
    """
    n, rng = len(values), np.random.default_rng(seed)
    more = np.empty((0, values.shape[1])) if donors is None else donors[0]
    everyone = np.concatenate([values, more])
    observed = schema.any_column(~np.isnan(everyone))
    # Rows of the pool lack what they lack; of the records, only what is to be drawn.
    wanted = np.concatenate([lacking, ~observed[n:]])
    has = observed & ~wanted
    describer = Describer(everyone, schema.is_category)
    classes = None
    if labels is not None:
        known = labels if donors is None or donors[1] is None else np.concatenate([labels, donors[1]])
        classes = one_hot(known, int(known.max()) + 1)
    to_draw = [j for j in np.argsort(wanted.sum(axis=0), kind="stable") if wanted[:, j].any() and has[:, j].any()]
    drawn = []
    for _ in range(n_draws):
        now = everyone.copy()
        for j in to_draw:
            columns, open_ = schema.feature_columns[j], np.flatnonzero(wanted[:, j])
            now[np.ix_(open_, columns)] = now[np.ix_(rng.choice(np.flatnonzero(has[:, j]), len(open_)), columns)]
        described = describer.describe(now)
        for _ in range(SWEEPS):
            for j in to_draw:
                columns = schema.feature_columns[j]
                own = np.concatenate([describer.blocks[c] for c in columns])
                given = np.delete(described, own, axis=1)
                given = given if classes is None else np.column_stack([given, classes])
                source, open_ = np.flatnonzero(has[:, j]), np.flatnonzero(wanted[:, j])
                sample = rng.choice(source, len(source))
                predicted = ridge(given[sample], described[sample][:, own])(given)
                k = min(N_DONORS, len(source))
                near = KDTree(predicted[source]).query(predicted[open_], k=k)[1].reshape(len(open_), k)
                chosen = source[near[np.arange(len(open_)), rng.integers(k, size=len(open_))]]
                now[np.ix_(open_, columns)] = now[np.ix_(chosen, columns)]
                described[np.ix_(open_, own)] = described[np.ix_(chosen, own)]
        drawn.append(now[:n])
    return np.stack(drawn)


def ridge(given: np.ndarray, target: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A ridge regression with an intercept that is not shrunk, as a function of what is given."""
    center, mean = given.mean(axis=0), target.mean(axis=0)
    spread = given.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    scaled = (given - center) / spread
    gram = scaled.T @ scaled
    gram[np.diag_indices_from(gram)] += RIDGE
    slope = np.linalg.solve(gram, scaled.T @ (target - mean))
    return lambda new: mean + ((new - center) / spread) @ slope
