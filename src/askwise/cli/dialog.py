"""One case worked through at the terminal: what to ask and why, what is typed in answer, and when one could stop."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from rich.console import Console

from askwise.case import Session, Suggestion
from askwise.cli.answers import (
    HELP,
    USAGE,
    Command,
    as_answer,
    enter,
    feature_of,
    find_column,
    looks_like,
    parse_assignment,
    parse_command,
    parse_order,
    parse_value,
    spells_category,
)
from askwise.cli.console import bar, print_indented
from askwise.cli.steps import print_rules, print_warnings, show_set
from askwise.cli.wording import finality, shown_number, shown_share
from askwise.errors import InvalidInput, listed
from askwise.selector import DynamicFeatureSelector
from askwise.table.columns import Column
from askwise.table.desk import Desk, Shown
from askwise.table.prices import MONEY

MOST_CLASSES_SHOWN = 5
MOST_RULES_SHOWN = 2
OTHERS_SHOWN = 2


class Unconfirmed(InvalidInput):
    """A value outside of its range that nobody is there to confirm; it ends the command."""


class Dialog:
    """Questions and answers of one case; input that cannot be used is explained, and asked for again.

    Values that were `known` without asking are given to a new session, into which the answers are entered again. A
    number outside of its range is confirmed by the person, or by `yes`; without either it is refused.
    """

    def __init__(
        self,
        console: Console,
        selector: DynamicFeatureSelector,
        desk: Desk,
        known: dict[str, Any],
        budget: Any,
        stop: str | None = None,
        yes: bool = False,
    ) -> None:
        self.console = console
        self.selector = selector
        self.schema = selector.schema_
        self.desk = desk
        self.given = self.known = known
        self.budget = budget
        self.stop = stop
        self.yes = yes
        self._check_known()
        self.steps: list[tuple[str, Any]] = []  # (feature, answer), None = unavailable
        self.past: list[tuple[dict[str, Any], list[tuple[str, Any]]]] = []
        self.session = self._replayed(known, [])
        self.told = selector.stop_.promise if selector.stop_ else None  # what was last said of the guarantee

    def run(self) -> None:
        """Ask until nothing can be bought, or the person quits."""
        self.console.print(f"\n{USAGE}")
        self._show()
        while (suggestion := self.session.suggest()) is not None or self._goes_on():
            if suggestion is None:
                continue
            self._advise(suggestion)
            reply = self._ask(suggestion.feature, suggestion)
            if reply is Command.STOP:
                self.console.print("\nStopped.")
                if (said := self.guaranteed) is not None:
                    self.console.print(said)
                return
            if reply is None:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, on extreme values: the outcome is told
                    self._take(*reply) if isinstance(reply, tuple) else self._undo()
                self._show()
            except InvalidInput as error:
                self._complain(error)

    @property
    def volunteered(self) -> list[str]:
        """Features whose values were typed as NAME = VALUE; the steps show them as known from the start."""
        return [name for name, value in self.known.items() if name not in self.given or self.given[name] != value]

    @property
    def guaranteed(self) -> str | None:
        """What is guaranteed for the case if it ends here, or why nothing is; None without a calibrated stop."""
        if self.selector.stop_ is None or self.budget is not None:
            return None
        report = self.session.report()
        if self.stop is None:
            return "No guarantee: the case went on after its stopping rule had stopped it."
        if report["guarantee"] == self.selector.stop_.promise and not report["guaranteed"]:
            return "No guarantee: the case was ended before its stopping rule stopped it."
        promise: str | None = report["guarantee"]
        return promise

    def _take(self, feature: str, answer: Any, volunteered: bool) -> None:
        """Enter an answer; the case stays as it was if the model fails on it."""
        others = [step for step in self.steps if step[0] != feature]  # it may have been unavailable before
        try:
            if volunteered:
                self.session = self._replayed({**self.known, feature: answer}, others)
            else:
                self._enter(feature, answer)
        except InvalidInput:
            raise
        except Exception as error:  # whatever a foreign model raises
            reason = " ".join(str(error).split())
            raise InvalidInput(f"The model cannot use this value ({reason}); type another one.") from None
        self.past.append((self.known, self.steps))
        if volunteered:
            if others:
                said = f"The earlier steps are computed again, as if {feature} had been known from the start."
                print_indented(self.console, said)
            self.known, self.steps = {**self.known, feature: answer}, others
        else:
            self.steps = [*self.steps, (feature, answer)]

    def _enter(self, feature: str, answer: Any) -> None:
        enter(self.session, feature, answer)
        try:
            self.session.suggest()
        except BaseException:
            self.session.undo()
            raise

    def _undo(self) -> None:
        if not self.past:
            raise InvalidInput("There is nothing to undo.")
        known, steps = self.past.pop()
        if known == self.known:
            self.session.undo()
        else:
            self.session = self._replayed(known, steps)
        self.known, self.steps = known, steps

    def _replayed(self, known: dict[str, Any], steps: list[tuple[str, Any]]) -> Session:
        session = self.selector.start(known=known, budget=self.budget, stop=self.stop)
        for feature, answer in steps:
            enter(session, feature, answer)
        session.suggest()  # some models fail only here, on a completed row
        return session

    def _ask(self, feature: str, suggestion: Suggestion | None, given: dict[str, Any] | None = None) -> Any:
        """(feature, answer, volunteered), a command, or None where nothing is to be done.

        Inside a group undo goes back one column. Without a `suggestion` the feature was volunteered: `given` is typed.
        What was asked for counts as volunteered if each value was typed as NAME = VALUE.
        """
        if feature not in self.schema.features:
            return self._ask_pilot(feature)
        columns = [self.schema.columns[j] for j in self.schema.feature_columns[self.schema.position(feature)]]
        given = given or {}
        named = set(given)
        left = [column for column in columns if column.name not in given]
        k = 0
        while k < len(left):
            reply = self._read(left[k], left[k].name if len(columns) > 1 else "")
            if isinstance(reply, tuple):
                column, value = reply
                if column not in columns:
                    return self._ask(feature_of(self.schema, column), None, {column.name: value})
                given[column.name] = value
                named.add(column.name)
                left = left[:k] + [other for other in left[k:] if other is not column]
                continue
            if reply is Command.STOP or (reply is Command.UNDO and k == 0):
                return None if reply is Command.UNDO and suggestion is None else reply
            k += -1 if reply is Command.UNDO else 1
            if reply is Command.UNDO:
                given.pop(left[k].name, None)
            elif reply is not Command.SKIP:
                given[left[k - 1].name] = reply
        volunteered = suggestion is None or (bool(given) and named == set(given))
        return feature, as_answer(self.schema, feature, given) if given else None, volunteered

    def _ask_pilot(self, feature: str) -> Any:
        """(feature, text, False) or a command, for a question that the model does not know."""
        print_indented(self.console, "any text")
        while (text := self._typed()) is not None:
            command = parse_command(Column(feature, object, ()), text)
            if command is Command.SKIP:
                return feature, None, False
            if command in (Command.STOP, Command.UNDO):
                return command
            if text and command is None:
                return feature, text, False
            self._help() if command is Command.HELP else print_indented(
                self.console, self.session.why(self.desk)["text"]
            )
        return Command.STOP

    def _read(self, column: Column, name: str) -> Any:
        """One cell, (column, cell) if typed as NAME = VALUE, or a command; asked for until it can be used."""
        looks = looks_like(column, self._name(column), self.desk)
        print_indented(self.console, f"{self._shown(column).label}: {looks}" if name else looks)
        while (text := self._typed()) is not None:
            command = parse_command(column, text)
            if command is Command.HELP:
                self._help()
            elif command is Command.WHY:
                print_indented(self.console, self.session.why(self.desk)["text"])
            elif (price := parse_order(column, text)) is not None:
                show_set(self.console, self.session, self.desk, price)
            elif command is not None:
                return command
            else:
                try:
                    found = self._value(column, text)
                    if self._is_kept(*(found if isinstance(found, tuple) else (column, found))):
                        return found
                except Unconfirmed:
                    raise
                except InvalidInput as error:
                    self._complain(error)
        return Command.STOP

    def _is_kept(self, column: Column, value: Any) -> bool:
        """Whether a value is entered: a person at a terminal confirms an unusual one."""
        found = self._shown(column).unusual(value)
        if found is None or self.yes:
            return True
        if not sys.stdin.isatty():
            raise Unconfirmed(f"{found} Nobody is there to confirm it: correct it, or add --yes to enter such values.")
        print_indented(self.console, f"{found} Keep it? [y/N]", "yellow")
        kept = (self._typed() or "n").lower() in ("y", "yes")
        if not kept:
            print_indented(self.console, "It was not entered; type the value again, or q to quit.")
        return kept

    def _check_known(self) -> None:
        """The values of --known are confirmed like those that are typed."""
        for feature, answer in self.known.items():
            for name, value in answer.items() if isinstance(answer, dict) else [(feature, answer)]:
                column = find_column(self.schema, name)
                if column is not None and not self._is_kept(column, value):
                    raise InvalidInput(f"--known {name}={value} was not confirmed; correct it.")

    def _name(self, column: Column) -> str:
        """The name under which the desk knows a column."""
        return column.name if column.name in self.desk.features else feature_of(self.schema, column)

    def _shown(self, column: Column) -> Shown:
        return self.desk.shown(self._name(column))

    def _typed(self) -> str | None:
        """A line that was typed; None at the end of the input."""
        try:
            text = self.console.input("> ").strip()
        except (EOFError, RuntimeError):  # the end of the input, or none from the start
            return None
        if not sys.stdin.isatty():
            self.console.print(text)
        return text

    def _value(self, column: Column, text: str) -> Any:
        if not text:
            raise InvalidInput(USAGE)
        other = None if spells_category(column, text) or text.startswith("=") else parse_assignment(self.schema, text)
        if other is None:
            try:
                return parse_value(column, text.removeprefix("=").strip())
            except InvalidInput:
                if "=" not in text[1:]:
                    raise
            names = listed([column.name for column in self.schema.columns], spell=str)
            raise InvalidInput(f"There is no column {text.split('=')[0].strip()!r}. The columns are: {names}.")
        feature = feature_of(self.schema, other[0])
        if feature in self.session.known and feature not in self.known:
            raise InvalidInput(f"{feature!r} was answered already; type u until it is undone to change it.")
        return other[0], parse_value(*other)

    def _help(self) -> None:
        self.console.print(HELP)
        suggestion = self.session.suggest()
        names = [name for name, _, _ in suggestion.ranking] if suggestion else []
        print_indented(self.console, f"Not known yet: {listed([self._named(name) for name in names], spell=str)}")

    def _named(self, feature: str) -> str:
        """A feature by the name that is typed, and its label."""
        label = self.desk.label(feature)
        return feature if label == feature else f"{feature} ({label})"

    def _advise(self, suggestion: Suggestion) -> None:
        """The feature to ask for, why, and whether one could stop instead."""
        found = self.session.why(self.desk)
        if found["hint"]:
            print_indented(self.console, found["hint"], "green")
        others = ", ".join(self.desk.label(other["feature"]) for other in found["alternatives"][:OTHERS_SHOWN])
        next_best = f"Next best: {others}." if others else "There is nothing else to suggest."
        price = f"price {self.desk.amount(suggestion.cost)}" if suggestion.cost else "free"
        takes = suggestion.amounts.items()
        price += "".join(f", {name} {taken:.4g}" for name, taken in takes if name != MONEY and taken)
        self.console.print(f"\n{self.desk.label(suggestion.feature)}, {price}", style="bold")
        print_indented(self.console, f"why: {found['reason']} {next_best}")

    def _goes_on(self) -> bool:
        """Say why nothing more is suggested; where that is a stopping rule, ask whether to go on nevertheless."""
        found = self.session.why(self.desk)
        self.console.print(f"\n{found['reason']}")
        if found["advice"] == "nothing left":
            return False
        self.console.print("Press Enter to finish; u undo, m ask for more")
        while (text := self._typed() or "q") not in ("q", "quit", "exit"):
            if text == "m":
                self.stop = None
                self.session = self._replayed(self.known, self.steps)
                print_indented(self.console, "You go on without the guarantee.", "yellow")
            elif text == "u" and self.past:
                self._undo()
            else:
                self._complain("Press Enter to finish, or type u to undo the last answer, m to be asked for more.")
                continue
            self._show()
            return True
        return False

    def _show(self) -> None:
        report = self.session.report()
        ranked = sorted(report["probabilities"].items(), key=lambda item: -item[1])
        width = max(len(label) for label, _ in ranked)
        for label, share in ranked[:MOST_CLASSES_SHOWN]:
            self.console.print(
                f"  {label:<{width}}  {bar(self.console, share, 24)} {shown_share(report, share, 1):>6}", style="cyan"
            )
        if len(ranked) > MOST_CLASSES_SHOWN:
            self.console.print(f"  ... and {len(ranked) - MOST_CLASSES_SHOWN} classes that are less likely")
        left = report["budget_left"]
        trust = {"entropy": report["uncertainty"]["total"], "epistemic": report["uncertainty"]["epistemic"]}
        measured = [f"{name} {shown_number(number)}" for name, number in trust.items() if number is not None]
        amount = self.desk.amount
        money = [f"spent {amount(report['spent'])}", "no limit" if left is None else f"left {amount(left)}"]
        for name, purse in report["resources"].items():
            if name != MONEY:
                rest = "" if purse["left"] is None else f" ({purse['left']:.4g} left)"
                money.append(f"{name} {purse['spent']:.4g}{rest}")
        print_indented(self.console, ", ".join([f"prediction {report['prediction']}", *measured, *money]))
        print_indented(self.console, finality(report))
        guarantee = report["guarantee"]
        if guarantee not in (None, self.told):
            self.told = guarantee
            print_indented(self.console, guarantee, "yellow")
        print_warnings(self.console, report, 2)
        print_rules(self.console, report, MOST_RULES_SHOWN, indent=2)

    def _complain(self, error: InvalidInput | str) -> None:
        print_indented(self.console, str(error), "red")
