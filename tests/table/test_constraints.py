"""Rules of the house: what they forbid, what contradicts, and that whatever acquires obeys them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from tests.house_rules import broken, drawn_rules

import askwise
from askwise import DynamicFeatureSelector
from askwise.constraints import Rule, at_most, excludes, first, mandatory, only_if, pilot, read_rules, requires
from askwise.errors import InvalidInput
from askwise.policy import Random
from askwise.stopping import Confidence

NAMES = list("abcdef")
COSTS = {"a": 2.0, "b": 1.0, "c": 3.0, "d": 1.0, "e": 0.0, "f": 2.0}
POLICIES = ["greedy", "planned", "lookahead", "static", "random"]


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=NAMES)
    y = np.where(X["a"] + 0.8 * X["b"] - 0.6 * X["c"] + 0.4 * rng.normal(size=n) > 0, "ill", "well")
    return X, y


MODEL = LogisticRegression().fit(*data())


def selector(constraints=None, policy="greedy", **options):
    given = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False, "costs": COSTS, **options}
    return DynamicFeatureSelector(MODEL, constraints=constraints, policy=policy, **given).fit(*data())


def orders(run):
    return [[NAMES[i] for i in row if i >= 0] for row in run.order]


def test_each_rule_does_what_it_says():
    X = data(30, 1)[0]
    for run in orders(selector([requires("a", "f")]).acquire(X)):
        assert run.index("f") < run.index("a")
    for run in orders(selector([excludes("a", "b")]).acquire(X)):
        assert len({"a", "b"} & set(run)) == 1
    for run in orders(selector([first("d")]).acquire(X, budget=3)):
        assert run[0] == "d"
    for run in orders(selector([at_most(2, of=["a", "b", "c"])]).acquire(X)):
        assert len({"a", "b", "c"} & set(run)) == 2
    for run, b in zip(orders(selector([only_if("a", "b", "> 0")]).acquire(X)), X["b"], strict=True):
        assert ("a" in run) == (b > 0)
    for run in orders(selector([mandatory("f")]).acquire(X, stop=Confidence(0.5))):
        assert run == ["f", "e"]  # Confidence(0.5) is met at once: mandatory, then what is free
    short = selector([first("c"), mandatory("a")]).acquire(X, budget=2.5)
    assert all(run[0] == "a" for run in orders(short))  # c is dearer than the budget and holds up nothing


def test_conditions_on_categories_groups_and_values():
    X, y = data()
    X = X.assign(kind=np.where(X["d"] > 0, "up", "down"))[["a", "b", "c", "d", "kind"]]

    def model(table):
        p = 1 / (1 + np.exp(-(table["a"].to_numpy() + table["b"].to_numpy())))
        return np.column_stack([p, 1 - p])

    quick: dict[str, Any] = {
        "epistemic": None,
        "calibration": None,
        "random_state": 0,
        "progress": False,
        "adaptation": "mean",
    }
    rules = [only_if("c", "kind", ["up"]), only_if("d", "both", {"a": "> 0", "b": "< 1"})]
    wrapped = askwise.wrap(model, classes=["ill", "well"])
    made = DynamicFeatureSelector(wrapped, groups={"both": ["a", "b"]}, constraints=rules, policy="random", **quick)
    run = made.fit(X, y).acquire(X[:40])
    for row, bought in zip(X[:40].itertuples(), run.order, strict=True):
        asked = {made.features_[i] for i in bought if i >= 0}
        assert ("c" in asked) == (row.kind == "up")
        assert ("d" in asked) == (row.a > 0 and row.b < 1)
    wrong = {
        "have no order": only_if("c", "kind", "> up"),
        "must be one of": only_if("c", "kind", "sideways"),
        "as a dict": only_if("d", "both", "> 0"),
        "must be a number": only_if("d", "c", "> high"),
    }
    for said, rule in wrong.items():
        with pytest.raises(InvalidInput, match=said):
            clone(made).set_params(constraints=[rule]).fit(X, y)


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ([requires("a", "b"), requires("b", "a")], "requires('b', 'a')"),
        ([requires("a", "b"), only_if("b", "c", "> 0"), requires("c", "a")], "before itself"),
        ([requires("a", "b"), excludes("a", "b")], "excludes('a', 'b')"),
        ([requires("a", "b"), requires("b", "c"), excludes("a", "c")], "'a' could never be asked"),
        ([requires("a", "b"), at_most(1, of=["a", "b"])], "at_most(1, of=['a', 'b'])"),
        ([first("a"), requires("a", "b")], "'a' is to come first, and needs 'b'"),
        ([mandatory("a"), mandatory("b"), excludes("a", "b")], "excludes('a', 'b')"),
        ([mandatory("a"), first("b"), excludes("a", "b")], "first('b')"),
        ([mandatory("a"), mandatory("b"), at_most(1, of=["a", "b", "c"])], "mandatory('b')"),
        ([only_if("a", "b", "> 3"), only_if("a", "b", "< 2")], "only_if('a', 'b', '> 3')"),
        ([only_if("a", "b", "> 3"), requires("c", "a"), only_if("c", "b", [1, 2])], "could never be asked"),
        ([requires("a", "zz")], "there is no feature 'zz'"),
        ([pilot("a")], "a feature that there is already"),
        ("first", "must be a list of rules"),
        (["a before b"], "it holds 'a before b'"),
    ],
)
def test_contradictions_are_refused_by_name(rules, named):
    with pytest.raises(InvalidInput) as refused:
        selector(rules)
    assert named in str(refused.value)


def test_what_a_rule_must_be():
    wrong = [
        lambda: requires("a", "a"),
        lambda: at_most(0, of=["a", "b"]),
        lambda: at_most(1, of="ab"),
        lambda: at_most(1, of=["a", "a"]),
        lambda: only_if("a", "b", []),
        lambda: pilot("p", share=0),
        lambda: pilot("p", after=-1),
        lambda: pilot(""),
    ]
    for make in wrong:
        with pytest.raises(InvalidInput):
            make()


def test_drawn_rules_are_obeyed_by_every_policy_or_refused():
    """`benchmarks/constraints.py` draws 200 sets; contradictory ones are those after which something is never asked."""
    X, rng = data(25, 2)[0], np.random.default_rng(0)
    X = X.mask(rng.random(X.shape) < 0.1)
    refused: list[str] = []
    obeyed = 0
    for k in range(50):
        rules, budget = drawn_rules(NAMES, rng), [None, 4.0, 6.0][k % 3]
        try:
            made = selector(rules, POLICIES[k % len(POLICIES)])
        except InvalidInput as error:
            refused.append(str(error))
            continue
        at_start = rng.random(X.shape) < 0.1
        run = made.acquire(X, budget, known=at_start, stop=Confidence(0.8) if k % 2 else None)
        for r, order in enumerate(orders(run)):
            truth = X.iloc[r].to_dict()
            known = {name for name in NAMES if at_start[r, NAMES.index(name)] and truth[name] == truth[name]}
            left = np.inf if budget is None else budget
            assert not broken(rules, order, truth, known, COSTS, left), (rules, order)
        obeyed += 1
    assert len(refused) > 2
    assert all("contradict each other" in said for said in refused)
    assert obeyed > 30


@pytest.mark.parametrize("policy", POLICIES)
def test_rules_that_do_not_bind_change_no_choice(policy):
    X = data(40, 3)[0]
    plain = selector(policy=policy).acquire(X, budget=5)
    loose = [at_most(6, of=NAMES), only_if("c", "e", "> -99"), requires("f", "e")]  # e is free, and comes first
    ruled = selector(loose, policy).acquire(X, budget=5)
    np.testing.assert_array_equal(plain.order, ruled.order)
    np.testing.assert_array_equal(plain.proba, ruled.proba)


def test_sets_sessions_and_suggestions_obey():
    made = selector([excludes("a", "b"), at_most(2, of=["a", "c", "d", "f"]), mandatory("c")])
    X = pd.DataFrame(np.nan, index=range(3), columns=NAMES)
    assert made.suggest(X, as_names=True).tolist() == ["c"] * 3
    assert made.start().suggest_set(100).features == ["c"]
    after = made.start({"c": 0.1})
    chosen = set(after.suggest_set(100).features)
    assert not {"a", "b"} <= chosen
    assert len(chosen & {"a", "d", "f"}) <= 1
    session = made.start(stop=Confidence(0.5))
    assert session.suggest().feature == "c"
    assert [name for name, _, _ in session.suggest().ranking] == ["c"]
    session.answer("c", 3.0)
    assert session.suggest().feature == "e"  # free, and nothing mandatory is left
    session.answer("e", 0.0)
    assert session.suggest() is None
    session = selector([requires("a", "b")]).start(dict.fromkeys("cdef", 0.0))
    session.unavailable("b")
    assert session.suggest() is None
    assert "rules of the house" in session.why()["text"]
    session.answer("a", 1.0)  # what is known is known


def test_a_flowchart_obeys():
    X = data(300, 4)[0]
    rules = [requires("a", "c"), only_if("b", "a", "> 0"), excludes("d", "c")]
    chart = selector(rules).flowchart(X, max_depth=4)

    def walk(node, path):
        if "ask" not in node:
            return
        asked = [name for name, _ in path]
        if node["ask"] == "a":
            assert "c" in asked
        if node["ask"] == "b":
            low = [answer.get("at_least") for name, answer in path if name == "a"]
            assert low
            assert max(each for each in low if each is not None) > -0.5  # cuts lie between values of rows
        if node["ask"] == "d":
            assert "c" not in asked
        for answer in node["answers"]:
            walk(answer["then"], [*path, (node["ask"], answer)])

    walk(chart.to_dict()["tree"], [])


def test_a_calibrated_stop_keeps_what_is_mandatory():
    X, made = data(300, 5)[0], selector([mandatory("d"), first("f")])
    stop = made.calibrate_stop(X[:200], agreement=0.8)
    run = made.acquire(X[200:], stop="calibrated")
    assert all(order[:2] == ["f", "d"] for order in orders(run))
    assert stop.price >= 3.0  # no calibration row stops before them either


def test_evaluation_at_equal_prices_has_the_mandatory_in_every_budget():
    X, y = data(60, 6)
    made = selector([mandatory("f")], costs=None)
    one_run = made._final_states(X, [1.0, 2.0])
    assert all(end.mask[:, NAMES.index("f")].all() for end in one_run)
    np.testing.assert_array_equal(one_run[1].mask.sum(axis=1), 2)
    assert len(made.evaluate(X, y, budgets=[1, 2])) == 2


def test_rules_are_saved_and_copied(tmp_path):
    rules = [requires("a", "b"), only_if("c", "a", ("> 0")), pilot("mood", after=1), at_most(5, of=NAMES)]
    made = selector(rules)
    made.save(tmp_path / "saved")
    back = askwise.load(tmp_path / "saved")
    assert back.constraints == rules
    assert back.schema_.rules is not None
    assert list(back.schema_.rules.rules) == rules
    X = data(20, 7)[0]
    np.testing.assert_array_equal(back.acquire(X).order, made.acquire(X).order)
    other = made.with_policy(Random(0)).acquire(X)
    assert all(run.index("b") < run.index("a") for run in orders(other) if "a" in run)
    assert clone(made).constraints == rules


def test_a_file_of_rules(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(
        'first = ["d"]\nmandatory = ["a"]\nrequires = [["c", "b"]]\nexcludes = [["e", "f"]]\n'
        '[[at_most]]\nn = 2\nof = ["a", "b", "c"]\n'
        '[[only_if]]\nfeature = "c"\nother = "d"\ncondition = ">= 0"\n'
        '[[pilot]]\nname = "mood"\nafter = 1\nshare = 0.5\n'
    )
    assert read_rules(path) == [
        first("d"),
        mandatory("a"),
        requires("c", "b"),
        excludes("e", "f"),
        at_most(2, of=["a", "b", "c"]),
        only_if("c", "d", ">= 0"),
        pilot("mood", after=1, share=0.5),
    ]
    wrong = {
        "must = []": "there is no rule 'must'",
        'first = "d"': "first must be a list",
        'requires = [["a"]]': "it needs feature, needed",
        'requires = [["a", "b", "c"]]': "it has 2 parts",
        'requires = [["a", "a"]]': "must differ",
        "first = [": "cannot be read as TOML",
    }
    for text, said in wrong.items():
        path.write_text(text)
        with pytest.raises(InvalidInput, match=said):
            read_rules(path)


def test_pilot_items_are_scattered_in_and_their_answers_kept():
    made = selector([pilot("mood", after=1, share=0.5)])
    asked = 0
    for value in np.linspace(-2, 2, 60):
        session, again = made.start(), made.start()
        for each in (session, again):
            assert each.suggest().feature == "e"
            each.answer("e", float(value))
        assert session.suggest() == again.suggest()  # drawn from what is known
        asked += session.suggest().feature == "mood"
    assert 15 < asked < 45
    session = selector([pilot("mood", after=0)]).start()
    before = session.report()
    assert session.suggest().feature == "mood"
    assert before["pilot"] == {}
    assert "pilot item" in session.why()["text"]
    session.answer("mood", "good")
    after = json.loads(json.dumps(session.report()))
    assert after["pilot"] == {"mood": "good"}
    assert (after["spent"], after["probabilities"]) == (0.0, before["probabilities"])
    assert session.suggest().feature == "e"
    with pytest.raises(InvalidInput, match="asked already"):
        session.answer("mood", "bad")
    session.undo()
    assert session.suggest().feature == "mood"
    session.unavailable("mood")
    assert session.suggest().feature == "e"
    with pytest.raises(InvalidInput, match="must be text"):
        selector([pilot("mood")]).start().answer("mood", {"x": 1})
    assert selector([pilot("mood")]).start({"mood": "known"}).report()["pilot"] == {"mood": "known"}


def test_a_rule_is_data():
    rule = only_if("a", "b", [1, 2])
    assert rule.condition == (1, 2)
    assert dataclasses.asdict(rule)["kind"] == "only_if"
    assert repr(at_most(2, ["a", "b"])) == "at_most(2, of=['a', 'b'])"


def test_calibration_visits_states_that_the_rules_allow():
    """Also where only few features may ever be known, and with the gains that are learned from these states."""
    rules = [at_most(3, of=NAMES), requires("a", "c"), only_if("b", "d", "> 0"), mandatory("f")]
    made = DynamicFeatureSelector(LogisticRegression(), constraints=rules, epistemic=None, random_state=0).fit(*data())
    assert made.calibration_ is not None
    assert made.usual_gains_ is not None
    run = made.acquire(data(30, 8)[0])
    assert all(order[0] == "f" and len(order) == 3 for order in orders(run))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([first(True)], "there is no feature True"),
        ([requires("a", "b"), requires(1, "a")], r"See requires\('a', 'b'\), requires\(1, 'a'\)"),
        ([at_most(1, of=["a", 0])], "names one feature twice, by name and by position"),
        ([requires("a", 0)], "names one feature twice, by name and by position"),
        ([Rule("frist", ("a",))], "there is no rule 'frist'"),
    ],
)
def test_a_rule_that_is_not_what_it_seems_is_refused(rules, said):
    with pytest.raises(InvalidInput, match=said):
        selector(rules)


@pytest.mark.parametrize("condition", [{}, [], {"b": []}, {"b": None}])
def test_a_condition_says_something(condition):
    with pytest.raises(InvalidInput, match="the condition on 'b'"):
        only_if("a", "b", condition)


@pytest.mark.parametrize("value", [np.nan, np.inf, None, ["x"], object()])
def test_an_answer_to_a_pilot_item_is_text_a_number_or_a_boolean(value):
    owner = selector([pilot("sleep")])
    session = owner.start()
    for give in (
        lambda: session.answer("sleep", value),
        lambda: owner.start(known={"sleep": value}),
        lambda: owner.next(answers={"sleep": value}),
    ):
        with pytest.raises(InvalidInput, match="The answer for 'sleep' must be text, a finite number or a boolean"):
            give()
    assert session.report()["pilot"] == {}
    session.answer("sleep", np.float64(2.0))
    assert json.loads(json.dumps(session.report(), allow_nan=False))["pilot"] == {"sleep": 2.0}


def test_a_file_with_a_byte_order_mark_is_read_and_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_bytes(b'\xef\xbb\xbffirst = ["a"]\n')
    assert read_rules(path) == [first("a")]
    wrong: list[Any] = [None, 3, ["rules.toml"]]
    for given in wrong:
        with pytest.raises(InvalidInput, match="path must be that of a TOML file"):
            read_rules(given)


def test_a_feature_of_a_rule_is_a_name():
    for given in (np.array(["a", "b"]), ["a", "b"], {"a": 1}):
        for make in (requires, excludes):
            with pytest.raises(InvalidInput, match="a feature must be the name of one"):
                make(given, given)
