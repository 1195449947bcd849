"""The tables of uncertainty and of subsets (Appendices E and F), each measured figure beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from askwise_bench.grid.methods import METHODS
from askwise_bench.paper import paper_results
from askwise_bench.report.rows import Quantity, data_name, method_name, ordered_data, settings, single
from askwise_bench.report.tables import (
    Entry,
    Table,
    by_level,
    by_method,
    entry_of,
    methods_of,
    other_data,
    shown,
    table_of,
)
from askwise_bench.studies.subsets import compare_gaps

MEASURES = ("total", "confidence_gap", "aleatoric", "mutual_information", "epistemic", "variance", "random")
OF_THE_PAPER = ["total", "confidence_gap", "aleatoric", "mutual_information", "variance"]
"""The measures that the paper averages over (Appendix E)."""

TARGETED_BUDGETS = (30, 70)
"""Percent of the price of everything, or of the features, in Appendix F."""

SELECTIVE_COLUMNS = {
    "AURC": "aurc",
    "E-AURC": "excess_aurc",
    "AUROC": "auroc",
    "risk at 80 %": "risk_at_80",
    "risk at 90 %": "risk_at_90",
}
Columns = Mapping[str, tuple[Quantity, float, int]]
SUBSET_TABLES = {
    "Reparametrization and risk gap": (
        "Gap in test error to a model trained on the subset alone, over the subsets of all seeds. Those of one seed "
        "share their test rows, so p is too small rather than too large.",
        {
            "gap, imputed": ("mean_delta_imputed", 1, 3),
            "gap, adapted": ("mean_delta_adapted", 1, 3),
            "|gap|, imputed": ("mean_abs_delta_imputed", 1, 3),
            "|gap|, adapted": ("mean_abs_delta_adapted", 1, 3),
            "wins, %": ("wins", 100, 1),
            "Wilcoxon p": ("wilcoxon_p_abs_delta", 1, 3),
        },
        paper_results.REPARAMETRIZATION,
    ),
    "Reparametrization and test error": (
        "What reparametrization saves in test error, the share of subsets on which the error is lower, higher and "
        "equal, and whether the two errors differ. The paper's p is below 0.001.",
        {
            "error saved, points": ("error_saved", 100, 2),
            **{f"{word} error, %": (f"{word}_error", 100, 1) for word in ("lower", "higher", "equal")},
            "Wilcoxon p": ("wilcoxon_p_error", 1, 3),
        },
        paper_results.REPARAMETRIZED_ERRORS,
    ),
}
"""Note, (number of `compare_gaps`, scale, digits) of each column, and what the paper prints."""


def _rejected(measure: str | list[str]) -> Columns:
    return {
        head: (Quantity("selective", name, {"measure": measure}), 100, 2) for head, name in SELECTIVE_COLUMNS.items()
    }


METHOD_TABLES: dict[str, tuple[str, Columns, Mapping[str, Sequence[float]] | None]] = {
    "Selective prediction": (
        "In percent; rows are rejected by the entropy of the prediction, which every method has. Lower is better, "
        "except for AUROC, which is defined only at budgets with wrong predictions.",
        _rejected("total"),
        None,
    ),
    "Selective prediction, averaged over the measures": (
        "The same, averaged over the measures of uncertainty as the paper does: "
        f"{', '.join(OF_THE_PAPER).replace('_', ' ')}. Baselines have no members here, so that only the first two "
        "count for them.",
        _rejected(OF_THE_PAPER),
        paper_results.SELECTIVE,
    ),
    "Selective prediction by measure of uncertainty": (
        "AURC in percent when rows are rejected by each measure; lower is better. Baselines have no members.",
        {name.replace("_", " "): (Quantity("selective", "aurc", {"measure": name}), 100, 2) for name in MEASURES},
        None,
    ),
}
"""Note, columns and what the paper prints, of the tables by method in Appendix E."""


def _of_methods(title: str, rows: pd.DataFrame) -> Table | None:
    note, columns, printed = METHOD_TABLES[title]
    return by_method(rows, title, "Appendix E", note, columns, printed)


def _shift(rows: pd.DataFrame) -> Table | None:
    quantities = {name: Quantity("shift", name) for name in ("accuracy", "ece", "variance")}
    note = (
        "Accuracy, ECE and ensemble variance (only with members) when half of the numeric columns are noisy, mean over "
        f"data and seeds.{other_data(rows, 'shift')}"
    )
    return _by_sigma(rows, "Distribution shift of the test rows", note, quantities, paper_results.SHIFT)


def _shift_uncertainty(rows: pd.DataFrame) -> Table | None:
    quantities = {
        "entropy": Quantity("shift", "entropy"),
        **{name: Quantity("shift", "auroc", {"measure": name}) for name in ("total", "epistemic")},
    }
    note = (
        "Mean entropy in nats, and how well entropy and e (only with members) find the wrong predictions (AUROC), "
        "under the same noise. The paper names these measures and prints no figures."
    )
    return _by_sigma(rows, "Entropy and AUROC under distribution shift", note, quantities, {})


def _by_sigma(
    rows: pd.DataFrame,
    title: str,
    note: str,
    quantities: Mapping[str, Quantity],
    printed: Mapping[tuple[str, int], Sequence[Sequence[float | None]]],
) -> Table | None:
    """A column per sigma with three numbers each, a row per method and budget."""
    sigmas = settings(rows, "shift", "sigma")
    found = {
        (sigma, name): by_level(rows, Quantity(q.study, q.metric, {**q.at, "sigma": sigma}))
        for sigma in sigmas
        for name, q in quantities.items()
    }
    body = []
    for method in methods_of(rows, "shift"):
        for level, percent in enumerate(TARGETED_BUDGETS, 1):
            theirs = dict(zip(paper_results.SHIFT_SIGMAS, printed.get((method, percent), ()), strict=False))
            line = [Entry(f"{method_name(method)}, {percent} %")]
            for sigma in sigmas:
                means = [found[sigma, name].get((method, level)) for name in quantities]
                line.append(Entry(_triple(means), paper=_triple(theirs[sigma]) if sigma in theirs else ""))
            body.append(line)
    head = ("method, budget", *(f"sigma {sigma:g}" if sigma else "no shift" for sigma in sigmas))
    return table_of(title, "Appendix F", note, head, body)


def _triple(values: Sequence[float | None]) -> str:
    return " · ".join(shown(value, digits) for value, digits in zip(values, (2, 2, 3), strict=True))


def _risk_gap(rows: pd.DataFrame) -> Table | None:
    heads = {"r": "pearson", "p of r": "pearson_p", "rho": "spearman", "p of rho": "spearman_p"}
    columns = {
        f"{head}, {short}": single(rows, Quantity("risk_gap", metric, {"loss": "error", "measure": measure}))
        for short, measure in (("variance", "variance"), ("e", "epistemic"))
        for head, metric in heads.items()
    }
    columns["mean risk gap"] = single(rows, Quantity("risk_gap", "mean_delta", {"loss": "error"}))
    found = columns["mean risk gap"].groupby(["method", "data"]).mean().index
    body: list[list[Entry]] = []
    for method in [name for name in METHODS if name in found.unique("method")]:
        data = ordered_data(found[found.get_level_values("method") == method].unique("data"))
        body += [_gap_line(columns, method, [name]) for name in data]
        body += [_gap_line(columns, method, data)] if len(data) > 1 else []
    note = (
        "Correlation over random subsets S between the gap in test error to a model trained on S alone and the mean "
        "uncertainty; mean over the seeds ± their spread, and the median of their p values."
    )
    return table_of("Epistemic uncertainty and risk gap", "Appendix F", note, ("method, data", *columns), body)


def _gap_line(columns: Mapping[str, pd.Series], method: str, data: Sequence[str]) -> list[Entry]:
    """One table, or the average of several; p values are of single tables."""
    printed = [paper_results.RISK_GAP[method, name] for name in data if (method, name) in paper_results.RISK_GAP]
    theirs = dict(zip(("r, variance", "rho, variance"), np.mean(printed, axis=0), strict=True)) if printed else {}
    single_table = len(data) == 1
    line = [Entry(f"{method_name(method)}, {data_name(data[0]) if single_table else 'average'}")]
    for head, column in columns.items():
        values = column[column.index.isin(data, "data") & column.index.isin([method], "method")]
        by_seed = values.groupby("seed").mean()
        if head.startswith("p of"):
            line.append(entry_of(by_seed.median() if single_table else None, None, 3))
        else:
            paper = shown(theirs[head], 2) if head in theirs else ""
            line.append(entry_of(by_seed.mean(), by_seed.std(), 3, paper))
    return line


def _by_subsets(title: str, rows: pd.DataFrame) -> Table | None:
    """A row per method and table, and one over all tables."""
    note, columns, printed = SUBSET_TABLES[title]
    body = []
    for method in methods_of(rows, "reparametrization"):
        errors = subset_errors(rows[rows["method"] == method])
        for data in [*ordered_data(errors.index.unique("data")), "all"]:
            part = errors if data == "all" else errors.xs(data, level="data")
            gaps = compare_gaps(*(part[name].to_numpy() for name in ("imputed", "adapted", "local")))
            theirs = printed.get(data, [np.nan] * len(columns))
            found = zip(columns.values(), theirs, strict=True)
            entries = [
                Entry(shown(scale * gaps[name], digits), paper="" if np.isnan(their) else shown(their, digits))
                for (name, scale, digits), their in found
            ]
            body.append((Entry(f"{method_name(method)}, {data_name(data)} ({len(part)} subsets)"), *entries))
    return table_of(title, "Appendix F", note, ("method, data", *columns), body)


def _gap_by_budget(rows: pd.DataFrame) -> Table | None:
    """The mean gaps at each share of the features."""
    body = []
    for method in methods_of(rows, "reparametrization"):
        errors = subset_errors(rows[rows["method"] == method])
        for data in ordered_data(errors.index.unique("data")):
            part = errors.xs(data, level="data")
            by_size = part.sub(part["local"], axis=0).groupby("subset_size").mean()  # a size for each budget, in order
            ours = by_size[["imputed", "adapted"]].reset_index(drop=True).reindex(range(len(TARGETED_BUDGETS)))
            line = [Entry(f"{method_name(method)}, {data_name(data)}")]
            for percent, pair in zip(TARGETED_BUDGETS, ours.to_numpy(), strict=True):
                theirs = [shown(gap, 3) for gap in paper_results.GAP_BY_BUDGET.get((data, percent), ())] or ["", ""]
                line += [Entry(shown(gap, 3), paper=printed) for gap, printed in zip(pair, theirs, strict=True)]
            body.append(line)
    head = [f"{name}, {percent} %" for percent in TARGETED_BUDGETS for name in ("imputed", "adapted")]
    note = "Mean gap in test error to a model trained on the subset alone, by the share of the features that is known."
    return table_of("Reparametrization and risk gap by budget", "Appendix F", note, ("method, data", *head), body)


def subset_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Test errors of the imputed, the adapted and the local model, one row per (data, seed, subset, subset_size)."""
    keys = ["data", "seed", "subset", "subset_size"]
    found = {
        name: Quantity("reparametrization", f"error_{name}").of(rows).set_index(keys)["value"]
        for name in ("imputed", "adapted", "local")
    }
    return pd.DataFrame(found)


UNCERTAINTY_TABLES: tuple[Callable[[pd.DataFrame], Table | None], ...] = (
    *(partial(_of_methods, title) for title in METHOD_TABLES),
    _shift,
    _shift_uncertainty,
    _risk_gap,
    *(partial(_by_subsets, title) for title in SUBSET_TABLES),
    _gap_by_budget,
)
