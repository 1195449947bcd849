"""The options that `askwise demo` and `askwise ask` share, checked before anything heavy is imported."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askwise.errors import InvalidInput
from askwise.tables import TableOptions, check_path


class Model(StrEnum):
    """The reference models, which take the place of your validated model."""

    mlp = "mlp"
    forest = "forest"
    logistic = "logistic"
    tree = "tree"
    subset_tree = "subset-tree"
    fuzzy_tree = "fuzzy-tree"
    xgboost = "xgboost"


class Adaptation(StrEnum):
    """The ways to predict from incomplete rows that are quick enough for a demo."""

    auto = "auto"
    conditional = "conditional"
    mean = "mean"
    rules = "rules"


RULE_MODELS = (Model.tree, Model.subset_tree, Model.fuzzy_tree)
"""Small enough for their rules to be read."""

OWN = "Your own table"
Data = Annotated[
    str | None, typer.Option(metavar="NAME", help="A data set by name (default: wine); a wrong name lists them all.")
]
Kind = Annotated[Model, typer.Option("--model", help="The reference model, trained in place of your validated model.")]
Adapt = Annotated[
    Adaptation,
    typer.Option(
        "--adaptation",
        help="How to predict from what is known so far: the model averaged over similar training rows (conditional), "
        "on typical values (mean), or its rules, which are then shown (rules: tree, subset-tree, fuzzy-tree, forest). "
        "auto is rules for the three trees and conditional for the others.",
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Your own table instead of --data: CSV, Parquet or Feather.", rich_help_panel=OWN
    ),
]
Target = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column that holds the class.", rich_help_panel=OWN)
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; repeatable.", rich_help_panel=OWN)
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="comma, semicolon, tab, pipe or any character.", rich_help_panel=OWN),
]
Decimal = Annotated[str | None, typer.Option(metavar="MARK", help="The decimal mark: . or ,", rich_help_panel=OWN)]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Such as utf-8, utf-16 or cp1252.", rich_help_panel=OWN)
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT", help='A cell that means missing, such as "n/d"; empty ones do. Repeatable.', rich_help_panel=OWN
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="COLUMN", help="A column that is text; repeatable.", rich_help_panel=OWN),
]
NumberColumns = Annotated[
    list[str] | None,
    typer.Option("--number", metavar="COLUMN", help="A column that is numbers; repeatable.", rich_help_panel=OWN),
]
Price = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=PRICE", help="What a feature costs (default: 1; 0 is free); repeatable."),
]
Budget = Annotated[float | None, typer.Option(help="The most that one case may cost.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Seed of the split, the model and the random orders.")]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON document instead of text.")]


@dataclass(frozen=True)
class Source:
    """Where the rows come from: a data set by name, or a table of the user's own."""

    data: str | None
    csv: Path | None
    target: str | None
    drop: Sequence[str] = ()
    table: TableOptions = field(default_factory=TableOptions)
    prices: Sequence[str] = ()


def check_source(source: Source) -> None:
    """Refuse options that do not go together, and a file that is not there."""
    if source.csv is not None and source.data is not None:
        raise InvalidInput("--data and --csv exclude each other: give the name of a data set, or a table of your own.")
    if source.csv is None and (source.target is not None or source.drop or source.table != TableOptions()):
        raise InvalidInput("--target, --drop and the options for reading a table need a table: add --csv FILE.")
    if source.csv is not None and source.target is None:
        raise InvalidInput("--csv needs --target COLUMN, the column that holds the class of each row.")
    if source.csv is not None:
        check_path(source.csv)


def check_budget(budget: float | None) -> None:
    """Refuse a budget that is no amount of money."""
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise InvalidInput(f"--budget must be a finite number >= 0; got {budget}. Leave it out for no limit.")


def check_report_path(path: str | os.PathLike[str]) -> Path:
    """`path` as a place where a file can be written; checked before the work is done, and again when it is."""
    target = Path(path).resolve()
    if target.is_dir():
        raise InvalidInput(f"The report must be a file; {target} is a folder. Add a file name, such as report.html.")
    if target.exists() and not target.is_file():
        raise InvalidInput(f"The report must be an ordinary file; {target} is something else. Choose another name.")
    if not target.parent.is_dir():
        raise InvalidInput(f"The report cannot be written to {target}: there is no folder {target.parent}. Create it.")
    if not os.access(target.parent, os.W_OK):
        raise InvalidInput(f"The report cannot be written to {target}: the folder is read-only. Choose another.")
    return target
