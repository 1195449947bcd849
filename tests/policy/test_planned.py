"""The policy that plans what a budget can buy."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from askwise import DynamicFeatureSelector, Prices, wrap
from askwise.evaluation import final_states
from askwise.policy import Distilled, Greedy, Planned
from askwise.vision import PatchGrid

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
    given = {
        "costs": PRICES,
        "policy": "planned",
        "epistemic": None,
        "calibration": None,
        "random_state": 0,
        "progress": False,
        **options,
    }
    return DynamicFeatureSelector(LogisticRegression(), **given).fit(X, y)


@pytest.fixture(scope="module")
def owner():
    return selector()


def test_auto_plans_at_unequal_prices_only():
    X, y = load_wine(return_X_y=True, as_frame=True)
    for costs, kind in ((None, Greedy), (range(1, 14), Planned)):
        auto = DynamicFeatureSelector(GaussianNB(), costs=costs, epistemic=None, calibration=None, progress=False)
        assert type(auto.fit(X, y).policy_) is kind
        assert auto.choices_["policy"]["name"] == kind.__name__
        assert auto.policy_.lookahead_["gates"] == []


def test_the_report_has_the_best_set_for_some_budgets(owner):
    assert type(owner.policy_) is Planned
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
    assert "what the rest of the budget can buy, it is expected" in session.why()["reason"]
    assert "budget" not in owner.start().why()["reason"]


def test_a_session_equals_its_row_in_a_batch_and_every_budget_has_its_own_episode(owner):
    X, _ = data(6, 2)
    budgets = [3.0, 6.0, 9.0]
    ends = final_states(owner, X, budgets)
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


def test_at_equal_prices_every_budget_has_its_own_plan():
    owner = selector(costs=None, policy="planned")
    X, y = data(60, 2)
    evaluated = owner.evaluate(X, y, budgets=[1, 2, 3])["accuracy"]
    assert evaluated.tolist() == [(owner.acquire(X, budget=b).predict() == y).mean() for b in (1, 2, 3)]


def test_a_free_feature_that_is_missing_does_not_end_the_planning():
    owner = selector(costs=[4.0, 3.0, 3.0, 0.0])
    assert owner.suggest(np.full((1, 4), np.nan), 6, as_names=True)[0] == "noise"  # it is free
    without = np.array([True, True, True, False])
    assert owner.suggest(np.full((1, 4), np.nan), 6, without, as_names=True)[0] in ("half", "other half")


def test_a_plan_does_not_let_the_distilled_policy_misstate_gains_and_why_compares_no_shares():
    owner = selector(policy=Distilled(Planned(), n_states=60, hidden=(4,)))
    state = start(owner, 6.0)
    gains = owner.policy_.gains(owner.policy_.scores(state), state)
    assert_allclose(gains[0], owner.policy_.exact_.worth(state)[0] / PRICES, rtol=1e-6)
    others = selector().start(budget=6).why()["alternatives"]
    assert all(other["relative_gain"] is None for other in others)


def test_images_are_refused():
    images, y = np.zeros((12, 1, 4, 4), dtype=np.float32), np.arange(12) % 2
    model = wrap(lambda pixels: np.full((len(pixels), 2), 0.5), classes=[0, 1])
    for policy in ("planned", Planned()):
        with pytest.raises(ValueError, match="images"):
            DynamicFeatureSelector(model, groups=PatchGrid(2, 2), policy=policy, progress=False).fit(images, y)
