"""Masks: checked, drawn and extended."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from askwise.errors import InvalidInput
from askwise.table.subsets import check_mask, extended, meets, sample, unique_masks


def test_a_mask_of_the_right_shape_is_copied():
    mask = np.array([[True, False], [False, False]])
    checked = check_mask(mask, (2, 2))
    checked[0, 0] = False
    assert mask[0, 0]


def test_one_row_serves_all():
    assert check_mask([True, False], (3, 2)).tolist() == [[True, False]] * 3


def test_masks_that_are_not_boolean_are_refused():
    refused: list[Any] = [[[1, 0]], [[1.0, 0.0]], [["True", "False"]], [[None, True]], 1]
    for mask in refused:
        with pytest.raises(InvalidInput, match=r"known must be boolean"):
            check_mask(mask, (1, 2), "known")


def test_masks_of_other_shapes_are_refused():
    shapes: list[tuple[int, ...]] = [(3, 2), (2, 2, 1), (3,), (), (1, 2)]
    for shape in shapes:
        with pytest.raises(InvalidInput, match=r"mask must have shape \(2, 2\) or \(2,\)"):
            check_mask(np.ones(shape, dtype=bool), (2, 2))


def test_drawn_sizes_are_even_and_never_full():
    """Uniform subsets would nearly all have half of the features."""
    drawn = sample(8000, 8, np.random.default_rng(0))
    assert drawn.dtype == bool
    counts = np.bincount(drawn.sum(axis=1), minlength=9)
    assert counts[8] == 0
    assert (np.abs(counts[:8] / 8000 - 1 / 8) < 0.02).all()


def test_drawn_subsets_of_a_size_are_uniform():
    drawn = sample(8000, 3, np.random.default_rng(0))
    ones = drawn[drawn.sum(axis=1) == 1]
    assert (np.abs(ones.mean(axis=0) - 1 / 3) < 0.04).all()


def test_same_seed_same_masks():
    assert_array_equal(sample(20, 5, np.random.default_rng(3)), sample(20, 5, np.random.default_rng(3)))


def test_extended_sets_one_feature_per_row_and_leaves_the_original():
    mask = np.array([[False, False], [True, False], [False, False]])
    before = mask.copy()
    after = extended(mask, np.array([1, 1, -1]))
    assert after.tolist() == [[False, True], [True, True], [False, False]]
    assert_array_equal(mask, before)


def test_extended_by_what_is_there_already():
    assert extended(np.array([[True]]), np.array([0])).tolist() == [[True]]


@given(arrays(bool, (6, 3)))
def test_distinct_rows_give_back_the_mask(mask):
    rows, inverse = unique_masks(mask)
    assert inverse.shape == (6,)
    assert_array_equal(rows[inverse], mask)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_distinct_masks_stand_in_order_whatever_their_width():
    for n_columns in (1, 13, 64, 65):
        mask = np.random.default_rng(0).random((200, n_columns)) < 0.5
        mask = np.vstack([mask, mask[:50]])
        rows, number = unique_masks(mask)
        assert_array_equal(rows, np.unique(mask, axis=0), err_msg=f"{n_columns} columns")
        assert_array_equal(rows[number], mask, err_msg=f"{n_columns} columns")


def test_masks_of_no_columns_are_all_the_same():
    rows, number = unique_masks(np.zeros((3, 0), dtype=bool))
    assert rows.shape == (1, 0)
    assert number.tolist() == [0, 0, 0]


@given(arrays(bool, (3, 130)), arrays(bool, (4, 130)))
def test_rows_meet_where_both_are_true(left, right):
    assert_array_equal(meets(left, right), (left[:, None] & right[None]).any(axis=2))


def test_rows_without_columns_never_meet():
    assert_array_equal(meets(np.empty((2, 0), dtype=bool), np.empty((3, 0), dtype=bool)), np.zeros((2, 3), dtype=bool))
