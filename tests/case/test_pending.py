"""Results that are out: paid, counted as coming, back in any order; deadlines; and what cannot be done."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, Prices
from askwise.constraints import at_most, excludes, requires
from askwise.errors import InvalidInput
from askwise.stopping import Confidence

NAMES = ["best", "copy", "other", "noise"]
HOURS = {"best": 2.0, "copy": 1.0, "other": 5.0}
PRICES = Prices({"best": 3, "copy": 3, "other": 2, "noise": 1}, shared=[(["best", "copy"], 1)], time=HOURS)


def data(n=300, seed=0):
    """A feature, almost a copy of it, another that adds to it, and noise."""
    rng = np.random.default_rng(seed)
    best, other = rng.normal(size=(2, n))
    y = (1.5 * best + other + 0.3 * rng.normal(size=n) > 0).astype(int)
    copy = best + 0.05 * rng.normal(size=n)
    return pd.DataFrame(np.column_stack([best, copy, other, rng.normal(size=n)]), columns=NAMES), y


def selector(**options):
    given: dict[str, Any] = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False}
    return DynamicFeatureSelector(LogisticRegression(), **{**given, "costs": PRICES, **options}).fit(*data())


@pytest.fixture(scope="module")
def owner():
    return selector()


def test_suggestions_go_on_with_what_is_told_beyond_what_is_out(owner):
    session = owner.start(budget=20)
    alone = {name: gain for name, _, gain in session.suggest().ranking}
    session.order("best")
    beyond = {name: gain for name, _, gain in session.suggest().ranking}
    assert session.suggest().feature == "other"
    assert alone["copy"] > alone["other"] * 0.5
    assert beyond["copy"] < 0.4 * beyond["other"] < beyond["other"]  # the copy tells what will be known already
    assert "best" not in beyond
    assert "Beyond the results that are out" in session.why()["text"]
    assert session.suggest_set(2).features == ["other"]
    assert session.suggest_set(2).gain < owner.start().suggest_set(2).gain + 0.05
    report = json.loads(json.dumps(session.report()))
    assert report["pending"] == [{"feature": "best", "ordered": 0.0, "expected": 2.0}]
    assert (report["spent"], report["budget_left"], report["known"]) == (3.0, 17.0, {})
    assert report["trace"][-1]["event"] == "order"
    assert session.prices == {"copy": 2.0, "other": 2.0, "noise": 1.0}  # the set-up is paid


def test_answers_close_in_any_order_and_cost_nothing_more(owner):
    values = {"best": 0.4, "copy": 0.5, "other": -1.0}
    one, other = owner.start(), owner.start()
    for name, value in values.items():
        one.answer(name, value)
    other.order_set(["best", "copy"])
    other.order("other", hours=1, at=0.5)
    assert other.pending == ["best", "copy", "other"]
    for name in ("other", "copy", "best"):
        other.answer(name, values[name])
    assert other.pending == []
    first, second = one.report(), other.report()
    assert first["probabilities"] == pytest.approx(second["probabilities"])
    assert (first["spent"], first["suggestion"]) == (second["spent"], second["suggestion"]) == (7.0, "noise")
    assert [step["cost"] for step in second["trace"]] == [0, 3, 2, 2, 0, 0, 0]


def test_every_step_can_be_taken_back(owner):
    session = owner.start(budget=9)
    before = session.report()
    session.order_set(owner.start().suggest_set(5))
    assert len(session.pending) == 2
    session.unavailable(session.pending[0])
    assert len(session.pending) == 1
    assert session.report()["spent"] == 5.0  # a result that never comes is paid
    session.undo()
    assert len(session.pending) == 2
    session.undo()
    assert session.report() == before


def test_waiting_is_advised_where_nothing_more_is_worth_ordering(owner):
    session = owner.start({"other": 0.1, "noise": 0.0})
    session.order("best")
    while (suggestion := session.suggest()) is not None:
        session.order(suggestion.feature)
    assert session.why()["advice"] == "wait"
    assert session.why()["text"].startswith("Wait for best")
    for name in session.pending:
        session.answer(name, 2.0)
    assert session.why()["advice"] == "nothing left"
    stopped = owner.start(stop=Confidence(0.9))
    stopped.order_set(["best", "other"])
    stopped.answer("best", 3.0)
    assert stopped.why()["advice"] == "stop"  # without waiting for the other


def test_a_deadline_counts_what_can_be_back(owner):
    session = owner.start(deadline=4)
    assert {name for name, _, _ in session.suggest().ranking} == {"best", "copy", "noise"}
    session.at(2.5)
    assert {name for name, _, _ in session.suggest().ranking} == {"copy", "noise"}
    session.order("copy")
    assert session.report()["pending"][0]["expected"] == 3.5
    session.answer("copy", 0.1)
    session.answer("noise", 0.1)
    assert session.suggest() is None
    assert "back by the deadline" in session.why()["text"]
    assert set(owner.suggest(data(2)[0] * np.nan, as_names=True)) <= {"best", "copy"}  # only sessions have one
    with pytest.raises(InvalidInput, match="time goes forward"):
        session.at(1)


def test_rules_count_what_is_out():
    made = selector(constraints=[requires("noise", "best"), excludes("copy", "best"), at_most(2, of=NAMES)])
    session = made.start()
    session.order("best")
    assert {name for name, _, _ in session.suggest().ranking} == {"other"}  # the copy is excluded, the noise must wait
    session.answer("best", 0.0)
    assert {name for name, _, _ in session.suggest().ranking} == {"other", "noise"}
    session.order("other")
    assert session.suggest() is None


@pytest.mark.parametrize("policy", ["static", "random", "lookahead"])
def test_every_policy_goes_on(policy):
    session = selector(policy=policy).start()
    seen = []
    while (suggestion := session.suggest()) is not None:
        seen.append(suggestion.feature)
        session.order(suggestion.feature)
    assert len(seen) == len(set(seen)) >= 2


def test_the_stateless_call_takes_what_is_out(owner):
    session = owner.start({"noise": 0.3}, budget=20)
    session.answer("other", 1.0)
    session.order("best")
    found = owner.next({"noise": 0.3}, {"other": 1.0}, pending=["best"], budget=20)
    assert (found["suggestion"], found["spent"]) == (session.next()["suggestion"], 5.0)
    assert found["ranking"] == session.next()["ranking"]


def test_what_cannot_be_ordered_is_refused(owner):
    session = owner.start(budget=4)
    session.order("best")
    session.unavailable("noise")
    for act, said in [
        (lambda: session.order("best"), "ordered already"),
        (lambda: session.order("other"), "only 1 is left"),
        (lambda: session.order("noise"), "unavailable"),
        (lambda: session.order("nose"), "no feature 'nose'"),
        (lambda: session.order("copy", hours=-1), "hours must be"),
        (lambda: session.order_set([]), "list of different features"),
        (lambda: session.order_set("best"), "list of different features"),
        (lambda: owner.start(deadline="noon"), "deadline must be"),
        (lambda: Prices(time={"a": 1, 0: 2}).resolve(["a", "b"]), "names the feature 'a' twice"),
        (lambda: Prices(time=[1]).resolve(["a", "b"]), "time must hold one"),
        (lambda: Prices(time={"z": 1}).resolve(["a"]), "no feature 'z'"),
        (lambda: Prices(time={"a": -1}).resolve(["a"]), "the time of 'a'"),
    ]:
        with pytest.raises(InvalidInput, match=said):
            act()
    assert session.pending == ["best"]


def test_a_promise_holds_for_one_result_at_a_time(owner):
    made = selector()
    made.calibrate_stop(data(200, 1)[0], agreement=0.8)
    session = made.start(stop="calibrated")
    session.order(session.suggest().feature)
    assert "does not hold" not in session.report()["guarantee"]
    session.order(session.suggest().feature)
    assert "another result was out" in session.report()["guarantee"]


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda case: case.order("best", at=1), "at must be a number >= 5 or None, because time goes forward"),
        (lambda case: case.order(["best"]), "there is no feature"),
        (lambda case: case.order_set([["best"], ["copy"]]), "there is no feature"),
    ],
)
def test_an_order_that_is_refused_changes_nothing(owner, act, said):
    case = owner.start()
    case.at(5)
    with pytest.raises(InvalidInput, match=said):
        act(case)
    assert (case.time, case.pending, case.report()["spent"]) == (5, [], 0)


@pytest.mark.parametrize("wrong", [None, 3, {"best": 1.0}, "best"])
def test_what_cannot_be_had_is_a_list(owner, wrong):
    for name in ("unavailable", "pending"):
        with pytest.raises(InvalidInput, match=f"{name} must be a list of features"):
            owner.next(**{name: wrong})
