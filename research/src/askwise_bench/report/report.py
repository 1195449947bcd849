"""What a folder of results shows: an HTML page with everything, one page of Markdown, and its tables beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from askwise.plotting import template
from askwise_bench.grid import kept
from askwise_bench.grid.run import PROFILES
from askwise_bench.grid.store import TRIAL, bring_up_to_date, read_manifest, read_timings, results
from askwise_bench.grid.suites import SUITES
from askwise_bench.grid.trials import write_whole
from askwise_bench.paper.claims import Verdict
from askwise_bench.paper.findings import EQUAL, FAILS, HOLDS, NOT_MEASURED, UNDECIDED
from askwise_bench.paper.paper_claims import verdicts
from askwise_bench.report.figures import Picture
from askwise_bench.report.rows import data_name, method_name, ordered_data, read_rows
from askwise_bench.report.study_figures import pictures
from askwise_bench.report.study_tables import tables
from askwise_bench.report.tables import Entry, Table
from askwise_bench.studies.subsets import SUBSETS_PER_SIZE

FIGURES = "figures"
BY_VERDICT = {HOLDS: "Hold", FAILS: "Do not hold", EQUAL: "Are practically equal", UNDECIDED: "Are undecided"}
FEWEST_SEEDS = 2
"""With fewer there is no spread to judge a claim by."""

INTRODUCTION = (
    "Measured on held-out rows by the commands listed at the end; the paper's own figures are in brackets. "
    "* proposed by the paper; † reads the whole row before it chooses."
)
TRACE = (
    "an entry of a table is a mean over rows, whose columns docs/project/benchmarks-history.md explains; the "
    "methods have the names that askwise bench --list gives: Greedy CART* is greedy-cart. The calibration error sums "
    "surplus (correct predictions minus confidences, by bin) over the seeds, and divides the absolute values by the "
    "test rows"
)
HOW_JUDGED = (
    "A claim is stated as numbers that must be above 0, most of them paired differences, one per table and seed, "
    "averaged over the tables; they are shown with their 95 % t intervals. It **holds** if all of the intervals lie "
    "above 0, and **does not hold** if one lies below 0, at a level divided by the number of comparisons. It is "
    f"**{EQUAL}** if all that do not lie above 0 lie within ±1 point of accuracy or error, ±0.01 ECE or ±0.02 nats "
    "(two one-sided tests at once; epistemic uncertainty, correlations and distances to a threshold have no such "
    "band). Everything else, and whatever has fewer than three seeds or no spread at all, is **undecided**, with the "
    "bound that the data give. Seeds are random splits of the same tables and share rows, so an interval never becomes "
    "narrower than about one standard deviation of a split, however many there are (Nadeau and Bengio; the ratio of "
    "test to training rows is that of the data): where that floor is too high no number of seeds decides, and only "
    "more tables would. The verdicts are not corrected for the number of claims: one in twenty may be due to chance."
)
NOT_JUDGED = f"The claims are not judged: that needs at least {FEWEST_SEEDS} seeds, and this run has one."
STALE = (
    "‡ rests on rows computed by code that has changed since (listed below). The change may not touch the numbers: "
    "`python -m askwise_bench.check_rows` computes cells again and tells."
)
DEVIATIONS = (
    "docs/understand/paper.md numbers the differences from the paper, among them the schedule of the Q-network (10) "
    "and where a reparametrized model is kept (7). The constants of the default (method askwise) were chosen on "
    "validation rows of Wine, Heart, Cirrhosis and Yeast under other splits (15): some of them are test rows here."
)


@dataclass(frozen=True)
class Page:
    """The content of all files."""

    title: str
    about: list[tuple[str, str]]
    how_judged: str
    verdicts: list[Verdict]
    unjudged: list[str]
    tables: list[Table]
    pictures: list[Picture]
    missing: list[str]
    failures: list[str]
    stale: list[str]
    findings: str = ""


@dataclass(frozen=True)
class Measured:
    """The numbers of a folder, and how they were made."""

    rows: pd.DataFrame
    timings: pd.DataFrame
    stale: pd.Series
    how: list[tuple[str, str]]
    failures: list[str]
    findings: str = ""


def write_page(folder: Path) -> tuple[Path, Path, Path]:
    """Write ``report.html``, ``report.md`` and ``report-tables.md`` of a folder, with whatever suites were run.

    The page includes its figures; those of the Markdown files are in the folder ``figures``.
    """
    folder = Path(folder)
    page = make_page(folder)
    html = folder / "report.html"
    write_whole(
        html,
        template("bench.html", "askwise_bench").render(
            page=page, introduction=INTRODUCTION, how_judged=page.how_judged.replace("**", ""), stale=STALE
        ),
    )
    return html, *_write_markdown(page, folder, "report")


def write_docs(folder: Path, docs: Path) -> tuple[Path, Path]:
    """Write the report of a folder into the documentation: ``results.md``, ``results-tables.md`` and the figures."""
    return _write_markdown(make_page(Path(folder)), Path(docs), "results")


def _write_markdown(page: Page, into: Path, name: str) -> tuple[Path, Path]:
    for picture in page.pictures:
        write_whole(into / FIGURES / f"{picture.name}.svg", str(picture.svg))
    first, tables_file = into / f"{name}.md", into / f"{name}-tables.md"
    write_whole(first, to_markdown(page, tables_file.name))
    write_whole(tables_file, tables_to_markdown(page, first.name))
    return first, tables_file


def make_page(folder: Path) -> Page:
    """The report of a folder of kept rows, or of one of a run, also of a run that was stopped."""
    found = _kept_rows(Path(folder)) if kept.is_kept(folder) else _run(Path(folder))
    rows, timings = found.rows, found.timings
    judged = rows.groupby(["data", "prices"])["seed"].nunique().max() >= FEWEST_SEEDS
    lines = verdicts(rows, found.stale) if judged else []
    n_methods, ran = rows["method"].nunique(), _ran(rows)
    tables_run = ", ".join(map(data_name, ordered_data(rows["data"])))
    old = {method_name(name) for name in rows.loc[found.stale, "method"].unique()}
    return Page(
        f"{n_methods} method{'s' * (n_methods > 1)} on {tables_run}",
        _about(found),
        HOW_JUDGED if judged else NOT_JUDGED,
        [line for line in lines if line.verdict != NOT_MEASURED],
        [line.claim for line in lines if line.verdict == NOT_MEASURED],
        [_marked(table, old) for table in [*tables(rows), *([_fitting_times(timings)] if len(timings) else [])]],
        pictures(rows),
        [f"askwise bench {name}: {suite.title} ({suite.paper})" for name, suite in SUITES.items() if name not in ran],
        found.failures,
        kept.stale_list(rows) if found.stale.any() else [],
        found.findings,
    )


def _ran(rows: pd.DataFrame) -> set[str]:
    """The suites of which there are rows, by name; those of one study differ in their prices or their data."""
    measured = rows[["study", "prices", "data"]].drop_duplicates()
    found = set()
    for name, suite in SUITES.items():
        own = measured[(measured["study"] == suite.study.__name__) & (measured["prices"] == suite.prices)]
        if len(own) and (suite.data is None or own["data"].isin(suite.data).any()):
            found.add(name)
    return found


def _run(folder: Path) -> Measured:
    """What `askwise bench` left."""
    manifest = read_manifest(folder)
    bring_up_to_date(folder)
    rows, timings = read_rows(folder), read_timings(folder)
    how = [
        *(("command", str(told)) for told in manifest["commands"]),
        *_made(manifest),
        ("askwise", f"version {manifest['askwise']}"),
    ]
    return Measured(rows, timings, pd.Series(False, index=rows.index), how, _failures(folder))


def _kept_rows(folder: Path) -> Measured:
    """What `keep_rows` put into the repository."""
    rows, timings = read_rows(folder), kept.read_times(folder)
    cells = rows.drop_duplicates(kept.CELL)
    commits = ", ".join(f"{commit} ({count:,} cells)" for commit, count in cells["commit"].value_counts().items())
    stale = ~kept.fits(rows)
    n_stale = len(rows.loc[stale, kept.CELL].drop_duplicates())
    how = [
        ("command", "askwise report research/results; askwise_bench.keep_rows adds the rows of a run"),
        ("commits", commits),
        ("stale", f"{n_stale:,} of {len(cells):,} cells were computed by code that has changed since"),
        *(pair for made in cells["made"].unique() for pair in _made(json.loads(made))),
    ]
    findings = folder / "findings.md"
    text = findings.read_text(encoding="utf-8").strip() if findings.exists() else ""
    return Measured(rows, timings, stale, how, [], text)


def _about(found: Measured) -> list[tuple[str, str]]:
    rows, timings = found.rows, found.timings
    n_seeds = rows.groupby(["data", "prices"])["seed"].nunique()
    seeds = f"{n_seeds.min()} to {n_seeds.max()}" if n_seeds.min() < n_seeds.max() else f"{n_seeds.max()}"
    spent = timings.groupby(TRIAL)["fit_seconds"].max().sum(), timings["study_seconds"].sum()
    return [
        *found.how,
        ("time", f"{_duration(spent[0])} of fitting and {_duration(spent[1])} of evaluation, on one core"),
        ("data", ", ".join(map(data_name, ordered_data(rows["data"])))),
        ("methods", ", ".join(sorted(rows["method"].unique()))),
        ("seeds", f"{seeds}; each is a split of the rows (80 % to train, 20 % to test) and a draw of random prices"),
        ("studies", ", ".join(sorted(rows["study"].astype(str).unique()))),
        ("numbers", f"{len(rows):,}, from {len(rows[TRIAL].drop_duplicates()):,} fits"),
        ("tracing a number", TRACE),
        ("deviations", DEVIATIONS),
    ]


def _made(made: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Profile, limits and versions of a run."""
    return [
        ("profile", made["profile"]),
        *_settings(made["profile"]),
        ("rows at most", ", ".join(f"{most or 'all'} for {name}" for name, most in made["limits"].items())),
        ("made with", ", ".join(f"{name} {version}" for name, version in made["versions"].items())),
    ]


def _marked(table: Table, old: set[str]) -> Table:
    """Marks the lines of methods of which some rows are stale."""

    def marked(entry: Entry) -> Entry:
        named = entry.text.split(",")[0].split(" (")[0]
        return replace(entry, text=f"{entry.text} ‡") if named in old else entry

    return replace(table, body=tuple((marked(line[0]), *line[1:]) for line in table.body)) if old else table


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


def to_markdown(page: Page, tables_file: str) -> str:
    """One page: what was run, what was found, every claim by its verdict, and where the figures are."""
    parts = [
        "# Results",
        f"{page.title}. {INTRODUCTION} The long tables and the figures are in [{tables_file}]({tables_file}).",
    ]
    parts += ["## What was found", page.findings] if page.findings else []
    parts += ["## The paper's claims"]
    counts = [
        f"{sum(line.verdict == name for line in page.verdicts)} {said.lower()}" for name, said in BY_VERDICT.items()
    ]
    if page.verdicts:
        total = len(page.verdicts) + len(page.unjudged)
        others = f"{len(page.unjudged)} {'is' if len(page.unjudged) == 1 else 'are'} not measured"
        parts += [f"Of {total} claims: {', '.join(counts)}, and {others}."]
    parts += [page.how_judged]
    parts += [STALE] if page.stale else []
    for verdict, head in BY_VERDICT.items():
        lines = [line for line in page.verdicts if line.verdict == verdict]
        if lines:
            parts += [f"### {head}", _claims(lines)]
    if page.unjudged:
        parts += ["### Not measured", f"Not measured here: {'; '.join(page.unjudged)}."]
    links = [f"- [{picture.title}]({FIGURES}/{picture.name}.svg) ({picture.label})" for picture in page.pictures]
    parts += ["## Figures", "\n".join(links)] if links else []
    shown = ("command", "commits", "stale", "profile", "time", "numbers")
    made = [f"- **{what}**: {text}" for what, text in page.about if what in shown]
    parts += ["## How this was made", "\n".join(made)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _claims(lines: Sequence[Verdict]) -> str:
    """The claims of one verdict: the number that decides, or what is still open."""
    open_ones = lines[0].verdict == UNDECIDED
    head = ("claim", "where", "weakest number (95 % interval)", "seeds", *(["still open"] if open_ones else []))
    body = [
        (
            line.claim + " ‡" * line.stale,
            line.where,
            line.weakest,
            line.seeds or "-",
            *([line.still_open] if open_ones else []),
        )
        for line in lines
    ]
    return _grid(head, body)


def tables_to_markdown(page: Page, first_page: str) -> str:
    """Everything behind that page: all numbers of each claim, the tables, the figures, what is stale or missing."""
    parts = [
        "# Tables of the results",
        f"Generated with [{first_page}]({first_page}), which has the findings. {INTRODUCTION}",
    ]
    parts += [STALE] if page.stale else []
    if page.verdicts:
        head = ("claim", "where", "verdict", "numbers behind it, weakest first", "by the paper's figures")
        lines = [
            (v.claim + " ‡" * v.stale, v.where, f"**{v.verdict}**", v.number, v.printed or "-") for v in page.verdicts
        ]
        said = "The last column says whether the figures that the paper prints agree with its sentence."
        parts += ["## The paper's claims, all numbers", said, _grid(head, lines)]
    for table in page.tables:
        body = [[_entry_in_markdown(entry) for entry in line] for line in table.body]
        parts += [f"## {table.title} ({table.label})", table.note, _grid(table.head, body)]
    for picture in page.pictures:
        parts += [f"## {picture.title} ({picture.label})", picture.note]
        parts += [f"![{picture.title}]({FIGURES}/{picture.name}.svg)"]
    if page.missing or page.failures:
        notes = [*(f"- failed: {line}" for line in page.failures), *(f"- not run: {line}" for line in page.missing)]
        parts += ["## Not here", "\n".join(notes)]
    if page.stale:
        parts += ["## Stale rows", "\n".join(f"- {line}" for line in page.stale)]
    parts += ["## How this was made", "\n".join(f"- **{what}**: {text}" for what, text in page.about)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry_in_markdown(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text
    spread = f" ({entry.spread})" if entry.spread else ""
    return f"{text}{spread}{f' [{entry.paper}]' if entry.paper else ''}"


def _grid(head: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(str(entry).replace('|', chr(92) + '|') for entry in line)} |" for line in lines)
