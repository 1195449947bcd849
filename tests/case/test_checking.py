"""Cases that are asked on after the advice to stop: what they tell is what a calibration would have seen."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.constraints import excludes

COLUMNS = ["age", "lab", "culture", "scan", "biopsy"]


def patients(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)).round(3), columns=COLUMNS)
    chance = 1 / (1 + np.exp(-2 * (X["age"] + X["lab"] + 2 * X["scan"] + 0.5 * X["biopsy"])))
    return X, (rng.random(n) < chance).astype(int).to_numpy()


def fitted(budget=None, **options):
    X, y = patients(300, 0)
    prices = Prices({"age": 0, "lab": 1, "culture": 1, "scan": 5, "biopsy": 9})
    model = LogisticRegression().fit(X, y)
    selector = DynamicFeatureSelector(
        model, costs=prices, epistemic=None, calibration=None, random_state=0, budget=budget, **options
    ).fit(X, y)
    selector.calibrate_stop(patients(300, 1)[0], agreement=0.8)
    return selector


@pytest.fixture(scope="module")
def selector():
    return fitted()


def worked(session, row):
    """The session after everything that it suggests."""
    while (suggestion := session.suggest()) is not None:
        session.answer(suggestion.feature, row[suggestion.feature])
    return session


def checked(selector, row):
    return worked(selector.start(stop="calibrated", check=True), row).report()["check"]


@pytest.mark.parametrize("budget", [None, 6.0])
def test_a_check_finds_what_a_calibration_would_find(selector, budget):
    """Also beyond the budget: what all features would have led to is what is promised."""
    selector = selector if budget is None else fitted(budget)
    X, _ = patients(60, 2)
    run, full = selector.acquire(X, stop="calibrated"), selector.predict(X)
    far = selector.novelty_of_rows(X)
    found = [checked(selector, row) for row in X.to_dict("records")]
    assert [one["stopped"] for one in found] == run.predict().tolist()
    assert [one["full"] for one in found] == full.tolist()
    assert [one["changed"] for one in found] == (run.predict() != full).tolist()
    np.testing.assert_allclose([one["spent"] for one in found], run.spent_after(-1))
    np.testing.assert_allclose([one["novelty"] for one in found], far)
    assert any(one["changed"] for one in found)
    assert not any(one["to_ask"] for one in found)


def test_until_the_advice_a_checked_case_is_like_any_other(selector):
    for row in patients(20, 3)[0].to_dict("records"):
        one, other = (selector.start(stop="calibrated", check=check) for check in (False, True))
        while one.suggest() is not None:
            assert one.report() == other.report()
            feature = one.suggest().feature
            one.answer(feature, row[feature])
            other.answer(feature, row[feature])
        assert one.report()["check"] is None
        report = other.report()
        assert report["guaranteed"]
        assert report["guarantee"] == one.report()["guarantee"]
        if report["check"]["to_ask"]:
            why = other.why()
            assert why["advice"] == "ask"
            assert "The advice was to stop here" in why["text"]
            assert report["suggestion"] == report["check"]["to_ask"][0]  # the cheapest first, then in order


def advised(selector, row):
    session = selector.start(stop="calibrated", check=True)
    while session.report()["check"] is None:
        feature = session.suggest().feature
        session.answer(feature, row[feature])
    return session


def stopping_row(selector, left=2):
    """A row whose case stops with some features left."""
    return next(
        row
        for row in patients(50, 4)[0].to_dict("records")
        if len(advised(selector, row).report()["check"]["to_ask"]) >= left
    )


def test_skipped_answers_do_not_count_and_undo_takes_all_of_it_back(selector):
    row = stopping_row(selector)
    session = advised(selector, row)
    before = session.report()
    first, *rest = before["check"]["to_ask"]
    session.unavailable(first)
    assert session.report()["check"]["unused"] == f"{first!r} was skipped"
    assert "does not hold" not in session.report()["guarantee"]  # the advice was given before
    for feature in rest:
        session.answer(feature, row[feature])
    assert session.suggest() is None
    assert session.report()["check"]["full"] is None
    for _ in range(len(rest) + 1):
        session.undo()
    assert session.report() == before
    session.undo()
    assert session.report()["check"] is None
    session.answer(before["trace"][-1]["feature"], before["trace"][-1]["value"])
    assert worked(session, row).report()["check"]["full"] is not None


def test_what_is_answered_in_any_order_or_comes_later_counts(selector):
    row = stopping_row(selector)
    expected = checked(selector, row)
    session = advised(selector, row)
    *others, last = session.report()["check"]["to_ask"]
    session.order(last)
    for feature in reversed(others):
        session.answer(feature, row[feature])
    waiting = session.report()
    assert waiting["check"]["full"] is None
    assert waiting["check"]["to_ask"] == []
    assert session.why()["advice"] == "wait"
    session.answer(last, row[last])
    assert session.report()["check"] == expected


def test_a_case_that_left_the_path_tells_nothing(selector):
    row = stopping_row(selector)
    session = selector.start(stop="calibrated", check=True)
    session.answer("biopsy", row["biopsy"])
    found = worked(session, row).report()["check"]
    assert found["full"] is None
    assert "instead of" in found["unused"]
    known = worked(selector.start({"scan": 0.3}, stop="calibrated", check=True), row).report()["check"]
    assert "known from the start" in known["unused"]


def test_rules_of_the_house_bar_a_check():
    selector = fitted(constraints=[excludes("scan", "biopsy")])
    found = checked(selector, patients(1, 5)[0].iloc[0].to_dict())
    assert found["full"] is None
    assert "the rules of the house or a budget bar" in found["unused"]


def test_a_check_needs_a_stop(selector):
    with pytest.raises(InvalidInput, match="check=True checks a stop"):
        selector.start(check=True)
    with pytest.raises(InvalidInput, match="check must be"):
        selector.start(stop="calibrated", check=0.5)
