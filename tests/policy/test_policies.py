"""What every policy promises, and what each is for."""

from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector, Prices, options
from askwise.acquisition import Acquisition, nothing_known
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.evaluation import final_states
from askwise.policy import DQN, Distilled, Greedy, Policy, Random, Static
from askwise.policy.base import OncePerState
from askwise.policy.information import conditional_information
from askwise.policy.lookahead import Lookahead
from askwise.predict import ConditionalPredictor, ImputedPredictor, wrap
from askwise.table.rows import EncodedRows
from askwise.table.schema import read_table

MADE = {
    "rl": DQN(n_episodes=64, hidden=16),
    "distilled": Distilled(n_states=300, hidden=(16,)),
}  # others by their names
POLICIES = ["greedy", "static", "random", "rl", "distilled"]
OWN_ROW_ONLY = ["greedy", "static", "rl", "distilled"]
PRICES = Prices({"a": 1.5, "b": 0.5, "panel": 3}, shared=[(["a", "b"], 0.5)])


def data(n=120):
    """The label is mostly the sign of a, then of b; c, d and e say little."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    y = (2 * X["a"] + X["b"] + 0.3 * rng.normal(size=n) > 0).astype(int)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def make():
    """A fitted selector of each kind, made once."""
    made = {}

    def fitted(policy, costs=None, groups=None):
        key = (policy, costs is not None, groups is not None)
        if key not in made:
            X, y = data()
            made[key] = DynamicFeatureSelector(
                LogisticRegression(),
                policy=MADE.get(policy, policy),
                costs=costs,
                groups=groups,
                calibration=None,
                random_state=0,
                progress=False,
            ).fit(X, y)
        return made[key]

    return fitted


def priced(make, policy):
    return make(policy, PRICES, {"panel": ["d", "e"]})


def half_known(owner, seed=0):
    """A state of 120 cases of which some features are known."""
    X, _ = data()
    rng = np.random.default_rng(seed)
    mask = rng.random((len(X), len(owner.features_))) < 0.4
    rows = EncodedRows(np.where(owner.schema_.expand(mask), X.to_numpy(), np.nan))
    left = rng.uniform(2, 9, len(X))
    return Acquisition(
        owner.schema_, owner.prices_, owner.beliefs_, rows, mask, np.ones_like(mask), left, risk_weight=0.1
    )


def blank(n, m, costs=None):
    """A state of n cases of m features, of which nothing is known."""
    X = np.random.default_rng(0).normal(size=(10, m))
    answer = wrap(lambda X: np.tile([0.5, 0.5], (len(X), 1)), [0, 1])
    predictor = ImputedPredictor(answer).fit(X, np.arange(10) % 2)
    prices = (Prices(costs) if not isinstance(costs, Prices) else costs).resolve(predictor.schema_.features)
    return nothing_known(predictor.schema_, prices, BeliefModel(predictor), EncodedRows(np.zeros((n, m))))


def test_scores_are_numbers_one_per_row_and_feature_and_never_for_what_is_had(make):
    for policy in POLICIES:
        owner = priced(make, policy)
        state = half_known(owner)
        before = [array.copy() for array in (state.rows.values, state.mask, state.available, state.left)]
        scores = owner.policy_.scores(state)
        assert isinstance(owner.policy_, Policy)
        assert scores.shape == state.mask.shape == (120, 4), policy
        assert not np.isnan(scores).any(), policy
        assert np.isneginf(scores[state.mask]).all(), policy
        assert np.isfinite(scores[~state.mask]).all(), policy
        after = (state.rows.values, state.mask, state.available, state.left)
        for array, original in zip(after, before, strict=True):
            assert_array_equal(array, original, err_msg=f"{policy} changed its state")


def test_same_seed_same_scores(make):
    X, y = data()
    for policy in POLICIES:
        owner = priced(make, policy)
        again = clone(owner).fit(X, y)
        scores = owner.policy_.scores(half_known(owner))
        assert_array_equal(scores, again.policy_.scores(half_known(again)), err_msg=policy)
        assert_array_equal(scores, owner.policy_.scores(half_known(owner)), err_msg=policy)
        assert_array_equal(owner.acquire(X[:20], budget=3).order, again.acquire(X[:20], budget=3).order, policy)


def test_a_row_has_its_own_scores_whoever_stands_beside_it(make):
    for policy in OWN_ROW_ONLY:
        owner = priced(make, policy)
        state = half_known(owner)
        together = owner.policy_.scores(state)
        order = np.random.default_rng(1).permutation(120)
        assert_allclose(owner.policy_.scores(state.take(order)), together[order], rtol=0, atol=1e-9, err_msg=policy)
        for r in range(5):
            alone = owner.policy_.scores(state.take([r]))
            assert_allclose(alone[0], together[r], rtol=0, atol=1e-9, err_msg=policy)


def test_a_row_buys_the_same_whoever_stands_beside_it(make):
    X, _ = data()
    for policy in OWN_ROW_ONLY:
        owner = priced(make, policy)
        together = owner.acquire(X[:30], budget=4)
        order = np.random.default_rng(1).permutation(30)
        shuffled = owner.acquire(X.iloc[order], budget=4)
        assert_array_equal(shuffled.order, together.order[order], err_msg=policy)
        assert_allclose(shuffled.proba, together.proba[order], rtol=0, atol=1e-9, err_msg=policy)


def test_everything_available_is_bought_once(make):
    X, _ = data()
    for policy in POLICIES:
        owner = priced(make, policy)
        run = owner.acquire(X[:20])
        assert_array_equal(np.sort(run.order, axis=1), np.tile(np.arange(4), (20, 1)), err_msg=policy)
        assert_allclose(run.spent_after(-1), owner.prices_.total(), err_msg=policy)


def test_policies_are_scikit_learn_estimators():
    """Parameters are stored as given, cloned and set; only `fit` checks and learns."""
    for policy in (DQN("paper", n_episodes=2, gamma=0.5), Greedy(risk_weight=0.3), Static(), Random(4)):
        again = clone(policy)
        assert again.get_params() == policy.get_params()
        assert vars(again) == vars(policy)
    assert Greedy().set_params(risk_weight=2.0).risk_weight == 2.0


def test_greedy_buys_what_matters_and_then_what_still_does(make):
    X, _ = data()
    run = make("greedy").acquire(X[:40], budget=2)
    assert (run.order[:, 0] == 0).all()
    assert (run.order[:, 1] == 1).mean() > 0.7


def test_greedy_divides_by_the_price_or_its_root_and_gains_are_per_price(make):
    """The same row at four times the price: by either rule a positive gain shrinks, and a negative one grows."""
    X, y = data()
    for rule, factor in (("per price", 4), ("root", 2)):
        cheap = make("greedy").with_policy(Greedy(price_rule=rule))
        dear = DynamicFeatureSelector(
            LogisticRegression(),
            policy=Greedy(price_rule=rule),
            costs=np.full(5, 4.0),
            calibration=None,
            random_state=0,
            progress=False,
        ).fit(X, y)
        unknown = ~half_known(cheap).mask
        one, two = cheap.policy_.scores(half_known(cheap))[unknown], dear.policy_.scores(half_known(dear))[unknown]
        assert_allclose(two, np.where(one > 0, one / factor, one * factor), atol=1e-12, err_msg=rule)
        known = X[:9].where(np.random.default_rng(1).random((9, 5)) < 0.4)
        gain = cheap.gains(known)  # prices are 1
        assert_allclose(dear.gains(known), np.where(gain > 0, gain / 4, gain * 4), atol=1e-12, err_msg=rule)
    with pytest.raises(InvalidInput, match=r"price_rule must be one of .*'root'.*got 'square'"):
        make("greedy").with_policy(Greedy(price_rule="square"))


def test_by_default_a_budget_turns_the_price_into_its_root():
    X, y = data()
    costs = np.array([4.0, 2.0, 3.0, 1.0, 5.0])
    owner = DynamicFeatureSelector(
        LogisticRegression(), costs=costs, policy="greedy", calibration=None, random_state=0, progress=False
    ).fit(X, y)
    known = X[:6].where(np.tile(np.arange(5) == 3, (6, 1)))
    for left, rule in ((None, "per price"), (9.0, "root")):
        state = owner._state(owner._encode(known), left, None)
        named = owner.with_policy(Greedy(price_rule=rule)).policy_
        scores = owner.policy_.scores(state)
        assert_allclose(scores, named.scores(state), err_msg=rule)
        assert_allclose(owner.policy_.gains(scores, state), owner.gains(known), err_msg=rule)


def test_greedy_weighs_the_price_now(make):
    """Once a is had, b is cheaper, and its score is what it would be at that price."""
    X, y = data()
    shared = Prices([1, 1, 1, 1, 1], shared=[(["a", "b"], 0.75)])
    owner = DynamicFeatureSelector(
        LogisticRegression(), policy="greedy", costs=shared, calibration=None, random_state=0, progress=False
    ).fit(X, y)
    only_a = X[:1].assign(b=np.nan, c=np.nan, d=np.nan, e=np.nan)
    assert_allclose(owner.gains(only_a)[0, 1], make("greedy").gains(only_a)[0, 1] * 4)
    assert_allclose(owner.ranking(only_a)[0, 1], make("greedy").ranking(only_a)[0, 1] * 4)


def test_a_risk_weight_of_the_policys_own_comes_before_that_of_the_case(make):
    owner = make("greedy")
    state = half_known(owner)
    inherited = owner.policy_.scores(state)
    state.risk_weight = 5.0
    assert not np.allclose(owner.policy_.scores(state), inherited)
    own = clone(owner.policy_).set_params(risk_weight=0.1)
    own.value_ = owner.policy_.value_
    assert_array_equal(own.scores(state), inherited)


def test_greedy_with_money_for_nothing(make):
    """A row that can buy nothing is not worked on, and does not disturb the others."""
    owner = make("greedy")
    state, rich = half_known(owner), half_known(owner)
    state.left, rich.left = np.where(np.arange(120) % 2, 0.0, 9.0), np.full(120, 9.0)
    choice, scores = state.choose(owner.policy_, state.buyable())
    assert (choice[1::2] == -1).all()
    assert np.isneginf(scores[1::2]).all()
    expected, all_scores = rich.choose(owner.policy_, rich.buyable())
    assert_array_equal(choice[::2], expected[::2])
    assert_allclose(scores[::2], all_scores[::2], rtol=0, atol=1e-9)


def test_two_copies_of_a_column_tie_and_the_first_is_taken():
    X, y = data()
    twice = pd.concat([X[["c"]], X[["a"]], X[["a"]].rename(columns={"a": "copy of a"})], axis=1)
    owner = DynamicFeatureSelector(LogisticRegression(), policy="greedy", random_state=0, progress=False).fit(twice, y)
    run = owner.acquire(twice[:20], budget=1)
    assert (run.order[:, 0] == 1).all()


def test_static_has_one_order_for_all_rows(make):
    X, _ = data()
    run = make("static").acquire(X[:20])
    assert len(np.unique(run.order, axis=0)) == 1
    assert run.order[0, :2].tolist() == [0, 1]


def test_static_scores_are_relevance_per_price_now():
    context: Any = SimpleNamespace(schema=SimpleNamespace(features=["a", "b", "c"]))  # all that a given ranking needs
    policy = Static(np.array([0.1, 0.6, 0.8])).fit(context)
    state = blank(2, 3, Prices([1, 2, 4], shared=[([0, 1], 1)]))
    state.mask = np.array([[False, False, False], [True, False, False]])
    scores = policy.scores(state)
    assert_allclose(scores[0], [0.1, 0.3, 0.2])
    assert_allclose(scores[1, 1:], [0.6, 0.2])
    assert np.isneginf(scores[1, 0])


def test_static_takes_a_ranking_that_is_given(make):
    X, _ = data()
    given = make("static").with_policy(Static(np.array([1.0, 2.0, 9.0, 4.0, 3.0])))
    assert given.acquire(X[:3], budget=3).order.tolist() == [[2, 3, 4]] * 3


def test_random_draws_are_keyed_by_the_number_of_the_case_and_not_by_what_is_known():
    policy, state = Random(7), blank(5, 6)
    scores = policy.scores(state)
    assert len(np.unique(scores.argmax(axis=1))) > 1
    # The first rows of a longer batch draw the same, and a part of a batch as it does in the whole.
    assert_array_equal(policy.scores(blank(9, 6))[:5], scores)
    assert_array_equal(policy.scores(blank(9, 6).take([4, 2])), scores[[4, 2]])
    state.mask = state.mask.copy()
    state.mask[:, 2] = True
    others = [0, 1, 3, 4, 5]
    assert_array_equal(policy.scores(state)[:, others], scores[:, others])
    assert not np.array_equal(Random(8).scores(blank(5, 6)), scores)


def test_random_orders_are_even():
    scores = Random(0).scores(blank(6000, 3))
    assert (np.abs(np.bincount(scores.argmax(axis=1)) / 6000 - 1 / 3) < 0.03).all()


def test_random_leaves_the_global_state_alone():
    before = joblib.hash(np.random.get_state())  # noqa: NPY002 - the very thing that must not be used
    Random(0).scores(blank(2, 3))
    assert joblib.hash(np.random.get_state()) == before  # noqa: NPY002


def test_static_ranks_each_feature_given_those_before_it():
    """A copy of the best feature tells most on its own, and nothing once that one is known."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    best = y + 0.4 * rng.normal(size=600)
    weak = y + 1.5 * rng.normal(size=600)
    X = pd.DataFrame({"weak": weak, "best": best, "copy": best + 0.01 * rng.normal(size=600)})
    X["letter"] = np.where(y == 1, rng.choice(["a", "b"], 600), rng.choice(["b", "c"], 600))
    schema, rows = read_table(X)
    equal = Prices().resolve(schema.features)
    context: Any = SimpleNamespace(rows=rows, y=y, schema=schema, prices=equal)
    order = np.argsort(-Static().fit(context).relevance_)
    assert order[0] in (1, 2)
    assert order[1] == 3
    assert order[2] == 0  # the copy is last
    dear = Prices([1, 50, 50, 1]).resolve(schema.features)
    assert np.argsort(-Static().fit_order(rows, y, schema, dear).relevance_)[0] == 3


def test_a_policy_must_say_how_it_scores():
    with pytest.raises(NotImplementedError):
        Policy().scores(blank(1, 1))


def test_a_category_that_training_lacks_passes_through_the_completions_of_another_predictor():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Ghent", "Lille"], 60), "age": rng.normal(size=60)})
    y = (table["age"] > 0).to_numpy().astype(int)
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(random_state=0)).fit(table, y)
    selector = DynamicFeatureSelector(model, adaptation="mean", epistemic=None, random_state=0).fit(table, y)
    new = pd.DataFrame({"city": ["Namur"], "age": [0.3]})
    assert selector.acquire(new).order.shape == (1, 2)


def test_each_budget_ends_as_it_would_alone(make):
    X, _ = data(60)
    budgets = [0.5, 1.0, 2.5, 4.0, 2.0, 9.0]
    for policy in POLICIES:
        owner = priced(make, policy)
        together = final_states(owner, X, budgets)
        for budget, end in zip(budgets, together, strict=True):
            for found, alone in zip(end, final_states(owner, X, [budget])[0], strict=True):
                assert_allclose(found, alone, atol=1e-12, err_msg=f"{policy}, {budget}")


def test_a_state_that_the_last_budget_met_is_not_scored_again(make):
    class Counting(Policy):
        asked = 0

        def scores(self, state):
            self.asked += len(state.rows)
            return owner.policy_.scores(state)

    owner, counting = priced(make, "static"), Counting()
    X, _ = data(60)
    budgets = [1.0, 2.0, 3.0, 4.0, 5.0]
    final_states(owner, X, budgets, counting)
    together, counting.asked = counting.asked, 0
    for budget in budgets:
        final_states(owner, X, [budget], counting)
    assert together <= 0.6 * counting.asked


def test_rows_that_could_afford_nothing_are_scored_when_they_can():
    class Thrifty(Policy):
        reads_budget = True

        def scores(self, state):
            return np.where(state.mask | (state.left < 1)[:, None], -np.inf, 1.0)

    once, state = OncePerState(Thrifty()), blank(2, 3)
    for left, expected in ((0.5, -np.inf), (2.0, 1.0)):
        state.left = np.full(2, left)
        assert_array_equal(once.scores(state), np.full((2, 3), expected))


def test_a_name_that_stands_for_nothing_is_refused():
    predictor = ConditionalPredictor(LogisticRegression()).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(InvalidInput, match=r"policy must be one of \('auto', 'greedy'.*got 'gredy'"):
        options.make_policy("gredy", predictor)
    with pytest.raises(InvalidInput, match=r"adaptation must be one of .*got 'outputs'"):
        options.make_predictor("outputs", None, predictor.schema_, 0, False)
    assert isinstance(options.make_policy("lookahead", predictor), Lookahead)


def test_conditional_information_is_that_of_the_counts_less_their_bias():
    rng = np.random.default_rng(0)
    levels, given = rng.integers(-1, 3, size=(400, 2)), rng.integers(-1, 2, size=400)
    y = np.where(levels[:, 0] == 2, 2, rng.integers(2, size=400))
    found = conditional_information(levels, y, given)
    for i in range(2):
        table = pd.DataFrame({"x": levels[:, i], "y": y, "z": given}).query("x >= 0 and z >= 0")

        def entropy(*names, table=table):
            counts = table.value_counts(list(names))
            return -(counts / len(table) * np.log(counts / len(table))).sum() + (len(counts) - 1) / (2 * len(table))

        expected = entropy("x", "z") + entropy("y", "z") - entropy("x", "y", "z") - entropy("z")
        assert found[i] == pytest.approx(max(expected, 0.0), abs=1e-12)
    assert found[0] > 0.3
