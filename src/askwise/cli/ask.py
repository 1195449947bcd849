"""The command `askwise ask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.console import make_console, print_choices, print_json, print_rows, progress
from askwise.cli.options import Setup, check_report_path
from askwise.cli.shared_options import with_options
from askwise.cli.steps import print_story

Page = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the case to a page.")]
Known = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A value that is known already and costs nothing; repeatable."),
]


@with_options(Setup)
def ask(setup: Setup, known: Known = None, page: Page = None) -> None:
    """Work through one case at the terminal: askwise asks, you type values."""
    if page is not None:
        check_report_path(page)
    from askwise.cli.answers import parse_known
    from askwise.cli.comparison import Story
    from askwise.cli.demo_report import Report, write_report
    from askwise.cli.dialog import Dialog
    from askwise.cli.prepare import about, prepare

    with progress(2) as say:
        rows, selector = prepare(setup, say)
    console = make_console(stderr=setup.as_json)
    dialog = Dialog(console, selector, rows.X_train, parse_known(selector.schema_, known or []), setup.budget)
    print_rows(console, rows)
    print_choices(console, selector.choices_)
    dialog.run()
    report = dialog.session.report()
    story = Story("A case typed in", report["trace"], known=dialog.known)
    console.print("\nThe case, step by step", style="bold")
    print_story(console, story)
    if dialog.volunteered:
        console.print(f"Volunteered, and shown as known from the start: {', '.join(dialog.volunteered)}.")
    if page is not None:
        write_report(page, Report(f"{rows.dataset.name}, {rows.model}", about(rows, selector, setup), story))
        console.print(f"\nReport: {page.resolve()}", soft_wrap=True)
    if setup.as_json:
        print_json({**report, "volunteered": dialog.volunteered, "choices": selector.choices_})
