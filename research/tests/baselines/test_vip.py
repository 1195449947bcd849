"""VIP: its querier asks for what tells the classes apart, and its classifier learns from what was asked."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.made import holed_numbers

from askwise.policy.orders import Random
from askwise_bench.baselines.vip import VIP

torch = pytest.importorskip("torch")

KIND, GAUSSIAN, N_TRAINED = VIP, {"n_samples": 1500, "n_features": 8, "n_informative": 4}, 1000
FAST: dict[str, Any] = {"random_epochs": 12, "biased_epochs": 6, "hidden": 32, "dropout": 0.2, "learning_rate": 3e-3}


def accuracies(baseline, data):
    return baseline.evaluate(data.X[1000:], data.y[1000:]).accuracy.to_numpy()


def test_it_beats_a_random_order_at_every_budget_below_everything(fitted, gaussian):
    own = accuracies(fitted, gaussian)
    asked, fitted.policy_ = fitted.policy_, Random(seed=0)
    try:
        at_random = accuracies(fitted, gaussian)
    finally:
        fitted.policy_ = asked
    assert (own[:-1] > at_random[:-1]).all()
    assert own[-1] == at_random[-1]  # everything is bought


def test_it_asks_for_signal_before_noise(fitted, gaussian):
    first = fitted.acquire(gaussian.X[1000:], budget=3).order
    names = np.array(fitted.features_)[first]
    assert np.char.startswith(names.astype(str), "signal").mean() > 0.9


def test_the_first_question_is_the_most_informative_feature(fitted, gaussian):
    nothing = np.full((1, 8), np.nan)
    gains = gaussian.exact_gain(gaussian.X[:1], np.zeros((1, 8), dtype=bool))[0]
    assert gains[fitted.suggest(pd.DataFrame(nothing, columns=gaussian.X.columns))[0]] > 0.8 * gains.max()


def test_the_classifier_is_near_the_exact_posterior_on_everything(fitted, gaussian):
    exact = gaussian.exact_proba(gaussian.X[1000:])
    agreement = fitted.predict_proba(gaussian.X[1000:]).argmax(axis=1) == exact.argmax(axis=1)
    assert agreement.mean() > 0.93


def test_with_nothing_known_it_answers_with_the_class_frequencies(fitted, gaussian):
    nothing = pd.DataFrame(np.full((2, 8), np.nan), columns=gaussian.X.columns)
    np.testing.assert_allclose(fitted.predict_proba(nothing), np.tile(np.bincount(gaussian.y[:1000]) / 1000, (2, 1)))


def test_the_worth_of_hidden_features_sums_to_one_and_prices_divide_it(gaussian):
    prices = np.arange(1.0, 9.0)
    short = {**FAST, "random_epochs": 1, "biased_epochs": 1}
    baseline = VIP(**short, costs=prices, random_state=0).fit(gaussian.X[:200], gaussian.y[:200])
    known = gaussian.X[200:210].copy()
    known.iloc[:, 3:] = np.nan
    worth = baseline.ranking(known) * prices
    assert np.isneginf(worth[:, :3]).all()
    np.testing.assert_allclose(worth[:, 3:].sum(axis=1), 1.0)


def test_missing_cells_and_free_features_are_taken_in_training():
    X, y = holed_numbers(120)
    short = {**FAST, "random_epochs": 4, "biased_epochs": 4}
    baseline = VIP(**short, costs=[0, 1, 1, 1], random_state=0).fit(X, y)
    run = baseline.acquire(X)
    bought = run.mask_after(run.n_steps)
    np.testing.assert_array_equal(bought, ~np.isnan(X))
    assert np.isfinite(run.proba).all()
