"""Sets of features to order together."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, Prices
from askwise.case import SuggestedSet
from askwise.errors import InvalidInput

NAMES = ["best", "copy", "other", "noise"]


def data(n=300, seed=0):
    """A feature, almost a copy of it, another that adds to it, and noise."""
    rng = np.random.default_rng(seed)
    best, other = rng.normal(size=(2, n))
    y = (1.5 * best + other + 0.3 * rng.normal(size=n) > 0).astype(int)
    copy = best + 0.05 * rng.normal(size=n)
    return pd.DataFrame(np.column_stack([best, copy, other, rng.normal(size=n)]), columns=NAMES), y


def selector(**options):
    X, y = data()
    given = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False, **options}
    return DynamicFeatureSelector(LogisticRegression(), **given).fit(X, y)


@pytest.fixture(scope="module")
def owner():
    return selector()


def test_a_set_holds_what_tells_most_together_and_no_copies(owner):
    found = owner.start().suggest_set(2)
    assert found.features in (["best", "other"], ["copy", "other"])
    assert found.price == 2.0
    assert found.gain > owner.start().suggest_set(1).gain > 0
    assert json.loads(json.dumps(dataclasses.asdict(found)))["features"] == found.features
    assert "noise" not in owner.start().suggest_set(100).features


def test_a_set_for_each_row_is_that_of_its_session(owner):
    X, _ = data(4, 1)
    known = X.assign(best=np.nan, copy=np.nan, noise=np.nan)
    sets = owner.suggest_set(known, 1)
    for found, value in zip(sets, X["other"], strict=True):
        assert found == owner.start({"other": value}).suggest_set(1)
        assert found.features in (["best"], ["copy"])
    only = np.array([False, False, False, True])
    assert all(set(found.features) <= {"noise"} for found in owner.suggest_set(known, 9, available=only))


def test_the_price_and_the_budget_limit_a_set_and_nothing_affordable_gives_an_empty_one(owner):
    nothing = SuggestedSet([], 0.0, 0.0, {"money": 0.0})
    assert owner.start().suggest_set(0.5) == nothing
    assert owner.start(budget=0.0).suggest_set(9) == nothing
    assert len(owner.start(budget=1).suggest_set(9).features) == 1
    session = owner.start()
    for name in NAMES:
        session.unavailable(name)
    assert session.suggest_set(9) == nothing
    X, _ = data(1, 1)
    assert owner.suggest_set(X, 9) == [nothing]  # everything is known


def test_set_up_costs_count_once():
    prices = Prices([4, 9, 4, 9], shared=[(["best", "other"], 3.0)])
    found = selector(costs=prices).start().suggest_set(5)
    assert (found.features, found.price) == (["best", "other"], 5.0)
    assert selector(costs=[4, 9, 4, 9]).start().suggest_set(5).features == ["best"]


def test_a_swap_undoes_a_cheap_first_choice():
    """The copy is cheapest for what it tells; only without it the two that tell most together are affordable."""
    found = selector(costs=[4.0, 2.0, 6.0, 1.0]).start().suggest_set(8)
    assert found.features == ["copy", "other"]
    found = selector(costs=[2.0, 3.0, 6.0, 1.0]).start().suggest_set(8)
    assert found.features == ["best", "other"]


def test_bad_prices_are_refused(owner):
    X, _ = data(2, 1)
    for price in (-1, np.nan, np.inf, "20", None, True):
        for ask in (owner.start().suggest_set, lambda given: owner.suggest_set(X, given)):
            with pytest.raises(InvalidInput, match=r"suggest_set: price must be a finite number >= 0; got"):
                ask(price)


def test_without_completions_it_says_what_to_use():
    plain = selector(adaptation="mean", policy="static")
    with pytest.raises(InvalidInput, match=r'suggest_set needs completions.*adaptation="conditional"'):
        plain.start().suggest_set(2)
    assert selector(adaptation="mean", policy="greedy").start().suggest_set(1).features
