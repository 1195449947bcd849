"""Reading a table however it is written down, and the digest that all these ways share."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from askwise.datasets import sources
from askwise.datasets.home import data_home
from askwise.datasets.tables import read_table, table_digest, unpacked

COLUMNS = ["age", "dose", "drug"]
PLAIN = b"63,1.5,A\n67,?,NA\n41,0,B\n"


def read(content: bytes) -> pd.DataFrame:
    return read_table(content, COLUMNS, text=["drug"])


def test_cells_are_numbers_strings_or_missing():
    table = read(PLAIN)
    assert table["age"].tolist() == [63.0, 67.0, 41.0]
    np.testing.assert_array_equal(table["dose"], [1.5, np.nan, 0.0])
    assert table["drug"].isna().tolist() == [False, True, False]
    assert table["drug"].dropna().tolist() == ["A", "B"]


@pytest.mark.parametrize(
    "copy",
    [
        pytest.param(PLAIN.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(PLAIN.rstrip(b"\n"), id="no newline at the end"),
        pytest.param(PLAIN + b"\n\n", id="empty lines at the end"),
        pytest.param(PLAIN.replace(b"NA", b"NaNN").replace(b"?", b""), id="other spellings of missing"),
        pytest.param(PLAIN.replace(b",", b" , "), id="blanks around cells"),
        pytest.param(b"Age,Amount,Drug\n" + PLAIN, id="header with other names"),
        pytest.param(b"drug,age,dose\nA,63,1.5\nNA,67,?\nB,41,0\n", id="columns in another order"),
        pytest.param(PLAIN.replace(b"63", b"63.0").replace(b",0,", b",-0.00,"), id="numbers written otherwise"),
        pytest.param(b"\xef\xbb\xbf" + PLAIN, id="byte order mark"),
    ],
)
def test_copies_of_one_table_have_one_digest(copy):
    assert table_digest(read(copy)) == table_digest(read(PLAIN))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(PLAIN.replace(b"63", b"64"), id="a number"),
        pytest.param(PLAIN.replace(b"A\n", b"C\n", 1), id="a string"),
        pytest.param(PLAIN.replace(b",0,", b",?,"), id="a missing cell"),
        pytest.param(PLAIN.replace(b"67,?,NA\n", b""), id="a missing row"),
        pytest.param(b"67,?,NA\n63,1.5,A\n41,0,B\n", id="another order of rows"),
        pytest.param(PLAIN.replace(b"?,NA", b"oops,NA").replace(b"1.5", b"oops"), id="damaged cells"),
    ],
)
def test_another_table_has_another_digest(other):
    assert table_digest(read(other)) != table_digest(read(PLAIN))


def test_digest_keeps_cells_and_columns_apart():
    one = pd.DataFrame({"a": ["x", "yz"], "b": ["", "w"]})
    two = pd.DataFrame({"a": ["xy", "z"], "b": ["", "w"]})
    three = pd.DataFrame({"b": ["", "w"], "a": ["x", "yz"]})
    assert len({table_digest(table) for table in (one, two, three)}) == 3


def test_digest_is_that_of_the_canonical_form():
    form = (
        b"age\x1e63.0\x1f67.0\x1f41.0\x1d"  # the name, its cells, the next column
        b"dose\x1e1.5\x1f\x00\x1f0.0\x1d"
        b"drug\x1eA\x1f\x00\x1fB\x1d"
    )
    assert table_digest(read(PLAIN)) == hashlib.sha256(form).hexdigest()


def test_wrong_number_of_columns_is_said():
    with pytest.raises(ValueError, match="it must have 3 columns and has 2"):
        read(b"1,2\n3,4\n")


def test_unpacked_takes_plain_gzip_and_zip():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("folder/other.csv", b"no")
        file.writestr("folder/data.csv", PLAIN)
    for packed in (PLAIN, gzip.compress(PLAIN), archive.getvalue()):
        assert unpacked(packed, "data.csv") == PLAIN
    with pytest.raises(ValueError, match=r"holds no file third\.csv"):
        unpacked(archive.getvalue(), "third.csv")


def rewritten_cirrhosis(content: bytes) -> bytes:
    return content.replace(b",NA", b",NaNN").replace(b"\n", b"\r\n")


@pytest.mark.parametrize(
    ("file", "rewrite"),
    [
        (sources.CIRRHOSIS, rewritten_cirrhosis),
        (sources.BUPA, lambda content: b"mcv,alkphos,sgpt,sgot,gammagt,drinks,selector\r\n" + content),
        (sources.HEART, lambda content: content.replace(b"?", b"NaN").replace(b".0,", b",")),
        (sources.YEAST, lambda content: content.replace(b"  ", b"\t")),
        (sources.HEART_PRICES[0], lambda content: content.replace(b"\t", b" ").replace(b"\n", b"\r\n")),
        (sources.HEART_PRICES[1], lambda content: content.replace(b".\n", b"\n")),
    ],
    ids=["cirrhosis", "bupa", "heart", "yeast", "expense", "group"],
)
def test_real_tables_are_recognized_when_rewritten(file, rewrite):
    path = data_home() / file.path
    if not path.exists():
        pytest.skip(f"{path} is not here")
    content = path.read_bytes()
    assert rewrite(content) != content
    assert table_digest(file.read(rewrite(content))) == file.digest
