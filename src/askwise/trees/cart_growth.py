"""How a `SubsetCartClassifier` grows: candidate splits, their expected decrease of impurity, and the finished tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.trees.growth import (
    CELLS_AT_ONCE,
    TIE,
    first_best,
    gini,
    gini_decrease,
    midway,
    over_classes,
    sampled_conditions,
)

if TYPE_CHECKING:
    from askwise.trees.subset_cart import SubsetCartClassifier

LEAF, NO_FEATURE, NO_THRESHOLD = -1, -2, -2.0  # as scikit-learn's trees mark a leaf


@dataclass(frozen=True, eq=False)
class CartTree:
    """Nodes in depth-first order; a leaf has children -1 and feature -2, as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise.trees import SubsetCartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> grown = SubsetCartClassifier(max_depth=1).fit(X, y).tree_
    >>> grown.feature.tolist(), grown.threshold[:1].round(2).tolist()
    ([2, -2, -2], [2.45])
    """

    children_left: np.ndarray  # (nodes,)
    children_right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    impurity: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    value: np.ndarray  # (nodes, 1, C) class shares
    max_depth: int

    @property
    def node_count(self) -> int:
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        return int((self.children_left == LEAF).sum())

    def apply(self, X: np.ndarray) -> np.ndarray:
        """(n,) leaf of each row of X (n, D), which is float32: left where ``x <= threshold``."""
        nodes = np.zeros(len(X), dtype=np.intp)
        rows = np.arange(len(X))
        while True:
            rows = rows[self.children_left[nodes[rows]] != LEAF]
            if not len(rows):
                return nodes
            at = nodes[rows]
            left = X[rows, self.feature[at]] <= self.threshold[at]
            nodes[rows] = np.where(left, self.children_left[at], self.children_right[at])


class TrainingTable:
    """The training rows, each column sorted once and its values numbered from 0 upwards."""

    def __init__(self, X: np.ndarray, by_class: np.ndarray) -> None:
        self.X = np.asfortranarray(X)
        self.by_class = by_class  # (n, C)
        self.weight = by_class.sum(axis=1)
        self.y = by_class.argmax(axis=1)
        self.total = self.weight.sum()
        self.equal = bool((self.weight == 1).all())
        self.order = np.ascontiguousarray(X.argsort(axis=0, kind="stable").T)  # (D, n) row numbers
        numbered = [np.unique(column, return_inverse=True) for column in X.T]
        self.values = [values for values, _ in numbered]
        self.codes = np.column_stack([codes.reshape(-1) for _, codes in numbered])  # (n, D)

    def column_blocks(self) -> Iterator[np.ndarray]:
        n, n_columns = self.X.shape
        width = max(1, CELLS_AT_ONCE // (n * self.by_class.shape[1]))
        for start in range(0, n_columns, width):
            yield np.arange(start, min(start + width, n_columns))


@dataclass
class _Node:
    """A node before it is split: its rows sorted by each column, and its conditions by column."""

    order: np.ndarray  # (D, m)
    depth: int
    parent: int
    codes: dict[int, tuple[int, int]] = field(default_factory=dict)  # column -> first and last code allowed
    satisfied: dict[int, np.ndarray] = field(default_factory=dict)  # column -> (n,) bool, over all training rows


@dataclass
class _Cuts:
    """Candidates for a split, by column and then by threshold: q of them."""

    column: np.ndarray  # (q,)
    threshold: np.ndarray  # (q,)
    left: np.ndarray  # (q, C) class weights of the rows that reach the node
    right: np.ndarray  # (q, C)


class CartGrowth:
    """Grows one tree, depth first."""

    def __init__(self, settings: SubsetCartClassifier, table: TrainingTable, rng: np.random.Generator) -> None:
        self.settings = settings
        self.table = table
        self.rng = rng

    def tree(self) -> CartTree:
        nodes: list[tuple[Any, ...]] = []  # impurity, rows, weight, class shares, split (column, threshold)
        children: dict[tuple[int, int], int] = {}
        waiting = [(_Node(self.table.order, 0, -1), 0)]
        depth = 0
        while waiting:
            node, side = waiting.pop()
            children[node.parent, side] = number = len(nodes)
            depth = max(depth, node.depth)
            counts = self.table.by_class[node.order[0]].sum(axis=0)
            split = self._split(node, counts)
            nodes.append((gini(counts), node.order.shape[1], counts.sum(), counts / counts.sum(), split))
            if split is not None:
                waiting += [(child, side) for side, child in self._children(node, number, *split)]
        return _as_tree(nodes, children, depth)

    def _split(self, node: _Node, counts: np.ndarray) -> tuple[int, float] | None:
        """Column and threshold of the best split; None where the node must be a leaf."""
        at_limit = self.settings.max_depth is not None and node.depth >= self.settings.max_depth
        if at_limit or counts.sum() < self.settings.min_samples_split or gini(counts) <= TIE:
            return None
        kept, share = sampled_conditions(len(node.satisfied), self.settings.n_subsets, self.rng)
        best = (-np.inf, -1, 0.0)
        for columns in self.table.column_blocks():
            cuts = self._cuts(node, columns, counts)
            if len(cuts.column):
                scores = self._expected_decrease(node, cuts, kept, share)
                winner = first_best(scores)
                if scores[winner] > best[0] + TIE:
                    best = (scores[winner], int(cuts.column[winner]), float(cuts.threshold[winner]))
        decrease = best[0] * counts.sum() / self.table.total
        return best[1:] if decrease + TIE >= self.settings.min_impurity_decrease else None

    def _cuts(self, node: _Node, columns: np.ndarray, counts: np.ndarray) -> _Cuts:
        table, least = self.table, self.settings.min_samples_leaf
        order = node.order[columns]  # (d, m)
        values = table.X[order, columns[:, None]]
        left = np.cumsum(table.by_class[order], axis=1)[:, :-1]  # (d, m - 1, C)
        weight = over_classes(left)
        enough = (weight >= least - TIE) & (counts.sum() - weight >= least - TIE)
        at, place = np.nonzero((values[:, 1:] > values[:, :-1]) & enough)
        threshold = midway(values[at, place].astype(float), values[at, place + 1].astype(float))
        return _Cuts(columns[at], threshold, left[at, place], counts - left[at, place])

    def _expected_decrease(self, node: _Node, cuts: _Cuts, kept: np.ndarray, share: np.ndarray) -> np.ndarray:
        """(q,) mean decrease over the subsets, grouped by the conditions that they keep."""
        expected = np.zeros(len(cuts.column))
        bins = None if kept.all() else _Bins(self.table, cuts, node.codes)
        satisfied = np.array(list(node.satisfied.values()))  # (conditions, n)
        for stays, part in zip(kept, share, strict=True):
            if bins is None or stays.all():
                expected += part * gini_decrease(cuts.left, cuts.right)
            else:
                rows = np.flatnonzero(satisfied[stays].all(axis=0))
                expected += part * gini_decrease(*bins.counts(rows))
        return expected

    def _children(self, node: _Node, number: int, column: int, threshold: float) -> Iterator[tuple[int, _Node]]:
        """The right child, then the left one, which is thus popped first."""
        table = self.table
        goes_left = table.X[:, column] <= threshold
        values = table.values[column]
        cut = int(np.searchsorted(values, threshold, side="right"))
        first, last = node.codes.get(column, (0, len(values) - 1))
        before = node.satisfied.get(column)
        for side, goes, codes in ((1, ~goes_left, (cut, last)), (0, goes_left, (first, cut - 1))):
            order = node.order[goes[node.order]].reshape(len(node.order), -1)
            child = _Node(order, node.depth + 1, number)
            if self.settings.n_subsets:
                child.codes = {**node.codes, column: codes}
                child.satisfied = {**node.satisfied, column: goes if before is None else goes & before}
            yield side, child


class _Bins:
    """Class weights on both sides of a node's cuts for any rows, by lookup instead of sorting."""

    def __init__(self, table: TrainingTable, cuts: _Cuts, allowed: dict[int, tuple[int, int]]) -> None:
        self.table = table
        self.columns, start, n_cuts = np.unique(cuts.column, return_index=True, return_counts=True)
        # A column of q cuts has q + 1 bins; the last bin of all takes the values that the node's own range excludes.
        self.first = start + np.arange(len(self.columns))
        self.last = self.first + n_cuts
        self.excluded = int(self.last[-1]) + 1
        self.cut_bins = np.arange(len(cuts.column)) + np.repeat(np.arange(len(self.columns)), n_cuts)
        self.column_of_cut = np.repeat(np.arange(len(self.columns)), n_cuts)
        self.bins = self._bin_of_code(cuts, start, n_cuts, allowed)
        self.place = np.arange(len(self.columns)) * self.bins.shape[1]  # where each column begins in the flat table

    def _bin_of_code(
        self, cuts: _Cuts, start: np.ndarray, n_cuts: np.ndarray, allowed: dict[int, tuple[int, int]]
    ) -> np.ndarray:
        """(d, codes) the bin of each code of each column that has cuts."""
        width = max(len(self.table.values[column]) for column in self.columns)
        passed = np.zeros((len(self.columns), width + 1), dtype=np.intp)
        for at, column in enumerate(self.columns):
            thresholds = cuts.threshold[start[at] : start[at] + n_cuts[at]]
            passed[at, np.searchsorted(self.table.values[column], thresholds, side="right")] = 1
        bins = self.first[:, None] + np.cumsum(passed, axis=1)
        for at, column in enumerate(self.columns):
            first, last = allowed.get(int(column), (0, width))
            bins[at, :first] = bins[at, last + 1 :] = self.excluded
        return bins

    def counts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, C) and (q, C) class weights of `rows` on the left and on the right of each cut."""
        table, n_classes = self.table, self.table.by_class.shape[1]
        every = len(self.columns) == table.codes.shape[1]
        codes = table.codes[rows] if every else table.codes[np.ix_(rows, self.columns)]
        keys = np.take(self.bins, codes + self.place) * n_classes + table.y[rows, None]  # (m, d)
        weights = None if table.equal else np.repeat(table.weight[rows], len(self.columns))  # counting is faster
        counts = np.bincount(keys.ravel(), weights, minlength=(self.excluded + 1) * n_classes)
        upto = np.cumsum(counts.reshape(-1, n_classes), axis=0)
        before = np.where((self.first > 0)[:, None], upto[self.first - 1], 0.0)  # (d, C) all earlier columns
        left = upto[self.cut_bins] - before[self.column_of_cut]
        return left, (upto[self.last] - before)[self.column_of_cut] - left


def _as_tree(nodes: list[tuple[Any, ...]], children: dict[tuple[int, int], int], depth: int) -> CartTree:
    impurity, n_rows, weight, value, splits = zip(*nodes, strict=True)
    numbers = range(len(nodes))
    return CartTree(
        children_left=np.array([LEAF if splits[k] is None else children[k, 0] for k in numbers], dtype=np.intp),
        children_right=np.array([LEAF if splits[k] is None else children[k, 1] for k in numbers], dtype=np.intp),
        feature=np.array([NO_FEATURE if split is None else split[0] for split in splits], dtype=np.intp),
        threshold=np.array([NO_THRESHOLD if split is None else split[1] for split in splits]),
        impurity=np.array(impurity),
        n_node_samples=np.array(n_rows, dtype=np.intp),
        weighted_n_node_samples=np.array(weight),
        value=np.array(value)[:, None, :],
        max_depth=depth,
    )
