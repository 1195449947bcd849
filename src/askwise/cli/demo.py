"""The command `askwise demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askwise.cli import options
from askwise.cli.console import failures, make_console, print_curves, print_json, print_rows, progress
from askwise.cli.steps import print_rules, print_story
from askwise.errors import InvalidInput
from askwise.tables import TableOptions

if TYPE_CHECKING:
    from askwise.selector import DynamicFeatureSelector

STEPS = 12
IMAGES = ("mnist",)
RULES_SHOWN = 3
Page = Annotated[Path, typer.Option("--report", metavar="FILE", help="Where to write the page.")]


def demo(
    data: options.Data = None,
    model: options.Kind = options.Model.mlp,
    adaptation: options.Adapt = options.Adaptation.auto,
    price: options.Price = None,
    budget: options.Budget = None,
    seed: options.Seed = 0,
    page: Page = Path("askwise-report.html"),
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
    """Compare ways of asking on held-out rows, follow one case step by step, and write a report.

    --data mnist does so with images, patch by patch.
    """
    with failures():
        table = TableOptions(separator, decimal, encoding, tuple(missing or ()), tuple(text or ()), tuple(number or ()))
        source = options.Source(data, csv, target, drop or [], table, price or [])
        options.check_source(source)
        options.check_budget(budget)
        options.check_report_path(page)
        if data in IMAGES:
            _check_for_images(data, model, adaptation)
            from askwise.cli.image_demo import demo_images

            demo_images(data, budget, seed, page, as_json)
            return
        from markupsafe import Markup

        from askwise.cli.comparison import RANDOM_ORDERS, compare, flowchart, tell_story
        from askwise.cli.demo_report import Report, write_report
        from askwise.cli.prepare import about, facts, prepare

        with progress(STEPS) as say:
            rows, selector = prepare(source, model, adaptation, seed, say)
            comparison = compare(selector, rows, _budgets(selector, budget), seed, say)
            story = tell_story(selector, rows, comparison.trajectory)
            say("drawing a flowchart")
            chart = flowchart(selector, rows, budget)
            say("drawing the report")
            made = [
                *about(rows, selector, seed, price or []),
                ("random orders", f"seeds {seed} to {seed + RANDOM_ORDERS - 1}"),
            ]
            title, picture = f"{rows.dataset.name}, {model.value}", None if chart is None else Markup(chart.to_svg())
            write_report(page, Report(title, made, story, comparison, flowchart=picture))
        if as_json:
            found = {**facts(rows, selector, comparison), "story": vars(story), "report": str(page)}
            print_json(found if chart is None else {**found, "flowchart": chart.to_dict()})
            return
        console = make_console()
        print_rows(console, rows)
        print_curves(console, comparison)
        console.print(f"\n{story.title}, true label {story.truth}", style="bold")
        print_story(console, story)
        print_rules(console, story.trace[-1], RULES_SHOWN)
        console.print(f"\nReport: {page.resolve()}", soft_wrap=True)


def _check_for_images(data: str, model: options.Model, adaptation: options.Adaptation) -> None:
    if model is not options.Model.mlp or adaptation is not options.Adaptation.auto:
        raise InvalidInput(f"--model and --adaptation are for tables; {data} trains a small network. Leave them out.")


def _budgets(selector: DynamicFeatureSelector, most: float | None) -> list[float]:
    usual = selector.default_budgets()
    return usual if most is None else [*(budget for budget in usual if budget < most), most]
