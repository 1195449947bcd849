"""Compute cells of the kept rows again, drawn at random, and compare them with what is kept.

A cell is a data set, method, prices, seed and study. Numbers agree if they differ by no more than a relative 1e-6, or
absolutely by 1e-9; seconds are not compared. The exit code is 1 if a cell differs.

    python -m askwise_bench.check_rows --cells 20
    python -m askwise_bench.check_rows --cells 20 --refresh    # and renew the fingerprints of what agrees
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import parallel_config
from threadpoolctl import threadpool_limits

from askwise_bench.grid import kept
from askwise_bench.grid.fingerprints import running
from askwise_bench.grid.kept import CELL
from askwise_bench.grid.methods import METHODS, fit_method
from askwise_bench.grid.run import PROFILES
from askwise_bench.grid.store import COLUMNS
from askwise_bench.grid.suites import SUITES
from askwise_bench.grid.tasks import Limits, make_task
from askwise_bench.keep_rows import RESULTS

RELATIVE, ABSOLUTE = 1e-6, 1e-9
TIMES = ("seconds", "decision_", "fit_")
"""How the names of metrics end or begin that are times."""

NUMBER = [name for name in COLUMNS if name not in (*CELL, "value")]
"""What tells the numbers of a cell apart."""


@dataclass(frozen=True)
class Checked:
    """A cell, how many numbers were compared, and what differs; nothing if all agree."""

    cell: tuple[Any, ...]
    n_compared: int
    different: tuple[str, ...]

    def __str__(self) -> str:
        data, method, prices, seed, study = self.cell
        said = f"{study}: {method} on {data}, {prices} prices, seed {seed}"
        if not self.different:
            return f"agrees   {said} ({self.n_compared} numbers)"
        return f"DIFFERS  {said} ({len(self.different)} of {self.n_compared} numbers): {self.different[0]}"


def draw(rows: pd.DataFrame, cells: int, seed: int) -> pd.DataFrame:
    """Cells at random, each with what made it."""
    found = rows.drop_duplicates(CELL)[[*CELL, *kept.PROVENANCE]].sort_values(CELL, ignore_index=True)
    found = found[[name in METHODS and METHODS[name].installed for name in found["method"]]]
    return found.sample(min(cells, len(found)), random_state=seed)


def check(rows: pd.DataFrame, cells: pd.DataFrame) -> Iterable[Checked]:
    """Compute each cell anew; cells of one fit are done together."""
    studies = {suite.study.__name__: suite.study for suite in SUITES.values()}
    for keys, part in cells.groupby([*CELL[:4], "made"], sort=False):
        data, method, prices, made = (str(keys[at]) for at in (0, 1, 2, 4))
        seed, profile = int(str(keys[3])), json.loads(made)
        scale, limits = PROFILES[profile["profile"]], Limits(**profile["limits"])
        if limits == scale.limits:  # those of a table; images have their own
            limits = scale.limits_of(data)
        with threadpool_limits(1), parallel_config(backend="sequential"):
            task = make_task(data, prices, seed, limits, scale.settings)
            fitted = fit_method(method, task)
            for study in part["study"]:
                cell = (data, method, prices, seed, study)
                mine = pd.DataFrame([vars(row) for row in studies[study](task, fitted)])
                theirs = rows[(rows[CELL] == pd.Series(cell, index=CELL)).all(axis=1)]
                yield compared(cell, theirs, mine)


def compared(cell: tuple[Any, ...], before: pd.DataFrame, now: pd.DataFrame) -> Checked:
    """The numbers of a cell as they are kept and as they were computed."""
    old, new = (_by_number(table) for table in (before, now))
    different = [
        f"{_named(key)} is not {where}"
        for where, gone in (("recomputed", old.keys() - new.keys()), ("kept", new.keys() - old.keys()))
        for key in sorted(gone, key=str)
    ]
    both = old.keys() & new.keys()
    different += [
        f"{_named(key)} was {old[key]!r} and is {new[key]!r}"
        for key in sorted(both, key=str)
        if not np.isclose(new[key], old[key], rtol=RELATIVE, atol=ABSOLUTE)
    ]
    return Checked(cell, len(old.keys() | new.keys()), tuple(different))


def _by_number(table: pd.DataFrame) -> dict[tuple[Any, ...], float]:
    metrics = table["metric"].astype(str)
    timed = metrics.str.endswith(TIMES[0]) | metrics.str.startswith(TIMES[1:])
    found = table[~timed].reindex(columns=[*NUMBER, "value"]).astype(object)
    found = found.where(found.notna() & (found != ""), None)
    return {tuple(key): float(value) for *key, value in found.itertuples(index=False, name=None)}


def _named(key: tuple[Any, ...]) -> str:
    told = [
        f"{name} {value:g}" if not isinstance(value, str) else f"{value}"
        for name, value in zip(NUMBER, key, strict=True)
        if value is not None
    ]
    return ", ".join(told)


def refresh(folder: Path, checked: Iterable[Checked]) -> Mapping[str, int]:
    """Renew the fingerprints of the cells of a study, method and data set that was checked and agreed everywhere."""
    by_kind: dict[tuple[str, str, str], bool] = {}
    for found in checked:
        data, method, _, _, study = found.cell
        by_kind[study, method, data] = by_kind.get((study, method, data), True) and not found.different
    rows, renewed = kept.read_kept(folder), {}
    for study in sorted({study for study, _, _ in by_kind}):
        table = rows[rows["study"] == study].copy()
        agreed = [(method, data) for (at, method, data), right in by_kind.items() if at == study and right]
        chosen = pd.MultiIndex.from_frame(table[["method", "data"]]).isin(agreed)
        marks = [running().fingerprint(method, study) or "" for method in table.loc[chosen, "method"]]
        renewed[study] = int((table.loc[chosen, "fingerprint"].to_numpy() != np.array(marks, dtype=object)).sum())
        table.loc[chosen, "fingerprint"] = marks
        kept.write_kept(folder, study, table)
    return renewed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="which cells are drawn")
    parser.add_argument("--refresh", action="store_true", help="renew the fingerprints of what agrees")
    for name in ("data", "methods", "studies"):
        parser.add_argument(f"--{name}", metavar="A,B", help=f"draw among these {name} only")
    given = parser.parse_args(arguments)
    rows = kept.read_kept(given.folder)
    among = rows
    for column, wanted in (("data", given.data), ("method", given.methods), ("study", given.studies)):
        among = among[among[column].isin(wanted.split(","))] if wanted else among
    checked = []
    for found in check(rows, draw(among, given.cells, given.seed)):
        print(found, flush=True)
        checked.append(found)
    if given.refresh:
        for study, count in refresh(given.folder, checked).items():
            print(f"{study}: the fingerprints of {count:,} rows are renewed")
    return int(any(found.different for found in checked))


if __name__ == "__main__":
    raise SystemExit(main())
