"""What features usually tell: the means, the weight beside a case's own gain, and where a selector learns them."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import askwise
from askwise import DynamicFeatureSelector
from askwise.policy import Lookahead, Planned
from askwise.table.subsets import extended
from askwise.value import SeenGains, UsualGains
from askwise.value.usual import FLOOR, PRIOR_STATES, actual_gains

N_NOISE = 12


def noisy(n=150, seed=0):
    """The class is the sign of the sum of the first two columns; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 + N_NOISE))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def fitted(estimator=None, **options):
    X, y = noisy()
    model = RandomForestClassifier(10, random_state=0) if estimator is None else estimator
    given = {"random_state": 0, "progress": False, "epistemic": None, **options}
    return DynamicFeatureSelector(model, **given).fit(X, y)


@pytest.fixture(scope="module")
def auto():
    return fitted()


def seen_gains(expected, actual, seed=0):
    rng = np.random.default_rng(seed)
    return SeenGains(np.arange(len(actual)), rng.integers(0, actual.shape[1], len(actual)), expected, actual)


def test_constant_gains_are_found_and_drawn_to_zero():
    actual = np.tile([0.5, 0.2, -0.1], (400, 1))
    usual = UsualGains.learned(seen_gains(actual, actual))
    assert usual.by_size.shape == (4, 3)
    assert (np.abs(usual.by_size) < np.abs(actual[0])).all()
    assert_allclose(usual.by_size[1], actual[0], rtol=0.1)
    few = UsualGains.learned(seen_gains(actual[:5], actual[:5]))
    assert (np.abs(few.by_size) < np.abs(actual[0]) * 10 / PRIOR_STATES).all()


def test_features_that_could_not_be_acquired_do_not_count():
    actual = np.tile([0.5, 0.2, -0.1], (400, 1))
    actual[::2, 1] = np.nan
    usual = UsualGains.learned(seen_gains(actual, actual))
    assert_allclose(usual.by_size[1], [0.5, 0.2, -0.1], rtol=0.2)


def test_the_weight_tells_a_signal_from_noise():
    rng = np.random.default_rng(0)
    actual = rng.normal(size=(500, 6))
    right, luck = seen_gains(actual, actual), seen_gains(rng.normal(size=(500, 6)), actual)
    assert UsualGains.learned(right).fitted_share == pytest.approx(1.0, abs=0.05)
    assert UsualGains.learned(luck).fitted_share == pytest.approx(0.0, abs=0.1)
    half = seen_gains(actual + rng.normal(size=actual.shape), actual)
    assert UsualGains.learned(half).fitted_share == pytest.approx(0.5, abs=0.1)


def test_a_common_shift_of_a_state_does_not_move_the_weight():
    rng = np.random.default_rng(0)
    actual, expected = rng.normal(size=(2, 500, 6))
    shifted = seen_gains(expected + 10 * rng.normal(size=(500, 1)), actual)
    assert UsualGains.learned(shifted).fitted_share == pytest.approx(
        UsualGains.learned(seen_gains(expected, actual)).fitted_share, abs=1e-12
    )


def test_the_mixture_is_between_both_and_depends_on_the_number_known():
    by_size, gain = np.arange(12.0).reshape(4, 3), np.ones((2, 3))
    mask = np.array([[False, False, False], [True, False, True]])
    assert_array_equal(UsualGains(by_size, 1.0, 1.0, 9).mixed(gain, mask), gain)
    assert_array_equal(UsualGains(by_size, 0.0, 0.0, 9).mixed(gain, mask), by_size[[0, 2]])
    assert_allclose(UsualGains(by_size, 0.5, 0.5, 9).mixed(gain, mask), (gain + by_size[[0, 2]]) / 2)


def test_actual_gains_are_those_of_the_rows_with_the_feature(auto):
    predictor, (X, _) = auto.predictor_, noisy(20, seed=1)
    truth, rng = auto._encode(X), np.random.default_rng(0)
    mask = rng.random((20, 2 + N_NOISE)) < 0.3
    state = truth.masked(mask)
    found = actual_gains(predictor, state, truth, ~mask)
    assert_array_equal(np.isnan(found), mask)

    def log_answers(rows):
        squared = predictor.similar_.squared_distances(rows)
        widths = predictor._by_scott(rows.observed.sum(axis=1))
        weights = np.exp(-squared / (2 * widths[:, None] ** 2))
        mean = weights @ predictor._pool_answers / weights.sum(axis=1, keepdims=True)
        return np.log((1 - FLOOR) * mean + FLOOR * predictor._pool_answers.mean(axis=0))

    for i in (0, 5):
        after = log_answers(truth.masked(extended(mask, np.full(20, i))))
        expected = (predictor.full_proba(truth) * (after - log_answers(state))).sum(axis=1)
        assert_allclose(found[~mask[:, i], i], expected[~mask[:, i]], atol=1e-4)  # single precision


def test_what_tells_something_is_told_from_noise(auto):
    by_size = auto.usual_gains_.by_size
    assert by_size[:3, :2].min() > by_size[:3, 2:].max()


def test_auto_learns_it_and_what_has_a_name_stays_as_it_is(auto):
    X, _ = noisy(30, seed=1)
    plain = fitted(policy="greedy")
    assert plain.usual_gains_ is None
    assert plain.policy_.usual_ is None
    assert auto.policy_.usual_ is auto.usual_gains_
    partly = np.where(np.arange(X.shape[1]) < 3, X, np.nan)
    assert_array_equal(auto.with_policy("greedy").ranking(partly), plain.ranking(partly))
    again = auto.with_policy("greedy").with_policy("auto")
    assert_array_equal(again.ranking(partly), auto.ranking(partly))
    assert np.abs(auto.gains(partly)[:, 3:] - plain.gains(partly)[:, 3:]).max() > 1e-4


def test_it_is_said_in_a_sentence_and_a_table(auto):
    said = json.loads(json.dumps(auto.choices_["policy"]["usual_gains"]))
    own, others = said["own_share"], 1 - said["own_share"]
    assert said["in_words"].startswith(f"A gain is {own:.0%} what similar rows promise for the case and {others:.0%} ")
    assert [row["known"] for row in said["usually_best"]] == [0, 1, 2, 5, 10]
    assert set(list(said["usually_best"][0]["gains"])[:2]) == {"x0", "x1"}
    assert "usual_gains" not in auto.with_policy("greedy").choices_["policy"]


def test_without_unseen_rows_a_gain_is_that_of_the_case():
    X, y = noisy()
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    assert fitted(calibration=None).usual_gains_ is None
    assert fitted(forest.predict_proba).usual_gains_ is None
    owner = DynamicFeatureSelector(forest, epistemic=None, random_state=0, progress=False)
    usual = owner.fit(X[:100], y[:100], X_unseen=X[100:], y_unseen=y[100:]).usual_gains_
    assert usual is not None
    assert usual.n_states > 100
    assert not hasattr(clone(owner), "policy_")


def test_plans_weigh_the_mixed_gains_and_gates_leave_them_out():
    planned = fitted(costs=np.linspace(1, 3, 2 + N_NOISE))
    assert isinstance(planned.policy_, Planned)
    assert planned.policy_.usual_ is planned.usual_gains_ is not None
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) > 0).astype(int)
    gated = DynamicFeatureSelector(RandomForestClassifier(30, random_state=0), random_state=0, epistemic=None).fit(X, y)
    assert isinstance(gated.policy_, Lookahead)
    assert gated.usual_gains_ is None


def test_sessions_equal_batches_and_folders_keep_it(auto, tmp_path):
    X, _ = noisy(6, seed=2)
    order = auto.acquire(X, budget=4).order
    auto.save(tmp_path / "selector")
    loaded = askwise.load(tmp_path / "selector")
    assert_array_equal(loaded.acquire(X, budget=4).order, order)
    assert loaded.choices_ == auto.choices_
    for row, wanted in zip(X, order, strict=True):
        case = auto.start(budget=4)
        for i in wanted:
            assert case.suggest().feature == auto.features_[i]
            case.answer(auto.features_[i], row[i])


def test_the_risk_weight_still_counts():
    owner = fitted(LogisticRegression(), epistemic="auto")
    partly = np.where(np.arange(2 + N_NOISE) < 3, noisy(5, seed=3)[0], np.nan)
    owner.risk_weight = 0.0
    certain = owner.ranking(partly)
    owner.risk_weight = 5.0
    assert np.abs(owner.ranking(partly)[:, 3:] - certain[:, 3:]).max() > 1e-6


@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_the_weight_does_not_depend_on_the_unit_of_the_gains(unit):
    rng = np.random.default_rng(0)
    actual = rng.random((200, 4))
    expected = actual + rng.normal(0, 0.3, size=actual.shape)
    seen = SeenGains(np.arange(200), np.zeros(200, dtype=int), expected=unit * expected, actual=unit * actual)
    found = UsualGains.learned(seen)
    assert 0.3 < found.fitted_share < 0.7
    assert found.own_share == (found.fitted_share + 1) / 2
