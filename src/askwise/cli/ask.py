"""One case played at the terminal: the questions of a session, and what is typed in answer."""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Any

from askwise.cli.console import bar, print_rules, trust
from askwise.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from askwise.acquire import Session, Suggestion
    from askwise.columns import Column
    from askwise.selector import DynamicFeatureSelector

MOST_CLASSES_SHOWN = 5
MOST_VALUES_SHOWN = 12
MOST_RULES_SHOWN = 2


class Command(Enum):
    """What can be typed instead of a value."""

    SKIP = "?"
    UNDO = "u"
    STOP = "q"


class Dialog:
    """Questions and answers of one session; whatever cannot be used is said, and asked again."""

    def __init__(
        self, console: Console, session: Session, selector: DynamicFeatureSelector, X_train: pd.DataFrame
    ) -> None:
        self.console = console
        self.session = session
        self.schema = selector.schema_
        self.X_train = X_train

    def run(self) -> None:
        """Ask until nothing can be bought, or the person stops."""
        self.console.print("\nType a value, or: ? it cannot be had, u undo, q stop.")
        self._show()
        while (suggestion := self.session.suggest()) is not None:
            reply = self._ask(suggestion)
            if reply is Command.STOP:
                self.console.print("\nStopped.")
                return
            try:
                self._take(suggestion.feature, reply)
                self._show()
            except InvalidInput as error:
                self._complain(error)
            except Exception as error:  # whatever a foreign model raises; the session is as it was
                self._complain(f"The model cannot use this value ({error}); type another one.")
        self.console.print("\nNothing more can be bought.")

    def _take(self, feature: str, reply: Any) -> None:
        if reply is Command.UNDO:
            self.session.undo()
        elif reply is Command.SKIP:
            self.session.unavailable(feature)
        else:
            self.session.answer(feature, reply)

    def _ask(self, suggestion: Suggestion) -> Any:
        """A value (a dict of columns for a group) or a command; undo inside a group goes back one column."""
        members = self.schema.feature_columns[self.schema.position(suggestion.feature)]
        columns = [self.schema.columns[j] for j in members]
        self.console.print(f"\n{suggestion.feature} (price {suggestion.cost:g})", style="bold")
        given: dict[str, Any] = {}
        k = 0
        while k < len(columns):
            reply = self._read(columns[k], columns[k].name if len(columns) > 1 else "")
            if reply is Command.STOP or (reply is Command.UNDO and k == 0):
                return reply
            k += -1 if reply is Command.UNDO else 1
            if reply is Command.UNDO:
                given.pop(columns[k].name, None)
            elif reply is not Command.SKIP:
                given[columns[k - 1].name] = reply
        if not given:
            return Command.SKIP
        return given if len(columns) > 1 else next(iter(given.values()))

    def _read(self, column: Column, name: str) -> Any:
        """One cell or a command, asked for until one is typed that can be used."""
        looks = _looks(column, self.X_train[column.label])
        self.console.print(f"  {name}: {looks}" if name else f"  {looks}")
        while True:
            try:
                text = self.console.input("> ").strip()
            except (EOFError, RuntimeError):  # the end of the input, or none from the start
                return Command.STOP
            if not sys.stdin.isatty():
                self.console.print(text)
            if text in [command.value for command in Command]:
                return Command(text)
            try:
                return _parse(column, text.removeprefix("="))
            except InvalidInput as error:
                self._complain(error)

    def _show(self) -> None:
        report = self.session.report()
        ranked = sorted(report["probabilities"].items(), key=lambda item: -item[1])
        width = max(len(label) for label, _ in ranked)
        for label, share in ranked[:MOST_CLASSES_SHOWN]:
            self.console.print(f"  {label:<{width}}  {bar(self.console, share, 24)} {share:6.1%}", style="cyan")
        if len(ranked) > MOST_CLASSES_SHOWN:
            self.console.print(f"  ... and {len(ranked) - MOST_CLASSES_SHOWN} classes that are less likely")
        left = "unlimited" if report["left"] is None else f"{report['left']:g}"
        trusted = [f"{name} {number:.3f}" for name, number in trust(report["uncertainty"])]
        money = [f"spent {report['spent']:g}", f"left {left}"]
        self.console.print("  " + ", ".join([f"prediction {report['prediction']}", *trusted, *money]))
        print_rules(self.console, report, MOST_RULES_SHOWN, indent=2)

    def _complain(self, error: InvalidInput | str) -> None:
        self.console.print(f"  {error}", style="red")


def _looks(column: Column, cells: pd.Series) -> str:
    """What the values of a column look like in the training rows."""
    if column.is_category:
        shown = ", ".join(str(value) for value in column.known[:MOST_VALUES_SHOWN])
        more = len(column.known) - MOST_VALUES_SHOWN
        literal = {str(value) for value in column.known} & {command.value for command in Command}
        typed = f" (for the value {min(literal)} type ={min(literal)})" if literal else ""
        return f"one of {shown}{f', ... ({more} more)' if more > 0 else ''}{typed}"
    cells = cells.dropna()
    return f"a number, {cells.min():g} to {cells.max():g} in training, median {cells.median():g}"


def _parse(column: Column, text: str) -> Any:
    """The value that was typed, as `Session.answer` takes it."""
    if not text:
        raise InvalidInput("Type a value, or one of ? u q.")
    if column.is_category:
        spelled = {str(value).strip(): value for value in column.known}
        if text not in spelled:
            raise InvalidInput(f"{column.name!r} has no value {text!r} in the training rows; type one of its values.")
        return spelled[text]
    return column.parse_answer(text)
