"""The files of a user, read and checked: a training table, groups of columns, and cases for a saved selector."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from askwise.cli.console import RefusedFolder
from askwise.cli.options import Opening, Reading
from askwise.cli.price_list import price_list
from askwise.cli.user_table import read_noted
from askwise.errors import InvalidInput, listed
from askwise.selector import DynamicFeatureSelector
from askwise.table.desk import Desk, Shown
from askwise.table.prices import Prices
from askwise.table.reading import TableOptions, garbled
from askwise.table.schema import Schema
from askwise.table.schema import read_table as read_schema


def advising_options(error: InvalidInput) -> str:
    """The message of `askwise.load`, with the options of the command line in place of the parameters that it advises.

    >>> advising_options(InvalidInput("Name them: askwise.load(folder, trusted=['a.B', 'c.D'])."))
    'Name them: --trust a.B --trust c.D.'
    """
    said = re.sub(r"askwise\.load\(folder, model=\.\.\.\)", "--model-file FILE", str(error))
    said = re.sub(r"askwise\.load\(folder, key_file=\.\.\.\)", "--key-file FILE", said)

    def named(call: re.Match[str]) -> str:
        return " ".join(f"--trust {name}" for name in re.findall(r"'([^']+)'", call[1]))

    return re.sub(r"askwise\.load\(folder, trusted=\[(.*?)\]\)", named, said)


def read_groups(path: Path | None) -> dict[str, list[str]] | None:
    """Groups of columns from a TOML file: lines ``"lab panel" = ["iron", "zinc"]``."""
    if path is None:
        return None
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}.") from None
    groups = found.get("groups", found)
    if not isinstance(groups, dict) or not all(isinstance(columns, list) for columns in groups.values()):
        raise InvalidInput(f'{path} must hold lines such as "lab panel" = ["iron", "zinc"].')
    return groups


def open_saved(folder: Path, opening: Opening, framed: bool = True) -> tuple[DynamicFeatureSelector, Desk]:
    """The selector of a saved folder, and its desk; `framed`: its columns must have names, by which files are read."""
    from askwise.persistence import load
    from askwise.persistence.model_file import read_program

    model = None if opening.model_file is None else read_program(opening.model_file)
    try:
        selector = load(folder, opening.key_file, opening.trust or (), model)
        if (
            not isinstance(selector, DynamicFeatureSelector)
            or not selector.schema_.tabular
            or (framed and not selector.schema_.framed)
        ):
            raise InvalidInput(
                f"{folder} holds a {type(selector).__name__} for arrays or images, or a baseline; the commands need a "
                "DynamicFeatureSelector that was fitted on a table with column names. Use it in Python."
            )
        return selector, Desk.load(folder, selector, opening.key_file)
    except InvalidInput as error:
        raise RefusedFolder(advising_options(error)) from None


def read_cases(path: Path, selector: Any, desk: Desk, reading: Reading, *, keep: Sequence[str] = ()) -> pd.DataFrame:
    """The cases of a file with the columns of the selector, in its order and types, after those to `keep`.

    Columns may be in any order. The target is left out unless it is kept; other columns that the selector does not
    have are an error, and so are columns that are missing or of another type.
    """
    schema = selector.schema_
    table = read_noted(path, _typed(selector, desk, reading)).frame
    names = [column.name for column in schema.columns]
    ignored = {*keep, *(reading.drop or ()), *([desk.target] if desk.target else [])}
    missing = [name for name in [*names, *keep] if name not in table.columns]
    extra = [name for name in table.columns if name not in names and name not in ignored]
    if missing or extra:
        raise InvalidInput(
            f"{path} must have the columns of the selector. Missing: {listed(missing) or 'none'}; not known: "
            f"{listed(extra) or 'none'}. Leave a column out with --drop COLUMN; add an empty one for what is "
            f"unavailable.{garbled(missing, extra)}"
        )
    if not len(table):
        raise InvalidInput(f"{path} has no rows.")
    columns = {name: _as_trained(table[name], schema, j, path) for j, name in enumerate(names)}
    frame = pd.DataFrame(columns)
    frame.columns = pd.Index([column.label for column in schema.columns], dtype=object)
    try:
        schema.encode(frame)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    return pd.concat([table[list(keep)], frame], axis=1) if keep else frame


def _typed(selector: Any, desk: Desk, reading: Reading) -> TableOptions:
    """How to read a file: text and numbers as in training, unless options say otherwise."""
    expected = {column.name: not column.is_category for column in selector.schema_.columns}
    if desk.target:
        expected[desk.target] = selector.classes_.dtype.kind in "iuf"
    return replace(reading.table, expected=expected, usual_encoding=desk.encoding)


def _as_trained(cells: pd.Series, schema: Schema, j: int, path: Path) -> pd.Series:
    """A column in the type of training: booleans that a CSV file spells as text, and numbers that must be numbers."""
    column = schema.columns[j]
    if column.values is not None and all(isinstance(value, bool | np.bool_) for value in column.values):
        spelled = {"true": True, "false": False}
        return cells.map(lambda cell: spelled.get(str(cell).lower(), cell))
    if column.values is None and not pd.api.types.is_numeric_dtype(cells) and cells.notna().any():
        raise InvalidInput(
            f"{path}: column {column.name!r} holds text such as {str(cells.dropna().iloc[0])[:40]!r}, and numbers in "
            f"training. Correct it, or name what means missing: --missing TEXT."
        )
    return cells.astype(float) if column.values is None and not cells.notna().any() else cells


def template_of(frame: pd.DataFrame, groups: dict[str, list[str]] | None, currency: str | None) -> str:
    """A price list to fill in for the columns of a table."""
    schema, rows = read_schema(frame, groups)
    shown = {}
    for column, cells in zip(schema.columns, rows.values.T, strict=True):
        ends = None if column.is_category else (float(np.nanmin(cells)), float(np.nanmax(cells)))
        shown[column.name] = Shown(column.name, None, *(ends or (None, None)))
    return price_list(schema, Prices().resolve(schema.features), Desk(currency, shown))


def read_labeled(
    path: Path, selector: Any, desk: Desk, reading: Reading, target: str | None
) -> tuple[pd.DataFrame, np.ndarray]:
    """The cases of a file and their labels."""
    desk = replace(desk, target=target or desk.target)
    if desk.target is None:
        raise InvalidInput("Name the column that holds the class: --target COLUMN.")
    cases = read_cases(path, selector, desk, reading, keep=[desk.target])
    labels = cases.pop(desk.target)
    known = set(selector.classes_.tolist())
    unknown = [label for label in labels.unique() if label not in known]
    if unknown:
        raise InvalidInput(
            f"{path}: the column {desk.target!r} holds {unknown[0]!r}, which is not one of the classes of the selector "
            f"({listed(selector.classes_.tolist())}). Correct it, or remove those rows."
        )
    return cases, labels.to_numpy(dtype=selector.classes_.dtype)
