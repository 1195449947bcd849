"""AACO: neighbors, sets that are tried, and the oracle's choice."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from askwise import Prices
from askwise.datasets import make_switch
from askwise.errors import InvalidInput
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.aaco import AACO


def pair_data(n=300, seed=0):
    """The label is the sign of a product: two columns tell it together, neither alone; a third is faintly related."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X[:, 1] * X[:, 3] > 0).astype(int)
    X[:, 0] += 0.3 * y
    return X, y


def by_hand(policy, had, neighbors):
    """The oracle's objective, set by set."""
    steps = {int(i): had | (np.arange(len(had)) == i) for i in np.flatnonzero(~had)}
    sets = {tuple(mask) for mask in [*steps.values(), *(had | policy.sets)]} - {tuple(had)}

    def objective(subset, weight):
        mask = np.array([subset])
        cost = policy.prices.total(mask) - policy.prices.total(had[None])
        return policy.losses(neighbors, mask).mean() + weight * cost[0]

    best = np.array(min(sets, key=lambda subset: objective(subset, policy.weight)))
    return min(np.flatnonzero(best & ~had), key=lambda i: objective(steps[int(i)], 0.0))


def test_the_choice_is_that_of_the_definition():
    for costs in [None, [1.0, 3.0, 0.5, 1.0, 2.0]]:
        X, y = pair_data(120)
        model = RandomForestClassifier(10, random_state=0)
        baseline = AACO(model, n_neighbors=7, n_subsets=20, costs=costs, random_state=0).fit(X, y)
        policy: Any = baseline.policy_
        rng = np.random.default_rng(1)
        cases = rng.normal(size=(6, 5))
        for had in (np.array([True, False, False, False, False]), np.array([False, True, True, False, False])):
            partly = np.where(had, cases, np.nan)
            index, _ = policy.neighbors.nearest(policy.neighbors.squared_distances(EncodedRows(partly)))
            expected = [by_hand(policy, had, row) for row in index]
            assert_array_equal(baseline.suggest(partly), expected)


def test_with_nothing_known_all_rows_are_neighbors():
    X, y = pair_data(120)
    baseline = AACO(LogisticRegression(), n_neighbors=3, n_subsets=20, random_state=0).fit(X, y)
    expected = by_hand(baseline.policy_, np.zeros(5, dtype=bool), np.arange(120))
    assert baseline.suggest(np.full((1, 5), np.nan))[0] == expected


def test_it_looks_further_than_one_feature():
    """A single step gains most from the faint column; the oracle wants one of the pair."""
    X, y = pair_data()
    model = RandomForestClassifier(60, min_samples_leaf=3, random_state=0)
    nothing = np.full((1, 5), np.nan)
    far = AACO(model, adaptation="mean", n_subsets=60, acquisition_cost=0.0, random_state=0).fit(X, y)
    assert (far.ranking(nothing)[0, [1, 3]] > 1).all()  # both are in the set that is wanted


def test_sets_that_cost_too_much_are_left():
    X, y = pair_data(120)
    nothing = np.full((1, 5), np.nan)
    wanted = [
        (AACO(LogisticRegression(), acquisition_cost=cost, n_subsets=50, random_state=0).fit(X, y).ranking(nothing) > 1)
        for cost in (0.0, 50.0)
    ]
    assert wanted[0].sum() > 1
    assert wanted[1].sum() == 1


def test_the_currency_does_not_matter():
    X, y = pair_data(120)
    prices = np.array([1.0, 3.0, 0.5, 1.0, 2.0])
    runs = [
        AACO(LogisticRegression(), costs=scale * prices, n_subsets=20, random_state=0).fit(X, y).acquire(X[:20])
        for scale in (1, 100)
    ]
    assert_array_equal(runs[0].order, runs[1].order)


def test_a_fitted_model_is_used_as_it_is():
    X, y = pair_data(120)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    for adaptation in ("mean", "conditional"):
        baseline = AACO(model, adaptation=adaptation, n_subsets=10, random_state=0).fit(X, y)
        assert baseline.predictor_.estimator_ is model
        assert_array_equal(baseline.predict_proba(X), before)
    assert_array_equal(model.predict_proba(X), before)


def test_losses_of_the_network_are_those_of_its_predictions():
    X, y = pair_data(60)
    X[::4, 2] = np.nan
    baseline = AACO(epochs=3, width=8, n_subsets=10, random_state=0, groups={"pair": [0, 2]}).fit(X, y)
    subsets = np.random.default_rng(0).random((6, 4)) < 0.5
    policy: Any = baseline.policy_
    found = policy.losses(np.arange(60), subsets)
    for subset, losses in zip(subsets, found.T, strict=True):
        partly = np.where(baseline.schema_.expand(subset[None]), X, np.nan)
        expected = -np.log(baseline.predict_proba(partly)[np.arange(60), y])
        assert_allclose(losses, expected, rtol=1e-4, atol=1e-5)


def test_better_than_a_random_order():
    data = make_switch(400, n_settings=2, block_size=2, n_noise=4, noise=0.5, random_state=0)
    X, y = data.sample(300, random_state=1)
    baseline = AACO(epochs=60, random_state=0).fit(data.X, data.y)
    chosen = baseline.evaluate(X, y, budgets=[2.0])["accuracy"][0]
    order = np.random.default_rng(0).random((300, X.shape[1])).argsort(axis=1).argsort(axis=1)
    at_random = np.mean(baseline.predict(X.where(order < 2)) == y)
    assert chosen > at_random + 0.05


def test_prices_of_sets_pay_set_up_costs_once():
    prices = Prices([3.0, 2.0, 1.0], shared=[([0, 1], 1.5)]).resolve(["a", "b", "c"])
    masks = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    assert_allclose(prices.total(masks), [0.0, 3.0, 3.5, 4.5])
    assert prices.total(masks[-1:])[0] == prices.total()


def test_parameters_that_are_refused():
    cases: list[Any] = [
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"n_subsets": 1.5}, "n_subsets must be"),
        ({"acquisition_cost": -1.0}, "acquisition_cost must be"),
        ({"adaptation": "guess"}, "adaptation must be"),
    ]
    for parameters, words in cases:
        X, y = pair_data(30)
        with pytest.raises(InvalidInput, match=words):
            AACO(LogisticRegression(), **parameters).fit(X, y)
