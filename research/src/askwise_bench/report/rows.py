"""From the rows of a run to numbers: one quantity by budget, by trial, by method.

A *level* is the number of a budget within its trial, from 1 up: prices drawn at random differ from seed to seed and so
do the budgets in money, but level k is always k features or 5 k % of the price of everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd

from askwise.errors import InvalidInput
from askwise_bench.grid import kept
from askwise_bench.grid.methods import METHODS
from askwise_bench.grid.store import COLUMNS, REMEDY, ROWS, TRIAL, read_table
from askwise_bench.grid.trials import PARAMETERS, WORDS
from askwise_bench.paper import paper_results

End = Literal["", "min", "max"]
PERCENT_PER_LEVEL = 5
"""Of the price of everything, where prices differ."""

PRICES = {"variable": "random prices", "uniform": "equal prices", "published": "published prices"}


@dataclass(frozen=True)
class Quantity:
    """A metric of a study at given parameters, such as ``Quantity("shift", "ece", {"sigma": 0.8})``.

    A parameter may be a list of values, all of which count; one that is not given counts at every value. `end` is "min"
    or "max": only the lowest or the highest budget of each trial counts.
    """

    study: str
    metric: str
    at: Mapping[str, float | str | list[float] | list[str]] = field(default_factory=dict)
    end: End = ""

    def of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Its rows."""
        chosen = rows[(rows["metric"] == self.metric) & (rows["study"] == self.study)]
        for name, value in self.at.items() if len(chosen) else ():
            chosen = chosen[chosen[name].isin(value if isinstance(value, list) else [value])]
        if self.end:
            chosen = chosen[chosen["budget"] == chosen.groupby(TRIAL)["budget"].transform(self.end)]
        return chosen


def read_rows(folder: Path) -> pd.DataFrame:
    """The rows of a run or of a folder of kept rows, one per number.

    A number that two suites measured in the same trial counts once. Kept rows also say where they are from.
    """
    path = Path(folder) / ROWS
    if kept.is_kept(folder):
        return _checked(kept.read_kept(folder), Path(folder))
    kinds = {name: "word or nothing" if name in WORDS else "number or nothing" for name in PARAMETERS}
    rows = read_table(path, COLUMNS, {**kinds, "seed": "number", "value": "number"})
    if rows.empty:
        raise InvalidInput(f"{path} must have at least one row. Run the benchmark again into this folder.")
    return _checked(rows, path)


def _checked(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    rows = rows.drop_duplicates().reset_index(drop=True)
    if (twice := rows.duplicated([name for name in COLUMNS if name != "value"])).any():
        row = rows[twice].iloc[0]
        what = f"{row['metric']} ({row['study']}) of {row['method']} on {row['data']}"
        raise InvalidInput(f"{path} has two values for {what}. {REMEDY}")
    if not set(rows["prices"]) <= set(PRICES):
        raise InvalidInput(f"{path}: prices must be {', '.join(PRICES)}; got {sorted(set(rows['prices']))}. {REMEDY}")
    return rows.astype(dict.fromkeys(("study", "metric"), "category"))  # each table looks them up again


def settings(rows: pd.DataFrame, study: str, parameter: str) -> list[float]:
    """The values of a parameter that a study was run with, in order."""
    return sorted(rows.loc[rows["study"] == study, parameter].dropna().unique().tolist())


def curves(rows: pd.DataFrame, quantity: Quantity | str, prices: str) -> pd.DataFrame:
    """A quantity by level, one row per (data, method, seed); a plain name is a metric of the study of accuracy."""
    quantity = Quantity("accuracy", quantity) if isinstance(quantity, str) else quantity
    chosen = quantity.of(rows[(rows["prices"] == prices) & rows["budget"].notna()])
    level = chosen.groupby(["data", "method", "seed"])["budget"].rank(method="dense").astype(int)
    return chosen.assign(level=level).pivot(index=["data", "method", "seed"], columns="level", values="value")


def single(rows: pd.DataFrame, quantity: Quantity) -> pd.Series:
    """A quantity by (data, method, seed): its only value, or the mean over its budgets."""
    return quantity.of(rows).groupby(["data", "method", "seed"])["value"].mean()


def pooled_calibration_error(rows: pd.DataFrame, prices: str) -> pd.DataFrame:
    """ECE by level, one row per (data, method), with the seeds' test rows put together before they are binned."""
    rows = rows[rows["prices"] == prices]
    accuracy = Quantity("accuracy", "accuracy").of(rows)
    level = accuracy.groupby(TRIAL)["budget"].rank(method="dense").astype(int)
    surplus = Quantity("accuracy", "surplus").of(rows)
    levelled = surplus.merge(accuracy[[*TRIAL, "budget"]].assign(level=level), on=[*TRIAL, "budget"])
    pooled = levelled.groupby(["data", "method", "level", "bin"])["value"].sum().abs()
    total = pooled.groupby(["data", "method", "level"]).sum().unstack("level")
    measured = curves(rows, "accuracy", prices).groupby(["data", "method"]).mean()
    n_rows = single(rows, Quantity("accuracy", "test_rows")).groupby(["data", "method"]).sum()
    # A bin without surplus has no row of its own, so a level where all are even is 0.
    return total.reindex_like(measured).fillna(0.0).div(n_rows, axis=0).where(measured.notna())


def data_name(data: str) -> str:
    """The paper's name of a data set, or our own."""
    return {**paper_results.DATA, **paper_results.IMAGES}.get(data, data)


def ordered_data(names: Iterable[str]) -> list[str]:
    """The paper's data in its order, then the others."""
    found = set(names)
    return [*(name for name in paper_results.DATA if name in found), *sorted(found - set(paper_results.DATA))]


def method_name(method: str) -> str:
    """The paper's name of a method, or our own; † where it reads features that were not paid for."""
    name = {**paper_results.METHODS, **paper_results.IMAGE_METHODS}.get(method, method)
    return f"{name}†" if method in METHODS and METHODS[method].sees_everything else name
