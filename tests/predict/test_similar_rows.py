"""Tests of answers on similar training rows themselves, and of how much each column counts for them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB

from askwise import DynamicFeatureSelector
from askwise.errors import InvalidInput
from askwise.predict import ConditionalPredictor, column_weights
from askwise.predict.column_weights import learned_weights
from askwise.table.schema import read_table
from askwise.table.subsets import sample

X, Y = load_wine(return_X_y=True)
MODEL = GaussianNB().fit(X[::2], Y[::2])
MASK = sample(len(X), 13, np.random.default_rng(0))


def fitted(share=0.5, rows=slice(None, None, 2), **options):
    return ConditionalPredictor(MODEL, similar_rows=share, random_state=0, **options).fit(X[rows], Y[rows])


@pytest.fixture(scope="module")
def predictor():
    return fitted()


def test_the_answer_is_a_mixture_of_completions_and_of_similar_rows(predictor):
    rows = predictor._encode(X, MASK)
    alone = fitted(0).proba(rows)
    weights = predictor.similar_.column_weights
    n_known = MASK.sum(axis=1)
    width = np.minimum(0.8, 1.4 * len(predictor.pool_) ** (-1 / (n_known + 4)))
    own, pool = predictor.neighbors_.scale(rows.values), predictor.neighbors_.scores
    squared = np.nansum(weights * (own[:, None] - pool) ** 2, axis=2)
    kernel = np.exp(-squared / (2 * width[:, None] ** 2))
    answers = MODEL.predict_proba(predictor.pool_)
    similar = kernel @ answers / kernel.sum(axis=1, keepdims=True)
    share = np.minimum(0.5, 1 - n_known / 13)[:, None]
    expected = (1 - share) * alone + share * similar
    expected[n_known == 0] = answers.mean(axis=0)
    assert_allclose(predictor.proba(rows), expected, atol=2e-5)  # kernels are rounded to about 1e-6


def test_complete_rows_get_the_models_own_answer(predictor):
    assert_array_equal(predictor.predict_proba(X), MODEL.predict_proba(X))


def test_an_answer_does_not_depend_on_the_batch_or_on_the_order_in_which_columns_became_known(predictor):
    rows = predictor._encode(X, MASK)
    together = predictor.proba(rows)
    assert_array_equal(np.vstack([predictor.proba(rows.take([k])) for k in range(30)]), together[:30])
    rng = np.random.default_rng(1)
    before = predictor.believe(rows.masked(rng.random(MASK.shape) < 0.5))
    assert_array_equal(predictor.believe(rows, previous=before).proba, together)


def test_a_training_row_that_is_left_out_does_not_answer():
    twice = np.vstack([X[::2], X[:1] + 1e-3 * X.std(axis=0)])
    labels = np.append(Y[::2], 2)
    mask = np.zeros((1, 13), dtype=bool)
    mask[0, :6] = True
    alone = ConditionalPredictor(MODEL, similar_rows=1.0, random_state=0).fit(twice[1:], labels[1:])
    both = ConditionalPredictor(MODEL, similar_rows=1.0, random_state=0).fit(twice, labels)
    for each in (both, alone):
        assert each.similar_ is not None
        each.similar_ = each.similar_.weighted(np.ones(13))
    row = both._encode(twice[:1], mask)
    without = both.proba(row, leave_out=np.array([0]))
    assert_allclose(without, alone.proba(alone._encode(twice[:1], mask)), atol=0.02)
    assert abs(both.proba(row) - without).max() > 0.001


def test_a_pool_of_one_row_is_answered_by_completions_alone():
    one = fitted(max_rows=1)
    assert one.similar_ is None
    assert_array_equal(one.predict_proba(X, MASK), fitted(0, max_rows=1).predict_proba(X, MASK))
    assert fitted(0).similar_ is None
    two = fitted(max_rows=2)
    assert two.similar_ is not None
    assert np.isfinite(two.proba(two._encode(X[:1], MASK[:1]), leave_out=np.array([0]))).all()


def test_answers_do_not_depend_on_the_batch_in_a_pool_of_many_rows():
    rng = np.random.default_rng(0)
    many = rng.normal(size=(20_000, 3))
    labels = (many[:, 0] > -1.5).astype(int)
    model = GaussianNB().fit(many, labels)
    predictor = ConditionalPredictor(model, similar_rows=0.5, max_rows=20_000, random_state=0).fit(many, labels)
    rows = np.full((40, 3), np.nan)
    rows[:, 2] = many[:40, 2]
    alone = np.vstack([predictor.predict_proba(row[None]) for row in rows])
    assert_array_equal(predictor.predict_proba(rows), alone)


def test_groups_of_many_columns_leave_fewer_rows_to_learn_from():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(300, 200))
    groups = {"left": list(range(100)), "right": list(range(100, 200))}
    schema, rows = read_table(wide, groups)
    made = ConditionalPredictor(MODEL)._search(rows, schema)
    states = column_weights._random_states(made, schema, np.ones_like, rng)
    assert states.scaled.size <= column_weights.MOST_DISTANCES
    assert len(states.row) == column_weights.MOST_DISTANCES // (100 * 300)


def test_a_tiny_bandwidth_does_not_overflow():
    predictor = fitted(bandwidth=1e-20)
    assert np.isfinite(predictor.predict_proba(X, MASK)).all()


def test_another_share_after_fit_changes_the_mixture_only():
    predictor = fitted().set_params(similar_rows=0.0)
    assert_array_equal(predictor.with_model(predictor.model_).predict_proba(X, MASK), fitted(0).predict_proba(X, MASK))


@pytest.mark.parametrize("share", [-0.1, 1.5, "half", None, True])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(InvalidInput, match=r"similar_rows must be a number in \[0, 1\]"):
        fitted(share)


def test_columns_that_matter_to_the_model_count_more():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 6)), columns=list("abcdef"))
    table["kind"] = rng.choice(["u", "v"], 400)
    table["noise"] = rng.choice(["s", "t"], 400)
    schema, rows = read_table(table, None)
    signal = table["a"] + table["b"] + 2 * (table["kind"] == "u") - 1
    proba = 1 / (1 + np.exp(-3 * signal.to_numpy()))
    made = ConditionalPredictor(MODEL)._search(rows, schema)
    answers = np.column_stack([1 - proba, proba])
    widths = np.vectorize(lambda n: 0.5)
    found = learned_weights(made, answers, schema, widths, np.random.default_rng(0))
    assert min(found[[0, 1]]) > 3 * max(found[[2, 3, 4, 5]])
    assert found[6] > 3 * found[7]
    assert_array_equal(found, learned_weights(made, answers, schema, widths, np.random.default_rng(0)))


def test_the_slope_of_the_loss():
    predictor = fitted()
    rows = predictor.neighbors_
    rng = np.random.default_rng(0)
    states = column_weights._random_states(rows, predictor.schema_, predictor._by_scott, rng)
    answers = MODEL.predict_proba(predictor.pool_)
    start = rng.uniform(-1, 1, size=13)
    exact = replace(states, scaled=states.scaled.astype(float), by_row=states.by_row.astype(float))
    error = check_grad(
        lambda w: column_weights._loss(w, exact, answers, 0.5)[0],
        lambda w: column_weights._loss(w, exact, answers, 0.5)[1],
        start,
    )
    assert error < 1e-5 * np.linalg.norm(column_weights._loss(start, exact, answers, 0.5)[1])


def test_a_selector_says_what_share_similar_rows_have():
    options: dict[str, Any] = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False}
    default = DynamicFeatureSelector(MODEL, **options).fit(X[::2], Y[::2])
    assert default.choices_["answer"]["similar_rows"] == 0.5
    assert default.predictor_.similar_ is not None
    pooled = DynamicFeatureSelector(MODEL, adaptation="pooled", **options).fit(X[::2], Y[::2])
    assert pooled.choices_["answer"]["similar_rows"] == 0.0


def test_one_column_and_missing_cells():
    one = GaussianNB().fit(X[:, :1], Y)
    predictor = ConditionalPredictor(one, similar_rows=0.5, random_state=0).fit(X[:, :1], Y)
    assert np.isfinite(predictor.predict_proba(np.array([[np.nan], [13.0]]))).all()
    holes = np.where(np.random.default_rng(0).random(X[::2].shape) < 0.3, np.nan, X[::2])
    predictor = ConditionalPredictor(MODEL, similar_rows=0.5, random_state=0).fit(holes, Y[::2])
    assert_allclose(predictor.predict_proba(X, MASK).sum(axis=1), 1)
