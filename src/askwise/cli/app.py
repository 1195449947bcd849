"""The command line: `askwise demo` shows what askwise does on a table, `askwise ask` plays one case; bench and report.

Results go to standard output, progress to standard error. Heavy imports stand inside the functions, so that
``askwise --help`` answers at once.
"""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli import bench
from askwise.cli.ask import Dialog
from askwise.cli.console import (
    failures,
    make_console,
    print_curves,
    print_json,
    print_rows,
    print_rules,
    print_story,
    progress,
)
from askwise.errors import InvalidInput

if TYPE_CHECKING:
    from askwise.cli.demo import Comparison
    from askwise.reference_models import ReferenceModel
    from askwise.selector import DynamicFeatureSelector

DEMO_STEPS = 11
RULES_SHOWN = 3

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


class Model(StrEnum):
    """The stand-ins for a validated model."""

    mlp = "mlp"
    forest = "forest"
    logistic = "logistic"
    tree = "tree"
    subset_tree = "subset-tree"
    fuzzy_tree = "fuzzy-tree"
    xgboost = "xgboost"


class Adaptation(StrEnum):
    """The ways to predict from incomplete rows that are quick enough for a demonstration."""

    auto = "auto"
    conditional = "conditional"
    mean = "mean"
    rules = "rules"


RULE_MODELS = (Model.tree, Model.subset_tree, Model.fuzzy_tree)
"""Small enough for their rules to be read."""


Data = Annotated[
    str | None, typer.Option(metavar="NAME", help="A data set by name, wine if none is given; a wrong name lists them.")
]
Kind = Annotated[Model, typer.Option("--model", help="The stand-in for your validated model.")]
Adapt = Annotated[
    Adaptation,
    typer.Option(
        "--adaptation",
        help="How to predict from what is known so far: the model averaged over similar training rows (conditional), "
        "on typical values (mean), or its rules, which are then shown (rules: tree, subset-tree, fuzzy-tree, forest). "
        "auto is rules for the three trees and conditional for the others.",
    ),
]
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
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was started is ended, too
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
    adaptation: Adapt = Adaptation.auto,
    csv: Csv = None,
    target: Target = None,
    drop: Drop = None,
    budget: Budget = None,
    seed: Seed = 0,
    page: Page = Path("askwise-report.html"),
    as_json: AsJson = False,
) -> None:
    """Compare ways of asking on held-out rows, walk through one case, and write a report."""
    with failures():
        _check_budget(budget)
        from askwise.cli.demo import RANDOM_ORDERS, compare, tell_story
        from askwise.cli.demo_report import Report, check_report_path, write_report

        check_report_path(page)
        with progress(DEMO_STEPS) as say:
            rows, selector = _prepare(data, model, adaptation, csv, target, drop or [], seed, say)
            comparison = compare(selector, rows, _budgets(selector, budget), seed, say)
            story = tell_story(selector, rows, comparison.trajectory)
            say("drawing the report")
            about = [*_about(rows, selector, seed), ("random orders", f"seeds {seed} to {seed + RANDOM_ORDERS - 1}")]
            write_report(page, Report(f"{rows.dataset.name}, {model.value}", about, story, comparison))
        if as_json:
            print_json({**_facts(rows, selector, comparison), "story": vars(story), "report": str(page)})
            return
        console = make_console()
        print_rows(console, rows)
        print_curves(console, comparison)
        console.print(f"\n{story.title}, true label {story.truth}", style="bold")
        print_story(console, story)
        print_rules(console, story.trace[-1], RULES_SHOWN)
        console.print(f"\nReport: {page.resolve()}", soft_wrap=True)


@app.command()
def ask(
    data: Data = None,
    model: Kind = Model.mlp,
    adaptation: Adapt = Adaptation.auto,
    csv: Csv = None,
    target: Target = None,
    drop: Drop = None,
    budget: Budget = None,
    seed: Seed = 0,
    page: MaybePage = None,
    as_json: AsJson = False,
) -> None:
    """Play one case at the terminal: it asks, you type values."""
    with failures():
        _check_budget(budget)
        from askwise.cli.demo import Story
        from askwise.cli.demo_report import Report, check_report_path, write_report

        if page is not None:
            check_report_path(page)
        with progress(2) as say:
            rows, selector = _prepare(data, model, adaptation, csv, target, drop or [], seed, say)
        console = make_console(stderr=as_json)
        print_rows(console, rows)
        session = selector.start(budget=budget)
        Dialog(console, session, selector, rows.X_train).run()
        story = Story("A case typed in", session.report()["trace"])
        print_story(console, story)
        if page is not None:
            write_report(page, Report(f"{rows.dataset.name}, {model.value}", _about(rows, selector, seed), story))
            console.print(f"\nReport: {page.resolve()}", soft_wrap=True)
        if as_json:
            print_json(session.report())


app.command()(bench.bench)
app.command()(bench.report)


def _prepare(
    data: str | None,
    model: Model,
    adaptation: Adaptation,
    csv: Path | None,
    target: str | None,
    drop: list[str],
    seed: int,
    say: Callable[[str], None],
) -> tuple[ReferenceModel, DynamicFeatureSelector]:
    """The table, the stand-in trained on it, and the selector around that."""
    from askwise.cli.user_table import read_csv, row_counters
    from askwise.datasets import load, names
    from askwise.reference_models import train_reference_model
    from askwise.selector import DynamicFeatureSelector

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
        make_console(stderr=True).print(f"Note: column {column!r} numbers the rows. If it is an id: --drop {column!r}")
    rows = train_reference_model(dataset, model.value, seed)
    say("wrapping it")
    by_rules = adaptation is Adaptation.auto and model in RULE_MODELS
    selector = DynamicFeatureSelector(
        rows.estimator,
        costs=dataset.prices,
        groups=dataset.groups,
        adaptation="rules" if by_rules else adaptation.value,
        random_state=seed,
        progress=False,
    )
    return rows, selector.fit(rows.X_train, rows.y_train)


def _budgets(selector: DynamicFeatureSelector, most: float | None) -> list[float]:
    usual = selector.default_budgets()
    return usual if most is None else [*(budget for budget in usual if budget < most), most]


def _check_budget(budget: float | None) -> None:
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise InvalidInput(f"--budget must be a finite number >= 0; got {budget}. Leave it out for no limit.")


def _about(rows: ReferenceModel, selector: DynamicFeatureSelector, seed: int) -> list[tuple[str, str]]:
    prices = "as published with the data" if rows.dataset.prices is not None else "1 for each feature"
    adapted = [] if selector.adaptation == "auto" else [("adaptation", str(selector.adaptation))]
    return [
        ("data", " ".join(rows.dataset.description.split())),
        ("rows", rows.split),
        ("model", f"{rows.model}, a stand-in for a validated model: {rows.estimator[-1]}"),
        *adapted,
        ("prices", prices),
        ("seed", str(seed)),
    ]


def _facts(rows: ReferenceModel, selector: DynamicFeatureSelector, comparison: Comparison) -> dict[str, Any]:
    return {
        "data": rows.dataset.name,
        "model": rows.model,
        "adaptation": selector.adaptation,
        "split": rows.split,
        "full_accuracy": comparison.full,
        "curves": comparison.curves.to_dict("records"),
    }


if __name__ == "__main__":
    main()
