"""Files into tables, and a digest of the table itself, whatever its file format.

The same public table circulates with either kind of line ending, with and without a header line, with `85`
or `85.0`, with `NA`, `NaN`, `NaNN` or `?` for a missing cell. All of these give the same table and the
same digest.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

MISSING_SPELLINGS = frozenset({"", "?", "na", "nan", "nann", "n/a", "null"})
"""Cells that mean "missing", in lower case. `None` is not among them: in diabetes130 it is a value."""

_MISSING, _AFTER_CELL, _AFTER_NAME, _AFTER_COLUMN = "\x00", "\x1f", "\x1e", "\x1d"


def read_table(
    content: bytes, columns: Sequence[str], text: Collection[str] = (), separator: str = ","
) -> pd.DataFrame:
    """A delimited file as a table with the given `columns`: those in `text` are strings, the others floats.

    A header line is recognized by having no number where numbers belong. Columns are taken by their name in
    the header where it has all the names, in any order, and else by position.
    """
    cells = pd.read_csv(
        io.BytesIO(content), sep=separator, header=None, dtype=str, keep_default_na=False, encoding="utf-8-sig"
    )
    if cells.shape[1] != len(columns):
        raise ValueError(f"it must have {len(columns)} columns and has {cells.shape[1]}")
    positions = list(range(len(columns)))
    numeric = [i for i, name in enumerate(columns) if name not in text]
    first = [str(cell).strip() for cell in cells.iloc[0]]
    if all(np.isnan(_number(first[i])) for i in numeric):
        cells = cells.iloc[1:]
        if set(columns) <= set(first):
            positions = [first.index(name) for name in columns]
    return pd.DataFrame(
        {
            name: _strings(cells[i]) if name in text else _floats(cells[i])
            for name, i in zip(columns, positions, strict=True)
        }
    )


def table_digest(table: pd.DataFrame) -> str:
    """Sha256 of a table in a canonical text form, in hexadecimal.

    The form is, column by column, the name and then the cells: a number as ``repr(float)``, a string unchanged, a
    missing cell as a character that no cell holds.
    """
    state = hashlib.sha256()
    for name in table.columns:
        codes, distinct = pd.factorize(table[name])
        texts = np.array([*map(_canonical, distinct), _MISSING], dtype=object)
        # A missing cell has code -1, which picks the last entry.
        column = f"{name}{_AFTER_NAME}{_AFTER_CELL.join(texts[codes])}{_AFTER_COLUMN}"
        state.update(column.encode())
    return state.hexdigest()


def unpacked(content: bytes, member: str) -> bytes:
    """The uncompressed file: `content` itself, unzipped, or the `member` of that name in a zip archive."""
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    if not content.startswith(b"PK\x03\x04"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for path in archive.namelist():
            if PurePosixPath(path).name == member:
                return archive.read(path)
    raise ValueError(f"the zip archive holds no file {member}")


def _canonical(value: object) -> str:
    # Adding zero turns -0.0 into 0.0.
    return value if isinstance(value, str) else repr(float(value) + 0.0)  # type: ignore[arg-type]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _floats(cells: pd.Series) -> pd.Series:
    codes, distinct = pd.factorize(cells)
    numbers = np.array([*map(_number, distinct), np.nan])
    return pd.Series(numbers[codes])


def _strings(cells: pd.Series) -> pd.Series:
    codes, distinct = pd.factorize(cells)
    stripped = [str(cell).strip() for cell in distinct]
    strings = pd.Series([None if cell.lower() in MISSING_SPELLINGS else cell for cell in stripped] + [None])
    return strings.take(codes).reset_index(drop=True)
