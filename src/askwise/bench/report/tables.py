"""From rows to numbers: means, both spreads and ranks; and the tables of accuracy, each figure beside the paper's.

A *level* is the number of a budget within its cell, from 1 up: prices drawn at random differ from seed to seed and so
do the budgets in money, but level k is always k features or 5 k % of the price of everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from askwise.bench.grid.methods import METHODS
from askwise.bench.grid.store import COLUMNS, ROWS
from askwise.bench.paper import paper_results
from askwise.errors import InvalidInput

CELL = ["data", "method", "prices", "seed"]
PERCENT_PER_LEVEL = 5
"""Of the price of everything, where prices differ."""

TITLES = {
    "variable": ("Accuracy under random prices", "Table 1"),
    "uniform": ("Accuracy under equal prices", "Appendix E"),
    "published": ("Accuracy under published prices", "beyond the paper"),
}
PRICES = {"variable": "random prices", "uniform": "equal prices", "published": "published prices"}
MADE_BY = "It is made by askwise bench; run that again, or delete the file to have it made from the finished cells."
SPREADS = (
    "Mean accuracy over the budgets and seeds, in percent (± over budgets / ± over seeds: standard deviations, of the "
    "curve averaged over the seeds and of the seeds' means)"
)


@dataclass(frozen=True)
class Entry:
    """A cell of a table: the measured figure, its spreads, and in brackets what the paper prints."""

    text: str
    spread: str = ""
    paper: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table that can be shown; the first cell of a row names it."""

    title: str
    label: str
    note: str
    head: tuple[str, ...]
    body: tuple[tuple[Entry, ...], ...]


def read_rows(folder: Path) -> pd.DataFrame:
    """The rows of a folder, one per number; a number that two suites measured of one cell is there once."""
    path = Path(folder) / ROWS
    rows = read_table(path, COLUMNS, {"seed": "number", "budget": "number or nothing", "value": "number"})
    if rows.empty:
        raise InvalidInput(f"{path} must have at least one row. Run the benchmark again into this folder.")
    rows = rows.drop_duplicates().reset_index(drop=True)
    if (twice := rows.duplicated([*CELL, "budget", "metric"])).any():
        row = rows[twice].iloc[0]
        raise InvalidInput(f"{path} has two values for {row['metric']} of {row['method']} on {row['data']}. {MADE_BY}")
    if not set(rows["prices"]) <= set(PRICES):
        raise InvalidInput(f"{path}: prices must be {', '.join(PRICES)}; got {sorted(set(rows['prices']))}. {MADE_BY}")
    return rows.astype({"metric": "category"})  # it is looked up by name again and again


def read_table(path: Path, columns: Sequence[str], numbers: Mapping[str, str]) -> pd.DataFrame:
    """A table that `askwise bench` wrote, with all of `columns`; those in `numbers` hold finite numbers."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Give the folder that a benchmark was run into.") from None
    if list(table.columns) != list(columns):
        raise InvalidInput(
            f"{path} must have the columns {', '.join(columns)}; got {', '.join(table.columns)}. {MADE_BY}"
        )
    for name in columns:
        text, kind = table[name], numbers.get(name, "word")
        wrong = text == ""
        if name in numbers:
            table[name] = pd.to_numeric(text, errors="coerce")
            wrong = ~np.isfinite(table[name]) & ~(wrong & ("nothing" in kind))
        if wrong.any():
            line = int(wrong.to_numpy().argmax())
            got = text.iloc[line]
            raise InvalidInput(f"{path}, line {line + 2}: {name} must be a {kind}; got {got!r}. {MADE_BY}")
    return table


def curves(rows: pd.DataFrame, metric: str, prices: str) -> pd.DataFrame:
    """`metric` by level, one row per (data, method, seed)."""
    chosen = rows[(rows["metric"] == metric) & (rows["prices"] == prices) & rows["budget"].notna()]
    level = chosen.groupby(["data", "method", "seed"])["budget"].rank(method="dense").astype(int)
    keyed = chosen.assign(level=level)
    return keyed.pivot(index=["data", "method", "seed"], columns="level", values="value")


def single(rows: pd.DataFrame, metric: str, prices: str | None = None) -> pd.Series:
    """A metric that has one value per cell, by (data, method, seed); where it has budgets, their mean."""
    chosen = rows[(rows["metric"] == metric) & (True if prices is None else rows["prices"] == prices)]
    return chosen.groupby(["data", "method", "seed"])["value"].mean()


def over_budgets_and_seeds(by_level: pd.DataFrame) -> pd.DataFrame:
    """Mean, both spreads and the number of seeds, one row per (data, method); a spread of one number is NaN."""
    by_seed = by_level.mean(axis=1).groupby(["data", "method"])
    over_seeds = by_level.groupby(["data", "method"]).mean()
    return pd.DataFrame(
        {
            "mean": by_seed.mean(),
            "over_budgets": over_seeds.std(axis=1),
            "over_seeds": by_seed.std(),
            "seeds": by_seed.size(),
        }
    )


def pooled_calibration_error(rows: pd.DataFrame, prices: str) -> pd.DataFrame:
    """ECE by level, one row per (data, method), with the seeds' test rows put together before they are binned."""
    accuracy = curves(rows, "accuracy", prices)
    budgets = rows[(rows["metric"] == "accuracy") & (rows["prices"] == prices)]
    level = budgets.groupby(CELL)["budget"].rank(method="dense").astype(int)
    surplus = rows[rows["metric"].str.startswith("surplus_")]
    levelled = surplus.merge(budgets[[*CELL, "budget"]].assign(level=level), on=[*CELL, "budget"])
    pooled = levelled.groupby(["data", "method", "level", "metric"], observed=True)["value"].sum().abs()
    total = pooled.groupby(["data", "method", "level"]).sum().unstack("level")
    measured = accuracy.groupby(["data", "method"]).mean()
    n_rows = single(rows, "test_rows", prices).groupby(["data", "method"]).sum()
    # Bins without surplus have no rows of their own, so a level where all are even is 0.
    return total.reindex_like(measured).fillna(0.0).div(n_rows, axis=0).where(measured.notna())


def mean_ranks(scores: pd.DataFrame) -> pd.Series:
    """Rank of each method (rows) averaged over the data (columns), 1 = best; of methods that have all of them."""
    return scores.dropna().round(9).rank(ascending=False).mean(axis=1)  # equal means differ in their last bits


def accuracy_tables(rows: pd.DataFrame) -> list[Table]:
    """The paper's two tables of accuracy, and one for other data or prices where there are some."""
    tables = []
    for prices in [name for name in TITLES if name in set(rows["prices"])]:
        stats = over_budgets_and_seeds(100 * curves(rows, "accuracy", prices))
        found = stats.index.get_level_values("data").unique()
        printed = paper_results.ACCURACIES.get(prices, {})
        theirs = [name for name in paper_results.DATA if name in found] if printed else []
        others = sorted(set(found) - set(theirs))
        title, label = TITLES[prices]
        if theirs:
            tables.append(_accuracy_table(stats, theirs, title, label, printed))
        if others:
            tables.append(
                _accuracy_table(stats, others, f"{title}: {', '.join(map(data_name, others))}", "beyond the paper", {})
            )
    return tables


def _accuracy_table(
    stats: pd.DataFrame, data: Sequence[str], title: str, label: str, printed: Mapping[str, paper_results.Accuracies]
) -> Table:
    stats = stats[stats.index.get_level_values("data").isin(data)]
    fewer = stats["seeds"] < stats.groupby("data")["seeds"].transform("max")
    means = stats["mean"].mask(fewer).unstack("data")[list(data)]
    widely = means[means.notna().mean(axis=1) > 0.5]
    shared = [name for name in data if widely[name].notna().all()]
    compared = widely[shared]
    average = compared.mean(axis=1).reindex(means.index)
    paper = pd.DataFrame({name: {key: cell[0] for key, cell in row.by_data.items()} for name, row in printed.items()}).T
    paper = paper.reindex(index=[name for name in compared.index if name in printed], columns=shared)
    ranks, their_ranks, paper_ranks = mean_ranks(compared), mean_ranks(compared.loc[paper.index]), mean_ranks(paper)
    body = []
    for method in average.sort_values(ascending=False, na_position="last", kind="stable").index:
        cells = [_accuracy_entry(stats, name, method, means[name], printed) for name in data]
        mean = Entry(
            shown(average[method], 2), paper=_printed(paper.mean(axis=1), method, 2), best=_is_best(average, method)
        )
        rank = Entry(shown(ranks.get(method), 1), best=_is_best(-ranks, method))
        body.append((Entry(method_name(method)), *cells, *([mean] if len(data) > 1 else []), rank))
        if printed:
            body[-1] += (Entry(shown(their_ranks.get(method), 1), paper=_printed(paper_ranks, method, 1)),)
    head = ["method", *map(data_name, data), *(["average"] if len(data) > 1 else []), "rank"]
    note = f"{SPREADS}; {_seeds(stats['seeds'])}. Higher is better, and a rank of 1 is best."
    if fewer.any():
        note += " Figures marked with their number of seeds rest on fewer splits than others and are not ranked."
    if len(shared) < len(data):
        names = ", ".join(map(data_name, shared)) or "none"
        note += f" Averages and ranks are over the data that all methods with more than half of them have: {names}."
    if printed:
        head.append("rank among the paper's")
        note += (
            " In brackets the paper's figure ± its spread over budgets; its average and ranks are taken over the same "
            "data and methods as ours."
        )
    return Table(title, label, note, tuple(head), tuple(body))


def _accuracy_entry(
    stats: pd.DataFrame, data: str, method: str, column: pd.Series, printed: Mapping[str, paper_results.Accuracies]
) -> Entry:
    cell = printed[method].by_data.get(data) if method in printed else None
    paper = "" if cell is None else f"{cell[0]:.2f} ± {cell[1]:.2f}"
    if (data, method) not in stats.index:
        return Entry("-", paper=paper)
    mean, over_budgets, over_seeds = (
        float(stats[name].loc[data, method]) for name in ("mean", "over_budgets", "over_seeds")
    )
    spread = f"± {shown(over_budgets, 2)} / {shown(over_seeds, 2)}"
    if np.isnan(column[method]):
        spread += f", {_seeds([int(stats['seeds'].loc[data, method])])}"
    return Entry(shown(mean, 2), spread, paper, _is_best(column, method))


def data_name(data: str) -> str:
    """The paper's name of a data set, or our own."""
    return paper_results.DATA.get(data, data)


def ordered_data(names: Iterable[str]) -> list[str]:
    """The paper's data in its order, then the others."""
    found = set(names)
    return [*(name for name in paper_results.DATA if name in found), *sorted(found - set(paper_results.DATA))]


def method_name(method: str) -> str:
    """The paper's name of a method, or our own; † where it sees what it has not paid for."""
    name = paper_results.METHODS.get(method, method)
    return f"{name}†" if method in METHODS and METHODS[method].sees_everything else name


def _printed(values: pd.Series, method: str, digits: int) -> str:
    """The paper's number; nothing where it has none."""
    return shown(values[method], digits) if method in values.index and pd.notna(values[method]) else ""


def _is_best(values: pd.Series, name: str) -> bool:
    return name in values.index and bool(values[name] >= values.max() - 1e-9)


def shown(value: float | None, digits: int) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def _seeds(counts: Iterable[int]) -> str:
    fewest, most = min(counts), max(counts)
    return f"{most} seed{'s' * (most > 1)}" if fewest == most else f"{fewest} to {most} seeds"
