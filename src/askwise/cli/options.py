"""The options that several commands share, as dataclasses, checked before anything heavy is imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from askwise.cli.console import RefusedFolder, failures
from askwise.errors import InvalidInput
from askwise.table.reading import TableOptions, check_path

AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON document instead of text.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Seed of everything that is random.")]


def own_table(*names: str, metavar: str, help: str) -> Any:
    """An option for reading a table of the user's own."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel="Your own table")


@dataclass(frozen=True)
class Reading:
    """How to read a table of the user's own; what is not given is inferred."""

    drop: Annotated[list[str] | None, own_table(metavar="COLUMN", help="A column to leave out; repeatable.")] = None
    separator: Annotated[
        str | None, own_table(metavar="TEXT", help="comma, semicolon, tab, pipe or any character.")
    ] = None
    decimal: Annotated[str | None, own_table(metavar="MARK", help="The decimal mark: . or ,")] = None
    encoding: Annotated[str | None, own_table(metavar="NAME", help="Such as utf-8, utf-16 or cp1252.")] = None
    missing: Annotated[
        list[str] | None,
        own_table(metavar="TEXT", help='A cell that means missing, such as "n/d"; empty ones do. Repeatable.'),
    ] = None
    text: Annotated[list[str] | None, own_table(metavar="COLUMN", help="A column that is text; repeatable.")] = None
    number: Annotated[list[str] | None, own_table(metavar="COLUMN", help="A column that is numbers; repeatable.")] = (
        None
    )

    @property
    def table(self) -> TableOptions:
        """How to read the table."""
        missing, text, number = (tuple(names or ()) for names in (self.missing, self.text, self.number))
        return TableOptions(self.separator, self.decimal, self.encoding, missing, text, number)

    def check(self) -> None:
        """Refuse options that do not go together; by default there are none."""


def _saved(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel="The saved selector")


@dataclass(frozen=True)
class Opening:
    """How to open a saved selector."""

    key_file: Annotated[
        Path | None, _saved(metavar="FILE", help="The key that the folder was signed with; others are refused.")
    ] = None
    trust: Annotated[
        list[str] | None,
        _saved(metavar="CLASS", help="A class of another package that may be loaded; repeatable."),
    ] = None
    model_file: Annotated[
        Path | None, _saved(metavar="FILE", help="The wrapped model, where the folder does not hold it (.pt2).")
    ] = None

    def check(self) -> None:
        """Refuse files that are not there."""
        for option, path in (("--key-file", self.key_file), ("--model-file", self.model_file)):
            if path is not None and not path.is_file():
                raise InvalidInput(f"{option}: there is no file {path}.")


def with_options(*kinds: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: the command gets an option for each field of the dataclasses `kinds`, checked, as first arguments.

    An error of the user is told in a line.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            with failures():
                made = [kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for kind in kinds]
                for options in made:
                    options.check()
                command(*made, **given)

        parameters = list(signature(command, eval_str=True).parameters.values())[len(kinds) :]
        own = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
        run.__signature__ = Signature([*own, *(p for kind in kinds for p in _parameters(kind))])  # type: ignore[attr-defined]
        return run

    return decorate


def _parameters(kind: type) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(kind)
    ]


def parse_amounts(text: str) -> Any:
    """A number (money), or amounts by resource: ``money=200,time=24``; refused as click refuses a value.

    >>> parse_amounts("12.5"), parse_amounts("money=200,time=24")
    (12.5, {'money': 200.0, 'time': 24.0})
    """
    given = [part.partition("=") for part in text.split(",")]
    try:
        if "=" not in text:
            return float(text)
        amounts = {name.strip(): float(amount) for name, _, amount in given}
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor NAME=NUMBER,...") from None
    if len(amounts) < len(given):
        raise typer.BadParameter(f"{text!r} names a resource twice.")
    return amounts


def budget_option(help: str) -> Any:
    """The option for a budget of money, or of several resources."""
    return typer.Option("--budget", metavar="AMOUNT", parser=parse_amounts, help=help)


BUDGET_HELP = "The most that one case may cost; with other resources in the price list: money=200,time=24."


def check_budget_option(budget: Any, option: str = "--budget") -> None:
    """Refuse a budget that is no amount of money, or of a resource."""
    for most in budget.values() if isinstance(budget, dict) else [budget]:
        if most is not None and not 0 <= most < float("inf"):
            raise InvalidInput(f"{option} must be a finite number >= 0; got {most}. Leave it out for no limit.")


def check_saved(folder: Path) -> None:
    """Refuse what cannot be a saved selector."""
    if not folder.is_dir():
        raise RefusedFolder(f"{folder} is not a folder. Give one that `askwise fit` or selector.save has written.")
    if not (folder / "manifest.json").is_file():
        raise RefusedFolder(f"{folder} holds no manifest.json; it was not written by askwise, or not completely.")


def check_place(path: Path, reads: Sequence[Path] = ()) -> Path:
    """`path`, if something can be written there that is neither a file that the command reads nor in such a folder."""
    parent = path.resolve().parent
    if not parent.is_dir():
        raise InvalidInput(f"--output {path} cannot be written: there is no folder {parent}. Create it.")
    if not os.access(parent, os.W_OK):
        raise InvalidInput(f"--output {path} cannot be written: the folder is read-only. Choose another.")
    for source in reads:
        if any(place.exists() and os.path.samefile(place, source) for place in (path, parent)):
            raise InvalidInput(
                f"--output {path} would overwrite or alter {source}, which is read. Choose another place."
            )
    return path


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
        typer.Option(metavar="NAME", help="A data set by name (default: heart); a wrong name lists them all."),
    ] = None
    model: Annotated[
        Model,
        typer.Option(
            help="The reference model, trained in place of your validated model (default: logistic, as in the study "
            "that published the data of the demo, and the best in cross-validation of its training rows)."
        ),
    ] = Model.logistic
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
    budget: Annotated[Any, budget_option(BUDGET_HELP)] = None
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
