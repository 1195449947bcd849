"""The grid: every cell that the chosen suites ask for, worked off in parallel, resumable at any moment."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

import askwise
from askwise.bench.cells import CELLS, Cell, Study, read, work, write_whole
from askwise.bench.methods import check_methods, fit_method
from askwise.bench.suites import SUITES, Suite
from askwise.bench.tasks import Limits, known_data, make_task
from askwise.errors import AskwiseError, InvalidInput

COLUMNS = ("data", "method", "prices", "seed", "budget", "metric", "value")
FORMAT = 1
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "pytorch-tabnet")


@dataclass(frozen=True)
class Profile:
    """How much is run: `quick` saves on data and seeds, never on training.

    `own_tables` is how many of a suite's own tables are taken, the first ones first.
    """

    data: tuple[str, ...]
    n_seeds: int
    limits: Limits
    own_tables: int


PROFILES = {
    "quick": Profile(("wine",), 1, Limits(2000, 500), own_tables=1),
    "paper": Profile(("wine", "heart", "cirrhosis", "yeast", "diabetes130"), 5, Limits(10_000, 2_000), own_tables=9),
}


@dataclass(frozen=True)
class Progress:
    """One more cell is done: how many of how many, which, and what failed in it by study."""

    done: int
    total: int
    cell: Cell
    errors: Mapping[str, str]


def plan(
    suites: Sequence[str],
    profile: Profile,
    seeds: int | None = None,
    methods: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
) -> dict[Cell, dict[str, Study]]:
    """The studies of each cell; `seeds`, `methods` and `data` in place of those of the profile and the suites."""
    check_methods(list(methods or []))
    for name in data or []:
        if name not in known_data():
            raise InvalidInput(f"There is no data set {name!r}. The data sets are: {', '.join(known_data())}.")
    cells: dict[Cell, dict[str, Study]] = {}
    for name in suites:
        suite = SUITES[name]
        for cell in _cells(suite, profile, seeds, methods, data):
            cells.setdefault(cell, {})[name] = suite.study
    return dict(sorted(cells.items()))


def _cells(
    suite: Suite, profile: Profile, seeds: int | None, methods: Sequence[str] | None, data: Sequence[str] | None
) -> Iterator[Cell]:
    tables: Sequence[str]
    if suite.data is None:
        tables = [table for table in data or profile.data if table not in suite.without]
    else:
        tables = [table for table in suite.data if table in data] if data else suite.data[: profile.own_tables]
    for table in tables:
        for method in suite.methods if methods is None else [name for name in methods if name in suite.methods]:
            for seed in range(profile.n_seeds if seeds is None else seeds):
                yield Cell(table, method, suite.prices, seed)


def left_out(suites: Sequence[str], methods: Sequence[str] | None, data: Sequence[str] | None) -> list[str]:
    """What was asked for by name and a suite does not take, a sentence each."""
    found = []
    for name in suites:
        suite = SUITES[name]
        lacking = [method for method in methods or [] if method not in suite.methods]
        if lacking:
            found.append(f"{name} takes the methods {', '.join(suite.methods)}; not {', '.join(lacking)}.")
        lacking = [table for table in data or [] if table in suite.without or table not in (suite.data or data or [])]
        if lacking:
            takes = f"takes the data {', '.join(suite.data)}; not" if suite.data else "does not take the data"
            found.append(f"{name} {takes} {', '.join(lacking)}.")
    return found


def check_suites(names: Iterable[str]) -> list[str]:
    """Suites by name; ``all`` is every one."""
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in SUITES and name != "all":
            raise InvalidInput(f"There is no suite {name!r}. The suites are: {', '.join(SUITES)}, or all.")
    return list(SUITES) if "all" in chosen else chosen


def run(
    suites: Sequence[str],
    out: Path,
    *,
    profile: str = "quick",
    seeds: int | None = None,
    methods: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
    jobs: int = 1,
) -> Iterator[Progress]:
    """Work off what is not there yet; yields after each cell, and writes ``rows.csv`` at the end."""
    chosen = PROFILES.get(profile)
    if chosen is None:
        raise InvalidInput(f"profile must be one of {tuple(PROFILES)}; got {profile!r}.")
    cells = plan(check_suites(suites), chosen, seeds, methods, data)
    if not cells:
        raise InvalidInput(f"Nothing to run. {' '.join(left_out(check_suites(suites), methods, data))}")
    open_folder(out, profile, command(suites, profile, seeds, methods, data))
    waiting = {cell: pending for cell, studies in cells.items() if (pending := _pending(cell, studies, out))}
    n_done = len(cells) - len(waiting)
    jobs_to_do = (delayed(_work)(cell, list(studies), out, asdict(chosen.limits)) for cell, studies in waiting.items())
    for cell, errors in Parallel(n_jobs=jobs, return_as="generator_unordered")(jobs_to_do):
        n_done += 1
        yield Progress(n_done, len(cells), cell, {name: error for name, error in errors.items() if error})
    collect(out)


def _pending(cell: Cell, studies: Mapping[str, Study], out: Path) -> dict[str, Study]:
    """Studies without a result; one that failed is tried again."""
    found = {name: read(cell.file(out, name)) for name in studies}
    return {name: study for name, study in studies.items() if (known := found[name]) is None or known["error"]}


def _work(cell: Cell, studies: Sequence[str], out: Path, limits: dict[str, int]) -> tuple[Cell, dict[str, str | None]]:
    def fit(cell: Cell) -> tuple[Any, Any]:
        task = make_task(cell.data, cell.prices, cell.seed, Limits(**limits))
        return task, fit_method(cell.method, task)

    # Cells run side by side, so that each keeps to one core; the numbers do not depend on how many there are.
    with threadpool_limits(1), parallel_config(backend="sequential"):
        return cell, work(cell, {name: SUITES[name].study for name in studies}, out, fit)


def command(
    suites: Sequence[str],
    profile: str,
    seeds: int | None = None,
    methods: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
) -> str:
    """What a person types to run the same."""
    options = {
        "seeds": None if seeds is None else str(seeds),
        "methods": None if methods is None else ",".join(methods),
        "data": None if data is None else ",".join(data),
        "profile": profile,
    }
    given = [f"--{name} {value}" for name, value in options.items() if value is not None]
    return " ".join(["askwise bench", *suites, *given])


def open_folder(out: Path, profile: str, told: str) -> None:
    """Make the folder, or see that what is in it was made by the same parameters; and note the command there."""
    manifest = out / "manifest.json"
    ours = {
        "format": FORMAT,
        "askwise": askwise.__version__,
        "profile": profile,
        "limits": asdict(PROFILES[profile].limits),
    }
    try:
        (out / CELLS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AskwiseError(f"The folder {out} cannot be made: {error.strerror}. Choose another with --out.") from None
    found = read(manifest)
    if found is None:
        if any((out / CELLS).iterdir()):
            raise InvalidInput(f"{out} holds results but no readable manifest.json; choose another folder with --out.")
        found = {**ours, "versions": versions(), "commands": []}
    differs = [name for name, value in ours.items() if found.get(name) != value]
    if differs:
        name = differs[0]
        raise InvalidInput(
            f"{out} holds results made with {name} {found.get(name)!r}, not {ours[name]!r}, and these are not to be "
            "mixed. Choose another folder with --out, run with the same settings, or delete this one."
        )
    if told not in found["commands"]:
        write_whole(manifest, json.dumps({**found, "commands": [*found["commands"], told]}, indent=1))


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def results(out: Path) -> list[dict[str, Any]]:
    """Every finished result of a folder, in the order of their names."""
    documents = (read(path) for path in sorted((out / CELLS).glob("*.json")))
    return [document for document in documents if document is not None]


def collect(out: Path) -> None:
    """Write ``rows.csv``, a tidy row per number, and ``timings.csv``, from the finished cells."""
    documents = results(out)
    rows = [
        [d["data"], d["method"], d["prices"], d["seed"], "" if budget is None else repr(budget), metric, repr(value)]
        for d in documents
        for budget, metric, value in d["rows"]
    ]
    timings = [
        [d["data"], d["method"], d["prices"], d["seed"], d["study"], d["seconds"]["fit"], d["seconds"]["study"]]
        for d in documents
    ]
    write_whole(out / "rows.csv", _csv(COLUMNS, rows))
    write_whole(out / "timings.csv", _csv((*COLUMNS[:4], "study", "fit_seconds", "study_seconds"), timings))


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
