"""Evidence for the claims that are more than a sum of quantities: shapes of curves, shares and correlations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from askwise_bench.paper.claims import mean_of
from askwise_bench.paper.findings import FEWEST_SEEDS, RATE, Finding, Scale
from askwise_bench.paper.paper_results import BIAS, DATA, IN_FIGURES, METHODS, STATIC
from askwise_bench.report.rows import Quantity, curves, single

DYNAMIC = [name for name in METHODS if name not in STATIC]
NEURAL = ("rl-remlp", "rl-mlp", "vip", "dime", "cwcf")
NOT_MEASURED = Finding("")
POINTS = RATE.scaled(100)


def _curves(
    rows: pd.DataFrame, metric: str, prices: str, methods: Sequence[str] = tuple(METHODS), data: str | None = None
) -> pd.DataFrame:
    """A metric by level, one row per (data, method, seed), on the paper's data or on one of them."""
    by_level = curves(rows, metric, prices)
    wanted = by_level.index.isin(methods, "method") & by_level.index.isin([data] if data else DATA, "data")
    return _with_all_methods(by_level[wanted])


def _with_all_methods(by_level: pd.DataFrame) -> pd.DataFrame:
    """Only seeds with as many methods as any of the table: a mean over fewer would be one of other methods."""
    n_methods = pd.Series(1, index=by_level.index).groupby(["data", "seed"]).transform("sum")
    return by_level[n_methods == n_methods.groupby("data").transform("max")]


def static_and_the_median(prices: str, allowance: float = 0.0) -> Callable[[pd.DataFrame], list[Finding]]:
    """Points by which static CMI is above the median of the dynamic methods, which means: above half of them.

    The paper counts the methods that are below it. A count says nothing of how much they are, and can be the same for
    every seed however far it is from certain; the distance to the median is above 0 where the count is above half.
    """

    def look(rows: pd.DataFrame) -> list[Finding]:
        mean = 100 * _curves(rows, "accuracy", prices, [*DYNAMIC, "static-cmi"]).mean(axis=1).unstack("method")
        dynamic = [name for name in DYNAMIC if name in mean]
        if not dynamic or "static-cmi" not in mean:
            return [NOT_MEASURED]
        lead = (mean["static-cmi"] - mean[dynamic].dropna().median(axis=1)).dropna() + allowance
        more = f", plus {allowance:g}" if allowance else ""
        what = f"points of static CMI over the median of {len(dynamic)} dynamic methods{more}:"
        return [Finding.over(what, lead, Scale() if allowance else POINTS)]

    return look


def most_lost(prices: str, methods: Sequence[str], data: str | None = None) -> Callable[[pd.DataFrame], list[Finding]]:
    """Points of accuracy lost by one more step of the budget, at the step of a method that loses most.

    The largest of hundreds of differences is large by chance. So the step is chosen on the other seeds, and what it
    loses is read off on this one: by chance alone that is 0 on average or less.
    """

    def look(rows: pd.DataFrame) -> list[Finding]:
        falls = -100 * _curves(rows, "accuracy", prices, methods, data).diff(axis=1).iloc[:, 1:]
        found = {}
        for name, part in falls.groupby("data"):
            by_seed: Any = part.droplevel("data").unstack("method")  # a row per seed, a column per step and method
            complete = by_seed.dropna(axis=1)
            if len(complete) < FEWEST_SEEDS or not complete.shape[1]:
                continue
            for seed in complete.index:
                chosen = complete.drop(index=seed).mean().to_numpy().argmax()
                found[name, seed] = float(complete.loc[seed].iloc[chosen])
        if not found:
            return [NOT_MEASURED]
        what = "points lost by the step that lost most on the other seeds:"
        return [Finding.over(what, pd.Series(found).rename_axis(["data", "seed"]), POINTS)]

    return look


def wine_is_easy(rows: pd.DataFrame) -> list[Finding]:
    """The median of the paper's methods on Wine with 8 features: above 95 % if most of them are."""
    at_eight = 100 * _curves(rows, "accuracy", "uniform", data="wine").reindex(columns=[8])[8].dropna()
    return [Finding.over("median of the methods, minus 95 points:", at_eight.groupby(["data", "seed"]).median() - 95)]


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
    error = _curves(rows, "ece", "variable", IN_FIGURES, "heart")
    half = error.shape[1] // 2
    fall = error.iloc[:, :half].mean(axis=1) - error.iloc[:, half:].mean(axis=1)
    return [Finding.over("ECE, lower half of the budgets minus upper half:", fall.groupby(["data", "seed"]).mean())]


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


def wine_calibration(rows: pd.DataFrame) -> list[Finding]:
    """The median of the methods of the figures, of their mean ECE on Wine: the paper has .15 to .26 for most."""
    error = _curves(rows, "ece", "variable", IN_FIGURES, "wine").mean(axis=1).groupby(["data", "seed"]).median()
    return [
        Finding.over("median ECE minus 0.15:", error - 0.15),
        Finding.over("0.26 minus the median ECE:", 0.26 - error),
    ]


def vip_worst_in_the_middle(rows: pd.DataFrame) -> list[Finding]:
    """ECE of VIP on Wine at the fourth budget minus the mean at the others."""
    error = _curves(rows, "ece", "variable", ["vip"], "wine")
    if 4 not in error:
        return [NOT_MEASURED]
    rest = error.drop(columns=4).mean(axis=1)
    above = (error[4] - rest).droplevel("method").rename_axis(["data", "seed"])
    return [Finding.over("ECE of VIP at 20 % of the price minus that elsewhere:", above, RATE)]


def plateau(rows: pd.DataFrame) -> list[Finding]:
    """What Diabetes gains from 5 to 10 features, mean of the methods of the figures, stays below a point."""
    accuracy = 100 * _curves(rows, "accuracy", "uniform", IN_FIGURES, "diabetes130")
    if not {5, 10} <= set(accuracy):
        return [NOT_MEASURED]
    gain = (accuracy[10] - accuracy[5]).groupby(["data", "seed"]).mean()
    return [Finding.over("1 minus the points gained from 5 to 10 features:", 1 - gain)]


def two_patches(rows: pd.DataFrame) -> list[Finding]:
    """VIP and AdCNN with two patches: entropies within a tenth of a nat, calibration errors more than a point apart."""

    def apart(metric: str) -> pd.Series:
        vip, ours = (
            mean_of(rows, name, Quantity("images", metric, {"budget": 2}), ["data", "seed"])
            for name in ("patch-vip", "adcnn")
        )
        return (vip - ours).dropna().abs()

    return [
        Finding.over("0.1 minus the nats between the entropies of VIP and AdCNN:", 0.1 - apart("entropy")),
        Finding.over("difference of their ECE minus 0.01:", apart("ece") - 0.01),
    ]


def scales_better(rows: pd.DataFrame) -> list[Finding]:
    """The accuracy that DIME gains from 5 to 10 patches minus what AdCNN gains."""
    gained = [
        mean_of(rows, name, Quantity("images", "accuracy", {"budget": budget}), ["data", "seed"])
        for name in ("patch-dime", "adcnn")
        for budget in (10, 5)
    ]
    lead = 100 * (gained[0] - gained[1] - gained[2] + gained[3])
    return [Finding.over("points gained from 5 to 10 patches, DIME minus AdCNN:", lead, POINTS)]
