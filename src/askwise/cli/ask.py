"""The command `askwise ask`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.console import make_console, print_choices, print_json, print_rows, progress
from askwise.cli.options import Opening, Setup, check_report_path, check_saved, with_options
from askwise.cli.steps import print_story
from askwise.errors import InvalidInput

if TYPE_CHECKING:
    from askwise.cli.demo_report import Report

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="SELECTOR", help="A folder that askwise fit has written; without it, --data or --csv."),
]
Page = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the case to a page.")]
Known = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A value that is known already and costs nothing; repeatable."),
]


Yes = Annotated[
    bool, typer.Option("--yes", metavar="", help="Enter values outside of their range without confirmation.")
]


@with_options(Setup, Opening)
def ask(
    setup: Setup, opening: Opening, folder: Folder = None, known: Known = None, page: Page = None, yes: Yes = False
) -> None:
    """Work through one case at the terminal: askwise asks, you type values, or why?"""
    if page is not None:
        check_report_path(page)
    if folder is not None:
        check_saved(folder)
        _check_alone(setup)
    from askwise.cli.answers import parse_known
    from askwise.cli.comparison import Story
    from askwise.cli.demo_report import write_report
    from askwise.cli.dialog import Dialog

    console = make_console(stderr=setup.as_json)
    selector, desk, made = _trained(setup) if folder is None else _opened(folder, opening)
    stop = "calibrated" if selector.stop_ is not None and setup.budget is None else None
    dialog = Dialog(console, selector, desk, parse_known(selector.schema_, known or []), setup.budget, stop, yes)
    if folder is None:
        print_rows(console, made)
        print_choices(console, selector.choices_)
    if selector.stop_ is not None and stop is None:
        said = "The calibrated stop is not used: it keeps its promise under the budget of fit only, not under --budget."
        console.print(said, style="yellow")
    dialog.run()
    report = dialog.session.report()
    story = Story("A case typed in", report["trace"], known=dialog.known)
    console.print("\nThe case, step by step", style="bold")
    print_story(console, story, desk)
    if dialog.volunteered:
        console.print(f"Volunteered, and shown as known from the start: {', '.join(dialog.volunteered)}.")
    if page is not None:
        write_report(page, _page(folder, made, selector, setup, story, dialog.guaranteed))
        console.print(f"\nReport: {page.resolve()}", soft_wrap=True)
    if setup.as_json:
        why = dialog.session.why(desk)
        print_json({**report, "why": why, "volunteered": dialog.volunteered, "choices": selector.choices_})


def _check_alone(setup: Setup) -> None:
    """A saved selector has its own data and model."""
    plain = Setup(budget=setup.budget, as_json=setup.as_json, seed=setup.seed)
    if setup != plain:
        raise InvalidInput("A saved selector has its data, model and prices: leave out --data, --csv and what follows.")


def _trained(setup: Setup) -> tuple[Any, Any, Any]:
    from askwise.cli.prepare import prepare
    from askwise.table.desk import Desk

    with progress(2) as say:
        rows, selector = prepare(setup, say)
    return selector, Desk.of(selector), rows


def _opened(folder: Path, opening: Opening) -> tuple[Any, Any, Any]:
    from askwise.cli.own_files import open_saved

    return *open_saved(folder, opening), None


def _page(folder: Path | None, rows: Any, selector: Any, setup: Setup, story: Any, guaranteed: str | None) -> Report:
    from askwise.cli.demo_report import Report
    from askwise.cli.prepare import about

    if folder is None:
        return Report(f"{rows.dataset.name}, {rows.model}", about(rows, selector, setup), story)
    promise = [] if guaranteed is None else [("guarantee", guaranteed)]
    return Report(folder.resolve().name, [("selector", str(folder)), *promise], story)
