"""What features are expected to save in the cost of errors: hand-set models, whose savings are known."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from askwise import wrap
from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.predict import ConditionalPredictor
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.value.savings import MOST_PAIRED, NeighborSavings, Savings, most_promising_pairs

EQUAL = 10.0 * (1 - np.eye(2))


def one_decides(X):
    """The first feature decides, right in 9 of 10 cases; the others tell nothing."""
    ill = np.where(np.asarray(X)[:, 0] > 0.5, 0.9, 0.1)
    return np.column_stack([ill, 1 - ill])


def two_decide(X):
    """The first two decide together; neither tells anything on its own."""
    ill = np.where(np.asarray(X)[:, 0] != np.asarray(X)[:, 1], 0.9, 0.1)
    return np.column_stack([ill, 1 - ill])


def made(model, error_costs=EQUAL, repeats=100):
    """The savings around a hand-set model, and a function that makes states of it."""
    X = np.repeat(np.array(list(product([0.0, 1.0], repeat=3))), repeats, axis=0)
    sure = np.random.default_rng(0).random(len(X)) < model(X)[:, 0]
    predictor = ConditionalPredictor(wrap(model, classes=[0, 1]), n_neighbors=2000, bandwidth=0.05, random_state=0)
    beliefs = BeliefModel(predictor.fit(X, np.where(sure, 0, 1)))
    schema, prices = predictor.schema_, Prices(None).resolve(predictor.schema_.features)

    def state(*rows):
        values = np.array(rows, dtype=float)
        known, free = ~np.isnan(values), np.ones(values.shape, dtype=bool)
        left = np.full(len(values), np.inf)
        return Acquisition(schema, prices, beliefs, EncodedRows(values), known, free, left)

    return NeighborSavings(beliefs, schema, error_costs), state


NOTHING, FIRST, SECOND = [np.nan] * 3, [1.0, np.nan, np.nan], [np.nan, 1.0, np.nan]


def test_a_feature_saves_what_its_answers_change():
    """From 1/2 to 9/10: the expected cost of an error falls from 5 to 1, with the last feature or with the first."""
    value, state = made(one_decides)
    found = value.savings(state(NOTHING, FIRST, SECOND))
    assert_allclose(found.single[[0, 2], 0], 4.0, atol=0.3)
    assert_allclose(found.all[[0, 2]], 4.0, atol=0.3)
    assert_allclose(found.single[:, 1:], 0.0, atol=0.3)
    assert found.single[1, 0] == 0.0, "it is known already"
    assert found.all[1] == pytest.approx(0.0, abs=0.3)
    assert found.information[2].argmax() == 0
    assert (found.single_error >= 0).all()


def test_two_features_save_together_what_neither_saves_alone():
    value, state = made(two_decide)
    found = value.savings(state(NOTHING))
    assert_allclose(found.single, 0.0, atol=0.3)
    saved = {tuple(sorted(pair)): saving for pair, saving in zip(found.pairs[0].tolist(), found.paired[0], strict=True)}
    assert saved.pop((0, 1)) == pytest.approx(4.0, abs=0.4)
    assert_allclose(list(saved.values()), 0.0, atol=0.4)
    assert value.savings(state(FIRST)).single[0, 1] == pytest.approx(4.0, abs=0.3)


def test_savings_have_the_unit_of_the_error_costs():
    once, state = made(one_decides)
    thrice, _ = made(one_decides, 3 * EQUAL)
    nothing, _ = made(one_decides, 0 * EQUAL)
    now = state(NOTHING, SECOND, FIRST)
    for part in ("single", "single_error", "all"):
        assert_allclose(getattr(thrice.savings(now), part), 3 * getattr(once.savings(now), part), atol=1e-9)
        assert_array_equal(getattr(nothing.savings(now), part), 0.0)
    assert_allclose(thrice.savings(now).information, once.savings(now).information)


def test_a_decision_that_no_answer_changes_saves_nothing():
    """An error costs 100 one way and 1 the other: 1/10 is enough to decide for the safe class whatever is known."""
    value, state = made(one_decides, np.array([[0.0, 100.0], [1.0, 0.0]]))
    found = value.savings(state(NOTHING, SECOND))
    assert_allclose(found.single, 0.0, atol=1e-9)
    assert_allclose(found.all, 0.0, atol=1e-9)


def test_cases_do_not_depend_on_each_other():
    """Blocks, order and neighbours in the batch change nothing."""
    value, state = made(two_decide)
    rows = [NOTHING, FIRST, SECOND, [0.0, 1.0, np.nan], [0.0, 1.0, 1.0]] * 20
    together = value.savings(state(*rows))
    for k in (1, 2, 3, 4):
        alone = value.savings(state(rows[k]))
        assert_allclose(together.single[k + 65], alone.single[0], atol=1e-12)
        assert_allclose(together.all[k + 65], alone.all[0], atol=1e-12)
    assert_array_equal(together.single[4], 0.0)
    assert together.all[4] == 0.0


def test_standard_errors_are_taken_off():
    value, state = made(one_decides)
    found = value.savings(state(NOTHING, SECOND))
    careful = found.less_errors(2.0)
    assert_allclose(careful.single, found.single - 2 * found.single_error)
    assert_allclose(careful.paired, found.paired - 2 * found.paired_error)
    assert_array_equal(careful.all, found.all)
    both = Savings.concatenated([found.take(np.array([1])), found.take(np.array([0]))])
    assert_array_equal(both.single, found.single[::-1])
    assert_array_equal(both.pairs, found.pairs[::-1])


def test_pairs_are_made_of_what_saves_or_tells_most():
    single, information = np.zeros((1, 20)), np.zeros((1, 20))
    single[0, [3, 7]], information[0, [5, 11]] = [2.0, 1.0], [0.2, 0.3]
    pairs = most_promising_pairs(single, information)
    assert pairs.shape == (1, MOST_PAIRED * (MOST_PAIRED - 1) // 2, 2)
    assert pairs[0, :3].tolist() == [[3, 7], [3, 11], [3, 5]]
    assert most_promising_pairs(np.zeros((2, 1)), np.zeros((2, 1))).shape == (2, 0, 2)
