"""The commands `askwise bench` and `askwise report`, which askwise offers once this distribution is installed.

`python -m askwise_bench` has them too.
"""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.console import failures, make_console
from askwise.errors import InvalidInput

if TYPE_CHECKING:
    from askwise_bench.grid.run import Progress


class Profile(StrEnum):
    """How much `askwise bench` runs."""

    quick = "quick"
    paper = "paper"


class Rows(StrEnum):
    """How many rows of a large table are used."""

    limited = "limited"
    all = "all"


PROFILES = {
    "quick": "wine (images: mnist), one seed, at most 2,000 rows to train and 500 to test (all suites: about 40 "
    "minutes of CPU)",
    "paper": "five tables, five seeds, at most 10,000 and 2,000 rows (very many hours), and the paper's settings: its "
    "schedule of the Q-network, 100 subsets per size in the studies of the risk gap",
}


def _list_bench(wanted: bool) -> None:
    if not wanted:
        return
    from askwise_bench.grid.methods import METHODS
    from askwise_bench.grid.suites import SUITES
    from askwise_bench.grid.tasks import known_data
    from askwise_bench.paper.paper_claims import CLAIMS
    from askwise_bench.report.illustrations import ILLUSTRATIONS

    sections = {
        "profiles": [f"{name:<14} {about}" for name, about in PROFILES.items()],
        "suites": [f"{name:<14} {suite.title} ({suite.paper})" for name, suite in SUITES.items()],
        "methods": [
            f"{name:<24} {method.title}{'' if method.installed else f' (skipped: {method.package} is not installed)'}"
            for name, method in METHODS.items()
        ],
        "data": [", ".join(known_data())],
        "illustrations (drawn in every report)": [f"{each.title} ({each.label})" for each in ILLUSTRATIONS],
        "claims (judged in every report of two seeds or more)": [f"{each.text} ({each.where})" for each in CLAIMS],
    }
    for heading, lines in sections.items():
        typer.echo("\n  ".join([heading, *lines]))
    raise typer.Exit


Suites = Annotated[list[str], typer.Argument(metavar="SUITE...", help="Suites by name (see --list), or all.")]
Seeds = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="Seeds 0 to N - 1, instead of the profile's number.")
]
Methods = Annotated[str | None, typer.Option(metavar="A,B", help="Methods (see --list), instead of all.")]
Tables = Annotated[str | None, typer.Option(metavar="A,B", help="Data sets (see --list), instead of the profile's.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where results are kept; the same command resumes there.")]
Jobs = Annotated[int, typer.Option(min=1, max=1000, help="Trials that run in parallel.")]
Engine = Annotated[str, typer.Option(metavar="local|dask", help="dask: trials run on Dask workers.")]
Address = Annotated[
    str | None, typer.Option(metavar="URL", help="A Dask scheduler; without one, --jobs local workers are started.")
]
Profiles = Annotated[
    Profile, typer.Option(help="; ".join(f"{name}: {about}" for name, about in PROFILES.items()) + ".")
]
Amount = Annotated[Rows, typer.Option(help="all: every row of a large table, whatever the profile says.")]
Kept = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Kept rows, such as research/results: what they already have is not run."),
]
Listing = Annotated[
    bool,
    typer.Option(
        "--list", metavar="", is_eager=True, callback=_list_bench, help="List suites, methods and data, and exit."
    ),
]


def bench(
    suites: Suites,
    seeds: Seeds = None,
    methods: Methods = None,
    data: Tables = None,
    out: Out = Path("askwise-bench"),
    jobs: Jobs = 1,
    engine: Engine = "local",
    address: Address = None,
    profile: Profiles = Profile.quick,
    rows: Amount = Rows.limited,
    kept: Kept = None,
    listing: Listing = False,
) -> None:
    """Run the paper's comparisons: a grid of data, methods, prices and seeds that resumes where it was stopped.

    DIR holds a tidy row per number in rows.csv, the times, and a file per trial.
    Finished trials are not run again, failed ones are; more seeds, methods or
    data can be added to the same folder. Then: askwise report DIR.
    """
    with failures(f"Finished trials are kept in {out}; the same command continues from there."):
        from askwise_bench.grid.run import Grid, run

        console = make_console(stderr=True)
        started = time.monotonic()
        failed: list[Progress] = []
        choice: dict[str, Any] = {"profile": profile.value, "seeds": seeds, "all_rows": rows is Rows.all, "kept": kept}
        choice |= {"methods": _names("--methods", methods), "data": _names("--data", data)}
        steps, grid = run(suites, out, jobs=jobs, engine=engine, address=address, **choice), Grid(suites, **choice)
        for line in [*grid.not_installed(), *(grid.left_out() if "all" not in suites else [])]:
            console.print(line, soft_wrap=True)
        for n_run, step in enumerate(steps, start=1):
            failed += [step] if step.errors else []
            console.print(_grid_line(step, n_run, time.monotonic() - started), soft_wrap=True)
        typer.echo(out / "rows.csv")
        if failed:
            tracebacks = [traceback for step in failed for traceback in step.errors.values()]
            for reason in dict.fromkeys(traceback.strip().splitlines()[-1] for traceback in tracebacks):
                console.print(reason, soft_wrap=True)
            said = f"{len(failed)} of {failed[0].total} trials failed; the tracebacks are in {out / 'trials'}."
            console.print(f"{said} The same command tries the failed ones again.", soft_wrap=True)
            raise typer.Exit(1)


def _names(option: str, listed: str | None) -> list[str] | None:
    """Names separated by commas."""
    if listed is None:
        return None
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"{option} names nothing; got {listed!r}. Separate names by commas, or leave it out.")
    return names


def _grid_line(step: Progress, n_run: int, seconds: float) -> str:
    """One finished trial, and how long the others will take at this pace."""
    trial = step.trial
    left = (step.total - step.done) * seconds / n_run
    said = f"{step.done}/{step.total}  {trial.data}, {trial.method}, {trial.prices} prices, seed {trial.seed}"
    trouble = f": {', '.join(step.errors)} failed" if step.errors else ""
    if step.done == step.total:
        return f"{said}{trouble}"
    return f"{said}{trouble}  ({f'{left / 60:.0f}' if left >= 60 else 'less than 1'} min left)"


Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder that `askwise bench --out` wrote, or one of kept rows.")
]
Docs = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write results.md, results-tables.md and their figures there instead."),
]


def report(folder: Folder, docs: Docs = None) -> None:
    """Write the results of `askwise bench` as one HTML page and as Markdown: a first page, and its tables."""
    with failures():
        from askwise_bench.report.report import write_docs, write_page

        for path in write_page(folder) if docs is None else write_docs(folder, docs):
            typer.echo(path)


app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (bench, report):
    app.command()(command)
