"""The maths of the calibrated stop, on numbers that can be checked by hand."""

from dataclasses import replace
from math import comb, log
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from askwise import InvalidInput
from askwise.stopping.calibrated_stop import Goal, calibrated_threshold
from askwise.stopping.guarantee import (
    FullRuns,
    early_start,
    last_passed,
    p_values,
    price_thresholds,
    rows_needed,
    threshold_sequence,
)
from askwise.stopping.prediction_sets import PredictionSets, conformal_quantile
from askwise.stopping.savings import candidate_budgets, prices_at, savings_table


def overall_threshold(runs, goal, early_share=None):
    """The threshold for the promise about all cases."""
    required = replace(goal, per_class=False).requirements(runs, np.arange(2))
    return calibrated_threshold(runs, goal, required, early_share)[0]


def runs_of(agreement, decision, full, spent=None, n_steps=None, labels=None) -> FullRuns:
    agreement, decision = np.array(agreement, dtype=float), np.array(decision)
    n, width = agreement.shape
    prices = np.tile(np.arange(width, dtype=float), (n, 1)) if spent is None else np.array(spent, dtype=float)
    steps = np.full(n, width - 1) if n_steps is None else np.array(n_steps)
    return FullRuns(agreement, decision, prices, steps, np.array(full), None if labels is None else np.array(labels))


def drawn(n, rng, noise=1.0) -> FullRuns:
    """Cases whose chance of a changed decision at the first state is 1 - agreement; the second state is final.

    1 - agreement is u^3 / 2 with u uniform: u <= c = (2 (1 - t))^(1/3) stops early, and c^4 / 8 of all cases lose.
    """
    agreement = np.column_stack([1 - rng.random(n) ** 3 / 2, np.ones(n)])
    changes = rng.random(n) < noise * (1 - agreement[:, 0])
    return runs_of(agreement, np.column_stack([changes, np.zeros(n)]).astype(int), np.zeros(n, dtype=int))


def exact_shares(threshold):
    """Share of the cases of `drawn` that stop early, and share that loses."""
    stopping = (2 * (1 - min(max(threshold, 0.5), 1.0))) ** (1 / 3)
    return stopping, stopping**4 / 8


def test_binomial_tails_are_those_added_up_by_hand():
    for losses, n, risk in ((0, 45, 0.05), (3, 150, 0.05), (7, 150, 0.02), (2, 2, 0.5)):
        tail = sum(comb(n, k) * risk**k * (1 - risk) ** (n - k) for k in range(losses + 1))
        assert_allclose(p_values(np.array([losses]), n, risk), [tail])
    assert p_values(np.array([0]), np.array([0]), 0.05).tolist() == [1.0]  # nobody stopped early: nothing was shown


def test_rows_needed_are_the_fewest_that_can_show_anything():
    assert rows_needed(0.05, 0.9) == 45
    assert rows_needed(0.02, 0.9) == 114
    assert rows_needed(0.5, 0.75) == 2
    for risk in (0.01, 0.02, 0.05, 0.1, 0.3):
        for confidence in (0.8, 0.9, 0.99):
            n = rows_needed(risk, confidence)
            assert n == int(np.ceil(log(1 - confidence) / log(1 - risk) - 1e-9))
            assert (1 - risk) ** n <= 1 - confidence + 1e-12 < (1 - risk) ** (n - 1)


def test_testing_ends_at_the_first_failure():
    assert last_passed(np.array([0.01, 0.09, 0.2, 0.01]), 0.9) == 1
    assert last_passed(np.array([0.01, 0.02]), 0.9) == 1
    assert last_passed(np.array([0.2, 0.01]), 0.9) is None


def test_thresholds_fall_from_never_to_always():
    thresholds = threshold_sequence()
    assert thresholds[0] == np.inf
    assert thresholds[1] == 1 - 1e-6
    assert thresholds[-1] == 0
    assert (np.diff(thresholds[1:]) < 0).all()


def test_a_case_stops_at_the_first_state_that_reaches_the_threshold():
    runs = runs_of(
        [[0.2, 0.9, 0.4, 1.0], [0.5, 0.5, 0.5, 0.5], [-np.inf, 0.3, 0.6, 0.6]],
        np.zeros((3, 4), dtype=int),
        [0, 0, 0],
        n_steps=[3, 3, 2],
    )
    assert runs.stops_at(np.array([np.inf, 0.9, 0.45, 0.0])).T.tolist() == [[3, 3, 2], [1, 3, 2], [1, 0, 2], [0, 0, 1]]
    steps = runs.stops_at(threshold_sequence())
    assert (np.diff(steps, axis=1) <= 0).all()  # a lower threshold never buys more
    assert runs.early(runs.stops_at(np.array([0.9]))).T.tolist() == [[True, False, False]]
    assert runs.stops_within(np.array([0.0, 1.0, 2.5, 9.0])).T.tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 2]]


def test_losses_are_changed_decisions_or_decisions_made_worse():
    runs = runs_of(np.ones((4, 1)), [[0], [1], [1], [2]], [0, 0, 1, 1], labels=[0, 0, 1, 2])
    assert runs.changed[:, 0].tolist() == [False, True, False, True]
    assert runs.worse[:, 0].tolist() == [False, True, False, False]  # the last stop is right and the full row wrong


def test_the_threshold_is_the_last_that_passes():
    # 100 cases: the first state of case i has agreement i / 100; the 20 least agreeing ones would change.
    n = 100
    agreement = np.column_stack([np.arange(n) / n, np.ones(n)])
    decision = np.column_stack([np.arange(n) < 20, np.zeros(n)]).astype(int)
    runs = runs_of(agreement, decision, np.zeros(n, dtype=int))
    allowed = max(k for k in range(n) if p_values(np.array([k]), n, 0.05)[0] <= 0.1)  # 1 loss is 3.7 %, 2 are 11.8 %
    assert allowed == 1
    found = overall_threshold(runs, Goal(agreement=0.95))
    lost = (agreement[:, 0] >= found) & (np.arange(n) < 20)
    assert lost.sum() <= 1
    thresholds = threshold_sequence()
    following = thresholds[thresholds < found].max()
    assert ((agreement[:, 0] >= following) & (np.arange(n) < 20)).sum() > 1


def test_a_stricter_promise_never_buys_less():
    runs = drawn(400, np.random.default_rng(0))
    for goals in (
        [Goal(agreement=level) for level in (0.8, 0.9, 0.95, 0.98)],
        [Goal(agreement=0.9, confidence=level) for level in (0.5, 0.8, 0.9, 0.99)],
    ):
        found = [overall_threshold(runs, goal) for goal in goals]
        assert found == sorted(found)
        assert found[0] < found[-1]


def test_the_promise_is_kept_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    for goal in (Goal(agreement=0.9), Goal(agreement=0.9, conditional=True)):
        kept, prices = [], []
        for _ in range(300):
            runs = drawn(200, rng)
            others = drawn(500, rng)
            share = others.early(others.stops_at(threshold_sequence())).mean(axis=0)
            early, lost = exact_shares(overall_threshold(runs, goal, share))
            kept.append(lost <= (0.1 * early if goal.conditional else 0.1) + 1e-12)
            prices.append(1 - early)
        assert np.mean(kept) >= 0.86
        assert np.mean(prices) < 0.4  # never stopping early would keep it, too


def test_without_the_binomial_margin_the_promise_would_be_broken():
    """The test above can fail: a rule with at most 10 % losses on the calibration rows breaks it far more often."""
    rng = np.random.default_rng(1)
    kept = []
    for _ in range(200):
        runs = drawn(200, rng)
        thresholds = threshold_sequence()
        lost = np.take_along_axis(runs.changed, runs.stops_at(thresholds), axis=1).mean(axis=0)
        t = thresholds[last_passed(np.where(lost <= 0.1, 0.0, 1.0), 0.9) or 0]
        kept.append(exact_shares(t)[1] <= 0.1)
    assert np.mean(kept) < 0.8


def test_conditional_tests_start_where_enough_cases_stop_early():
    share = np.array([0.0, 0.1, 0.3, 0.5, 1.0])
    assert early_start(share, n_rows=300, needed=45) == 2  # 90 of 300 >= 1.5 * 45
    assert early_start(share, n_rows=60, needed=45) == 4  # (45 + 60) / 2 = 52.5 of 60
    assert early_start(share[:2], n_rows=60, needed=45) == 2  # never enough: no threshold is tested
    runs = drawn(100, np.random.default_rng(0), noise=0)
    never = np.zeros(len(threshold_sequence()))
    assert overall_threshold(runs, Goal(agreement=0.9, conditional=True), never) == np.inf


def test_average_prices_of_all_thresholds():
    runs = runs_of(
        [[0.2, 0.9, 1.0], [-np.inf, 0.6, 1.0]], np.zeros((2, 3), dtype=int), [0, 0], spent=[[0, 2, 5], [0, 0, 4]]
    )
    thresholds, prices = price_thresholds(runs)
    steps = runs.stops_at(thresholds)
    assert_allclose(prices, np.take_along_axis(runs.spent, steps, axis=1).mean(axis=0))
    assert prices.tolist() == [0, 1, 3, 4.5]
    for asked, reached in ((0.4, 0), (0.6, 1), (2.5, 3), (4.5, 4.5)):
        threshold = overall_threshold(runs, Goal(average_price=asked))
        assert np.take_along_axis(runs.spent, runs.stops_at(np.array([threshold])), axis=1).mean() == reached
    with pytest.raises(InvalidInput, match=r"average_price=5.*cost 4.5 on average"):
        overall_threshold(runs, Goal(average_price=5))


def test_a_level_that_even_everything_misses_is_refused():
    runs = runs_of(np.ones((100, 1)), np.ones((100, 1), dtype=int), np.zeros(100, dtype=int))
    with pytest.raises(InvalidInput, match=r"even without an early stop 100 of 100 rows"):
        overall_threshold(runs, Goal(agreement=0.95))


def test_conformal_quantiles_count_the_new_case():
    scores = np.arange(1, 20) / 20
    assert conformal_quantile(scores, 0.9) == scores[17]  # ceil(20 * 0.9) = 18th
    assert conformal_quantile(scores[:8], 0.9) == np.inf  # ceil(9 * 0.9) = 9 of 8
    assert conformal_quantile(scores[:0], 0.9) == np.inf


def test_prediction_sets_cover_open_and_stopped_cases():
    rng = np.random.default_rng(0)
    hits: dict[bool, list[Any]] = {False: [], True: []}
    for _ in range(60):
        # Overconfident predictions, better after a purchase; class 2 is the hardest. Sure cases stop at once.
        labels = rng.integers(0, 3, 600)
        sharpness = np.array([1.0, 1.5])[None, :, None] * np.where(labels == 2, 0.3, 1.0)[:, None, None]
        logits = 3 * (rng.normal(size=(600, 2, 3)) + sharpness * np.eye(3)[labels][:, None])
        proba = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
        stops = np.where(proba[:, 0].max(axis=1) > 0.95, 0, 1)
        truth, new, stopping = labels[300:], np.arange(600) >= 300, stops[300:]
        for by_class, found in hits.items():
            sets = PredictionSets(proba[~new], labels[~new], stops[~new], 0.9, by_class)
            first, last = proba[new, 0], proba[new, stopping]
            at_stop = sets.members(last, 0, stopped=True)[np.arange(300), truth]
            going = sets.members(first, 0, stopped=False)[np.arange(300), truth][stopping > 0]
            hard = truth == 2
            found.append([at_stop.mean(), going.mean(), at_stop[hard].mean(), going[hard[stopping > 0]].mean()])
    everyone, by_class = np.mean(hits[False], axis=0), np.mean(hits[True], axis=0)
    assert_allclose(everyone[:2], 0.9, atol=0.02)
    assert everyone[2] < 0.85  # the hardest class pays for the others,
    assert (by_class > 0.88).all()  # unless each class has its own limit
    assert sets.members(proba[:2, 0], step=1, stopped=False).all()  # no row was open then: all classes


def test_the_lowest_price_at_which_enough_is_kept():
    kept = np.array([[0.5, 0.9, 0.85, 1.0], [0.5, 0.6, 0.7, 0.8]])
    price = np.array([[0.0, 1.0, 2.0, 3.0]] * 2)
    assert prices_at(kept, price, 0.9).tolist()[0] == 1.0
    assert_array_equal(prices_at(kept, price, 0.95), [3.0, np.nan])


def test_savings_of_a_table_worked_out_by_hand():
    # Two of four cases are settled at once, the others after both purchases.
    agreement = [[1, 1, 1], [1, 1, 1], [0.2, 0.3, 1], [0.2, 0.3, 1]]
    decision = [[0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 0]]
    runs = runs_of(agreement, decision, [0] * 4, spent=[[0, 1, 4]] * 4)
    found = savings_table(runs, None, [0.5, 1.0]).set_index(["level", "way"])
    assert found.loc[(0.5, "stop per case"), "price"] == 0
    assert found.loc[(1.0, "stop per case"), "price"] == 2
    assert found.loc[(1.0, "stop per case"), "share"] == 0.5
    assert found.loc[(1.0, "fixed budget"), "price"] == 4
    assert (found["low"] <= found["price"]).all()
    assert (found["high"] >= found["price"]).all()
    assert candidate_budgets(runs).tolist() == [0, 1, 4]
    assert "net_benefit" not in found
    # Deciding for 1 is expected to cost 10 more than for 0: a stop that keeps all saves it for half of the cases.
    expected = np.array([[1.0, 11.0]] * 4)
    benefit = savings_table(runs, None, [0.5, 1.0], expected=expected).set_index(["level", "way"])["net_benefit"]
    assert benefit[0.5, "stop per case"] == 0
    assert benefit[1.0, "stop per case"] == 10 / 2 - 2
    assert benefit[1.0, "fixed budget"] == 10 / 2 - 4


def test_goals_that_make_no_sense():
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "exactly one of"),
        ({"agreement": 0.9, "average_price": 3}, "exactly one of"),
        ({"agreement": 1.0}, "agreement must be between 0 and 1"),
        ({"agreement": "high"}, "agreement must be between 0 and 1"),
        ({"accuracy_gap": 0}, "accuracy_gap must be between 0 and 1"),
        ({"agreement": 0.9, "confidence": 1.2}, "confidence must be between 0 and 1"),
        ({"average_price": -1}, "average_price must be a finite number > 0"),
        ({"average_price": 3, "conditional": True}, "conditional=True is for agreement"),
    ]
    for given, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            Goal(**given)
