"""The tables of accuracy: means, both spreads and ranks, each figure beside the paper's; parts of all tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from askwise_bench.grid.methods import METHODS
from askwise_bench.paper import paper_results
from askwise_bench.report.rows import Quantity, curves, data_name, method_name, ordered_data, single

TITLES = {
    "variable": ("Accuracy under random prices", "Table 1"),
    "uniform": ("Accuracy under equal prices", "Appendix E"),
    "published": ("Accuracy under published prices", "beyond the paper"),
}
SPREADS = (
    "Mean accuracy over the budgets and seeds, in percent (± over budgets / ± over seeds: standard deviations, of the "
    "curve averaged over the seeds and of the seeds' means)"
)

Printed = Mapping[str, Mapping[str, tuple[float, float]]]
"""The mean and the spread that the paper prints, by method and data."""


@dataclass(frozen=True)
class Entry:
    """An entry of a table: the measured figure, its spreads, and the figure that the paper prints."""

    text: str
    spread: str = ""
    paper: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table as the report shows it; the first entry of a row names it."""

    title: str
    label: str
    note: str
    head: tuple[str, ...]
    body: tuple[tuple[Entry, ...], ...]


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


def mean_ranks(scores: pd.DataFrame) -> pd.Series:
    """Rank of each method (rows) averaged over the data (columns), 1 = best; of methods that have all of them."""
    return scores.dropna().round(9).rank(ascending=False).mean(axis=1)  # equal means differ in their last bits


def accuracy_tables(rows: pd.DataFrame) -> list[Table]:
    """The paper's two tables of accuracy, and one for other data or prices where there are some."""
    tables = []
    measured = set(Quantity("accuracy", "accuracy").of(rows)["prices"])
    for prices in [name for name in TITLES if name in measured]:
        stats = over_budgets_and_seeds(100 * curves(rows, "accuracy", prices))
        found = stats.index.get_level_values("data").unique()
        printed = {name: row.by_data for name, row in paper_results.ACCURACIES.get(prices, {}).items()}
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


def _accuracy_table(stats: pd.DataFrame, data: Sequence[str], title: str, label: str, printed: Printed) -> Table:
    stats = stats[stats.index.get_level_values("data").isin(data)]
    fewer = stats["seeds"] < stats.groupby("data")["seeds"].transform("max")
    means = stats["mean"].mask(fewer).unstack("data")[list(data)]
    widely = means[means.notna().mean(axis=1) > 0.5]
    shared = [name for name in data if widely[name].notna().all()]
    compared = widely[shared]
    average = compared.mean(axis=1).reindex(means.index)
    paper = pd.DataFrame({name: {key: mean for key, (mean, _) in row.items()} for name, row in printed.items()}).T
    paper = paper.reindex(index=[name for name in compared.index if name in printed], columns=shared)
    ranks, their_ranks, paper_ranks = mean_ranks(compared), mean_ranks(compared.loc[paper.index]), mean_ranks(paper)
    body = []
    for method in average.sort_values(ascending=False, na_position="last", kind="stable").index:
        entries = [accuracy_entry(stats, name, method, means[name], printed) for name in data]
        mean = Entry(
            shown(average[method], 2), paper=_printed(paper.mean(axis=1), method, 2), best=_is_best(average, method)
        )
        rank = Entry(shown(ranks.get(method), 1), best=_is_best(-ranks, method))
        body.append((Entry(method_name(method)), *entries, *([mean] if len(data) > 1 else []), rank))
        if printed:
            body[-1] += (Entry(shown(their_ranks.get(method), 1), paper=_printed(paper_ranks, method, 1)),)
    head = ["method", *map(data_name, data), *(["average"] if len(data) > 1 else []), "rank"]
    note = f"{SPREADS}; {_seeds(stats['seeds'])}. Higher is better, and a rank of 1 is best."
    if fewer.any():
        note += " Figures marked with their number of seeds rest on fewer splits than the others and are not ranked."
    if len(shared) < len(data):
        names = ", ".join(map(data_name, shared)) or "none"
        note += f" Averages and ranks are over the data that all methods with more than half of them have: {names}."
    if printed:
        head.append("rank among the paper's")
        note += (
            " In brackets: the paper's figure ± its spread over budgets. Its averages and ranks are computed over the "
            "same data and methods as ours."
        )
    return Table(title, label, note, tuple(head), tuple(body))


def accuracy_entry(stats: pd.DataFrame, data: str, method: str, column: pd.Series, printed: Printed) -> Entry:
    """Mean and spreads of a method on one data set beside the paper's; a dash where it was not measured."""
    figure = printed.get(method, {}).get(data)
    paper = "" if figure is None else f"{figure[0]:.2f} ± {figure[1]:.2f}"
    if (data, method) not in stats.index:
        return Entry("-", paper=paper)
    mean, over_budgets, over_seeds = (
        float(stats[name].loc[data, method]) for name in ("mean", "over_budgets", "over_seeds")
    )
    spread = f"± {shown(over_budgets, 2)} / {shown(over_seeds, 2)}"
    if np.isnan(column[method]):
        spread += f", {_seeds([int(stats['seeds'].loc[data, method])])}"
    return Entry(shown(mean, 2), spread, paper, _is_best(column, method))


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


def over_data(rows: pd.DataFrame, quantity: Quantity, scale: float = 1.0) -> pd.DataFrame:
    """By method: the mean over data (of the means over seeds and budgets), its spread over seeds, and how many data."""
    values = scale * single(rows, quantity)
    by_seed = values.groupby(["method", "seed"]).mean().groupby("method")
    by_data = values.groupby(["method", "data"]).mean().groupby("method")
    return pd.DataFrame({"mean": by_data.mean(), "spread": by_seed.std(), "n_data": by_data.size()})


def by_method(
    rows: pd.DataFrame,
    title: str,
    label: str,
    note: str,
    columns: Mapping[str, tuple[Quantity, float, int]],
    printed: Mapping[str, Sequence[float]] | None = None,
    over: str = " Mean over data, budgets and seeds ± spread over seeds.",
) -> Table | None:
    """A table with a column per (quantity, scale, digits); a method that lacks data that others have says so."""
    found = {head: over_data(rows, quantity, scale) for head, (quantity, scale, _) in columns.items()}
    n_data = pd.DataFrame({head: table["n_data"] for head, table in found.items()}).max(axis=1)
    body = []
    for method in [name for name in METHODS if name in n_data.index]:
        lacking = f" ({n_data[method]:.0f} of {n_data.max():.0f} data)" if n_data[method] < n_data.max() else ""
        line = [Entry(method_name(method) + lacking)]
        for at, (head, (_, _, digits)) in enumerate(columns.items()):
            paper = f"{printed[method][at]:.{digits}f}" if printed and method in printed else ""
            line.append(entry_of(found[head]["mean"].get(method), found[head]["spread"].get(method), digits, paper))
        body.append(line)
    note += over
    if printed:
        note += other_data(rows, next(iter(columns.values()))[0].study)
    return table_of(title, label, note, ("method", *columns), body)


def other_data(rows: pd.DataFrame, study: str) -> str:
    """A remark where a study was not run on all of the paper's data."""
    found = rows.loc[rows["study"] == study, "data"].unique()
    if set(found) == set(paper_results.DATA):
        return ""
    return f" Ours on {', '.join(map(data_name, ordered_data(found)))}; the paper's, in brackets, on all of its data."


def entry_of(mean: float | None, spread: float | None, digits: int, paper: str = "") -> Entry:
    """A mean ± its spread, if there is one."""
    known = spread is not None and not np.isnan(spread)
    return Entry(shown(mean, digits), f"± {shown(spread, digits)}" if known else "", paper)


def table_of(title: str, label: str, note: str, head: Sequence[str], body: Sequence[Sequence[Entry]]) -> Table | None:
    """The table, unless it has no rows."""
    return Table(title, label, note, tuple(head), tuple(map(tuple, body))) if body else None


def by_level(rows: pd.DataFrame, quantity: Quantity) -> pd.Series:
    """Mean over data and seeds by (method, level)."""
    by_level = pd.concat([curves(rows, quantity, prices) for prices in rows["prices"].unique()])
    means = by_level.groupby(["data", "method"]).mean().groupby("method").mean()
    return pd.Series({(method, level): means[level][method] for method in means.index for level in means})


def methods_of(rows: pd.DataFrame, study: str) -> list[str]:
    """The methods that a study was run with, in the order of `METHODS`."""
    found = set(rows.loc[rows["study"] == study, "method"])
    return [name for name in METHODS if name in found]
