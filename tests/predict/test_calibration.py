"""Temperatures and the map of agreement, on distributions that are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from scipy.special import expit, logit

from askwise.predict import calibration
from askwise.predict.calibration import (
    Calibration,
    fit_final,
    fit_temperatures,
    log_losses,
    tempered,
)


def states(n, n_sizes, seed=0):
    """True probabilities of three classes, labels drawn from them, and sizes."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([0.7, 0.7, 0.7], size=n * n_sizes)
    labels = (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1).clip(max=2)
    return proba, np.repeat(np.arange(n_sizes), n), labels


def temperatures(*args):
    return fit_temperatures(*args)[0].temperatures


def test_a_temperature_undoes_a_known_distortion_at_every_size():
    proba, size, labels = states(4000, 4)
    wrong = np.array([1.0, 1.6, 2.2, 2.5])  # less sharp than what happens, more so with more features
    found = temperatures(tempered(proba, wrong[size][:, None]), size, labels, 5)
    assert_allclose(found[:4], 1 / wrong, rtol=0.1)
    assert_allclose(found[4:], found[3])  # sizes that no case visits are as the nearest
    sharp = temperatures(tempered(proba, 0.5), size, labels, 5)
    assert_allclose(sharp, 2, rtol=0.1)
    assert_allclose(temperatures(proba, size, labels, 5), 1, atol=0.06)


def test_few_rows_leave_the_probabilities_as_they_are():
    proba, size, labels = states(2, 4)
    few = temperatures(tempered(proba, 3.0), size, labels, 4)
    assert (np.abs(np.log(few)) < 0.4).all()
    many, sizes, true = states(2000, 4)
    alone = np.append(np.flatnonzero(sizes < 3), np.flatnonzero(sizes == 3)[:2])  # two states of the last size
    found = temperatures(tempered(many[alone], 2.0), sizes[alone], true[alone], 4)
    assert_allclose(found[3], found[2], rtol=0.2)


def test_the_gradients_are_those_of_the_losses(monkeypatch):
    proba, size, labels = states(50, 3)
    losses = []

    def keep(loss, start, args=(), **options):
        losses.append(lambda x: loss(x, *args))
        return type("Found", (), {"x": start, "fun": 0.0})

    monkeypatch.setattr(calibration, "minimize", keep)
    fit_temperatures(proba, size, labels, 3, [0.3])
    fit_final(proba.max(axis=1), proba.max(axis=1), labels == 0)
    for loss, at in zip(losses, ([0.3, -0.2, 0.5, -3.0], [0.4, 0.2, -0.7]), strict=True):
        error = check_grad(lambda x, f=loss: f(x)[0], lambda x, f=loss: f(x)[1], np.array(at))
        assert error < 1e-4


def test_tempering_keeps_the_order_of_classes_and_sums_to_one():
    proba = np.array([[0.6, 0.3, 0.1], [0.0, 0.2, 0.8], [1.0, 0.0, 0.0]])
    for temperature in (0.2, 1.0, 4.0):
        found = tempered(proba, temperature)
        assert_allclose(found.sum(axis=1), 1)
        assert_array_equal(found.argsort(axis=1), proba.argsort(axis=1))
        assert_array_equal(found == 0, proba == 0)
    assert_allclose(tempered(proba, 1.0), proba, atol=1e-15)
    assert tempered(proba, 0.5)[0, 0] > 0.6 > tempered(proba, 2.0)[0, 0]


def test_a_floor_is_found_where_some_labels_are_arbitrary():
    proba, size, _ = states(4000, 3)
    sharp = tempered(proba, 0.2)
    rng = np.random.default_rng(1)
    drawn = (sharp.cumsum(axis=1) < rng.random((len(sharp), 1))).sum(axis=1).clip(max=2)
    arbitrary = np.where(rng.random(len(drawn)) < 0.1, rng.integers(3, size=len(drawn)), drawn)
    found, _ = fit_temperatures(sharp, size, arbitrary, 3)
    assert found.floor == pytest.approx(0.1, abs=0.02)
    assert_allclose(found.temperatures, 1, atol=0.15)
    assert found.proba(sharp, size).min() >= found.floor / 3


def test_every_answer_about_a_case_gets_the_temperature_of_its_size():
    rng = np.random.default_rng(0)
    answers = rng.dirichlet(np.ones(3), size=(4, 6))  # (n, 1 + k, C)
    found = Calibration(np.array([1.0, 0.5, 2.0])).proba(answers, np.array([0, 1, 2, 1]))
    for row, temperature in enumerate((1.0, 0.5, 2.0, 0.5)):
        assert_allclose(found[row], tempered(answers[row], temperature))


def test_agreement_becomes_a_probability_and_is_not_reordered():
    rng = np.random.default_rng(0)
    share, proba = rng.random((2, 20000))
    agrees = rng.random(20000) < expit(1.7 * logit(0.005 + 0.99 * share) + 0.4 * logit(0.005 + 0.99 * proba) + 0.8)
    found = fit_final(share, proba, agrees)
    np.testing.assert_allclose(found, (1.7, 0.4, 0.8), atol=0.15)
    ordered = np.linspace(0, 1, 101)
    calibration = Calibration(np.ones(1), final_map=found)
    for other in (np.full(101, 0.3), np.full(101, 0.9)):
        assert (np.diff(calibration.final(ordered, other)) > 0).all()
        assert (np.diff(calibration.final(other, ordered)) > 0).all()
    assert min(fit_final(share, proba, rng.permutation(agrees))[:2]) >= 0  # no relation, and still never reversed
    assert min(fit_final(share, proba, ~agrees)[:2]) >= 0


def test_log_losses_are_finite():
    assert_allclose(log_losses(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0, 1])), [0, np.log(2)])
    assert np.isfinite(log_losses(np.array([[1.0, 0.0]]), np.array([1]))).all()
