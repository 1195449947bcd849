"""The flowchart of a policy: exact where the policy is a tree, within its bounds, and true to what it counts."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.explain.cuts import PRICE_OF_A_BRANCH, group_categories, group_numbers, neat_cut, segments
from askwise.explain.growth import _merged
from askwise.explain.policy_chart import SEED
from askwise.explain.tree import Answer, Leaf, Question
from askwise.policy import Policy
from askwise.stopping import Confidence


class TreePolicy(Policy):
    """Asks a first, then b where a is below 5 and c elsewhere, then d."""

    def reads_members(self, risk_weight):
        return False

    def scores(self, state):
        a = state.rows.values[:, 0]
        later = np.where((a < 5)[:, None], [3.0, 2, 1, 0], [3.0, 1, 2, 0])
        return np.where(state.mask, -np.inf, later)


def rule(X):
    """The class by the tree that `TreePolicy` follows."""
    X = np.asarray(X, dtype=float)
    return np.where(X[:, 0] < 5, X[:, 1] >= 3, X[:, 2] >= 7).astype(int)


def proba(X):
    return np.eye(2)[rule(X)]


def whole_numbers(n=300, seed=0):
    values = np.random.default_rng(seed).integers(0, 10, size=(n, 4)).astype(float)
    return pd.DataFrame(values, columns=list("abcd"))


def fitted(model: Any = proba, policy: Any = None, X=None, **options):
    X = whole_numbers() if X is None else X
    y = options.pop("y", None)
    made = DynamicFeatureSelector(
        model,
        policy=TreePolicy() if policy is None else policy,
        epistemic=None,
        random_state=0,
        progress=False,
        **options,
    )
    return made.fit(X, rule(X) if y is None else y)


@pytest.fixture(scope="module")
def exact():
    return fitted().flowchart(whole_numbers(400, seed=1), max_depth=2)


def nodes(node):
    yield node
    if isinstance(node, Question):
        for _, child in node.branches:
            yield from nodes(child)


def test_the_chart_of_a_tree_is_that_tree(exact):
    assert exact.measured.policy == exact.measured.full == exact.measured.policy_full == 1.0
    tree = exact.to_dict()["tree"]
    assert tree["ask"] == "a"
    assert [(way["at_least"], way["below"], way["then"]["ask"]) for way in tree["answers"]] == [
        (None, 5.0, "b"),
        (5.0, None, "c"),
    ]
    for way, cut in zip(tree["answers"], (3.0, 7.0), strict=True):
        ends = [(then["at_least"], then["below"], then["then"]["decision"]) for then in way["then"]["answers"]]
        assert ends == [(None, cut, 0), (cut, None, 1)]
    X = whole_numbers(1000, seed=2)
    assert_array_equal(exact.decide(X), rule(X))
    assert exact.measured.price == exact.measured.policy_price == 2.0


def test_every_row_reaches_the_one_leaf_whose_answers_it_gives(exact):
    X = whole_numbers(500, seed=3)
    reached = exact.follow(X)
    assert set(reached) == set(range(len(exact.leaves)))

    def paths(node, so_far):
        if isinstance(node, Leaf):
            yield so_far
        else:
            for answer, child in node.branches:
                yield from paths(child, [*so_far, (node.column, answer)])

    on_path = np.array(
        [np.all([answer.holds(X.to_numpy()[:, j]) for j, answer in path], axis=0) for path in paths(exact.root, [])]
    )
    assert_array_equal(on_path.sum(axis=0), 1)
    assert_array_equal(on_path.argmax(axis=0), reached)


def test_counts_add_up_and_probabilities_sum_to_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 6))
    X[rng.random(X.shape) < 0.15] = np.nan
    y = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) > 0
    model = LogisticRegression().fit(np.nan_to_num(X), y)
    selector = fitted(lambda rows: model.predict_proba(rows), "greedy", X, y=y.astype(int))
    chart = selector.flowchart(X)
    assert chart.measured.n_rows + chart.n_grown == 240
    assert len(chart.leaves) > 2
    assert sum(leaf.n_rows for leaf in chart.leaves) == chart.n_grown
    for node in nodes(chart.root):
        if isinstance(node, Question):
            assert sum(child.n_rows for _, child in node.branches) == node.n_rows
            assert len(node.branches) >= 2
        else:
            assert_allclose(sum(node.proba), 1.0)
            assert node.decision == int(np.argmax(node.proba))
            assert 0 <= node.price <= 4


def test_what_is_counted_and_measured_can_be_computed_from_the_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(360, 6))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    selector = fitted(DecisionTreeClassifier(max_depth=6, random_state=0), "greedy", X[:200], y=y[:200])
    X[rng.random(X.shape) < 0.02] = np.nan
    chart = selector.flowchart(X, max_depth=3)
    order = np.random.default_rng(SEED).permutation(len(X))
    held, grown = np.split(order, [len(X) - chart.n_grown])
    counted = np.bincount(chart.follow(X[grown]), minlength=len(chart.leaves))
    assert_array_equal(counted, [leaf.n_rows for leaf in chart.leaves])
    run = selector.acquire(X[held], budget=3)
    assert_allclose(chart.measured.policy, (run.predict() == chart.decide(X[held])).mean())
    assert_allclose(chart.measured.policy_price, run.spent_after(-1).mean())
    full = selector.classes_[selector.predictor_.predict_full(X[held]).argmax(axis=1)]
    assert_allclose(chart.measured.full, (full == chart.decide(X[held])).mean())
    assert chart.measured.policy < 1.0


def test_the_depth_is_bounded_and_the_policy_stops_with_the_chart():
    X = whole_numbers(400, seed=1)
    selector = fitted()
    for max_depth in (1, 2, 3):
        chart = selector.flowchart(X, max_depth)
        assert chart.depth <= max_depth
        assert chart.measured.policy_price == max_depth
    assert selector.flowchart(X, 1).depth == 1


def test_questions_that_change_nothing_are_not_asked():
    chart = fitted().flowchart(whole_numbers(400, seed=1), max_depth=4)
    assert {node.feature for node in nodes(chart.root) if isinstance(node, Question)} == {0, 1, 2}  # d never matters
    assert chart.measured.policy == 1.0
    assert chart.measured.price == 2.0
    assert chart.measured.policy_price == 4.0
    same = fitted(lambda X: np.tile([0.9, 0.1], (len(X), 1))).flowchart(whole_numbers())
    assert same.leaves == [same.root]
    assert same.follow(whole_numbers()).tolist() == [0] * 300
    assert same.measured.price == 0.0
    assert "0 or 1?" in same.to_svg()


def test_costs_count_a_shared_set_up_once():
    prices = Prices({"a": 5.0, "b": 4.0, "c": 3.0}, shared=[(["a", "b"], 2.0)])
    X = whole_numbers(400, seed=1)
    chart = fitted(costs=prices).flowchart(X, max_depth=2)
    assert isinstance(chart.root, Question)
    assert chart.root.price == 5.0
    assert [child.price for _, child in chart.root.branches if isinstance(child, Question)] == [2.0, 3.0]
    assert [leaf.price for leaf in chart.leaves] == [7.0, 7.0, 8.0, 8.0]
    low = (X["a"] < 5).mean()
    assert abs(chart.measured.price - (7 * low + 8 * (1 - low))) < 0.1
    assert_allclose(chart.measured.price, chart.measured.policy_price)
    assert chart.measured.full_price == 5 + 4 + 3 + 1 - 2


def test_the_budget_of_the_selector_binds_every_path():
    X = whole_numbers(400, seed=1)
    X.loc[:150, "a"] = np.nan  # these rows have money left for what the others cannot pay
    selector = fitted(costs={"a": 3.0, "b": 2.0, "c": 4.0}, budget=5.0)
    chart = selector.flowchart(X)
    complete = whole_numbers(300, seed=5)
    for rows in (X, complete):
        _, asked = chart.follow_encoded(chart.schema.encode(rows))
        assert selector.prices_.total(asked).max() <= 5.0
    assert chart.measured.policy_price <= 5.0


def test_free_features_come_first_and_cost_nothing():
    chart = fitted(costs={"a": 0.0, "d": 0.0}).flowchart(whole_numbers(400, seed=1), max_depth=2)
    assert isinstance(chart.root, Question)
    assert chart.root.price == 0.0
    assert {leaf.price for leaf in chart.leaves} == {1.0}
    assert chart.measured.policy == 1.0
    assert chart.measured.policy_price == 2.0  # b and c, beside what is free
    assert "a? (free)" in chart.to_text()


def test_a_stopping_rule_ends_the_policy_and_the_chart():
    X = np.random.default_rng(0).normal(size=(400, 4))
    y = (2 * X[:, 0] + X[:, 1] > 0).astype(int)
    selector = fitted(LogisticRegression(), "greedy", X[:200], y=y[:200])
    sure, unstopped = selector.flowchart(X[200:], stop=Confidence(0.6)), selector.flowchart(X[200:])
    assert sure.measured.policy_price < unstopped.measured.policy_price == 4.0
    assert sure.measured.price <= sure.measured.policy_price
    never = selector.flowchart(X[200:], stop=Confidence(0.01))
    assert isinstance(never.root, Leaf)
    assert never.measured.policy_price == 0


def test_unavailable_answers_have_a_branch_or_follow_the_usual_one(exact):
    assert isinstance(exact.root, Question)
    row = pd.DataFrame([[np.nan, 9.0, 0.0, 0.0]], columns=list("abcd"))
    usual = exact.root.branches[exact.root.usual][1]
    assert usual.n_rows == max(child.n_rows for _, child in exact.root.branches)
    leaf = exact.leaves[exact.follow(row)[0]]
    assert leaf in set(nodes(usual))
    _, asked = exact.follow_encoded(exact.schema.encode(row))
    assert not asked[0, 0]  # nothing is paid for what is unavailable
    X = whole_numbers(400, seed=1)
    X.loc[X.index % 3 == 0, "a"] = np.nan
    chart = fitted().flowchart(X, max_depth=3)
    answers = [answer for answer, _ in chart.root.branches]
    assert [answer.unavailable for answer in answers] == [False, False, True]
    without = chart.root.branches[-1][1]
    assert isinstance(without, Question)
    assert chart.schema.features[without.feature] != "a"
    gone = whole_numbers(50).assign(a=np.nan)
    assert set(np.array(chart.leaves, dtype=object)[chart.follow(gone)]) <= set(nodes(without))


def test_categories_are_grouped_by_what_comes_next():
    rng = np.random.default_rng(0)
    kinds = np.array(["red", "green", "blue", "gray"])
    X = pd.DataFrame({"kind": rng.choice(kinds, 400), "size": rng.normal(size=400)})

    def answer(rows):
        return np.eye(2)[rows["kind"].isin(["red", "blue"]).to_numpy().astype(int)]

    class KindFirst(Policy):
        def scores(self, state):
            return np.where(state.mask, -np.inf, [2.0, 1.0])

    y = answer(X).argmax(axis=1)
    chart = fitted(answer, KindFirst(), X[:150], y=y[:150]).flowchart(X[150:])
    tree = chart.to_dict()["tree"]
    assert sorted(sorted(way["values"]) for way in tree["answers"]) == [["blue", "red"], ["gray", "green"]]
    assert chart.measured.policy == 1.0
    new = pd.DataFrame({"kind": ["mauve"], "size": [0.0]})  # never seen: the usual branch
    assert chart.leaves[chart.follow(new)[0]] is chart.root.branches[chart.root.usual][1]


def test_a_group_branches_on_its_most_telling_column():
    X = whole_numbers(400, seed=1)
    selector = fitted(
        lambda rows: np.eye(2)[(np.asarray(rows)[:, 2] >= 4).astype(int)],
        "greedy",
        X[:200],
        groups={"panel": ["b", "c"]},
        y=(X["c"][:200] >= 4).astype(int),
    )
    chart = selector.flowchart(X[200:], max_depth=2)
    assert isinstance(chart.root, Question)
    assert chart.schema.features[chart.root.feature] == "panel"
    assert chart.schema.columns[chart.root.column].name == "c"
    assert chart.measured.policy == 1.0
    assert "panel: c?" in chart.to_text()
    _, asked = chart.follow_encoded(chart.schema.encode(X))
    assert asked.shape == (400, 3)


def test_the_other_columns_of_a_group_cost_nothing_more():
    X = whole_numbers(600, seed=1)

    def both(rows):
        rows = np.asarray(rows, dtype=float)
        return np.eye(2)[((rows[:, 1] >= 4) & (rows[:, 2] >= 4)).astype(int)]

    y = both(X).argmax(axis=1)
    selector = fitted(both, "greedy", X[:200], groups={"panel": ["b", "c"]}, costs={"panel": 3.0}, y=y[:200])
    chart = selector.flowchart(X[200:], max_depth=3)
    assert {node.column for node in nodes(chart.root) if isinstance(node, Question)} == {1, 2}
    first, *later = [node.price for node in nodes(chart.root) if isinstance(node, Question)]
    assert first == 3.0
    assert set(later) == {0.0}
    assert {leaf.price for leaf in chart.leaves} == {3.0}
    assert chart.measured.policy == 1.0
    assert "(no extra price)" in chart.to_text()


def test_leaves_that_decide_alike_are_one_branch():
    def leaf(decision, n):
        return Leaf(decision, (1.0 - decision, float(decision)), n, float(n))

    ranges = [(Answer(None, 1.0), leaf(0, 1)), (Answer(1.0, 2.0), leaf(0, 3)), (Answer(2.0, None), leaf(1, 2))]
    merged, usual = _merged(ranges, 1)
    assert merged == [(Answer(None, 2.0), Leaf(0, (1.0, 0.0), 4, 2.5)), ranges[2]]
    assert usual == 0
    apart = [(Answer(None, 1.0), leaf(0, 1)), (Answer(1.0, 2.0), leaf(1, 3)), (Answer(2.0, None), leaf(0, 2))]
    assert _merged(apart, 2) == (apart, 2)
    kinds = [(Answer(codes=(2,)), leaf(0, 1)), (Answer(codes=(1,)), leaf(1, 3)), (Answer(codes=(0,)), leaf(0, 1))]
    assert [answer.codes for answer, _ in _merged(kinds, 2)[0]] == [(0, 2), (1,)]
    assert _merged(kinds, 2)[1] == 0
    gone = (Answer(unavailable=True), leaf(0, 2))
    assert len(_merged([ranges[0], gone], 0)[0]) == 1  # nothing depends on it
    assert len(_merged([ranges[0], ranges[2], gone], 0)[0]) == 3


def test_the_dict_survives_json(exact):
    assert json.loads(json.dumps(exact.to_dict(), allow_nan=False)) == exact.to_dict()
    assert exact.to_dict()["held_out"]["agreement_with_policy"] == 1.0


def test_bad_input_is_refused():
    X = whole_numbers()
    selector = fitted(DecisionTreeClassifier(random_state=0))
    for max_depth in (0, -1, 2.5, True, "4", None):
        with pytest.raises(InvalidInput, match="max_depth must be a whole number of at least 1"):
            selector.flowchart(X, max_depth=max_depth)
    with pytest.raises(InvalidInput, match="no rows"):
        selector.flowchart(X[:0])
    with pytest.raises(InvalidInput, match=r"at least 10 rows .* X has 9"):
        selector.flowchart(X[:9])
    with pytest.raises(InvalidInput, match="feature names"):
        selector.flowchart(X.rename(columns={"a": "z"}))
    with pytest.raises(InvalidInput, match="stop must be"):
        selector.flowchart(X, stop=0.95)
    images = fitted()
    images.schema_.tabular = False
    with pytest.raises(InvalidInput, match="needs a table: a question about an image patch has no values"):
        images.flowchart(X)
    with pytest.raises(InvalidInput, match="columns of fit"):
        selector.flowchart(X).follow(X[["a", "b"]])


def test_cuts_are_the_best_of_all_cuts():
    rng = np.random.default_rng(0)

    def log_likelihood(label):
        counts = np.unique(label, return_counts=True)[1]
        return float((counts * np.log(counts / counts.sum())).sum())

    for _ in range(20):
        values, label = rng.integers(0, 12, 60).astype(float), rng.integers(0, 3, 60)
        label = np.where(values > 6, 0, label)
        found = group_numbers(values, [label], 8)
        best = 0.0
        for low in range(13):
            for high in range(low, 13):
                parts = [values < low, (values >= low) & (values < high), values >= high]
                parts = [part for part in parts if part.any()]
                if all(part.sum() >= 8 for part in parts):
                    gain = sum(log_likelihood(label[part]) for part in parts) - log_likelihood(label)
                    best = max(best, gain - (len(parts) - 1) * PRICE_OF_A_BRANCH)
        assert_allclose(found.gain, best, atol=1e-9)


def test_cuts_keep_enough_rows_on_each_side_and_are_neat():
    values = np.r_[np.zeros(3), np.ones(40)]
    assert group_numbers(values, [values], fewest=5).cuts == []
    assert group_numbers(values, [values], fewest=3).cuts == [1.0]
    assert group_numbers(np.full(30, 2.0), [np.arange(30) % 2], 5).cuts == []
    assert group_categories(np.zeros(30), [np.arange(30) % 2], 5).n_groups == 1
    many = np.random.default_rng(0).normal(size=5000)
    (cut,) = group_numbers(many, [many > 0.5], 5).cuts
    assert_array_equal(many >= cut, many > 0.5)  # exact, though there are many values
    noisy = (many > 0.5) ^ (np.random.default_rng(1).random(5000) < 0.2)
    assert min(abs(cut - 0.5) for cut in group_numbers(many, [noisy], 5).cuts) < 0.1
    assert segments([np.array([[2.0, 0.0], [0.0, 2.0]])], 5) == (0.0, [])
    for below, above in ((0.0, 1.0), (1.0, 4.0), (-3.0, -2.0), (0.1337, 0.1352), (1e-12, 3e-12), (1e9, 1e9 + 1)):
        assert below < neat_cut(below, above) <= above
    assert neat_cut(3.0, 4.0) == 4.0
    assert str(neat_cut(-0.03, 0.01)) == "0.0"
    assert str(neat_cut(0.1337, 0.1352)) == "0.134"
