"""The command `askwise evaluate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from askwise.cli.console import make_console, print_json, progress
from askwise.cli.options import AsJson, Opening, Reading, Seed, check_place, check_saved, with_options
from askwise.cli.wording import choices_in_words
from askwise.errors import InvalidInput
from askwise.table.reading import check_path


class NotRecordedWay(StrEnum):
    """What to make of missing tests."""

    auto = "auto"
    blocked = "blocked"
    weighted = "weighted"
    simulated = "simulated"
    doubly_robust = "doubly-robust"
    all = "all"


Folder = Annotated[Path, typer.Argument(metavar="SELECTOR", help="A folder that askwise fit has written.")]
TestFile = Annotated[Path, typer.Argument(metavar="TABLE", help="Rows that the model has not seen, with their class.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the page.")]
Target = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column that holds the class (default: as in fit).")
]
NotRecorded = Annotated[
    NotRecordedWay,
    typer.Option(
        help="What to make of a test that is asked for and not in the table: it could not have been done (blocked), "
        "its like count for more (weighted), its value is drawn (simulated), or both (doubly-robust). all shows the "
        "four side by side, auto does where much is missing."
    ),
]
Title = Annotated[str, typer.Option(metavar="TEXT", help="The title of the page.")]
MostRows = Annotated[int, typer.Option(min=20, help="Of more rows, a random sample is used.")]


def _seen(selector: Any, X: Any, table: Path) -> str | None:
    """What to say if the rows were given to `fit`; a table of few distinct rows may repeat them in honest new cases."""
    try:
        selector._check_unseen(selector._encode(X), table.name)
    except InvalidInput as error:
        make_console(stderr=True).print(f"Note: {error}", style="yellow", soft_wrap=True)
        return str(error)
    return None


def _described(selector: Any) -> str:
    """The wrapped model, how it answers, and what was chosen in `fit`."""
    model = selector.estimator_
    last = f" with {type(model.steps[-1][1]).__name__}" if hasattr(model, "steps") else ""
    adaptation = selector.adaptation if isinstance(selector.adaptation, str) else type(selector.predictor_).__name__
    return f"{type(model).__name__}{last}, adaptation {adaptation}; {'; '.join(choices_in_words(selector.choices_))}"


@with_options(Opening, Reading)
def evaluate(
    opening: Opening,
    reading: Reading,
    folder: Folder,
    table: TestFile,
    output: Output = Path("askwise-evaluation.html"),
    target: Target = None,
    title: Title = "What asking wisely saves",
    most_rows: MostRows = 2000,
    not_recorded: NotRecorded = NotRecordedWay.auto,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure a selector on new rows: what it saves, how often it is right, what it asks. Writes one page to show."""
    check_saved(folder)
    check_path(table)
    if check_place(output, reads=[folder, table]).is_dir():
        raise InvalidInput(f"--output {output} is a folder. Add a file name, such as evaluation.html.")
    from askwise.cli.findings import N_STEPS, find, in_words
    from askwise.cli.manager_page import render
    from askwise.cli.own_files import open_saved, read_labeled
    from askwise.files import write_whole, writing

    with progress(N_STEPS + 2) as say:
        say("loading")
        selector, desk = open_saved(folder, opening)
        X, y = read_labeled(table, selector, desk, reading, target)
        seen = _seen(selector, X, table)
        selector.progress = "auto"
        sampled = X.sample(min(most_rows, len(X)), random_state=seed).sort_index()
        way = not_recorded.value.replace("-", "_")
        found = find(selector, sampled, y[sampled.index], desk, seed, say, way)
        say("drawing the page")
        about = [
            ("cases", f"{table.name}: {len(sampled):,} of {len(X):,} rows"),
            ("selector", f"{_described(selector)}; folder {folder.resolve().name}"),
        ]
        with writing(output):
            write_whole(output, render(title, found, desk, about, seen))
    if as_json:
        print_json({**found.to_dict(), "page": str(output)})
        return
    summary = found.summary
    less = f"({summary.saved:.0%} less), the same decision in {summary.kept:.1%}"
    typer.echo(f"Everything known: {desk.amount(summary.everything)} per case, {summary.full_accuracy:.1%} right")
    further = found.trajectory.further.items()
    besides = "".join(f", {name} {paid.sum(axis=1).mean():.4g}" for name, paid in further)
    typer.echo(f"askwise:          {desk.amount(summary.price)}{besides} per case {less}")
    for entry in found.by_class:
        if entry["kept"] is not None:
            said = f"{entry['kept']:.1%} of {entry['decided']} decisions kept"
            if entry["recall"] is not None:
                said += f", {entry['recall']:.1%} of {entry['cases']} true cases found "
                said += f"({entry['recall_of_everything']:.1%} with everything known)"
            typer.echo(f"  {entry['class']}: {said}")
    if found.records:
        budget = found.records[0]["budget"]
        when = "with the calibrated stop" if budget is None else f"under a budget of {desk.amount(budget)}"
        typer.echo(f"Missing:          {found.missing:.0%} of the tests. By what is made of that, {when}:")
        for entry in found.records:
            mark = "" if entry["trusted"] else "  (these records cannot tell)"
            typer.echo(f"  {in_words(entry, desk.amount)}{mark}")
        for entry in found.records:
            typer.echo(f"  {entry['way']} assumes that {entry['assumes']}.")
    if found.handover is not None:
        over = f"{len(found.handover['cases'])} of {found.n_rows:,} cases ({found.handover['share']:.1%})"
        typer.echo(f"To a person:      {over}; the page lists them")
    for way, levels in found.cheaper.items():
        at = ", ".join(f"{level:.0%}" for level, _, _ in levels)
        typer.echo(f"Note:             {way} was cheaper than a stop per case at {at} of the decisions (see the page)")
    typer.echo(f"Page:             {output}")
