"""Answers pooled with Gaussians of each class."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from tests.made import patients

import askwise
from askwise.predict import ConditionalPredictor, PooledPredictor
from askwise.predict.class_gaussians import ClassGaussians, chosen_gaussians
from askwise.predict.pooled import fit_weights, pooled
from askwise.table.rows import EncodedRows

NO_CATEGORY = np.zeros(4, dtype=bool)


def correlated(n=400, seed=0):
    """Normal columns that depend on each other and, in their means, on three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    mixed = rng.normal(size=(4, 4)) / 2 + np.eye(4)
    return rng.normal(size=(n, 4)) @ mixed + np.array([-0.8, 0.0, 0.8])[y, None] * [1.0, 0.5, 0.0, -0.5], y


def test_marginals_are_those_of_the_joint_density():
    scores, y = correlated()
    made = ClassGaussians(scores, y, NO_CATEGORY, 3)
    rng = np.random.default_rng(1)
    shown = np.where(rng.random(scores.shape) < 0.5, scores, np.nan)[:60]
    found = made.log_proba(shown)
    for row, logs in zip(shown, found, strict=True):
        there = np.flatnonzero(~np.isnan(row))
        expected = made.log_prior.copy()
        for c in range(3 if len(there) else 0):
            normal = multivariate_normal(made.means[c, there], made.covariances[0][np.ix_(there, there)])
            expected[c] += normal.logpdf(np.clip(row[there], -2.5, 2.5))
        assert_allclose(logs, log_softmax(expected), atol=1e-9)
    assert (np.argmax(made.log_proba(scores), axis=1) == y).mean() > 0.6


def test_missing_training_cells_do_not_make_columns_less_variable():
    scores, y = correlated(2000)
    holed = np.where(np.random.default_rng(1).random(scores.shape) < 0.5, np.nan, scores)
    variances = [np.diag(ClassGaussians(cells, y, NO_CATEGORY, 3).covariances[0]) for cells in (scores, holed)]
    assert_allclose(variances[1], variances[0], rtol=0.15)


@pytest.mark.parametrize("common_rows", [None, 10.0])
def test_a_column_without_any_value_changes_next_to_nothing(common_rows):
    scores, y = correlated(300)
    plain = ClassGaussians(scores, y, NO_CATEGORY, 3, common_rows=common_rows)
    empty = np.append(scores, np.full((300, 1), np.nan), axis=1)
    made = ClassGaussians(empty, y, np.append(NO_CATEGORY, False), 3, common_rows=common_rows)
    assert np.all(np.isfinite(made.covariances))
    assert_allclose(np.exp(made.log_proba(empty)), np.exp(plain.log_proba(scores)), atol=0.05)


def test_categories_count_by_their_frequency_and_new_ones_say_nothing():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=500)
    codes = np.where(rng.random(500) < 0.8, y, 1 - y).astype(float)
    made = ClassGaussians(codes[:, None], y, np.array([True]), 2)
    proba = np.exp(made.log_proba(np.array([[0.0], [1.0], [2.0], [np.nan]])))
    assert_allclose(proba[[0, 1], [0, 1]], 0.8, atol=0.05)
    assert_allclose(proba[2:], 0.5, atol=0.06)


def test_a_rare_category_says_little_however_many_there_are():
    y = np.arange(400) % 2
    codes = np.arange(400.0)  # as many categories as rows: each occurs once
    made = ClassGaussians(codes[:, None], y, np.array([True]), 2)
    assert np.abs(made.log_proba(codes[:, None])).max() < np.log(2.2)


def different_spreads(n, seed=0):
    """Two classes with the same means; in one of them the four columns vary three times as much."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 4)) * np.where(y, 0.4, 1.2)[:, None], y


def test_classes_have_covariances_of_their_own_where_that_predicts_better():
    scores, y = different_spreads(600)
    rng = np.random.default_rng(0)
    made = chosen_gaussians(scores, y, NO_CATEGORY, 2, rng)
    assert made.common_rows is not None
    new, labels = different_spreads(600, seed=1)
    assert (made.log_proba(new).argmax(axis=1) == labels).mean() > 0.8
    assert (ClassGaussians(scores, y, NO_CATEGORY, 2).log_proba(new).argmax(axis=1) == labels).mean() < 0.7
    alike = [correlated(400, seed) for seed in range(1, 6)]
    found = [chosen_gaussians(cells, classes, NO_CATEGORY, 3, rng).common_rows for cells, classes in alike]
    assert found.count(None) + found.count(300.0) >= 4  # there all classes have the same covariance


def test_own_covariances_have_exact_marginals_too():
    scores, y = different_spreads(300)
    made = ClassGaussians(scores, y, NO_CATEGORY, 2, common_rows=10.0)
    row = np.array([0.3, np.nan, -1.0, np.nan])
    expected = made.log_prior.copy()
    for c in range(2):
        covariance = made.covariances[c][np.ix_([0, 2], [0, 2])]
        expected[c] += multivariate_normal(made.means[c, [0, 2]], covariance).logpdf(row[[0, 2]])
    assert_allclose(made.log_proba(row[None])[0], log_softmax(expected), atol=1e-9)
    alone = different_spreads(300)[0][y == 0]
    assert_allclose(np.diag(made.covariances[0]), alone.var(axis=0), rtol=0.2)


def test_a_class_without_rows_and_a_constant_column():
    scores, y = correlated(50)
    scores[:, 2] = 0.0
    found = ClassGaussians(scores, y, NO_CATEGORY, 4).log_proba(scores)
    assert np.isfinite(found).all()
    assert_allclose(np.exp(found).sum(axis=1), 1)


def test_weights_go_to_the_better_of_both_and_stay_at_one_half_without_evidence():
    rng = np.random.default_rng(0)
    right = rng.dirichlet([0.5] * 3, 600)
    labels = np.array([rng.choice(3, p=p) for p in right])
    noise = rng.dirichlet([0.5] * 3, 600)
    a, b = fit_weights(right, np.log(noise), labels, 600)
    assert a > 0.8
    assert b < 0.1
    a, b = fit_weights(noise, np.log(right), labels, 600)
    assert b > 0.8
    assert a < 0.1
    assert_allclose(fit_weights(right[:1], np.log(right[:1]), labels[:1], 1), 0.5, atol=0.2)
    # It is a minimum: log losses of neighboring weights, which hardly differ in the penalty, are not lower.
    losses = [-np.log(pooled(right, np.log(noise), (1.0, w))[np.arange(600), labels]).mean() for w in (b, b + 0.2)]
    assert losses[0] < losses[1]


def test_only_the_answers_on_incomplete_rows_differ_from_those_by_completions():
    X, y = patients(120, 0)
    X = X.dropna()
    y = y[X.index]
    numbers = X[["age", "visits"]].assign(city=X["city"].factorize()[0]).astype(float)
    model = LogisticRegression(max_iter=1000).fit(numbers, y)
    plain, mixed = (kind(model, random_state=0).fit(numbers, y) for kind in (ConditionalPredictor, PooledPredictor))
    rows = EncodedRows(numbers.to_numpy()).masked(np.random.default_rng(0).random(numbers.shape) < 0.6)
    complete, nothing = rows.observed.all(axis=1), ~rows.observed.any(axis=1)
    assert 0 < complete.sum() < len(rows)
    assert nothing.any()
    first, second = plain.believe(rows), mixed.believe(rows)
    assert first.completions is not None
    assert second.completions is not None
    assert_allclose(second.completions.weights, first.completions.weights)
    assert_allclose(second.proba[complete], model.predict_proba(numbers)[complete])
    by_hand = np.exp(0.5 * np.log(first.proba) + 0.5 * mixed.second_opinion(rows))
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    some = ~complete & ~nothing
    assert_allclose(second.proba[some], by_hand[some], atol=1e-9)
    for found in (first, second):  # with nothing known, the model's average over all rows
        assert_allclose(found.proba[nothing], model.predict_proba(numbers).mean(axis=0)[None].repeat(nothing.sum(), 0))


def test_a_row_that_is_left_out_does_not_speak_for_itself():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 30)), np.arange(60) % 2  # pure noise: only a row's own label could tell its class
    constant = askwise.wrap(lambda cells: np.full((len(cells), 2), 0.5), classes=[0, 1])
    mixed = PooledPredictor(constant, random_state=0).fit(X, y)
    rows = EncodedRows(X).masked(rng.random(X.shape).argsort(axis=1) < 28)
    right = [mixed.proba(rows, leave_out=out).argmax(axis=1) == y for out in (None, np.arange(60))]
    assert right[0].mean() > 0.7
    assert right[1].mean() < 0.65


def test_missing_cells_of_one_class_do_not_make_it_look_less_variable():
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 2
    scores = rng.normal(size=(1000, 4)) * np.where([True, True, False, False], np.where(y, 0.5, 1.3)[:, None], 1.0)
    lacking = (rng.random((1000, 2)) < 0.9) & (y == 0)[:, None]
    scores[:, 2:][lacking] = np.nan  # the last two columns say nothing about the class, but class 0 often lacks them
    made = chosen_gaussians(scores, y, NO_CATEGORY, 2, rng)
    assert made.common_rows is not None
    new = np.column_stack([np.full((500, 2), np.nan), rng.normal(size=(500, 2))])
    assert_allclose(np.exp(made.log_proba(new)).mean(axis=0), 0.5, atol=0.05)
    assert np.abs(made.log_proba(new) - np.log(0.5)).mean() < 0.2


def test_few_cases_draw_the_weights_to_one_half():
    """Where the slope of the log loss of `n_cases` cases balances a pull of 25 times the distance to 1/2."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=600)
    first = np.exp(log_softmax(rng.normal(size=(600, 3)) + 0.8 * np.eye(3)[labels], axis=1))
    second = log_softmax(rng.normal(size=(600, 3)) + 1.5 * np.eye(3)[labels], axis=1)
    parts, far = np.stack([np.log(first), second]), []

    def loss(weights):
        return -log_softmax(np.tensordot(weights, parts, axes=1), axis=1)[np.arange(600), labels].mean()

    for n_cases in (10, 100, 600):
        weights = np.array(fit_weights(first, second, labels, n_cases))
        steps = 1e-5 * np.eye(2)
        slope = np.array([(loss(weights + step) - loss(weights - step)) / 2e-5 for step in steps])
        assert_allclose(n_cases * slope, -25.0 * (weights - 0.5), atol=0.02)
        far.append(np.abs(weights - 0.5).max())
    assert far[0] < far[1] < far[2]
