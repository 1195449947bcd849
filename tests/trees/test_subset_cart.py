"""The crisp tree: plain CART without subsets, and Appendix D's criterion with them."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from askwise.errors import InvalidInput
from askwise.trees import SubsetCartClassifier
from askwise.trees import cart_growth as module
from askwise.trees.growth import gini_decrease, sampled_conditions


def test_scikit_learn_contract():
    for tree in (SubsetCartClassifier(random_state=0), SubsetCartClassifier(n_subsets=0)):
        results = check_estimator(tree, on_fail=None, on_skip=None)
        failed = [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] not in ("passed", "skipped")]
        assert not failed, f"{tree}: {failed}"
        assert len(results) > 30


def cases(seed=0, n=300, n_columns=6, n_classes=3, rounded=False):
    X, y = make_classification(
        n, n_columns, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=seed
    )
    return (np.round(X), y) if rounded else (X, y)


def leaf_impurity(tree):
    leaves = tree.children_left == -1
    return float((tree.impurity * tree.weighted_n_node_samples)[leaves].sum())


# Plain CART


def test_without_subsets_it_is_plain_cart():
    for weighted in [False, True]:
        for seed in range(3):
            X, y = cases(seed, n=1500)  # so large that no two splits are equally good near the root
            weights = np.random.default_rng(seed).integers(2, 9, size=1500) if weighted else None
            stopping = {"min_samples_split": 2, "min_samples_leaf": 1} if weighted else {"min_samples_leaf": 20}
            ours = SubsetCartClassifier(n_subsets=0, max_depth=4, **stopping).fit(X, y, weights)
            theirs = DecisionTreeClassifier(random_state=0, max_depth=4, **stopping).fit(X, y, weights)
            for name in ("children_left", "children_right", "feature", "threshold", "n_node_samples", "value"):
                np.testing.assert_allclose(getattr(ours.tree_, name), getattr(theirs.tree_, name), err_msg=name)
            assert ours.score(X, y) == theirs.score(X, y)
            np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
            assert (ours.get_depth(), ours.get_n_leaves()) == (theirs.get_depth(), theirs.get_n_leaves())
            assert ours.tree_.node_count == theirs.tree_.node_count


def test_minimum_decrease_as_in_scikit_learn():
    for decrease in [0.0, 0.003, 0.02]:
        X, y = cases(4)
        options: dict[str, Any] = {"min_samples_leaf": 10, "min_impurity_decrease": decrease}
        ours = SubsetCartClassifier(n_subsets=0, min_samples_split=20, **options).fit(X, y)
        theirs = DecisionTreeClassifier(min_samples_split=20, random_state=0, **options).fit(X, y)
        assert ours.tree_.node_count == theirs.tree_.node_count
        assert leaf_impurity(ours.tree_) == pytest.approx(leaf_impurity(theirs.tree_))


def test_a_tree_by_hand():
    """Column 1 separates the labels at 2.5; column 0 does not."""
    X = np.array([[5, 1], [5, 2], [5, 3], [5, 4], [6, 3.0]])
    tree = SubsetCartClassifier(n_subsets=0, min_samples_split=2, min_samples_leaf=1).fit(X, [0, 0, 1, 1, 1]).tree_
    assert tree.feature.tolist() == [1, -2, -2]
    assert tree.threshold.tolist() == [2.5, -2.0, -2.0]
    assert tree.children_left.tolist() == [1, -1, -1]
    assert tree.children_right.tolist() == [2, -1, -1]
    np.testing.assert_allclose(tree.value[:, 0], np.array([[0.4, 0.6], [1.0, 0.0], [0.0, 1.0]]))
    assert tree.n_node_samples.tolist() == [5, 2, 3]


def test_ties_go_to_the_first_column_and_the_lowest_threshold():
    column = np.array([1.0, 2, 3, 4, 5, 6])
    tree = SubsetCartClassifier(n_subsets=0, min_samples_split=2, min_samples_leaf=1, max_depth=1)
    tree.fit(np.column_stack([-column, column]), [1, 0, 0, 0, 0, 1])
    assert (tree.tree_.feature[0], tree.tree_.threshold[0]) == (0, -5.5)


def test_comparison_in_single_precision():
    """A value that only rounding to float32 brings to the threshold goes left, as in scikit-learn's trees."""
    X, y = cases(1, rounded=True)
    tree = SubsetCartClassifier(n_subsets=0, max_depth=1).fit(X, y)
    at, column = tree.tree_.threshold[0], tree.tree_.feature[0]
    row = np.zeros((2, X.shape[1]))
    row[:, column] = at + 1e-12, at + 1e-2
    assert tree.apply(row).tolist() == [1, 2]


def test_stopping():
    for n_subsets in [0, 7]:
        X, y = cases(2)
        grown = SubsetCartClassifier(
            n_subsets=n_subsets, min_samples_split=30, min_samples_leaf=9, max_depth=4, random_state=0
        )
        tree = grown.fit(X, y).tree_
        inner = tree.children_left != -1
        assert tree.n_node_samples.min() >= 9
        assert tree.n_node_samples[inner].min() >= 30
        assert grown.get_depth() <= 4
        assert inner.any()


def test_pure_leaves_and_constant_columns():
    X, y = cases(3)
    X[:, 2] = 7.0
    fitted = SubsetCartClassifier(min_samples_split=2, min_samples_leaf=1, random_state=0).fit(X, y)
    assert fitted.score(X, y) == 1.0
    assert set(np.unique(fitted.predict_proba(X))) == {0.0, 1.0}
    assert 2 not in fitted.tree_.feature
    alone = SubsetCartClassifier().fit(np.ones((6, 2)), list("aababa"))
    assert alone.get_n_leaves() == 1
    np.testing.assert_allclose(alone.predict_proba(np.zeros((1, 2))), [[4 / 6, 2 / 6]])


# Appendix D


def test_law_of_the_conditions_that_stay():
    """Of two conditions: both with 1/3, each alone with 1/6, none with 1/3, as a subset of uniform size has it."""
    kept, share = sampled_conditions(2, 200_000, np.random.default_rng(0))
    found = {tuple(row): part for row, part in zip(kept.tolist(), share, strict=True)}
    expected = {(True, True): 1 / 3, (True, False): 1 / 6, (False, True): 1 / 6, (False, False): 1 / 3}
    assert found.keys() == expected.keys()
    for case, part in expected.items():
        assert found[case] == pytest.approx(part, abs=0.005)


def brute_force(X, y, weights, box, column, threshold, observed):
    """Gini decrease of a split among all rows that satisfy the conditions on observed columns, row by row."""
    sides = np.zeros((2, y.max() + 1))
    for x, label, weight in zip(X, y, weights, strict=True):
        if all(low < x[j] <= high for j, (low, high) in box.items() if j in observed):
            sides[int(x[column] > threshold), label] += weight
    return float(gini_decrease(*sides))


def test_expected_decrease_by_brute_force():
    """All subsets of the path's features, with known shares, at a node three splits down."""
    for weighted in [False, True]:
        rng = np.random.default_rng(5)
        X = rng.integers(0, 6, size=(60, 4)).astype(np.float32)
        y = rng.integers(0, 3, size=60)
        weights = rng.integers(1, 4, size=60).astype(float) if weighted else np.ones(60)
        growth = module.CartGrowth(
            SubsetCartClassifier(n_subsets=3),
            module.TrainingTable(X, np.eye(3)[y] * weights[:, None]),
            np.random.default_rng(0),
        )
        node = module._Node(growth.table.order, 0, -1)
        box: dict[int, tuple[float, float]] = {}
        for column, threshold, side in ((1, 3.5, 0), (3, 0.5, 1), (1, 0.5, 1)):
            node = dict(growth._children(node, 0, column, threshold))[side]
            low, high = box.get(column, (-np.inf, np.inf))
            box[column] = (max(low, threshold), high) if side else (low, min(high, threshold))
        kept = np.array(list(product([False, True], repeat=2)))
        share = np.array([0.1, 0.2, 0.3, 0.4])
        cuts = growth._cuts(node, np.arange(4), growth.table.by_class[node.order[0]].sum(axis=0))
        found = growth._expected_decrease(node, cuts, kept, share)
        used = list(node.satisfied)
        assert len(found) > 5
        assert set(used) <= set(cuts.column)
        for column, threshold, value in zip(cuts.column, cuts.threshold, found, strict=True):
            mean = sum(
                part * brute_force(X, y, weights, box, column, threshold, {column, *np.array(used)[stays]})
                for stays, part in zip(kept, share, strict=True)
            )
            assert value == pytest.approx(mean, abs=1e-12)


def test_the_first_split_is_that_of_plain_cart():
    """The root has no conditions that could be removed."""
    X, y = cases(6)
    plain, subsets = (SubsetCartClassifier(n_subsets=k, random_state=0).fit(X, y).tree_ for k in (0, 8))
    assert (plain.feature[0], plain.threshold[0]) == (subsets.feature[0], subsets.threshold[0])
    assert plain.node_count != subsets.node_count


def test_subsets_prefer_what_works_alone():
    """Below the first split, a column that is good everywhere beats one that is a bit better only in that node."""
    rng = np.random.default_rng(0)
    first = np.repeat([0, 1], 200)
    y = np.where(first == 0, rng.random(400) < 0.15, rng.random(400) < 0.75).astype(int)
    anywhere = np.where(rng.random(400) < 0.80, y, 1 - y)
    only_there = np.where(first == 1, np.where(rng.random(400) < 0.86, y, 1 - y), rng.integers(0, 2, 400))
    X = np.column_stack([first, only_there, anywhere])
    plain = SubsetCartClassifier(n_subsets=0, max_depth=2).fit(X, y).tree_
    subsets = SubsetCartClassifier(n_subsets=60, max_depth=2, random_state=0).fit(X, y).tree_
    right = plain.children_right[0]
    assert (plain.feature[0], plain.feature[right]) == (0, 1)
    assert (subsets.feature[0], subsets.feature[subsets.children_right[0]]) == (0, 2)


# Weights, seeds, tables


def test_weights_are_repetitions():
    for n_subsets in [0, 4]:
        X, y = cases(7, n=120, rounded=True)
        weights = np.random.default_rng(0).integers(0, 4, size=120)
        model = SubsetCartClassifier(n_subsets=n_subsets, random_state=3)
        weighted = clone(model).fit(X, y, sample_weight=weights).tree_
        repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).tree_
        np.testing.assert_array_equal(weighted.feature, repeated.feature)
        np.testing.assert_array_equal(weighted.threshold, repeated.threshold)
        np.testing.assert_allclose(weighted.value, repeated.value)
        np.testing.assert_allclose(weighted.weighted_n_node_samples, repeated.n_node_samples)


def test_same_seed_same_tree():
    X, y = cases(8)
    trees = [SubsetCartClassifier(n_subsets=3, random_state=seed).fit(X, y).tree_ for seed in (1, 1, 2)]
    np.testing.assert_array_equal(trees[0].threshold, trees[1].threshold)
    assert trees[0].threshold.tolist() != trees[2].threshold.tolist()


def test_blocks_of_columns_change_nothing(monkeypatch):
    X, y = cases(9)
    whole = SubsetCartClassifier(random_state=0).fit(X, y).tree_
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 2000)
    parts = SubsetCartClassifier(random_state=0).fit(X, y).tree_
    np.testing.assert_array_equal(whole.feature, parts.feature)
    np.testing.assert_array_equal(whole.threshold, parts.threshold)


def test_names_of_columns_and_labels():
    X, y = load_wine(return_X_y=True, as_frame=True)
    labels = pd.Series(["Barolo", "Grignolino", "Barbera"])[y].to_numpy()
    fitted = SubsetCartClassifier(random_state=0).fit(X, labels)
    assert fitted.feature_names_in_.tolist() == list(X.columns)
    assert fitted.classes_.tolist() == ["Barbera", "Barolo", "Grignolino"]
    assert fitted.score(X, labels) > 0.95


def test_parameters_are_refused_by_name():
    cases: list[Any] = [
        ("n_subsets", -1),
        ("n_subsets", 2.5),
        ("min_samples_split", 1),
        ("min_samples_leaf", 0),
        ("max_depth", 0),
        ("max_depth", True),
        ("min_impurity_decrease", -0.1),
        ("min_impurity_decrease", float("nan")),
        ("random_state", "seed"),
    ]
    for name, value in cases:
        with pytest.raises(InvalidInput, match=f"{name} must be .*got {value!r}"):
            SubsetCartClassifier(**{name: value}).fit(np.eye(4), [0, 1, 0, 1])


def test_weights_of_nothing_are_refused():
    with pytest.raises(InvalidInput, match="sample_weight must be positive for at least one row"):
        SubsetCartClassifier().fit(np.eye(4), [0, 1, 0, 1], sample_weight=np.zeros(4))
