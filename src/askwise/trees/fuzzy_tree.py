"""A fuzzy decision tree: its leaves are rules in words, and a case belongs to several of them to some degree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from askwise.errors import InvalidInput
from askwise.randomness import generator
from askwise.trees.growth import (
    TIE,
    check_amount,
    check_count,
    first_best,
    gini,
    gini_decrease,
    over_classes,
    sampled_conditions,
    training_arrays,
)
from askwise.trees.partitions import Partition, quantile_partition, trapezium_membership

T_NORMS = {"product": np.multiply, "minimum": np.minimum}
BLOCK = 4_000_000  # cells of a table that is held at once


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
    """

    ranges: dict[int, tuple[int, int]]
    value: np.ndarray
    weight: float


class FuzzyTreeClassifier(ClassifierMixin, BaseEstimator):
    r"""A decision tree over words such as "low" and "high" that shade into each other.

    The values of each column are covered by trapezia whose memberships sum to 1 (`Partition`). A node holds a range
    of adjacent terms per column, a split cuts one range in two, and the split that decreases Gini impurity most is
    taken, where each row counts with its membership and a node is the sum of its two sides. A row's membership in a
    leaf is the t-norm of its memberships in the ranges, and the answer is
    :math:`p(y | x) = \sum_r \mu_r(x) p_r(y) / \sum_r \mu_r(x)` over the leaves r. Equal splits: the first column,
    then the lowest term.

    Parameters
    ----------
    n_terms
        Terms per column; a column of at most so many different values has a crisp term for each.
    max_depth
        Splits on a path; None for no limit.
    min_weight_leaf
        The sum of memberships that each leaf must have.
    min_impurity_decrease
        A split must decrease impurity by at least this, times the node's share of the training weight.
    t_norm
        "product" (the memberships of all leaves then sum to 1) or "minimum".
    n_subsets
        With K > 0 a split is worth its expected decrease over K random subsets of features that hold its own (App. D):
        the node's conditions on other features are removed. 0 takes all of the node's conditions.
    random_state
        Seed or generator of the subsets.

    Attributes
    ----------
    classes_
        (C,) labels.
    partitions_
        A `Partition` per column.
    rules_
        A `FuzzyRule` per leaf.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = FuzzyTreeClassifier(max_depth=2).fit(X, y)
    >>> print(tree.export_text())
    if sepal width (cm) is not high and petal length (cm) is low: 0 (0.92, weight 17.3)
    if sepal width (cm) is high and petal length (cm) is low: 0 (1.00, weight 33.2)
    if petal length (cm) is not low and petal width (cm) is not high: 1 (0.85, weight 54.5)
    if petal length (cm) is not low and petal width (cm) is high: 2 (0.96, weight 45.0)
    """

    def __init__(
        self,
        *,
        n_terms: int = 3,
        max_depth: int | None = 8,
        min_weight_leaf: float = 10.0,
        min_impurity_decrease: float = 0.001,
        t_norm: str = "product",
        n_subsets: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_terms = n_terms
        self.max_depth = max_depth
        self.min_weight_leaf = min_weight_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.t_norm = t_norm
        self.n_subsets = n_subsets
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FuzzyTreeClassifier:
        """Grow the tree on X (n, D) and y (n,); a row of weight 2 is the same as the row twice."""
        self._check_parameters()
        rng = generator(self.random_state)
        rows, by_class, self.classes_ = training_arrays(self, X, y, sample_weight, np.float64)
        weights = by_class.sum(axis=1)
        self.partitions_ = [quantile_partition(column, self.n_terms, weights) for column in rows.T]
        leaves = list(_Growth(self, _Slopes(rows, self.partitions_), by_class, rng).leaves())
        self.rules_ = [rule for rule, _ in leaves]
        self._depth = max(depth for _, depth in leaves)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, C) class shares of the rules, weighted by membership."""
        memberships = self.rule_memberships(X)
        values = np.array([rule.value for rule in self.rules_])
        return memberships @ values / memberships.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """(n,) the most probable label."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def rule_memberships(self, X: Any) -> np.ndarray:
        """(n, rules) membership of each row in each rule."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        known: dict[tuple[int, tuple[int, int]], np.ndarray] = {}
        memberships = np.ones((len(rows), len(self.rules_)))
        for r, rule in enumerate(self.rules_):
            for column, terms in rule.ranges.items():
                if (column, terms) not in known:
                    trapezium = self.partitions_[column].trapezium(*terms)
                    known[column, terms] = trapezium_membership(rows[:, column], trapezium)
                memberships[:, r] = T_NORMS[self.t_norm](memberships[:, r], known[column, terms])
        return memberships

    def get_depth(self) -> int:
        """Splits on the longest path."""
        check_is_fitted(self)
        return self._depth

    def get_n_leaves(self) -> int:
        """How many leaves, and so rules, there are."""
        check_is_fitted(self)
        return len(self.rules_)

    def export_text(self) -> str:
        """The rules in words, one a line: conditions, the most probable class, its share, and the rule's weight."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x[{j}]" for j in range(self.n_features_in_)])
        return "\n".join(self._spelled(rule, names) for rule in self.rules_)

    def _spelled(self, rule: FuzzyRule, names: Any) -> str:
        said = [f"{names[j]} is {self.partitions_[j].words(*terms)}" for j, terms in sorted(rule.ranges.items())]
        best = int(rule.value.argmax())
        condition = f"if {' and '.join(said)}" if said else "always"
        return f"{condition}: {self.classes_[best]} ({rule.value[best]:.2f}, weight {rule.weight:.1f})"

    def _check_parameters(self) -> None:
        check_count("n_terms", self.n_terms, 2)
        check_count("max_depth", self.max_depth, 1, optional=True)
        check_amount("min_weight_leaf", self.min_weight_leaf)
        check_amount("min_impurity_decrease", self.min_impurity_decrease)
        check_count("n_subsets", self.n_subsets, 0)
        if not isinstance(self.t_norm, str) or self.t_norm not in T_NORMS:
            raise InvalidInput(f't_norm must be "product" or "minimum"; got {self.t_norm!r}.')


class _Slopes:
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


class _Growth:
    """Grows one tree, depth first."""

    def __init__(
        self, settings: FuzzyTreeClassifier, slopes: _Slopes, by_class: np.ndarray, rng: np.random.Generator
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

        A condition on the cut's own column is its range, which the cut divides, and so is not among the others.
        """
        left, right = np.empty((2, len(cuts.column), self.by_class.shape[1]))
        own = np.isin(cuts.column, used)
        batches = [(np.flatnonzero(~own), used)]
        batches += [(np.flatnonzero(cuts.column == j), [i for i in used if i != j]) for j in used]
        for which, others in batches:
            rest = self._combined(node.factors[j] for j in others)
            rows = np.flatnonzero(rest)
            width = max(1, BLOCK // len(rows))
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
        """The right child and then the left one, so that the left one is the next to be taken from the end."""
        first, last = node.ranges.get(column, (0, int(self.slopes.n_terms[column]) - 1))
        return [
            _Node(
                node.depth + 1,
                {**node.ranges, column: terms},
                {**node.factors, column: self.slopes.membership(column, *terms)},
            )
            for terms in ((last_left + 1, last), (first, last_left))
        ]
