"""`acquire` for Parquet tables of any size, in bounded memory, resumed where it was interrupted."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from askwise.errors import AskwiseError, AskwiseWarning, InvalidInput
from askwise.files import only_writer
from askwise.parameters import Number, Whole, check_values
from askwise.progress import track
from askwise.scale.engines import check_engine, run_tasks
from askwise.scale.parts import WRITES, columns_to_read, loaded, work
from askwise.scale.plan import Options, Plan, import_parquet, make_plan
from askwise.stopping.calibrated_stop import GUARANTEE_VOID


@dataclass(frozen=True)
class Streamed:
    """What a run did: the file written, the cases in it, and the parts, of which an earlier run finished some.

    `n_guaranteed` is the number of cases for which the promise of the calibrated stop holds; None without such a stop.
    """

    output: Path
    n_cases: int
    n_parts: int
    n_resumed: int
    n_guaranteed: int | None = None


def acquire_parquet(
    selector: str | Path,
    cases: str | Path,
    output: str | Path,
    *,
    budget: float | Mapping[str, float] | None = None,
    stop: str | None = None,
    known: Sequence[str] = (),
    write: str = "prediction",
    id_column: str | None = None,
    rows_per_part: int = 20_000,
    engine: str = "local",
    workers: int = 1,
    address: str | None = None,
    trusted: Sequence[str] = (),
    progress: bool | str = "auto",
) -> Streamed:
    """Acquire features for all cases of a Parquet table, and write one row per case in the same order.

    Finished parts are kept beside the output until it is complete. A run that was killed is resumed by the same call:
    no case is lost, none is processed twice. A second run that would write to the same output meanwhile is refused.
    The result does not depend on engine and workers, bit for bit.

    Parameters
    ----------
    selector
        Folder that `save` of a fitted selector wrote. All workers must see it, the cases and the output.
    cases
        A Parquet file, or a folder of them. Row groups are shared out among workers, so there should be several for
        each; NaN or null = unavailable.
    output
        The Parquet file to write.
    budget, stop
        As in `acquire`; `stop` is None or ``"calibrated"``. With it the columns `guaranteed` and `departure` say for
        which cases its promise holds, and why not for others.
    known
        Names of the features that are known from the start.
    write
        ``"order"``: what was bought and at what price, without any prediction, which is fastest; ``"prediction"``: with
        the final prediction and its probabilities; ``"all"``: with agreement and uncertainties, too.
    id_column
        Column that names the cases; None = the number of the row.
    rows_per_part
        Rows in memory at a time, for each worker.
    engine
        ``"local"``, ``"dask"`` for `dask.distributed`, or ``"spark"`` (`mapInPandas`).
    workers
        Number of local worker processes; not used with `address`.
    address
        Address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``, or of a Spark master, such as
        ``"spark://10.0.0.1:7077"``; None starts local workers (with Spark: unless the process has a session).
    trusted
        Full names of classes that the folder may hold, as in `askwise.load`.
    progress
        Whether to show a progress bar; ``"auto"``: on a terminal.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from askwise.scale import acquire_parquet
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     _ = selector.save(folder / "selector")
    ...     X[:20].to_parquet(folder / "cases.parquet")
    ...     files = folder / "selector", folder / "cases.parquet", folder / "out.parquet"
    ...     done = acquire_parquet(*files, budget=2, progress=False)
    ...     print(done.n_cases, len(pd.read_parquet(files[2])))
    20 20
    """
    limits = {"rows_per_part": Whole(1), "workers": Whole(1)}
    check_values("acquire_parquet", {"rows_per_part": rows_per_part, "workers": workers}, limits)
    check_engine(engine, address)
    if write not in WRITES:
        raise InvalidInput(f"write must be one of {WRITES}; got {write!r}.")
    for most in budget.values() if isinstance(budget, Mapping) else [] if budget is None else [budget]:
        check_values("acquire_parquet", {"budget": most}, {"budget": Number()})
    if stop not in (None, "calibrated"):
        raise InvalidInput(f'stop must be None or "calibrated"; got {stop!r}.')
    target = Path(output).absolute()
    options = Options(
        dict(budget) if isinstance(budget, Mapping) else budget,
        stop,
        tuple(known),
        write,
        id_column,
        rows_per_part,
        tuple(trusted),
    )
    parts = target.with_name(f".{target.name}.parts")
    plan = make_plan(Path(selector).absolute(), Path(cases).absolute(), parts, options)
    _check_selector(plan)
    with only_writer(target):
        n_resumed = plan.prepare()
        results = run_tasks(work, [(plan, group) for group in plan.groups], engine, workers, address)
        for _ in track(results, "acquiring", len(plan.groups), progress):
            pass
        n_guaranteed = _join(plan, target)
    n_cases = sum(group.n_rows for group in plan.groups)
    if stop is None:
        return Streamed(target, n_cases, plan.n_parts, n_resumed)
    if n_guaranteed < n_cases:
        lost = n_cases - n_guaranteed
        warnings.warn(
            f"{GUARANTEE_VOID} {lost} of {n_cases} cases: see the column departure.", AskwiseWarning, stacklevel=2
        )
    return Streamed(target, n_cases, plan.n_parts, n_resumed, n_guaranteed)


def _check_selector(plan: Plan) -> None:
    """Errors about columns and features are raised before the first part."""
    selector, file = loaded(plan.selector, plan.digest, plan.options.trusted), plan.groups[0].file
    columns_to_read(selector, import_parquet().ParquetFile(file).schema_arrow.names, plan.options, file)
    selector.prices_.limits(plan.options.budget, 1)
    for feature in plan.options.known:
        selector.schema_.position(feature, "known")


def _join(plan: Plan, target: Path) -> int:
    """Write all parts as one file, one after the other, and remove them; returns the number of `guaranteed` cases."""
    n_guaranteed = 0
    arrow, unfinished = import_parquet(), target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with arrow.ParquetWriter(unfinished, arrow.read_schema(plan.part(0))) as writer:
            for number in range(plan.n_parts):
                table = arrow.read_table(plan.part(number))
                writer.write_table(table)
                if "guaranteed" in table.column_names:
                    n_guaranteed += sum(table.column("guaranteed").to_pylist())
        os.replace(unfinished, target)
    except OSError as error:
        raise AskwiseError(f"{target} cannot be written: {error}. Choose another place.") from None
    finally:
        unfinished.unlink(missing_ok=True)
    plan.remove()
    return n_guaranteed
