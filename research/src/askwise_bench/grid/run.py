"""The grid: every trial that the chosen suites ask for, run in parallel, resumable at any moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from askwise.errors import AskwiseError, InvalidInput
from askwise.scale.engines import check_engine, run_tasks
from askwise_bench.grid.images import IMAGES
from askwise_bench.grid.kept import cells_kept
from askwise_bench.grid.methods import METHODS, check_methods, fit_method
from askwise_bench.grid.store import collect, open_folder, results
from askwise_bench.grid.suites import SUITES, Suite
from askwise_bench.grid.tasks import OURS, PAPERS, Limits, Settings, check_data, make_task
from askwise_bench.grid.trials import Study, Trial, read_result, work


@dataclass(frozen=True)
class Profile:
    """How much is run: `quick` saves on data and seeds, and on the training of images, never on that of tables.

    `limits` are those of tables, `image_limits` those of images by data set; `own_tables` is how many of a suite's own
    tables are used, in their order; `settings` are ours or the paper's.
    """

    data: tuple[str, ...]
    n_seeds: int
    limits: Limits
    image_limits: Mapping[str, Limits]
    own_tables: int
    settings: Settings = OURS

    def limits_of(self, data: str) -> Limits:
        return self.image_limits.get(data, self.limits)


PAPERS_TABLES = ("wine", "heart", "cirrhosis", "yeast", "diabetes130")
MOST_IMAGES = {"mnist": Limits(10_000, 1000), "cifar10": Limits(10_000, 1000), "imagenette": Limits(3000, 2000)}
PROFILES = {
    "quick": Profile(("wine",), 1, Limits(2000, 500), MOST_IMAGES, own_tables=1),
    "paper": Profile(PAPERS_TABLES, 5, Limits(10_000, 2000), {}, own_tables=9, settings=PAPERS),
}


@dataclass(frozen=True)
class Progress:
    """One more trial is done: how many of how many, which one, and its errors by suite."""

    done: int
    total: int
    trial: Trial
    errors: Mapping[str, str]


@dataclass(frozen=True)
class Grid:
    """What to run: suites by name (``all`` is every one), under a profile.

    `seeds`, `methods` and `data` replace those of profile and suites; with `all_rows` large tables are not sampled.
    What the folder `kept` has rows of is not run again.
    """

    suites: Sequence[str]
    profile: str = "quick"
    seeds: int | None = None
    methods: Sequence[str] | None = None
    data: Sequence[str] | None = None
    all_rows: bool = False
    kept: Path | None = None

    def __post_init__(self) -> None:
        for name in self.suites:
            if name not in SUITES and name != "all":
                raise InvalidInput(f"There is no suite {name!r}. The suites are: {', '.join(SUITES)}, or all.")
        if self.profile not in PROFILES:
            raise InvalidInput(f"profile must be one of {tuple(PROFILES)}; got {self.profile!r}.")
        check_whole("seeds", self.seeds)
        check_methods(list(self.methods or []))
        for name in self.data or []:
            check_data(name)

    @property
    def chosen(self) -> dict[str, Suite]:
        """The suites by name."""
        return {name: SUITES[name] for name in (SUITES if "all" in self.suites else self.suites)}

    @property
    def scale(self) -> Profile:
        """The profile, without its limits where all rows are used."""
        found = PROFILES[self.profile]
        return replace(found, limits=Limits(None, None), image_limits={}) if self.all_rows else found

    def trials(self) -> dict[Trial, dict[str, Study]]:
        """The studies of each trial by suite."""
        there = set() if self.kept is None else cells_kept(self.kept, self.profile)
        trials: dict[Trial, dict[str, Study]] = {}
        for name, suite in self.chosen.items():
            methods = [method for method in suite.chosen(self.methods) if METHODS[method].installed]
            for table, method in product(self._tables(suite), methods):
                for seed in range(self.seeds or self.scale.n_seeds):
                    if (table, method, suite.prices, seed, name) not in there:
                        trials.setdefault(Trial(table, method, suite.prices, seed), {})[name] = suite.study
        return dict(sorted(trials.items()))

    def _tables(self, suite: Suite) -> Sequence[str]:
        if suite.data is None:
            return [table for table in self.data or self.scale.data if table not in (*suite.without, *IMAGES)]
        if self.data:
            return [table for table in suite.data if table in self.data]
        return suite.data[: self.scale.own_tables]

    def not_installed(self) -> list[str]:
        """Methods that are skipped for the lack of an optional package, a sentence each."""
        wanted = {name for suite in self.chosen.values() for name in suite.chosen(self.methods)}
        return [
            f"{name} is skipped, because its package {METHODS[name].package} is not installed."
            for name in sorted(wanted)
            if not METHODS[name].installed
        ]

    def left_out(self) -> list[str]:
        """Methods and data that were asked for by name but are not part of a suite, a sentence each."""
        found = []
        for name, suite in self.chosen.items():
            lacking = [method for method in self.methods or [] if method not in suite.chosen([method])]
            if lacking:
                found.append(f"{name} takes the methods {', '.join(suite.methods)}; not {', '.join(lacking)}.")
            lacking = [table for table in self.data or [] if table not in self._tables(suite)]
            if lacking:
                takes = f"takes the data {', '.join(suite.data)}; not" if suite.data else "does not take the data"
                found.append(f"{name} {takes} {', '.join(lacking)}.")
        return found

    def __str__(self) -> str:
        """The command line that runs the same."""
        options = {
            "seeds": self.seeds,
            "methods": None if self.methods is None else ",".join(self.methods),
            "data": None if self.data is None else ",".join(self.data),
            "profile": self.profile,
            "rows": "all" if self.all_rows else None,
            "kept": self.kept,
        }
        given = [f"--{name} {value}" for name, value in options.items() if value is not None]
        return " ".join(["askwise bench", *self.suites, *given])


def check_whole(name: str, number: int | None) -> None:
    """Refuse what is not a count."""
    if number is not None and (not isinstance(number, int) or number < 1):
        raise InvalidInput(f"{name} must be a whole number of at least 1; got {number!r}.")


def run(
    suites: Sequence[str],
    out: Path | str,
    *,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    **choice: Any,
) -> Iterator[Progress]:
    """Run what has no result yet; yields after each trial, and writes ``rows.csv`` at the end.

    `engine` and `address` are those of `askwise.scale.acquire_parquet`: the workers of a Dask cluster must see `out`.
    `choice` are the other fields of `Grid`. The arguments are checked at once, not when the first trial is awaited.
    """
    grid, out = Grid(list(dict.fromkeys(suites)), **choice), Path(out)
    check_whole("jobs", jobs)
    check_engine(engine, address)
    trials = grid.trials()
    if not trials:
        why = [
            *grid.not_installed(),
            *grid.left_out(),
            *([] if grid.kept is None else [f"{grid.kept} may have it all."]),
        ]
        raise InvalidInput(f"Nothing to run. {' '.join(why)}")
    open_folder(out, grid.profile, asdict(grid.scale.limits), str(grid))
    # Foreign files are reported now, not when the last trial has ended.
    results(out, {trial.file(out, name) for trial, studies in trials.items() for name in studies})
    return _run(trials, out.absolute(), grid.scale, jobs, engine, address)


def _run(
    trials: Mapping[Trial, Mapping[str, Study]],
    out: Path,
    profile: Profile,
    jobs: int,
    engine: str,
    address: str | None,
) -> Iterator[Progress]:
    waiting = {trial: studies for trial, studies in trials.items() if _pending(trial, studies, out)}
    n_done = len(trials) - len(waiting)
    given = [(trial, list(studies), out, profile) for trial, studies in waiting.items()]
    try:
        for trial, errors in _finished(given, jobs, engine, address):
            n_done += 1
            yield Progress(n_done, len(trials), trial, {name: error for name, error in errors.items() if error})
    except TerminatedWorkerError:
        raise AskwiseError(
            "A worker process was killed, most likely because memory ran out. Finished trials are kept; run the same "
            "command again with fewer --jobs."
        ) from None
    finally:
        collect(out)


def _finished(
    given: Sequence[tuple[Any, ...]], jobs: int, engine: str, address: str | None
) -> Iterator[tuple[Trial, dict[str, str | None]]]:
    """Trials as they are finished, in any order."""
    if engine == "dask" and given:
        return run_tasks(_work, given, engine, jobs, address)
    pool = Parallel(n_jobs=max(1, min(jobs, len(given))), return_as="generator_unordered")
    found: Iterator[tuple[Trial, dict[str, str | None]]] = pool(delayed(_work)(*each) for each in given)
    return found


def _pending(trial: Trial, suites: Iterable[str], out: Path) -> list[str]:
    """Suites without a result; one that failed is tried again."""
    found = {name: read_result(trial.file(out, name)) for name in suites}
    return [name for name, known in found.items() if known is None or known["error"]]


def _work(trial: Trial, suites: Sequence[str], out: Path, profile: Profile) -> tuple[Trial, dict[str, str | None]]:
    suites = _pending(trial, suites, out)
    if not suites:  # another run has finished it meanwhile
        return trial, {}

    def fit(trial: Trial) -> tuple[Any, Any]:
        task = make_task(trial.data, trial.prices, trial.seed, profile.limits_of(trial.data), profile.settings)
        return task, fit_method(trial.method, task)

    # Trials run in parallel, so each uses one core only; the numbers do not depend on how many there are.
    with threadpool_limits(1), parallel_config(backend="sequential"):
        return trial, work(trial, {name: SUITES[name].study for name in suites}, out, fit)
