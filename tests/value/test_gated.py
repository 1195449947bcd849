"""What features tell after each outcome of a gate: the outcomes, the counts, and the mean with a case's own gain."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2_contingency, entropy

from askwise.table.schema import read_table
from askwise.value.gated import GatedGains, GateOutcomes, _counts, _dependence

NUMBERS = np.zeros(6, dtype=bool)


def outcomes_of(values, columns, is_category=NUMBERS):
    return GateOutcomes.of_cells(values, np.array(columns), is_category)


def gated_rows(n=600, seed=0):
    """Column 0 says whether column 1 or 2 is the class; columns 3 to 5 are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 0] = rng.integers(0, 2, n)
    return X, (np.where(X[:, 0] == 0, X[:, 1], X[:, 2]) > 0).astype(int)


def learned(gates=(0,), n=600):
    X, y = gated_rows(n)
    return GatedGains.learned(np.array(gates), X, y, read_table(X)[0])


def test_clusters_of_a_group_do_not_follow_the_noise_around_zero_and_one():
    rng = np.random.default_rng(0)
    which = rng.integers(5, size=800)
    values = np.eye(5)[which] + 0.1 * rng.normal(size=(800, 5))
    number = outcomes_of(values, range(5)).number(values)
    assert all(len(np.unique(which[number == k])) == 1 for k in np.unique(number))


def test_few_values_are_outcomes_of_their_own_and_many_become_parts():
    values = np.repeat([[3.0], [1.0], [2.0]], 5, axis=0)
    assert_array_equal(outcomes_of(values, [0]).number(np.array([[1.1], [9.0]])), [0, 2])
    many = np.random.default_rng(0).normal(size=(400, 1))
    number = outcomes_of(many, [0]).number(many)
    assert len(np.unique(number)) == 4
    assert np.bincount(number).min() > 50
    by_value = number[np.argsort(many[:, 0])]
    assert np.sum(by_value[1:] != by_value[:-1]) == 3


def test_categories_and_missing_cells_have_outcomes():
    values = np.array([[0.0, 1.0], [1.0, np.nan], [0.0, 5.0], [2.0, np.nan]])
    categories = np.array([True, False])
    found = outcomes_of(values, [0], categories)
    assert len(found.centers) == 3
    assert len(set(found.number(values).tolist())) == 3
    assert found.number(np.array([[7.0, 0.0]])).shape == (1,)  # a category of no row
    number = outcomes_of(values, [1], categories).number(values)
    assert number[1] == number[3] != number[0]
    assert number[0] != number[2]


def test_dependence_is_chi_square_within_each_outcome():
    rng = np.random.default_rng(0)
    number, code, labels = rng.integers(0, [[2], [4], [3]], size=(3, 300))
    counts = _counts(number, code, labels, (3, 4, 3))
    assert_array_equal(counts.sum(axis=(1, 2)), [np.sum(number == 0), np.sum(number == 1), 0])
    square, chance = _dependence(counts)
    for k in (0, 1):
        rows = number == k
        table = np.histogram2d(code[rows], labels[rows], bins=(4, 3))[0]
        found = chi2_contingency(table, correction=False)
        assert square[k] == pytest.approx(found.statistic)
        assert chance[k] == pytest.approx(found.dof + np.sqrt(2 * found.dof))
    assert (square[2], chance[2]) == (0, 0)


def test_what_matters_after_each_outcome_is_told_from_noise():
    found = learned()
    told = found.told_at_once()
    assert told.shape == (2, 6)
    assert_array_equal(told.argmax(axis=1), [1, 2])
    others = told.copy()
    others[[0, 1], [1, 2]] = 0
    assert others.max() < 0.1 * told.max()
    assert found.trust[0, 1] > 0.8
    assert found.trust[0, 2:].max() < 0.6


def test_what_is_known_by_now_is_not_told_again():
    """Whatever the gate says, columns 1 to 3 are the class, each with errors of its own."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (4000, 5)).astype(float), rng.integers(0, 2, 4000)
    for column, right in ((1, 0.9), (2, 0.85), (3, 0.75)):
        X[:, column] = np.where(rng.random(4000) < right, y, 1 - y)
    found = GatedGains.learned(np.array([0]), X, y, read_table(X)[0])
    values, mask = np.full((3, 5), np.nan), np.zeros((3, 5), dtype=bool)
    values[:, 0], mask[:, 0] = 1, True
    values[1, 1], values[2, 1:3], mask[1, 1], mask[2, 1:3] = 1, [1, 1], True, True
    told = found.told(np.ones(3, dtype=int), mask, values)

    def information(prior, right):  # of a binary symmetric channel
        after = np.array([prior * right + (1 - prior) * (1 - right), prior * (1 - right) + (1 - prior) * right])
        likely = np.array([prior * right, prior * (1 - right)]) / after
        return entropy([prior, 1 - prior]) - after @ entropy(np.stack([likely, 1 - likely]), axis=0)

    both = 0.9 * 0.85 / (0.9 * 0.85 + 0.1 * 0.15)
    assert_allclose(told[0, 1:4], [information(0.5, right) for right in (0.9, 0.85, 0.75)], atol=0.03)
    assert_allclose(told[1:, 3], [information(0.9, 0.75), information(both, 0.75)], atol=0.02)
    assert_allclose(told[:, 4], 0, atol=0.002)


def test_of_several_gates_it_is_the_one_after_which_features_tell_most():
    assert learned((3, 0, 4)).gate == 0


def test_where_no_gate_is_known_the_gains_are_those_of_the_case():
    found, gain = learned(), np.full((3, 6), 0.1)
    values, mask = np.full((3, 6), np.nan), np.zeros((3, 6), dtype=bool)
    values[1:, 0], mask[1:, 0] = [0, 1], True
    mixed = found.mixed(gain, mask, values)
    assert_array_equal(mixed[0], gain[0])
    assert_allclose(mixed[1:], (found.trust * 0.1 + found.told_at_once()) / 2)
    assert_array_equal(gain, 0.1)


def test_rare_outcomes_leave_it_to_the_case():
    X, y = gated_rows(400)
    X[:5, 0] = 7.0
    found = GatedGains.learned(np.array([0]), X, y, read_table(X)[0])
    assert_allclose(found.told_at_once()[2], 0, atol=1e-12)
    assert_array_equal(found.trust[2], 1)


def test_it_is_described_in_names():
    said = learned().described(list("abcdef"))
    assert said["gate"] == "a"
    assert [next(iter(best)) for best in said["tells_most_after_each_outcome"]] == ["b", "c"]
    assert json.loads(json.dumps(said)) == said
