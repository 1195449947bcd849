"""Gaussian classes: the exact answer against closed forms, counting and simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from askwise.datasets import SyntheticDataset, make_gaussian
from askwise.datasets.gaussian import GaussianDataset, gaussian_posterior
from askwise.errors import InvalidInput


@pytest.fixture(scope="module")
def data() -> GaussianDataset:
    return make_gaussian(400, n_features=5, n_classes=3, n_informative=4, shared_covariance=False, random_state=3)


def random_masks(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < 0.5


def test_two_classes_in_one_dimension_have_the_logistic_form():
    x = np.linspace(-3, 3, 7)[:, None]
    proba = gaussian_posterior(x, np.array([0.3, 0.7]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    np.testing.assert_allclose(proba[:, 1], expit(2 * x[:, 0] + np.log(0.7 / 0.3)), rtol=1e-12)


def test_every_subset_agrees_with_scipy(data):
    X = data.X[:40]
    mask = random_masks(X.shape)
    proba = data.exact_proba(X, mask)
    for row in range(len(X)):
        S = np.flatnonzero(mask[row])
        joint = data.prior.copy()
        for label in range(3 if len(S) else 0):
            covariance = data.covariances[label][np.ix_(S, S)]
            joint[label] *= multivariate_normal(data.means[label][S], covariance).pdf(X.to_numpy()[row, S])
        np.testing.assert_allclose(proba[row], joint / joint.sum(), rtol=1e-9)


def test_exact_proba_is_what_counting_finds(data):
    """Among many draws whose first feature lies in a narrow bin, the classes come in the exact proportions."""
    X, y = data.sample(400_000, random_state=1)
    for center in (-1.0, 0.0, 1.0):
        near = (X.iloc[:, 0] - center).abs() < 0.05
        counted = np.bincount(y[near], minlength=3) / near.sum()
        row = np.full((1, 5), np.nan)
        row[0, 0] = center
        np.testing.assert_allclose(data.exact_proba(row)[0], counted, atol=0.02)


def test_exact_proba_is_calibrated_on_random_subsets(data):
    X, y = data.sample(100_000, random_state=2)
    proba = data.exact_proba(X, random_masks(X.shape))
    confidence, correct = proba.max(axis=1), proba.argmax(axis=1) == y
    for low, high in [(0.34, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0)]:
        bin_ = (confidence >= low) & (confidence < high)
        assert correct[bin_].mean() == pytest.approx(confidence[bin_].mean(), abs=0.015)


def test_nothing_observed_gives_the_prior(data):
    unbalanced = replace(data, prior=np.array([0.2, 0.5, 0.3]))
    nothing = np.zeros((6, 5), dtype=bool)
    np.testing.assert_allclose(unbalanced.exact_proba(data.X[:6], nothing), np.tile([0.2, 0.5, 0.3], (6, 1)))
    assert unbalanced.best_accuracy(0) == 0.5


def test_noise_features_change_nothing(data):
    with_noise = np.ones((50, 5), dtype=bool)
    without = with_noise & (data.X.columns != "noise_0")
    np.testing.assert_allclose(data.exact_proba(data.X[:50], with_noise), data.exact_proba(data.X[:50], without))


def test_hidden_cells_and_other_rows_do_not_matter(data):
    X, mask = data.X[:60], random_masks((60, 5))
    proba = data.exact_proba(X, mask)
    np.testing.assert_array_equal(data.exact_proba(X.where(mask, 1e6), mask), proba)
    np.testing.assert_array_equal(data.exact_proba(X.where(mask)), proba)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    one_by_one = np.vstack([data.exact_proba(X[i : i + 1], mask[i : i + 1]) for i in range(60)])
    np.testing.assert_allclose(one_by_one, proba, rtol=1e-10)


def test_rows_may_come_as_an_array_in_another_order_or_not_at_all(data):
    X = data.X[:10]
    np.testing.assert_array_equal(data.exact_proba(X.to_numpy()), data.exact_proba(X))
    np.testing.assert_array_equal(data.exact_proba(X[X.columns[::-1]]), data.exact_proba(X))
    assert data.exact_proba(X[:0]).shape == (0, 3)


def test_separation_and_correlation_are_what_was_asked_for():
    data = make_gaussian(10, n_features=6, n_classes=4, separation=2.5, correlation=0.3, random_state=0)
    pairs = [data.means[i] - data.means[j] for i in range(4) for j in range(i)]
    assert np.sqrt(np.mean([pair @ pair for pair in pairs])) == pytest.approx(2.5)
    np.testing.assert_allclose(np.abs(data.covariances), np.tile(0.3 + 0.7 * np.eye(6), (4, 1, 1)))


def test_draws_have_the_means_and_covariances_of_the_truth(data):
    X, y = data.sample(200_000, random_state=5)
    for label in range(3):
        rows = X[y == label].to_numpy()
        np.testing.assert_allclose(rows.mean(axis=0), data.means[label], atol=0.02)
        np.testing.assert_allclose(np.cov(rows.T), data.covariances[label], atol=0.03)


def test_best_accuracy_of_everything_is_that_of_the_bayes_rule():
    data = make_gaussian(100, n_features=3, n_classes=2, separation=2.0, correlation=0.0, random_state=0)
    assert data.best_accuracy() == pytest.approx(norm.cdf(1.0), abs=0.002)
    X, y = data.sample(50_000, random_state=1)
    simulated = (data.exact_proba(X).argmax(axis=1) == y).mean()
    assert data.best_accuracy(budget=3) == pytest.approx(simulated, abs=0.006)
    assert data.best_accuracy(budget=0) == 0.5


def test_best_accuracy_in_between_is_refused(data):
    with pytest.raises(InvalidInput, match="known for a budget of 5 or more"):
        data.best_accuracy(2)


def test_same_seed_same_table():
    one, two, three = (make_gaussian(50, random_state=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert not np.array_equal(one.X, three.X)
    pd.testing.assert_frame_equal(one.sample(5, random_state=0)[0], two.sample(5, random_state=0)[0])
    assert isinstance(one, SyntheticDataset)


def test_wrong_parameters_are_refused():
    cases: list[Any] = [
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1; got 0"),
        ({"n_classes": 1}, "n_classes must be a whole number of at least 2"),
        ({"n_informative": 9}, "n_informative must be a whole number from 1 to 8 or None; got 9"),
        ({"correlation": 1.0}, r"correlation must be a number in \[0, 1\); got 1.0"),
        ({"correlation": "high"}, "correlation must be a number"),
        ({"separation": None}, "separation must be a number >= 0; got None"),
        ({"shared_covariance": "yes"}, "shared_covariance must be True or False; got 'yes'"),
        ({"random_state": -1}, "random_state must be a seed"),
        ({"separation": -1.0}, "separation must be a number >= 0"),
    ]
    for parameters, said in cases:
        with pytest.raises(InvalidInput, match=said):
            make_gaussian(**parameters)


def test_wrong_input_of_exact_proba_is_refused(data):
    with pytest.raises(InvalidInput, match="it lacks"):
        data.exact_proba(data.X.drop(columns="noise_0"))
    with pytest.raises(InvalidInput, match="X must have 5 columns"):
        data.exact_proba(np.zeros((2, 4)))
    with pytest.raises(InvalidInput, match="mask must be boolean of the shape of X"):
        data.exact_proba(data.X[:2], np.ones((2, 5)))


def test_exact_gain_is_the_expected_reduction_of_the_discrepancy():
    """Against draws: E[KL(p(y | x) || p(y | x_S)) - KL(p(y | x) || p(y | x_S, x_i))] over all of x."""
    data = make_gaussian(n_features=3, n_classes=3, shared_covariance=False, random_state=0)
    X, _ = data.sample(40_000, random_state=1)
    nothing = np.zeros((len(X), 3), dtype=bool)
    gain = data.exact_gain(X[:1], nothing[:1])[0]
    full, before = data.exact_proba(X), data.exact_proba(X, nothing)
    for i in range(3):
        one = nothing.copy()
        one[:, i] = True
        after = data.exact_proba(X, one)
        found = (full * np.log(after / before)).sum(axis=1).mean()
        assert abs(found - gain[i]) < 0.01
    assert np.isneginf(data.exact_gain(X[:1], np.array([[True, False, True]]))[0, [0, 2]]).all()
