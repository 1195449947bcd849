"""Verdicts on numbers set by hand: what holds, what does not, what is practically equal, and what would decide."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from askwise_bench.paper import evidence, findings
from askwise_bench.paper.claims import Claim, Term, judged
from askwise_bench.paper.findings import (
    EQUAL,
    FAILS,
    HOLDS,
    NATS,
    NO_SCALE,
    RATE,
    UNDECIDED,
    Finding,
    seeds_to_decide,
    together,
)
from askwise_bench.report.rows import Quantity

POINTS = RATE.scaled(100)


def finding(*samples, scale=NO_SCALE, **more):
    return Finding("x", {"wine": np.array(samples, dtype=float)}, scale, **more)


def test_several_tables_add_their_variances():
    """Two tables of one spread: the variance of their mean is half of each, with the degrees of freedom of both."""
    samples = np.array([1.0, 2.0, 3.0, 4.0])
    found = Finding("x", {"wine": samples, "heart": samples + 10})
    half = stats.t.ppf(0.975, 6) * np.sqrt(samples.var(ddof=1) * (1 / 4 + 0.25) / 2)
    assert found.mean == pytest.approx(7.5)
    assert found.interval() == pytest.approx((7.5 - half, 7.5 + half))


def test_tables_with_too_few_seeds_are_left_out_where_others_have_enough():
    by_seed = pd.Series({("wine", k): 1.0 + k for k in range(3)} | {("heart", 0): 9.0})
    found = Finding.over("x", by_seed.rename_axis(["data", "seed"]))
    assert list(found.samples) == ["wine"]
    alone = Finding.over("x", by_seed[["heart"]].rename_axis(["data", "seed"]))
    assert (alone.seeds, alone.verdict()) == (1, UNDECIDED)


def test_no_spread_is_no_proof():
    assert finding(0.5, 0.5, 0.5).verdict() == UNDECIDED
    assert finding(-0.375, -0.375, -0.375).verdict() == UNDECIDED
    assert "agree to the last digit" in finding(0.5, 0.5, 0.5).bound
    assert finding(0.5, 0.5, 0.51).verdict() == HOLDS


def test_practically_equal_is_an_interval_within_the_band():
    for samples, scale, verdict in [
        ((0.2, -0.2, 0.1, -0.1), POINTS, EQUAL),
        ((0.2, -0.2, 0.1, -0.1), NO_SCALE, UNDECIDED),
        ((0.9, -0.9, 1.1, -1.1), POINTS, UNDECIDED),
        ((0.5, 0.6, 0.4, 0.5), POINTS, HOLDS),  # small, but not none
        ((-0.5, -0.6, -0.4, -0.5), POINTS, FAILS),
        ((0.004, -0.004, 0.001, -0.001), NATS, EQUAL),
        ((0.002, -0.002, 0.001, -0.001), RATE, EQUAL),
    ]:
        assert finding(*samples, scale=scale).verdict() == verdict, samples


def test_the_band_is_two_one_sided_tests():
    """At its edge both tests have p = .025, with the correction for shared rows."""
    samples = np.array([0.1, -0.3, 0.2, 0.3, -0.1])
    low, high = finding(*samples).interval()
    edge = max(-low, high)
    wider = np.sqrt(samples.var(ddof=1) * (1 / 5 + 0.25))
    p_values = [stats.t.sf((edge - sign * samples.mean()) / wider, 4) for sign in (-1, 1)]
    assert max(p_values) == pytest.approx(0.025)
    assert finding(*samples, scale=RATE.scaled(edge * 100.1)).verdict() == EQUAL
    assert finding(*samples, scale=RATE.scaled(edge * 99.9)).verdict() == UNDECIDED


def test_a_difference_has_the_band_of_its_metric_and_a_threshold_has_none():
    accuracy, error, spread = (Quantity("s", metric) for metric in ("accuracy", "ece", "epistemic"))
    assert Term("x", [(100, "a", accuracy), (-100, "b", accuracy)]).scale == POINTS
    assert Term("x", [(1, "a", error), (-1, "b", error)]).scale == RATE
    assert Term("x", [(1, "a", spread), (-1, "b", spread)]).scale == NO_SCALE
    assert Term("x", [(100, "a", accuracy), (-100, "b", accuracy)], 4).scale == NO_SCALE
    assert Term("x", [(-1, "a", error)], 0.03).scale == NO_SCALE


def test_a_sentence_of_several():
    for verdicts, verdict in [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, EQUAL], EQUAL),
        ([EQUAL, UNDECIDED], UNDECIDED),
        ([EQUAL, FAILS, UNDECIDED], FAILS),
        ([HOLDS, "not measured"], UNDECIDED),
    ]:
        assert together(verdicts) == verdict


def test_seeds_that_would_decide():
    assert seeds_to_decide([finding(1.0, 1.1, 0.9)]) == 3
    needed = seeds_to_decide([finding(1.0, 3.0, 1.5, -0.2)])
    assert needed is not None
    assert needed > 4
    open_one = finding(1.0, 3.0, 1.5, -0.2)
    assert open_one.verdict(1, needed) == HOLDS
    assert open_one.verdict(1, needed - 1) == UNDECIDED


def test_the_floor_of_the_correction_is_said():
    """A mean of a tenth of the spread: with ever more seeds the interval stays as wide as one standard deviation."""
    hopeless = finding(-1.0, 1.0, 0.3, 0.1)
    assert seeds_to_decide([hopeless]) is None
    assert hopeless.interval(1, 1000)[0] == pytest.approx(
        0.1 - 1.96 * 0.5 * np.std([-1, 1, 0.3, 0.1], ddof=1), rel=0.01
    )
    said = judged(Claim("w: c", lambda rows: []), [hopeless])
    assert (said.verdict, said.still_open.endswith("no number of seeds would decide it")) == (UNDECIDED, True)
    assert "between " in said.still_open


def test_what_is_open_is_said_in_the_unit_of_the_number():
    said = judged(Claim("w: c", lambda rows: []), [finding(-1.0, 1.0, 0.5, scale=POINTS)]).still_open
    assert said.startswith("x: at most 3.")
    assert "points either way" in said
    few = judged(Claim("w: c", lambda rows: []), [finding(1.0)]).still_open
    assert few == "x: nothing yet: 1 seed; 3 seeds at least"
    gaps = judged(Claim("w: c", lambda rows: []), [finding(1.0, 1.1, 0.9), Finding("y")]).still_open
    assert gaps == "the missing comparisons come first"


def test_the_weakest_number_is_the_one_that_decides():
    claim = Claim("w: c", lambda rows: [])
    wide = Finding("wide", {"wine": np.array([-3.0, 3.0, 1.0])})
    low = Finding("low", {"wine": np.array([-1.0, -1.1, -0.9])})
    assert judged(claim, [wide, low]).weakest.startswith("low")
    assert judged(claim, [wide, finding(1.0, 1.1, 0.9)]).weakest.startswith("wide")


def test_formulas_have_no_seeds():
    exact = Finding("x", exact=0.13)
    assert (exact.verdict(), str(exact)) == (HOLDS, "x +0.13 (exact)")
    assert Finding("x", exact=-0.2).verdict() == FAILS


def test_the_ratio_of_test_to_training_rows_is_that_of_the_data():
    lines = [("mnist", "training_rows", 10_000), ("mnist", "test_rows", 1000), ("wine", "test_rows", 36)]
    rows = pd.DataFrame(lines, columns=["data", "metric", "value"])
    assert findings.test_to_training(rows) == {"mnist": 0.1}
    tight, loose = finding(1.0, 2.0, 3.0, ratios={"wine": 0.1}), finding(1.0, 2.0, 3.0)
    assert tight.interval()[0] > loose.interval()[0]


def test_a_mean_of_methods_is_over_seeds_that_all_of_them_have():
    index = [("wine", "a", 0), ("wine", "b", 0), ("wine", "a", 1), ("heart", "a", 1)]
    by_level = pd.DataFrame({1: 0.5}, index=pd.MultiIndex.from_tuples(index, names=["data", "method", "seed"]))
    assert evidence._with_all_methods(by_level).index.tolist() == [index[0], index[1], index[3]]
