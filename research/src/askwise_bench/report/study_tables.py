"""The tables of the studies of data and policies, and the list of all tables, each figure beside the paper's."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from askwise_bench.paper import paper_results
from askwise_bench.report.image_results import image_tables
from askwise_bench.report.rival_tables import rival_tables
from askwise_bench.report.rows import PRICES, Quantity, data_name, method_name, ordered_data, settings, single
from askwise_bench.report.tables import (
    Entry,
    Table,
    accuracy_tables,
    by_method,
    entry_of,
    methods_of,
    other_data,
    table_of,
)
from askwise_bench.report.uncertainty_tables import UNCERTAINTY_TABLES


def tables(rows: pd.DataFrame) -> list[Table]:
    """Every table that the rows allow."""
    summary = _summary(rows)
    first = [*([] if summary is None else [summary]), *accuracy_tables(rows), *rival_tables(rows)]
    return [*first, *image_tables(rows), *study_tables(rows)]


def study_tables(rows: pd.DataFrame) -> list[Table]:
    """The other tables, each for the prices under which its study was run; those without rows are left out."""
    found = []
    for make in (_lambda, _bias, *UNCERTAINTY_TABLES, _unavailable, _l1):
        for prices, part in rows.groupby("prices", sort=False):
            table = make(part)
            if table is not None:
                found.append(replace(table, note=f"{table.note} {PRICES[str(prices)].capitalize()}."))
    return found


def _summary(rows: pd.DataFrame) -> Table | None:
    names = ("rows", "features", "classes", "logistic_accuracy")
    columns = [single(rows, Quantity("summary", name)).groupby("data") for name in names]
    body = []
    for data in ordered_data(columns[-1].mean().index):
        paper = paper_results.SUMMARY.get(data, ("", "", "", ""))
        counts = [f"{column.mean()[data]:,.0f}" for column in columns[:3]]
        sizes = [
            Entry(ours, paper=f"{theirs:,.0f}" if theirs else "") for ours, theirs in zip(counts, paper, strict=False)
        ]
        model = entry_of(columns[3].mean()[data], columns[3].std()[data], 3, str(paper[3]))
        body.append((Entry(data_name(data)), *sizes, model))
    head = ("data", "rows", "features", "classes", "logistic regression")
    note = "Size of the whole table, and the accuracy of logistic regression with every feature of the test rows."
    return table_of("Data", "Appendix G", note, head, body)


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
            line.append(entry_of(values.mean(), values.std(), digits, paper))
        body.append(line)
    methods = ", ".join(map(method_name, methods_of(rows, "risk_weights")))
    note = (
        f"Mean over data, budgets of 20 % to 80 % and the methods {methods} ± spread over seeds. Epistemic is e of "
        f"Eq. 13.{other_data(rows, 'risk_weights')}"
    )
    return table_of(
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
    return by_method(rows, "Prediction bias", "Table 3", note, columns, paper_results.BIAS)


def _unavailable(rows: pd.DataFrame) -> Table | None:
    columns = {
        f"{100 * share:g} % unavailable": (Quantity("unavailable", "accuracy", {"unavailable_share": share}), 100, 2)
        for share in settings(rows, "unavailable", "unavailable_share")
    }
    note = "Accuracy in percent when a share of the features of each row is unavailable."
    return by_method(rows, "Unavailable features", "Section 2.1", note, columns)


def _l1(rows: pd.DataFrame) -> Table | None:
    weights = settings(rows, "l1_weights", "l1")
    columns = {f"L1 {weight:g}": (Quantity("l1_weights", "accuracy", {"l1": weight}), 100, 2) for weight in weights}
    note = "Accuracy in percent by the L1 weight of the value network."
    return by_method(rows, "Regularization of the value network", "Appendix G", note, columns)
