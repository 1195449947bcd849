"""The command `askwise ask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askwise.cli import options
from askwise.cli.console import failures, make_console, print_json, print_rows, progress
from askwise.cli.steps import print_story
from askwise.tables import TableOptions

Page = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the case to a page.")]
Known = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A value that is known already and costs nothing; repeatable."),
]


def ask(
    data: options.Data = None,
    model: options.Kind = options.Model.mlp,
    adaptation: options.Adapt = options.Adaptation.auto,
    known: Known = None,
    price: options.Price = None,
    budget: options.Budget = None,
    seed: options.Seed = 0,
    page: Page = None,
    as_json: options.AsJson = False,
    csv: options.Csv = None,
    target: options.Target = None,
    drop: options.Drop = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing: options.Missing = None,
    text: options.TextColumns = None,
    number: options.NumberColumns = None,
) -> None:
    """Work through one case at the terminal: askwise asks, you type values."""
    with failures():
        table = TableOptions(separator, decimal, encoding, tuple(missing or ()), tuple(text or ()), tuple(number or ()))
        source = options.Source(data, csv, target, drop or [], table, price or [])
        options.check_source(source)
        options.check_budget(budget)
        if page is not None:
            options.check_report_path(page)
        from askwise.cli.answers import parse_known
        from askwise.cli.comparison import Story
        from askwise.cli.demo_report import Report, write_report
        from askwise.cli.dialog import Dialog
        from askwise.cli.prepare import about, prepare

        with progress(2) as say:
            rows, selector = prepare(source, model, adaptation, seed, say)
        console = make_console(stderr=as_json)
        dialog = Dialog(console, selector, rows.X_train, parse_known(selector.schema_, known or []), budget)
        print_rows(console, rows)
        dialog.run()
        report = dialog.session.report()
        story = Story("A case typed in", report["trace"], known=dialog.known)
        console.print("\nThe case, step by step", style="bold")
        print_story(console, story)
        if dialog.volunteered:
            console.print(f"Volunteered, and shown as known from the start: {', '.join(dialog.volunteered)}.")
        if page is not None:
            write_report(
                page, Report(f"{rows.dataset.name}, {model.value}", about(rows, selector, seed, price or []), story)
            )
            console.print(f"\nReport: {page.resolve()}", soft_wrap=True)
        if as_json:
            print_json({**report, "volunteered": dialog.volunteered})
