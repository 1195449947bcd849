"""What a feature costs now, and what is affordable."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from askwise.errors import InvalidInput
from askwise.table.prices import Prices, affordable, as_prices, check_budget

FEATURES = ["a", "b", "c", "d"]


def masks(*rows):
    return np.array([[name in row for name in FEATURES] for row in rows])


def test_none_is_one_each():
    assert Prices().resolve(FEATURES).costs.tolist() == [1, 1, 1, 1]


def test_an_array_is_in_feature_order():
    assert Prices([4, 3, 2, 0]).resolve(FEATURES).costs.tolist() == [4, 3, 2, 0]


def test_names_that_are_absent_cost_one():
    assert Prices({"c": 5, "a": 0}).resolve(FEATURES).costs.tolist() == [0, 1, 5, 1]


def test_names_and_positions_mean_the_same():
    by_name = Prices({"b": 3}, shared=[(["b", "c"], 0.5)]).resolve(FEATURES)
    by_position = Prices({1: 3}, shared=[([1, 2], 0.5)]).resolve(FEATURES)
    everything = masks("", "b", "bc")
    assert_array_equal(by_name.now(everything), by_position.now(everything))


def test_a_name_goes_before_a_position():
    """A table whose columns are numbered from 1: the feature named 1 is the first one."""
    assert Prices({1: 7}).resolve([1, 2, 3]).costs.tolist() == [7, 1, 1]


def test_a_set_up_cost_is_paid_once():
    prices = Prices([5, 4, 3, 2], shared=[(["a", "b", "c"], 2.5)]).resolve(FEATURES)
    assert prices.now(masks("")).tolist() == [[5, 4, 3, 2]]
    # a is had: b and c are cheaper, a itself (bought already) and d are not.
    assert prices.now(masks("a")).tolist() == [[5, 1.5, 0.5, 2]]
    # The saving is had once, however many of the set are there.
    assert prices.now(masks("ab")).tolist() == [[2.5, 1.5, 0.5, 2]]
    assert prices.now(masks("d")).tolist() == [[5, 4, 3, 2]]


def test_savings_of_several_sets_add_up():
    prices = Prices([5, 4, 3, 2], shared=[(["a", "b"], 1), (["b", "c"], 2)]).resolve(FEATURES)
    assert prices.now(masks("ac")).tolist() == [[5, 1, 3, 2]]
    assert prices.now(masks("b")).tolist() == [[4, 4, 1, 2]]


def test_rows_have_prices_of_their_own():
    prices = Prices([5, 4, 3, 2], shared=[(["a", "b"], 1)]).resolve(FEATURES)
    assert_array_equal(prices.now(masks("", "a", "b")), np.vstack([prices.now(masks(row)) for row in ("", "a", "b")]))


@given(st.permutations(range(4)), st.integers(0, 10_000))
def test_everything_costs_its_total_in_whatever_order(order, seed):
    """Each set-up cost is paid exactly once along any trajectory."""
    rng = np.random.default_rng(seed)
    shared = [(["a", "b", "c"], rng.uniform(0, 1)), (["b", "d"], rng.uniform(0, 1))]
    prices = Prices(rng.uniform(2, 9, size=4), shared).resolve(FEATURES)
    mask, paid = np.zeros((1, 4), dtype=bool), 0.0
    for i in order:
        paid += prices.now(mask)[0, i]
        mask[0, i] = True
    assert_allclose(paid, prices.total())


def test_a_saving_may_be_the_whole_price():
    prices = Prices([1, 1, 3, 3], shared=[(["a", "b"], 1)]).resolve(FEATURES)
    assert prices.now(masks("a")).tolist() == [[1, 0, 3, 3]]


def test_rounding_never_makes_a_price_negative():
    prices = Prices([0.3, 1, 1, 1], shared=[(["a", "b"], 0.1), (["a", "c"], 0.2)]).resolve(FEATURES)
    assert prices.now(masks("bc"))[0, 0] == 0.0


def test_resolving_twice_changes_nothing():
    once = Prices({"a": 2}, shared=[(["a", "b"], 1)]).resolve(FEATURES)
    twice = once.resolve(FEATURES)
    assert_array_equal(once.now(masks("a", "")), twice.now(masks("a", "")))


def test_resolving_leaves_the_original_as_it_was():
    costs, shared = {"a": 2.0}, [(["a", "b"], 1.0)]
    prices = Prices(costs, shared)
    prices.resolve(FEATURES)
    assert prices.costs is costs
    assert prices.shared is shared
    assert costs == {"a": 2.0}
    assert shared == [(["a", "b"], 1.0)]


UNIFORM: list[tuple[Prices, bool]] = [
    (Prices(), True),
    (Prices([2, 2, 0, 2]), True),
    (Prices([0, 0, 0, 0]), True),
    (Prices([2, 2, 2, 3]), False),
    (Prices([2, 2, 2, 2], shared=[(["a", "b"], 1)]), False),
]


def test_uniform():
    for prices, uniform in UNIFORM:
        assert prices.resolve(FEATURES).uniform is uniform, prices


def test_as_prices():
    prices = Prices([1, 2, 3, 4])
    assert as_prices(prices) is prices
    assert as_prices({"a": 2}).resolve(FEATURES).costs.tolist() == [2, 1, 1, 1]
    assert as_prices(None).resolve(FEATURES).costs.tolist() == [1, 1, 1, 1]


REFUSED_COSTS: list[tuple[Any, str]] = [
    ([1, 2, 3], r"each of the 4 features; got shape \(3,\).*'a', 'b', 'c', 'd'"),
    ([[1, 2, 3, 4]], r"each of the 4 features; got shape \(1, 4\)"),
    (3.0, "each of the 4 features"),
    ([1, -2, 3, 4], "price of 'b' must be a finite number >= 0"),
    ([1, 2, np.nan, 4], "price of 'c' must be a finite number >= 0"),
    ([1, 2, 3, np.inf], "price of 'd' must be a finite number >= 0.*available"),
    (["cheap", 1, 1, 1], "costs must be numbers"),
    (["1", "2", "3", "4"], "number"),
    ({"a": "cheap"}, "price of 'a' must be a finite number >= 0.*got 'cheap'"),
    ({"a": "5"}, "price of 'a' must be a finite number >= 0.*got '5'"),
    ({"a": None}, "price of 'a' must be a finite number >= 0.*got None"),
    ({"a": -1}, "price of 'a' must be a finite number >= 0"),
    ({"zz": 1}, "no feature 'zz'.*'a', 'b', 'c', 'd'"),
    ({4: 1}, "no feature 4"),
    ({-1: 1}, "no feature -1"),
]


def test_prices_that_are_refused():
    for costs, message in REFUSED_COSTS:
        with pytest.raises(InvalidInput, match=message):
            Prices(costs).resolve(FEATURES)


REFUSED_SAVINGS: list[tuple[Any, str]] = [
    ([(["a"], 1)], r"two or more different features; got \['a'\]"),
    ([(["a", "a"], 1)], r"two or more different features; got \['a', 'a'\]"),
    ([("ab", 1)], "shared"),
    ([(["a", "zz"], 1)], "no feature 'zz'"),
    ([(["a", "b"], -1)], r"saving of \['a', 'b'\].*>= 0"),
    ([(["a", "b"], np.nan)], r"saving of \['a', 'b'\]"),
    ([(["a", "b"], 3)], "savings of 'b' add up to 3, more than its price 2"),
    ([(["a", "b"], 1.5), (["b", "c"], 1)], "savings of 'b' add up to 2.5, more than its price 2"),
    ([3], r"shared must hold pairs \(features, saving\)"),
    ([(["a", "b"],)], r"shared must hold pairs \(features, saving\)"),
    ([(["a", "b"], 1, 2)], r"shared must hold pairs \(features, saving\)"),
    ([(5, 1)], r"shared must hold pairs \(features, saving\)"),
    (5, r"shared must be a list of pairs \(features, saving\); got 5"),
    ("ab", r"shared must be a list of pairs \(features, saving\); got 'ab'"),
    ({"a": 1}, r"shared must be a list of pairs \(features, saving\)"),
]


def test_shared_savings_that_are_refused():
    for shared, message in REFUSED_SAVINGS:
        with pytest.raises(InvalidInput, match=message):
            Prices([5, 2, 5, 5], shared).resolve(FEATURES)


def test_a_long_list_of_features_is_cut_short_in_messages():
    with pytest.raises(InvalidInput, match=r"100 in all") as caught:
        Prices({"zz": 1}).resolve([f"feature {i}" for i in range(100)])
    assert "feature 99" not in str(caught.value)


def test_budgets_per_row():
    assert check_budget(None, 2).tolist() == [np.inf, np.inf]
    assert check_budget(2, 3).tolist() == [2, 2, 2]
    assert check_budget([1, 2.5], 2).tolist() == [1, 2.5]
    assert check_budget(np.inf, 1).tolist() == [np.inf]
    assert check_budget(0, 1).tolist() == [0]


def test_a_budget_is_copied():
    mine = np.array([1.0, 2.0])
    check_budget(mine, 2)[0] = 9
    assert mine.tolist() == [1.0, 2.0]


def test_budgets_that_are_refused():
    budgets: list[Any] = [-1, np.nan, [1, -1], [1, np.nan], "lots", "2", [1, 2, 3], [[1, 2]], {}]
    for budget in budgets:
        with pytest.raises(InvalidInput, match="budget must be"):
            check_budget(budget, 2)


def test_a_series_with_names_is_read_by_name_and_one_without_in_order():
    by_name = pd.Series([4.0, 3.0, 9.0], index=["d", "b", "a"])
    assert Prices(by_name).resolve(FEATURES).costs.tolist() == [9, 3, 1, 4]
    assert Prices(pd.Series([4.0, 3.0, 2.0, 1.0])).resolve(FEATURES).costs.tolist() == [4, 3, 2, 1]
    refused = [
        (pd.Series([1.0, 2.0], index=["a", "a"]), "'a' twice"),
        (pd.Series([1.0, 2.0], index=["a", "zz"]), "no feature 'zz'"),
        (pd.Series([1.0, 2.0]), "each of the 4 features"),
        (pd.Series([1.0, None], index=["a", "b"]), "price of 'b' must be a finite number"),
    ]
    for costs, message in refused:
        with pytest.raises(InvalidInput, match=message):
            Prices(costs).resolve(FEATURES)


def test_a_budget_of_ten_times_the_price_buys_ten_whatever_the_unit():
    """The slack is relative: large prices have large rounding errors, and small ones are not all affordable."""
    for price in (1234567.89, 0.1, 3e-12, 1e300):
        left, bought = 10 * price, 0
        while affordable(price, left):
            left, bought = max(left - price, 0.0), bought + 1
        assert bought == 10, price
    assert not affordable(1e-10, 0.0)
    assert not affordable(1.0, 0.999999)


def test_the_price_of_a_set_is_what_buying_it_costs():
    prices = Prices([5, 4, 3, 2], shared=[(["a", "b", "c"], 2.5)]).resolve(FEATURES)
    assert prices.total(masks("", "a", "ab", "abcd")).tolist() == [0, 5, 6.5, 9]
    assert prices.total() == 9


def test_true_is_no_price():
    given: list[Any] = [[1, True, 2], {"b": True}, {"b": np.bool_(True)}, np.array([True, True, True]), (False, 1, 1)]
    for costs in given:
        with pytest.raises(InvalidInput, match="costs"):
            Prices(costs).resolve(["a", "b", "c"])
    with pytest.raises(InvalidInput, match="saving"):
        Prices([2, 2, 2], shared=[(["a", "b"], True)]).resolve(["a", "b", "c"])
    assert Prices([1, 0, 2]).resolve(["a", "b", "c"]).costs.tolist() == [1, 0, 2]
