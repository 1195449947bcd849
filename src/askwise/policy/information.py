"""The information of features about the label, each given those before it, from counts."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

CRITERIA = ("mi", "cmim", "jmi")
MOST_GIVEN = 64
"""Features in the condition; those that come after them hardly add information, and each costs a pass over all."""


def discretized(rows: EncodedRows, y: np.ndarray, schema: Schema, n_bins: int) -> np.ndarray:
    """(N, M) a whole number per feature and row, -1 where the row lacks the feature."""
    levels = np.full((len(rows), len(schema.features)), -1)
    for i, columns in enumerate(schema.feature_columns):
        there = np.flatnonzero(rows.observed[:, columns].any(axis=1))
        cells = rows.values[np.ix_(there, columns)]
        if len(columns) > 1:
            tree = DecisionTreeClassifier(max_leaf_nodes=n_bins, min_samples_leaf=2, random_state=0).fit(
                cells, y[there]
            )
            codes = tree.apply(cells)
        elif schema.is_category[columns[0]]:
            codes = cells[:, 0]
        else:
            codes = np.searchsorted(np.quantile(cells, np.linspace(0, 1, n_bins + 1)[1:-1]), cells[:, 0], side="right")
        levels[there, i] = np.unique(codes, return_inverse=True)[1].reshape(-1)
    return levels


def greedy_order(levels: np.ndarray, y: np.ndarray, prices: Prices, criterion: str) -> np.ndarray:
    """(M,) features by information per price, each given those before it, the first `MOST_GIVEN` of them."""
    n_features, prices = levels.shape[1], prices.weighed
    alone = conditional_information(levels, y, np.zeros(len(y), dtype=int))
    had, order = np.zeros((1, n_features), dtype=bool), []
    given: list[np.ndarray] = []
    for _ in range(n_features):
        worth = alone if not given else np.min(given, axis=0) if criterion == "cmim" else np.mean(given, axis=0)
        price = np.maximum(prices.now(had)[0], np.finfo(float).tiny)
        # Features without information given the others are ranked by their information alone.
        ranked = np.where(had[0], -np.inf, np.where(worth > 0, worth, 1e-9 * alone) / price)
        chosen = int(ranked.argmax())
        order.append(chosen)
        had[0, chosen] = True
        if criterion != "mi" and len(given) < MOST_GIVEN:
            given.append(conditional_information(levels, y, levels[:, chosen]))
    return np.array(order)


def conditional_information(levels: np.ndarray, y: np.ndarray, given: np.ndarray) -> np.ndarray:
    r"""(M,) :math:`I(x_i; y \mid z)` in nats from counts, over the rows with both cells; at least 0.

    `levels` (N, M) and `given` (N,) are whole numbers, -1 = missing. Less the bias of counted entropies by Miller and
    Madow: half the number of occupied cells, signed as the entropies are, per row.
    """
    n_rows, n_features = levels.shape
    n_levels, n_classes = int(levels.max()) + 1, int(y.max()) + 1
    cells = (levels[:, :, None] == np.arange(n_levels)).reshape(n_rows, -1).astype(float)
    condition = (given[:, None] == np.arange(given.max() + 1)).astype(float)
    both = (condition[:, :, None] * (y[:, None, None] == np.arange(n_classes))).reshape(n_rows, -1)
    counts = (cells.T @ both).reshape(n_features, n_levels, -1, n_classes)  # (M, levels of x, of z, classes)
    total = np.maximum(counts.sum(axis=(1, 2, 3)), 1.0)

    def entropy(table: np.ndarray) -> np.ndarray:
        flat = table.reshape(n_features, -1)
        share = flat / total[:, None]
        occupied = (flat > 0).sum(axis=1)
        return -(share * np.log(np.where(flat > 0, share, 1.0))).sum(axis=1) + (occupied - 1) / (2 * total)

    found = entropy(counts.sum(axis=3)) + entropy(counts.sum(axis=1)) - entropy(counts) - entropy(counts.sum((1, 3)))
    return np.maximum(found, 0.0)


def rank_scores(order: np.ndarray) -> np.ndarray:
    """(M,) scores that put the features in this order.

    >>> rank_scores(np.array([2, 0, 1])).tolist()
    [2.0, 1.0, 3.0]
    """
    scores = np.empty(len(order))
    scores[order] = np.arange(len(order), 0, -1)
    return scores
