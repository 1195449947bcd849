"""Opportunistic Learning: certainty by dropout, its change as the worth of a feature."""

from typing import Any

import numpy as np
import pytest
from tests.made import holed_numbers

from askwise.policy.orders import Random
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.opportunistic import Opportunistic

torch = pytest.importorskip("torch")

KIND, GAUSSIAN, N_TRAINED = Opportunistic, {"n_samples": 1300, "n_features": 8, "n_informative": 4}, 1000
FAST: dict[str, Any] = {"hidden": (32, 16), "dropout": 0.3, "n_samples": 10, "n_episodes": 3200, "learning_rate": 3e-3}


def nothing(n_features):
    """One case of which nothing is known: its rows and its mask."""
    return EncodedRows(np.full((1, n_features), np.nan)), np.zeros((1, n_features), dtype=bool)


def test_it_beats_a_random_order_on_average(fitted, gaussian):
    def mean_accuracy():
        return fitted.evaluate(gaussian.X[1000:], gaussian.y[1000:]).accuracy.mean()

    own, policy = mean_accuracy(), fitted.policy_
    fitted.policy_ = Random(seed=0)
    try:
        assert own > mean_accuracy() + 0.02
    finally:
        fitted.policy_ = policy


def test_q_is_the_expected_change_of_certainty(fitted, gaussian):
    """From nothing known, the mean change that each feature brings over many rows is what Q has learned."""
    X = gaussian.X[1000:].to_numpy()
    before = fitted.predictor_.predict_proba(X, np.zeros(X.shape, dtype=bool))
    masks = np.eye(X.shape[1], dtype=bool)
    change = [np.abs(fitted.predictor_.predict_proba(X, mask) - before).sum(axis=1).mean() for mask in masks]
    worth = fitted._worth(*nothing(8))[0]
    assert np.corrcoef(worth, change)[0, 1] > 0.8
    assert worth.argmax() == np.argmax(change)


def test_the_served_network_is_the_trained_one_with_fixed_dropout(fitted, gaussian):
    X = gaussian.X[1000:1020]
    np.testing.assert_array_equal(fitted.predict_proba(X), fitted.predict_proba(X))
    inputs = fitted.coder_(EncodedRows(X.to_numpy()))
    by_hand = []
    for k in range(FAST["n_samples"]):
        active = inputs
        for weight, bias, kept in zip(
            fitted.dropped_.layers.weights, fitted.dropped_.layers.biases, fitted.dropped_.kept, strict=False
        ):
            active = np.maximum(active @ weight + bias, 0) * kept[k]
        logits = active @ fitted.dropped_.layers.weights[-1] + fitted.dropped_.layers.biases[-1]
        exponentials = np.exp(logits)
        by_hand.append(exponentials / exponentials.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(fitted.predict_proba(X), np.mean(by_hand, axis=0))


def test_more_is_more_certain(fitted, gaussian):
    run = fitted.acquire(gaussian.X[1000:])
    certainty = run.proba.max(axis=2).mean(axis=0)
    assert certainty[-1] > certainty[1] > certainty[0]


def test_a_price_divides_the_worth(gaussian):
    short = {**FAST, "n_episodes": 64}
    prices = np.arange(1.0, 9.0)
    baseline = Opportunistic(**short, costs=prices, random_state=0).fit(gaussian.X[:200], gaussian.y[:200])
    worth = baseline._worth(*nothing(8))
    expected = np.where(worth > 0, worth / prices, worth * prices)
    np.testing.assert_allclose(baseline.ranking(gaussian.X[:1].where(np.zeros((1, 8), dtype=bool))), expected)


def test_later_rewards_count_where_gamma_says_so_and_missing_cells_are_left_out():
    X, y = holed_numbers(150)
    short = {**FAST, "n_episodes": 640}
    near, far = (Opportunistic(**short, gamma=gamma, random_state=0).fit(X, y) for gamma in (0.0, 0.9))
    assert far._worth(*nothing(4)).mean() > near._worth(*nothing(4)).mean()
    run = far.acquire(X)
    np.testing.assert_array_equal(run.mask_after(run.n_steps), ~np.isnan(X))
