"""Encoded rows: what is observed, and the one gate that hides what a mask does not show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from askwise.errors import InvalidInput
from askwise.table.rows import EncodedRows


@given(
    arrays(float, (3, 4), elements=st.just(np.nan) | st.floats(-5, 5)),
    arrays(bool, (3, 4)),
)
def test_the_gate_shows_what_is_in_the_mask_and_there_and_nothing_else(values, mask):
    shown = EncodedRows(values).masked(mask)
    assert_array_equal(shown.observed, mask & ~np.isnan(values))
    assert_array_equal(np.isnan(shown.values), ~shown.observed)
    assert_array_equal(shown.values[shown.observed], values[shown.observed])


def test_the_gate_returns_new_arrays():
    values, mask = np.array([[1.0, 2.0]]), np.array([[True, True]])
    shown = EncodedRows(values).masked(mask)
    shown.values[0, 0] = 9
    shown.observed[0, 0] = False
    assert values.tolist() == [[1.0, 2.0]]
    assert mask.all()


def test_a_mask_that_is_not_boolean_or_of_another_shape_is_refused():
    rows = EncodedRows(np.zeros((2, 3)))
    for mask, message in (([1, 0, 1], "boolean"), (np.ones((3, 3), bool), r"shape \(2, 3\)")):
        with pytest.raises(InvalidInput, match=message):
            rows.masked(mask)


def test_the_meaning_of_the_codes_goes_along():
    rows = EncodedRows(np.array([[2.0, np.nan], [0.0, 1.0]]), {0: ["new"]})
    fill = np.array([5.0, 7.0])
    for other in (rows.take([0]), rows.masked([True, False]), rows.filled(fill), rows.with_values(rows.values)):
        assert other.unseen == {0: ["new"]}
    assert len(rows.take(np.array([False, True]))) == 1
    assert rows.filled(fill).values.tolist() == [[2.0, 7.0], [0.0, 1.0]]
    assert np.isnan(rows.values[0, 1])
