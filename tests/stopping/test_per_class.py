"""Promises of a stop for each class, where one class is rare."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.stopping.calibrated_stop import Goal, calibrated_threshold
from askwise.stopping.guarantee import FullRuns, class_certainty, exact_interval

SHARE = 0.05


def rare(rng, n, share=SHARE):
    """Two states per case, the second of them final; one case in twenty is decided otherwise then, u says how likely.

    All are first decided for class 0, and the case turns into class 1 with probability u, which is known.
    """
    u = rng.beta(0.25, 0.25 * (1 - share) / share, size=n)
    full = (rng.random(n) < u).astype(int)
    decision = np.column_stack([np.zeros(n, dtype=int), full])
    final = np.stack([np.column_stack([1 - u, u]), np.eye(2)[full]], axis=1)
    spent = np.tile([0.0, 1.0], (n, 1))
    certainty = np.column_stack([1 - u, np.ones(n)])
    return FullRuns(certainty, decision, spent, np.ones(n, dtype=int), full, final=final)


def calibrated(runs, goal):
    return calibrated_threshold(runs, goal, goal.requirements(runs, np.arange(2)))


def kept(runs, threshold):
    steps = runs.stops_at(np.array([threshold]))
    same = ~np.take_along_axis(runs.changed, steps, axis=1)[:, 0]
    return np.array([same[runs.full == c].mean() for c in (0, 1)]), np.take_along_axis(runs.spent, steps, axis=1).mean()


def test_certainty_is_measured_by_how_rare_another_class_is():
    final = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.98, 0.0, 0.02], [1.0, 0.0, 0.0]])
    found = class_certainty(final, np.array([0, 1, 0, 0]), np.array([0.5, 0.4, 0.1]))
    np.testing.assert_allclose(found, [1 - 0.1 / 0.4, 1 - 0.1 / 0.5, 1 - 0.02 / 0.1, 1.0])


def test_the_overall_promise_loses_the_rare_class_and_the_one_per_class_keeps_it():
    shares, fresh = np.array([1 - SHARE, SHARE]), rare(np.random.default_rng(1000), 200_000)
    judged, both, prices = fresh.judged_by_class(shares), [], []
    for seed in range(200):
        runs = rare(np.random.default_rng(seed), 1500)
        overall, _ = calibrated(runs, Goal(agreement=0.9, per_class=False))
        assert kept(fresh, overall)[0][1] < 0.6
        threshold, promised = calibrated(runs.judged_by_class(shares), Goal(agreement=0.9))
        assert len(promised) == 3
        found, price = kept(judged, threshold)
        both.append((found >= 0.9).all())
        prices.append(price)
    assert np.mean(both) >= 0.86
    assert np.median(prices) < 0.5


def test_a_class_with_too_few_rows_is_left_out_or_refused_and_still_protected():
    shares = np.array([1 - SHARE, SHARE])
    runs = rare(np.random.default_rng(3), 300).judged_by_class(shares)
    n_rare = int((runs.full == 1).sum())
    assert n_rare < 22
    threshold, promised = calibrated(runs, Goal(agreement=0.9))
    assert [one.subject for one in promised] == ["all cases", "those that all features decide for 0"]
    assert kept(runs, threshold)[0][1] >= 0.9
    with pytest.raises(InvalidInput, match=rf"decide for 1 needs at least 22 of them.*there are {n_rare}"):
        calibrated(runs, Goal(agreement=0.9, per_class=True))


def test_the_few_rows_of_a_class_that_is_not_promised_are_heeded():
    shares, fresh = np.array([1 - SHARE, SHARE]), rare(np.random.default_rng(1000), 100_000)
    judged, found = fresh.judged_by_class(shares), []
    for seed in range(100):
        runs = rare(np.random.default_rng(seed), 200).judged_by_class(shares)
        threshold, promised = calibrated(runs, Goal(agreement=0.9))
        assert len(promised) == 2
        found.append(kept(judged, threshold)[0][1])
    assert np.mean(found) > 0.89
    assert np.mean(np.array(found) >= 0.9) > 0.4


def test_exact_intervals():
    assert exact_interval(0, 0, 0.9) == (0.0, 1.0)
    low, high = exact_interval(0, 28, 0.9)
    assert high == 1.0
    assert low == pytest.approx(0.05 ** (1 / 28))
    low, high = exact_interval(5, 10, 0.9)
    assert low == pytest.approx(1 - high)


@pytest.fixture(scope="module")
def unbalanced():
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.06).astype(int)
    X = pd.DataFrame(rng.normal(size=(3000, 5)) + np.outer(y, [2.5, 1.5, 1.0, 0.0, 0.0]), columns=list("abcde"))
    named = np.where(y == 1, "disease", "healthy")
    model = LogisticRegression().fit(X[:600], named[:600])
    selector = DynamicFeatureSelector(model, random_state=0, progress=False).fit(X[:600], named[:600])
    return selector, X, named


def test_the_selector_finds_the_rare_class_and_says_what_it_keeps(unbalanced):
    selector, X, y = unbalanced
    cal, new = slice(600, 2000), slice(2000, 3000)
    full = selector.predict(X[new])
    with pytest.warns(UserWarning, match="far below the 90% asked for"):
        overall = selector.calibrate_stop(X[cal], y[cal], agreement=0.9, per_class=False)
    run = selector.acquire(X[new], stop=overall)
    assert np.mean(run.predict()[full == "disease"] == "disease") < 0.8
    stop = selector.calibrate_stop(X[cal], y[cal], agreement=0.9)
    run = selector.acquire(X[new], stop=stop)
    assert np.mean(run.predict()[full == "disease"] == "disease") > 0.8
    table = stop.by_class.set_index("label")
    assert table.loc["disease", "promised"]
    assert table.loc["disease", "kept"] > 0.9
    assert table.loc["disease", "low"] < table.loc["disease", "kept"] < table.loc["disease", "high"]
    assert table.loc["disease", "recall"] <= table.loc["disease", "recall_of_everything"] + 0.1
    assert "those that all features decide for 'disease'" in stop.promise
    assert "kept by class: 'disease'" in repr(stop)


def test_recall_of_a_class_is_a_goal_of_its_own(unbalanced):
    selector, X, y = unbalanced
    stop = selector.calibrate_stop(X[600:2000], y[600:2000], recall={"disease": 0.9})
    run, truth = selector.acquire(X[2000:], stop=stop), y[2000:]
    found = (truth == "disease") & (selector.predict(X[2000:]) == "disease")
    assert np.mean(run.predict()[found] == "disease") > 0.8
    assert "at most 10% of the cases of 'disease' that all features find are no longer found" in stop.promise
    for wrong, message in (
        ({}, "recall must be a dict"),
        ({"disease": 1.5}, "recall must be"),
        ({"flu": 0.9}, "'flu'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            selector.calibrate_stop(X[600:2000], y[600:2000], recall=wrong)
    with pytest.raises(InvalidInput, match="recall needs the labels y_cal"):
        selector.calibrate_stop(X[600:2000], recall={"disease": 0.9})


def test_subgroups_each_get_the_promise(unbalanced):
    selector, X, y = unbalanced
    groups = np.where(np.arange(1400) % 3 == 0, "north", "south")
    stop = selector.calibrate_stop(X[600:2000], y[600:2000], agreement=0.9, subgroups=groups)
    assert "of those of group 'north', and of those of group 'south'" in stop.promise
    few = np.where(np.arange(1400) < 5, "few", "rest")
    with pytest.raises(InvalidInput, match="group 'few' needs at least 22 of them"):
        selector.calibrate_stop(X[600:2000], y[600:2000], agreement=0.9, subgroups=few)
    with pytest.raises(InvalidInput, match="one group per row of X_cal, 1400 in all"):
        selector.calibrate_stop(X[600:2000], agreement=0.9, subgroups=groups[1:])


def test_batches_say_for_which_cases_the_promise_does_not_hold(unbalanced):
    selector, X, y = unbalanced
    selector.calibrate_stop(X[600:2000], y[600:2000], agreement=0.9)
    run = selector.acquire(X[2000:2010], stop="calibrated")
    assert run.departures == [""] * 10
    assert run.to_frame()["guaranteed"].all()
    known = np.zeros((10, 5), dtype=bool)
    known[:4, 2] = True
    with pytest.warns(UserWarning, match=r"does not hold for 4 of 10 cases .*'c' was known from the start"):
        run = selector.acquire(X[2000:2010], stop="calibrated", known=known)
    assert [bool(why) for why in run.departures] == [True] * 4 + [False] * 6
    with pytest.warns(UserWarning, match=r"10 of 10 cases .*'a', never missing at calibration, is unavailable"):
        selector.acquire(X[2000:2010], stop="calibrated", available=[False, *[True] * 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # odd cases are among those of every hospital: no reason to warn of the batch
        odd = X[2000:2003].copy()
        odd.iloc[1] = 1e6
        run = selector.acquire(odd, stop="calibrated")
    assert [bool(why) for why in run.departures] == [False, True, False]
    assert "outside of everything seen in training" in run.departures[1]
    frame = run.to_frame()
    assert (frame["departure"][frame["case"] == odd.index[1]] == run.departures[1]).all()


def test_sessions_and_batches_void_the_promise_alike():
    """Also for cases no cell of which is odd, but which are unlike all training rows as a whole."""
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, 700))
    X = pd.DataFrame({"a": a, "b": a + 0.1 * rng.normal(size=700), "c": c})
    y = 10 * (a - X["b"]) + c > 0  # which takes both
    selector = DynamicFeatureSelector(LogisticRegression(C=100), epistemic=None, random_state=0, progress=False)
    selector.fit(X[:300], y[:300]).calibrate_stop(X[300:650], agreement=0.97)
    cases = X[650:].copy()
    cases.iloc[::5] = [1.5, -1.5, 0.0]  # each value is usual, but a and b have always been alike
    departures = list(selector.acquire(cases, stop="calibrated").departures or ())
    void = np.array([bool(why) for why in departures])
    assert void[::5].all()
    assert void.sum() < 14
    for r in range(12):
        session = selector.start(stop="calibrated")
        while (suggestion := session.suggest()) is not None:
            session.answer(suggestion.feature, cases.iloc[r][suggestion.feature])
        report = session.report()
        assert report["guaranteed"] is not bool(void[r])
        if void[r]:
            assert report["outside"] == []
            assert departures[r] in str(report["guarantee"])
            assert report["prediction_set"] is None
            assert "Guaranteed" not in session.why()["text"]
