"""The grid: every cell that the chosen suites ask for, worked off in parallel, resumable at any moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from askwise.bench.grid.methods import check_methods, fit_method
from askwise.bench.grid.store import collect, open_folder, results
from askwise.bench.grid.suites import SUITES, Suite
from askwise.bench.grid.tasks import Limits, known_data, make_task
from askwise.bench.grid.trials import Cell, Study, read_result, work
from askwise.errors import AskwiseError, InvalidInput


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
    out: Path | str,
    *,
    profile: str = "quick",
    seeds: int | None = None,
    methods: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
    jobs: int = 1,
) -> Iterator[Progress]:
    """Work off what is not there yet; yields after each cell, and writes ``rows.csv`` at the end.

    What is asked for is checked at once, before the first cell is waited for.
    """
    out = Path(out)
    chosen = PROFILES.get(profile)
    if chosen is None:
        raise InvalidInput(f"profile must be one of {tuple(PROFILES)}; got {profile!r}.")
    for name, number in {"seeds": seeds, "jobs": jobs}.items():
        if number is not None and (not isinstance(number, int) or number < 1):
            raise InvalidInput(f"{name} must be a whole number of at least 1; got {number!r}.")
    cells = plan(check_suites(suites), chosen, seeds, methods, data)
    if not cells:
        raise InvalidInput(f"Nothing to run. {' '.join(left_out(check_suites(suites), methods, data))}")
    open_folder(out, profile, asdict(chosen.limits), command(suites, profile, seeds, methods, data))
    results(out, {cell.file(out, name) for cell, studies in cells.items() for name in studies})  # now, not at the end
    return _run(cells, out, chosen.limits, jobs)


def _run(cells: Mapping[Cell, Mapping[str, Study]], out: Path, limits: Limits, jobs: int) -> Iterator[Progress]:
    waiting = {cell: studies for cell, studies in cells.items() if _pending(cell, studies, out)}
    n_done = len(cells) - len(waiting)
    work_to_do = (delayed(_work)(cell, list(studies), out, asdict(limits)) for cell, studies in waiting.items())
    try:
        pool = Parallel(n_jobs=max(1, min(jobs, len(waiting))), return_as="generator_unordered")
        for cell, errors in pool(work_to_do):
            n_done += 1
            yield Progress(n_done, len(cells), cell, {name: error for name, error in errors.items() if error})
    except TerminatedWorkerError:
        raise AskwiseError(
            "A process at work was ended from outside, most likely for want of memory. What is finished is kept; run "
            "the same command again, with fewer --jobs."
        ) from None
    finally:
        collect(out)


def _pending(cell: Cell, studies: Iterable[str], out: Path) -> list[str]:
    """Studies without a result; one that failed is tried again."""
    found = {name: read_result(cell.file(out, name)) for name in studies}
    return [name for name, known in found.items() if known is None or known["error"]]


def _work(cell: Cell, studies: Sequence[str], out: Path, limits: dict[str, int]) -> tuple[Cell, dict[str, str | None]]:
    studies = _pending(cell, studies, out)
    if not studies:  # another run has been there
        return cell, {}

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
