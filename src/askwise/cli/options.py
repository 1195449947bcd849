"""The options that `askwise demo` and `askwise ask` share, checked before anything heavy is imported."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.shared_options import AsJson, Reading, check_budget_option, own_table
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
    pooled = "pooled"
    mean = "mean"
    rules = "rules"


RULE_MODELS = (Model.tree, Model.subset_tree, Model.fuzzy_tree)
"""Small enough for their rules to be read."""


@dataclass(frozen=True)
class Setup(Reading):
    """The options that `askwise demo` and `askwise ask` share: where the rows come from, and how they are used."""

    data: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A data set by name (default: wine); a wrong name lists them all."),
    ] = None
    model: Annotated[Model, typer.Option(help="The reference model, trained in place of your validated model.")] = (
        Model.mlp
    )
    adaptation: Annotated[
        Adaptation,
        typer.Option(
            help="How to predict from what is known so far: the model averaged over similar training rows "
            "(conditional), that pooled with a simple model of each class (pooled), on typical values (mean), "
            "or its rules, which are then shown (rules: tree, subset-tree, fuzzy-tree, forest). auto is rules for the "
            "three trees and conditional for the others."
        ),
    ] = Adaptation.auto
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PRICE", help="What a feature costs (default: 1; 0 is free); repeatable."),
    ] = None
    budget: Annotated[float | None, typer.Option(help="The most that one case may cost.")] = None
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Seed of the split, the model and the random orders.")] = 0
    as_json: AsJson = False
    csv: Annotated[
        Path | None, own_table(metavar="FILE", help="Your own table instead of --data: CSV, Parquet or Feather.")
    ] = None
    target: Annotated[str | None, own_table(metavar="COLUMN", help="The column that holds the class.")] = None

    def check(self) -> None:
        """Refuse options that do not go together, a file that is not there, and a budget that is no amount of money."""
        if self.csv is not None and self.data is not None:
            raise InvalidInput(
                "--data and --csv exclude each other: give the name of a data set, or a table of your own."
            )
        if self.csv is None and (self.target is not None or self.drop or self.table != TableOptions()):
            raise InvalidInput("--target, --drop and the options for reading a table need a table: add --csv FILE.")
        if self.csv is not None and self.target is None:
            raise InvalidInput("--csv needs --target COLUMN, the column that holds the class of each row.")
        if self.csv is not None:
            check_path(self.csv)
        check_budget_option(self.budget)


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
