"""The command `askwise acquire`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from askwise.cli.console import failures, print_json
from askwise.cli.evaluate import Folder
from askwise.cli.options import (
    BUDGET_HELP,
    AsJson,
    Opening,
    Reading,
    budget_option,
    check_budget_option,
    check_place,
    check_saved,
    with_options,
)
from askwise.errors import InvalidInput, escaped
from askwise.table.reading import check_path

CasesFile = Annotated[
    Path, typer.Argument(metavar="CASES", help="A row per case; an empty cell is unavailable. CSV, Parquet or Feather.")
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write: .csv or .parquet.")]
Budget = Annotated[Any, budget_option(f"{BUDGET_HELP} Default: as in fit.")]
Id = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="A column that names the cases; it is kept.")]
Known = Annotated[
    list[str] | None,
    typer.Option(metavar="FEATURE", help="A feature that is known from the start and costs nothing; repeatable."),
]
Steps = Annotated[bool, typer.Option("--steps", metavar="", help="A row per case and step instead of one per case.")]
NoStop = Annotated[bool, typer.Option("--no-stop", metavar="", help="Ignore the calibrated stop of the folder.")]
AtOnce = Annotated[int, typer.Option(min=1, help="Cases between two marks from which an interrupted run resumes.")]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="ENGINE",
        help="For Parquet tables larger than memory (a file, or a folder of them): local, or dask or spark for a "
        "cluster.",
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="Worker processes of --engine.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="The Dask scheduler, such as tcp://10.0.0.1:8786, or the Spark master, such as spark://10.0.0.1:7077."
    ),
]


@with_options(Opening, Reading)
def acquire(
    opening: Opening,
    reading: Reading,
    folder: Folder,
    cases: CasesFile,
    output: Output,
    budget: Budget = None,
    id_column: Id = None,
    known: Known = None,
    steps: Steps = False,
    no_stop: NoStop = False,
    at_once: AtOnce = 500,
    engine: Engine = None,
    workers: Workers = 1,
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Acquire features for many cases whose values are on file, and record what was bought and decided.

    An interrupted run resumes where it stopped if the same command is given again.
    """
    check_saved(folder)
    check_budget_option(budget)
    if check_place(output, reads=[folder, cases]).suffix not in (".csv", ".parquet"):
        raise InvalidInput(f"--output must end in .csv or .parquet; got {output}.")
    if engine is not None or address is not None:
        _check_streamed(opening, reading, output, steps)
        options = {"budget": budget, "known": known or (), "id_column": id_column}
        options |= {"engine": engine or "dask", "workers": workers, "address": address, "trusted": opening.trust or ()}
        _stream(folder, cases, output, no_stop, options, as_json)
        return
    check_path(cases)
    from askwise.cli.own_files import open_saved, read_cases
    from askwise.cli.resumable import Resumable, check_ids

    selector, desk = open_saved(folder, opening)
    frame = read_cases(cases, selector, desk, reading, keep=[id_column] if id_column else [])
    if id_column:
        check_ids(frame, id_column)
        frame = frame.set_index(id_column)
    else:
        frame = frame.set_axis(range(1, len(frame) + 1))  # the numbers that askwise explain takes
    stop = _stop(selector.stop_ is not None, budget, no_stop, folder)
    options = {"budget": budget, "known": known, "steps": steps, "stop": stop, "at_once": at_once, "id": id_column}
    run = Resumable(output, [(folder / "manifest.json").read_bytes(), cases.read_bytes()], options)
    with failures(f"Finished cases are kept in {run.parts}; the same command resumes."):
        table = run.complete(selector, frame)
    ends = table.groupby("case", sort=False).last()
    average = float(ends["spent"].mean())
    facts: dict[str, Any] = {
        "cases": len(frame),
        "resumed": run.resumed,
        "average_price": average,
        "average": {name: float(ends[name].mean()) for name in selector.prices_.resources[1:]},
        "stop": stop,
        "guaranteed": None if stop is None else int(ends["guaranteed"].sum()),
        "output": str(output),
    }
    if stop is not None and not ends["guaranteed"].all():
        void = ends["departure"][~ends["guaranteed"].astype(bool)]
        _say_void(len(frame), len(void), f" (for example: {void.iloc[0]})")
    if as_json:
        print_json(facts)
        return
    again = f" ({run.resumed:,} of them in an earlier run)" if run.resumed else ""
    besides = "".join(f", {name} {amount:.4g}" for name, amount in facts["average"].items())
    typer.echo(f"{len(frame):,} cases{again}, {desk.amount(average)}{besides} each on average: {output}")


def _say_void(n_cases: int, n_void: int, example: str = "") -> None:
    """The cases without the guarantee, on standard error: who only reads the average must know of them."""
    said = f"The guarantee of the stop does not hold for {n_void:,} of {n_cases:,} cases{example}; the columns "
    typer.echo(escaped(f"{said}guaranteed and departure say for which, and why."), err=True)


def _stop(calibrated: bool, budget: Any, no_stop: bool, folder: Path) -> str | None:
    """The calibrated stop of a folder that has one, unless it is ignored; it is valid under the budget of fit only."""
    if not calibrated or no_stop:
        return None
    if budget is not None:
        raise InvalidInput(
            f"--budget: the calibrated stop of {folder} keeps its promise under the budget of fit only. Leave out "
            "--budget, or add --no-stop to spend the budget without the promise."
        )
    return "calibrated"


def _check_streamed(opening: Opening, reading: Reading, output: Path, steps: bool) -> None:
    """Refuse the options that a run with --engine does not take."""
    if output.suffix != ".parquet":
        raise InvalidInput(f"--engine writes Parquet: --output must end in .parquet; got {output}.")
    if steps:
        raise InvalidInput("--engine writes a row per case; leave out --steps.")
    if reading != Reading():
        raise InvalidInput("--engine reads Parquet, which stores the column types; leave out the options of tables.")
    if opening != Opening(trust=opening.trust):
        raise InvalidInput("--engine loads the folder in each worker, without a key or a model file.")


def _stream(folder: Path, cases: Path, output: Path, no_stop: bool, options: dict[str, Any], as_json: bool) -> None:
    """Acquire in bounded memory, and say what was written."""
    from askwise.cli.own_files import advising_options
    from askwise.persistence.folder import read_folder
    from askwise.scale import acquire_parquet
    from askwise.stopping.calibrated_stop import GUARANTEE_VOID

    with failures("Finished parts are kept beside the output; the same command resumes."):
        has_stop = read_folder(folder, None, only=())[0]["stop"] is not None
        stop = _stop(has_stop, options["budget"], no_stop, folder)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", GUARANTEE_VOID)  # which is said below
                done = acquire_parquet(folder, cases, output, stop=stop, write="all", **options)
        except InvalidInput as error:
            raise InvalidInput(advising_options(error)) from None
    if done.n_guaranteed is not None and done.n_guaranteed < done.n_cases:
        _say_void(done.n_cases, done.n_cases - done.n_guaranteed)
    if as_json:
        facts = {"cases": done.n_cases, "parts": done.n_parts, "parts_resumed": done.n_resumed}
        print_json({**facts, "stop": stop, "guaranteed": done.n_guaranteed, "output": str(output)})
        return
    again = f" ({done.n_resumed} of {done.n_parts} parts in an earlier run)" if done.n_resumed else ""
    typer.echo(f"{done.n_cases:,} cases{again}: {output}")
