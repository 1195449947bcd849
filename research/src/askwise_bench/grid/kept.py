"""Rows that are kept: one compact Parquet file per study, a cell at a time, each with what made it.

A cell is a data set, method, prices, seed and study. It has one set of values, of one commit; cells of several commits
stand side by side. Beside its numbers every row has

- ``commit``: that it was computed at;
- ``fingerprint``: of the code behind it (see `fingerprints`); it fits as long as that code has not changed;
- ``made``: profile, limits and versions, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from askwise.errors import InvalidInput
from askwise_bench.grid import fingerprints
from askwise_bench.grid.store import COLUMNS, TIMING_COLUMNS, TRIAL
from askwise_bench.grid.trials import PARAMETERS, WORDS

PROVENANCE = ["commit", "fingerprint", "made"]
CELL = [*TRIAL, "study"]
WORD_PARAMETERS = [name for name in PARAMETERS if name in WORDS]
TIMES = "timings"
"""The file of the times of fits and studies; its rows are by suite."""


def is_kept(folder: Path) -> bool:
    """Whether a folder holds kept rows."""
    return any(Path(folder).glob("*.parquet"))


def read_kept(folder: Path) -> pd.DataFrame:
    """All rows, with the columns of ``rows.csv`` and where they are from."""
    parts = [
        _read(path).assign(study=path.stem) for path in sorted(Path(folder).glob("*.parquet")) if path.stem != TIMES
    ]
    if not parts:
        raise InvalidInput(f"{folder} must hold a Parquet file of each study; it has none. See keep_rows.")
    rows = pd.concat(parts, ignore_index=True).reindex(columns=[*COLUMNS, *PROVENANCE])
    words = {name: rows[name].astype(object).where(rows[name].notna(), "").astype(str) for name in WORD_PARAMETERS}
    return rows.assign(**words)  # as in rows.csv


def read_times(folder: Path) -> pd.DataFrame:
    """The seconds of each fit and study; without rows where none were kept."""
    path = Path(folder) / f"{TIMES}.parquet"
    columns = [*TIMING_COLUMNS, *PROVENANCE]
    return _read(path).reindex(columns=columns) if path.exists() else pd.DataFrame(columns=columns)


def cells_kept(folder: Path, profile: str) -> set[tuple[Any, ...]]:
    """(data, method, prices, seed, suite) of the cells whose rows are kept and come from a run under `profile`."""
    if not is_kept(folder):
        raise InvalidInput(f"--kept must be a folder of kept rows, such as research/results; {folder} has none.")
    times = read_times(folder)
    under = times["made"].map({made: json.loads(made)["profile"] for made in set(times["made"])})
    return set(times.loc[under == profile, [*TRIAL, "suite"]].itertuples(index=False, name=None))


def write_kept(folder: Path, name: str, table: pd.DataFrame) -> None:
    """Write the file of a study, or of the times, at once or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = table.drop(columns="study", errors="ignore").astype({"seed": int})
    whole = whole.drop(columns=[each for each in WORD_PARAMETERS if each in whole and (whole[each] == "").all()])
    whole = whole.dropna(axis=1, how="all")
    order = [name for name in (*TRIAL, "suite") if name in whole]
    words = {column: "category" for column in whole if whole[column].dtype.kind not in "iuf"}
    unfinished = folder / f".{name}.parquet"
    whole = whole.sort_values(order, kind="stable", ignore_index=True).astype(words)
    whole.to_parquet(unfinished, index=False, compression="zstd")
    unfinished.replace(folder / f"{name}.parquet")


def _read(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Take it from the repository again.") from None
    lacking = [name for name in (*TRIAL, *PROVENANCE) if name not in table]
    if lacking:
        raise InvalidInput(f"{path} must have the columns {', '.join(lacking)}. Write it with askwise_bench.keep_rows.")
    words = {name: str for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)}
    return table.astype(words)


def fits(cells: pd.DataFrame) -> pd.Series:
    """Whether the fingerprint of each row is that of the code that is running."""
    known = cells[["method", "study", "fingerprint"]].drop_duplicates()
    running = fingerprints.running()
    fresh = {key: running.fingerprint(key[0], key[1]) == key[2] for key in known.itertuples(index=False, name=None)}
    keys = zip(cells["method"], cells["study"], cells["fingerprint"], strict=True)
    return pd.Series([fresh[key] for key in keys], index=cells.index, dtype=bool)


def about(manifest: Mapping[str, Any]) -> str:
    """What made a run, as its rows keep it."""
    return json.dumps({name: manifest[name] for name in ("askwise", "profile", "limits", "versions")}, sort_keys=True)


def stale_list(rows: pd.DataFrame) -> list[str]:
    """What was computed by code that has changed since, a sentence per study and method."""
    old = rows[~fits(rows)]
    told = []
    for (study, method), part in old.groupby(["study", "method"], sort=True, observed=True):
        cells = part[CELL].drop_duplicates()
        by_data = ", ".join(f"{data} {n}" for data, n in cells["data"].value_counts().sort_index().items())
        told.append(f"{study}, {method}: {by_data} (commit {', '.join(sorted(set(part['commit'])))})")
    return told
