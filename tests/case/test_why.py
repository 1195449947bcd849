"""Why a feature comes next: data and text, for every model and policy."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from askwise import DynamicFeatureSelector, Prices, wrap
from askwise.stopping import Confidence
from askwise.table.desk import Desk, Shown

KEYS = {"text", "advice", "decision", "probability", "feature", "price", "reason", "change", "outcomes", "alternatives"}


@pytest.fixture(scope="module")
def numbers():
    """The label is whether the first column is above 1, and the third tells nothing."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(1, 1, (300, 3)), columns=["dose", "echo", "noise"])
    X["echo"] = X["dose"] + rng.normal(0, 1, 300)
    y = np.where(X["dose"] > 1, "high", "low")
    return X, y


def fitted(X, y, model=None, **options):
    model = LogisticRegression(C=100.0) if model is None else model
    return DynamicFeatureSelector(model, epistemic=None, calibration=None, random_state=0, **options).fit(X, y)


def test_the_outcomes_are_where_the_answers_lead(numbers):
    X, y = numbers
    session = fitted(X, y).start()
    found = session.why()
    assert found["feature"] == "dose"
    assert found["advice"] == "ask"
    below, *_, above = found["outcomes"]
    assert below["decision"] == "low"
    assert above["decision"] == "high"
    assert abs(below["high"] - 1) < 0.4
    assert sum(group["chance"] for group in found["outcomes"]) == pytest.approx(1)
    assert sum(group["chance"] for group in found["outcomes"] if group["changes_decision"]) == pytest.approx(
        found["change"], abs=0.1
    )
    session.answer("dose", below["high"] - 1.0)
    after = session.report()
    assert after["prediction"] == "low"
    assert after["probabilities"]["low"] == pytest.approx(below["probability"], abs=0.2)
    assert session.why()["change"] < 0.1, "it is settled"


def test_the_alternatives_have_their_price_and_share_of_the_gain(numbers):
    X, y = numbers
    found = fitted(X, y, costs={"dose": 2, "echo": 3}).start().why(Desk("EUR", {"dose": Shown("Dose", "mg")}))
    assert [other["feature"] for other in found["alternatives"]] == ["echo", "noise"]
    assert found["alternatives"][0]["price"] == 3
    assert 0 < found["alternatives"][0]["relative_gain"] < 1
    assert found["text"].startswith("Next: Dose (2 EUR). It is expected to tell most for its price.")
    assert " mg (" in found["text"]
    assert "Instead (and how good each is for its price, beside this one): echo (3 EUR, " in found["text"]


def test_every_policy_and_adaptation_explains_itself(numbers):
    X, y = numbers
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    ways: list[dict[str, Any]] = [
        {"policy": "greedy"},
        {"policy": "lookahead"},
        {"policy": "planned", "budget": 2},
        {"policy": "static"},
        {"policy": "random"},
        {"adaptation": "mean"},
        {"adaptation": "rules"},
        {"adaptation": "pooled"},
        {"error_costs": {"low": 10, "high": 20}},
    ]
    reasons = set()
    for options in ways:
        session = fitted(X, y, forest, **options).start()
        while session.suggest() is not None:
            found = session.why()
            assert set(found) >= KEYS, options
            json.dumps(found, allow_nan=False)
            assert 2 <= len(found["outcomes"]) <= 3, options
            assert found["feature"] in found["text"]
            reasons.add(found["reason"])
            session.answer(session.suggest().feature, float(X[session.suggest().feature].iloc[0]))
        assert session.why()["advice"] in ("stop", "nothing left")
        assert session.why()["text"]
    assert len(reasons) == 6, reasons
    black_box = fitted(X, y, wrap(forest.predict_proba, classes=["high", "low"]))
    assert len(black_box.start().why()["outcomes"]) >= 2


def test_categories_codes_and_groups(numbers):
    X, y = numbers
    rng = np.random.default_rng(1)
    color = np.where(rng.random(300) < 0.9, np.where(y == "high", "red", "blue"), "green")
    one = pd.DataFrame({"color": color})
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(one, y)
    groups = fitted(one, y, model).start().why()["outcomes"]
    assert {group["decision"] for group in groups if "red" in group["values"]} == {"high"}
    assert {group["decision"] for group in groups if "blue" in group["values"]} == {"low"}
    assert all(group["low"] is None for group in groups)
    coded = pd.DataFrame({"code": (y == "high").astype(float), "noise": X["noise"]})
    assert [group["answer"] for group in fitted(coded, y).start().why()["outcomes"]] == ["0", "1"]
    panel = fitted(X, y, groups={"panel": ["noise", "dose"]}).start().why()
    assert panel["feature"] == "panel"
    assert {group["column"] for group in panel["outcomes"]} == {"dose"}, "the column that counts"
    desk = Desk("EUR", {"dose": Shown("Dose", "mg")})
    assert "- Dose " in fitted(X, y, groups={"panel": ["noise", "dose"]}).start().why(desk)["text"]


def test_why_nothing_more_is_asked(numbers):
    X, y = numbers
    selector = fitted(X, y, costs=Prices({"dose": 5, "echo": 4, "noise": 3}))
    poor = selector.start(budget=2).why(Desk("EUR"))
    assert poor["advice"] == "nothing left"
    assert "2 EUR of the budget is left" in poor["text"]
    assert "noise, costs 3 EUR" in poor["text"]
    sure = selector.start(known={"dose": 3.0}, stop=Confidence(0.9)).why()
    assert sure["advice"] == "stop"
    assert sure["feature"] is None
    assert "stopping rule" in sure["reason"]
    done = selector.start(known=dict.fromkeys(X.columns, 1.5)).why()
    assert done["reason"] == "Nothing is left to ask."


def test_the_hint_to_stop_and_silence_where_the_case_is_unlike_any_other(numbers):
    X, y = numbers
    selector = fitted(X, y)
    assert selector.start().why()["hint"] is None
    sure = selector.start(known={"dose": 2.5}).why()
    assert sure["hint"].startswith("You could stop: ")
    assert sure["text"].endswith(sure["hint"])
    assert selector.start(known={"dose": 1e6}).why()["hint"] is None


def test_the_calibrated_stop_tells_its_promise(numbers):
    X, y = numbers
    selector = fitted(X[:150], y[:150])
    selector.calibrate_stop(X[150:], agreement=0.9)
    session = selector.start(stop="calibrated")
    while session.suggest() is not None:
        session.answer(session.suggest().feature, 2.9)
    found = session.why()
    assert found["advice"] == "stop"
    assert "Guaranteed with 90% confidence" in found["text"]


def test_under_a_budget_alternatives_are_compared_by_the_rule_of_the_policy():
    """Ranked by gain / sqrt(price): the shares fall along the ranking, which those of gain / price need not."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    costs = np.random.default_rng(1).integers(1, 30, X.shape[1]).astype(float)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    owner = DynamicFeatureSelector(
        model, costs=costs, policy="greedy", epistemic=None, calibration=None, random_state=0, progress=False
    ).fit(X, y)
    for budget in (40, None):
        shares = [other["relative_gain"] or 0.0 for other in owner.start(budget=budget).why()["alternatives"]]
        assert shares == sorted(shares, reverse=True)
        assert 0 < shares[0] <= 1


def test_whole_numbers_are_listed_if_they_are_few_and_otherwise_given_as_a_range():
    rng = np.random.default_rng(0)
    few, many = rng.integers(1, 5, size=400), rng.integers(1, 31, size=400)
    for values, middle, listed in ((few, 2.5, True), (many, 15.5, False)):
        X = pd.DataFrame({"visits": values, "noise": rng.normal(size=400)})
        found = fitted(X, np.where(values > middle, "many", "few")).start().why()
        assert found["feature"] == "visits"
        answers = [group["answer"] for group in found["outcomes"]]
        assert all(set(answer) <= set("0123456789, ") for answer in answers) == listed, answers


def test_the_answers_of_a_group_name_their_column(numbers):
    X, y = numbers
    said = fitted(X, y, groups={"panel": ["dose", "noise"]}).start().why()["text"]
    assert "- dose under " in said


def test_a_stop_says_the_decision_before_the_promise(numbers):
    X, y = numbers
    selector = fitted(X, y)
    rng = np.random.default_rng(1)
    unseen = pd.DataFrame(rng.normal(1, 1, (200, 3)), columns=X.columns)
    selector.calibrate_stop(unseen, agreement=0.8)
    session = selector.start(stop="calibrated")
    session.answer("dose", 4.0)
    found = session.why()
    assert found["advice"] == "stop"
    first, second, third = found["text"].split("\n")
    assert first.startswith("Stop: ")
    assert second.startswith("So far: high")
    assert third == selector.stop_.promise
