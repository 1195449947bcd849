"""Lines that baselines are measured against."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from askwise.datasets import make_gaussian, make_switch
from askwise.errors import InvalidInput
from askwise_bench.baselines.reference import ExactOracle, FullInformation, RandomOrder


def test_a_random_order_differs_from_row_to_row():
    data = make_gaussian(150, 4, random_state=0)
    baseline = RandomOrder(LogisticRegression(), random_state=0).fit(data.X, data.y)
    order = baseline.acquire(data.X).order
    assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(4), (150, 1)))
    assert len(np.unique(order, axis=0)) > 15
    assert_array_equal(baseline.acquire(data.X).order, order)


def test_full_information_predicts_from_everything_under_every_budget():
    data = make_gaussian(200, 4, random_state=0)
    X, y = data.sample(100, random_state=1)
    baseline = FullInformation(LogisticRegression(), random_state=0).fit(data.X, data.y)
    everything = baseline.predict_proba(X)
    run = baseline.acquire(X, budget=2)
    assert run.mask_after(-1).sum(axis=1).tolist() == [2] * 100
    assert_array_equal(run.proba, np.repeat(everything[:, None], 3, axis=1))
    assert_array_equal(run.predict(0), baseline.predict(X))
    assert (run.decision_is_final == 1).all()
    assert_allclose(run.uncertainty.total, run.uncertainty.total[:, :1].repeat(3, axis=1))
    found = baseline.evaluate(X, y)
    assert_allclose(found["accuracy"], np.mean(baseline.predict(X) == y))
    assert found["spent"].tolist() == [1, 2, 3, 4]
    assert baseline.sees_everything


def test_the_exact_oracle_answers_and_buys_exactly():
    data = make_gaussian(200, 5, random_state=0)
    X, y = data.sample(300, random_state=1)
    oracle = ExactOracle(data).fit(data.X, data.y)
    mask = np.random.default_rng(0).random(X.shape) < 0.4
    assert_allclose(oracle.predict_proba(X.where(mask)), data.exact_proba(X, mask))
    gain = data.exact_gain(X.where(mask).fillna(0.0), mask)
    assert_allclose(oracle.ranking(X.where(mask))[~mask], gain[~mask])
    accuracy = oracle.evaluate(X, y)["accuracy"].to_numpy()
    assert accuracy[-1] == np.mean(data.exact_proba(X).argmax(axis=1) == y)
    assert accuracy[-1] > accuracy[0]


def test_prices_divide_the_exact_gain():
    data = make_gaussian(200, 5, random_state=0)
    costs = np.array([1.0, 2.0, 4.0, 0.5, 1.0])
    nothing = data.X[:3].where(np.zeros((3, 5), dtype=bool))
    plain = ExactOracle(data).fit(data.X, data.y).ranking(nothing)
    assert_allclose(ExactOracle(data, costs=costs).fit(data.X, data.y).ranking(nothing), plain / costs)


def test_gains_on_switch_data_are_those_of_a_simulation():
    for categorical in [False, True]:
        data = make_switch(2000, n_settings=2, block_size=2, n_noise=1, categorical_switch=categorical, random_state=0)
        oracle = ExactOracle(data).fit(data.X, data.y)
        nothing = data.X[:1].where(np.zeros((1, 6), dtype=bool))
        scores = oracle.ranking(nothing)[0]
        assert_allclose(scores[-2:], 0.0, atol=1e-9)  # noise, and a switch that is worthless alone
        assert_allclose(scores[:4], scores[0])
        X, _ = data.sample(100_000, random_state=1)
        alone = data.exact_proba(X, np.tile(np.arange(6) == 0, (len(X), 1)))
        simulated = np.log(2) + (alone * np.log(alone)).sum(axis=1).mean()
        assert_allclose(scores[0], simulated, atol=2e-3)


def test_once_a_reading_is_known_the_switch_is_worth_something():
    data = make_switch(200, n_settings=2, block_size=1, n_noise=0, random_state=0)
    cells = np.array([[2.0, np.nan, np.nan], [2.0, np.nan, 0.0], [2.0, np.nan, 1.0]])
    gain = data.exact_gain(cells)
    assert gain[0, 2] > 0.05
    assert gain[1, 1] == pytest.approx(0.0, abs=1e-9)  # the switch names the other block
    assert gain[2, 1] > 0.1


def test_the_oracle_refuses_what_it_does_not_know():
    data = make_gaussian(100, 3, random_state=0)
    with pytest.raises(InvalidInput, match="columns of the data set"):
        ExactOracle(data).fit(data.X.rename(columns={data.X.columns[0]: "other"}), data.y)
    with pytest.raises(InvalidInput, match="leave out groups"):
        ExactOracle(data, groups={"pair": [0, 1]}).fit(data.X, data.y)
    with pytest.raises(InvalidInput, match="classes of the data"):
        ExactOracle(data).fit(data.X, data.y + 1)
    nothing: Any = None
    with pytest.raises(InvalidInput, match="must come from"):
        ExactOracle(nothing).fit(data.X, data.y)
