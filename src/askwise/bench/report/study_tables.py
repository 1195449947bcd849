"""The tables of the studies: uncertainty, subsets and policies, each measured figure beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from askwise.bench.grid.methods import METHODS
from askwise.bench.paper import paper_results
from askwise.bench.report.rows import (
    PRICES,
    Quantity,
    curves,
    data_name,
    method_name,
    ordered_data,
    settings,
    single,
)
from askwise.bench.report.tables import Entry, Table, accuracy_tables, shown
from askwise.bench.studies.subsets import compare_gaps

MEASURES = ("total", "confidence_gap", "aleatoric", "mutual_information", "epistemic", "variance", "random")
TARGETED_BUDGETS = (30, 70)
"""Percent of the price of everything, in Appendix F."""

REPARAM_COLUMNS = {
    "gap, imputed": ("mean_delta_imputed", 1, 3),
    "gap, adapted": ("mean_delta_adapted", 1, 3),
    "|gap|, imputed": ("mean_abs_delta_imputed", 1, 3),
    "|gap|, adapted": ("mean_abs_delta_adapted", 1, 3),
    "wins, %": ("wins", 100, 1),
    "Wilcoxon p": ("wilcoxon_p_abs_delta", 1, 3),
}
"""(measure, scale, digits) of each column."""


def tables(rows: pd.DataFrame) -> list[Table]:
    """Every table that the rows allow."""
    summary = _summary(rows)
    return [*([] if summary is None else [summary]), *accuracy_tables(rows), *study_tables(rows)]


def study_tables(rows: pd.DataFrame) -> list[Table]:
    """The other tables, each for the prices under which its study was run; those without rows are left out."""
    makers = (
        _lambda,
        _bias,
        _selective,
        _by_measure,
        _shift,
        _risk_gap,
        _reparametrization,
        _unavailable,
        _l1,
    )
    found = []
    for make in makers:
        for prices, part in rows.groupby("prices", sort=False):
            table = make(part)
            if table is not None:
                found.append(replace(table, note=f"{table.note} {PRICES[str(prices)].capitalize()}."))
    return found


def over_data(rows: pd.DataFrame, quantity: Quantity, scale: float = 1.0) -> pd.DataFrame:
    """By method: the mean over data (of the means over seeds and budgets), its spread over seeds, and how many data."""
    values = scale * single(rows, quantity)
    by_seed = values.groupby(["method", "seed"]).mean().groupby("method")
    by_data = values.groupby(["method", "data"]).mean().groupby("method")
    return pd.DataFrame({"mean": by_data.mean(), "spread": by_seed.std(), "n_data": by_data.size()})


def _summary(rows: pd.DataFrame) -> Table | None:
    names = ("rows", "features", "classes", "logistic_accuracy")
    columns = [single(rows, Quantity("summary", name)).groupby("data") for name in names]
    body = []
    for data in ordered_data(columns[-1].mean().index):
        paper = paper_results.SUMMARY.get(data, ("", "", "", ""))
        counts = [f"{column.mean()[data]:,.0f}" for column in columns[:3]]
        sizes = [
            Entry(ours, paper=f"{theirs:,}" if theirs else "") for ours, theirs in zip(counts, paper, strict=False)
        ]
        model = _entry(columns[3].mean()[data], columns[3].std()[data], 3, str(paper[3]))
        body.append((Entry(data_name(data)), *sizes, model))
    head = ("data", "rows", "features", "classes", "logistic regression")
    note = "Size of the whole table, and the accuracy of logistic regression with every feature of the test rows."
    return _table("Data", "Appendix G", note, head, body)


def _lambda(rows: pd.DataFrame) -> Table | None:
    weights = settings(rows, "risk_weights", "risk_weight")
    groups = {"negative": [w for w in weights if w < 0], "zero": [0.0], "positive": [w for w in weights if w > 0]}
    body = []
    for name, members in [*groups.items(), *((f"lambda = {w:g}", [w]) for w in weights)]:
        line = [Entry(name if name not in groups else f"lambda {name}")]
        for at, (metric, scale, digits) in enumerate((("accuracy", 100, 2), ("epistemic", 1, 4), ("variance", 1, 4))):
            values = scale * single(rows, Quantity("risk_weights", metric, {"risk_weight": members}))
            values = values.groupby("seed").mean()
            printed = paper_results.LAMBDA[name][2 * at : 2 * at + 2] if name in groups and at < 2 else ()
            paper = f"{printed[0]:.{digits - at}f} ± {printed[1]:.{digits - at}f}" if printed else ""
            line.append(_entry(values.mean(), values.std(), digits, paper))
        body.append(line)
    methods = ", ".join(map(method_name, _methods_of(rows, "risk_weights")))
    note = (
        f"Mean over data, budgets of 20 % to 80 % and the methods {methods} ± spread over seeds. Epistemic is e of "
        f"Eq. 13.{_other_data(rows, 'risk_weights')}"
    )
    return _table(
        "Weight of epistemic uncertainty",
        "Table 2",
        note,
        ("", "accuracy", "epistemic", "variance"),
        body if weights else [],
    )


def _bias(rows: pd.DataFrame) -> Table | None:
    names = {"KL ref": ("mean_kl_ref", 3), "KL full": ("mean_kl_full", 3), "ratio": ("kl_ratio", 2)}
    columns = {head: (Quantity("bias", name), 1, digits) for head, (name, digits) in names.items()}
    note = "Divergence of the prediction from a model trained on the subset alone and from the model with all features."
    return _by_method(rows, "Prediction bias", "Table 3", note, columns, paper_results.BIAS)


def _selective(rows: pd.DataFrame) -> Table | None:
    names = {
        "AURC": "aurc",
        "E-AURC": "excess_aurc",
        "AUROC": "auroc",
        "risk at 80 %": "risk_at_80",
        "risk at 90 %": "risk_at_90",
    }
    columns = {head: (Quantity("selective", name, {"measure": "total"}), 100, 2) for head, name in names.items()}
    note = (
        "In percent; rows are rejected by the entropy of the prediction, which every method has (the paper averages "
        "over its measures of uncertainty). Lower is better, except for AUROC, which is defined only at budgets with "
        "wrong predictions."
    )
    return _by_method(rows, "Selective prediction", "Appendix E", note, columns, paper_results.SELECTIVE)


def _by_measure(rows: pd.DataFrame) -> Table | None:
    columns = {name.replace("_", " "): (Quantity("selective", "aurc", {"measure": name}), 100, 2) for name in MEASURES}
    note = "AURC in percent when rows are rejected by each measure; lower is better. Baselines have no members."
    return _by_method(rows, "Selective prediction by measure of uncertainty", "Appendix E", note, columns, {})


def _shift(rows: pd.DataFrame) -> Table | None:
    sigmas = settings(rows, "shift", "sigma")
    body = []
    names = ("accuracy", "ece", "variance")
    by_level = {(s, n): _by_level(rows, Quantity("shift", n, {"sigma": s})) for s in sigmas for n in names}
    for method in _methods_of(rows, "shift"):
        for level, percent in enumerate(TARGETED_BUDGETS, 1):
            printed = dict(
                zip(paper_results.SHIFT_SIGMAS, paper_results.SHIFT.get((method, percent), ()), strict=False)
            )
            line = [Entry(f"{method_name(method)}, {percent} %")]
            for sigma in sigmas:
                means = [by_level[sigma, name].get((method, level)) for name in names]
                line.append(Entry(_triple(means), paper=_triple(printed[sigma]) if sigma in printed else ""))
            body.append(line)
    head = ("method, budget", *(f"sigma {sigma:g}" if sigma else "no shift" for sigma in sigmas))
    note = (
        "Accuracy, ECE and ensemble variance (only with members) when half of the numeric columns are noisy, mean over "
        f"data and seeds.{_other_data(rows, 'shift')}"
    )
    return _table("Distribution shift of the test rows", "Appendix F", note, head, body)


def _risk_gap(rows: pd.DataFrame) -> Table | None:
    names = [(metric, measure) for measure in ("variance", "epistemic") for metric in ("pearson", "spearman")]
    columns = [single(rows, Quantity("risk_gap", m, {"loss": "error", "measure": u})) for m, u in names]
    columns.append(single(rows, Quantity("risk_gap", "mean_delta", {"loss": "error"})))
    body = []
    by_method = [column.groupby(["method", "data"]) for column in columns]
    found = by_method[-1].mean().index
    for key in [(m, d) for m in METHODS for d in ordered_data(found.unique("data")) if (m, d) in found]:
        printed = [f"{r:.2f}" for r in paper_results.RISK_GAP[key]] if key in paper_results.RISK_GAP else []
        theirs = [*printed, *[""] * (len(columns) - len(printed))]
        entries = [
            _entry(column.mean().get(key), column.std().get(key), 3, paper)
            for column, paper in zip(by_method, theirs, strict=True)
        ]
        body.append((Entry(f"{method_name(key[0])}, {data_name(key[1])}"), *entries))
    head = ("method, data", "r, variance", "rho, variance", "r, e", "rho, e", "mean risk gap")
    note = (
        "Correlation over random subsets S between the gap in test error to a model trained on S alone and the mean "
        "uncertainty; mean over the seeds ± their spread."
    )
    return _table("Epistemic uncertainty and risk gap", "Appendix F", note, head, body)


def _reparametrization(rows: pd.DataFrame) -> Table | None:
    body = []
    for method in _methods_of(rows, "reparametrization"):
        errors = subset_errors(rows[rows["method"] == method])
        for data in [*ordered_data(errors.index.unique("data")), "all"]:
            part = errors if data == "all" else errors.xs(data, level="data")
            gaps = compare_gaps(*(part[name].to_numpy() for name in ("imputed", "adapted", "local")))
            ours = [gaps[name] * scale for name, scale, _ in REPARAM_COLUMNS.values()]
            theirs = paper_results.REPARAMETRIZATION.get(data, [None] * len(ours))
            digits = [places for _, _, places in REPARAM_COLUMNS.values()]
            name = Entry(f"{method_name(method)}, {data_name(data)} ({len(part)} subsets)")
            found = zip(ours, theirs, digits, strict=True)
            body.append((name, *(Entry(shown(a, d), paper="" if b is None else shown(b, d)) for a, b, d in found)))
    head = ("method, data", *REPARAM_COLUMNS)
    note = (
        "Gap in test error to a model trained on the subset alone, over the subsets of all seeds. Those of one seed "
        "share their test rows, so p is too small rather than too large."
    )
    return _table("Reparametrization and risk gap", "Appendix F", note, head, body)


def subset_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Test errors of the imputed, the adapted and the local model, one row per (data, seed, subset)."""
    found = {
        name: Quantity("reparametrization", f"error_{name}").of(rows).set_index(["data", "seed", "subset"])["value"]
        for name in ("imputed", "adapted", "local")
    }
    return pd.DataFrame(found)


def _unavailable(rows: pd.DataFrame) -> Table | None:
    columns = {
        f"{100 * share:g} % unavailable": (Quantity("unavailable", "accuracy", {"unavailable_share": share}), 100, 2)
        for share in settings(rows, "unavailable", "unavailable_share")
    }
    note = "Accuracy in percent when a share of the features of each row is unavailable."
    return _by_method(rows, "Unavailable features", "Section 2.1", note, columns, {})


def _l1(rows: pd.DataFrame) -> Table | None:
    weights = settings(rows, "l1_weights", "l1")
    columns = {f"L1 {weight:g}": (Quantity("l1_weights", "accuracy", {"l1": weight}), 100, 2) for weight in weights}
    note = "Accuracy in percent by the L1 weight of the value network."
    return _by_method(rows, "Regularization of the value network", "Appendix G", note, columns, {})


def _by_method(
    rows: pd.DataFrame,
    title: str,
    label: str,
    note: str,
    columns: Mapping[str, tuple[Quantity, float, int]],
    printed: Mapping[str, Sequence[float]],
) -> Table | None:
    """A table with a column per (quantity, scale, digits); a method that lacks data that others have says so."""
    found = {head: over_data(rows, quantity, scale) for head, (quantity, scale, _) in columns.items()}
    n_data = pd.DataFrame({head: table["n_data"] for head, table in found.items()}).max(axis=1)
    body = []
    for method in [name for name in METHODS if name in n_data.index]:
        lacking = f" ({n_data[method]:.0f} of {n_data.max():.0f} data)" if n_data[method] < n_data.max() else ""
        line = [Entry(method_name(method) + lacking)]
        for at, (head, (_, _, digits)) in enumerate(columns.items()):
            paper = f"{printed[method][at]:.{digits}f}" if method in printed else ""
            line.append(_entry(found[head]["mean"].get(method), found[head]["spread"].get(method), digits, paper))
        body.append(line)
    note += " Mean over data, budgets and seeds ± spread over seeds."
    if printed:
        note += _other_data(rows, next(iter(columns.values()))[0].study)
    return _table(title, label, note, ("method", *columns), body)


def _other_data(rows: pd.DataFrame, study: str) -> str:
    """A remark where a study was not run on all of the paper's data."""
    found = rows.loc[rows["study"] == study, "data"].unique()
    if set(found) == set(paper_results.DATA):
        return ""
    return f" Ours on {', '.join(map(data_name, ordered_data(found)))}; the paper's, in brackets, on all of its data."


def _entry(mean: float | None, spread: float | None, digits: int, paper: str = "") -> Entry:
    known = spread is not None and not np.isnan(spread)
    return Entry(shown(mean, digits), f"± {shown(spread, digits)}" if known else "", paper)


def _table(title: str, label: str, note: str, head: Sequence[str], body: Sequence[Sequence[Entry]]) -> Table | None:
    return Table(title, label, note, tuple(head), tuple(map(tuple, body))) if body else None


def _by_level(rows: pd.DataFrame, quantity: Quantity) -> pd.Series:
    """Mean over data and seeds by (method, level)."""
    by_level = pd.concat([curves(rows, quantity, prices) for prices in rows["prices"].unique()])
    means = by_level.groupby(["data", "method"]).mean().groupby("method").mean()
    return pd.Series({(method, level): means[level][method] for method in means.index for level in means})


def _triple(values: Sequence[float | None]) -> str:
    return " · ".join(shown(value, digits) for value, digits in zip(values, (2, 2, 3), strict=True))


def _methods_of(rows: pd.DataFrame, study: str) -> list[str]:
    found = set(rows.loc[rows["study"] == study, "method"])
    return [name for name in METHODS if name in found]
