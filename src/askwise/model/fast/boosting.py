"""Predictions of several histogram gradient boosting models at once, without a Python call per tree."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier

from askwise.model.parts import dense

LOG = logging.getLogger(__name__)

MOST_LEAVES = 64
EVERYTHING = 2**MOST_LEAVES - 1
"""All leaves, as bits."""
FEW_ROWS = 500
"""Number of rows up to which this is faster than scikit-learn's own traversal, which has overhead per tree."""


class BoostedTrees:
    """The trees of several `HistGradientBoostingClassifier` as arrays, evaluated all together.

    Each leaf of a tree has a bit. A node whose condition fails rules out the leaves on its left, one that holds those
    on its right; the remaining leaf is the one that a traversal would reach. So a row needs one comparison per
    node, all vectorized.

    Parameters
    ----------
    models
        Fitted models with the same classes, each of which `takes_part`.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        self.models, self.n_classes = models, len(models[0].classes_)
        # The trees of one class of one model are adjacent, so that their leaf values are summed as one run.
        trees = [[tree.nodes for tree in trees] for model in models for trees in zip(*model._predictors, strict=True)]
        parts = [_splits(nodes) for of_output in trees for nodes in of_output]
        splits = [split for of_tree, _ in parts for split in of_tree]
        feature, threshold, missing_left, without_left, without_right = zip(*splits, strict=True)
        self.feature, self.threshold = np.array(feature), np.array(threshold)[:, None]
        self.missing_left = np.array(missing_left, dtype=bool)[:, None]
        self.without_left, self.without_right = (
            np.array(bits, dtype=np.uint64)[:, None] for bits in (without_left, without_right)
        )
        self.leaf_value = np.array([value for _, values in parts for value in values])
        self.tree_start = _starts(len(of_tree) for of_tree, _ in parts)
        self.leaf_start = _starts(len(values) for _, values in parts)[:, None]
        self.output_start = _starts(len(of_output) for of_output in trees)
        self.baseline = np.concatenate([np.ravel(model._baseline_prediction) for model in models])

    def __call__(self, inputs: Any) -> np.ndarray:
        """(n, D) numbers, NaN where missing -> (n, k * C)."""
        if inputs.shape[0] > FEW_ROWS:
            return np.hstack([model.predict_proba(inputs) for model in self.models])
        cells = dense(inputs)
        raw = self._raw(cells)
        if self.n_classes == 2:
            positive = expit(raw)
            return np.stack([1 - positive, positive], axis=2).reshape(len(cells), -1)
        return np.asarray(softmax(raw.reshape(len(cells), len(self.models), -1), axis=2).reshape(len(cells), -1))

    def _raw(self, cells: np.ndarray) -> np.ndarray:
        """(n, models * trees of an iteration) sums of leaf values; nodes are the first axis, which is fast to index."""
        seen = np.ascontiguousarray(cells.T)[self.feature]  # (nodes, n)
        goes_left = seen <= self.threshold
        if np.isnan(cells).any():
            goes_left |= np.isnan(seen) & self.missing_left
        possible = np.where(goes_left, self.without_right, self.without_left)
        remaining = np.bitwise_and.reduceat(possible, self.tree_start, axis=0)  # (trees, n): the leaves left over
        lowest = remaining & (~remaining + np.uint64(1))
        leaf = np.bitwise_count(lowest - np.uint64(1)) + self.leaf_start
        values = np.add.reduceat(self.leaf_value[leaf], self.output_start, axis=0)  # (outputs, n)
        return values.T + self.baseline


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The trees of a boosted model (splits as in `_splits`, leaf values), the output of each, and the baseline."""

    trees: list[tuple[list[tuple[int, float, bool, int, int]], list[float]]]
    output: np.ndarray  # (T,)
    baseline: np.ndarray  # (outputs,)


def ensemble_of(classifier: Any) -> Ensemble | None:
    """The trees of a HistGradientBoosting or LightGBM classifier on numbers; None for any other."""
    if type(classifier) is HistGradientBoostingClassifier and takes_part(classifier):
        trees = [_splits(tree.nodes) for iteration in classifier._predictors for tree in iteration]
        n_outputs = len(classifier._predictors[0])
        return Ensemble(trees, np.arange(len(trees)) % n_outputs, np.ravel(classifier._baseline_prediction))
    return lightgbm_trees(classifier) if type(classifier).__module__.startswith("lightgbm.") else None


def lightgbm_trees(classifier: Any) -> Ensemble | None:
    """The trees of a fitted LightGBM classifier; None for categories, or zeros that count as missing."""
    dump = classifier.booster_.dump_model()
    trees: list[Any] = []
    for info in dump["tree_info"]:
        splits: list[tuple[int, float, bool, int, int]] = []
        values: list[float] = []
        if _below_lightgbm(info["tree_structure"], splits, values) is None or len(values) > MOST_LEAVES:
            return None
        trees.append((splits or [(0, 0.0, False, EVERYTHING, EVERYTHING)], values))
    n_outputs = dump["num_tree_per_iteration"]
    return Ensemble(trees, np.arange(len(trees)) % n_outputs, np.zeros(n_outputs))


def _below_lightgbm(node: Any, splits: list[Any], values: list[float]) -> int | None:
    """The leaves below a node, as bits; None where it has a split of another kind."""
    if "leaf_value" in node:
        values.append(float(node["leaf_value"]))
        return 1 << (len(values) - 1)
    if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
        return None
    left = _below_lightgbm(node["left_child"], splits, values)
    right = _below_lightgbm(node["right_child"], splits, values)
    if left is None or right is None:
        return None
    threshold = float(node["threshold"])
    missing_left = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0
    splits.append((int(node["split_feature"]), threshold, missing_left, EVERYTHING & ~left, EVERYTHING & ~right))
    return left | right


def takes_part(model: Any) -> bool:
    """Whether `BoostedTrees` takes a model: numbers only, trees with few leaves, and the expected layout."""
    try:
        trees = [tree.nodes for iteration in model._predictors for tree in iteration]
        small = all(nodes["is_leaf"].sum() <= MOST_LEAVES for nodes in trees)
        if model.is_categorical_ is not None or not small:
            return False
        # The layout is private to scikit-learn, so check that the result equals the model's own answers.
        probe = np.random.default_rng(0).normal(size=(8, model.n_features_in_))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may have been trained with column names
            return bool(np.allclose(BoostedTrees([model])(probe), model.predict_proba(probe), atol=1e-9))
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:  # another version, another layout
        LOG.debug("%s is asked by its own predict_proba: %s", type(model).__name__, error)
        return False


def _starts(lengths: Iterable[int]) -> np.ndarray:
    """Where each of several runs begins."""
    ends = np.cumsum(list(lengths))
    return np.r_[0, ends[:-1]]


def _splits(nodes: np.ndarray) -> tuple[list[tuple[int, float, bool, int, int]], list[float]]:
    """(feature, threshold, whether missing goes left, leaves without those on the left, and on the right); leaf values.

    Leaves are numbered from left to right. A tree of one leaf gets a split that changes nothing.
    """
    values: list[float] = []
    splits: list[tuple[int, float, bool, int, int]] = []

    def below(at: int) -> int:
        """The leaves below a node, as bits."""
        node = nodes[at]
        if node["is_leaf"]:
            values.append(float(node["value"]))
            return 1 << (len(values) - 1)
        left, right = below(int(node["left"])), below(int(node["right"]))
        split = int(node["feature_idx"]), float(node["num_threshold"]), bool(node["missing_go_to_left"])
        splits.append((*split, EVERYTHING & ~left, EVERYTHING & ~right))
        return left | right

    below(0)
    return splits or [(0, 0.0, False, EVERYTHING, EVERYTHING)], values
