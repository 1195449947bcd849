"""The policy that plans what a budget can buy."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, Prices
from askwise.acquire import Greedy, Planned

NAMES = ["dear", "half", "other half", "noise"]
PRICES = [4.0, 3.0, 3.0, 1.0]


def data(n=600, seed=0):
    """One dear feature tells more than each of two cheaper ones, which tell everything together."""
    rng = np.random.default_rng(seed)
    half, other = rng.normal(size=(2, n))
    y = (half + other > 0).astype(int)
    dear = half + other + 0.9 * rng.normal(size=n)
    return pd.DataFrame(np.column_stack([dear, half, other, rng.normal(size=n)]), columns=NAMES), y


def selector(**options):
    X, y = data()
    given = {"costs": PRICES, "epistemic": None, "calibration": None, "random_state": 0, "progress": False, **options}
    return DynamicFeatureSelector(LogisticRegression(), **given).fit(X, y)


@pytest.fixture(scope="module")
def owner():
    return selector()


def test_auto_plans_at_unequal_prices_only(owner):
    assert type(owner.policy_) is Planned
    assert type(selector(costs=None).policy_) is Greedy
    assert type(owner.with_policy("planned").policy_) is Planned
    assert owner.choices_["policy"]["name"] == "Planned"
    plans = owner.choices_["policy"]["plans"]
    assert json.loads(json.dumps(plans)) == plans
    assert all(plan["price"] <= plan["budget"] for plan in plans)
    assert {"half", "other half"} <= set(plans[10]["features"]), "65 % of the price of everything is 7.15"


def test_two_halves_are_bought_where_the_money_pays_for_both_but_not_for_a_better_first(owner):
    X, y = data(300, 1)
    greedy = owner.with_policy("greedy")
    dear, half, other = range(3)
    assert (owner.policy_.worth(start(owner))[0, dear] > owner.policy_.worth(start(owner))[0, [half, other]]).all()
    planned, instead = owner.acquire(X, budget=6), greedy.acquire(X, budget=6)
    assert set(planned.order[:, 0]) <= {half, other}
    assert planned.mask_after(2)[:, [half, other]].all()
    assert (planned.predict() == y).mean() > (instead.predict() == y).mean() + 0.1
    assert_array_equal(owner.acquire(X).order, greedy.acquire(X).order)  # without a budget there is nothing to plan


def start(owner, budget=np.inf):
    return owner._parts(np.full((1, 4), np.nan), budget)[0]


def test_a_plan_needs_what_is_available_and_affordable(owner):
    nothing = np.full((1, 4), np.nan)
    assert owner.suggest(nothing, budget=6, as_names=True)[0] in ("half", "other half")
    without = np.array([True, True, False, True])
    assert owner.suggest(nothing, budget=6, available=without, as_names=True)[0] == "dear"
    assert owner.suggest(nothing, budget=3.5, as_names=True)[0] in ("half", "other half")
    assert owner.suggest(nothing, budget=1, as_names=True)[0] == "noise"
    assert owner.suggest(nothing, budget=0.5)[0] == -1
    known = np.array([[np.nan, 0.3, np.nan, np.nan]])
    assert owner.suggest(known, budget=3, as_names=True)[0] == "other half"


def test_gains_are_those_of_the_features_whatever_the_plan(owner):
    """The preference of a plan is part of the scores and not of the gains per price."""
    for budget in (3.0, 6.0, 9.0):
        state = start(owner, budget)
        gains = owner.policy_.gains(owner.policy_.scores(state), state)
        assert_allclose(gains[0], owner.policy_.worth(state)[0] / PRICES, rtol=1e-6)
    session = owner.start(budget=6)
    assert "what the rest of the budget can buy" in session.why()["reason"]
    assert "budget" not in owner.start().why()["reason"]


def test_a_session_equals_its_row_in_a_batch_and_every_budget_has_its_own_episode(owner):
    X, _ = data(6, 2)
    budgets = [3.0, 6.0, 9.0]
    ends = owner.final_states(X, budgets)
    for budget, end in zip(budgets, ends, strict=True):
        run = owner.acquire(X, budget=budget)
        assert_array_equal(end.mask, run.mask_after(run.order.shape[1]))
        for r in range(len(X)):
            session = owner.start(budget=budget)
            bought = []
            while (suggestion := session.suggest()) is not None:
                bought.append(owner.features_.index(suggestion.feature))
                session.answer(suggestion.feature, float(X[suggestion.feature].iloc[r]))
            assert bought == [i for i in run.order[r] if i >= 0]


def test_shared_set_up_costs_make_a_set_affordable():
    prices = Prices([5.0, 4.0, 4.0, 1.0], shared=[(["half", "other half"], 2.0)])
    owner = selector(costs=prices)
    assert owner.suggest(np.full((1, 4), np.nan), budget=6, as_names=True)[0] in ("half", "other half")
    apart = selector(costs=[5.0, 4.0, 4.0, 1.0])
    assert apart.suggest(np.full((1, 4), np.nan), budget=6, as_names=True)[0] == "dear"


def test_free_features_are_part_of_every_plan_and_groups_are_planned_as_one():
    owner = selector(costs=[6.0, 0.0, 3.0, 1.0])
    assert owner.policy_.plans_.sets[:, 1].all()
    grouped = selector(costs={"both": 5.0, "dear": 6.0, "noise": 1.0}, groups={"both": ["half", "other half"]})
    assert grouped.suggest(np.full((1, 4), np.nan), budget=6, as_names=True)[0] == "both"


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="Planned: price_rule must be one of"):
        selector(policy=Planned(price_rule="cheap"))
    assert Planned().get_params() == {"price_rule": "auto", "risk_weight": None}
