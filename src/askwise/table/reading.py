"""One reader for tables in files: CSV (any usual separator, decimal mark and encoding), Parquet and Feather.

Text stays text: "01" is not 1, and "NA" is a word unless it is declared as missing. What is inferred is recorded
in `Table.inferred`, with the option that overrides it. pandas is imported where it is used, so that a wrong path is
reported at once.
"""

from __future__ import annotations

import csv
import io
import os
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askwise.errors import AskwiseError, InvalidInput, listed
from askwise.table.encodings import decoded, looks_binary
from askwise.table.number_columns import NUMBER, TextColumn, find_decimal, find_number_columns, to_numbers

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
SIGNATURES = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"\x89PNG": "a picture",
}
ARROW_FORMATS = {b"PAR1": "Parquet", b"ARROW1": "Feather", b"FEA1": "Feather"}
SNIFFED_ROWS = 200


@dataclass(frozen=True)
class TableOptions:
    """Options for reading a file; what is None, and the kind of a column that is not named, is inferred.

    `missing` lists cells that mean "missing" besides empty ones; `text` and `number` list columns. `expected` says of
    columns that may be in the file whether they hold numbers, and `usual_encoding` is that of the training table, for
    a file that is not in UTF-8; both do not matter for Parquet and Feather.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: Sequence[str] = ()
    text: Sequence[str] = ()
    number: Sequence[str] = ()
    expected: Mapping[str, bool] = field(default_factory=dict)
    usual_encoding: str | None = None


@dataclass(frozen=True)
class Table:
    """A table, and a description of what was inferred about its file.

    `encoding` is that of a text file. `doubt` says that it was guessed, and how others would read the file; it is empty
    for UTF-8 and for an encoding that was given.
    """

    frame: pd.DataFrame
    inferred: list[str]
    encoding: str | None = None
    doubt: str = ""


def check_path(path: Path) -> Path:
    """`path`, if it is a file that can be read; fast, so it can be checked before anything is imported."""
    if not os.path.exists(path):  # unlike Path.exists, it answers for names that are too long as well
        raise InvalidInput(f"There is no file {path}. Give the path of a table in CSV, Parquet or Feather.")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, so it cannot be read as a table. Give the path of a file in it.")
    if not os.access(path, os.R_OK):
        raise InvalidInput(f"{path} cannot be read: permission denied. Change its permissions, or copy it.")
    return path


def read_table(path: str | os.PathLike[str], options: TableOptions | None = None) -> Table:
    """Read a table; the file format is detected from its content.

    Parameters
    ----------
    path
        CSV with a line of column names, Parquet or Feather.
    options
        What is known about the file; the rest is inferred.

    Returns
    -------
    Table
        In a CSV file, columns of numbers are integers or floats and all others text; empty cells are missing.
    """
    if not isinstance(path, str | os.PathLike):
        got = type(path).__name__
        raise InvalidInput(f"path must be that of a file with a table; got {got}. A frame needs no reader.")
    path, options = check_path(Path(path)), options or TableOptions()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None
    if not content.strip():
        raise InvalidInput(f"{path} is empty; a line of column names and one line per case are needed.")
    for signature, kind in ARROW_FORMATS.items():
        if content.startswith(signature):
            return _read_arrow(path, kind, options)
    for signature, what in SIGNATURES.items():
        if content.startswith(signature):
            raise InvalidInput(f"{path} is {what}, not a text table. Export it as CSV.")
    return _read_csv(path, content, options)


def _read_arrow(path: Path, kind: str, options: TableOptions) -> Table:
    import pandas as pd

    if replace(options, expected={}, usual_encoding=None) != TableOptions():
        raise InvalidInput(f"{path} is a {kind} file, which stores the column types; leave out the CSV options.")
    try:
        frame = pd.read_parquet(path) if kind == "Parquet" else pd.read_feather(path)
    except ImportError:
        raise AskwiseError(f'Reading {kind} needs pyarrow. Install it with: pip install "askwise[arrow]"') from None
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        raise InvalidInput(f"{path} cannot be read as {kind}: {error}. Write the file again.") from None
    if frame.index.names != [None]:
        frame = frame.reset_index()
    frame.columns = pd.Index(_names([str(name) for name in frame.columns], path))
    return Table(frame.reset_index(drop=True), [f"{path.name}: {kind}, the types of its columns are in the file"])


def _read_csv(path: Path, content: bytes, options: TableOptions) -> Table:
    text, encoding, doubt = _decode(path, content, options)
    separator = _check_separator(options.separator) or _find_separator(text)
    (_, header), *rows = _records(path, text, separator)
    names = _names([name.strip() for name in header], path)
    _check_columns(path, names, options)
    missing = {"", *options.missing}
    lines = [line for line, _ in rows]
    columns = [
        TextColumn(name, [None if cells[j] in missing else cells[j] for _, cells in rows], lines)
        for j, name in enumerate(names)
    ]
    decimal = _check_decimal(options.decimal) or find_decimal(path, columns)
    return replace(_build(path, columns, options, (separator, decimal, encoding)), encoding=encoding, doubt=doubt)


def _decode(path: Path, content: bytes, options: TableOptions) -> tuple[str, str, str]:
    """The text, its encoding, and what speaks for another one."""
    declared, usual = options.encoding, options.usual_encoding
    try:
        if declared is None:
            text, encoding, words = decoded(content, usual)
            return (
                text,
                encoding,
                "" if encoding.startswith("utf") or encoding == usual else _doubt(path, encoding, words),
            )
        text = content.decode(declared)
    except LookupError:
        raise InvalidInput(f"--encoding: there is no encoding {declared!r}. Try utf-8, latin-1 or cp1252.") from None
    except UnicodeError as error:
        if declared is None:
            raise InvalidInput(
                f"{path} cannot be read as text: it looks binary. If it is text, name its --encoding."
            ) from None
        raise InvalidInput(f"{path} cannot be read as {declared}: {error}. Leave out --encoding.") from None
    if looks_binary(text):
        raise InvalidInput(f"{path} cannot be read as text: it looks binary. If it is text, name its --encoding.")
    return text.removeprefix("\ufeff"), declared, ""


def _doubt(path: Path, encoding: str, words: Mapping[str, str]) -> str:
    read = f", which reads {words[encoding]!r}" if encoding in words else ""
    others = ", ".join(f"{name} {word!r}" for name, word in words.items() if name != encoding)
    also = f"; as likely: {others}" if others else ""
    return f"{path.name} is not in UTF-8: read as {encoding}{read}{also}. If that is wrong: --encoding NAME"


def garbled(missing: Sequence[str], there: Sequence[str]) -> str:
    """A hint where a column that is missing is there with other letters beyond ASCII; otherwise empty.

    >>> garbled(["âge"], ["Ăge", "dose"])
    " The file has 'Ăge': is it in another encoding? Name it, such as --encoding cp1252."
    """

    def bare(name: str) -> str:
        plain = "".join(letter for letter in unicodedata.normalize("NFKD", name) if letter.isascii())
        return plain.casefold()

    def ascii_only(name: str) -> str:
        return "".join(letter for letter in name if letter.isascii()).casefold()

    for name in missing:
        for other in there:
            if name.isascii() and other.isascii():
                continue
            if bare(name) == bare(other) or ascii_only(name) == ascii_only(other) != "":
                return f" The file has {other!r}: is it in another encoding? Name it, such as --encoding cp1252."
    return ""


def _check_separator(separator: str | None) -> str | None:
    names = {name: mark for mark, name in SEPARATORS.items()} | {"\\t": "\t"}
    mark = names.get(separator or "", separator)
    if mark is not None and (len(mark) != 1 or mark in '"\r\n'):
        raise InvalidInput(f"--separator must be one character, or {listed(names)}; got {separator!r}.")
    return mark


def _check_decimal(decimal: str | None) -> str | None:
    if decimal not in (None, ".", ","):
        raise InvalidInput(f"--decimal must be a point or a comma; got {decimal!r}.")
    return decimal


def _find_separator(text: str) -> str:
    """The separator by which most of the first rows have as many cells as the header, more than one."""

    def fit(separator: str) -> tuple[float, int]:
        try:
            counts = [len(record) for record in islice(_reader(text, separator), SNIFFED_ROWS) if record]
        except csv.Error:
            return 0.0, 0
        return (counts.count(counts[0]) / len(counts), counts[0]) if counts and counts[0] > 1 else (0.0, 0)

    return max(SEPARATORS, key=fit)


def _reader(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)


def _records(path: Path, text: str, separator: str) -> list[tuple[int, list[str]]]:
    """(line in the file, cells) of every row, the header first; all have the same number of cells."""
    reader, records = _reader(text, separator), []
    try:
        for record in reader:
            if record:
                records.append((reader.line_num, record))
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {reader.line_num}: {error}. Check the quotation marks there.") from None
    width = len(records[0][1])
    for line, record in records:
        if len(record) != width:
            raise InvalidInput(
                f"{path}, line {line} has {len(record)} cells and the header {width} (separated by {separator!r}). "
                'Fix that line (a cell that holds the separator must be in "quotes"), or give another --separator.'
            )
    return records


def _names(header: list[str], path: Path) -> list[str]:
    """Column names; one without a name, such as the index that R or pandas writes, is named by its position."""
    names = [name or f"column {position}" for position, name in enumerate(header, start=1)]
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidInput(f"{path} has {count} columns named {name!r}; column names must differ. Rename them.")
    if all(NUMBER.fullmatch(name.replace(",", ".")) for name in names):
        raise InvalidInput(f"The first line of {path} holds only numbers; a line of column names must come first.")
    return names


def _check_columns(path: Path, names: Sequence[str], options: TableOptions) -> None:
    for option, columns in (("--text", options.text), ("--number", options.number)):
        for name in columns:
            if name not in names:
                raise InvalidInput(f"{option}: {path} has no column {name!r}. It has: {listed(names, spell=str)}.")
    for name in set(options.text) & set(options.number):
        raise InvalidInput(f"--text and --number both name {name!r}; a column is one or the other.")


def _build(path: Path, columns: Sequence[TextColumn], options: TableOptions, found: tuple[str, str, str]) -> Table:
    import pandas as pd

    separator, decimal, encoding = found
    declared = {**options.expected, **dict.fromkeys(options.text, False), **dict.fromkeys(options.number, True)}
    numeric = find_number_columns(path, columns, decimal, declared)
    built = {c.name: to_numbers(c, decimal) if numeric[c.name] else pd.Series(c.cells, dtype="str") for c in columns}
    kinds = {kind: [name for name, is_number in numeric.items() if is_number == kind] for kind in (True, False)}
    mark = "a comma" if decimal == "," else "a point"
    return Table(
        pd.DataFrame(built),
        [
            f"{path.name}: separated by {SEPARATORS.get(separator, repr(separator))}, {mark} as decimal mark, encoding "
            f"{encoding} (to override: --separator, --decimal, --encoding)",
            f"numbers: {listed(kinds[True], 40, str) or 'none'} (to override: --text COLUMN)",
            f"text: {listed(kinds[False], 40, str) or 'none'} (to override: --number COLUMN)",
            f"missing: empty cells{''.join(f', {text!r}' for text in options.missing)} (to add: --missing TEXT)",
        ],
    )
