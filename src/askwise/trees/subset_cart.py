"""A CART whose splits are good on average over the subsets of known features (Appendix D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from askwise.parameters import Number, Whole, check_limits, within
from askwise.randomness import generator
from askwise.trees.cart_growth import CartGrowth, TrainingTable
from askwise.trees.growth import ProbableClassifier, training_arrays


@dataclass(kw_only=True, eq=False, repr=False)
class SubsetCartClassifier(ProbableClassifier):
    r"""A crisp decision tree whose splits stay good when other features are unknown.

    The criterion of a split on feature j is its expected decrease of Gini impurity over subsets that hold j,
    :math:`\mathbb{E}_{S \sim p(S | j \in S)} [\Delta I_G(X_S, \theta)]` (App. D), a mean over `n_subsets` draws of S:
    size uniform on 1..M, then uniform among those that hold j. :math:`X_S` at a node follows from condition removal
    (App. C): all training rows that satisfy the node's conditions on features of S. Thresholds lie midway between
    values of the rows that reach the node. Ties go to the first column, then to the lowest threshold.

    Parameters
    ----------
    n_subsets
        Subsets drawn for each node; 0 is plain CART.
    min_samples_split, min_samples_leaf
        Smallest weight of the rows that reach a node to be split, and each of its children.
    max_depth
        None for no limit.
    min_impurity_decrease
        A split must decrease impurity by at least this, in expectation and times the node's share of all rows.
    random_state
        Seed or generator of the subsets.

    Attributes
    ----------
    classes_
        (C,) labels.
    tree_
        `CartTree`: the nodes as arrays, named as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SubsetCartClassifier(n_subsets=0, max_depth=2).fit(X, y)
    >>> round(tree.score(X, y), 2), tree.get_n_leaves()
    (0.96, 3)
    """

    n_subsets: int = within(Whole(0), 10)
    min_samples_split: int = within(Whole(2), 5)
    min_samples_leaf: int = within(Whole(1), 2)
    max_depth: int | None = within(Whole(1, optional=True), None)
    min_impurity_decrease: float = within(Number(0), 0.0)
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SubsetCartClassifier:
        """Grow the tree on X (n, D) and y (n,); a row of weight 2 counts as two rows."""
        check_limits(self)
        rng = generator(self.random_state)
        rows, by_class, self.classes_ = training_arrays(self, X, y, sample_weight, np.float32)
        self.tree_ = CartGrowth(self, TrainingTable(rows, by_class), rng).tree()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, C) class shares of the leaf that each row reaches."""
        leaves = self.apply(X)
        return self.tree_.value[leaves, 0]

    def apply(self, X: Any) -> np.ndarray:
        """(n,) number of the leaf that each row reaches."""
        check_is_fitted(self)
        return self.tree_.apply(validate_data(self, X, dtype=np.float32, reset=False))

    def get_depth(self) -> int:
        """Number of splits on the longest path."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves
