import doctest
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import askwise.metrics
from askwise.errors import InvalidInput
from askwise.metrics import (
    aurc,
    excess_aurc,
    expected_calibration_error,
    failure_auroc,
    rejection_curve,
    risk_at_coverage,
)

SCORES = [aurc, excess_aurc, failure_auroc]

# Outcomes with many ties: (correct, uncertainty) of each row.
outcomes = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=30)


def columns(rows):
    correct, uncertainty = zip(*rows, strict=True)
    return np.array(correct), np.array(uncertainty, dtype=float)


def binary(confidence):
    """Predictions of class 0 with these confidences, (n, 2)."""
    confidence = np.asarray(confidence, dtype=float)
    return np.stack([confidence, 1 - confidence], axis=1)


def test_doctests():
    result = doctest.testmod(askwise.metrics)
    assert result.attempted >= 6
    assert result.failed == 0


# Calibration.


def test_calibrated_predictions_have_no_calibration_error():
    # 75 % confidence and 3 of 4 right, 60 % and 3 of 5, 100 % and all.
    proba = binary(np.repeat([0.75, 0.6, 1.0], [4, 5, 2]))
    y = np.repeat([0, 1, 0, 1, 0], [3, 1, 3, 2, 2])
    assert expected_calibration_error(y, proba) == pytest.approx(0)


def test_a_constant_predictor_is_off_by_its_overconfidence():
    for n_bins in [1, 2, 15, 100]:
        y = np.array([0] * 6 + [1] * 4)
        assert expected_calibration_error(y, binary([1.0] * 10), n_bins) == pytest.approx(0.4)
        assert expected_calibration_error(y, binary([0.7] * 10), n_bins) == pytest.approx(0.1)


def test_one_bin_compares_mean_confidence_with_accuracy():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), size=50), rng.integers(4, size=50)
    gap = abs(np.mean(proba.argmax(axis=1) == y) - proba.max(axis=1).mean())
    assert expected_calibration_error(y, proba, n_bins=1) == pytest.approx(gap)


def test_sampled_from_its_own_probabilities_a_predictor_is_nearly_calibrated():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=20_000)
    y = (rng.random((len(proba), 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    assert expected_calibration_error(y, proba) < 0.02
    assert expected_calibration_error(rng.integers(3, size=len(y)), proba) > 0.25


def test_a_confidence_on_an_edge_belongs_to_the_bin_below():
    # (0.4, 0.6] holds both rows: |1 - 1.1| / 2. Of ten bins each row has its own: (0.4 + 0.5) / 2.
    y, proba = [0, 1], binary([0.6, 0.5])
    assert expected_calibration_error(y, proba, n_bins=5) == pytest.approx(0.05)
    assert expected_calibration_error(y, proba, n_bins=10) == pytest.approx(0.45)


def test_every_edge_is_exact():
    """A right row on each edge and a wrong one just above it never share a bin."""
    for n_bins in [10, 15, 100]:
        edges = np.arange(n_bins // 2 + 1, n_bins) / n_bins
        confidence = np.concatenate([edges, np.nextafter(edges, 1)])
        y = np.repeat([0, 1], len(edges))
        # From one edge to the next: wrong just above the lower edge and right on the upper one share a bin.
        lowest, between, highest = 1 - edges[0], np.abs(1 - edges[1:] - edges[:-1]).sum(), edges[-1]
        expected = (lowest + between + highest) / len(y)
        assert expected_calibration_error(y, binary(confidence), n_bins) == pytest.approx(expected)


def test_calibration_does_not_depend_on_row_order_and_takes_rounding():
    rng = np.random.default_rng(1)
    proba, y, order = rng.dirichlet(np.ones(3), size=40), rng.integers(3, size=40), rng.permutation(40)
    expected = expected_calibration_error(y, proba)
    assert expected_calibration_error(y[order], proba[order]) == pytest.approx(expected)
    assert expected_calibration_error([0], [[1 + 1e-9, -1e-9]]) == pytest.approx(0, abs=1e-8)


def test_calibration_refuses_what_it_cannot_use():
    cases: list[Any] = [
        ([0, 1], [[0.5, 0.5]], "same rows"),
        ([0, 1], [0.5, 0.5], "same rows"),
        ([], np.empty((0, 2)), "at least one"),
        ([[0]], [[0.5, 0.5]], "same rows"),
        ([0], [[np.nan, np.nan]], "or NaN"),
        ([0], [[3.0, -2.0]], "between 0 and 1"),
        ([2], [[0.5, 0.5]], "integers from 0 to 1"),
        ([-1], [[0.5, 0.5]], "integers from 0 to 1"),
        (["a"], [[0.5, 0.5]], "column indices"),
        ([0.5], [[0.5, 0.5]], "column indices"),
    ]
    for y, proba, message in cases:
        with pytest.raises(InvalidInput, match=message):
            expected_calibration_error(y, proba)


def test_calibration_needs_a_bin():
    cases: list[Any] = [0, 2.5, "many", None, True]
    for n_bins in cases:
        with pytest.raises(InvalidInput, match="n_bins must be a whole number of at least 1"):
            expected_calibration_error([0], [[0.5, 0.5]], n_bins=n_bins)


# Rejection.


def test_rejection_curve_by_hand():
    coverage, accuracy = rejection_curve([False, True, True, False], [0.9, 0.1, 0.3, 0.2])
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    np.testing.assert_allclose(accuracy, [1, 1 / 2, 2 / 3, 1 / 2])


def test_ties_are_the_mean_over_all_orders():
    correct, uncertainty = np.array([1, 0, 1, 0, 0]), np.array([0.2, 0.1, 0.2, 0.2, 0.3])
    # Each order of the rows breaks the ties in its own way once it is added as a tiny difference.
    curves = [rejection_curve(correct, uncertainty + 1e-6 * np.array(order))[1] for order in permutations(range(5))]
    np.testing.assert_allclose(rejection_curve(correct, uncertainty)[1], np.mean(curves, axis=0))


@settings(max_examples=40, deadline=None)
@given(outcomes, st.randoms(use_true_random=False))
def test_row_order_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    np.testing.assert_array_equal(rejection_curve(*columns(rows)), rejection_curve(*columns(shuffled)))
    for score in SCORES:
        np.testing.assert_array_equal(score(*columns(rows)), score(*columns(shuffled)))


@settings(max_examples=40, deadline=None)
@given(outcomes)
def test_only_the_order_of_the_uncertainties_matters(rows):
    correct, uncertainty = columns(rows)
    stretched = np.where(uncertainty == 4, np.inf, np.exp(uncertainty) - 7)
    for score in SCORES:
        np.testing.assert_array_equal(score(correct, stretched), score(correct, uncertainty))


@settings(max_examples=40, deadline=None)
@given(outcomes)
def test_full_coverage_is_plain_accuracy(rows):
    correct, uncertainty = columns(rows)
    coverage, accuracy = rejection_curve(correct, uncertainty)
    assert coverage[-1] == 1
    assert accuracy[-1] == correct.mean()
    assert risk_at_coverage(correct, uncertainty, 1) == pytest.approx(1 - correct.mean())


@settings(max_examples=40, deadline=None)
@given(outcomes)
def test_aurc_lies_between_the_oracle_and_its_reverse(rows):
    correct, uncertainty = columns(rows)
    area = aurc(correct, uncertainty)
    assert aurc(correct, ~correct) - 1e-12 <= area <= aurc(correct, correct) + 1e-12
    assert excess_aurc(correct, uncertainty) == pytest.approx(area - aurc(correct, ~correct))


def test_aurc_of_the_oracle():
    for n_right, n_wrong in [(7, 3), (1, 9), (5, 0), (0, 5)]:
        correct = np.repeat([True, False], [n_right, n_wrong])
        n = n_right + n_wrong
        closed_form = sum((k - n_right) / k for k in range(n_right + 1, n + 1)) / n
        assert aurc(correct, np.arange(n)) == pytest.approx(closed_form)
        assert excess_aurc(correct, np.arange(n)) == 0


def test_aurc_of_an_uncertainty_that_says_nothing_is_the_error_rate():
    correct = np.repeat([True, False], [70, 30])
    assert aurc(correct, np.ones(100)) == pytest.approx(0.3)
    assert failure_auroc(correct, np.ones(100)) == 0.5


def test_random_uncertainty_is_worth_nothing_on_average():
    rng = np.random.default_rng(0)
    correct = np.repeat([True, False], [70, 30])
    draws = [rng.random(100) for _ in range(400)]
    assert np.mean([aurc(correct, u) for u in draws]) == pytest.approx(0.3, abs=0.01)
    assert np.mean([failure_auroc(correct, u) for u in draws]) == pytest.approx(0.5, abs=0.01)


def test_a_better_order_scores_better():
    rng = np.random.default_rng(0)
    correct = rng.random(500) < 0.8
    noise = rng.normal(size=500)
    areas = [aurc(correct, noise - weight * correct) for weight in (0, 1, 2, 4)]
    assert (np.diff(areas) < 0).all()


@settings(max_examples=40, deadline=None)
@given(outcomes)
def test_failure_auroc_agrees_with_scikit_learn(rows):
    correct, uncertainty = columns(rows)
    if correct.all() or not correct.any():
        assert np.isnan(failure_auroc(correct, uncertainty))
    else:
        assert failure_auroc(correct, uncertainty) == pytest.approx(roc_auc_score(~correct, uncertainty))


def test_failure_auroc_of_a_perfect_and_a_reversed_order():
    correct = np.array([True, False, True, False])
    assert failure_auroc(correct, ~correct) == 1
    assert failure_auroc(correct, correct) == 0


def test_infinite_uncertainty_is_rejected_first():
    correct, uncertainty = [False, True, True], [np.inf, 1.0, 2.0]
    assert risk_at_coverage(correct, uncertainty, 2 / 3) == 0
    assert failure_auroc(correct, uncertainty) == 1


def test_risk_at_coverage_keeps_exactly_that_many_rows():
    for percent in range(1, 101):
        correct = np.arange(100) % 3 > 0
        risk = risk_at_coverage(correct, np.arange(100), percent / 100)
        assert risk == pytest.approx(1 - correct[:percent].mean())


def test_risk_at_coverage_rounds_the_rows_kept_up():
    correct, uncertainty = [True, False, True], [1, 2, 3]
    assert risk_at_coverage(correct, uncertainty, 0.001) == 0
    assert risk_at_coverage(correct, uncertainty, 0.34) == 0.5


def test_coverage_is_a_fraction():
    cases: list[Any] = [0, -0.5, 1.01, 80, np.nan, "all", None, [0.5]]
    for coverage in cases:
        with pytest.raises(InvalidInput, match="coverage must be a fraction"):
            risk_at_coverage([True, False], [0.1, 0.2], coverage)


def test_right_and_wrong_as_numbers():
    assert aurc([1, 0, 1.0], [1, 2, 3]) == aurc([True, False, True], [1, 2, 3])


def test_rejection_refuses_what_it_cannot_use():
    cases: list[Any] = [rejection_curve, *SCORES]
    for score in cases:
        wrong: list[Any] = [
            ([True, False], [0.1], "equally long"),
            ([[True, False]], [[0.1, 0.2]], "one-dimensional"),
            ([], [], "not empty"),
            ([0.5, 1.0], [0.1, 0.2], "correct must say"),
            (["yes", "no"], [0.1, 0.2], "correct must say"),
            ([True, False], [0.1, np.nan], "uncertainty is NaN in 1 of 2 rows"),
            ([True, False], ["low", "high"], "uncertainty must be an array of numbers"),
        ]
        for correct, uncertainty, message in wrong:
            with pytest.raises(InvalidInput, match=message):
                score(correct, uncertainty)
