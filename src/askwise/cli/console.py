"""What the commands show: results on standard output, progress and failures on standard error."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from askwise.cli.wording import choices_in_words
from askwise.errors import AskwiseError, AskwiseWarning, InvalidInput, escaped

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from askwise.cli.comparison import Comparison
    from askwise.cli.image_demo import ImageModel
    from askwise.reference_models import ReferenceModel


class RefusedFolder(InvalidInput):
    """A saved selector that is not loaded: damaged, altered, not signed, or not of askwise."""


@contextmanager
def failures(kept: str = "") -> Iterator[None]:
    """Report an error in one line on standard error, and exit; warnings of askwise are shown as notes.

    The exit code is 3 for a saved folder that is refused, 2 for other input that cannot be used, 130 for Ctrl-C, and
    otherwise 1.

    `kept` tells a user who presses Ctrl-C what is kept and how to resume.
    """
    try:
        with notes():
            yield
    except AskwiseError as error:
        typer.echo(f"askwise: {escaped(' '.join(str(error).split()))}", err=True)
        codes = {RefusedFolder: 3, InvalidInput: 2, AskwiseError: 1}
        raise typer.Exit(next(code for kind, code in codes.items() if isinstance(error, kind))) from None
    except KeyboardInterrupt:
        typer.echo(f"\naskwise: stopped.{kept and f' {kept}'}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def notes() -> Iterator[None]:
    """Show each warning of askwise once, as a note on standard error; those of other libraries stay as they are."""
    said: set[str] = set()

    with warnings.catch_warnings():
        warnings.simplefilter("always", AskwiseWarning)
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
            if not issubclass(category, AskwiseWarning):
                show(message, category, *where, **how)
            elif (text := str(message)) not in said:
                said.add(text)
                make_console(stderr=True).print(f"Note: {text}", soft_wrap=True)

        warnings.showwarning = note
        yield


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A function that announces each step: by a progress bar on a terminal, by one line per step elsewhere.

    The bars of what is done in a step, with the time that is probably left, are shown below its own.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from askwise.progress import showing

    console, done = make_console(stderr=True), -1
    columns = (BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as steps, showing(steps):
        task = steps.add_task("", total=total, completed=-1)

        def say(step: str) -> None:
            nonlocal done
            done += 1
            steps.update(task, description=f"{step} (step {min(done + 1, total)} of {total})", advance=1)
            if not console.is_terminal:
                console.print(f"{step} ...")

        yield say


def make_console(stderr: bool = False) -> Console:
    """A console that shows text as it is, control characters escaped, on standard output or on standard error."""
    from rich.console import Console
    from rich.text import Text

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(escaped(text), **options)

    # Names in the data are text, whatever brackets and colons they hold.
    return PlainConsole(stderr=stderr, markup=False, emoji=False, highlight=False)


def print_indented(console: Console, text: str, style: str = "", indent: int = 2) -> None:
    """Text whose every line is indented."""
    from rich.padding import Padding

    console.print(Padding(text, (0, 0, 0, indent), style=style, expand=False))


def print_rows(console: Console, rows: ReferenceModel | ImageModel) -> None:
    """The data, the model and the split, one line each."""
    data = repr(rows.dataset).partition("(")[2].removesuffix(")")
    for what, text in (("Data", data), ("Model", rows.model), ("Split", rows.split)):
        console.print(f"{what + ':':<7}{text}")


def print_choices(console: Console, choices: Mapping[str, Any]) -> None:
    """What the selector chose by itself."""
    console.print(f"Chosen: {'; '.join(choices_in_words(choices))}")


def print_curves(console: Console, comparison: Comparison) -> None:
    """A table of accuracies, one row per budget."""
    from rich import box
    from rich.table import Table

    rows = len(comparison.trajectory.order)
    console.print(f"\nAccuracy on {rows} held-out rows", style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("budget" if comparison.priced else comparison.units, justify="right")
    names = {"askwise": "askwise", "static": comparison.static, "random": "random, mean of 5"}
    for name in names.values():
        table.add_column(name, justify="right")
    for row in comparison.curves.to_dict("records"):
        best = max(row[key] for key in names) - 1e-9
        cells = [f"{row[key]:.1%}{'*' if row[key] >= best else ' '}" for key in names]
        table.add_row(f"{row['budget']:.4g}", *cells)
    console.print(table)
    n_features = len(comparison.trajectory.features)
    if not comparison.priced and len(comparison.curves) < n_features:
        first, last = comparison.curves["budget"].iloc[[0, -1]]
        console.print(f"Budgets of {first:g} to {last:g} of the {n_features} features are compared.")
    console.print(f"The model with everything: {comparison.full:.1%}   (* the best of its row)")
    if comparison.note:
        console.print(comparison.note)


def print_headline(console: Console, comparison: Comparison) -> None:
    """What is saved in one sentence, the two prices as bars, and what is kept of each class."""
    stopped = comparison.stopped
    assert stopped is not None
    console.print(f"\n{stopped.how(comparison.priced)}")
    console.print(f"\n{stopped.headline(comparison.priced, comparison.unit)}", style="bold")
    summary, unit = stopped.summary, comparison.unit if comparison.priced else "features"
    if summary.saved > 0:
        console.print()
        for name, amount in (("everything known", summary.everything), ("asked by askwise", summary.price)):
            console.print(f"  {name}  {bar(console, amount / summary.everything, 40)} {amount:,.4g} {unit}".rstrip())
    console.print(f"\n{stopped.kept_by_class()}")
    console.print(summary.guarantee or "", style="dim")


def print_savings(console: Console, comparison: Comparison) -> None:
    """A table of average prices, one row per share of decisions kept."""
    from rich import box
    from rich.table import Table

    assert comparison.savings is not None
    unit = "price" if comparison.priced else f"number of {comparison.units}"
    console.print(f"\nAverage {unit} at which decisions are the same as with everything, in hindsight", style="bold")
    prices = comparison.savings.pivot(index="level", columns="way", values="price")
    ways = comparison.savings["way"].unique()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("same decisions", *ways):
        table.add_column(name, justify="right")
    for level, row in prices.iterrows():
        table.add_row(f"{level:.0%}", *("-" if row[way] != row[way] else f"{row[way]:.4g}" for way in ways))
    console.print(table)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    typer.echo(escaped(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)))


def as_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, ready for JSON."""
    from askwise.case.session import as_json

    rows = table.to_dict("records")
    return [{str(name): as_json(x) if isinstance(x, float) else x for name, x in row.items()} for row in rows]


def bar(console: Console, share: float, width: int) -> str:
    """A bar of `width` characters, full where `share` is 1."""
    full, rest = divmod(round(share * width * 8), 8)
    if console.options.ascii_only:
        return ("#" * round(share * width)).ljust(width, ".")
    return ("█" * full + " ▏▎▍▌▋▊▉"[rest]).ljust(width)[:width]
