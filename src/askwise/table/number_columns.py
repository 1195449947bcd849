"""Finds the columns of a text table that hold numbers, and their decimal mark, and parses them.

A column is numeric only if every cell is a number. Leading zeros ("01") and very long numbers indicate codes, which
stay text; words among numbers and ambiguous commas (decimal or thousands) are errors, not guesses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from askwise.errors import InvalidInput, listed

if TYPE_CHECKING:
    import pandas as pd

MOST_DIGITS = 15
"""Whole numbers with more digits are not exact as floats; a column of them is an identifier and stays text."""

FEW_NUMBERS = 10
"""Up to this many distinct numbers among words may be categories ("1", "2", "3 or more")."""

NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_PADDED = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d+")
_GROUPED = re.compile(r"[+-]?\d{1,3}([.,' \u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class TextColumn:
    """The cells of one column, None where missing, and their lines in the file."""

    name: str
    cells: list[str | None]
    lines: list[int]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each cell occurs; missing ones are left out."""
        return Counter(cell for cell in self.cells if cell is not None)

    def line_of(self, cell: str) -> int:
        return self.lines[self.cells.index(cell)]


def is_number(cell: str, decimal: str, padded: bool = False) -> bool:
    """Whether a cell is a number; `padded` allows leading zeros."""
    text = _with_point(cell, decimal)
    return bool(NUMBER.fullmatch(text) or (padded and _PADDED.fullmatch(text)))


def find_decimal(path: Path, columns: Sequence[TextColumn]) -> str:
    """The decimal mark of columns of numbers; an error if they differ or are ambiguous."""
    commas, unsure = "", ""
    for column in columns:
        marked = [cell for cell in column.counts if "," in cell]
        if marked and _share(column, ",") > 0.5:
            thousands = all(_THOUSANDS.fullmatch(cell) for cell in marked)
            commas, unsure = (commas, column.name) if thousands else (column.name, unsure)
    points = [column.name for column in columns if (commas or unsure) and _has_points(column)]
    if points:
        raise InvalidInput(
            f"{path} has decimal points in {points[0]!r} and commas in the numbers of {commas or unsure!r}. Write all "
            "numbers alike, or name the decimal mark with --decimal; columns written the other way are then text."
        )
    if unsure and not commas:
        raise InvalidInput(
            f"{path}: the commas in {unsure!r} may be decimal commas or separate thousands. If they are decimal "
            "commas, add --decimal ','; if not, remove them from the file."
        )
    return "," if commas else "."


def is_number_column(path: Path, column: TextColumn, decimal: str, declared: bool | None = None) -> bool:
    """Whether a column holds numbers: as declared, or if all cells are numbers; a mix with words is an error."""
    odd = [cell for cell in column.counts if not is_number(cell, decimal)]
    words = [cell for cell in odd if not is_number(cell, decimal, padded=True)]
    if declared is not False and _is_grouped(words):
        raise InvalidInput(_thousands(path, column, words))
    if declared and words:
        line = column.line_of(words[0])
        raise InvalidInput(
            f"Column {column.name!r} of {path} must hold numbers and holds {words[0]!r} (line {line}). If that means "
            f"missing, add --missing {words[0]!r}; otherwise correct the cell, or leave out --number {column.name!r}."
        )
    if declared is not None or not column.counts:
        return bool(declared)
    if not words:
        return not odd and not any(_is_long(cell) for cell in column.counts)
    n_numbers = len(column.counts) - len(words)
    if _share(column, decimal) >= 0.5 or n_numbers > max(FEW_NUMBERS, len(words)):
        raise InvalidInput(_words_among_numbers(path, column, words))
    return False


def find_number_columns(
    path: Path, columns: Sequence[TextColumn], decimal: str, declared: Mapping[str, bool]
) -> dict[str, bool]:
    """`is_number_column` of each column by name; the errors of all columns together."""
    found, problems = {}, []
    for column in columns:
        try:
            found[column.name] = is_number_column(path, column, decimal, declared.get(column.name))
        except InvalidInput as error:
            problems.append(str(error))
    if problems:
        raise InvalidInput(" ".join(problems))
    return found


def to_numbers(column: TextColumn, decimal: str) -> pd.Series:
    """A column of numbers: integers if all are whole and none is missing, otherwise floats."""
    import pandas as pd

    whole = None not in column.cells and all(
        _WHOLE.fullmatch(cell.strip()) and not _is_long(cell) for cell in column.counts
    )
    convert = int if whole else float
    values = {cell: convert(_with_point(cell, decimal)) for cell in column.counts}
    return pd.Series([float("nan") if cell is None else values[cell] for cell in column.cells])


def _with_point(cell: str, decimal: str) -> str:
    cell = cell.strip()  # spaces around a number mean nothing; csv drops those before it
    if decimal == ".":
        return cell
    return "not a number" if "." in cell or cell.count(",") > 1 else cell.replace(",", ".")


def _share(column: TextColumn, decimal: str) -> float:
    """The share of the cells that are numbers."""
    numbers = sum(count for cell, count in column.counts.items() if is_number(cell, decimal))
    return numbers / max(1, column.counts.total())


def _has_points(column: TextColumn) -> bool:
    return any("." in cell for cell in column.counts) and all(is_number(cell, ".") for cell in column.counts)


def _is_long(cell: str) -> bool:
    return len(cell.strip()) > MOST_DIGITS and _WHOLE.fullmatch(cell.strip()) is not None


def _is_grouped(words: Sequence[str]) -> bool:
    """Whether cells that are not numbers would be, without thousands separators or with the other decimal mark."""
    grouped = [_GROUPED.fullmatch(cell) is not None for cell in words]
    others = [cell for cell, matched in zip(words, grouped, strict=True) if not matched]
    return any(grouped) and all(is_number(cell, ".") or is_number(cell, ",") for cell in others)


def _thousands(path: Path, column: TextColumn, words: Sequence[str]) -> str:
    cell = next(cell for cell in words if _GROUPED.fullmatch(cell))
    return (
        f"Column {column.name!r} of {path} looks like numbers with thousands separators (such as {cell!r} in line "
        f"{column.line_of(cell)}). Remove the thousands separators from the file; if the column is text, add "
        f"--text {column.name!r}."
    )


def _words_among_numbers(path: Path, column: TextColumn, words: Sequence[str]) -> str:
    declared = " ".join(f"--missing {word!r}" for word in words[:3])
    return (
        f"Column {column.name!r} of {path} holds numbers and also {listed(words, most=3)} (first in line "
        f"{column.line_of(words[0])}). If that means missing, add {declared}; if the column is text, add "
        f"--text {column.name!r}."
    )
