"""One self-contained HTML page and a Markdown file with all that a folder of results can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from askwise.plotting import template
from askwise_bench.grid.run import PROFILES
from askwise_bench.grid.store import TRIAL, bring_up_to_date, read_manifest, read_timings, results
from askwise_bench.grid.suites import SUITES
from askwise_bench.grid.trials import write_whole
from askwise_bench.paper.claims import NOT_MEASURED, Verdict
from askwise_bench.paper.paper_claims import verdicts
from askwise_bench.report.figures import Picture
from askwise_bench.report.rows import data_name, method_name, ordered_data, read_rows
from askwise_bench.report.study_figures import pictures
from askwise_bench.report.study_tables import tables
from askwise_bench.report.tables import Entry, Table
from askwise_bench.studies.subsets import SUBSETS_PER_SIZE

FIGURES = "figures"
FEWEST_SEEDS = 2
"""With fewer there is no spread to judge a claim by."""

INTRODUCTION = (
    "Measured on held-out rows by the commands listed at the end; the paper's own figures are in brackets. "
    "* proposed by the paper; † reads the whole row before it chooses."
)
TRACE = (
    "an entry of a table is a mean over rows of rows.csv, whose columns docs/benchmarks.md explains; the methods have "
    "the names that askwise bench --list gives: Greedy CART* is greedy-cart. The calibration error sums surplus "
    "(correct predictions minus confidences, by bin) over the seeds, and divides the absolute values by the test rows"
)
HOW_JUDGED = (
    "A claim is stated as paired differences that must be above 0; they are shown, weakest first, with their 95 % t "
    "intervals over the seeds. It holds if all of the intervals lie above 0. It does not hold if one lies below 0, at "
    "a level divided by the number of comparisons. Otherwise, and with fewer than three seeds, it is undecided. The "
    "seeds are random splits of the same tables, which the intervals allow for (Nadeau and Bengio's correction). They "
    "are not corrected for the number of claims: one verdict in twenty may be due to chance. The last column says "
    "whether the figures that the paper prints agree with its sentence."
)
NOT_JUDGED = f"The claims are not judged: that needs at least {FEWEST_SEEDS} seeds, and this run has one."
DEVIATIONS = (
    "docs/paper.md numbers the differences from the paper, among them the schedule of the Q-network (10) and where a "
    "reparametrized model is kept (7). The constants of the default (method askwise) were chosen on validation rows of "
    "Wine, Heart, Cirrhosis and Yeast under other splits (15): some of these rows are test rows here."
)


@dataclass(frozen=True)
class Page:
    """The content of both files."""

    title: str
    about: list[tuple[str, str]]
    how_judged: str
    verdicts: list[Verdict]
    unjudged: list[str]
    tables: list[Table]
    pictures: list[Picture]
    missing: list[str]
    failures: list[str]


def write_page(folder: Path) -> tuple[Path, Path]:
    """Write ``report.html`` and ``report.md`` from the ``rows.csv`` of a folder, with whatever suites were run.

    The page includes its figures; those of the Markdown file are in the folder ``figures``.
    """
    folder = Path(folder)
    page = make_page(folder)
    html, markdown = folder / "report.html", folder / "report.md"
    write_whole(
        html,
        template("bench.html", "askwise_bench").render(
            page=page, introduction=INTRODUCTION, how_judged=page.how_judged
        ),
    )
    for picture in page.pictures:
        write_whole(folder / FIGURES / f"{picture.name}.svg", str(picture.svg))
    write_whole(markdown, to_markdown(page))
    return html, markdown


def make_page(folder: Path) -> Page:
    """The report of a folder, also of one whose run was stopped."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    bring_up_to_date(folder)
    rows, timings = read_rows(folder), read_timings(folder)
    judged = rows.groupby(["data", "prices"])["seed"].nunique().max() >= FEWEST_SEEDS
    found = verdicts(rows) if judged else []
    n_methods, ran = rows["method"].nunique(), set(timings["suite"])
    tables_run = ", ".join(map(data_name, ordered_data(rows["data"])))
    return Page(
        f"{n_methods} method{'s' * (n_methods > 1)} on {tables_run}",
        _about(manifest, rows, timings),
        HOW_JUDGED if judged else NOT_JUDGED,
        [line for line in found if line.verdict != NOT_MEASURED],
        [line.claim for line in found if line.verdict == NOT_MEASURED],
        [*tables(rows), _fitting_times(timings)],
        pictures(rows),
        [f"askwise bench {name}: {suite.title} ({suite.paper})" for name, suite in SUITES.items() if name not in ran],
        _failures(folder),
    )


def _about(manifest: dict[str, Any], rows: pd.DataFrame, timings: pd.DataFrame) -> list[tuple[str, str]]:
    n_seeds = rows.groupby(["data", "prices"])["seed"].nunique()
    seeds = f"{n_seeds.min()} to {n_seeds.max()}" if n_seeds.min() < n_seeds.max() else f"{n_seeds.max()}"
    spent = timings.groupby(TRIAL)["fit_seconds"].max().sum(), timings["study_seconds"].sum()
    return [
        *(("command", str(told)) for told in manifest["commands"]),
        ("time", f"{_duration(spent[0])} of fitting and {_duration(spent[1])} of evaluation, on one core"),
        ("data", ", ".join(map(data_name, ordered_data(rows["data"])))),
        ("methods", ", ".join(sorted(rows["method"].unique()))),
        ("seeds", f"{seeds}; each is a split of the rows (80 % to train, 20 % to test) and a draw of random prices"),
        ("suites", ", ".join(sorted(timings["suite"].unique()))),
        ("profile", manifest["profile"]),
        *_settings(manifest["profile"]),
        ("rows at most", ", ".join(f"{most or 'all'} for {name}" for name, most in manifest["limits"].items())),
        ("numbers", f"{len(rows):,} in rows.csv, from {len(rows[TRIAL].drop_duplicates()):,} fits"),
        ("made with", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())),
        ("tracing a number", TRACE),
        ("deviations", DEVIATIONS),
        ("askwise", f"version {manifest['askwise']}"),
    ]


def _settings(profile: str) -> list[tuple[str, str]]:
    if profile not in PROFILES:
        return []
    found = PROFILES[profile].settings
    per_size = found.subsets_per_size or SUBSETS_PER_SIZE
    told = f"Q-networks on the schedule {found.schedule!r}, {per_size} subsets per size in the studies of the risk gap"
    told += ", GDFS and DIME with the batches and patience of their authors" * found.authors_training
    return [("settings", told)]


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"


def _fitting_times(timings: pd.DataFrame) -> Table:
    """Mean seconds of a fit, by method and data; a fit that several suites share counts once."""
    fits = timings[timings["fit_seconds"] > 0].groupby(TRIAL)["fit_seconds"].max()
    means = fits.groupby(["method", "data"]).mean().unstack("data")
    names = ordered_data(means.columns)
    ordered = means.assign(total=means.sum(axis=1)).sort_values("total")
    body = [
        (Entry(method_name(str(method))), *(Entry("-" if pd.isna(row[name]) else f"{row[name]:.2g}") for name in names))
        for method, row in ordered.iterrows()
    ]
    note = "Mean seconds of one fit on one core, over seeds and prices, without evaluation."
    return Table("Time to fit", "beyond the paper", note, ("method", *map(data_name, names)), tuple(body))


def _failures(folder: Path) -> list[str]:
    """Trials that failed, with the last line of each traceback."""
    return [
        f"{d['suite']}: {d['method']} on {d['data']}, {d['prices']} prices, seed {d['seed']}: "
        f"{d['error'].strip().splitlines()[-1]}"
        for d in results(folder)
        if d["error"]
    ]


def to_markdown(page: Page) -> str:
    """The page, with links to its pictures."""
    parts = [f"# {page.title}", INTRODUCTION]
    parts += ["## The paper's claims", page.how_judged]
    if page.verdicts:
        head = ("claim", "where", "verdict", "number behind it", "by the paper's figures")
        lines = [(v.claim, v.where, f"**{v.verdict}**", v.number, v.printed or "-") for v in page.verdicts]
        parts += [_grid(head, lines)]
    if page.unjudged:
        parts += [f"Not measured here: {'; '.join(page.unjudged)}."]
    for table in page.tables:
        body = [[_entry_in_markdown(entry) for entry in line] for line in table.body]
        parts += [f"## {table.title} ({table.label})", table.note, _grid(table.head, body)]
    for picture in page.pictures:
        parts += [f"## {picture.title} ({picture.label})", picture.note]
        parts += [f"![{picture.title}]({FIGURES}/{picture.name}.svg)"]
    if page.missing or page.failures:
        notes = [*(f"- failed: {line}" for line in page.failures), *(f"- not run: {line}" for line in page.missing)]
        parts += ["## Not here", "\n".join(notes)]
    parts += ["## How this was made", "\n".join(f"- **{what}**: {text}" for what, text in page.about)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry_in_markdown(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    spread = f" ({entry.spread})" if entry.spread else ""
    return f"{text}{spread}{f' [{entry.paper}]' if entry.paper else ''}"


def _grid(head: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(str(entry).replace('|', chr(92) + '|') for entry in line)} |" for line in lines)
