"""Tables in, numbers out, and back; features made of columns."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal

from askwise.errors import InvalidInput
from askwise.table.rows import EncodedRows
from askwise.table.schema import read_table


def mixed_table():
    """Every kind of column that is taken, each with a missing cell where its type allows one."""
    return pd.DataFrame(
        {
            "age": [30.5, np.nan, 41.0, 30.5],
            "visits": [1, 2, 3, 4],
            "sex": ["f", "m", None, "m"],
            "smoker": [True, False, True, True],
            "pain": pd.Categorical(["mild", "none", "mild", np.nan], categories=["none", "mild", "bad"], ordered=True),
            "tested": pd.array([True, None, False, True], dtype="boolean"),
            "beds": pd.array([2, 3, None, 1], dtype="Int64"),
            "weight": np.array([60, 70, 80, 90], dtype=np.float32),
            "drinks": np.array([True, None, False, True], dtype=object),
            "note": pd.array(["a", "b", None, "a"], dtype="string"),
        }
    )


CATEGORIES = ["sex", "smoker", "pain", "tested", "drinks", "note"]
NUMBERS = ["age", "visits", "beds", "weight"]


def test_kinds_are_read_off_the_table():
    schema, _ = read_table(mixed_table())
    assert [c.name for c in schema.columns if c.is_category] == CATEGORIES
    assert schema.is_category.tolist() == [name in CATEGORIES for name in mixed_table().columns]


def test_encoding_keeps_numbers_codes_categories_and_marks_what_is_missing():
    table = mixed_table()
    schema, rows = read_table(table)
    encoded = rows.values
    assert_array_equal(schema.encode(table).values, encoded)
    assert encoded.dtype == float
    assert rows.unseen == {}
    assert_array_equal(np.isnan(encoded), table.isna().to_numpy())
    for name in NUMBERS:
        expected = table[name].to_numpy(dtype=float, na_value=np.nan)
        assert_array_equal(encoded[:, table.columns.get_loc(name)], expected)
    assert encoded[:, table.columns.get_loc("sex")].tolist()[:2] == [0.0, 1.0]
    # A pandas category keeps its own order, unseen categories included.
    assert encoded[:3, table.columns.get_loc("pain")].tolist() == [1.0, 0.0, 1.0]


def test_decoding_gives_back_the_very_table():
    table = mixed_table()
    schema, rows = read_table(table)
    decoded = schema.decode(rows)
    assert_frame_equal(decoded.drop(columns="beds"), table.drop(columns="beds"))
    # An integer type that has missing cells may come back as floats with the same values.
    assert_array_equal(
        decoded["beds"].to_numpy(dtype=float, na_value=np.nan), table["beds"].to_numpy(dtype=float, na_value=np.nan)
    )


def test_decoding_without_missing_cells_keeps_every_type():
    table = mixed_table().iloc[[0]].reset_index(drop=True)
    schema, _ = read_table(mixed_table())
    assert_frame_equal(schema.decode(schema.encode(table)), table)


def test_a_missing_boolean_decodes_to_missing_and_not_to_false():
    schema, _ = read_table(pd.DataFrame({"smoker": [True, False, True]}))
    decoded = schema.decode(EncodedRows(np.array([[1.0], [np.nan], [0.0]])))["smoker"]
    assert decoded.isna().tolist() == [False, True, False]
    assert bool(decoded[0]) is True
    assert bool(decoded[2]) is False


def test_an_imputed_mean_of_an_integer_column_is_not_rounded():
    schema, _ = read_table(pd.DataFrame({"visits": [1, 2]}))
    assert schema.decode(EncodedRows(np.array([[1.5], [2.0]])))["visits"].tolist() == [1.5, 2.0]


def test_arrays_come_back_with_their_values_imputed_means_and_missing_cells_included():
    for dtype in (np.int64, np.int8, bool, np.float32):
        schema, _ = read_table(np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype))
        values = np.array([[0.0, 0.5], [np.nan, 1.0]])
        decoded = np.asarray(schema.decode(EncodedRows(values)), dtype=float)
        assert_array_equal(decoded, values, err_msg=str(dtype))


def test_whole_arrays_keep_their_type():
    for dtype in (np.int64, np.float32, np.float64):
        X = np.array([[0, 1], [3, 2]], dtype=dtype)
        schema, rows = read_table(X)
        decoded = schema.decode(rows)
        assert decoded.dtype == dtype
        assert_array_equal(decoded, X)


def test_decoding_some_columns():
    table = mixed_table()
    schema, rows = read_table(table)
    assert_frame_equal(schema.decode(rows, [2, 0]), table[["sex", "age"]])


def test_the_table_is_not_changed():
    table, before = mixed_table(), mixed_table()
    schema, rows = read_table(table)
    schema.decode(rows)
    assert_frame_equal(table, before)


def test_a_category_never_seen_is_passed_on_and_not_confused_with_a_known_one():
    schema, _ = read_table(mixed_table())
    later = mixed_table().astype({"pain": object})
    later.loc[0, "sex"] = "x"
    later.loc[0, "pain"] = "awful"
    rows = schema.encode(later)
    decoded = schema.decode(rows)
    assert decoded["sex"].tolist()[:2] == ["x", "m"]
    assert decoded["pain"].tolist()[:2] == ["awful", "none"]
    assert rows.unseen == {2: ["x"], 4: ["awful"]}
    assert schema.columns[2].known == ["f", "m"]
    assert schema.columns[2].show(rows.values[0, 2], rows.unseen[2]) == "x"


def test_a_category_never_seen_leaves_later_tables_as_they_were():
    """800 of them in several batches: the same answers and the same size of every column afterwards."""
    table = mixed_table()
    schema, rows = read_table(table)
    before, size = schema.decode(rows), pickle.dumps(schema)
    for batch in range(4):
        many = pd.DataFrame([table.iloc[0]] * 200).assign(sex=[f"{batch}-{i}" for i in range(200)], pain="awful")
        assert len(schema.encode(many).unseen[2]) == 200
    assert_frame_equal(schema.decode(schema.encode(table)), before)
    assert_array_equal(schema.encode(table).values, rows.values)
    assert [len(column.known) for column in schema.columns] == [0, 0, 2, 2, 3, 2, 0, 0, 2, 2]
    assert pickle.dumps(schema) == size


def test_an_object_column_of_numbers_is_read_as_numbers():
    schema, _ = read_table(pd.DataFrame({"a": np.array([1, 2.5, None], dtype=object)}))
    assert not schema.is_category[0]
    assert_array_equal(schema.encode(pd.DataFrame({"a": [None, 3]})).values[:, 0], [np.nan, 3.0])


def test_no_rows():
    schema, _ = read_table(mixed_table())
    assert schema.encode(mixed_table()[:0]).values.shape == (0, 10)


def grouped():
    table = pd.DataFrame(np.arange(10.0).reshape(2, 5), columns=["a", "b", "c", "d", "e"])
    return read_table(table, {"late": ["e", "d"], "panel": ["c", "a"]})[0]


def test_features_stand_in_the_order_of_their_first_columns():
    schema = grouped()
    assert schema.features == ["panel", "b", "late"]
    assert [members.tolist() for members in schema.feature_columns] == [[0, 2], [1], [3, 4]]


def test_groups_by_position():
    schema, _ = read_table(np.arange(10.0).reshape(2, 5), {"pair": [3, 1]})
    assert schema.features == ["x0", "pair", "x2", "x4"]


def test_masks_go_from_features_to_columns_and_back():
    schema = grouped()
    mask = np.array([[True, False, False], [False, True, True], [False, False, False]])
    columns = schema.expand(mask)
    assert_array_equal(
        columns,
        [[True, False, True, False, False], [False, True, False, True, True], [False] * 5],
    )
    assert_array_equal(schema.any_column(columns), mask)


def test_a_feature_is_had_as_soon_as_one_of_its_columns_is():
    assert grouped().any_column(np.array([[False, False, True, False, False]])).tolist() == [[True, False, False]]


def test_a_group_may_bear_the_name_of_its_own_column():
    schema, _ = read_table(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 3.0]}), {"a": ["a", "b"]})
    assert schema.features == ["a"]


def test_answers_of_single_columns():
    schema, _ = read_table(mixed_table())

    def answer(name, value):
        return schema.encode_feature(schema.position(name), value).tolist()

    assert answer("age", 44) == [44.0]
    assert answer("age", np.float32(0.5)) == [0.5]
    assert answer("sex", "m") == [1.0]
    assert answer("pain", "bad") == [2.0]
    assert answer("smoker", True) == [1.0]
    assert answer("smoker", np.bool_(False)) == [0.0]


def test_answers_of_groups_may_lack_columns_but_not_all_of_them():
    schema = grouped()
    assert_array_equal(schema.encode_feature(0, {"a": 1, "c": 2}), [1.0, 2.0])
    assert_array_equal(schema.encode_feature(0, {"c": 2}), [np.nan, 2.0])
    assert_array_equal(schema.encode_feature(0, {"a": None, "c": 2}), [np.nan, 2.0])
    for nothing in ({}, {"a": None}, {"a": None, "c": np.nan}):
        with pytest.raises(InvalidInput, match="panel"):
            schema.encode_feature(0, nothing)


def test_answers_of_groups_that_are_no_dict_of_their_columns():
    for value in (3.0, {"b": 1}, {"a": 1, "zz": 2}, [1, 2], "text"):
        with pytest.raises(InvalidInput, match=r"'panel' must be a dict.*\['a', 'c'\]"):
            grouped().encode_feature(0, value)


REFUSED_ANSWERS: list[tuple[str, Any, str]] = [
    ("age", "old", "'age' must be a number; got 'old'"),
    ("age", True, "'age' must be a number; got True"),
    ("age", [1], "'age' must be a number"),
    ("age", 1 + 2j, "'age' must be a number"),
    ("age", np.inf, "'age' must be a finite number"),
    ("age", np.nan, r"'age' is missing.*unavailable\('age'\)"),
    ("age", np.float32("nan"), r"'age' is missing.*unavailable\('age'\)"),
    ("age", None, r"'age' is missing.*unavailable\('age'\)"),
    ("age", pd.NA, r"'age' is missing.*unavailable\('age'\)"),
    ("sex", None, r"'sex' is missing.*unavailable\('sex'\)"),
    ("sex", "x", r"'sex' must be one of \['f', 'm'\]; got 'x'"),
    ("sex", 1, r"'sex' must be one of \['f', 'm'\]; got 1"),
    ("sex", ["f"], r"'sex' must be one of \['f', 'm'\]"),
    ("pain", "awful", r"'pain' must be one of \['none', 'mild', 'bad'\]"),
    ("age", 2**53 + 1, r"'age' must be a whole number below 2\*\*53"),
    ("age", 10**400, r"'age' must be a whole number below 2\*\*53"),
]


def test_answers_that_are_refused():
    schema, _ = read_table(mixed_table())
    for name, value, message in REFUSED_ANSWERS:
        with pytest.raises(InvalidInput, match=message):
            schema.encode_feature(schema.position(name), value)


def test_a_category_that_came_later_in_a_batch_is_still_refused_as_an_answer():
    schema, _ = read_table(mixed_table())
    schema.encode(mixed_table().assign(sex="x"))
    with pytest.raises(InvalidInput, match=r"'sex' must be one of \['f', 'm'\]; got 'x'"):
        schema.encode_feature(schema.position("sex"), "x")


def test_typed_answers():
    schema, _ = read_table(mixed_table())
    column = {c.name: c for c in schema.columns}
    assert column["age"].parse_answer(" 44.5 ") == 44.5
    assert column["smoker"].parse_answer("True") == 1.0
    assert column["pain"].parse_answer("mild") == 1.0
    for name, text in (("age", "old"), ("age", "nan"), ("age", "inf"), ("age", ""), ("sex", "x")):
        with pytest.raises(InvalidInput, match=name):
            column[name].parse_answer(text)


def test_cells_are_shown_as_plain_python():
    table = mixed_table()
    schema, rows = read_table(table)
    encoded = rows.values
    shown = [schema.show_feature(i, encoded[0]) for i in range(len(schema.features))]
    assert shown == [30.5, 1, "f", True, "mild", True, 2, 60.0, True, "a"]
    assert [type(cell) for cell in shown] == [float, int, str, bool, str, bool, int, float, bool, str]
    assert schema.show_feature(0, encoded[1]) is None


def test_groups_are_shown_as_dicts():
    schema = grouped()
    assert schema.show_feature(0, np.array([1.0, 2.0, np.nan, 4.0, 5.0])) == {"a": 1.0, "c": None}
    assert schema.show_feature(1, np.array([1.0, 2.0, np.nan, 4.0, 5.0])) == 2.0


def test_every_shown_value_is_taken_back_as_an_answer():
    table = mixed_table()
    schema, rows = read_table(table, {"panel": ["age", "sex"]})
    for row in rows.values:
        for i, members in enumerate(schema.feature_columns):
            if not np.isnan(row[members]).all():
                assert_array_equal(schema.encode_feature(i, schema.show_feature(i, row)), row[members])


def test_an_unknown_feature_is_refused_with_the_list_of_features():
    with pytest.raises(InvalidInput, match=r"no feature 'zz'.*panel, b, late"):
        grouped().position("zz")


def test_a_name_that_is_no_feature_is_explained():
    schema, _ = read_table(mixed_table(), groups={"vitals": ["age", "weight"]})
    assert schema.position("visits") == schema.features.index("visits")
    with pytest.raises(InvalidInput, match=r"no feature 'weight'\. It is a column of 'vitals', which"):
        schema.position("weight")
    with pytest.raises(InvalidInput, match=r"no feature 'visit'\. Did you mean 'visits'\? The features"):
        schema.position("visit")
