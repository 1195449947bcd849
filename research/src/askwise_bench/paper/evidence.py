"""Evidence for the claims that are more than a sum of quantities: shapes of curves, shares and correlations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from askwise_bench.paper.claims import Finding, mean_of
from askwise_bench.paper.paper_results import BIAS, DATA, IN_FIGURES, METHODS, STATIC
from askwise_bench.report.rows import PERCENT_PER_LEVEL, Quantity, curves, method_name, single

DYNAMIC = [name for name in METHODS if name not in STATIC]
NEURAL = ("rl-remlp", "rl-mlp", "vip", "dime", "cwcf")
NOT_MEASURED = Finding("", np.empty(0), ())


def _curves(
    rows: pd.DataFrame, metric: str, prices: str, methods: Sequence[str] = tuple(METHODS), data: str | None = None
) -> pd.DataFrame:
    """A metric by level, one row per (data, method, seed), on the paper's data or on one of them."""
    by_level = curves(rows, metric, prices)
    return by_level[by_level.index.isin(methods, "method") & by_level.index.isin([data] if data else DATA, "data")]


def static_beats_half(rows: pd.DataFrame) -> list[Finding]:
    """The share of the dynamic methods run on the same data that static CMI beats; half is enough."""
    by_data = _curves(rows, "accuracy", "uniform", [*DYNAMIC, "static-cmi"]).mean(axis=1).unstack("data")
    by_data = by_data.loc[:, by_data.groupby("method").mean().notna().all()].dropna()
    mean = by_data.mean(axis=1).unstack("method").dropna(axis=1)
    dynamic = [name for name in DYNAMIC if name in mean]
    if not dynamic or "static-cmi" not in mean:
        return [NOT_MEASURED]
    share = mean[dynamic].lt(mean["static-cmi"], axis=0).mean(axis=1)
    enough = (len(dynamic) / 2 - 0.5) / len(dynamic)
    what = f"share of the {len(dynamic)} dynamic methods below it, minus {enough:.2f}:"
    return [Finding(what, share.to_numpy(dtype=float) - enough, tuple(map(str, by_data.columns)))]


def accuracy_not_monotone(rows: pd.DataFrame) -> list[Finding]:
    """The largest of all falls of a method's accuracy on one table by one more step of the budget."""
    falls = -100 * _curves(rows, "accuracy", "variable").diff(axis=1).iloc[:, 1:]
    steps = {
        (str(data), str(method), level): part[level].dropna().to_numpy(dtype=float)
        for (data, method), part in falls.groupby(["data", "method"])
        for level in falls.columns.astype(int).tolist()
    }
    most_seeds = max(map(len, steps.values()), default=0)
    steps = {key: samples for key, samples in steps.items() if len(samples) == most_seeds > 0}
    if not steps:
        return [NOT_MEASURED]
    data, method, level = max(steps, key=lambda key: steps[key].mean())
    where = f"from {PERCENT_PER_LEVEL * (level - 1)} % to {PERCENT_PER_LEVEL * level} % of the price"
    what = f"points lost by {method_name(method)} {where}, the most of {len(steps)} steps:"
    return [Finding(what, steps[data, method, level], (data,), len(steps))]


def wine_is_easy(rows: pd.DataFrame) -> list[Finding]:
    """How many of the paper's methods pass 95 % on Wine with 8 features."""
    at_eight = _curves(rows, "accuracy", "uniform", data="wine").reindex(columns=[8])[8].dropna()
    share = (at_eight > 0.95).astype(float).groupby(["data", "seed"]).mean()
    return [Finding.over("share of methods above 95 %, minus one half:", share - 0.5)]


def relative_gain(rows: pd.DataFrame) -> list[Finding]:
    """The accuracy at a risk weight of 0.1, relative to that at 0, is 0.9 % higher."""
    weighted, plain = (
        mean_of(rows, None, Quantity("risk_weights", "accuracy", {"risk_weight": weight}), ["data", "seed"])
        for weight in (0.1, 0.0)
    )
    return [Finding.over("percent gained, minus 0.9:", 100 * (weighted / plain - 1) - 0.9)]


def farther_when_stronger(rows: pd.DataFrame) -> list[Finding]:
    """The rank correlation over methods of accuracy and of the divergence from local models relative to the full."""
    accuracy = _curves(rows, "accuracy", "variable", tuple(BIAS)).mean(axis=1)
    both = pd.DataFrame({"accuracy": accuracy, "ratio": single(rows, Quantity("bias", "kl_ratio"))}).dropna()
    by_seed = {
        key: spearmanr(part["accuracy"], part["ratio"]).statistic
        for key, part in both.groupby(["data", "seed"])
        if len(part) > 2
    }
    if not by_seed:
        return [NOT_MEASURED]
    return [
        Finding.over("rank correlation over the methods of Table 3:", pd.Series(by_seed).rename_axis(["data", "seed"]))
    ]


def _with_everything(rows: pd.DataFrame, methods: Sequence[str], data: str) -> pd.DataFrame:
    """Accuracy in percent with all features of a table, a column per method."""
    found = Quantity("accuracy", "accuracy", {"prices": "uniform", "data": data}, end="max").of(rows)
    found = found[found["method"].isin(methods)]
    return 100 * found.pivot(index=["data", "seed"], columns="method", values="value").reindex(columns=list(methods))


def neural_end_alike(rows: pd.DataFrame) -> list[Finding]:
    """How far the range of the neural methods with all features of Heart stays below 5 points."""
    last = _with_everything(rows, NEURAL, "heart")
    spread = 5 - (last.max(axis=1) - last.min(axis=1))[last.notna().sum(axis=1) > 1]
    return [Finding.over("5 minus the range of the neural methods, points:", spread)]


def ten_points_apart(rows: pd.DataFrame) -> list[Finding]:
    """DIME and CWCF with all features of Yeast."""
    last = _with_everything(rows, ("dime", "cwcf"), "yeast")
    return [
        Finding.over(
            "points between DIME and CWCF with all features, minus 10:", (last["dime"] - last["cwcf"]).abs() - 10
        )
    ]


def calibration_improves(rows: pd.DataFrame) -> list[Finding]:
    """ECE on Heart over the lower half of the budgets minus that over the upper half, mean over the methods."""
    error = curves(rows, "ece", "variable")
    half = error.shape[1] // 2
    error = error[error.index.isin(IN_FIGURES, "method") & error.index.isin(["heart"], "data")]
    fall = error.iloc[:, :half].mean(axis=1) - error.iloc[:, half:].mean(axis=1)
    return [Finding.over("ECE, lower half of the budgets minus upper half:", fall.groupby(["data", "seed"]).mean())]


def falls_somewhere(rows: pd.DataFrame) -> list[Finding]:
    """The largest fall on Heart by one more feature, of the median method of the figures; a point may be chance."""
    fall = -100 * _curves(rows, "accuracy", "uniform", IN_FIGURES, "heart").diff(axis=1).iloc[:, 1:].min(axis=1)
    typical = fall.groupby(["data", "seed"]).median()
    return [Finding.over("largest fall of the median method, points, minus 1:", typical - 1)]


def calibration_and_accuracy(rows: pd.DataFrame) -> list[Finding]:
    """The rank correlation of ECE and accuracy over the numbers of patches, mean over the methods for images."""
    by_patches = [
        Quantity("images", metric).of(rows).pivot(index=["data", "seed", "method"], columns="budget", values="value")
        for metric in ("ece", "accuracy")
    ]
    errors, accuracies = (found.rank(axis=1).T for found in by_patches)
    if errors.empty:
        return [NOT_MEASURED]
    by_seed = -errors.corrwith(accuracies).groupby(["data", "seed"]).mean()
    return [Finding.over("minus Spearman's rho, mean over methods", by_seed)]
