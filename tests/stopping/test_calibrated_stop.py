"""A stop that is calibrated on unseen rows: what it promises, when it refuses, and what a session says about it."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import askwise
from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.calibrate.unseen import check_distinct
from askwise.policy import Random
from askwise.stopping import CalibratedStop, Confidence
from askwise.stopping.calibrated_stop import Goal, calibrated_threshold
from askwise.table.rows import EncodedRows

PRICES = Prices([0, 2, 3, 3, 1, 1], shared=[([2, 3], 1.5)])


def overall_threshold(runs, goal, early_share=None):
    """The threshold for the promise about all cases."""
    required = replace(goal, per_class=False).requirements(runs, np.arange(2))
    return calibrated_threshold(runs, goal, required, early_share)[0]


def drawn(n, seed):
    """Three classes by two features, one of them free; a third is missing in some rows."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    y = np.array(["low", "middle", "high"])[np.digitize(2 * X["a"] + 2 * X["b"] + 0.5 * X["c"], [-1, 1])]
    X.loc[rng.random(n) < 0.2, "d"] = np.nan
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = drawn(200, 0)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.fillna(0), y)
    return DynamicFeatureSelector(
        model, costs=PRICES, epistemic=None, calibration=None, random_state=0, progress=False
    ).fit(X, y)


@pytest.fixture(scope="module")
def stop(fitted):
    return fitted.calibrate_stop(*drawn(150, 1), agreement=0.9)


def follow(selector, row, session):
    """Answer what is suggested until nothing is; returns the features in order."""
    asked = []
    while (suggestion := session.suggest()) is not None:
        if pd.isna(row[suggestion.feature]):
            session.unavailable(suggestion.feature)
        else:
            session.answer(suggestion.feature, row[suggestion.feature])
            asked.append(selector.features_.index(suggestion.feature))
    return asked


def test_what_the_rule_says_of_its_rows_is_what_acquire_does(fitted, stop):
    X, _ = drawn(150, 1)
    run = fitted.acquire(X, stop=stop)
    full = fitted.predictor_.predict_full(X).argmax(axis=1)
    assert run.spent_after(-1).mean() == pytest.approx(stop.price)
    assert stop.n_losses == (run.decision[:, -1] != full).sum()
    assert stop.price < 0.8 * stop.everything
    assert fitted.acquire(X).spent_after(-1).mean() == pytest.approx(stop.everything)
    unlimited = fitted.acquire(X)
    assert stop.n_early == ((run.order >= 0).sum(axis=1) < (unlimited.order >= 0).sum(axis=1)).sum()


def test_free_features_are_acquired_before_a_case_may_stop(fitted, stop):
    X, _ = drawn(60, 5)
    assert (fitted.acquire(X, stop=stop).order[:, 0] == 0).all()
    always = fitted.calibrate_stop(drawn(150, 1)[0], average_price=0.01)
    run = fitted.acquire(X, stop=always)
    assert run.order.tolist() == [[0]] * 60
    fitted.stop_ = stop


def test_the_promise_is_kept_on_fresh_rows(fitted):
    """Calibration rows drawn 100 times; a rule that tests another score than it stops by fails."""
    X, y = drawn(2000, 2)
    rows = fitted._encode(X)
    labels = np.searchsorted(fitted.classes_, y)
    runs = fitted._full_runs(rows, fitted.policy_, np.inf, labels)
    pool, fresh = runs.take(np.arange(800)), runs.take(np.arange(800, 2000))
    rng = np.random.default_rng(0)
    for goal in (Goal(agreement=0.9), Goal(accuracy_gap=0.1)):
        risks = []
        for _ in range(100):
            threshold = overall_threshold(pool.take(rng.integers(800, size=120)), goal)
            steps = fresh.stops_at(np.array([threshold]))
            risks.append(np.take_along_axis(goal.losses(fresh), steps, axis=1).mean())
        assert np.mean(np.array(risks) <= 0.1) >= 0.86
        assert np.mean(risks) > 0.02  # not by never stopping early


def test_a_session_stops_where_its_row_of_a_batch_does(fitted, stop):
    fitted.stop_ = stop
    X, _ = drawn(12, 3)
    run = fitted.acquire(X, stop="calibrated")
    assert len(set((run.order >= 0).sum(axis=1))) > 1
    for r in range(len(X)):
        session = fitted.start(stop="calibrated")
        assert follow(fitted, X.iloc[r], session) == [i for i in run.order[r] if i >= 0]
        assert session.report()["guarantee"] == stop.promise  # "d" was unavailable at calibration as well


def test_an_override_ends_the_guarantee_of_the_case_and_undo_restores_it(fitted, stop):
    promise = stop.promise
    session = fitted.start(stop=stop)
    session.answer("a", 0.1)
    asked = session.suggest().feature
    other = next(name for name in "bcef" if name != asked)
    session.answer(other, 0.3)
    report = session.report()
    assert (
        report["guarantee"]
        == f"The guarantee does not hold for this case: {other!r} was answered instead of {asked!r}."
    )
    assert report["prediction_set"] is None
    session.answer(session.suggest().feature, 0.0)  # following the advice again does not bring it back
    assert other in str(session.report()["guarantee"])
    session.undo()
    session.undo()
    assert session.report()["guarantee"] == promise
    assert session.report()["prediction_set"] is not None

    session.unavailable("d")
    assert session.report()["guarantee"] == promise
    session.unavailable("e")
    assert "'e', never missing at calibration, is unavailable" in str(session.report()["guarantee"])

    done = fitted.start(stop=stop)
    follow(fitted, pd.Series({"a": 3.0, "b": 3.0, "c": 1.0, "d": 0.0, "e": 0.0, "f": 0.0}), done)
    left = next(name for name in fitted.features_ if name not in done.known)
    done.answer(left, 0.0)
    assert f"{left!r} was answered after the stop" in done.report()["guarantee"]


def test_what_is_known_from_the_start_ends_it_unless_it_is_free(fitted, stop):
    assert fitted.start({"a": 1.0}, stop=stop).report()["guarantee"] == stop.promise
    assert "'b' was known from the start" in fitted.start({"b": 1.0}, stop=stop).report()["guarantee"]
    for other in (None, Confidence(0.9)):
        report = fitted.start({"b": 1.0}, stop=other).report()
        assert report["guarantee"] is None
        assert report["prediction_set"] is None


def test_prediction_sets_of_a_session(fitted, stop):
    session = fitted.start(stop=stop)
    follow(fitted, drawn(1, 9)[0].iloc[0], session)
    report = json.loads(json.dumps(session.report()))
    assert set(report["prediction_set"]) <= {"low", "middle", "high"}
    assert report["prediction"] in report["prediction_set"]
    assert [step["prediction_set"] for step in report["trace"]][-1] == report["prediction_set"]
    assert len(report["trace"][0]["prediction_set"]) == 3  # nothing is known
    without = fitted.calibrate_stop(drawn(150, 1)[0], agreement=0.9)
    assert fitted.start(stop=without).report()["prediction_set"] is None
    fitted.stop_ = stop


def test_changed_conditions_are_refused_with_the_reason(fitted, stop):
    X, _ = drawn(4, 3)
    static = fitted.with_policy("static")
    assert static.stop_ is None
    with pytest.raises(InvalidInput, match="call calibrate_stop first"):
        static.acquire(X, stop="calibrated")
    with pytest.raises(InvalidInput, match="another policy"):
        static.start(stop=stop)
    for budget in (5, [5, 5, 5, 5]):
        with pytest.raises(InvalidInput, match="no budget, not budget=5"):
            fitted.acquire(X, budget=budget, stop=stop)
    prices, weight = fitted.prices_, fitted.risk_weight
    try:
        fitted.prices_ = Prices([0, 2, 3, 3, 1, 2], shared=[([2, 3], 1.5)]).resolve(fitted.features_)
        with pytest.raises(InvalidInput, match="other prices"):
            fitted.acquire(X, stop=stop)
        fitted.prices_ = Prices(prices.costs, shared=[([2, 3], 1.0)]).resolve(fitted.features_)
        with pytest.raises(InvalidInput, match="other prices"):
            fitted.acquire(X, stop=stop)
        fitted.prices_, fitted.risk_weight = prices, 0.5
        with pytest.raises(InvalidInput, match=r"risk_weight=0\.1, not 0\.5"):
            fitted.start(stop=stop)
    finally:
        fitted.prices_, fitted.risk_weight = prices, weight


def test_an_average_price_with_and_without_a_budget_per_case(fitted):
    X, _ = drawn(300, 1)
    fresh, _ = drawn(600, 4)
    for budget in (None, 5.0):
        for price in (1.5, 3.0):
            rule = fitted.calibrate_stop(X, average_price=price, budget=budget)
            assert rule.price == pytest.approx(price, rel=0.05)
            spent = fitted.acquire(fresh, budget=budget, stop=rule).spent_after(-1)
            assert spent.mean() == pytest.approx(price, rel=0.1)
            assert budget is None or spent.max() <= budget * (1 + 1e-9)
            assert "Estimated: cases cost" in repr(rule)
    with pytest.raises(InvalidInput, match=r"calibrated for budget=5, not no limit"):
        fitted.acquire(fresh, stop=rule)


def test_calibration_rows_that_cannot_support_the_promise_are_refused(fitted):
    X, y = drawn(150, 1)
    seen, seen_labels = drawn(200, 0)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ((X[:44],), {"agreement": 0.95}, "needs at least 45 rows; there are 44"),
        ((X[:113],), {"agreement": 0.98}, "needs at least 114 rows; there are 113"),
        ((X[:50],), {"agreement": 0.95, "conditional": True, "confidence": 0.95}, "needs at least 59 rows"),
        ((X,), {"accuracy_gap": 0.05}, "accuracy_gap needs the labels y_cal"),
        ((X, y[:5]), {"agreement": 0.9}, r"y_cal must .* 150 in all; got shape \(5,\)"),
        ((X, np.array(["never"] * 150)), {"agreement": 0.9}, "never"),
        ((None, y), {"agreement": 0.9}, "y_cal needs X_cal"),
        ((seen, seen_labels), {"agreement": 0.9}, "200 of 200 rows were given to fit"),
        ((pd.concat([X, seen[:20]]),), {"agreement": 0.9}, "20 of 170 rows were given to fit"),
        ((X,), {"agreement": 0.9, "budget": 1}, "even without an early stop"),
        ((X, y), {"agreement": 0.9, "coverage": 1.0}, "coverage must be a number in"),
        ((X,), {"average_price": 100}, "Ask for less"),
    ]
    before = fitted.stop_
    for args, options, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            fitted.calibrate_stop(*args, **options)
        assert fitted.stop_ is before


def test_copies_are_recognized_although_they_were_rounded(fitted):
    X, _ = drawn(200, 0)
    for copies in (X.astype("float32"), X * (1 + 1e-12)):
        with pytest.raises(InvalidInput, match="rows were given to fit as well"):
            fitted.calibrate_stop(copies, agreement=0.9)
    fresh = drawn(60, 1)[0]
    empty = pd.DataFrame(np.nan, range(60), fresh.columns)
    for repeating in (pd.concat([fresh.iloc[:1]] * 60), pd.concat([fresh.iloc[:30]] * 2), empty):
        with pytest.raises(InvalidInput, match="rows repeat another one"):
            fitted.calibrate_stop(repeating, agreement=0.9)
    fitted.calibrate_stop(pd.concat([fresh, fresh.iloc[:2]]), agreement=0.9)  # as chance could have it
    discrete = drawn(200, 0)[0].round() > 0  # rows that repeat in training may repeat in calibration
    keys = EncodedRows(discrete.to_numpy(dtype=float)).keys()
    check_distinct(keys[:100], keys[100:])


def test_arguments_of_the_wrong_type_are_refused_by_name(fitted):
    X, y = drawn(60, 1)
    for name, value in (("conditional", "yes"), ("by_class", 2), ("agreement", 10**400), ("coverage", 10**400)):
        with pytest.raises(InvalidInput, match=name):
            fitted.calibrate_stop(X, y, **{"agreement": 0.9, name: value})
    with pytest.raises(InvalidInput, match=r"y_cal holds \['low'\]"):
        fitted.calibrate_stop(X, [["low"], *y[1:]], agreement=0.9)
    with pytest.raises(InvalidInput, match="finite number >= 0"):
        fitted.start().suggest_set(10**400)


def test_without_rows_training_rows_are_cross_fitted_and_the_promise_is_an_estimate(fitted):
    rule = fitted.calibrate_stop(agreement=0.9)
    assert rule.estimated
    assert rule.promise.startswith("Estimated with 90% confidence: at most 10% of all cases")
    assert rule.n_rows == 200
    assert rule.prediction_sets is not None  # the training labels are known
    assert fitted.calibrate_stop(agreement=0.9, conditional=True).threshold > 0
    X, y = drawn(120, 0)
    priced = DynamicFeatureSelector(fitted.estimator_, epistemic=None, random_state=0).fit(X.fillna(0), y)
    at_start = priced.start().report()["decision_is_final"]
    runs = priced._runs_of_folds(priced.prices_.limits(None, 1)[0])
    assert runs is not None
    assert runs.certainty[:, 0].min() >= at_start, "else all may stop without a test of that"
    with pytest.raises(InvalidInput, match="needs X_cal"):
        _callable(fitted).fit(X.fillna(0), np.searchsorted(fitted.classes_, y)).calibrate_stop(agreement=0.9)


def _callable(fitted):
    model = fitted.estimator_
    return DynamicFeatureSelector(
        lambda rows: model.predict_proba(pd.DataFrame(rows, columns=list("abcdef")).fillna(0)),
        epistemic=None,
        random_state=0,
        progress=False,
    )


def test_a_conditional_promise_without_cross_fitting_sets_rows_aside(fitted):
    X, y = drawn(120, 0)
    selector = _callable(fitted).fit(X.fillna(0), np.searchsorted(fitted.classes_, y))
    rule = selector.calibrate_stop(drawn(150, 1)[0].fillna(0), agreement=0.9, conditional=True)
    assert rule.n_rows == 120
    assert "and of those that stop early, stop with" in rule.promise


def test_the_words_of_a_rule(stop):
    assert isinstance(stop, CalibratedStop)
    text = repr(stop)
    for words in (
        "Guaranteed with 90% confidence: at most 10% of all cases, and of those that all features decide for 'high', ",
        "stop with a decision that knowing all features would",
        "kept by class: 'high' ",
        "150 calibration rows",
        "the same policy, prices, and features unavailable as often",
        f"average price {stop.price:.4g} of {stop.everything:.4g}",
    ):
        assert words in text


def test_savings_of_wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], y[::2])
    selector = DynamicFeatureSelector(model, epistemic=None, calibration=None, random_state=0, progress=False)
    selector.fit(X[::2], y[::2])
    table = selector.savings(X[1::2], levels=(0.9, 0.98))
    assert list(table.columns) == ["level", "way", "price", "low", "high", "share", "worst_class", "kept_of_worst"]
    price = table.set_index(["level", "way"])["price"]
    for level in (0.9, 0.98):
        assert price[level, "stop per case"] <= min(price[level, "fixed budget"], price[level, "static order"])
    assert price[0.9, "fixed budget"] <= price[0.9, "static order"]
    assert price[0.98, "stop per case"] < 5 < price[0.98, "fixed budget"]
    assert_allclose(table["share"] * 13, table["price"], rtol=1e-12)
    with pytest.raises(InvalidInput, match="levels must be a list of shares"):
        selector.savings(X[1::2], levels=[95])


def test_only_free_features_may_be_answered_in_any_order():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    y = X.to_numpy() @ [0.3, 0.2, 1.0, 1.0, 1.0] > 0
    costs = {"a": 0.0, "b": 0.0}
    options: dict[str, Any] = {
        "costs": costs,
        "epistemic": None,
        "calibration": None,
        "random_state": 0,
        "progress": False,
    }
    selector = DynamicFeatureSelector(LogisticRegression(), **options).fit(X[:200], y[:200])
    stop = selector.calibrate_stop(X[200:], agreement=0.95)
    session = selector.start(stop=stop)
    first = session.suggest()
    assert first is not None
    other = {"a": "b", "b": "a"}[first.feature]
    session.answer(other, 0.1)
    session.answer(first.feature, -0.1)
    assert session.report()["guarantee"] == stop.promise
    asked = session.suggest()
    assert asked is not None
    assert asked.cost == 1.0
    session.answer(next(name for name in "cde" if name != asked.feature), 0.1)  # of the same price, but not free
    assert "was answered instead of" in str(session.report()["guarantee"])
    for name in "ab":
        assert selector.start({name: 0.1}, stop=stop).report()["guarantee"] == stop.promise
    assert "'c' was known from the start" in str(selector.start({"c": 0.1}, stop=stop).report()["guarantee"])


def test_random_orders_can_be_calibrated_too(fitted):
    selector = fitted.with_policy(Random(0))
    rule = selector.calibrate_stop(drawn(150, 1)[0], agreement=0.9)
    assert selector.stop_ is rule
    assert fitted.stop_ is not rule
    assert 0 < rule.price < rule.everything


def test_the_rule_is_saved_with_the_selector(fitted, stop, tmp_path):
    fitted.stop_ = stop
    fitted.save(tmp_path / "saved")
    loaded = askwise.load(tmp_path / "saved")
    X, _ = drawn(10, 3)
    assert_array_equal(loaded.acquire(X, stop="calibrated").order, fitted.acquire(X, stop="calibrated").order)
    assert loaded.start(stop="calibrated").report()["guarantee"] == stop.promise


def test_a_selector_saved_with_synthetic_rows_has_no_rule(fitted, stop, tmp_path):
    """Its policy learns from other rows than the one that the stop was calibrated for."""
    fitted.stop_ = stop
    fitted.save(tmp_path / "saved", rows="synthetic")
    with pytest.raises(InvalidInput, match="call calibrate_stop first"):
        askwise.load(tmp_path / "saved").start(stop="calibrated")


def test_a_model_that_imputes_decides_itself_once_nothing_more_is_available():
    X, y = drawn(150, 0)
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(X, y)
    options: dict[str, Any] = {"random_state": 0, "progress": False}
    for epistemic in ("auto", None):
        selector = DynamicFeatureSelector(model, epistemic=epistemic, **options).fit(X, y)
        fresh, _ = drawn(40, 2)
        missing = fresh["d"].isna().to_numpy()
        run = selector.acquire(fresh)
        np.testing.assert_allclose(run.proba[:, -1], model.predict_proba(fresh), atol=1e-9)
        assert_array_equal(run.decision_is_final[:, -1], 1.0)
        row = fresh.iloc[int(missing.argmax())]
        session = selector.start({name: value for name, value in row.items() if name != "d"})
        averaged = [session.report()["probabilities"][label] for label in selector.classes_]
        session.unavailable("d")
        found = [session.report()["probabilities"][label] for label in selector.classes_]
        np.testing.assert_allclose(found, run.proba[missing.argmax(), -1], atol=1e-9)
        assert not np.allclose(found, averaged)
        session.undo()
        np.testing.assert_allclose([session.report()["probabilities"][label] for label in selector.classes_], averaged)


def test_rows_given_to_fit_to_calibrate_on_are_refused():
    X, y = drawn(150, 0)
    X = X.fillna(0)
    unseen = drawn(100, 1)[0].fillna(0), drawn(100, 1)[1]
    selector = DynamicFeatureSelector(LogisticRegression(), epistemic=None, random_state=0, progress=False)
    selector.fit(X, y, X_unseen=unseen[0], y_unseen=unseen[1])
    with pytest.raises(InvalidInput, match="X_cal: 100 of 100 rows were given to fit"):
        selector.calibrate_stop(unseen[0], agreement=0.9)
    selector.calibrate_stop(drawn(100, 3)[0].fillna(0), agreement=0.9)


def test_cross_fitted_and_conditional_rules_go_by_the_calibrated_probability():
    X, y = drawn(240, 0)
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    selector = DynamicFeatureSelector(model, epistemic=None, random_state=0, progress=False).fit(X, y)
    fresh, _ = drawn(300, 5)
    plain = selector.calibrate_stop(fresh, agreement=0.9)
    for rule in (
        selector.calibrate_stop(agreement=0.9),
        selector.calibrate_stop(fresh, agreement=0.9, conditional=True),
    ):
        assert rule.n_early > 50
        assert rule.price < 0.9 * rule.everything
        assert rule.threshold == pytest.approx(plain.threshold, abs=0.15)
