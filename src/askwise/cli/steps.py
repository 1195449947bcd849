"""The steps of one case in the terminal: its table, the rules behind a step, and warnings about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askwise.cli.console import bar, print_indented
from askwise.cli.wording import (
    NONE_FIRES,
    NONE_POSSIBLE,
    merged_rules,
    short,
    shown_number,
    shown_support,
    shown_value,
    step_name,
    warnings_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from askwise.cli.comparison import Story

MOST_CONDITIONS = 4
LONGEST_CONDITION = 60


def print_story(console: Console, story: Story) -> None:
    """A table of the steps of one case, and what the reader must be warned of."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "asked", "value", "price", "prediction", "probability", "entropy"):
        text = name in ("asked", "value", "prediction")
        numeric = name in ("step", "price", "entropy")
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=not text)
    for t, step in enumerate(story.trace):
        share = max(step["probabilities"].values())
        right = story.truth is None or step["prediction"] == story.truth
        value = "unavailable" if step["event"] == "unavailable" else shown_value(step["value"])
        table.add_row(
            f"{t}{'!' if warnings_of(step) else ''}",
            step_name(step, story.known),
            value if t else "",
            f"{step['cost']:g}" if step["event"] == "answer" else "",
            f"{step['prediction']}{'' if right else ' (wrong)'}",
            f"{bar(console, share, 8)} {share:.0%}",
            shown_number(step["uncertainty"]["total"]),
            style=None if right else "red",
        )
    console.print(table)
    print_warnings(console, story.trace[-1])


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
    firing, possible = merged_rules(rules["firing"]), merged_rules(rules["possible"])
    lines = [f"{_if(rule['conditions'])}: {_says(rule)}, weight {rule['weight']:.0%}" for rule in firing[:most]]
    heading = f"Rules that fire{_part(firing[:most], rules['n_firing'])}:"
    _print_list(console, heading if lines else NONE_FIRES, lines, indent)
    lines = [f"{_if(rule['open'])}: {_says(rule)}" for rule in possible[:most]]
    heading = f"Could still decide{_part(possible[:most], rules['n_possible'])}:"
    _print_list(console, heading if lines else NONE_POSSIBLE, lines, indent)


def _part(shown: Sequence[Mapping[str, Any]], count: int) -> str:
    n_shown = sum(rule["count"] for rule in shown)
    return f" ({n_shown} of {count})" if count > n_shown else ""


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


def _if(conditions: Sequence[str]) -> str:
    """Conditions in one line; of very many only the first."""
    if not conditions:
        return "always"
    words = [short(condition, LONGEST_CONDITION) for condition in conditions[:MOST_CONDITIONS]]
    more = len(conditions) - len(words)
    return "if " + " and ".join([*words, *([f"{more} more"] if more else [])])


def _says(rule: Mapping[str, Any]) -> str:
    """What a rule says, and on how many training rows that rests."""
    rows = shown_support(rule["support"])
    basis = f"{rows} training row{'s' * (rows != '1')}" if rule["support"] else "the model's own; no training row fits"
    partly = f", fires at {rule['degree']:.0%}" if rule["degree"] < 0.995 else ""
    alike = f", {rule['count']} rules alike" if rule["count"] > 1 else ""
    return f"{rule['then']}, confidence {rule['confidence']:.0%} ({basis}{alike}){partly}"
