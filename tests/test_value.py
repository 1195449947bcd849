"""Expected gain: closed forms on planted tables, and gain per cost."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.predict import ConditionalPredictor, wrap
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.value import NeighborValue, per_cost

FINITE = st.floats(-1e3, 1e3)


@given(FINITE, st.floats(0.01, 1e3))
def test_a_positive_gain_is_divided_by_its_cost_and_a_negative_one_multiplied(gain, cost):
    expected = gain / cost if gain > 0 else gain * cost
    assert per_cost(np.array([gain]), np.array([cost]))[0] == expected


@given(FINITE, st.floats(0.01, 10), st.floats(0.01, 10))
def test_dearer_is_never_better(gain, cost, more):
    cheap, dear = per_cost(np.array([gain, gain]), np.array([cost, cost + more]))
    assert dear <= cheap


def test_free_features_keep_their_gain():
    assert per_cost(np.array([2.0, -2.0, 0.0]), np.zeros(3)).tolist() == [2.0, -2.0, 0.0]


def test_never_stays_never():
    assert per_cost(np.array([-np.inf, -np.inf]), np.array([3.0, 0.0])).tolist() == [-np.inf, -np.inf]


def test_prices_per_row_meet_one_ranking():
    gains = per_cost(np.array([1.0, 4.0]), np.array([[1.0, 2.0], [4.0, 1.0]]))
    assert gains.tolist() == [[1.0, 2.0], [0.25, 4.0]]


def sure_of_the_first_column(X):
    """A classifier that says the first column's sign and is never quite sure."""
    positive = np.where(np.asarray(X, dtype=float)[:, 0] > 0, 0.9, 0.1)
    return np.column_stack([1 - positive, positive])


def planted(n=400, n_columns=4, seed=0):
    """Independent columns, of which the model reads the first."""
    X = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, n_columns))
    return X, (X[:, 0] > 0).astype(int)


def value_of(function, X, y, groups=None, **options):
    predictor = ConditionalPredictor(wrap(function, [0, 1]), random_state=0, **options).fit(X, y)
    schema = Schema(predictor.schema_.columns, predictor.schema_.framed, groups)
    return NeighborValue(BeliefModel(predictor), schema)


def state_of(value, values, mask):
    """Cases of which the features in `mask` are known."""
    rows = EncodedRows(np.where(value.schema.expand(mask), values, np.nan))
    prices = Prices(None).resolve(value.schema.features)
    left = np.full(len(rows), np.inf)
    return Acquisition(value.schema, prices, value.beliefs, rows, mask, np.ones_like(mask), left)


def gains(value, values, mask):
    """Expected reduction of the discrepancy to the full prediction, (n, M)."""
    return value.reductions(state_of(value, values, mask))[0]


def nothing_known(schema, n=1):
    return np.full((n, len(schema.columns)), np.nan), np.zeros((n, len(schema.features)), dtype=bool)


def test_the_gain_of_the_only_column_that_matters_is_the_mutual_information():
    """Lemma 1 on a table of two equally likely answers: log 2 - H(0.9), up to the shrinkage."""
    X, y = planted()
    value = value_of(sure_of_the_first_column, X, y, n_neighbors=400)
    found = gains(value, *nothing_known(value.schema))[0]
    entropy = -0.9 * np.log(0.9) - 0.1 * np.log(0.1)
    assert_allclose(found[0], np.log(2) - entropy, rtol=0.1)
    assert (found[1:] < 0.02).all()
    assert found.argmax() == 0


def test_without_members_nothing_is_said_of_the_epistemic_part():
    X, y = planted()
    value = value_of(sure_of_the_first_column, X, y)
    state = state_of(value, *nothing_known(value.schema, 3))
    assert_array_equal(value.reductions(state)[1], np.zeros((3, 4)))


def test_once_the_answer_is_known_nothing_more_is_gained():
    X, y = planted()
    value = value_of(sure_of_the_first_column, X, y)
    mask = np.array([[True, False, False, False]])
    found = gains(value, np.where(mask, X[:1], np.nan), mask)[0, 1:]
    assert_allclose(found, 0, atol=1e-9)


def exclusive_or(X):
    cells = np.asarray(X, dtype=float)
    positive = np.where(cells[:, 0] * cells[:, 1] > 0, 0.95, 0.05)
    return np.column_stack([1 - positive, positive])


def test_the_gain_is_conditional_on_what_is_known():
    """Exclusive or: the second column is worth nothing until the first is known."""
    X, _ = planted(n=800)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    value = value_of(exclusive_or, X, y, n_neighbors=200)
    before = gains(value, *nothing_known(value.schema))[0]
    mask = np.array([[True, False, False, False]])
    after = gains(value, np.where(mask, X[:1], np.nan), mask)[0]
    assert before[1] < 0.05
    assert after[1] > 0.3
    assert (after[2:] < 0.05).all()


def test_a_group_is_worth_what_its_columns_tell_together():
    X, _ = planted(n=800)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    value = value_of(exclusive_or, X, y, groups={"both": [0, 1]}, n_neighbors=800)
    found = gains(value, *nothing_known(value.schema))[0]
    assert value.schema.features[0] == "both"
    assert found[0] > 0.3
    assert (found[1:] < 0.05).all()


def test_categories_are_outcomes_of_their_own():
    """A category whose middle value decides: no threshold on its codes would tell."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"letter": rng.choice(["a", "b", "c"], 600), "other": rng.choice(["u", "v"], 600)})
    y = (table["letter"] == "b").astype(int).to_numpy()

    def model(X):
        positive = np.where(X["letter"] == "b", 0.9, 0.1)
        return np.column_stack([1 - positive, positive])

    value = value_of(model, table, y, n_neighbors=600)
    found = gains(value, *nothing_known(value.schema))[0]
    assert found[0] > 0.2
    assert found[1] < 0.02


def test_missing_training_cells_are_an_outcome_and_no_obstacle():
    X, y = planted()
    X[::3, 0] = np.nan
    value = value_of(lambda X: sure_of_the_first_column(np.nan_to_num(X, nan=-1.0)), X, y, n_neighbors=400)
    found = gains(value, *nothing_known(value.schema))[0]
    assert np.isfinite(found).all()
    assert found.argmax() == 0


def test_a_case_has_its_own_gains_whoever_stands_beside_it():
    X, y = planted(n=700)
    value = value_of(sure_of_the_first_column, X, y, n_neighbors=50)
    rng = np.random.default_rng(1)
    mask = rng.random(X.shape) < 0.5
    seen = np.where(mask, X, np.nan)
    together = gains(value, seen, mask)  # more rows than are handled at once
    order = rng.permutation(len(X))
    assert_allclose(gains(value, seen[order], mask[order]), together[order], rtol=0, atol=1e-12)
    for r in (0, 511, 512, 699):
        assert_allclose(gains(value, seen[[r]], mask[[r]])[0], together[r], rtol=0, atol=1e-12)


def test_the_state_is_not_changed():
    X, y = planted()
    value = value_of(sure_of_the_first_column, X, y)
    mask = np.zeros(X.shape, dtype=bool)
    mask[:, 1] = True
    state = state_of(value, X, mask)
    before = (state.rows.values.copy(), mask.copy())
    value.reductions(state)
    assert_array_equal(state.rows.values, before[0])
    assert_array_equal(state.mask, before[1])


def test_a_constant_column_is_worth_nothing():
    for constant in (0.0, 7.5):
        X, y = planted()
        X[:, 3] = constant
        value = value_of(sure_of_the_first_column, X, y)
        assert abs(gains(value, *nothing_known(value.schema))[0, 3]) < 1e-9


def test_same_seed_same_gains_for_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] > 0).astype(int)
    groups = {"pair": [0, 1]}
    first = value_of(sure_of_the_first_column, X, y, groups)
    second = value_of(sure_of_the_first_column, X, y, groups)
    start = nothing_known(first.schema, 3)
    assert_array_equal(gains(first, *start), gains(second, *start))


def test_the_schema_of_the_value_is_the_grouped_one():
    X, y = planted()
    value = value_of(sure_of_the_first_column, X, y, groups={"pair": [0, 2]})
    assert isinstance(value.schema, Schema)
    assert gains(value, *nothing_known(value.schema)).shape == (1, 3)
