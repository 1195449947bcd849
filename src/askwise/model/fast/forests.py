"""Forests without scikit-learn's overhead per tree, which is most of their time on a few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.utils import get_tags

from askwise.model.parts import asked, dense

FEW_ROWS = 500
"""Number of rows up to which the values of all leaves reached are summed at once; for more they need much memory."""
FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
"""The classes whose probabilities are the mean over their trees; a subclass may do otherwise."""


class TreeByTree:
    """The probabilities of a forest: the numbers of its own `predict_proba`, summed in the order of its trees."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest
        self.trees = [tree.tree_ for tree in forest.estimators_]
        self.values = np.concatenate([tree.value[:, 0] for tree in self.trees])  # of all nodes, (nodes, C)
        ends = np.cumsum([tree.node_count for tree in self.trees])
        self.start = np.append(0, ends[:-1])[:, None]
        self.takes_missing = get_tags(forest.estimators_[0]).input_tags.allow_nan and forest.monotonic_cst is None

    def __call__(self, inputs: Any) -> np.ndarray:
        """Prepared rows -> (n, C)."""
        with np.errstate(over="ignore"):
            numbers = inputs if type(inputs) is np.ndarray else dense(inputs)
            rows = np.ascontiguousarray(numbers, dtype=np.float32)
        missing_allowed = self.takes_missing and not issparse(inputs)
        if not (~np.isinf(rows) if missing_allowed else np.isfinite(rows)).all():
            return np.asarray(asked(self.forest, "predict_proba", inputs))  # its error says what is wrong
        if len(rows) <= FEW_ROWS:
            leaves = np.stack([tree.apply(rows) for tree in self.trees]) + self.start  # (trees, n)
            total = self.values.take(leaves, axis=0).sum(axis=0)  # tree by tree, as the forest itself adds them
        else:
            total = self.trees[0].predict(rows)
            for tree in self.trees[1:]:
                total += tree.predict(rows)
        total /= len(self.trees)
        return np.asarray(total)
