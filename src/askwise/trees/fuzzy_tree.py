"""A fuzzy decision tree: its leaves are rules in words, and a case belongs to several of them by degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from askwise.parameters import Choice, Number, Whole, check_limits, within
from askwise.randomness import generator
from askwise.trees.fuzzy_growth import T_NORMS, FuzzyGrowth, FuzzyRule, Slopes
from askwise.trees.growth import ProbableClassifier, training_arrays
from askwise.trees.partitions import quantile_partition, trapezium_membership


@dataclass(kw_only=True, eq=False, repr=False)
class FuzzyTreeClassifier(ProbableClassifier):
    r"""A decision tree over overlapping terms such as "low" and "high".

    The values of each column are covered by trapezia whose memberships sum to 1 (`Partition`). A node holds a range
    of adjacent terms per column, a split cuts one range in two, and the split that decreases Gini impurity most is
    taken, where each row counts with its membership and a node is the sum of its two sides. A row's membership in a
    leaf is the t-norm of its memberships in the ranges, and the answer is
    :math:`p(y | x) = \sum_r \mu_r(x) p_r(y) / \sum_r \mu_r(x)` over the leaves r. Ties go to the first column,
    then to the lowest term.

    Parameters
    ----------
    n_terms
        Terms per column; a column with no more distinct values than this has a crisp term for each.
    max_depth
        Maximum number of splits on a path; None for no limit.
    min_weight_leaf
        Smallest sum of memberships of a leaf.
    min_impurity_decrease
        A split must decrease impurity by at least this, times the node's share of the training weight.
    t_norm
        "product" (the memberships of all leaves then sum to 1) or "minimum".
    n_subsets
        With K > 0 the criterion is the expected decrease over K random subsets that hold the split's feature (App. D):
        the node's conditions on features outside the subset are removed. 0 keeps all of the node's conditions.
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

    n_terms: int = within(Whole(2), 3)
    max_depth: int | None = within(Whole(1, optional=True), 8)
    min_weight_leaf: float = within(Number(0), 10.0)
    min_impurity_decrease: float = within(Number(0), 0.001)
    t_norm: str = within(Choice(tuple(T_NORMS)), "product")
    n_subsets: int = within(Whole(0), 0)
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FuzzyTreeClassifier:
        """Grow the tree on X (n, D) and y (n,); a row of weight 2 counts as two rows."""
        check_limits(self)
        rng = generator(self.random_state)
        rows, by_class, self.classes_ = training_arrays(self, X, y, sample_weight, np.float64)
        weights = by_class.sum(axis=1)
        self.partitions_ = [quantile_partition(column, self.n_terms, weights) for column in rows.T]
        leaves = list(FuzzyGrowth(self, Slopes(rows, self.partitions_), by_class, rng).leaves())
        self.rules_ = [rule for rule, _ in leaves]
        self._depth = max(depth for _, depth in leaves)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, C) class shares of the rules, weighted by membership."""
        memberships = self.rule_memberships(X)
        values = np.array([rule.value for rule in self.rules_])
        return memberships @ values / memberships.sum(axis=1, keepdims=True)

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
        """Number of splits on the longest path."""
        check_is_fitted(self)
        return self._depth

    def get_n_leaves(self) -> int:
        """Number of leaves, and so of rules."""
        check_is_fitted(self)
        return len(self.rules_)

    def export_text(self) -> str:
        """The rules in words, one per line: conditions, the most probable class, its share, and the rule's weight."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x[{j}]" for j in range(self.n_features_in_)])
        return "\n".join(self._spelled(rule, names) for rule in self.rules_)

    def _spelled(self, rule: FuzzyRule, names: Any) -> str:
        said = [f"{names[j]} is {self.partitions_[j].words(*terms)}" for j, terms in sorted(rule.ranges.items())]
        best = int(rule.value.argmax())
        condition = f"if {' and '.join(said)}" if said else "always"
        return f"{condition}: {self.classes_[best]} ({rule.value[best]:.2f}, weight {rule.weight:.1f})"
