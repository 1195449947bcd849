"""Trees whose nodes point outside of their arrays are refused: scikit-learn follows them without looking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from askwise.errors import InvalidInput


def check_trees(models: Any) -> None:
    """Refuse decision trees with children, columns or categories that do not exist, and with cycles."""
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.tree._tree import Tree

    for thing in every_object(models):
        if isinstance(thing, Tree):
            inner = thing.children_left >= 0
            children = (thing.children_left[inner], thing.children_right[inner])
            _check_nodes(np.flatnonzero(inner), children, thing.node_count)
        elif isinstance(thing, TreePredictor):
            _check_boosted(thing)
        for tree in _trees_of(thing):
            if len(tree) and not 0 <= tree.min() <= tree.max() < thing.n_features_in_:
                raise InvalidInput("A tree of the saved model asks for a column that does not exist; it is damaged.")


def rebuild_search_trees(models: Any) -> None:
    """Build the search trees of nearest neighbors again from their points, which gives the same ones."""
    from sklearn.neighbors import BallTree, KDTree

    for thing in every_object(models):
        tree = getattr(thing, "_tree", None)
        if isinstance(tree, KDTree | BallTree):
            metric, options = thing.effective_metric_, thing.effective_metric_params_ or {}
            kind = KDTree if isinstance(tree, KDTree) else BallTree
            thing._tree = kind(thing._fit_X, thing.leaf_size, metric=metric, **options)


def _check_boosted(tree: Any) -> None:
    nodes, inner = tree.nodes, tree.nodes["is_leaf"] == 0
    children = (nodes["left"][inner].astype(int), nodes["right"][inner].astype(int))
    _check_nodes(np.flatnonzero(inner), children, len(nodes))
    bitsets = nodes["bitset_idx"][inner][nodes["is_categorical"][inner] != 0]
    if len(bitsets) and bitsets.max() >= min(len(tree.raw_left_cat_bitsets), len(tree.binned_left_cat_bitsets)):
        raise InvalidInput("A tree of the saved model refers to categories that it does not hold; it is damaged.")


def _check_nodes(parents: np.ndarray, children: Sequence[np.ndarray], n_nodes: int) -> None:
    for child in children:
        if len(child) and ((child <= parents) | (child >= n_nodes)).any():
            raise InvalidInput("A tree of the saved model has a node whose child is not below it; it is damaged.")


def _trees_of(estimator: Any) -> Iterator[np.ndarray]:
    """The columns that the nodes of each tree of an estimator compare, its own and those of its members."""
    if not hasattr(estimator, "n_features_in_"):
        return
    members = [estimator, *np.ravel(np.array(getattr(estimator, "estimators_", []), dtype=object)).tolist()]
    for member in members:
        if hasattr(member, "tree_"):
            yield member.tree_.feature[member.tree_.children_left >= 0]
    for iteration in getattr(estimator, "_predictors", ()):
        for tree in iteration:
            yield tree.nodes["feature_idx"][tree.nodes["is_leaf"] == 0].astype(int)


def every_object(thing: Any) -> Iterator[Any]:
    """Everything that fitted estimators hold, each object once."""
    seen: set[int] = set()
    open_things = [thing]
    while open_things:
        thing = open_things.pop()
        if id(thing) in seen or thing is None or isinstance(thing, str | bytes | int | float):
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, dict):
            open_things.extend(thing.values())
        elif isinstance(thing, list | tuple | set):
            open_things.extend(thing)
        elif isinstance(thing, np.ndarray):
            open_things.extend(thing.ravel().tolist() if thing.dtype == object else ())
        elif not isinstance(thing, type):
            open_things.extend(getattr(thing, "__dict__", {}).values())
