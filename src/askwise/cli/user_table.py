"""A user's own table as a data set: whatever cannot be used is refused by name, before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from askwise.cli.console import make_console
from askwise.cli.options import Reading
from askwise.datasets import Dataset
from askwise.errors import InvalidInput, listed
from askwise.table.reading import Table, TableOptions, garbled, read_table

FEWEST_ROWS = 20
MOST_CLASSES = 50
MOST_NUMERIC_CLASSES = 20


def read_noted(path: Path, options: TableOptions) -> Table:
    """The table at `path`; where its encoding had to be guessed, a note says so."""
    found = read_table(path, options)
    if found.doubt:
        make_console(stderr=True).print(f"Note: {found.doubt}", style="yellow", soft_wrap=True)
    return found


def load_user_table(path: Path, target: str, reading: Reading) -> tuple[Dataset, str | None]:
    """The table at `path` as a `Dataset`, with notes on what was inferred, and the encoding of its file.

    Only columns of --drop are left out.
    """
    found, notes = read_noted(path, reading.table), make_console(stderr=True)
    for line in found.inferred:
        notes.print(line, soft_wrap=True)
    dataset = _checked(found.frame, path, target, reading.drop or [])
    for column in row_counters(dataset.X):
        notes.print(f"Note: column {column!r} numbers the rows. If it is an id: --drop {column!r}")
    return dataset, found.encoding


def _checked(table: pd.DataFrame, path: Path, target: str, drop: Sequence[str]) -> Dataset:
    if len(table) < FEWEST_ROWS:
        raise InvalidInput(
            f"{path} has {len(table)} rows; at least {FEWEST_ROWS} are needed to train a model and to test it."
        )
    absent = [column for column in (target, *drop) if column not in table.columns]
    if absent:
        names = listed(table.columns, spell=str)
        hint = garbled(absent, list(table.columns))
        raise InvalidInput(f"{path} has no column {listed(absent)}. Its columns are: {names}.{hint}")
    if target in drop:
        raise InvalidInput(f"--drop names {target!r}, which is the target; leave it out of --drop.")
    X = table.drop(columns=[target, *drop])
    if not X.shape[1]:
        raise InvalidInput(f"{path} has no columns besides the target {target!r}; features to ask for are needed.")
    labels = _checked_target(table[target], path)
    problems = [said for column in X.columns if (said := _problem(X[column], path))]
    if problems:
        raise InvalidInput(" ".join(problems))
    text = f"{path.name}: {len(X):,} rows, {X.shape[1]} features. Label: {target}."
    return Dataset(path.stem, X, labels, None, None, text)


def row_counters(X: pd.DataFrame) -> list[str]:
    """Columns that number the rows (1, 2, 3, ...): most often an id, which tells the label of a sorted table."""
    whole = X.select_dtypes("integer")
    return [str(name) for name in whole.columns if len(X) > 1 and (whole[name].diff().iloc[1:] == 1).all()]


def _checked_target(labels: pd.Series, path: Path) -> np.ndarray:
    name = labels.name
    missing = int(labels.isna().sum())
    if missing:
        raise InvalidInput(
            f"The target {name!r} is missing in {missing} of {len(labels)} rows of {path} (the first is row "
            f"{int(labels.isna().to_numpy().argmax()) + 1}). Fill in the label, or remove those rows from the file."
        )
    distinct = labels.nunique()
    if distinct == 1:
        raise InvalidInput(
            f"The target {name!r} of {path} is {labels.iloc[0]!r} in every row; two or more classes are needed."
        )
    numeric = pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels)
    if distinct > min(MOST_NUMERIC_CLASSES if numeric else MOST_CLASSES, len(labels) // 2):
        what = "a number to predict (regression), which is not supported" if numeric else "a name or an id, not a class"
        raise InvalidInput(
            f"The target {name!r} of {path} has {distinct} different values in {len(labels)} rows: {what}. Choose "
            "another column, or turn it into a few classes such as low, medium and high."
        )
    return labels.to_numpy() if numeric else labels.astype(str).to_numpy(dtype=str)


def _problem(column: pd.Series, path: Path) -> str:
    """Why a column cannot be used; empty if it can."""
    present = column.dropna()
    if present.empty:
        return f"Column {column.name!r} of {path} is empty; leave it out with --drop {column.name!r}."
    text = not pd.api.types.is_numeric_dtype(column)
    if text and present.nunique() > max(10, len(present) // 2):
        return (
            f"Column {column.name!r} of {path} is text with {present.nunique()} different values in {len(present)} "
            f"rows (such as {str(present.iloc[0])[:40]!r}): an id, a name or a date, which tells nothing. "
            f"Leave it out with --drop {column.name!r}, or turn a date into a number such as days."
        )
    return ""
