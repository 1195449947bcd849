"""The tables of the suites beside rivals: leads with their intervals, calibration, ceilings and times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from askwise_bench.grid.suites import OURS, RIVALS
from askwise_bench.paper.findings import CONFIDENCE, TEST_TO_TRAINING
from askwise_bench.report.rows import PRICES, Quantity, data_name, method_name, ordered_data
from askwise_bench.report.tables import Entry, Table, shown, table_of

KINDS = {"default": OURS[:3], "pooled": OURS[3:]}
MODELS = ("MLP", "forest", "boosting")
CHANCE = 0.9
FEWEST_DEGREES = 3
BEYOND = "beyond the paper"
KEYS = ["data", "seed", "method"]
FIT_PARTS, DECISION_PARTS = ("answer", "members", "policy"), ("choice", "answer")
HOW_AVERAGED = (
    "Mean over the data that both have, of the mean over splits and budgets, ± half of its 95 % interval. The variance "
    "over the splits of each table is corrected for the rows that they share (Nadeau and Bengio); the tables are "
    "fixed. Bold: the interval is above 0."
)


def rival_tables(rows: pd.DataFrame) -> list[Table]:
    """Every table of the study `rivals`, by prices; none where it was not run."""
    rows = rows[rows["study"] == "rivals"]
    found = []
    for prices, part in rows.groupby("prices", sort=False):
        where = PRICES[str(prices)]
        found += [
            _leads(part, "accuracy", 100, 2, f"Lead over rivals in accuracy, {where}", "Points of accuracy."),
            _leads(
                part, "log_loss", -1, 3, f"Lead over rivals in log loss, {where}", "Log loss of the rival minus ours."
            ),
            _accuracies(part, f"Accuracy beside rivals, {where}"),
            _calibration(part, f"Calibration beside rivals, {where}", "all budgets"),
            _calibration(
                _incomplete(part),
                f"Calibration of incomplete cases beside rivals, {where}",
                "budgets that buy everything left out, because there the wrapped model itself answers",
            ),
        ]
    return [table for table in [*found, _times(rows)] if table is not None]


def lead(ours: pd.DataFrame, theirs: pd.Series) -> tuple[float, float, int]:
    """Mean lead over the tables, half of its interval, and the number of tables.

    `ours` has a column per model, which are averaged; rows are (data, seed). The interval is NaN if a table has one
    split only, or if all splits together leave fewer than `FEWEST_DEGREES` of freedom: two splits can agree by chance.
    """
    difference = (ours.mean(axis=1, skipna=False) - theirs).dropna()
    by_data = difference.groupby("data")
    n = by_data.size()
    variances = by_data.var(ddof=1) * (1 / n + TEST_TO_TRAINING)
    total = variances.sum(skipna=False)
    enough = total > 0 and (n - 1).sum() >= FEWEST_DEGREES
    freedom = total**2 / (variances**2 / (n - 1)).sum() if enough else np.nan
    half = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(total) / max(1, len(n))
    return float(by_data.mean().mean()), float(half), len(n)


def _by_split(rows: pd.DataFrame, metric: str, scale: float) -> pd.DataFrame:
    """Mean over the budgets, one row per (data, seed), one column per method."""
    return scale * Quantity("rivals", metric).of(rows).groupby(KEYS)["value"].mean().unstack("method")


def _leads(rows: pd.DataFrame, metric: str, scale: float, digits: int, title: str, note: str) -> Table | None:
    values = _by_split(rows, metric, scale)
    columns = {
        f"{kind}, {name}": ours
        for kind, methods in KINDS.items()
        for name, ours in [("all models", methods), *((m, [o]) for m, o in zip(MODELS, methods, strict=True))]
        if set(ours) <= set(values)
    }
    body = [
        [Entry(f"over {method_name(rival)}"), *(_lead_entry(values, ours, rival, digits) for ours in columns.values())]
        for rival in RIVALS
        if rival in values
    ]
    return table_of(title, BEYOND, f"{note} {HOW_AVERAGED} {_splits(values)}", ("", *columns), body if columns else [])


def _lead_entry(values: pd.DataFrame, ours: Sequence[str], rival: str, digits: int) -> Entry:
    mean, half, n_data = lead(values[list(ours)], values[rival])
    if not n_data:
        return Entry("-")
    spread = f"± {shown(half, digits)}" if np.isfinite(half) else ""
    return Entry(f"{mean:+.{digits}f}", f"{spread}, {n_data} data".strip(", "), best=bool(mean - half > 0))


def _splits(values: pd.DataFrame) -> str:
    n = values.dropna(how="all").groupby("data").size()
    return f"Splits: {', '.join(f'{data_name(name)} {n[name]}' for name in ordered_data(n.index))}."


def _accuracies(rows: pd.DataFrame, title: str) -> Table | None:
    """Accuracy and log loss by method; of ours also the accuracy of the wrapped model with everything."""
    accuracy, full, loss = (
        _over_splits(_by_split(rows, metric, scale))
        for metric, scale in (("accuracy", 100), ("full_accuracy", 100), ("log_loss", 1))
    )
    names = ordered_data(accuracy.index)
    body = []
    for method in [name for name in (*OURS, *RIVALS) if name in accuracy]:
        line = [Entry(method_name(method))]
        for name in names:
            ceiling = f"of {full[method][name]:.1f}" if method in OURS and full[method].notna()[name] else ""
            line.append(Entry(shown(accuracy[method][name], 2), ceiling, best=_is_largest(accuracy.T[name], method)))
        line += [Entry(shown(table[method].mean(skipna=False), d)) for table, d in ((accuracy, 2), (loss, 3))]
        body.append(line)
    note = (
        "Accuracy in percent, mean over budgets and splits, in brackets that of the wrapped model with every "
        "feature (the ceiling); the last column is the log loss averaged over the data. Methods that lack splits of a "
        "table have no figure there."
    )
    return table_of(title, BEYOND, note, ("method", *map(data_name, names), "average", "log loss"), body)


def _over_splits(values: pd.DataFrame) -> pd.DataFrame:
    """Mean over the splits by data; NaN for a method that lacks splits which others have."""
    by_data = values.groupby("data")
    n = by_data.count()
    return by_data.mean().where(n.eq(n.max(axis=1), axis=0))


def _is_largest(values: pd.Series, method: str) -> bool:
    return bool(values[method] >= values.max() - 1e-9)


def calibration_errors(rows: pd.DataFrame, metric: str) -> pd.Series:
    """ECE by (data, method), and draw for ``surplus_by_chance``: all budgets and splits put together before binning."""
    surplus = Quantity("rivals", metric).of(rows).fillna({"draw": 0})
    pooled = surplus.groupby(["data", "method", "draw", "bin"])["value"].sum().abs()
    n_rows = Quantity("rivals", "test_rows").of(rows).groupby(["data", "method"])["value"].sum()
    n_states = n_rows * Quantity("rivals", "accuracy").of(rows).groupby(KEYS).size().groupby(["data", "method"]).first()
    return pooled.groupby(["data", "method", "draw"]).sum() / n_states


def _incomplete(rows: pd.DataFrame) -> pd.DataFrame:
    """The data of which some budgets buy everything, without those budgets."""
    prices = Quantity("rivals", "price_of_everything").of(rows).groupby(KEYS[:2])["value"].first()
    everything = rows.join(prices.rename("everything"), on=KEYS[:2])["everything"]
    complete = rows["budget"] >= everything
    return rows[rows["data"].isin(rows["data"][complete].unique()) & ~complete]


def _calibration(rows: pd.DataFrame, title: str, which: str) -> Table | None:
    error = calibration_errors(rows, "surplus").droplevel("draw")
    chance = calibration_errors(rows, "surplus_by_chance").groupby(["data", "method"]).quantile(CHANCE)
    names = ordered_data(error.index.get_level_values("data").unique())
    body = []
    for method in [name for name in (*OURS, *RIVALS) if name in error.index.get_level_values("method")]:
        cells = [(error.get((name, method)), chance.get((name, method))) for name in names]
        body.append([Entry(method_name(method))])
        body[-1] += [
            Entry(shown(got, 3), "" if bound is None or np.isnan(bound) else f"chance {bound:.3f}")
            for got, bound in cells
        ]
    note = (
        f"Expected calibration error (15 bins; {which}; all splits put together). By chance: the 90 % "
        "quantile of that of labels drawn from the predictions themselves, one label per row of the table."
    )
    return table_of(title, BEYOND, note, ("method", *map(data_name, names)), body)


def _times(rows: pd.DataFrame) -> Table | None:
    """Multiples of the wrapped model's own times, by data and method."""
    seconds = rows.groupby([*KEYS[::2], "metric"], observed=True)["value"].median().unstack("metric")
    if "fit_total" not in seconds:
        return None
    body = []
    for row in seconds.dropna(subset=["fit_total"]).reset_index().to_dict("records"):
        fit = {part: row.get(f"fit_{part}", 0.0) for part in FIT_PARTS}
        fit["calibration and the rest"] = max(0.0, row["fit_total"] - np.nansum(list(fit.values())))
        parts = [row["fit_total"] / row["fit_model"], *(part / row["fit_model"] for part in fit.values())]
        parts += [row[f"decision_{part}"] / row["decision_model"] for part in DECISION_PARTS]
        told = f"{row['fit_model']:.2g} s, {1000 * row['decision_model']:.2g} ms"
        body.append(
            [
                Entry(f"{data_name(row['data'])}, {method_name(row['method'])}"),
                Entry(told),
                *(Entry(f"{p:.2g}") for p in parts),
            ]
        )
    head = (
        "",
        "model: fit, one prediction",
        "fit, total",
        *(f"fit: {part}" for part in FIT_PARTS),
        "fit: calibration, rest",
    )
    note = (
        "Multiples of the time that the wrapped model takes to be fitted, and to predict one row; one core. A decision "
        "is a step of a single case: the choice of a feature, and the answer once its value is known."
    )
    decisions = tuple(f"decision: {part}" for part in DECISION_PARTS)
    return table_of("Time beside the wrapped model", BEYOND, note, (*head, *decisions), body)
