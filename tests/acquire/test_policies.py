"""What every policy promises, and what each is for."""

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector, Prices
from askwise.acquire import DQN, Policy, Random, Static
from askwise.acquire.policies import CachedPolicy, mutual_information_ranking
from askwise.schema import Schema

MADE = {"rl": DQN(n_episodes=64, hidden=16)}  # others by their names
POLICIES = ["greedy", "static", "random", "rl"]
OWN_ROW_ONLY = ["greedy", "static", "rl"]
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
                random_state=0,
                progress=False,
            ).fit(X, y)
        return made[key]

    return fitted


def priced(make, policy):
    return make(policy, PRICES, {"panel": ["d", "e"]})


def half_known(owner, seed=0):
    """Rows of which some features are known: values with NaN, masks per feature, money."""
    X, _ = data()
    rng = np.random.default_rng(seed)
    mask = rng.random((len(X), len(owner.features_))) < 0.4
    values = np.where(owner.schema_.expand(mask), X.to_numpy(), np.nan)
    return values, mask, rng.uniform(2, 9, len(X))


@pytest.mark.parametrize("policy", POLICIES)
def test_scores_are_numbers_one_per_row_and_feature_and_never_for_what_is_had(make, policy):
    owner = priced(make, policy)
    values, mask, left = half_known(owner)
    scores = owner.policy_.scores(values, mask, left)
    assert isinstance(owner.policy_, Policy)
    assert scores.shape == mask.shape == (120, 4)
    assert not np.isnan(scores).any()
    assert np.isneginf(scores[mask]).all()
    assert np.isfinite(scores[~mask]).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_changed(make, policy):
    owner = priced(make, policy)
    given = half_known(owner)
    before = [array.copy() for array in given]
    owner.policy_.scores(*given)
    for array, original in zip(given, before, strict=True):
        assert_array_equal(array, original)


@pytest.mark.parametrize("policy", POLICIES)
def test_same_seed_same_scores(make, policy):
    X, y = data()
    owner = priced(make, policy)
    again = DynamicFeatureSelector(
        LogisticRegression(),
        policy=MADE.get(policy, policy),
        costs=PRICES,
        groups={"panel": ["d", "e"]},
        random_state=0,
        progress=False,
    ).fit(X, y)
    given = half_known(owner)
    assert_array_equal(owner.policy_.scores(*given), again.policy_.scores(*given))
    assert_array_equal(owner.policy_.scores(*given), owner.policy_.scores(*given))
    assert_array_equal(owner.acquire(X[:20], budget=3).order, again.acquire(X[:20], budget=3).order)


@pytest.mark.parametrize("policy", OWN_ROW_ONLY)
def test_a_row_has_its_own_scores_whoever_stands_beside_it(make, policy):
    owner = priced(make, policy)
    values, mask, left = half_known(owner)
    together = owner.policy_.scores(values, mask, left)
    order = np.random.default_rng(1).permutation(len(values))
    assert_allclose(owner.policy_.scores(values[order], mask[order], left[order]), together[order], rtol=0, atol=1e-9)
    for r in range(5):
        alone = owner.policy_.scores(values[[r]], mask[[r]], left[[r]])
        assert_allclose(alone[0], together[r], rtol=0, atol=1e-9)


@pytest.mark.parametrize("policy", OWN_ROW_ONLY)
def test_a_row_buys_the_same_whoever_stands_beside_it(make, policy):
    owner = priced(make, policy)
    X, _ = data()
    together = owner.acquire(X[:30], budget=4)
    order = np.random.default_rng(1).permutation(30)
    shuffled = owner.acquire(X.iloc[order], budget=4)
    assert_array_equal(shuffled.order, together.order[order])
    assert_allclose(shuffled.proba, together.proba[order], rtol=0, atol=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_everything_available_is_bought_once(make, policy):
    X, _ = data()
    owner = priced(make, policy)
    run = owner.acquire(X[:20])
    assert_array_equal(np.sort(run.order, axis=1), np.tile(np.arange(4), (20, 1)))
    assert_allclose(run.spent_after(-1), owner.prices_.total())


def test_greedy_buys_what_matters_and_then_what_still_does(make):
    X, _ = data()
    run = make("greedy").acquire(X[:40], budget=2)
    assert (run.order[:, 0] == 0).all()
    assert (run.order[:, 1] == 1).mean() > 0.7


def test_greedy_gains_are_per_cost(make):
    """The same row at twice the price: half the positive score, twice the negative one."""
    X, y = data()
    cheap = make("greedy")
    dear = DynamicFeatureSelector(
        LogisticRegression(), policy="greedy", costs=np.full(5, 2.0), random_state=0, progress=False
    ).fit(X, y)
    values, mask, _ = half_known(cheap)
    rich = np.full(len(values), np.inf)
    one, two = cheap.policy_.scores(values, mask, rich)[~mask], dear.policy_.scores(values, mask, rich)[~mask]
    assert_allclose(two, np.where(one > 0, one / 2, one * 2), atol=1e-12)


def test_greedy_weighs_the_price_now(make):
    """Once a is had, b is cheaper, and its score is what it would be at that price."""
    X, y = data()
    shared = Prices([1, 1, 1, 1, 1], shared=[(["a", "b"], 0.75)])
    owner = DynamicFeatureSelector(
        LogisticRegression(), policy="greedy", costs=shared, random_state=0, progress=False
    ).fit(X, y)
    plain = make("greedy")
    values = np.full((1, 5), np.nan)
    values[0, 0] = 0.1
    mask = np.array([[True, False, False, False, False]])
    rich = np.array([np.inf])
    assert_allclose(owner.policy_.scores(values, mask, rich)[0, 1], plain.policy_.scores(values, mask, rich)[0, 1] * 4)


def test_greedy_with_money_for_nothing(make):
    """A row that can buy nothing is not worked on, and does not disturb the others."""
    owner = make("greedy")
    values, mask, _ = half_known(owner)
    left = np.where(np.arange(len(values)) % 2, 0.0, 9.0)
    scores = owner.policy_.scores(values, mask, left)
    rich = owner.policy_.scores(values, mask, np.full(len(values), 9.0))
    assert_allclose(scores[::2], rich[::2], rtol=0, atol=1e-9)
    assert not np.isnan(scores).any()


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
    prices = Prices([1, 2, 4], shared=[([0, 1], 1)]).resolve(["a", "b", "c"])
    policy = Static(np.array([0.1, 0.6, 0.8]), prices)
    mask = np.array([[False, False, False], [True, False, False]])
    scores = policy.scores(np.full((2, 3), np.nan), mask, np.full(2, np.inf))
    assert_allclose(scores[0], [0.1, 0.3, 0.2])
    assert_allclose(scores[1, 1:], [0.6, 0.2])
    assert np.isneginf(scores[1, 0])


def test_random_draws_are_keyed_by_the_row_and_do_not_depend_on_what_is_known():
    policy = Random(7)
    nothing = np.zeros((5, 6), bool)
    values = np.full((5, 6), np.nan)
    scores = policy.scores(values, nothing, np.full(5, np.inf))
    assert len(np.unique(scores.argmax(axis=1))) > 1
    # The first rows of a longer batch draw the same.
    longer = policy.scores(np.full((9, 6), np.nan), np.zeros((9, 6), bool), np.full(9, np.inf))
    assert_array_equal(longer[:5], scores)
    some = nothing.copy()
    some[:, 2] = True
    assert_array_equal(policy.scores(values, some, np.full(5, 1.0))[:, [0, 1, 3, 4, 5]], scores[:, [0, 1, 3, 4, 5]])
    assert not np.array_equal(Random(8).scores(values, nothing, np.full(5, np.inf)), scores)


def test_random_orders_are_even():
    scores = Random(0).scores(np.full((6000, 3), np.nan), np.zeros((6000, 3), bool), np.full(6000, np.inf))
    assert (np.abs(np.bincount(scores.argmax(axis=1)) / 6000 - 1 / 3) < 0.03).all()


def test_random_leaves_the_global_state_alone():
    before = joblib.hash(np.random.get_state())  # noqa: NPY002 - the very thing that must not be used
    Random(0).scores(np.full((2, 3), np.nan), np.zeros((2, 3), bool), np.full(2, np.inf))
    assert joblib.hash(np.random.get_state()) == before  # noqa: NPY002


def test_mutual_information_ranks_numbers_categories_and_groups():
    rng = np.random.default_rng(0)
    n = 400
    y = rng.integers(0, 2, n)
    table = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "tells": y + 0.3 * rng.normal(size=n),
            "letter": np.where(y == 1, rng.choice(["a", "b"], n), rng.choice(["b", "c"], n)),
            "more noise": rng.normal(size=n),
        }
    )
    table.loc[::5, "tells"] = np.nan
    schema = Schema.read(table)
    relevance = mutual_information_ranking(schema.encode(table), y, schema, 0)
    assert relevance.argsort()[::-1][:2].tolist() == [1, 2]
    assert_allclose(relevance[2], np.log(2) / 2, atol=0.06)  # a and c tell all, b nothing
    assert relevance[[0, 3]].max() < 0.1
    grouped = schema.grouped({"both": ["noise", "tells"]})
    assert mutual_information_ranking(schema.encode(table), y, grouped, 0)[0] == relevance[1]


def test_a_policy_must_say_how_it_scores():
    with pytest.raises(NotImplementedError):
        Policy().scores(np.zeros((1, 1)), np.zeros((1, 1), bool), np.zeros(1))


def test_a_category_first_seen_in_a_batch_is_known_to_the_completions_of_another_predictor():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Ghent", "Lille"], 60), "age": rng.normal(size=60)})
    y = (table["age"] > 0).to_numpy().astype(int)
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(random_state=0)).fit(table, y)
    selector = DynamicFeatureSelector(model, adaptation="mean", epistemic=None, random_state=0).fit(table, y)
    new = pd.DataFrame({"city": ["Namur"], "age": [0.3]})
    selector.predict_proba(new)  # the selector learns the code of a new category
    assert selector.acquire(new).order.shape == (1, 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_each_budget_ends_as_it_would_alone(make, policy):
    owner = priced(make, policy)
    X, _ = data(60)
    budgets = [0.5, 1.0, 2.5, 4.0, 2.0, 9.0]
    together = owner.final_states(X, budgets)
    for budget, end in zip(budgets, together, strict=True):
        for found, alone in zip(end, owner.final_states(X, [budget])[0], strict=True):
            assert_allclose(found, alone, atol=1e-12)


def test_a_state_that_the_last_budget_met_is_not_scored_again(make):
    class Counting(Policy):
        asked = 0

        def scores(self, X, mask, left):
            self.asked += len(X)
            return owner.policy_.scores(X, mask, left)

    owner, counting = priced(make, "static"), Counting()
    X, _ = data(60)
    budgets = [1.0, 2.0, 3.0, 4.0, 5.0]
    owner.final_states(X, budgets, counting)
    together, counting.asked = counting.asked, 0
    for budget in budgets:
        owner.final_states(X, [budget], counting)
    assert together <= 0.6 * counting.asked


def test_rows_that_could_afford_nothing_are_scored_when_they_can():
    class Thrifty(Policy):
        def scores(self, X, mask, left):
            return np.where(mask | (left < 1)[:, None], -np.inf, 1.0)

    cached, mask = CachedPolicy(Thrifty()), np.zeros((2, 3), dtype=bool)
    for left, expected in ((0.5, -np.inf), (2.0, 1.0)):
        cached.start()
        assert_array_equal(cached.scores(np.zeros((2, 3)), mask, np.full(2, left)), np.full((2, 3), expected))
