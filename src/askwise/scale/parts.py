"""The work on one row group: read its rows in parts, acquire features, write each part as a file."""

from __future__ import annotations

import os
import uuid
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput
from askwise.persistence import load
from askwise.scale.plan import Options, Plan, RowGroup, import_parquet
from askwise.stopping.calibrated_stop import GUARANTEE_VOID
from askwise.trajectory import Trajectory

WRITES = ("order", "prediction", "all")


def work(plan: Plan, group: RowGroup) -> int:
    """Write the parts of a row group that are not there yet; returns their number.

    Each part depends on its rows only, and appears complete or not at all, so that it does not matter which worker
    writes it, how often it was begun, or whether two write it at the same time.
    """
    step, numbers = plan.options.rows_per_part, range(-(-group.n_rows // plan.options.rows_per_part))
    missing = [k for k in numbers if not plan.part(group.first_part + k).exists()]
    if not missing:
        return 0
    selector = loaded(plan.selector, plan.digest, plan.options.trusted)
    file = import_parquet().ParquetFile(group.file)
    columns = columns_to_read(selector, file.schema_arrow.names, plan.options, group.file)
    with threadpool_limits(1):  # one thread for each worker
        for k, batch in enumerate(file.iter_batches(step, row_groups=[group.number], columns=columns)):
            if k in missing:
                first = group.first_row + k * step
                table = acquired(selector, batch.to_pandas(), plan.options, first)
                write_part(plan.part(group.first_part + k), arrow_table(table, selector))
    return len(missing)


@lru_cache(maxsize=1)
def loaded(folder: str, digest: str, trusted: tuple[str, ...] = ()) -> FeatureAcquirer:
    """The saved selector, read once by each worker."""
    return load(folder, trusted=trusted)


def columns_to_read(selector: FeatureAcquirer, names: list[str], options: Options, file: str) -> list[str]:
    """The columns of the selector, and that of the ids; an error if the file lacks one."""
    wanted = [str(column.label) for column in selector.schema_.columns]
    wanted += [options.id_column] if options.id_column and options.id_column not in wanted else []
    for name in wanted:
        if name not in names:
            raise InvalidInput(f"{file} has no column {name!r}. Its columns are: {', '.join(names)}.")
    return wanted


def acquired(selector: FeatureAcquirer, cases: pd.DataFrame, options: Options, first: int) -> pd.DataFrame:
    """One row per case: what was bought, at what price and, if wanted, what is said in the end."""
    index = pd.RangeIndex(first, first + len(cases))
    ids = cases[options.id_column] if options.id_column else pd.Series(index)
    rows = cases[[column.label for column in selector.schema_.columns]].set_axis(index)
    known = np.isin(selector.features_, options.known) if options.known else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", GUARANTEE_VOID)  # the result says it of each case, and the run of all
        run = selector.acquire(rows, budget=options.budget, stop=options.stop, known=known)
    return ends_of(run, ids.to_numpy(), options.write)


def ends_of(run: Trajectory, ids: np.ndarray, write: str) -> pd.DataFrame:
    """The end of each case of a run; with a calibrated stop also whether its promise holds, and if not, why not."""
    names = np.array([*run.features, ""], dtype=object)
    bought = [" > ".join(names[order[order >= 0]]) for order in run.order]
    table: dict[str, Any] = {
        "case": ids,
        "n_bought": (run.order >= 0).sum(axis=1),
        "bought": bought,
        "spent": run.costs.sum(axis=1),
        **{name: paid.sum(axis=1) for name, paid in run.further.items()},
    }
    if write != "order":
        found = run.ends
        table["prediction"] = run.classes[found.decision]
        if write == "all":  # in the order of `Trajectory.to_frame`
            table |= {"agreement": found.agreement, "decision_is_final": found.decision_is_final}
        table |= {f"proba_{label}": found.proba[:, c] for c, label in enumerate(run.classes)}
        if write == "all":
            table |= found.uncertainty.as_dict()
    if run.departures is not None:
        table |= {"guaranteed": [not why for why in run.departures], "departure": list(run.departures)}
    if run.handed_over is not None:
        table["handed_over"] = run.handed_over
    return pd.DataFrame(table)


def arrow_table(table: pd.DataFrame, selector: FeatureAcquirer) -> Any:
    """The table with types that do not depend on its rows, so that all parts have the same."""
    import pyarrow as pa

    kinds = {"case": None, "n_bought": pa.int64(), "bought": pa.string(), "departure": pa.string()}
    kinds |= dict.fromkeys(("guaranteed", "handed_over"), pa.bool_())
    kinds["prediction"] = pa.array(selector.classes_.tolist()).type
    fields = [pa.array(table[name], type=kinds.get(name, pa.float64())) for name in table.columns]
    return pa.table(dict(zip(table.columns, fields, strict=True)))


def write_part(path: Path, table: Any) -> None:
    """Write a Parquet file that is complete or absent."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        import_parquet().write_table(table, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
