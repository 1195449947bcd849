"""Tables in files: what is found out, what is refused, and what is never changed."""

import re
import subprocess
import sys

import pandas as pd
import pytest

from askwise.errors import AskwiseError, InvalidInput
from askwise.table.reading import TableOptions, read_table

ROWS = [("âge", "taux", "ville", "réponse"), ("31", "1,5", "Orléans, centre", "oui"), ("45", "2,25", "Nîmes", "non")]


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file and gives its path."""

    def to_file(content: str | bytes, encoding: str = "utf-8"):
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return to_file


def refused(path, message, **options):
    with pytest.raises(InvalidInput) as caught:
        read_table(path, TableOptions(**options))
    assert re.search(message, str(caught.value)), str(caught.value)


def test_separator_decimal_mark_and_encoding_are_found_and_told(write):
    for separator, name in ((";", "semicolon"), ("\t", "tab"), ("|", "pipe"), (",", "comma")):
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"):
            for end in ("\n", "\r\n"):
                text = end.join(separator.join(f'"{cell}"' for cell in row) for row in ROWS) + end
                table = read_table(write(text, encoding))
                assert list(table.frame.columns) == list(ROWS[0])
                assert table.frame["âge"].tolist() == [31, 45]
                assert table.frame["taux"].tolist() == [1.5, 2.25]
                assert table.frame["ville"].tolist() == ["Orléans, centre", "Nîmes"]
                told = table.inferred[0].replace("-", "_")
                assert f"separated by {name}, a comma as decimal mark" in told
                assert ("cp1252" if encoding == "latin-1" else encoding.replace("-", "_")) in told
    assert "numbers: âge, taux (to override: --text COLUMN)" in table.inferred
    assert "text: ville, réponse (to override: --number COLUMN)" in table.inferred


def test_text_stays_text(write):
    table = read_table(
        write("code,plain,word,id,y\n01,1,NA,12345678901234567,1\n1,2,None,12345678901234568,01\n,,x,,1\n")
    )
    frame = table.frame
    assert frame["code"].tolist()[:2] == ["01", "1"]
    assert frame["y"].tolist() == ["1", "01", "1"]
    assert frame["word"].tolist() == ["NA", "None", "x"]
    assert frame["id"].tolist()[:2] == ["12345678901234567", "12345678901234568"]
    assert frame["plain"].tolist()[:2] == [1.0, 2.0]
    assert frame.isna().sum().tolist() == [1, 1, 0, 1, 0]


def test_what_is_found_out_can_be_overridden(write):
    path = write("code;size;y\n01;3;NA\n02;?;a\n")
    frame = read_table(path, TableOptions(missing=["?", "NA"], number=["code"], text=["size"])).frame
    assert frame["code"].tolist() == [1, 2]
    assert frame["size"].tolist()[0] == "3"
    assert frame.isna().sum().tolist() == [0, 1, 1]
    one = read_table(path, TableOptions(separator="comma")).frame
    assert list(one.columns) == ["code;size;y"]
    assert read_table(write("a;b\n1,234;x\n"), TableOptions(decimal=",")).frame["a"].tolist() == [1.234]
    assert read_table(write("é,b\n1,x\n", "cp1250"), TableOptions(encoding="cp1250")).frame.columns[0] == "é"


def test_words_among_numbers_are_refused_with_the_way_out(write):
    text = "age,y\n" + "".join(f"{age},a\n" for age in range(30, 50)) + "n/d,b\n"
    refused(write(text), r"Column 'age' .* also 'n/d' \(first in line 22\).*--missing 'n/d'.*--text 'age'")
    assert read_table(write(text), TableOptions(missing=["n/d"])).frame["age"].isna().sum() == 1
    mostly = "age,y\n" + "".join(f"{age}.5,a\n" for age in range(12)) + "n/d,b\n" * 30
    refused(write(mostly), "--missing 'n/d'")
    categories = read_table(write("grade,y\n" + "1,a\n2,b\n3 or more,a\nnone,b\nnone,a\n")).frame
    assert categories["grade"].tolist()[2] == "3 or more"


def test_commas_that_can_be_read_in_two_ways_are_refused(write):
    refused(write("a;b\n1,234;x\n2,500;y\n"), "'a' may be decimal commas or separate thousands.*--decimal ','")
    refused(write("a;b\n1,25;2.5\n"), "decimal points in 'b' and commas in the numbers of 'a'.*--decimal")
    assert read_table(write("a;b\n1,234;x\n0,5;y\n")).frame["a"].tolist() == [1.234, 0.5]


def test_files_that_are_no_tables_are_refused(write, tmp_path):
    for content, message in [
        ("", "is empty"),
        (" \n\n", "is empty"),
        (b"\xff\xfe\x00\x81\n" * 30, "looks binary"),
        (bytes(range(256)) * 4, "looks binary"),
        (b"PK\x03\x04" + bytes(50), "an Excel workbook or a zip archive.*Export it as CSV"),
        ("a,b,a\n1,2,3\n", "2 columns named 'a'"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cells and the header 2"),
        ('a,b\n"x\ny",2\n1\n', "line 4 has 1 cells and the header 2"),
        ('a,b\n1,"2\n', "line 2: .*quotation marks"),
        ("1,2\n3,4\n", "holds only numbers"),
    ]:
        refused(write(content), message)
    refused(tmp_path, "is a folder")
    refused(tmp_path / "none.csv", "There is no file")


def test_bad_options_are_refused(write):
    path = write("a,b\nx,2\n")
    refused(path, "--separator must be one character", separator="::")
    refused(path, "--decimal must be a point or a comma", decimal=";")
    refused(path, "there is no encoding 'klingon'", encoding="klingon")
    refused(write("é,b\n1,2\n", "latin-1"), "cannot be read as utf-8", encoding="utf-8")
    refused(write("a,b\nx,2\n"), r"--text: .* no column 'c'. It has: a, b", text=["c"])
    refused(path, r"Column 'a' .* must hold numbers and holds 'x' \(line 2\)", number=["a"])
    refused(path, "both name 'a'", number=["a"], text=["a"])


def test_a_column_without_a_name_is_called_by_its_position(write):
    assert list(read_table(write(",size\n1,2.5\n2,3.5\n")).frame.columns) == ["column 1", "size"]


def test_parquet_and_feather(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet and Feather need pyarrow")
    frame = pd.DataFrame({"size": [1.5, None], "code": ["01", "1"], "n": [1, 2]})
    for name, save in (("t.parquet", frame.to_parquet), ("t.feather", frame.to_feather)):
        path = tmp_path / name
        save(path)
        table = read_table(path)
        assert table.frame["code"].tolist() == ["01", "1"]
        assert table.frame["size"].isna().tolist() == [False, True]
        assert table.frame["n"].dtype == "int64"
        refused(path, "leave out the CSV options", separator=";")
        path.write_bytes(path.read_bytes()[:40])
        refused(path, "cannot be read as")


def test_a_missing_pyarrow_is_named(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(AskwiseError, match=r'pip install "askwise\[arrow\]"'):
        read_table(write(b"PAR1" + bytes(20)))


def test_a_path_can_be_checked_without_the_heavy_libraries():
    heavy = {"pandas", "numpy", "charset_normalizer"}
    code = f"import sys, askwise.table.reading; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_spaces_after_a_number_do_not_make_it_text(write):
    frame = read_table(write("age,rate,code,city\n31 ,1.5 ,01 ,a \n 4,2,2,b\n")).frame
    assert frame["age"].tolist() == [31, 4]
    assert frame["rate"].tolist() == [1.5, 2.0]
    assert frame["code"].tolist() == ["01 ", "2"]
    assert frame["city"].tolist() == ["a ", "b"]


def test_a_name_too_long_for_a_file_is_refused():
    refused("x" * 5000, "There is no file")
    refused(5, "path must be that of a file with a table; got int")
    refused(pd.DataFrame(), "got DataFrame. A frame needs no reader")


def test_thousands_separators_are_recognized(write):
    for cells in (["2.611,05", "611,05", "1.200,00"], ["2,611.05", "611.05", "1,200.00"], ["12 000", "900", "1 000"]):
        path = write("income;y\n" + "".join(f"{cell};a\n" for cell in cells * 5))
        for options in ({}, {"number": ["income"]}):
            refused(
                path, r"'income' .* thousands separators \(such as .* in line 2\). Remove .*--text 'income'", **options
            )
        assert read_table(path, TableOptions(text=["income"])).frame["income"].tolist()[:3] == cells


def test_all_columns_with_words_among_numbers_are_named_at_once(write):
    rows = "".join(f"{i},{i},a\n" for i in range(20))
    refused(write(f"age,size,y\n{rows}n/d,?,b\n"), r"--missing 'n/d'.*--missing '\?'")
    refused(write("a,y\nx,1\n"), r"holds 'x' \(line 2\).*--missing 'x'.*leave out --number 'a'", number=["a"])
