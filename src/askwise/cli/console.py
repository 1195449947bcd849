"""What the commands show: results on standard output, progress and failures on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from askwise.errors import AskwiseError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from askwise.cli.demo import Comparison, Story
    from askwise.reference_models import ReferenceModel

MOST_CONDITIONS = 4
LONGEST_CONDITION = 60
NONE_FIRES = "No rule fires yet: each class has its share of the training rows."
NONE_POSSIBLE = "No other rule is possible any more."


@contextmanager
def failures(kept: str = "") -> Iterator[None]:
    """What goes wrong, in one line on standard error: exit code 2 for the caller's fault, 1 else, 130 for Ctrl-C.

    `kept` tells what there is to go on from where it was stopped.
    """
    try:
        yield
    except AskwiseError as error:
        typer.echo(f"askwise: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2 if isinstance(error, InvalidInput) else 1) from None
    except KeyboardInterrupt:
        typer.echo(f"\naskwise: stopped.{kept and f' {kept}'}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A function that names the step that begins; a bar on a terminal, a line each elsewhere."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = make_console(stderr=True)
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as steps:
        task = steps.add_task("", total=total, completed=-1)

        def say(step: str) -> None:
            steps.update(task, description=step, advance=1)
            if not console.is_terminal:
                console.print(f"{step} ...")

        yield say


def make_console(stderr: bool = False) -> Console:
    """A console that shows text as it is, on standard output or on standard error."""
    from rich.console import Console

    # Names in the data are text, whatever brackets and colons they hold.
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def print_rows(console: Console, rows: ReferenceModel) -> None:
    """The data, the model and the split, a line each."""
    data = repr(rows.dataset).removeprefix("Dataset(").removesuffix(")")
    for what, text in (("Data", data), ("Model", rows.model), ("Split", rows.split)):
        console.print(f"{what + ':':<7}{text}")


def print_curves(console: Console, comparison: Comparison) -> None:
    """A table of accuracies, one row per budget."""
    from rich import box
    from rich.table import Table

    rows = len(comparison.trajectory.order)
    console.print(f"\nAccuracy on {rows} held-out rows", style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("budget" if comparison.priced else "features", justify="right")
    names = {"askwise": "askwise", "static": "static order", "random": "random, mean of 5"}
    for name in names.values():
        table.add_column(name, justify="right")
    for row in comparison.curves.to_dict("records"):
        best = max(row[key] for key in names) - 1e-9
        cells = [f"{row[key]:.1%}{'*' if row[key] >= best else ' '}" for key in names]
        table.add_row(f"{row['budget']:.4g}", *cells)
    console.print(table)
    console.print(f"The model with everything: {comparison.full:.1%}   (* the best of its row)")


def print_story(console: Console, story: Story) -> None:
    """A table of the steps of one case."""
    from rich import box
    from rich.table import Table

    from askwise.cli.demo_report import shown_value

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "asked", "value", "price", "prediction", "probability", "entropy"):
        text = name in ("asked", "value", "prediction")
        numeric = name in ("step", "price", "entropy")
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=not text)
    for t, step in enumerate(story.trace):
        share = max(step["probabilities"].values())
        right = story.truth is None or step["prediction"] == story.truth
        value = "cannot be had" if step["event"] == "unavailable" else shown_value(step["value"])
        table.add_row(
            str(t),
            step["feature"] or "nothing yet",
            value if t else "",
            f"{step['cost']:g}" if t else "",
            f"{step['prediction']}{'' if right else ' (wrong)'}",
            f"{bar(console, share, 8)} {share:.0%}",
            f"{step['uncertainty']['total']:.3f}",
            style=None if right else "red",
        )
    console.print(table)


def print_rules(console: Console, step: Mapping[str, Any], most: int, indent: int = 0) -> None:
    """The rules behind a step and those that are still possible, at most `most` of each; nothing without rules."""
    if "rules" not in step:
        return
    rules = step["rules"]
    firing = [f"{_if(rule['if'])}: {_says(rule)}, weight {rule['weight']:.0%}" for rule in rules["firing"]]
    possible = [f"{_if(rule['open'])}: {_says(rule, 'row')}" for rule in rules["possible"]]
    heading = f"Rules that fire{_part(most, rules['n_firing'])}:"
    _print_list(console, heading if firing else NONE_FIRES, firing[:most], indent)
    heading = f"Could still decide{_part(most, rules['n_possible'])}:"
    _print_list(console, heading if possible else NONE_POSSIBLE, possible[:most], indent)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def trust(uncertainty: dict[str, float | None]) -> list[tuple[str, float]]:
    """Entropy, and the epistemic uncertainty where there is one."""
    shown = (("entropy", uncertainty["total"]), ("epistemic", uncertainty["epistemic"]))
    return [(name, number) for name, number in shown if number is not None]


def bar(console: Console, share: float, width: int) -> str:
    """A bar of `width` characters, full where `share` is 1."""
    full, rest = divmod(round(share * width * 8), 8)
    if console.options.ascii_only:
        return ("#" * round(share * width)).ljust(width, ".")
    return ("█" * full + " ▏▎▍▌▋▊▉"[rest]).ljust(width)[:width]


def _part(most: int, count: int) -> str:
    return f" ({most} of {count})" if count > most else ""


def _print_list(console: Console, heading: str, lines: Sequence[str], indent: int) -> None:
    from rich.padding import Padding
    from rich.table import Table

    console.print(Padding(heading, (0, 0, 0, indent), expand=False))
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row("-", line)
    if lines:
        console.print(Padding(table, (0, 0, 0, indent + 2), expand=False))


def _if(conditions: Sequence[str]) -> str:
    """Conditions in one line; of very many the first."""
    from askwise.cli.demo_report import short

    if not conditions:
        return "always"
    words = [short(condition, LONGEST_CONDITION) for condition in conditions[:MOST_CONDITIONS]]
    more = len(conditions) - len(words)
    return "if " + " and ".join([*words, *([f"{more} more"] if more else [])])


def _says(rule: Mapping[str, Any], counted: str = "training row") -> str:
    """What a rule says, and on how many training rows that rests."""
    from askwise.cli.demo_report import shown_support

    rows = shown_support(rule["support"])
    partly = f", fires to {rule['degree']:.0%}" if rule["degree"] < 0.995 else ""
    return f"{rule['then']}, confidence {rule['confidence']:.0%} ({rows} {counted}{'s' * (rows != '1')}){partly}"
