"""Options that several commands share, as dataclasses: how to read a table, and how to open a saved selector."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from askwise.cli.console import RefusedFolder, failures
from askwise.errors import InvalidInput
from askwise.tables import TableOptions

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


def check_budget_option(budget: float | None) -> None:
    """Refuse a budget that is no amount of money."""
    if budget is not None and not 0 <= budget < float("inf"):
        raise InvalidInput(f"--budget must be a finite number >= 0; got {budget}. Leave it out for no limit.")


def check_saved(folder: Path) -> None:
    """Refuse what cannot be a saved selector."""
    if not folder.is_dir():
        raise RefusedFolder(f"{folder} is not a folder. Give one that `askwise fit` or selector.save has written.")
    if not (folder / "manifest.json").is_file():
        raise RefusedFolder(f"{folder} holds no manifest.json; it was not written by askwise, or not completely.")


def check_place(path: Path, option: str = "--output", reads: Sequence[Path] = ()) -> Path:
    """`path`, if something can be written there that is neither a file that the command reads nor in such a folder."""
    parent = path.resolve().parent
    if not parent.is_dir():
        raise InvalidInput(f"{option} {path} cannot be written: there is no folder {parent}. Create it.")
    if not os.access(parent, os.W_OK):
        raise InvalidInput(f"{option} {path} cannot be written: the folder is read-only. Choose another.")
    for source in reads:
        if any(place.exists() and os.path.samefile(place, source) for place in (path, parent)):
            raise InvalidInput(
                f"{option} {path} would overwrite or alter {source}, which is read. Choose another place."
            )
    return path
