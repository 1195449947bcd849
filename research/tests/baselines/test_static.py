"""Static baselines: the estimates of information, the ranking, and the subset that a budget buys."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from askwise import Prices
from askwise.errors import InvalidInput
from askwise.policy.information import conditional_information, discretized, greedy_order
from askwise.table.schema import read_table
from askwise_bench.baselines.best_subset import BestSubset, StaticBest
from askwise_bench.baselines.static import StaticCMI

FREE = Prices(np.ones(3)).resolve(["a", "b", "c"])


def copies(n=600, seed=0):
    """Column 0 tells most, column 1 is nearly its copy, column 2 tells something else; the last two are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=n)
    y = (X[:, 0] + 0.7 * X[:, 2] > 0).astype(int)
    return X, y


def test_information_of_a_copy_and_of_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    levels = np.column_stack([y, rng.integers(3, size=4000), np.where(rng.random(4000) < 0.1, 1 - y, y)])
    alone = conditional_information(levels, y, np.zeros(4000, dtype=int))
    flip = np.log(2) + 0.1 * np.log(0.1) + 0.9 * np.log(0.9)
    assert_allclose(alone, [np.log(2), 0.0, flip], atol=0.02)
    assert_allclose(conditional_information(levels, y, levels[:, 0]), 0.0, atol=1e-3)


def test_information_of_a_pair_that_tells_only_together():
    rng = np.random.default_rng(0)
    levels = rng.integers(2, size=(4000, 2))
    y = levels[:, 0] ^ levels[:, 1]
    assert_allclose(conditional_information(levels, y, np.zeros(4000, dtype=int)), 0.0, atol=2e-3)
    assert_allclose(conditional_information(levels, y, levels[:, 1])[0], np.log(2), atol=2e-3)


def test_the_correction_takes_the_bias_of_many_levels_away():
    rng = np.random.default_rng(0)
    found = [
        conditional_information(rng.integers(20, size=(200, 1)), rng.integers(2, size=200), np.zeros(200, dtype=int))[0]
        for _ in range(30)
    ]
    assert np.mean(found) < 0.02  # uncorrected about 19 / 400


def test_missing_cells_are_left_out_of_the_counts():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    levels = np.column_stack([y, y])
    levels[::2, 1] = -1
    assert_allclose(conditional_information(levels, y, np.zeros(3000, dtype=int)), np.log(2), atol=0.01)


def test_levels_of_numbers_and_groups():
    X, y = copies(100)
    X[0, 0] = np.nan
    schema, rows = read_table(X, {"pair": [2, 3]})
    levels = discretized(rows, y, schema, 4)
    assert levels.shape == (100, 4)
    assert levels[0, 0] == -1
    assert_allclose(np.bincount(levels[1:, 0]), 99 / 4, atol=1)
    assert set(levels[:, 2]) <= {0, 1, 2, 3}


def test_a_copy_is_worth_nothing_once_the_original_is_known():
    for criterion, expected in [("mi", [0, 1, 2]), ("cmim", [0, 2, 1]), ("jmi", [0, 2, 1])]:
        X, y = copies()
        baseline = StaticCMI(criterion=criterion, n_bins=5, random_state=0).fit(X, y)
        first = baseline.order_[:3].copy()
        first[np.isin(first, [0, 1])] = np.where(np.cumsum(np.isin(first, [0, 1]))[np.isin(first, [0, 1])] == 1, 0, 1)
        assert_array_equal(first, expected)


def test_the_ranking_is_by_information_per_price():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=500)
    levels = np.column_stack([np.where(rng.random(500) < p, 1 - y, y) for p in (0.05, 0.1, 0.4)])
    assert greedy_order(levels, y, FREE, "mi").tolist() == [0, 1, 2]
    expensive = Prices([10.0, 1.0, 1.0]).resolve(["a", "b", "c"])
    assert greedy_order(levels, y, expensive, "mi").tolist()[0] == 1


def test_all_rows_get_the_same_features():
    X, y = copies(200)
    baseline = StaticCMI(random_state=0).fit(X, y)
    assert_array_equal(baseline.acquire(X[:20]).order, np.tile(baseline.order_, (20, 1)))


def test_another_classifier_takes_the_place_of_the_tree():
    X, y = copies(300)
    forest = StaticCMI(classifier=RandomForestClassifier(20), random_state=0)
    proba = forest.fit(X[:200], y[:200]).predict_proba(X[200:])
    assert_array_equal(forest.fit(X[:200], y[:200]).predict_proba(X[200:]), proba)  # open seeds are set
    assert np.mean(forest.predict(X[200:]) == y[200:]) > 0.85
    assert forest.classifier.random_state is None


def test_the_best_subset_is_found_where_ranks_mislead():
    X, y = copies(400)
    baseline = StaticBest(classifier=LogisticRegression(), random_state=0).fit(X, y)
    bought = np.flatnonzero(baseline.acquire(X[:1], budget=2).mask_after(-1)[0])
    assert bought.tolist() in ([0, 2], [1, 2])


def test_each_budget_has_a_subset_of_its_own():
    """Two cheap columns are the best buy for 2, the expensive one that tells everything for 3."""
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(400, 5))
    y = (parts.sum(axis=1) > 0).astype(int)
    X = np.column_stack([parts[:, :3], parts.sum(axis=1) + 0.05 * rng.normal(size=400)])
    baseline = StaticBest(classifier=LogisticRegression(), costs=[1.0, 1.0, 1.0, 3.0], random_state=0).fit(X, y)
    assert baseline.acquire(X[:5], budget=2.0).mask_after(-1)[:, :3].sum(axis=1).tolist() == [2] * 5
    assert baseline.acquire(X[:5], budget=3.0).mask_after(-1).tolist() == [[False, False, False, True]] * 5
    found = baseline.evaluate(X, y, budgets=[2.0, 3.0])
    assert found["accuracy"][1] > found["accuracy"][0] + 0.05


def test_the_plan_is_kept_while_it_is_bought():
    rng = np.random.default_rng(0)
    subsets = np.unique(rng.random((40, 6)) < 0.5, axis=0)
    subsets = np.vstack([np.zeros((1, 6), dtype=bool), subsets])
    prices = Prices([1.0, 2.0, 3.0, 1.5, 2.5, 4.0], shared=[([0, 1, 4], 0.7)]).resolve(list("abcdef"))
    policy = BestSubset(subsets, rng.random(len(subsets)), prices)
    for budget in (3.0, 5.0, 8.0):
        had, left = np.zeros(6, dtype=bool), budget
        plan = policy.plan(had, left)
        for i in np.flatnonzero(plan):
            left -= prices.now(had[None])[0, i]
            had[i] = True
            assert_array_equal(policy.plan(had, left) | had, plan)
        assert left >= -1e-9


def test_the_money_is_spent_where_a_subset_spends_it():
    subsets = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=bool)
    policy = BestSubset(subsets, np.array([1.0, 0.1, 0.3, 0.2]), FREE)
    nothing = np.zeros(3, dtype=bool)
    assert policy.plan(nothing, 1.0).tolist() == [True, False, False]
    assert policy.plan(nothing, 2.0).tolist() == [False, True, True]


def test_parameters_that_are_refused():
    for baseline, words in [
        (StaticCMI(criterion="best"), "criterion must be"),
        (StaticCMI(n_bins=1), "n_bins must be"),
        (StaticCMI(classifier="tree"), "classifier must be"),
        (StaticBest(n_folds=1), "n_folds must be"),
        (StaticBest(max_features=0), "max_features must be"),
    ]:
        X, y = copies(30)
        with pytest.raises(InvalidInput, match=words):
            baseline.fit(X, y)


def test_it_has_a_flowchart_and_rows_keep_theirs():
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    chart = StaticCMI(random_state=0).fit(X[:150], y[:150]).flowchart(X[150:], max_depth=2)
    assert chart.measured.policy > 0.7
    again = StaticCMI(random_state=0).fit(X[:150], y[:150]).flowchart(X[150:], max_depth=2)
    assert again.to_dict() == chart.to_dict()
