"""One case by feature name, and that it is the same thing as a row of a batch."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.case import Suggestion
from askwise.epistemic import AuxiliaryEnsemble

GROUPS = {"blood": ["iron", "sugar"]}
PRICES = Prices({"age": 0, "city": 0.5, "blood": 3, "scan": 4, "visits": 1}, shared=[(["blood", "scan"], 1.5)])


def data(n=150):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 12, n).round(1),
            "city": rng.choice(["Ghent", "Lille", "Namur"], n),
            "iron": rng.normal(size=n),
            "smoker": rng.random(n) < 0.4,
            "sugar": rng.normal(size=n),
            "scan": rng.normal(size=n),
            "visits": rng.integers(0, 6, n),
        }
    )
    y = np.array(["ill", "well"])[((X["scan"] + X["iron"] + (X["city"] == "Lille")) < 0.5).astype(int)]
    holes = np.random.default_rng(1).random((n, 7)) < 0.12
    for j, name in enumerate(X.columns):
        if name not in ("smoker", "visits"):
            X.loc[holes[:, j], name] = np.nan
    return X, y


def model():
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "smoker"]), remainder="passthrough"
    )
    return make_pipeline(encode, SimpleImputer(), StandardScaler(), LogisticRegression())


@pytest.fixture(scope="module")
def make():
    """Fitted selectors, made once each."""
    X, y = data()
    trained = model().fit(X, y)
    made = {}

    def fitted(policy="greedy", costs=None, groups=None, **options):
        key = repr((policy, costs, groups, options))
        if key not in made:
            made[key] = DynamicFeatureSelector(
                trained, policy=policy, costs=costs, groups=groups, random_state=0, progress=False, **options
            ).fit(X, y)
        return made[key]

    return fitted


@pytest.fixture
def selector(make):
    return make(costs=PRICES, groups=GROUPS)


@pytest.fixture
def session(selector):
    return selector.start(budget=6)


def value_of(selector, row, i):
    """What a person would type for feature `i` of a row: None where there is nothing to be had."""
    cells = {selector.schema_.columns[j].name: row.iloc[j] for j in selector.schema_.feature_columns[i]}
    there = {name: cell for name, cell in cells.items() if not pd.isna(cell)}
    if not there:
        return None
    return there if len(cells) > 1 else next(iter(there.values()))


def probabilities(session):
    return np.array(list(session.report()["probabilities"].values()))


def work_through(selector, row, budget, known=()):
    """Answer every suggestion from a row; the features bought, the predictions along the way, the last report."""
    position = selector.features_.index
    session = selector.start({name: value_of(selector, row, position(name)) for name in known}, budget=budget)
    while (suggestion := session.suggest()) is not None:
        value = value_of(selector, row, position(suggestion.feature))
        if value is None:
            session.unavailable(suggestion.feature)
        else:
            session.answer(suggestion.feature, value)
    report = session.report()
    steps = [step for step in report["trace"] if step["event"] != "unavailable"]
    probas = [list(step["probabilities"].values()) for step in steps]
    return [step["feature"] for step in steps[1:]], np.array(probas), report


def check_case(selector, row, budget, run, k):
    """A session over one row against row `k` of a batch."""
    bought, probas, report = work_through(selector, row, budget)
    assert bought == [selector.features_[i] for i in run.order[k] if i >= 0]
    assert_allclose(probas, run.proba[k, : len(bought) + 1], rtol=0, atol=1e-12)
    assert_allclose(report["spent"], run.spent_after(-1)[k])
    assert report["prediction"] == run.predict()[k]
    paid = [step["cost"] for step in report["trace"] if step["event"] == "answer"]
    assert paid == pytest.approx(run.costs[k, : len(bought)].tolist())
    shown = {**report["uncertainty"], "novelty": report["novelty"]}
    for name, values in run.uncertainty.as_dict().items():
        assert_allclose(np.nan if shown[name] is None else shown[name], values[k, -1], atol=1e-12)


def test_a_session_equals_its_row_in_a_batch(make):
    """With one price each, and with prices, savings and groups."""
    X, _ = data()
    lacking = X.isna().any(axis=1).to_numpy()
    rows = np.array([np.flatnonzero(lacking)[0], np.flatnonzero(~lacking)[0]])
    for policy, costs, groups in (("greedy", None, None), ("greedy", PRICES, GROUPS), ("static", PRICES, GROUPS)):
        selector = make(policy, costs, groups)
        for budget in (0, 4.5, None):
            run = selector.acquire(X.iloc[rows], budget=budget)
            for k, r in enumerate(rows):
                check_case(selector, X.iloc[r], budget, run, k)


def test_a_session_that_knows_something_equals_its_row(make):
    selector = make("greedy", PRICES, GROUPS)
    X, _ = data()
    rows = np.flatnonzero(X[["iron", "visits"]].notna().all(axis=1))[:4]
    known = [name in ("blood", "visits") for name in selector.features_]
    run = selector.acquire(X.iloc[rows], budget=4, known=known)
    for k, r in enumerate(rows):
        bought, probas, _ = work_through(selector, X.iloc[r], 4, ["blood", "visits"])
        assert bought == [selector.features_[i] for i in run.order[k] if i >= 0]
        assert_allclose(probas, run.proba[k, : len(bought) + 1], rtol=0, atol=1e-12)


def test_a_random_session_is_row_zero_of_a_batch(make):
    selector = make("random", PRICES, GROUPS)
    X, _ = data()
    run = selector.acquire(X[:5], budget=5)
    bought, probas, _ = work_through(selector, X.iloc[0], 5)
    assert bought == [selector.features_[i] for i in run.order[0] if i >= 0]
    assert_allclose(probas, run.proba[0, : len(bought) + 1], rtol=0, atol=1e-12)


def test_a_session_suggests_what_the_selector_suggests(make):
    selector = make("greedy", PRICES, GROUPS)
    X, _ = data()
    row = X.iloc[[3]].copy()
    row[["iron", "sugar", "scan", "smoker"]] = np.nan
    known = {"age": row["age"].item(), "city": row["city"].item(), "visits": row["visits"].item()}
    for left in (3, 2, 1, 0.5):
        suggestion = selector.start(known, budget=left).suggest()
        index = selector.suggest(row, budget=left)[0]
        assert (None if suggestion is None else suggestion.feature) == (
            None if index < 0 else selector.features_[index]
        )


def test_the_free_feature_is_asked_first(session):
    suggestion = session.suggest()
    assert suggestion.feature == "age"
    assert suggestion.cost == 0


def test_a_suggestion_ranks_what_can_be_bought_best_first(selector):
    session = selector.start({"age": 44}, budget=3)
    suggestion = session.suggest()
    names, costs, gains = zip(*suggestion.ranking, strict=True)
    assert names[0] == suggestion.feature
    assert (costs[0], gains[0]) == (suggestion.cost, suggestion.gain)
    weighed = np.array(gains) * np.sqrt(costs)  # gains are per price; under a budget the root of the price counts
    assert_allclose(weighed, sorted(weighed, reverse=True))
    assert set(names) == {"city", "blood", "smoker", "visits"}  # not age (known) nor scan (too dear)
    now = dict(zip(names, costs, strict=True))
    assert now == {"city": 0.5, "blood": 3, "smoker": 1, "visits": 1}


def test_prices_fall_as_set_up_costs_are_paid(selector):
    session = selector.start({"age": 44}, budget=20)
    assert {name: cost for name, cost, _ in session.suggest().ranking}["scan"] == 4
    session.answer("blood", {"iron": 0.5, "sugar": 0.1})
    assert {name: cost for name, cost, _ in session.suggest().ranking}["scan"] == 2.5
    session.answer("scan", 1.0)
    assert session.report()["spent"] == 5.5
    assert session.left == 14.5


def test_what_is_known_is_not_charged_and_triggers_savings(selector):
    session = selector.start({"blood": {"iron": 0.5}}, budget=10)
    assert session.report()["spent"] == 0
    session.answer("scan", 0.0)
    assert session.report()["spent"] == 2.5
    assert session.known == {"blood": {"iron": 0.5, "sugar": None}, "scan": 0.0}


def test_any_feature_may_be_answered_not_only_the_suggested_one(session):
    assert session.suggest().feature != "visits"
    session.answer("visits", 3)
    assert session.known == {"visits": 3}


def test_the_prediction_is_that_of_the_selector(selector):
    session = selector.start({"city": "Lille", "smoker": True, "scan": -1.5})
    X, _ = data()
    row = X.iloc[[0]].assign(age=np.nan, iron=np.nan, sugar=np.nan, visits=np.nan, city="Lille", smoker=True, scan=-1.5)
    report = session.report()
    assert report["prediction"] == selector.predict(row)[0]
    assert list(report["probabilities"]) == selector.classes_.tolist()
    assert_allclose(probabilities(session), selector.predict_proba(row)[0], rtol=0, atol=1e-12)
    assert report["uncertainty"]["total"] == pytest.approx(selector.uncertainty(row).total[0])


def test_a_session_of_something_known_can_be_started_again_from_what_it_knows(selector):
    session = selector.start(budget=20)
    session.answer("blood", {"sugar": 0.25})
    session.answer("smoker", False)
    session.answer("visits", 2)
    session.answer("city", "Ghent")
    again = selector.start(session.known)
    assert again.known == session.known
    assert_array_equal(probabilities(again), probabilities(session))


def snapshot(session):
    """Everything that can be seen of a session."""
    return json.dumps(session.report(), allow_nan=False), session.left, session.known


def test_undo_restores_everything_exactly(selector):
    session = selector.start({"visits": 2}, budget=9)
    steps = [
        lambda: session.answer("age", 44),
        lambda: session.answer("blood", {"iron": 0.5}),
        lambda: session.unavailable("city"),
        lambda: session.answer("scan", -1.0),
    ]
    seen = []
    for step in steps:
        seen.append(snapshot(session))
        step()
    for before in reversed(seen):
        session.undo()
        assert snapshot(session) == before
    with pytest.raises(InvalidInput, match="nothing to undo"):
        session.undo()
    assert snapshot(session) == seen[0]


def test_the_same_steps_after_undo_give_the_same_case(selector):
    session = selector.start(budget=9)
    session.answer("blood", {"iron": 0.5})
    session.answer("scan", -1.0)
    once = snapshot(session)
    session.undo()
    session.undo()
    session.answer("blood", {"iron": 0.5})
    session.answer("scan", -1.0)
    assert snapshot(session) == once


def test_an_undone_answer_can_be_changed(session):
    session.answer("visits", 3)
    session.undo()
    session.answer("visits", 5)
    assert session.known == {"visits": 5}


def test_unavailable_features_are_not_suggested_and_not_charged(session):
    first = session.suggest().feature
    session.unavailable(first)
    assert session.left == 6
    assert session.report()["unavailable"] == [first]
    asked = session.suggest()
    assert first not in [name for name, _, _ in asked.ranking]
    session.undo()
    assert session.suggest().feature == first


def test_nothing_is_suggested_when_nothing_can_be_bought(selector):
    session = selector.start({"age": 44}, budget=0)
    assert session.suggest() is None
    report = session.report()
    assert report["suggestion"] is None
    assert report["ranking"] == []
    everything = selector.start(budget=None)
    for name in selector.features_:
        everything.unavailable(name)
    assert everything.suggest() is None


def test_sessions_do_not_share_anything(selector):
    one, other = selector.start(budget=6), selector.start(budget=6)
    before = snapshot(other)
    one.answer("visits", 3)
    one.unavailable("age")
    assert snapshot(other) == before


def test_reports_are_json_at_every_step(make):
    X, _ = data()
    for policy, budget in (("greedy", None), ("greedy", 0), ("static", 4), ("random", None)):
        selector = make(policy, PRICES, GROUPS)
        session = selector.start(budget=budget)
        seen = [session.report()]
        while (suggestion := session.suggest()) is not None:
            value = value_of(selector, X.iloc[1], selector.features_.index(suggestion.feature))
            if value is None:
                session.unavailable(suggestion.feature)
            else:
                session.answer(suggestion.feature, value)
            seen.append(session.report())
        for report in seen:
            assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_what_a_report_says(selector):
    session = selector.start({"city": "Lille"}, budget=6)
    session.answer("visits", 2)
    session.unavailable("blood")
    report = session.report()
    assert report["known"] == {"city": "Lille", "visits": 2}
    assert report["unavailable"] == ["blood"]
    assert (report["spent"], report["budget_left"]) == (1.0, 5.0)
    assert report["prediction"] in ("ill", "well")
    assert sum(report["probabilities"].values()) == pytest.approx(1)
    assert set(report["uncertainty"]) >= {"total", "aleatoric", "mutual_information", "epistemic"}
    assert report["suggestion"] == report["ranking"][0]["feature"] == session.suggest().feature
    events = [(step["event"], step["feature"], step["value"], step["cost"]) for step in report["trace"]]
    assert events == [("start", None, None, 0.0), ("answer", "visits", 2, 1.0), ("unavailable", "blood", None, 0.0)]
    assert all({"prediction", "probabilities", "uncertainty"} <= set(step) for step in report["trace"])
    assert report["trace"][-1]["probabilities"] == report["probabilities"]
    assert selector.start().report()["budget_left"] is None
    assert report["outside"] == []


def test_a_report_says_what_is_outside_everything_seen(selector):
    X, _ = data()
    session = selector.start({"visits": 2})
    assert session.report()["novelty"] == 0
    before = session.report()["uncertainty"]["epistemic"]
    session.answer("age", 300)
    report = json.loads(json.dumps(session.report(), allow_nan=False))
    low, high = X["age"].min(), X["age"].max()
    assert report["outside"] == [{"feature": "age", "column": "age", "value": 300, "seen": [low, high]}]
    assert report["novelty"] > 0
    assert report["uncertainty"]["epistemic"] > before
    session.undo()
    assert session.report()["outside"] == []


def test_the_representation_shows_the_case(selector):
    session = selector.start({"visits": 2}, budget=6)
    session.answer("city", "Lille")
    report = session.report()
    share = report["probabilities"][report["prediction"]]
    assert repr(session) == (
        f"<Session: {report['prediction']} ({share:.0%}) from {{'city': 'Lille', 'visits': 2}}; 5.5 left>"
    )
    assert repr(selector.start()).endswith("from {}; no limit>")


def test_an_infinite_uncertainty_is_said_and_is_not_one_that_is_unknown():
    """The tree rules a class out that a member allows, and without members nothing is known."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    tree, member = DecisionTreeClassifier().fit(X, y), LogisticRegression().fit(X, y)
    for epistemic, expected in ((AuxiliaryEnsemble(estimators=[member]), "infinite"), (None, None)):
        selector = DynamicFeatureSelector(tree, epistemic=epistemic, policy="static", random_state=0).fit(X, y)
        session = selector.start({"x0": 1.0, "x1": 0.0})
        report = json.loads(json.dumps(session.report(), allow_nan=False))
        assert report["uncertainty"]["epistemic"] == expected
        assert report["trace"][0]["uncertainty"]["epistemic"] == expected
        assert report["uncertainty"]["total"] == 0


def test_a_report_is_a_copy(session):
    before = snapshot(session)
    report = session.report()
    report["known"]["age"] = 3
    report["trace"].clear()
    report["probabilities"].clear()
    report["ranking"].clear()
    assert snapshot(session) == before


REFUSED = [
    ("weight", 3, "no feature 'weight'.*age, city, blood, smoker, scan, visits"),
    ("iron", 3, "no feature 'iron'"),
    (None, 3, "no feature None"),
    ("visits", "often", "'visits' must be a number; got 'often'"),
    ("visits", True, "'visits' must be a number; got True"),
    ("visits", np.inf, "'visits' must be a finite number; got inf"),
    ("visits", None, r"'visits' is missing.*unavailable\('visits'\)"),
    ("visits", np.nan, r"'visits' is missing.*unavailable\('visits'\)"),
    ("visits", {"age": 3}, r"'visits' must be a dict|'visits' must be a number"),
    ("city", "Paris", r"'city' must be one of \['Ghent', 'Lille', 'Namur'\]; got 'Paris'"),
    ("city", 2, r"'city' must be one of"),
    ("city", ["Ghent"], r"'city' must be one of"),
    ("smoker", "yes", r"'smoker' must be one of \[False, True\]; got 'yes'"),
    ("blood", 0.5, r"'blood' must be a dict .*\['iron', 'sugar'\]; got 0.5"),
    ("blood", {}, r"'blood' must be a dict"),
    ("blood", {"iron": 0.5, "scan": 1}, r"'blood' must be a dict"),
    ("blood", {"iron": "high"}, r"'iron' must be a number"),
    ("blood", {"iron": np.inf}, r"'iron' must be a finite number"),
    ("scan", 1.0, r"'scan' costs 4 and only 3.5 is left.*start\(known=...\)"),
    ("age", 44, "'age' is known already"),
    ("smoker2", 44, "no feature"),
]


def test_refused_answers_leave_the_session_as_it_was(selector):
    session = selector.start({"age": 40}, budget=3.5)
    before = snapshot(session)
    for feature, value, message in REFUSED:
        with pytest.raises(InvalidInput, match=message):
            session.answer(feature, value)
        assert snapshot(session) == before, (feature, value)
    with pytest.raises(InvalidInput, match="nothing to undo"):
        session.undo()


def test_what_was_answered_is_not_answered_again(session):
    session.answer("visits", 3)
    before = snapshot(session)
    with pytest.raises(InvalidInput, match=r"'visits' is known already \(3\); undo\(\)"):
        session.answer("visits", 4)
    with pytest.raises(InvalidInput, match="'visits' is known already"):
        session.unavailable("visits")
    assert snapshot(session) == before


def test_what_is_unavailable_is_not_answered_nor_marked_again(session):
    session.unavailable("scan")
    before = snapshot(session)
    with pytest.raises(InvalidInput, match=r"'scan' was marked as unavailable; undo\(\)"):
        session.answer("scan", 1.0)
    with pytest.raises(InvalidInput, match="'scan' is marked as unavailable already"):
        session.unavailable("scan")
    with pytest.raises(InvalidInput, match="no feature 'weight'"):
        session.unavailable("weight")
    assert snapshot(session) == before


def test_what_cannot_be_known(selector):
    for known, message in (
        ({"weight": 3}, "no feature 'weight'"),
        ({"city": "Paris"}, "'city' must be one of"),
        ({"visits": np.inf}, "'visits' must be a finite number"),
        ({"blood": 3}, "'blood' must be a dict"),
        ([1, 2], "known must be a dict"),
        ("age", "known must be a dict"),
    ):
        with pytest.raises(InvalidInput, match=message):
            selector.start(known)


def test_budgets_that_are_refused(selector):
    for budget in (-1, np.nan, "lots", [1, 2]):
        with pytest.raises(InvalidInput, match="budget must be"):
            selector.start(budget=budget)


def test_money_of_the_last_penny(make):
    selector = make("greedy", costs=dict.fromkeys(("age", "city", "iron", "smoker", "sugar", "scan", "visits"), 0.1))
    X, _ = data()
    session = selector.start(budget=0.7)
    row = X[X.notna().all(axis=1)].iloc[0]
    for i, name in enumerate(selector.features_):
        session.answer(name, value_of(selector, row, i))
    assert session.left == pytest.approx(0)
    assert session.left >= 0
    assert session.report()["spent"] == pytest.approx(0.7)


def test_a_model_that_fails_on_an_answer_leaves_the_session_as_it_was():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    trained = LogisticRegression().fit(X, y)

    def fragile(rows):
        if (np.asarray(rows) > 100).any():
            raise RuntimeError("the model fell over")
        return trained.predict_proba(rows)

    session = DynamicFeatureSelector(fragile, random_state=0).fit(X, y).start(budget=3)
    session.answer("x1", 0.5)
    before = snapshot(session)
    with pytest.raises(RuntimeError, match="fell over"):
        session.answer("x0", 1000.0)
    assert snapshot(session) == before
    session.undo()
    assert session.known == {}


def test_labels_of_every_kind_are_json():
    X = np.random.default_rng(0).normal(size=(60, 3))
    for labels in (
        np.array([0, 1]),
        np.array([False, True]),
        np.array([1.0, 2.0]),
        np.array(["no", "yes"], dtype=object),
    ):
        y = labels[(X[:, 0] > 0).astype(int)]
        session = DynamicFeatureSelector(LogisticRegression(), epistemic=None, random_state=0).fit(X, y).start()
        session.answer("x0", 2.0)
        report = json.loads(json.dumps(session.report(), allow_nan=False))
        assert report["prediction"] == labels[1]
        assert list(report["probabilities"]) == [str(label) for label in labels]
        assert repr(session).startswith(f"<Session: {report['prediction']} (")


def test_prices_are_those_of_now_affordable_or_not(selector):
    session = selector.start(budget=4)
    assert session.prices == {"age": 0, "city": 0.5, "blood": 3, "smoker": 1, "scan": 4, "visits": 1}
    session.answer("blood", {"iron": 0.1, "sugar": 0.2})
    session.unavailable("city")
    assert session.prices == {"age": 0, "smoker": 1, "scan": 2.5, "visits": 1}


def test_a_suggestion_is_shown_in_a_line():
    ranking = [("age", 1.0, 0.123456), ("dose", 2.0, 0.1), ("color", 1.0, 0.0)]
    shown = repr(Suggestion("age", 1.0, 0.123456, ranking))
    assert shown == "Suggestion('age', cost=1, gain=0.1235; 2 others in .ranking)"
    assert repr(Suggestion("age", 1.0, 0.5, ranking[:1])) == "Suggestion('age', cost=1, gain=0.5)"
