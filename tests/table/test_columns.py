"""One column: what it takes, what it refuses, and that a query changes nothing in it."""

import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from askwise.errors import InvalidInput
from askwise.table.columns import Column, read_column


def column_of(values, dtype=None):
    return read_column("it", pd.Series(values, dtype=dtype))


def refused(column: Column, values, message, dtype=object):
    with pytest.raises(InvalidInput, match=message):
        column.encode(pd.Series(values, dtype=dtype))


def test_a_boolean_column_has_two_values_and_refuses_every_other():
    kinds = {
        "bool": column_of([True, False, True]),
        "only one of them in training": column_of([True, True]),
        "nullable": column_of([True, None, False], "boolean"),
        "objects": column_of([True, None, False], object),
    }
    for kind, column in kinds.items():
        before = copy.deepcopy(column)
        for value in ("False", "no", 7, 0.5):
            refused(column, [value, True], rf"'it' must hold one of .*; got {value!r}")
        codes, unseen = column.encode(pd.Series([True, None, True], dtype=object))
        assert_array_equal(codes, [column.codes[True], np.nan, column.codes[True]], err_msg=kind)
        assert unseen == [], kind
        assert column == before, kind


def test_a_text_column_refuses_what_is_not_text():
    column = column_of(["a", "b", None])
    for value in (7, 0.5, True):
        refused(column, ["a", value], rf"'it' must hold one of \['a', 'b'\]; got {value!r}, which is not text")
    refused(column, [["a"]], "'it' must hold one of")


def test_unseen_categories_have_codes_after_the_known_ones_and_decode_to_their_values():
    columns = {
        "text": column_of(["b", "a"]),
        "category": column_of(pd.Categorical(["b", "a"], categories=["b", "a", "c"], ordered=True)),
        "string": column_of(["b", "a"], "string"),
    }
    for kind, column in columns.items():
        before = copy.deepcopy(column)
        given = pd.Series(["x", "a", None, "y", "x"], dtype=object)
        codes, unseen = column.encode(given)
        assert unseen == ["x", "y"], kind
        assert (codes[[0, 3, 4]] >= len(column.known)).all(), kind
        decoded = pd.Series(column.decode(codes, unseen))
        assert decoded[[0, 1, 3, 4]].tolist() == ["x", "a", "y", "x"], kind
        assert decoded.isna().tolist() == [False, False, True, False, False], kind
        assert column == before, kind


def test_numbers_refuse_text_that_looks_like_one():
    for column in (column_of([1.0, 2.0]), column_of([1, 2])):
        refused(column, ["3", 1.0], "'it' must hold numbers; got '3'")
        refused(column, ["3"], "'it' must hold numbers; got '3'", "string")
        refused(column, [1 + 2j], "'it' must hold numbers")


def test_whole_numbers_that_floats_cannot_tell_apart_are_refused():
    message = r"'it' holds whole numbers beyond 2\*\*53.*identifier"
    for dtype in ("int64", "uint64", "Int64", object):
        for largest in (2**53, 2**53 + 1, 2**60):
            with pytest.raises(InvalidInput, match=message):
                column_of([largest, 1], dtype).encode(pd.Series([largest, 1], dtype=dtype))
            refused(column_of([1.0, 2.0]), [largest, 1], message, dtype)
        assert column_of([2**53 - 1, 1], dtype).encode(pd.Series([2**53 - 1], dtype=dtype))[0] == [2**53 - 1]
    refused(column_of([1.0, 2.0]), [10**400], message)
    assert column_of([1e300, 1.0]).encode(pd.Series([1e300]))[0] == [1e300]  # a float is what it is


def test_which_cells_fit_the_type_of_the_training_table():
    cells = np.array([1.0, 1.5, np.nan, 300.0, 2**24 + 1.0])
    expected = {
        "float64": [True] * 5,
        "float32": [True, True, True, True, False],
        "int8": [True, False, False, False, False],
        "Int64": [True, False, True, True, True],
        "Float32": [True, True, True, True, False],
    }
    for dtype, fits in expected.items():
        found = np.broadcast_to(column_of([1, 2], dtype).castable(cells), 5)
        assert found.tolist() == fits, dtype
    codes = np.array([0.0, 1.0, 2.0, np.nan])
    assert np.asarray(column_of([True, False]).castable(codes)).tolist() == [True, True, False, False]
    assert np.asarray(column_of(["a", "b"]).castable(codes)).tolist() == [True, True, False, True]
