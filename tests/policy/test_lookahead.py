"""The policy that looks one purchase further, and when it pays."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector
from askwise.constraints import requires
from askwise.datasets import make_cube_nm, make_switch
from askwise.policy import Greedy, Lookahead
from askwise.policy.lookahead import ANSWERS_TO_SCREEN
from askwise.value.lookahead import total_effects


def wrapped(X, y, **options):
    model = RandomForestClassifier(30, min_samples_leaf=3, random_state=0).fit(X, y)
    given = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False, **options}
    return DynamicFeatureSelector(model, **given).fit(X, y)


@pytest.fixture(scope="module")
def switch():
    return make_switch(1000, n_settings=3, block_size=3, n_noise=4, random_state=0)


@pytest.fixture(scope="module")
def selector(switch):
    return wrapped(switch.X, switch.y)


def test_auto_looks_ahead_where_one_feature_says_which_others_matter(switch, selector):
    assert isinstance(selector.policy_, Lookahead)
    found = selector.policy_.lookahead_
    assert found["pays"]
    assert found["gates"] == ["switch"]
    assert found["best_first"] == "switch"
    assert found["greedy_first"] != "switch"
    assert found["two_step_gain_of_best_first"] > 1.5 * found["two_step_gain_of_greedy_first"]
    assert json.loads(json.dumps(found)) == found
    X, y = switch.sample(300, random_state=1)
    run, greedy = selector.acquire(X, budget=3), selector.with_policy("greedy").acquire(X, budget=3)
    names = np.array(selector.features_)
    assert (names[run.order[:, 0]] == "switch").all()
    block = np.array([name[0] for name in names])
    assert (block[run.order[:, 1]] == np.array(list("abc"))[X["switch"].astype(int)]).mean() > 0.9
    assert (run.predict() == y).mean() > (greedy.predict() == y).mean() + 0.05


def test_a_gate_can_be_a_group_of_columns_none_of_which_names_all_settings(switch):
    """A setting as noisy one-hot columns: the first of them alone only tells one setting from the others."""

    def as_group(X, seed):
        setting = X["switch"].astype(int).to_numpy()
        columns = np.eye(3)[setting] + 0.1 * np.random.default_rng(seed).normal(size=(len(X), 3))
        return X.drop(columns="switch").assign(**{f"setting_{k}": columns[:, k] for k in range(3)})

    owner = wrapped(as_group(switch.X, 2), switch.y, groups={"setting": ["setting_0", "setting_1", "setting_2"]})
    assert owner.policy_.lookahead_["gates"] == ["setting"]
    X, _ = switch.sample(200, random_state=1)
    order = owner.acquire(as_group(X, 3), budget=2).order
    names = np.array(owner.features_)[order]
    assert (names[:, 0] == "setting").all()
    block = np.array([name[0] for name in names[:, 1]])
    assert (block == np.array(list("abc"))[X["switch"].astype(int)]).mean() > 0.9


@pytest.mark.parametrize("costs", [None, [3, 3, 2, 1, 1, 1]])
def test_auto_finds_two_features_that_tell_something_only_together(costs):
    rng = np.random.default_rng(0)
    a, b, *noise = rng.normal(size=(5, 500))
    y = ((a * b > 0) ^ (rng.random(500) < 0.05)).astype(int)
    columns = {"a": a, "b": b, "weak": y + 2.5 * rng.normal(size=500), "c": noise[0], "d": noise[1], "e": noise[2]}
    X = pd.DataFrame(columns)
    owner = wrapped(X, y, costs=costs)
    assert owner.policy_.lookahead_["gates"] == ["a", "b"]
    budget = 2 if costs is None else 6
    assert owner.acquire(X[:100], budget=budget).mask_after(2)[:, :2].all(axis=1).mean() > 0.8


def test_labels_must_confirm_what_an_overfitted_model_makes_of_many_categories():
    """A tree that knows its rows by their codes: after any other feature, the codes seem to tell everything."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, [30, 30, 10, 4, 4], size=(400, 5)), columns=list("abcde")).astype(str)
    y = (rng.random(400) < 0.4 + 0.15 * (X["e"] == "2")).astype(int)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(random_state=0)).fit(X, y)
    owner = DynamicFeatureSelector(model, epistemic=None, calibration=None, random_state=0, progress=False)
    assert owner.fit(X, y).policy_.lookahead_["gates"] == []


def test_looking_ahead_is_compared_with_not_doing_so_on_unseen_cases(switch):
    fast = RandomForestClassifier(10, min_samples_leaf=3, random_state=0).fit(switch.X, switch.y)
    owner = DynamicFeatureSelector(fast, epistemic=None, random_state=0, progress=False).fit(switch.X, switch.y)
    assert isinstance(owner.policy_, Lookahead)
    tried = owner.looked_ahead_
    assert tried is not None
    assert tried.pays
    assert tried.horizons == (2, 3, 5, 7, 10)
    assert tried.less.shape == (200, 5)
    said = owner.choices_["policy"]
    assert said["in_words"].startswith("It looks ahead from switch, and once that is known, a gain is 50% what similar")
    assert [row["weight"] for row in said["ranks_by"]] == [0.5, 0.5, 1.0]
    assert said["ranks_by"][2]["less_log_loss"] == tried.mean > tried.error
    assert json.loads(json.dumps(said)) == said
    again = owner.with_policy("greedy").with_policy("auto")
    assert again.choices_["policy"] == said


def test_what_does_not_pay_on_unseen_cases_is_not_done(switch, monkeypatch):
    monkeypatch.setattr("askwise.calibrate.horizons.Comparison.pays", False)
    fast = RandomForestClassifier(5, min_samples_leaf=3, random_state=0).fit(switch.X[:400], switch.y[:400])
    owner = DynamicFeatureSelector(fast, epistemic=None, random_state=0, progress=False).fit(
        switch.X[:400], switch.y[:400]
    )
    assert owner.looked_ahead_ is not None
    assert type(owner.policy_) is Greedy
    assert owner.usual_gains_ is not None
    said = owner.choices_["policy"]
    assert said["lookahead"]["gates"] == ["switch"]
    assert not said["lookahead"]["pays"]
    assert said["in_words"].startswith("It does not look ahead: a gain is")
    assert type(owner.with_policy("auto").policy_) is Greedy
    nothing = switch.X[:1] * np.nan
    assert_array_equal(owner.ranking(nothing), owner.with_policy("auto").ranking(nothing))


def test_auto_stays_greedy_where_features_add_up():
    X, y = load_wine(return_X_y=True, as_frame=True)
    owner = wrapped(X, y)
    assert type(owner.policy_) is Greedy
    assert not owner.policy_.lookahead_["pays"]
    assert owner.policy_.lookahead_["gates"] == []
    greedy = owner.with_policy("greedy")
    assert_array_equal(owner.acquire(X[:20], budget=3).order, greedy.acquire(X[:20], budget=3).order)
    assert isinstance(owner.with_policy("lookahead").policy_, Lookahead)


def test_money_for_one_more_feature_buys_the_one_that_tells_most(switch, selector):
    greedy = selector.with_policy("greedy")
    nothing = switch.X[:2] * np.nan
    assert selector.suggest(nothing, budget=2, as_names=True).tolist() == ["switch"] * 2
    assert_array_equal(selector.suggest(nothing, budget=1), greedy.suggest(nothing, budget=1))
    # Followers must be available, too.
    names = selector.features_
    noise = [name == "switch" or name.startswith("noise") for name in names]
    assert selector.suggest(nothing, available=np.array(noise)).shape == (2,)


def test_the_gate_is_found_when_something_else_is_known(selector):
    session = selector.start({"a_0": 1.0, "noise_0": 0.3}, budget=4)
    suggestion = session.suggest()
    assert suggestion.feature == "switch"
    assert suggestion.gain == max(gain for _, _, gain in suggestion.ranking)
    session.answer("switch", 2.0)
    assert session.suggest().feature.startswith("c_")


def test_once_the_gate_is_known_half_is_what_the_labels_of_similar_rows_say_and_half_what_all_with_its_outcome_do(
    switch, selector
):
    known = switch.X[:10].assign(**{name: np.nan for name in switch.X if name != "switch"})
    greedy = selector.with_policy(Greedy(selector.with_policy("greedy").policy_.value_.by_labels()))
    gated, values = selector.policy_.gated_, selector._encode(known).values
    mixed = gated.mixed(greedy.gains(known), ~np.isnan(known.to_numpy()), values)
    assert_allclose(selector.ranking(known), mixed)
    assert_allclose(selector.gains(known), mixed)
    number = gated.outcomes.number(values)
    assert_allclose(gated.told_at_once().argmax(axis=1)[number] // 3, switch.X["switch"][:10])


def test_in_cube_nm_all_purchases_are_of_the_context_and_of_the_block_that_it_names():
    made = make_cube_nm(700, 4, random_state=0)
    owner = wrapped(made.X, made.y, groups=made.groups)
    X, y = made.sample(80, random_state=1)
    run = owner.acquire(X, budget=5)
    order = run.order
    assert (np.array(owner.features_)[order[:, 0]] == "context").all()
    right = order[:, 1:] // 10 == X.filter(like="context").to_numpy().argmax(axis=1)[:, None]
    assert right.mean() > 0.95
    told = owner.choices_["policy"]["lookahead"]["once_a_gate_is_known"]
    assert told["gate"] == "context"
    assert all(len({name[0] for name in best}) == 1 for best in told["tells_most_after_each_outcome"])
    plain = owner.with_policy("greedy").acquire(X, budget=5).predict()
    assert np.mean(run.predict() == y) > np.mean(plain == y) + 0.15


def test_values_by_labels_do_not_repeat_what_the_model_makes_of_irrelevant_features():
    """The labels follow the first feature, the model follows the second; the third is known."""
    X = np.random.default_rng(0).normal(size=(500, 3))

    def model(rows):
        p = 1 / (1 + np.exp(-3 * np.asarray(rows)[:, 1]))
        return np.column_stack([1 - p, p])

    owner = DynamicFeatureSelector(
        model, policy="greedy", epistemic=None, calibration=None, random_state=0, progress=False
    )
    with pytest.warns(UserWarning, match="classes"):
        owner.fit(X, (X[:, 0] > 0).astype(int))
    known = np.where(np.arange(3) == 2, X[:5], np.nan)
    by_labels = owner.with_policy(Greedy(owner.policy_.value_.by_labels()))
    assert (owner.suggest(known) == 1).all()
    assert (by_labels.suggest(known) == 0).all()
    assert_allclose(by_labels.ranking(X[:1] * np.nan), owner.ranking(X[:1] * np.nan))  # nothing is known


def test_auto_looks_ahead_at_any_prices_and_only_from_the_gate(switch):
    """Features that tell something once the switch is known have it as their best follower, but are no gates."""
    costs = np.random.default_rng(0).uniform(1, 10, switch.X.shape[1])
    owner = wrapped(switch.X, switch.y, costs=costs)
    assert isinstance(owner.policy_, Lookahead)
    assert owner.policy_.lookahead_["gates"] == ["switch"]
    assert owner.suggest(switch.X[:1] * np.nan, budget=float(costs.sum()) / 2, as_names=True).tolist() == ["switch"]


def test_a_switch_that_costs_too_much_is_not_bought_first(switch):
    prices = {"switch": 60.0}
    owner = wrapped(switch.X, switch.y, costs=prices, policy="lookahead")
    assert owner.suggest(switch.X[:1] * np.nan, as_names=True)[0] != "switch"


def test_of_many_features_those_that_interact_are_looked_at():
    made = make_switch(600, n_settings=2, block_size=2, n_noise=60, random_state=0)
    owner = wrapped(made.X, made.y, policy="lookahead")
    found = owner.policy_.lookahead_
    assert (found["n_considered"], found["n_features"]) == (40, 65)
    assert owner.features_.index("switch") in owner.policy_.considered_
    assert owner.ranking(made.X[:3] * np.nan).shape == (3, 65)


def test_screening_many_features_asks_for_a_number_of_answers_that_is_known_before(monkeypatch):
    made = make_switch(1500, n_settings=2, block_size=2, n_noise=60, random_state=0)
    owner, asked = wrapped(made.X, made.y, policy="greedy"), []
    predictor = owner.policy_.value_.predictor

    def model(rows):
        asked.append(len(rows))
        return np.full((len(rows), 2), 0.5)

    monkeypatch.setattr(predictor, "model_", model)
    total_effects(predictor, owner.policy_.value_.schema, ANSWERS_TO_SCREEN)
    assert 0.9 * 20_000 < sum(asked) < 1.1 * 20_000


def test_the_greedy_choice_of_a_later_state_need_not_be_one_that_was_considered(monkeypatch):
    monkeypatch.setattr("askwise.policy.lookahead.MOST_FIRST", 2)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(800, 6)), columns=list("abcdef"))
    found = wrapped(X, 2 * X["a"] + X["b"] + 4 * X["c"] * X["d"] > 0).policy_.lookahead_
    assert (found["n_considered"], found["n_features"]) == (2, 6)


def test_few_rows_missing_cells_groups_and_categories_do_no_harm():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(25, 4)), columns=list("abcd"))
    X["city"] = rng.choice(["Ghent", "Lille", "Namur"], 25)
    X = X.assign(a=X["a"].where(rng.random(25) < 0.7))
    y = (X["b"] > 0).to_numpy().astype(int)
    numbers = X.assign(city=pd.factorize(X["city"])[0].astype(float))
    owner = wrapped(numbers.fillna(0.0), y, policy="lookahead", groups={"pair": ["c", "d"]})
    with np.errstate(all="raise"):
        scores = owner.ranking(numbers.fillna(0.0)[:4] * np.nan)
    assert np.isfinite(scores).all()


def test_parameters_are_checked_and_can_be_set(switch):
    assert Lookahead(price_rule="per price").get_params() == {"price_rule": "per price", "risk_weight": None}
    with pytest.raises(ValueError, match="Lookahead: price_rule must be one of"):
        wrapped(switch.X[:100], switch.y[:100], policy=Lookahead(price_rule="cheap"))


def test_what_a_gate_opens_counts_as_what_follows_it(switch, selector):
    """Features that may not be asked for before the switch are among its followers, and so is its value."""
    behind = [name for name in selector.features_ if name[0] in "abc"]
    ruled = wrapped(switch.X, switch.y, policy="lookahead", constraints=[requires(name, "switch") for name in behind])
    free, at = selector.with_policy("lookahead"), selector.features_.index("switch")
    nothing = switch.X[:1] * np.nan
    assert_allclose(ruled.ranking(nothing)[0, at], free.ranking(nothing)[0, at])
    assert ruled.suggest(nothing, budget=2).tolist() == [at]
