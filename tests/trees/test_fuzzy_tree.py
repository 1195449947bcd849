"""The fuzzy tree: its words, its memberships, its growth, and Appendix D's criterion with memberships."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.utils.estimator_checks import check_estimator

from askwise.errors import InvalidInput
from askwise.trees import FuzzyTreeClassifier, Partition, trapezium_membership
from askwise.trees import fuzzy_growth as module
from askwise.trees.growth import gini_decrease
from askwise.trees.partitions import quantile_partition, term_names


def test_scikit_learn_contract():
    other = FuzzyTreeClassifier(n_terms=2, t_norm="minimum", n_subsets=3, max_depth=4, random_state=0)
    for tree in (FuzzyTreeClassifier(), other):
        results = check_estimator(tree, on_fail=None, on_skip=None)
        failed = [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] not in ("passed", "skipped")]
        assert not failed, f"{tree}: {failed}"
        assert len(results) > 30


def cases(seed=0, n=200):
    return make_classification(n, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=seed)


def partition_of(values, n_terms=3, weights=None):
    values = np.asarray(values, dtype=float)
    return quantile_partition(values, n_terms, np.ones(len(values)) if weights is None else weights)


# Trapezia


def test_membership_by_hand():
    x = [-9.0, 1.0, 1.25, 2.0, 3.0, 4.0, 5.0, 9.0]
    np.testing.assert_allclose(trapezium_membership(x, (1, 2, 3, 5)), [0, 0, 0.25, 1, 1, 0.5, 0, 0])
    np.testing.assert_allclose(trapezium_membership(x, (-np.inf, -np.inf, 3, 5)), [1, 1, 1, 1, 1, 0.5, 0, 0])
    np.testing.assert_allclose(trapezium_membership(x, (1, 2, np.inf, np.inf)), [0, 0, 0.25, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(trapezium_membership(x, (1, 1, 3, 3)), [0, 0, 1, 1, 1, 0, 0, 0])
    assert trapezium_membership(1.5, (1, 2, 3, 5)) == 0.5


def test_membership_of_nothing_is_nothing():
    for trapezium in ((1, 2, 3, 5), (1, 1, 3, 3), (-np.inf, -np.inf, np.inf, np.inf)):
        assert np.isnan(trapezium_membership(np.nan, trapezium))


@settings(max_examples=60, deadline=None)
@given(
    arrays(float, st.integers(1, 40), elements=st.sampled_from([-3.0, 0.0, 0.1, 1.0, 2.5, 1e6]) | st.floats(-5, 5)),
    st.integers(2, 6),
)
def test_memberships_sum_to_one(values, n_terms):
    """On training values, on the edges themselves, and outside."""
    partition = partition_of(values, n_terms)
    edges = partition.trapezia[np.isfinite(partition.trapezia)]
    x = np.concatenate([values, edges, [-1e9, 1e9, 0.05]])
    memberships = partition.memberships(x)
    assert memberships.shape == (len(x), len(partition))
    assert (memberships.sum(axis=1) == 1.0).all()
    assert memberships.min() >= 0
    assert len(partition) <= n_terms
    # Every term is somebody's, and no trapezium is inside out.
    assert (partition.memberships(values).max(axis=0) > 0).all()
    assert (np.diff(partition.trapezia[:, 1:3], axis=1) >= 0).all()


def test_adjacent_terms_are_one_trapezium():
    partition = partition_of(np.random.default_rng(0).normal(size=50), 5)
    x = np.linspace(-3, 3, 61)
    for first, last in ((0, 1), (1, 3), (2, 4), (0, 4)):
        together = trapezium_membership(x, partition.trapezium(first, last))
        np.testing.assert_allclose(together, partition.memberships(x)[:, first : last + 1].sum(axis=1), atol=1e-12)


# Partitions


def test_few_values_have_a_crisp_term_each():
    partition = partition_of([0, 1, 1, 4, 0])
    np.testing.assert_allclose(
        partition.trapezia, [[-np.inf, -np.inf, 0.5, 0.5], [0.5, 0.5, 2.5, 2.5], [2.5, 2.5, np.inf, np.inf]]
    )
    assert partition.names == ("0", "1", "4")
    assert partition.memberships([0.5, 0.6]).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_values_next_to_each_other_are_told_apart():
    lower = 1.0
    upper = np.nextafter(lower, 2)
    assert partition_of([lower, upper]).memberships([lower, upper]).tolist() == [[1, 0], [0, 1]]


def test_a_constant_column_has_one_term():
    assert len(partition_of([3, 3, 3])) == 1
    assert partition_of([3, 3, 3]).words(0, 0) == "any"


def test_repeated_values_merge_terms():
    """More than half are 0: the first overlap has no width."""
    partition = partition_of([0] * 7 + [1, 2, 3])
    np.testing.assert_allclose(partition.trapezia, [[-np.inf, -np.inf, 0, 1], [0, 1, np.inf, np.inf]])
    assert partition.names == ("low", "high")
    mostly = partition_of([0] * 96 + [1, 2, 3, 4])
    assert len(mostly) > 1
    assert mostly.memberships([0.0])[0, 0] == 1


def test_weighted_quantiles_are_those_of_repeated_values():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=40), rng.integers(1, 5, size=40)
    weighted = partition_of(values, 4, weights.astype(float))
    np.testing.assert_array_equal(weighted.trapezia, partition_of(np.repeat(values, weights), 4).trapezia)


def test_words():
    three = Partition(np.zeros((3, 4)), term_names(3))
    said = [three.words(*terms) for terms in ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (0, 2))]
    assert said == ["low", "not high", "medium", "not low", "high", "any"]
    five = Partition(np.zeros((5, 4)), term_names(5))
    said = [five.words(*terms) for terms in ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (3, 4))]
    assert said == [
        "very low or low",
        "very low to medium",
        "not very high",
        "low to high",
        "medium or high",
        "high or very high",
    ]
    assert term_names(2) == ("low", "high")
    assert term_names(4)[1] == "level 2 of 4"


# Trees


def test_a_tree_by_hand():
    """One column, low (1 up to 2, 0 from 4 on) and high: memberships 1, 1, 1/2, 0, 0 of low, labels a, a, b, b, b."""
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    fitted = FuzzyTreeClassifier(n_terms=2, min_weight_leaf=0).fit(X, list("aabbb"))
    np.testing.assert_allclose(fitted.partitions_[0].trapezia, [[-np.inf, -np.inf, 2, 4], [2, 4, np.inf, np.inf]])
    low, high = fitted.rules_
    assert (low.ranges, high.ranges) == ({0: (0, 0)}, {0: (1, 1)})
    assert (low.weight, high.weight) == (2.5, 2.5)
    np.testing.assert_allclose(low.value, [0.8, 0.2])
    np.testing.assert_allclose(high.value, [0, 1])
    np.testing.assert_allclose(fitted.predict_proba([[3.5]]), [[0.25 * 0.8, 0.25 * 0.2 + 0.75]])
    assert fitted.export_text() == "if x[0] is low: a (0.80, weight 2.5)\nif x[0] is high: b (1.00, weight 2.5)"
    assert (fitted.get_depth(), fitted.get_n_leaves()) == (1, 2)


def test_crisp_terms_make_a_crisp_tree():
    """Exclusive or of two binary columns; the third is constant and never asked."""
    X = np.array([[0, 0, 5], [0, 1, 5], [1, 0, 5], [1, 1, 5]] * 3)
    y = X[:, 0] ^ X[:, 1]
    fitted = FuzzyTreeClassifier(min_impurity_decrease=0, min_weight_leaf=1).fit(X, y)
    assert fitted.score(X, y) == 1.0
    assert fitted.get_n_leaves() == 4
    assert all(set(rule.ranges) == {0, 1} and rule.value.max() == 1 for rule in fitted.rules_)
    assert "if x[0] is 0 and x[1] is 1: 1 (1.00, weight 3.0)" in fitted.export_text()


def test_leaves_share_each_row_under_the_product():
    for n_subsets in [0, 5]:
        X, y = cases(1)
        fitted = FuzzyTreeClassifier(n_subsets=n_subsets, random_state=0).fit(X, y)
        memberships = fitted.rule_memberships(np.vstack([X, 10 * X]))
        assert fitted.get_n_leaves() > 5
        np.testing.assert_allclose(memberships.sum(axis=1), 1)
        np.testing.assert_allclose(memberships[: len(X)].sum(axis=0), [rule.weight for rule in fitted.rules_])


def test_rules_say_what_the_tree_predicts():
    for t_norm in ["product", "minimum"]:
        X, y = cases(2)
        fitted = FuzzyTreeClassifier(t_norm=t_norm, max_depth=4).fit(X, y)
        join = np.prod if t_norm == "product" else np.min
        for x, proba in zip(X[:5], fitted.predict_proba(X[:5]), strict=True):
            degrees = [
                join([fitted.partitions_[j].memberships(x[j])[a : b + 1].sum() for j, (a, b) in rule.ranges.items()])
                for rule in fitted.rules_
            ]
            expected = sum(d * rule.value for d, rule in zip(degrees, fitted.rules_, strict=True)) / sum(degrees)
            np.testing.assert_allclose(proba, expected)


def test_separable_classes_are_learnt():
    for t_norm in ["product", "minimum"]:
        for n_subsets in [0, 4]:
            X, y = load_wine(return_X_y=True, as_frame=True)
            fitted = FuzzyTreeClassifier(t_norm=t_norm, n_subsets=n_subsets, random_state=0).fit(X[::2], y[::2])
            assert fitted.score(X[1::2], y[1::2]) > 0.85
            assert fitted.feature_names_in_.tolist() == list(X.columns)
            assert any(name in fitted.export_text() for name in ("proline is", "flavanoids is"))


def test_stopping():
    X, y = cases(3)
    shallow = FuzzyTreeClassifier(max_depth=2).fit(X, y)
    assert (shallow.get_depth(), shallow.get_n_leaves()) == (2, 4)
    heavy = FuzzyTreeClassifier(min_weight_leaf=20, min_impurity_decrease=0).fit(X, y)
    assert min(rule.weight for rule in heavy.rules_) >= 20 - 1e-9
    assert heavy.get_n_leaves() > 2
    assert FuzzyTreeClassifier(min_impurity_decrease=0.5).fit(X, y).export_text().startswith("always: ")


# Appendix D with memberships


def brute_force(X, by_class, partitions, ranges, column, last_left, observed, join):
    """Gini decrease of a cut, row by row, under the conditions on observed columns."""
    first, last = ranges.get(column, (0, len(partitions[column]) - 1))
    sides = np.zeros((2, by_class.shape[1]))
    for x, weights in zip(X, by_class, strict=True):
        rest = [
            trapezium_membership(x[j], partitions[j].trapezium(*terms))
            for j, terms in ranges.items()
            if j in observed and j != column
        ]
        for side, terms in enumerate(((first, last_left), (last_left + 1, last))):
            own = trapezium_membership(x[column], partitions[column].trapezium(*terms))
            sides[side] += join([*rest, own]) * weights
    return float(gini_decrease(*sides))


def test_decrease_under_each_subset_by_brute_force():
    for t_norm in ["product", "minimum"]:
        X, y = cases(4, n=40)
        by_class = np.eye(3)[y]
        partitions = [partition_of(column, 4) for column in X.T]
        growth = module.FuzzyGrowth(
            FuzzyTreeClassifier(t_norm=t_norm), module.Slopes(X, partitions), by_class, np.random.default_rng(0)
        )
        node = module._Node()
        for column, last_left, side in ((2, 0, 0), (0, 2, 1), (2, 2, 1)):
            node = growth._children(node, column, last_left)[side]
        assert node.ranges == {2: (1, 2), 0: (0, 2)}
        cuts = growth._cuts(node)
        join = np.prod if t_norm == "product" else np.min
        for stays in product([False, True], repeat=2):
            used = [j for j, stay in zip(node.ranges, stays, strict=True) if stay]
            found = gini_decrease(*growth._sides(node, cuts, used))
            expected = [
                brute_force(X, by_class, partitions, node.ranges, j, t, used, join)
                for j, t in zip(cuts.column, cuts.last_left, strict=True)
            ]
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_identical_draws_are_the_decrease_under_that_subset(monkeypatch):
    """If every drawn subset keeps all conditions, the tree is the plain one; if none, it is another one."""
    X, y = cases(5)
    plain = FuzzyTreeClassifier(max_depth=4).fit(X, y).export_text()
    trees = {}
    for keep in (True, False):
        monkeypatch.setattr(
            module, "sampled_conditions", lambda n, k, rng, keep=keep: (np.full((1, n), keep), np.ones(1))
        )
        trees[keep] = FuzzyTreeClassifier(max_depth=4, n_subsets=3).fit(X, y).export_text()
    assert trees[True] == plain
    assert trees[False] != plain


# Weights, seeds, errors


def test_weights_are_repetitions():
    for n_subsets in [0, 3]:
        X, y = cases(6, n=80)
        weights = np.random.default_rng(0).integers(0, 4, size=80)
        model = FuzzyTreeClassifier(n_subsets=n_subsets, random_state=1)
        weighted = clone(model).fit(X, y, sample_weight=weights)
        repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        assert weighted.export_text() == repeated.export_text()
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))


def test_same_seed_same_tree():
    X, y = cases(7)
    texts = [FuzzyTreeClassifier(n_subsets=2, random_state=seed).fit(X, y).export_text() for seed in (1, 1, 2)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_blocks_of_cuts_change_nothing(monkeypatch):
    X, y = cases(8)
    whole = FuzzyTreeClassifier(n_subsets=2, random_state=0).fit(X, y).export_text()
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 500)
    assert FuzzyTreeClassifier(n_subsets=2, random_state=0).fit(X, y).export_text() == whole


def test_parameters_are_refused_by_name():
    cases: list[Any] = [
        ("n_terms", 1),
        ("n_terms", "three"),
        ("max_depth", 0),
        ("min_weight_leaf", -1),
        ("min_weight_leaf", float("inf")),
        ("min_impurity_decrease", None),
        ("t_norm", "average"),
        ("n_subsets", -2),
    ]
    for name, value in cases:
        with pytest.raises(InvalidInput, match=f"{name} must be .*got {value!r}"):
            FuzzyTreeClassifier(**{name: value}).fit(np.eye(4), [0, 1, 0, 1])
