"""One self-contained HTML page and a Markdown file with all that a folder of results can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from askwise.bench.grid.store import TIMING_COLUMNS, TIMINGS, about, bring_up_to_date, results
from askwise.bench.grid.suites import SUITES
from askwise.bench.grid.trials import write_whole
from askwise.bench.paper.claims import NOT_MEASURED, Verdict
from askwise.bench.paper.paper_claims import verdicts
from askwise.bench.report.figures import Picture
from askwise.bench.report.study_figures import pictures
from askwise.bench.report.study_tables import tables
from askwise.bench.report.tables import CELL, Entry, Table, data_name, method_name, ordered_data, read_rows, read_table
from askwise.plotting import template

FIGURES = "figures"
INTRODUCTION = (
    "Measured on held-out rows by the commands at the end; what the paper prints stands beside it in brackets. "
    "* proposed by the paper; † reads the whole row before it chooses."
)
TRACE = (
    "an entry of a table is a mean over rows of rows.csv (data, method, prices, seed, budget, metric, value), by the "
    "names that askwise bench --list gives: Greedy CART* is the method greedy-cart. The calibration error sums "
    "surplus_k, right predictions less confidences in bin k, over the seeds, and divides the absolute values by the "
    "test rows"
)
HOW_JUDGED = (
    "A claim is put as paired differences that must be above 0; the number shows them, weakest first, with their 95 % "
    "t intervals over the seeds. It holds where all of these lie above 0. It does not hold where one lies below 0, at "
    "a level divided by how many were compared. Otherwise, and with fewer than three seeds, it is undecided. The seeds "
    "are random splits of the same tables, which the intervals allow for (the correction of Nadeau and Bengio); no "
    "allowance is made for the number of claims: one verdict in twenty may be chance. The last column says whether the "
    "figures that the paper prints agree with its sentence."
)

DEVIATIONS = (
    "docs/paper.md of the project numbers where this differs from the paper, among it the schedule of the Q-network "
    "(10) and where a reparametrized model is kept (7). The constants of the default (method askwise) were chosen on "
    "validation rows of Wine, Heart, Cirrhosis and Yeast under other splits (15): some of these rows judge here."
)


@dataclass(frozen=True)
class Page:
    """What both files say."""

    title: str
    about: list[tuple[str, str]]
    verdicts: list[Verdict]
    unjudged: list[str]
    tables: list[Table]
    pictures: list[Picture]
    missing: list[str]
    failures: list[str]


def write_page(folder: Path) -> tuple[Path, Path]:
    """Write ``report.html`` and ``report.md`` from ``rows.csv``, with whatever suites it has rows of.

    The page holds its pictures; those of the Markdown file are in ``figures``.

    Parameters
    ----------
    folder
        Where a benchmark was run into.

    Returns
    -------
    the two files
    """
    folder = Path(folder)
    page = make_page(folder)
    html, markdown = folder / "report.html", folder / "report.md"
    write_whole(html, template("bench.html").render(page=page, introduction=INTRODUCTION, how_judged=HOW_JUDGED))
    for picture in page.pictures:
        write_whole(folder / FIGURES / f"{picture.name}.svg", str(picture.svg))
    write_whole(markdown, to_markdown(page))
    return html, markdown


def make_page(folder: Path) -> Page:
    """Everything that can be said of a folder, also of one whose run was stopped."""
    folder = Path(folder)
    bring_up_to_date(folder)
    rows = read_rows(folder)
    timings = read_table(folder / TIMINGS, TIMING_COLUMNS, {"fit_seconds": "number", "study_seconds": "number"})
    found = verdicts(rows)
    tables_run = ", ".join(map(data_name, ordered_data(rows["data"])))
    return Page(
        f"{rows['method'].nunique()} methods on {tables_run}",
        _about(folder, rows, timings),
        [line for line in found if line.verdict != NOT_MEASURED],
        [line.claim for line in found if line.verdict == NOT_MEASURED],
        [*tables(rows), _fitting_times(timings)],
        pictures(rows),
        _missing(timings),
        _failures(folder),
    )


def _about(folder: Path, rows: pd.DataFrame, timings: pd.DataFrame) -> list[tuple[str, str]]:
    manifest = about(folder)
    n_seeds = rows.groupby(["data", "prices"])["seed"].nunique()
    seeds = f"{n_seeds.min()} to {n_seeds.max()}" if n_seeds.min() < n_seeds.max() else f"{n_seeds.max()}"
    spent = timings.groupby(CELL)["fit_seconds"].max().sum(), timings["study_seconds"].sum()
    return [
        *(("command", str(told)) for told in manifest["commands"]),
        ("time", f"{_duration(spent[0])} of fitting and {_duration(spent[1])} of measuring, on one core"),
        ("data", ", ".join(map(data_name, ordered_data(rows["data"])))),
        ("methods", ", ".join(sorted(rows["method"].unique()))),
        ("seeds", f"{seeds}; each is a split of the rows (80 % to train, 20 % to test) and, where random, of prices"),
        ("suites", ", ".join(sorted(timings["study"].unique()))),
        ("profile", str(manifest.get("profile", "unknown"))),
        ("rows at most", ", ".join(f"{most} for {name}" for name, most in manifest["limits"].items()) or "unknown"),
        ("numbers", f"{len(rows):,} in rows.csv, from {len(rows[CELL].drop_duplicates()):,} fits"),
        ("made with", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items()) or "unknown"),
        ("tracing a number", TRACE),
        ("deviations", DEVIATIONS),
        ("askwise", f"version {manifest.get('askwise', 'unknown')}"),
    ]


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"


def _fitting_times(timings: pd.DataFrame) -> Table:
    """Mean seconds of a fit, by method and data; a fit that several suites share counts once."""
    fits = timings[timings["fit_seconds"] > 0].groupby(CELL)["fit_seconds"].max()
    means = fits.groupby(["method", "data"]).mean().unstack("data")
    names = ordered_data(means.columns)
    ordered = means.assign(total=means.sum(axis=1)).sort_values("total")
    body = [
        (Entry(method_name(str(method))), *(Entry("-" if pd.isna(row[name]) else f"{row[name]:.2g}") for name in names))
        for method, row in ordered.iterrows()
    ]
    note = "Mean seconds of one fit on one core, over seeds and prices; measuring is not included."
    return Table("Time to fit", "beyond the paper", note, ("method", *map(data_name, names)), tuple(body))


def _missing(timings: pd.DataFrame) -> list[str]:
    ran = set(timings["study"])
    return [f"askwise bench {name}: {suite.title} ({suite.paper})" for name, suite in SUITES.items() if name not in ran]


def _failures(folder: Path) -> list[str]:
    """What could not be measured, with the last line of why."""
    return [
        f"{d['study']}: {d['method']} on {d['data']}, {d['prices']} prices, seed {d['seed']}: "
        f"{d['error'].strip().splitlines()[-1]}"
        for d in results(folder)
        if d["error"]
    ]


def to_markdown(page: Page) -> str:
    """The page, with links to its pictures."""
    parts = [f"# {page.title}", INTRODUCTION]
    if page.verdicts:
        parts += ["## The paper's claims", HOW_JUDGED, _verdicts_in_markdown(page.verdicts)]
    if page.unjudged:
        parts += [f"Not measured here: {'; '.join(page.unjudged)}."]
    for table in page.tables:
        parts += [f"## {table.title} ({table.label})", table.note, _table_in_markdown(table)]
    for picture in page.pictures:
        parts += [f"## {picture.title} ({picture.label})", picture.note]
        parts += [f"![{picture.title}]({FIGURES}/{picture.name}.svg)"]
    if page.missing or page.failures:
        lines = [*(f"- failed: {line}" for line in page.failures), *(f"- not run: {line}" for line in page.missing)]
        parts += ["## Not here", "\n".join(lines)]
    parts += ["## How this was made", "\n".join(f"- **{what}**: {text}" for what, text in page.about)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdicts_in_markdown(found: Sequence[Verdict]) -> str:
    head = ("claim", "where", "verdict", "number behind it", "by the paper's figures")
    return _grid(head, [(v.claim, v.where, f"**{v.verdict}**", v.number, v.printed or "-") for v in found])


def _table_in_markdown(table: Table) -> str:
    return _grid(table.head, [[_entry_in_markdown(entry) for entry in line] for line in table.body])


def _entry_in_markdown(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    spread = f" ({entry.spread})" if entry.spread else ""
    return f"{text}{spread}{f' [{entry.paper}]' if entry.paper else ''}"


def _grid(head: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
