"""How a `FuzzyTreeClassifier` grows: memberships of the training rows, candidate splits, and the leaves as rules."""

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
    over_classes,
    sampled_conditions,
)
from askwise.trees.partitions import Partition

if TYPE_CHECKING:
    from askwise.trees.fuzzy_tree import FuzzyTreeClassifier

T_NORMS = {"product": np.multiply, "minimum": np.minimum}


@dataclass(frozen=True, eq=False)
class FuzzyRule:
    """A leaf: "if column j is one of its terms first..last, for each j in `ranges`, then the classes are `value`".

    Attributes
    ----------
    ranges
        Column number -> first and last term.
    value
        (C,) class shares of the training rows, each counted with its membership.
    weight
        Sum of the training rows' memberships.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise.trees import FuzzyTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> rule = FuzzyTreeClassifier(max_depth=1, random_state=0).fit(X, y).rules_[0]
    >>> rule.ranges, rule.value.round(1).tolist()
    ({2: (0, 0)}, [1.0, 0.0, 0.0])
    """

    ranges: dict[int, tuple[int, int]]
    value: np.ndarray
    weight: float


class Slopes:
    """Memberships of the training rows in all ranges, as differences of columns of one table (`Partition.slopes`)."""

    def __init__(self, X: np.ndarray, partitions: list[Partition]) -> None:
        self.n_terms = np.array([len(partition) for partition in partitions])
        self.start = np.cumsum(self.n_terms + 1) - (self.n_terms + 1)  # where each column's slopes begin
        self.table = np.hstack([partition.slopes(x) for partition, x in zip(partitions, X.T, strict=True)])

    def membership(self, column: int, first: int, last: int) -> np.ndarray:
        """(n,) membership of each row in the terms first..last of a column."""
        start = self.start[column]
        return self.table[:, start + first] - self.table[:, start + last + 1]


@dataclass
class _Node:
    """A node before it is split: its range of terms and the rows' memberships in it, for each column on its path."""

    depth: int = 0
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    factors: dict[int, np.ndarray] = field(default_factory=dict)  # (n,) each


@dataclass
class _Cuts:
    """Candidates for a split, by column and then by term: the left side ends with term `last_left`."""

    column: np.ndarray  # (q,)
    last_left: np.ndarray
    first: np.ndarray  # the column's range in the node
    last: np.ndarray

    def __getitem__(self, which: Any) -> _Cuts:
        return _Cuts(self.column[which], self.last_left[which], self.first[which], self.last[which])


class FuzzyGrowth:
    """Grows one tree, depth first."""

    def __init__(
        self, settings: FuzzyTreeClassifier, slopes: Slopes, by_class: np.ndarray, rng: np.random.Generator
    ) -> None:
        self.settings = settings
        self.slopes = slopes
        self.by_class = by_class  # (n, C)
        self.total = by_class.sum()
        self.t_norm = T_NORMS[settings.t_norm]
        self.rng = rng

    def leaves(self) -> Iterator[tuple[FuzzyRule, int]]:
        """Each leaf and its depth, from left to right."""
        waiting = [_Node()]
        while waiting:
            node = waiting.pop()
            counts = self._combined(node.factors.values()) @ self.by_class
            split = self._split(node, counts)
            if split is None:
                yield FuzzyRule(node.ranges, counts / counts.sum(), float(counts.sum())), node.depth
            else:
                waiting += self._children(node, *split)

    def _combined(self, factors: Any) -> np.ndarray:
        """(n,) t-norm of memberships; 1 where there are none."""
        together = np.ones(len(self.by_class))
        for factor in factors:
            together = self.t_norm(together, factor)
        return together

    def _split(self, node: _Node, counts: np.ndarray) -> tuple[int, int] | None:
        """Column, and last term of the left side, of the best split; None where the node must be a leaf."""
        at_limit = self.settings.max_depth is not None and node.depth >= self.settings.max_depth
        cuts = self._cuts(node)
        if at_limit or not len(cuts.column) or gini(counts) <= TIE:
            return None
        used = list(node.ranges)
        left, right = self._sides(node, cuts, used)
        smaller = np.minimum(over_classes(left), over_classes(right))
        allowed = (smaller >= self.settings.min_weight_leaf - TIE) & (smaller > TIE)
        if not allowed.any():
            return None
        kept, share = sampled_conditions(len(used), self.settings.n_subsets, self.rng)
        expected = np.zeros(len(allowed))
        for stays, part in zip(kept, share, strict=True):
            sides = (left, right) if stays.all() else self._sides(node, cuts, [used[k] for k in np.flatnonzero(stays)])
            expected += part * gini_decrease(*sides)
        best = first_best(np.where(allowed, expected, -np.inf))
        decrease = expected[best] * counts.sum() / self.total
        if decrease + TIE < self.settings.min_impurity_decrease:
            return None
        return int(cuts.column[best]), int(cuts.last_left[best])

    def _cuts(self, node: _Node) -> _Cuts:
        n_terms = self.slopes.n_terms
        first, last = np.zeros(len(n_terms), dtype=np.intp), n_terms - 1
        for j, (low, high) in node.ranges.items():
            first[j], last[j] = low, high
        terms = np.arange(n_terms.max())
        column, last_left = np.nonzero((first[:, None] <= terms) & (terms < last[:, None]))
        return _Cuts(column, last_left, first[column], last[column])

    def _sides(self, node: _Node, cuts: _Cuts, used: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """(q, C) and (q, C) class weights left and right of each cut, under the node's conditions on `used` columns.

        The condition on the cut's own column is the range that the cut divides, so it is not among the others.
        """
        left, right = np.empty((2, len(cuts.column), self.by_class.shape[1]))
        own = np.isin(cuts.column, used)
        batches = [(np.flatnonzero(~own), used)]
        batches += [(np.flatnonzero(cuts.column == j), [i for i in used if i != j]) for j in used]
        for which, others in batches:
            rest = self._combined(node.factors[j] for j in others)
            rows = np.flatnonzero(rest)
            width = max(1, CELLS_AT_ONCE // len(rows))
            for some in np.split(which, range(width, len(which), width)):
                left[some], right[some] = self._weigh(rows, rest[rows, None], cuts[some])
        return left, right

    def _weigh(self, rows: np.ndarray, rest: np.ndarray, cuts: _Cuts) -> tuple[np.ndarray, np.ndarray]:
        start = self.slopes.start[cuts.column]
        table = self.slopes.table[rows]
        whole, high = table[:, start + cuts.first], table[:, start + cuts.last_left + 1]  # (m, q)
        above = table[:, start + cuts.last + 1]
        by_class = self.by_class[rows]
        return self.t_norm(rest, whole - high).T @ by_class, self.t_norm(rest, high - above).T @ by_class

    def _children(self, node: _Node, column: int, last_left: int) -> list[_Node]:
        """The right child, then the left one, which is thus popped first."""
        first, last = node.ranges.get(column, (0, int(self.slopes.n_terms[column]) - 1))
        return [
            _Node(
                node.depth + 1,
                {**node.ranges, column: terms},
                {**node.factors, column: self.slopes.membership(column, *terms)},
            )
            for terms in ((last_left + 1, last), (first, last_left))
        ]
