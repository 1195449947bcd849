"""The command line: `askwise demo` shows what askwise does on a table, `askwise ask` plays one case.

Results go to standard output, progress to standard error. Heavy imports stand inside the functions, so that
``askwise --help`` answers at once.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.errors import AskwiseError, InvalidInput

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from askwise.acquire import Session, Suggestion
    from askwise.columns import Column
    from askwise.selector import DynamicFeatureSelector
    from askwise.standin import Comparison, StandIn, Story

DEMO_STEPS = 11
MOST_CLASSES_SHOWN = 5
MOST_VALUES_SHOWN = 12

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


class Model(StrEnum):
    """The stand-ins for a validated model."""

    mlp = "mlp"
    forest = "forest"
    logistic = "logistic"
    tree = "tree"
    xgboost = "xgboost"


class Command(Enum):
    """What can be typed instead of a value."""

    SKIP = "?"
    UNDO = "u"
    STOP = "q"


Data = Annotated[
    str | None, typer.Option(metavar="NAME", help="A data set by name, wine if none is given; a wrong name lists them.")
]
Kind = Annotated[Model, typer.Option("--model", help="The stand-in for your validated model.")]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Your own table, instead of --data.")]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of --csv that holds the class.")]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column of --csv to leave out; repeat it for more.")
]
Budget = Annotated[float | None, typer.Option(help="The most that one case may cost.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Seed of the split, the model and the random orders.")]
Page = Annotated[Path, typer.Option("--report", metavar="FILE", help="Where to write the page.")]
MaybePage = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the case to a page.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Version = Annotated[bool, typer.Option("--version", help="Print the version and stop.")]


def main() -> None:
    """Entry point of the command `askwise`."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows "?" in its place
    app(prog_name="askwise")


@app.callback(invoke_without_command=True)
def version_option(version: Version = False) -> None:
    """Which feature to ask for next, for any trained classifier, and how far to trust what it says so far."""
    if version:
        from askwise import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    data: Data = None,
    model: Kind = Model.mlp,
    csv: Csv = None,
    target: Target = None,
    drop: Drop = None,
    budget: Budget = None,
    seed: Seed = 0,
    page: Page = Path("askwise-report.html"),
    as_json: AsJson = False,
) -> None:
    """Compare ways of asking on held-out rows, walk through one case, and write a report."""
    with _failures():
        _check_budget(budget)
        from askwise.report import Report, check_report_path, write_report
        from askwise.standin import RANDOM_ORDERS, compare, tell_story

        check_report_path(page)
        with _progress(DEMO_STEPS) as say:
            rows, selector = _prepare(data, model, csv, target, drop or [], seed, say)
            comparison = compare(selector, rows, _budgets(selector, budget), seed, say)
            story = tell_story(selector, rows, comparison.trajectory)
            say("drawing the report")
            about = [*_about(rows, seed), ("random orders", f"seeds {seed} to {seed + RANDOM_ORDERS - 1}")]
            write_report(page, Report(f"{rows.dataset.name}, {model.value}", about, story, comparison))
        if as_json:
            _print_json({**_facts(rows, comparison), "story": vars(story), "report": str(page)})
            return
        console = _console()
        _print_rows(console, rows)
        _print_curves(console, comparison)
        console.print(f"\n{story.title}, true label {story.truth}", style="bold")
        _print_story(console, story)
        console.print(f"\nReport: {page.resolve()}", soft_wrap=True)


@app.command()
def ask(
    data: Data = None,
    model: Kind = Model.mlp,
    csv: Csv = None,
    target: Target = None,
    drop: Drop = None,
    budget: Budget = None,
    seed: Seed = 0,
    page: MaybePage = None,
    as_json: AsJson = False,
) -> None:
    """Play one case at the terminal: it asks, you type values."""
    with _failures():
        _check_budget(budget)
        from askwise.report import Report, check_report_path, write_report
        from askwise.standin import Story

        if page is not None:
            check_report_path(page)
        with _progress(2) as say:
            rows, selector = _prepare(data, model, csv, target, drop or [], seed, say)
        console = _console(stderr=as_json)
        _print_rows(console, rows)
        session = selector.start(budget=budget)
        Dialogue(console, session, selector, rows.X_train).run()
        story = Story("A case typed in", session.report()["trace"])
        _print_story(console, story)
        if page is not None:
            write_report(page, Report(f"{rows.dataset.name}, {model.value}", _about(rows, seed), story))
            console.print(f"\nReport: {page.resolve()}", soft_wrap=True)
        if as_json:
            _print_json(session.report())


class Dialogue:
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
            except InvalidInput as error:
                self._complain(error)
            else:
                self._show()
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
        members = self.schema.members[self.schema.position(suggestion.feature)]
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
            except EOFError:
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
            self.console.print(f"  {label:<{width}}  {_bar(self.console, share, 24)} {share:6.1%}", style="cyan")
        if len(ranked) > MOST_CLASSES_SHOWN:
            self.console.print(f"  ... and {len(ranked) - MOST_CLASSES_SHOWN} classes that are less likely")
        left = "unlimited" if report["left"] is None else f"{report['left']:g}"
        trust = [f"{name} {number:.3f}" for name, number in _trust(report["uncertainty"])]
        money = [f"spent {report['spent']:g}", f"left {left}"]
        self.console.print("  " + ", ".join([f"prediction {report['prediction']}", *trust, *money]))

    def _complain(self, error: InvalidInput) -> None:
        self.console.print(f"  {error}", style="red")


def _prepare(
    data: str | None,
    model: Model,
    csv: Path | None,
    target: str | None,
    drop: list[str],
    seed: int,
    say: Callable[[str], None],
) -> tuple[StandIn, DynamicFeatureSelector]:
    """The table, the stand-in trained on it, and the selector around that."""
    from askwise.datasets import load, names
    from askwise.selector import DynamicFeatureSelector
    from askwise.standin import read_csv, row_counters, train_stand_in

    if csv is not None and data is not None:
        raise InvalidInput("--data and --csv exclude each other: give the name of a data set, or a table of your own.")
    if csv is None and (target is not None or drop):
        raise InvalidInput("--target and --drop name columns of --csv, which is not there; add --csv FILE.")
    if csv is not None and target is None:
        raise InvalidInput("--csv needs --target COLUMN, the column that holds the class of each row.")
    if csv is None and (data or "wine") not in names():
        raise InvalidInput(f"--data: there is no data set {data!r}. The data sets are: {', '.join(names())}.")
    dataset = load(data or "wine") if csv is None else read_csv(csv, str(target), drop)
    say(f"training the stand-in, {model.value}")
    for column in row_counters(dataset.X):
        _console(stderr=True).print(f"Note: column {column!r} numbers the rows. If it is an id: --drop {column!r}")
    rows = train_stand_in(dataset, model.value, seed)
    say("wrapping it")
    selector = DynamicFeatureSelector(
        rows.estimator, costs=dataset.prices, groups=dataset.groups, random_state=seed, progress=False
    )
    return rows, selector.fit(rows.X_train, rows.y_train)


def _budgets(selector: DynamicFeatureSelector, most: float | None) -> list[float]:
    usual = selector.default_budgets()
    return usual if most is None else [*(budget for budget in usual if budget < most), most]


def _check_budget(budget: float | None) -> None:
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise InvalidInput(f"--budget must be a finite number >= 0; got {budget}. Leave it out for no limit.")


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
    column.parse_answer(text)
    return float(text)


def _trust(uncertainty: dict[str, float | None]) -> list[tuple[str, float]]:
    """Entropy, and the epistemic uncertainty where there is one."""
    shown = (("entropy", uncertainty["total"]), ("epistemic", uncertainty["epistemic"]))
    return [(name, number) for name, number in shown if number is not None]


def _print_rows(console: Console, rows: StandIn) -> None:
    data = repr(rows.dataset).removeprefix("Dataset(").removesuffix(")")
    for what, text in (("Data", data), ("Model", rows.model), ("Split", rows.split)):
        console.print(f"{what + ':':<7}{text}")


def _print_curves(console: Console, comparison: Comparison) -> None:
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


def _print_story(console: Console, story: Story) -> None:
    from rich import box
    from rich.table import Table

    from askwise.report import shown_value

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
            f"{_bar(console, share, 8)} {share:.0%}",
            f"{step['uncertainty']['total']:.3f}",
            style=None if right else "red",
        )
    console.print(table)


def _bar(console: Console, share: float, width: int) -> str:
    full, rest = divmod(round(share * width * 8), 8)
    if console.options.ascii_only:
        return ("#" * round(share * width)).ljust(width, ".")
    return ("█" * full + " ▏▎▍▌▋▊▉"[rest]).ljust(width)[:width]


def _about(rows: StandIn, seed: int) -> list[tuple[str, str]]:
    prices = "as published with the data" if rows.dataset.prices is not None else "1 for each feature"
    return [
        ("data", " ".join(rows.dataset.description.split())),
        ("rows", rows.split),
        ("model", f"{rows.model}, a stand-in for a validated model: {rows.estimator[-1]}"),
        ("prices", prices),
        ("seed", str(seed)),
    ]


def _facts(rows: StandIn, comparison: Comparison) -> dict[str, Any]:
    return {
        "data": rows.dataset.name,
        "model": rows.model,
        "split": rows.split,
        "full_accuracy": comparison.full,
        "curves": comparison.curves.to_dict("records"),
    }


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    # Names in the data are text, whatever brackets and colons they hold.
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A function that names the step that begins; a bar on a terminal, a line each elsewhere."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = _console(stderr=True)
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, completed=-1)

        def say(step: str) -> None:
            bar.update(task, description=step, advance=1)
            if not console.is_terminal:
                console.print(f"{step} ...")

        yield say


@contextmanager
def _failures() -> Iterator[None]:
    """What goes wrong, in one line on standard error: exit code 2 for the caller's fault, 1 else, 130 for Ctrl-C."""
    try:
        yield
    except AskwiseError as error:
        typer.echo(f"askwise: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2 if isinstance(error, InvalidInput) else 1) from None
    except KeyboardInterrupt:
        typer.echo("\naskwise: stopped.", err=True)
        raise typer.Exit(130) from None


if __name__ == "__main__":
    main()
