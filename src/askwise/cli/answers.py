"""What a person types, as values: categories in any case, decimal commas, and values of features not asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from askwise.case import Session
from askwise.errors import InvalidInput, listed
from askwise.table.columns import Column
from askwise.table.desk import Desk
from askwise.table.schema import Schema

MOST_VALUES_SHOWN = 12
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_ORDER = re.compile(r"set\s+(\S+)", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


class Command(Enum):
    """What can be typed instead of a value."""

    HELP = "?"
    SKIP = "-"
    UNDO = "u"
    STOP = "q"
    WHY = "why?"


WORDS = {**{command.value: command for command in Command}, "help": Command.HELP, "skip": Command.SKIP}
WORDS |= {"why": Command.WHY, "undo": Command.UNDO, "quit": Command.STOP, "exit": Command.STOP}

USAGE = "Type a value, or: why?, - unavailable, u undo, q quit, ? help; NAME = VALUE for something known already."
HELP = """  Type the value of the feature that is asked for.
  why?          why this feature comes next, likely answers, alternatives
  -             it is unavailable for this case; it is not charged
  NAME = VALUE  a value of any feature that is known already; not charged
  = VALUE       a value that is spelled like a command
  set PRICE     what to order together within a price
  u             undo the last answer
  q             quit, and show the case step by step"""


def parse_value(column: Column, text: str) -> Any:
    """The value that was typed for a column, as `Session.answer` takes it."""
    if column.is_category:
        return _category(column, text)
    if _THOUSANDS.fullmatch(text):
        raise InvalidInput(
            f"{text} may be {text.replace(',', '.')} or {text.replace(',', '')}; type it without a comma."
        )
    if text.lower() in ("nan", "na"):
        raise InvalidInput(f"{column.name!r} needs a number; type - if it is unavailable.")
    return column.parse_answer(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)


def parse_command(column: Column, text: str) -> Command | None:
    """The command that was typed; a word such as "help" may be a category instead."""
    return None if len(text) > 1 and spells_category(column, text) else WORDS.get(text.lower())


def parse_order(column: Column, text: str) -> str | None:
    """The price that was typed in ``set PRICE``; None for anything else, such as a category spelled like that."""
    found = _ORDER.fullmatch(text)
    return None if found is None or spells_category(column, text) else found[1]


def find_column(schema: Schema, name: str) -> Column | None:
    """The column of that name, or of that feature of one column; upper and lower case count only between two such."""
    names = {column.name: column for column in schema.columns}
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if len(columns) == 1:
            names.setdefault(feature, schema.columns[columns[0]])
    found = _match(name, list(names))
    return names[found] if found is not None else None


def feature_of(schema: Schema, column: Column) -> str:
    """The feature that a column belongs to."""
    return schema.features[schema.owner[schema.columns.index(column)]]


def parse_assignment(schema: Schema, text: str) -> tuple[Column, str] | None:
    """``name = value`` or ``name: value``, where the name is that of a column; otherwise None."""
    for mark in re.finditer("[=:]", text):
        column = find_column(schema, text[: mark.start()].strip())
        if column is not None:
            return column, text[mark.end() :].strip()
    return None


def parse_known(schema: Schema, texts: Iterable[str]) -> dict[str, Any]:
    """The values of ``--known NAME=VALUE``, by feature as `start` takes them."""
    cells: dict[str, dict[str, Any]] = {}
    for text in texts:
        found = parse_assignment(schema, text)
        if found is None:
            names = listed([column.name for column in schema.columns], spell=str)
            raise InvalidInput(f"--known must be NAME=VALUE with the name of a column ({names}); got {text!r}.")
        column, value = found
        given = cells.setdefault(feature_of(schema, column), {})
        if column.name in given:
            raise InvalidInput(f"--known gives {column.name!r} twice; leave one of them out.")
        try:
            given[column.name] = parse_value(column, value)
        except InvalidInput as error:
            raise InvalidInput(f"--known {text}: {error}") from None
    return {feature: as_answer(schema, feature, given) for feature, given in cells.items()}


def as_answer(schema: Schema, feature: str, given: dict[str, Any]) -> Any:
    """Cells by column as the answer for a feature: a dict for a group, otherwise the cell itself."""
    grouped = len(schema.feature_columns[schema.position(feature)]) > 1
    return dict(given) if grouped else next(iter(given.values()))


def enter(session: Session, feature: str, answer: Any) -> None:
    """Tell a session what was typed; None: the feature is unavailable."""
    if answer is None:
        session.unavailable(feature)
    else:
        session.answer(feature, answer)


def looks_like(column: Column, name: str, desk: Desk) -> str:
    """What the values of a column look like; `name` is that under which the desk knows it."""
    if column.is_category:
        literal = {str(value) for value in column.known} & {command.value for command in Command}
        typed = f" (for the value {min(literal)} type ={min(literal)})" if literal else ""
        return f"one of {listed(column.known, MOST_VALUES_SHOWN, str)}{typed}"
    ranges = desk.ranges(name)
    return f"a number ({ranges})" if ranges else desk.with_unit(name, "a number")


def spells_category(column: Column, text: str) -> bool:
    """Whether a text is one of the categories of a column."""
    return column.is_category and text in map(str, column.known)


def _category(column: Column, text: str) -> Any:
    spelled = {str(value).strip(): value for value in column.known}
    found = _match(text, list(spelled))
    if found is None:
        values = listed(spelled, MOST_VALUES_SHOWN, str)
        raise InvalidInput(f"{column.name!r} has no value {text!r} in the training rows. Its values are: {values}.")
    return spelled[found]


def _match(text: str, names: Sequence[str]) -> str | None:
    """The name that was typed; in another case only if it is the only one."""
    if text in names:
        return text
    alike = [name for name in names if name.casefold() == text.casefold()]
    return alike[0] if len(alike) == 1 else None
