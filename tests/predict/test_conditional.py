"""Completions from training rows that resemble what is observed."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from askwise.errors import InvalidInput
from askwise.predict import ConditionalPredictor, ImputedPredictor, wrap
from askwise.predict.similarity import UNRELATED, Neighbors
from askwise.table.rows import EncodedRows


def reads_last_column(X):
    """A model that reads one column only, so that what is put there can be seen in the answer."""
    positive = np.where(np.asarray(X, dtype=float)[:, -1] > 0, 0.9, 0.1)
    return np.column_stack([1 - positive, positive])


def twins(n=300, seed=0):
    """The last column is the sign of the first; the second has nothing to do with either."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = np.sign(X[:, 0])
    return X, (X[:, 2] > 0).astype(int)


def fitted(X, y, model=reads_last_column, **options):
    options = {"n_neighbors": 30, "random_state": 0, **options}
    return ConditionalPredictor(wrap(model, [0, 1]), **options).fit(X, y)


@pytest.fixture(scope="module")
def around_twins():
    return fitted(*twins())


def test_hidden_columns_are_completed_from_rows_that_resemble_what_is_observed():
    X, y = twins()
    predictor = fitted(X, y)
    clear = X[np.abs(X[:, 0]) > 0.7]
    only_first = np.array([True, False, False])
    proba = predictor.predict_proba(clear, only_first)
    assert_allclose(proba[:, 1], np.where(clear[:, 0] > 0, 0.9, 0.1), atol=0.02)
    # The unrelated column tells nothing, and nothing observed tells nothing either.
    assert (np.abs(predictor.predict_proba(clear, np.array([False, True, False]))[:, 1] - 0.5) < 0.3).all()
    assert abs(predictor.predict_proba(clear[:1], np.zeros(3, bool))[0, 1] - 0.5) < 0.2


def test_mean_imputation_gets_the_same_table_wrong():
    """Eq. 5 against its usual shortcut: the mean of -1 and 1 is a value that no row has."""
    X, y = twins()
    clear = X[np.abs(X[:, 0]) > 0.7]
    imputed = ImputedPredictor(wrap(reads_last_column, [0, 1])).fit(X, y)
    assert len(np.unique(imputed.predict_proba(clear, np.array([True, True, False])), axis=0)) == 1


def test_neighbors_are_the_nearest_rows_in_the_observed_columns():
    pool = np.array([[0.0, 100.0], [1.0, 0.0], [2.0, 100.0], [3.0, 0.0], [4.0, 100.0]])
    neighbors = Neighbors(EncodedRows(pool), np.zeros(2, bool), n_neighbors=2, bandwidth=1.0)
    asked = EncodedRows(np.array([[0.1, np.nan], [3.9, np.nan], [np.nan, 0.0]]))
    index, _ = neighbors.nearest(neighbors.squared_distances(asked))
    assert index.tolist() == [[0, 1], [3, 4], [1, 3]]
    # A row that is left out makes room for the next one.
    index, weights = neighbors.nearest(neighbors.squared_distances(asked), leave_out=np.array([0, -1, 1]))
    assert index.tolist() == [[1, 2], [3, 4], [0, 3]]
    assert_allclose(weights.sum(axis=1), 1)


def test_weights_sum_to_one_and_nearer_rows_weigh_more():
    X, y = twins()
    predictor = fitted(X, y)
    mask = np.random.default_rng(0).random(X.shape) < 0.5
    rows = EncodedRows(X).masked(mask)
    values = rows.values
    index, weights = predictor.neighbors_.nearest(predictor.neighbors_.squared_distances(rows))
    assert index.shape == weights.shape == (300, 30)
    assert_allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()
    assert all(len(set(row)) == 30 for row in index.tolist())
    scores = predictor.neighbors_.scores
    for r in np.flatnonzero(mask[:, 0] & ~mask[:, 1] & ~mask[:, 2])[:20]:
        distance = np.abs(scores[index[r], 0] - predictor.neighbors_.scale(values[[r]])[0, 0])
        by_distance = weights[r][np.argsort(distance)]
        assert (np.diff(by_distance) <= 1e-12).all()


def test_with_nothing_observed_all_weights_are_equal(around_twins):
    weights = around_twins.believe(EncodedRows(np.full((1, 3), np.nan))).completions.weights
    assert_allclose(weights, 1 / 30)


def test_the_scale_of_a_column_does_not_matter():
    X, y = twins()
    stretched = X * [1000.0, 0.001, 1.0]
    mask = np.random.default_rng(0).random(X.shape) < 0.5
    assert_allclose(
        fitted(stretched, y).predict_proba(stretched, mask), fitted(X, y).predict_proba(X, mask), rtol=0, atol=1e-9
    )


def test_an_outlier_does_no_harm():
    """Ranks, not distances in units: one absurd laboratory value changes little."""
    X, y = twins()
    only_first = np.array([True, False, False])
    spoilt = X.copy()
    spoilt[0, 0] = 1e9
    difference = fitted(spoilt, y).predict_proba(X[1:], only_first) - fitted(X, y).predict_proba(X[1:], only_first)
    assert np.abs(difference).max() < 0.1


def test_the_mean_of_the_completions_is_the_answer(around_twins):
    X, _ = twins()
    predictor = around_twins
    rows = EncodedRows(X[:10]).masked([True, False, False])
    belief = predictor.believe(rows)
    completions = belief.completions
    by_hand = np.zeros((10, 2))
    for r in range(10):
        for k in range(30):
            row = predictor.pool_[completions.index[r, k]].copy()
            row[0] = X[r, 0]
            by_hand[r] += completions.weights[r, k] * reads_last_column(row[None])[0]
    assert_allclose(completions.mean()[:, 0], by_hand, atol=1e-12)
    assert_allclose(belief.proba, by_hand, atol=1e-12)
    assert_allclose(predictor.predict_proba(rows.values), by_hand, atol=1e-12)


def test_observed_cells_are_kept_and_only_hidden_ones_come_from_the_pool():
    X, y = twins()
    seen = []

    def model(rows):
        seen.append(np.array(rows))
        return reads_last_column(rows)

    predictor = fitted(X, y, model)
    seen.clear()
    predictor.predict_proba(np.array([[5.5, np.nan, np.nan]]))
    asked = np.vstack(seen)
    assert (asked[:, 0] == 5.5).all()
    pairs = {tuple(row) for row in X[:, 1:]}
    assert all(tuple(row) in pairs for row in asked[:, 1:])  # hidden cells of one row stay together


def category_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    letter = rng.choice(["a", "b", "c"], n)
    return pd.DataFrame(
        {
            "letter": letter,
            "noise": rng.normal(size=n),
            "flag": rng.random(n) < 0.5,
            "known by the letter": np.where(letter == "b", 1.0, -1.0),
        }
    )


def test_categories_are_compared_by_equality():
    table = category_table()
    y = (table["letter"] == "b").to_numpy().astype(int)
    predictor = fitted(table, y, lambda X: reads_last_column(X[["known by the letter"]]))
    proba = predictor.predict_proba(table, np.array([True, False, False, False]))
    assert_allclose(proba[:, 1], np.where(y == 1, 0.9, 0.1), atol=0.05)


def test_cells_of_one_column():
    pool = np.column_stack([[1.0, 2.0, np.nan, 3.0], [0.0, 1.0, 1.0, np.nan]])
    neighbors = Neighbors(EncodedRows(pool), np.array([False, True]), 1, 1.0)
    low, middle, high = neighbors.scores[[0, 1, 3], 0]
    numbers = neighbors.squared_distances(EncodedRows(np.array([[1.0, np.nan]])))[0]
    assert_allclose(numbers, [0.0, (middle - low) ** 2, UNRELATED, (high - low) ** 2], atol=1e-6)
    codes = neighbors.squared_distances(EncodedRows(np.array([[np.nan, 1.0], [np.nan, 7.0]])))
    assert codes.tolist() == [[UNRELATED, 0.0, 0.0, UNRELATED], [UNRELATED] * 4]


def test_unrelated_is_the_mean_squared_distance_of_two_normal_scores():
    scores = Neighbors(EncodedRows(np.arange(2000.0)[:, None]), np.zeros(1, bool), 1, 1.0).scores[:, 0]
    assert_allclose(2 * scores.var(), UNRELATED, rtol=0.02)


def mixed_rows(n=60, n_columns=7, seed=0):
    """Numbers and codes with holes, some columns constant or heavily tied."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, n_columns)) * 10.0 ** rng.integers(-6, 6, n_columns)
    values[:, 1], values[:, 3] = rng.integers(0, 3, n), 5.0
    values[:, 4] = rng.integers(0, 2, n)
    values[rng.random(values.shape) < 0.1] = np.nan
    return EncodedRows(values), np.arange(n_columns) == 1


def test_distances_are_exact_in_any_order():
    """Grown column by column, in any order and from any subset on, they are those computed at once, bit for bit."""
    rows, is_category = mixed_rows()
    neighbors = Neighbors(rows.take(slice(0, 40)), is_category, 5, 0.8)
    asked = rows.take(slice(30, 60))
    at_once = neighbors.squared_distances(asked)
    rng = np.random.default_rng(1)
    for _ in range(5):
        order = rng.random(asked.values.shape).argsort(axis=1).argsort(axis=1)  # each row in its own order
        grown, covered = None, None
        for step in [*rng.permutation(np.arange(1, 8))[:3].tolist(), 7]:
            shown = asked.masked(order < step if covered is None else (order < step) | covered)
            grown, covered = neighbors.squared_distances(shown, grown, covered), shown.observed
        assert_array_equal(grown, at_once)


def test_a_session_equals_its_row_in_a_batch_whatever_the_way_there(around_twins):
    X, _ = twins()
    rng = np.random.default_rng(2)
    mask = rng.random((20, 3)) < 0.6
    rows = EncodedRows(X[:20]).masked(mask)
    together = around_twins.believe(rows)
    for r in range(20):
        shown = np.zeros(3, bool)
        alone = around_twins.believe(rows.take([r]).masked(shown))
        for j in rng.permutation(3):
            shown[j] = True
            alone = around_twins.believe(rows.take([r]).masked(shown), previous=alone)
        assert_array_equal(alone.distances[0], together.distances[r])
        assert_array_equal(alone.completions.index[0], together.completions.index[r])
        assert_array_equal(alone.completions.weights[0], together.completions.weights[r])
        assert_array_equal(alone.completions.answers[0], together.completions.answers[r])
        assert_allclose(alone.proba[0], together.proba[r], rtol=0, atol=1e-12)


def test_missing_training_cells_are_filled_where_the_model_refuses_them():
    X, y = twins()
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    holes[0, 2], holes[1, 2] = -1.0, 1.0  # both values are there
    model = LogisticRegression().fit(X, y)
    predictor = ConditionalPredictor(model, n_neighbors=30, random_state=0).fit(holes, y)
    assert not np.isnan(predictor.pool_).any()
    assert set(np.unique(predictor.pool_[:, 2])) == {-1.0, 1.0}  # taken from other rows, not averaged
    proba = predictor.predict_proba(X, np.array([True, False, False]))
    clear = np.abs(X[:, 0]) > 0.7
    assert (proba[clear].argmax(axis=1) == y[clear]).mean() > 0.95


def test_a_missing_cell_is_filled_from_the_most_similar_row_that_has_it():
    pool = np.column_stack([np.arange(6.0), [50.0, 51.0, np.nan, 53.0, np.nan, 55.0]])
    neighbors = Neighbors(EncodedRows(pool), np.zeros(2, bool), n_neighbors=2, bandwidth=1.0)
    # In the middle the ranks stand closer together: row 3 is the nearest to both.
    assert neighbors.filled(EncodedRows(pool), np.ones(2, bool))[:, 1].tolist() == [50.0, 51.0, 53.0, 53.0, 53.0, 55.0]
    assert np.isnan(pool[2, 1])


def test_missing_training_cells_are_carried_where_the_model_takes_them():
    X, y = twins()
    X[::3, 1] = np.nan
    model = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    predictor = ConditionalPredictor(model, random_state=0).fit(X, y)
    assert np.isnan(predictor.pool_[:, 1]).sum() == 100
    assert not np.isnan(predictor.pool_[:, [0, 2]]).any()


def test_max_rows_keeps_a_random_sample():
    X, y = twins()
    predictor = fitted(X, y, max_rows=50)
    assert predictor.pool_.shape == (50, 3)
    assert {tuple(row) for row in predictor.pool_} <= {tuple(row) for row in X}
    assert len({tuple(row) for row in predictor.pool_}) == 50
    assert_array_equal(fitted(X, y, max_rows=50).pool_, predictor.pool_)
    assert not np.array_equal(fitted(X, y, max_rows=50, random_state=1).pool_, predictor.pool_)
    assert fitted(X, y, max_rows=5000).pool_.shape == X.shape


def test_a_column_that_the_sample_lacks_is_completed_all_the_same():
    X, y = twins()
    model = LogisticRegression().fit(X, y)
    X[2:, 1] = np.nan
    for seed in range(5):
        predictor = ConditionalPredictor(model, max_rows=5, random_state=seed).fit(X, y)
        assert not np.isnan(predictor.pool_).any()
        assert len(predictor.pool_) <= 6
        proba = predictor.predict_proba(X[5:9], np.array([True, False, False]))
        assert_allclose(proba.sum(axis=1), 1)


def test_a_pool_smaller_than_the_number_of_neighbors():
    X, y = twins()
    predictor = fitted(X, y, max_rows=7, n_neighbors=100)
    assert predictor.neighbors_.n_neighbors == 7
    assert_allclose(predictor.predict_proba(X, np.array([True, False, False])).sum(axis=1), 1)


def test_the_pool_is_shuffled_so_that_ties_are_a_fair_sample_of_a_sorted_table():
    """With nothing observed every row is equally near: the first rows of a sorted table would answer alone."""
    X, y = twins(n=400)
    order = np.argsort(y, kind="stable")
    proba = fitted(X[order], y[order]).predict_proba(X[:1], np.zeros(3, bool))
    assert 0.2 < proba[0, 1] < 0.8


def test_more_cases_than_fit_at_once(monkeypatch):
    X, y = twins()
    predictor = fitted(X, y)
    mask = np.random.default_rng(0).random(X.shape) < 0.5
    expected = predictor.predict_proba(X, mask)
    monkeypatch.setattr("askwise.predict.conditional.CELLS_AT_ONCE", 700)
    monkeypatch.setattr("askwise.predict.conditional.CELLS_KEPT", 7000)
    assert predictor.rows_at_once < 30
    assert_allclose(predictor.predict_proba(X, mask), expected, rtol=0, atol=1e-12)


def test_options_that_are_refused():
    X, y = twins()
    refused: list[dict[str, Any]] = [
        {"n_neighbors": 0},
        {"n_neighbors": "a"},
        {"n_neighbors": 2.5},
        {"max_rows": 0},
        {"max_rows": None},
        {"bandwidth": 0},
        {"bandwidth": -1.0},
        {"bandwidth": np.nan},
        {"bandwidth": "wide"},
    ]
    for options in refused:
        (name,) = options
        with pytest.raises(InvalidInput, match=f"ConditionalPredictor: {name} must be a .*number.*; got "):
            fitted(X, y, **options)


def test_a_training_row_that_is_left_out_has_no_say_in_its_own_answer():
    """The answer of the row as if it were new: that of a pool without it."""
    X, y = twins(60)
    rows = EncodedRows(X).masked([True, True, False])
    predictor = fitted(X, y)
    found = predictor.proba(rows, leave_out=np.arange(60))
    for r in range(5):
        rest = np.delete(np.arange(60), r)
        index = predictor.believe(rows.take([r]), leave_out=np.array([r])).completions.index[0]
        assert predictor.pool_position_[r] not in index[index >= 0]
        assert abs(found[r, 1] - fitted(X[rest], y[rest]).proba(rows.take([r]))[0, 1]) < 0.1
    assert not np.allclose(found, predictor.proba(rows))


def test_values_beyond_those_of_training():
    X, y = twins()
    predictor = fitted(X, y)
    proba = predictor.predict_proba(np.array([[50.0, np.nan, np.nan], [-50.0, np.nan, np.nan]]))
    assert proba.argmax(axis=1).tolist() == [1, 0]
