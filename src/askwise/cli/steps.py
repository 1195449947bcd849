"""The steps of one case in the terminal: its table, the rules behind a step, and warnings about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typer import BadParameter

from askwise.cli.console import bar, print_indented
from askwise.cli.options import parse_amounts
from askwise.cli.wording import (
    NONE_FIRES,
    NONE_POSSIBLE,
    finality,
    shown_number,
    shown_share,
    shown_value,
    step_name,
    warnings_of,
)
from askwise.errors import short

if TYPE_CHECKING:
    from rich.console import Console

    from askwise.case import Session
    from askwise.cli.comparison import Story
    from askwise.table.desk import Desk

MOST_CONDITIONS = 4
LONGEST_CONDITION = 60


def show_set(console: Console, session: Session, desk: Desk, typed: str) -> None:
    """What to order together for the price that was typed."""
    from askwise.table.prices import MONEY

    try:
        amounts = parse_amounts(typed if "=" in typed else typed.replace(",", "."))
        found = session.suggest_set(amounts)
    except (ValueError, BadParameter):  # no number, or a negative one
        print_indented(console, f"set needs a price >= 0, such as set 20; got {typed}.", "red")
        return
    takes = "".join(f", {name} {taken:g}" for name, taken in found.amounts.items() if name != MONEY and taken)
    gain = f"price {desk.amount(found.price)}{takes}, expected gain {shown_number(found.gain)} nats in all"
    none = "Nothing within that price is expected to tell anything."
    names = ", ".join(map(desk.label, found.features))
    print_indented(console, f"order together: {names} ({gain})" if names else none)


def print_story(console: Console, story: Story, desk: Desk | None = None) -> None:
    """A table of the steps of one case, and what the reader must be warned of."""
    from rich import box
    from rich.table import Table

    from askwise.table.desk import Desk

    desk = desk or Desk()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "asked", "value", "price", "prediction", "probability", "entropy"):
        text = name in ("asked", "value", "prediction")
        numeric = name in ("step", "price", "entropy")
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=not text)
    for t, step in enumerate(story.trace):
        share = max(step["probabilities"].values())
        right = story.truth is None or step["prediction"] == story.truth
        value = {"unavailable": "unavailable", "order": "ordered"}.get(step["event"])
        value = value or desk.with_unit(str(step["feature"]), shown_value(step["value"]))
        table.add_row(
            f"{t}{'!' if warnings_of(step) else ''}",
            step_name(step, story.known, desk),
            value if t else "",
            desk.amount(step["cost"]) if step["event"] in ("answer", "order") else "",
            f"{step['prediction']}{'' if right else ' (wrong)'}",
            f"{bar(console, share, 8)} {shown_share(step, share)}",
            shown_number(step["uncertainty"]["total"]),
            style=None if right else "red",
        )
    console.print(table)
    said = [finality(story.trace[-1]).removesuffix(".") + ".", story.ending]
    if story.usual:
        said.append(f"Most cases are asked in another order: {', '.join(story.usual)}.")
    print_indented(console, " ".join(filter(None, said)), indent=0)
    print_warnings(console, story.trace[-1])


def print_steps(console: Console, story: Story) -> None:
    """The steps of an image, a line each."""
    for number, step in enumerate(story.trace):
        share, trust = max(step["probabilities"].values()), step["uncertainty"]
        said = f"  {number:>2}  {step_name(step):<12} {step['prediction']!s:>3} {share:>5.0%}"
        said, epistemic = f"{said}   entropy {trust['total']:.2f}", trust["epistemic"]
        console.print(said + (f", epistemic {epistemic:.3f}" if isinstance(epistemic, float) else ""))


def print_warnings(console: Console, step: Mapping[str, Any], indent: int = 0) -> None:
    """What in a step is unlike anything seen in training; nothing where all is well."""
    found = warnings_of(step)
    for line in [*found, "Do not rely on this prediction."] if found else []:
        print_indented(console, f"! {line}", "yellow", indent)


def print_rules(console: Console, step: Mapping[str, Any], most: int, indent: int = 0) -> None:
    """The rules behind a step and those that are still possible, at most `most` of each; nothing without rules."""
    if "rules" not in step:
        return
    rules = step["rules"]
    firing, possible = rules["firing"][:most], rules["possible"][:most]
    lines = [f"{_says(rule, words)}, weight {rule['weight']:.0%}" for rule, words in _in_words(firing)]
    together = ""
    if "probabilities" in rules:
        said, shown = max(rules["probabilities"].values()), max(step["probabilities"].values())
        together = f"; together they say {said:.0%}, which is then calibrated" if abs(said - shown) > 0.005 else ""
    heading = f"Rules that fire{_part(lines, rules['n_firing'])}{together}:"
    _print_list(console, heading if lines else NONE_FIRES, lines, indent)
    lines = [_says(rule, words) for rule, words in _in_words(possible)]
    heading = f"Could still decide{_part(lines, rules['n_possible'])}:"
    _print_list(console, heading if lines else NONE_POSSIBLE, lines, indent)


def _part(lines: Sequence[str], count: int) -> str:
    return f" ({len(lines)} of {count})" if count > len(lines) else ""


def _print_list(console: Console, heading: str, lines: Sequence[str], indent: int) -> None:
    from rich.padding import Padding
    from rich.table import Table

    print_indented(console, heading, indent=indent)
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row("-", line)
    if lines:
        console.print(Padding(table, (0, 0, 0, indent + 2), expand=False))


def _in_words(rules: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    """Each rule with its conditions in one line, cut short unless two rules would then read alike."""
    words = [_if(rule, MOST_CONDITIONS) for rule in rules]
    alike = len(set(words)) < len(words)
    return list(zip(rules, [_if(rule, None) for rule in rules] if alike else words, strict=True))


def _if(rule: Mapping[str, Any], most: int | None) -> str:
    """The conditions of a rule, at most `most` of each kind; those that are still open first."""
    known = _joined(rule["conditions"], most)
    if "open" in rule:
        return f"if {_joined(rule['open'], most)}{f', given {known}' if known else ''}"
    return f"if {known}" if known else "always"


def _joined(conditions: Sequence[str], most: int | None) -> str:
    words = [short(condition, LONGEST_CONDITION) for condition in conditions[:most]]
    more = len(conditions) - len(words)
    return " and ".join([*words, *([f"{more} more"] if more else [])])


def _says(rule: Mapping[str, Any], words: str) -> str:
    """What a rule says, and what that rests on."""
    trees = f"; in {rule['n_trees']} trees" if rule["n_trees"] > 1 else ""
    partly = f", fires at {rule['degree']:.0%}" if rule["degree"] < 0.995 else ""
    return f"{words}: {rule['then']}, confidence {rule['confidence']:.0%} ({rule['evidence']}{trees}){partly}"
