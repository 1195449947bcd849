"""The promise that is watched: fair bets, alarms where the promise breaks, intervals that hold at all times."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.stopping import StopMonitor
from askwise.stopping.monitor import EVERY, WORSE, Watched, Wealth, confidence_sequence


def test_capital_is_fair_where_the_promise_is_just_kept():
    """Over all outcomes of a few cases, at the promised share of losses, the expected capital stays 1."""
    risk, expected = 0.3, 0.0
    for outcome in itertools.product([False, True], repeat=6):
        one = Watched(("all", "all cases"), risk, True, 0.1)
        for lost in outcome:
            one.update(lost)
        expected += np.exp(one.wealth.log) * risk ** sum(outcome) * (1 - risk) ** (6 - sum(outcome))
    assert expected == pytest.approx(1)


def test_capital_waits_for_later_bets():
    wealth = Wealth(1)
    for _ in range(EVERY):
        wealth.bet(np.array([-1.0]))
    assert np.exp(wealth.log) == pytest.approx(0.5, abs=1e-6)  # the half that began is lost, the rest waits
    wealth.bet(np.array([np.log(2)]))
    assert np.exp(wealth.log) == pytest.approx(2 / 6 + 1 / 3, abs=1e-6)


def test_no_alarm_without_a_change_and_one_after_it():
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(60):
        monitor = StopMonitor(0.05, 0.1)
        monitor.update(rng.random(400) < 0.05)
        false += bool(monitor.alarms)
    assert false <= 6
    monitor.update(rng.random(400) < 0.2)
    assert "The promise is broken for all cases" in monitor.alarms[0]
    assert monitor.advice.startswith("Recalibrate")
    assert monitor.report()["rows"][0]["alarm"]


def test_an_alarm_stays_and_cases_may_come_in_any_portions():
    losses = np.random.default_rng(1).random(500) < 0.15
    at_once, one_by_one = StopMonitor(0.05), StopMonitor(0.05)
    at_once.update(losses)
    for lost in losses:
        one_by_one.update(lost)
    assert at_once.report() == one_by_one.report()
    at_once.update(np.zeros(2000, dtype=bool))
    assert at_once.alarms


def test_a_promised_class_gives_its_own_alarm_and_another_does_not():
    monitor = StopMonitor(0.1, 0.1, classes=["ill"], subgroups=["north"])
    ill = np.arange(600) % 6 == 0
    monitor.update(ill, decided=np.where(ill, "ill", "well"), subgroup=np.where(ill, "south", "north"))
    table = monitor.to_frame().set_index("name")
    assert table.loc["ill", "alarm"]
    assert table["promised"].isna().to_dict() == {"all cases": False, "ill": False, "north": False} | dict.fromkeys(
        ["well", "south"], True
    )
    assert table.loc["south", "lost"] == 100
    assert not table.loc["south", "alarm"]  # nothing was promised for it
    assert not table.loc["north", "alarm"]
    assert "class 'ill'" in " ".join(monitor.alarms)


def test_novel_cases_are_noticed_and_usual_ones_are_not():
    rng = np.random.default_rng(2)
    usual = rng.exponential(size=300)
    same, apart = (StopMonitor(0.05, usual_novelty=usual) for _ in range(2))
    same.update(np.zeros(500, dtype=bool), novelty=rng.exponential(size=500))
    apart.update(np.zeros(500, dtype=bool), novelty=2 * rng.exponential(size=500))
    assert not same.alarms
    assert "not like those of the calibration" in apart.alarms[0]
    assert "not known to be broken" in apart.advice
    ties = StopMonitor(0.05, usual_novelty=np.zeros(100))
    ties.update(np.zeros(300, dtype=bool), novelty=np.zeros(300))
    assert not ties.alarms


def test_the_confidence_sequence_holds_at_all_times():
    rng = np.random.default_rng(3)
    left = 0
    for _ in range(100):
        losses = (rng.random(300) < 0.1).cumsum()
        left += any(
            not low <= 0.1 <= high
            for low, high in (confidence_sequence(int(losses[t]), t + 1, 0.9) for t in range(9, 300, 10))
        )
    assert left <= 10
    assert confidence_sequence(0, 0, 0.9) == (0.0, 1.0)
    assert confidence_sequence(0, 50, 0.9)[0] == 0
    assert confidence_sequence(50, 50, 0.9)[1] == 1


def test_the_monitor_of_a_stop_knows_its_promise():
    X, y = load_wine(return_X_y=True, as_frame=True)
    options: dict[str, Any] = {"random_state": 0, "calibration": None, "epistemic": None, "progress": False}
    selector = DynamicFeatureSelector(GaussianNB(), **options).fit(X[::2], y[::2])
    groups = np.where(np.arange(89) % 2, "odd", "even")
    stop = selector.calibrate_stop(X[1::2], agreement=0.9, subgroups=groups)
    monitor = stop.monitor()
    assert monitor.risk == pytest.approx(0.1)
    assert monitor.subgroups == ["even", "odd"]
    assert monitor.alpha == pytest.approx(0.1)
    assert monitor.n_usual == 89
    assert_allclose(np.sort(selector.novelty_of_rows(X[1::2])), monitor.seen_novelty)
    monitor.update([False, True], decided=[1, 1], subgroup=["even", "odd"])
    assert [row["cases"] for row in monitor.report()["rows"]] == [2, 2, 1, 1]
    with pytest.raises(InvalidInput, match="promises an agreement"):
        selector.calibrate_stop(X[1::2], average_price=3).monitor()


def test_bad_input_is_refused():
    for risk in (0, 1, "much"):
        with pytest.raises(InvalidInput, match="risk"):
            StopMonitor(risk)  # type: ignore[arg-type]
    monitor = StopMonitor(0.05)
    for lost in ([0.5], [2], ["yes"]):
        with pytest.raises(InvalidInput, match="lost must be True or False"):
            monitor.update(lost)
    with pytest.raises(InvalidInput, match="decided must hold one value per case, 2; got 1"):
        monitor.update([True, False], decided=["a"])
    assert len(WORSE) == monitor.overall.wealth.logs.shape[1]


@pytest.mark.parametrize(("losses", "cases"), [(0, 20_000), (1, 200_000), (20_000, 20_000), (10**9 - 1, 10**9), (7, 8)])
def test_an_interval_has_two_ends_around_the_share_however_many_cases(losses, cases):
    low, high = confidence_sequence(losses, cases, 0.9)
    assert 0 <= low <= losses / cases <= high <= 1
    assert low < high
    assert_allclose(confidence_sequence(cases - losses, cases, 0.9), (1 - high, 1 - low), atol=1e-12)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lost": [[True, False], [False, False]]}, "lost must be"),
        ({"lost": [True, False], "novelty": [0.1, np.nan]}, "novelty must be a number"),
        ({"lost": [True, False], "novelty": [0.1, "x"]}, "novelty must be a number"),
        ({"lost": [True, False], "novelty": [0.1, True]}, "novelty must be a number"),
        ({"lost": [True, False], "decided": ["a", np.nan]}, "decided must be text"),
        ({"lost": [True, False], "decided": ["a", ["b"]]}, "decided must be text"),
        ({"lost": [True, False], "subgroup": ["a", {}]}, "subgroup must be text"),
    ],
)
def test_a_monitor_refuses_cases_whole(given, said):
    monitor = StopMonitor(0.1, usual_novelty=np.arange(5.0))
    with pytest.raises(InvalidInput, match=said):
        monitor.update(**given)
    assert monitor.overall.cases == monitor.strangeness.n_cases == len(monitor.parts) == 0


def test_what_is_not_known_of_a_case_is_none():
    monitor = StopMonitor(0.1, usual_novelty=np.arange(5.0))
    monitor.update([True, False], decided=["a", None], novelty=[None, 2])
    assert [name for _, name in monitor.parts] == ["a"]
    assert monitor.strangeness.n_cases == 1


def test_promised_classes_and_subgroups_have_equal_parts_of_the_error():
    """Whoever comes first has no more of it, and all together no more than there is."""
    monitor = StopMonitor(0.1, 0.1, classes=["a", "b"], subgroups=["x", "y"])
    monitor.update([False] * 3, decided=["b", "a", "c"], subgroup=["y", "x", "y"])
    rows = monitor.report()["rows"]
    assert [row["promised"] for row in rows if row["name"] == "c"] == [None]
    parts = [row["needed"] for row in rows if row["of"] != "all" and row["promised"] is not None]
    assert len(parts) == 4
    assert sum(1 / needed for needed in parts) == pytest.approx(0.02)
    assert len(set(parts)) == 1


@pytest.mark.parametrize("given", [None, "ill", 3])
def test_classes_and_subgroups_are_lists(given):
    for name in ("classes", "subgroups"):
        with pytest.raises(InvalidInput, match=f"StopMonitor: {name} must be a list of labels"):
            StopMonitor(0.1, **{name: given})
