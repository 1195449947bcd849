"""The command `askwise demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from askwise.cli.console import (
    as_records,
    make_console,
    print_choices,
    print_curves,
    print_headline,
    print_json,
    print_rows,
    print_savings,
    progress,
)
from askwise.cli.options import Setup, check_report_path, with_options
from askwise.cli.steps import print_rules, print_steps, print_story

STEPS = 13
IMAGES = ("mnist",)
RULES_SHOWN = 3
Page = Annotated[Path, typer.Option("--report", metavar="FILE", help="Where to write the page.")]


@with_options(Setup)
def demo(setup: Setup, page: Page = Path("askwise-report.html")) -> None:
    """Compare ways of asking on held-out rows, follow one case step by step, and write a report.

    --data mnist does so with images, patch by patch.
    """
    check_report_path(page)
    with progress(STEPS) as say:
        rows, selector, report = _demonstrated(setup, page, say)
    story, comparison = report.story, report.comparison
    if setup.as_json:
        facts = {
            "data": rows.dataset.name,
            "model": rows.model,
            "adaptation": selector.adaptation,
            "split": rows.split,
            "choices": selector.choices_,
            "full_accuracy": comparison.full,
            "note": comparison.note,
            "curves": comparison.curves.to_dict("records"),
            "savings": [] if comparison.savings is None else as_records(comparison.savings),
        }
        if comparison.stopped is not None:
            facts["stopped"] = {**vars(comparison.stopped.summary), "by_class": comparison.stopped.by_class}
        charted = {} if report.flowchart is None else {"flowchart": report.flowchart.to_dict()}
        print_json({**facts, "story": vars(story), "report": str(page), **charted})
        return
    console = make_console()
    print_rows(console, rows)
    if comparison.stopped is not None:
        print_headline(console, comparison)
    console.print(f"\n{story.title}, true label {story.truth}", style="bold")
    if report.film is not None:
        print_steps(console, story)
    else:
        print_story(console, story)
        print_rules(console, story.trace[-1], RULES_SHOWN)
    if comparison.savings is not None:
        print_savings(console, comparison)
    print_curves(console, comparison)
    print_choices(console, selector.choices_)
    console.print(f"\nReport: {page.resolve()}", soft_wrap=True)


def _demonstrated(setup: Setup, page: Path, say: Callable[[str], None]) -> tuple[Any, Any, Any]:
    """The rows and their model, the selector and the report, which is written to `page`."""
    from askwise.cli.demo_report import write_report

    if setup.data in IMAGES:
        from askwise.cli import image_demo as kind
    else:
        from askwise.cli import prepare as kind  # type: ignore[no-redef]
    rows, selector, report = kind.demonstrate(setup, say)
    write_report(page, report)
    return rows, selector, report
