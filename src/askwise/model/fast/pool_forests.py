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
NUMBERS_AT_ONCE = 200_000
"""Rows times splits in one block: arrays of this size stay in the processor's cache."""


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
        self.ends = np.cumsum([len(forest.trees) for forest in forests])
        n_nodes = np.array([tree.node_count for tree in trees])
        start = np.cumsum(n_nodes) - n_nodes

        def of_nodes(name: str) -> np.ndarray:
            return np.concatenate([getattr(tree, name) for tree in trees])

        tree, is_leaf = np.repeat(np.arange(len(trees)), n_nodes), of_nodes("children_left") < 0
        splits, leaves = np.flatnonzero(~is_leaf), np.flatnonzero(is_leaf)
        self.values = np.concatenate([forest.values for forest in forests])[leaves]  # (leaves, C), tree by tree
        self.first_leaf = np.searchsorted(tree[leaves], np.arange(len(trees)))[:, None]
        number = np.arange(len(leaves)) - self.first_leaf[tree[leaves], 0]  # within the tree
        left, right = (start[tree[splits]] + of_nodes(f"children_{side}")[splits] for side in ("left", "right"))
        below = np.zeros(len(tree), dtype=np.uint64)  # the leaves below each node, as bits
        below[leaves] = np.left_shift(np.uint64(1), number.astype(np.uint64))
        while not below[splits].all():  # from the leaves upwards
            known = (below[left] > 0) & (below[right] > 0)
            below[splits[known]] = below[left[known]] | below[right[known]]
        self.kind: Any = np.uint32 if number.max() < 32 else np.uint64
        self.every = below[start].astype(self.kind)  # (T,) all leaves of each tree
        self.without_left, self.without_right = ((~below[child]).astype(self.kind) for child in (left, right))
        self.tree = tree[splits]
        self.first_split = np.flatnonzero(np.diff(self.tree, prepend=-1))
        self.split = self.tree[self.first_split]  # the trees that have splits
        self.step = max(1, NUMBERS_AT_ONCE // max(1, len(splits)))  # rows that are compared with all splits at a time
        self.feature, self.threshold = of_nodes("feature")[splits], of_nodes("threshold")[splits]
        self.missing_left = of_nodes("missing_go_to_left")[splits].astype(bool)
        self.of_pool = self._by_column(pool.values.astype(np.float32))  # (D, N, T); trees compare single precision

    def __call__(self, rows: EncodedRows, index: np.ndarray) -> np.ndarray:
        """(n, K, outputs) the answers on the completions of each row from the pool rows `index` (n, K)."""
        with np.errstate(over="ignore"):
            cells = rows.values.astype(np.float32)
        if np.isinf(cells).any():
            self.model(rows.filled(self.filler))  # its error says what is wrong
        own = self._by_observed(cells)
        answers = np.empty((*index.shape, len(self.ends) * self.values.shape[1]))
        for r, at in enumerate(index):
            remaining = np.repeat(own[[r]], len(at), axis=0)  # (K, T)
            of_column = np.empty_like(remaining)
            for j in np.flatnonzero(~rows.observed[r]).tolist():
                remaining &= self.of_pool[j].take(at, axis=0, out=of_column, mode="clip")
            remaining -= self.kind(1)  # one bit was left: now as many are set as there are leaves before it
            leaves = np.add(np.bitwise_count(remaining).T, self.first_leaf, dtype=np.intp)  # (T, K)
            of_forests = np.split(leaves, self.ends[:-1])
            answers[r] = np.hstack([self.values.take(part, axis=0).sum(axis=0) / len(part) for part in of_forests])
        return answers

    def _by_column(self, cells: np.ndarray) -> np.ndarray:
        """(D, N, T) the leaves that the value of each column leaves possible, for rows (N, D); NaN is missing."""
        found = np.full((cells.shape[1], len(cells), len(self.every)), ~self.kind(0))
        order = np.lexsort((self.tree, self.feature))
        tree, feature = self.tree[order], self.feature[order]
        first = np.flatnonzero((np.diff(tree, prepend=-1) != 0) | (np.diff(feature, prepend=-1) != 0))
        for part in (slice(start, start + self.step) for start in range(0, len(cells), self.step)):
            seen = cells[part, feature]
            goes_left = (seen <= self.threshold[order]) | (np.isnan(seen) & self.missing_left[order])
            possible = np.where(goes_left, self.without_right[order], self.without_left[order])
            found[feature[first], part, tree[first]] = np.bitwise_and.reduceat(possible, first, axis=1).T
        return found

    def _by_observed(self, cells: np.ndarray) -> np.ndarray:
        """(n, T) the leaves that the observed values of rows (n, D) leave possible together; NaN is not observed."""
        found = np.repeat(self.every[None], len(cells), axis=0)
        hidden = np.where(np.isnan(cells), ~self.kind(0), self.kind(0))
        for part in (slice(start, start + self.step) for start in range(0, len(cells), self.step)):
            goes_left = cells[part].take(self.feature, axis=1) <= self.threshold
            possible = np.where(goes_left, self.without_right, self.without_left)
            possible |= hidden[part].take(self.feature, axis=1)
            found[part, self.split] &= np.bitwise_and.reduceat(possible, self.first_split, axis=1)
        return found


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
