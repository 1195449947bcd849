"""Forests on completions of a case, without sending each completion down each tree.

As in `pool_trees`, each leaf of a tree has a bit. What the value of a column leaves possible of all trees is stored
once for each pool row. For a completion, the leaf of each tree is what the case's own values and the pool row's values
of the other columns leave possible together. The trees are summed in their order, so the numbers are the forest's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from askwise.model.fast.forests import TreeByTree
from askwise.model.wrapped import LARGEST_SINGLE
from askwise.table.rows import EncodedRows

MOST_LEAVES = 64
MOST_COLUMNS = 50
"""Of tables with more columns, sending completions down the trees takes no longer."""
MOST_BYTES = 256 * 2**20
"""Memory for the leaves that the values of pool rows leave possible."""


class PoolForests:
    """The answers of forests on completions from a pool.

    Parameters
    ----------
    model
        The wrapped model, alone or stacked with its members, all of which are forests that take cells as they are.
    forests
        The same ones.
    pool
        The pool rows, complete where the forests need that.
    """

    def __init__(self, model: Any, forests: Sequence[TreeByTree], pool: EncodedRows) -> None:
        self.model, self.filler = model, pool.values[0]
        trees = [tree for forest in forests for tree in forest.trees]
        self.n_trees = len(trees)
        self.ends = np.cumsum([len(forest.trees) for forest in forests])
        n_nodes = np.array([tree.node_count for tree in trees])
        start = np.cumsum(n_nodes) - n_nodes

        def of_nodes(name: str) -> np.ndarray:
            return np.concatenate([getattr(tree, name) for tree in trees])

        tree, is_leaf = np.repeat(np.arange(len(trees)), n_nodes), of_nodes("children_left") < 0
        splits, leaves = np.flatnonzero(~is_leaf), np.flatnonzero(is_leaf)
        self.values = np.concatenate([forest.values for forest in forests])[leaves]  # (leaves, C), tree by tree
        self.first_leaf = np.searchsorted(tree[leaves], np.arange(len(trees)))
        left, right = (start[tree[splits]] + of_nodes(f"children_{side}")[splits] for side in ("left", "right"))
        number = np.arange(len(leaves)) - self.first_leaf[tree[leaves]]  # within the tree
        below = np.zeros(len(tree), dtype=np.uint64)
        below[leaves] = np.left_shift(np.uint64(1), number.astype(np.uint64))
        _add_leaves_below(below, splits, left, right)
        most = int(number.max()) + 1
        self.kind: Any = np.uint32 if most <= 32 else np.uint64
        self.every = below[start].astype(self.kind)  # (T,) all leaves of each tree
        self.without_left, self.without_right = ((~below[child]).astype(self.kind) for child in (left, right))
        self.tree = tree[splits]
        self.feature, self.threshold = of_nodes("feature")[splits], of_nodes("threshold")[splits]
        self.missing_left = of_nodes("missing_go_to_left")[splits].astype(bool)
        cells = pool.values.astype(np.float32)
        columns = [np.flatnonzero(self.feature == j) for j in range(cells.shape[1])]
        self.of_pool = [self._possible(cells, splits_of_column) for splits_of_column in columns]  # D times (N, T)

    def __call__(self, rows: EncodedRows, index: np.ndarray) -> np.ndarray:
        """(n, K, outputs) the answers on the completions of each row from the pool rows `index` (n, K)."""
        with np.errstate(over="ignore"):
            cells = rows.values.astype(np.float32)  # as trees compare them
        if np.isinf(cells).any():
            self.model(rows.filled(self.filler))  # its error says what is wrong
        answers = np.empty((*index.shape, len(self.ends) * self.values.shape[1]))
        for r, observed in enumerate(rows.observed):
            own = self.every & self._possible(cells[[r]], np.flatnonzero(observed[self.feature]))
            remaining = np.repeat(own, index.shape[1], axis=0)  # (K, T)
            of_column = np.empty_like(remaining)
            for j in np.flatnonzero(~observed).tolist():
                remaining &= self.of_pool[j].take(index[r], axis=0, out=of_column, mode="clip")
            answers[r] = self._answers(remaining)
        return answers

    def _possible(self, cells: np.ndarray, splits: np.ndarray) -> np.ndarray:
        """(n, T) the leaves that some of the splits, ascending, leave possible for rows of cells (n, D)."""
        found = np.full((len(cells), self.n_trees), ~self.kind(0))
        if len(splits):
            seen, tree = cells[:, self.feature[splits]], self.tree[splits]
            goes_left = seen <= self.threshold[splits]
            if np.isnan(cells).any():
                goes_left |= np.isnan(seen) & self.missing_left[splits]
            possible = np.where(goes_left, self.without_right[splits], self.without_left[splits])
            starts = np.flatnonzero(np.append(True, tree[1:] != tree[:-1]))
            found[:, tree[starts]] = np.bitwise_and.reduceat(possible, starts, axis=1)
        return found

    def _answers(self, remaining: np.ndarray) -> np.ndarray:
        """(K, outputs) the mean over the trees of each forest of the values of their `remaining` leaves (K, T)."""
        number = np.bitwise_count(remaining - self.kind(1))  # one bit is left: as many are below it as leaves before
        of_forests = np.split(np.add(number.T, self.first_leaf[:, None], dtype=np.intp), self.ends[:-1])  # (T, K)
        return np.hstack([self.values.take(part, axis=0).sum(axis=0) / len(part) for part in of_forests])


def pool_forests(model: Any, models: Sequence[Any], pool: EncodedRows) -> PoolForests | None:
    """The wrapped model, alone or stacked with its members, on a pool; None where that is impossible or no faster.

    All `models`, which `prepared_alike` has found, must be forests of small trees that take cells as they are.
    """
    forests = [one.forest for one in models if one.takes_cells]
    if len(forests) < len(models) or pool.values.shape[1] > MOST_COLUMNS:
        return None
    trees = [tree for forest in forests for tree in forest.trees]
    if max(tree.n_leaves for tree in trees) > MOST_LEAVES or 8 * len(trees) * pool.values.size > MOST_BYTES:
        return None
    usable = np.abs(pool.values) <= LARGEST_SINGLE
    if all(forest.takes_missing for forest in forests):
        usable |= ~pool.observed
    return PoolForests(model, forests, pool) if usable.all() else None


def _add_leaves_below(below: np.ndarray, splits: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Set `below` (nodes,), the leaves below each node as bits, of splits with the nodes `left` and `right` of them."""
    while len(splits):
        known = (below[left] > 0) & (below[right] > 0)
        below[splits[known]] = below[left[known]] | below[right[known]]
        splits, left, right = splits[~known], left[~known], right[~known]
