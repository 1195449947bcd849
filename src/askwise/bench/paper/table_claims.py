"""The paper's sentences about single tables and single numbers, and the evidence for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from askwise.bench.paper import paper_results
from askwise.bench.paper.accuracy_claims import (
    accuracy_by_seed,
    gain_over_random,
    of_method,
)
from askwise.bench.paper.claims import Claim, Finding, Source, Term, agreement
from askwise.bench.report.rows import Quantity, curves, method_name, single
from askwise.bench.report.uncertainty_tables import OF_THE_PAPER

NEURAL = ("rl-remlp", "rl-mlp", "vip", "dime", "cwcf")
JOINT, SEPARATE = ("dime", "vip"), ("greedy-cart", "rl-remlp")
SELECTIVE = {
    "AURC": ("aurc", 1),
    "AUROC": ("auroc", -1),
    "risk at 80 %": ("risk_at_80", 1),
    "risk at 90 %": ("risk_at_90", 1),
}
"""Metric and sign: times the sign, more is worse."""

Frame = TypeVar("Frame", pd.Series, pd.DataFrame)
WITH_MEMBERS = ("greedy-cart", "rl-mlp", "rl-remlp")


def gains(low: float, high: float, rows: pd.DataFrame) -> list[Finding]:
    """The mean gain of both ReMLP over random choices lies between two bounds."""
    found = gain_over_random(rows)
    return [
        Finding.over(f"{method_name(name)}, {what}", sign * (of_method(found, name) - bound))
        for name in ("rl-remlp", "greedy-remlp")
        for what, sign, bound in ((f"gain minus {low:g}:", 1, low), (f"{high:g} minus the gain:", -1, high))
    ]


def relative_gain(weight: float, percent: float, rows: pd.DataFrame) -> list[Finding]:
    """The accuracy at a risk weight, relative to that at 0, reaches a percentage."""
    at = [
        _measured(rows, Quantity("risk_weights", "accuracy", {"risk_weight": w})).groupby(["data", "seed"]).mean()
        for w in (weight, 0.0)
    ]
    return [Finding.over(f"percent gained, minus {percent:g}:", 100 * (at[0] / at[1] - 1) - percent)]


def farther_when_stronger(rows: pd.DataFrame) -> list[Finding]:
    """The rank correlation over methods of accuracy and of the divergence from local models relative to the full."""
    both = pd.DataFrame(
        {"accuracy": accuracy_by_seed(rows, "variable"), "ratio": single(rows, Quantity("bias", "kl_ratio"))}
    ).dropna()
    both = both[both.index.isin(paper_results.BIAS, "method")]
    by_seed = both.groupby(["data", "seed"]).apply(_rank_correlation) if len(both) else pd.Series(dtype=float)
    if by_seed.empty:
        return [Finding("", np.empty(0), ())]
    return [Finding.over("rank correlation over the methods of Table 3:", by_seed)]


def _measured(rows: pd.DataFrame, quantity: Quantity) -> pd.Series:
    """A quantity by (data, method, seed), on the paper's data."""
    found = single(rows, quantity)
    return found[found.index.isin(paper_results.DATA, "data")]


def _rank_correlation(pairs: pd.DataFrame) -> float:
    return float(spearmanr(pairs["accuracy"], pairs["ratio"]).statistic) if len(pairs) > 2 else float("nan")


def _at_end(rows: pd.DataFrame, prices: str, metric: str = "accuracy", end: int = -1) -> pd.Series:
    """A metric at the highest (-1) or lowest (0) budget, by (data, method, seed)."""
    by_level = curves(rows, metric, prices)
    filled = by_level.ffill(axis=1) if end else by_level.bfill(axis=1)
    return filled.iloc[:, end] if filled.shape[1] else pd.Series(dtype=float, index=filled.index)


def _on(values: Frame, data: str) -> Frame:
    """The rows of one table."""
    return values[values.index.get_level_values("data") == data]


def cart_ends_lower(data: str, rows: pd.DataFrame) -> list[Finding]:
    """Points by which greedy CART ends below each neural method."""
    last = 100 * _on(_at_end(rows, "uniform"), data)
    return [
        Finding.over(f"{method_name(name)} over greedy CART, all features", of_method(last, name) - _cart(last))
        for name in NEURAL
    ]


def _cart(values: pd.Series) -> pd.Series:
    return of_method(values, "greedy-cart")


def neural_end_alike(data: str, points: float, rows: pd.DataFrame) -> list[Finding]:
    """How far the range of the neural methods at the highest budget stays below `points`."""
    last = 100 * _on(_at_end(rows, "uniform"), data)
    last = last[last.index.isin(NEURAL, "method")]
    by_seed = last.groupby(["data", "seed"])
    spread = points - (by_seed.max() - by_seed.min())[by_seed.size() > 1]
    return [Finding.over(f"{points:g} minus the range of the neural methods, points:", spread)]


def calibration_improves(data: str, rows: pd.DataFrame) -> list[Finding]:
    """ECE over the lower half of the budgets minus that over the upper half, mean over the methods of the figures."""
    error = curves(rows, "ece", "variable")
    error = _on(error[error.index.isin(paper_results.IN_FIGURES, "method")], data)
    half = error.shape[1] // 2
    fall = error.iloc[:, :half].mean(axis=1) - error.iloc[:, half:].mean(axis=1)
    return [Finding.over("ECE, lower half of the budgets minus upper half:", fall.groupby(["data", "seed"]).mean())]


def falls_somewhere(data: str, rows: pd.DataFrame) -> list[Finding]:
    """The largest fall by one more feature, of the median method of the figures; a point may be chance."""
    by_level = _on(curves(rows, "accuracy", "uniform"), data)
    by_level = by_level[by_level.index.isin(paper_results.IN_FIGURES, "method")]
    fall = -100 * by_level.diff(axis=1).iloc[:, 1:].min(axis=1)
    typical = fall.groupby(["data", "seed"]).median()
    return [Finding.over("largest fall of the median method, points, minus 1:", typical - 1)]


def cart_is_good_only_when_equal(data: str, rows: pd.DataFrame) -> list[Finding]:
    """Greedy CART against the mean of the other methods of the figures: above it under equal prices, then below."""
    found = []
    for prices, sign, what in (("uniform", 1, "over the others, equal prices"), ("variable", -1, "under them, random")):
        scores = _on(accuracy_by_seed(rows, prices), data)
        others = scores[scores.index.isin([n for n in paper_results.IN_FIGURES if n != "greedy-cart"], "method")]
        difference = sign * (_cart(scores) - others.groupby(["data", "seed"]).mean())
        found.append(Finding.over(f"greedy CART {what}, points:", difference))
    return found


def last_in(data: str, prices: str, method: str, rows: pd.DataFrame) -> list[Finding]:
    """A method is behind the mean of the other methods of the figures."""
    scores = _on(accuracy_by_seed(rows, prices), data)
    others = scores[scores.index.isin([name for name in paper_results.IN_FIGURES if name != method], "method")]
    behind = others.groupby(["data", "seed"]).mean() - of_method(scores, method)
    return [Finding.over(f"the others over {method_name(method)}, points:", behind)]


def ten_points_apart(data: str, rows: pd.DataFrame) -> list[Finding]:
    """DIME and CWCF with all features of a table."""
    last = 100 * _on(_at_end(rows, "uniform"), data)
    gap = (of_method(last, "dime") - of_method(last, "cwcf")).abs()
    return [Finding.over("points between DIME and CWCF with all features, minus 10:", gap - 10)]


def more_resilient(rows: pd.DataFrame) -> list[Finding]:
    """Points of accuracy that strong noise costs a method trained apart from its policy, more than a joint one."""

    def lost(method: str) -> pd.Series:
        at = [
            of_method(_measured(rows, Quantity("shift", "accuracy", {"sigma": sigma})), method) for sigma in (0.0, 2.0)
        ]
        return 100 * (at[0] - at[1])

    return [
        Finding.over(f"loss of {method_name(a)} over that of {method_name(b)}, points:", lost(a) - lost(b))
        for a in SEPARATE
        for b in JOINT
    ]


def worst_in_selection(method: str) -> list[Term]:
    """Every selective metric, averaged over the measures as in the paper, is worse than that of each other method."""
    return [
        Term(
            f"{head}, {method_name(method)} and {method_name(other)}:",
            (method, Quantity("selective", metric, {"measure": OF_THE_PAPER})),
            (other, Quantity("selective", metric, {"measure": OF_THE_PAPER})),
            scale=100 * sign,
        )
        for head, (metric, sign) in SELECTIVE.items()
        for other in paper_results.SELECTIVE
        if other != method
    ]


def alike_in_selection(points: float) -> list[Term]:
    """The AURC by variance and by EU differ by less than `points`, in both directions."""
    return [
        Term(f"{method_name(name)}, {points:g} minus the difference:", first, second, points, 100)
        for name in WITH_MEMBERS
        for first, second in (
            (_rejected(name, "variance"), _rejected(name, "mutual_information")),
            (_rejected(name, "mutual_information"), _rejected(name, "variance")),
        )
    ]


def _rejected(method: str, measure: str) -> Source:
    return method, Quantity("selective", "aurc", {"measure": measure})


def of_terms(terms: Sequence[Term]) -> Callable[[pd.DataFrame], list[Finding]]:
    """Looks all terms up."""
    return lambda rows: [term.find(rows) for term in terms]


def _not_worst(method: str) -> str:
    """Whether the print has a method that is worse in some metric."""
    columns = dict(zip(("AURC", "E-AURC", "AUROC", "risk at 80 %", "risk at 90 %"), range(5), strict=True))
    printed = paper_results.SELECTIVE
    better = [
        f"{method_name(other)} in {head}"
        for head, (_, sign) in SELECTIVE.items()
        for other in printed
        if sign * printed[other][columns[head]] > sign * printed[method][columns[head]]
    ]
    return agreement(not better, f"worse: {', '.join(better)}")


def _printed(prices: str, data: str, method: str) -> float:
    return paper_results.ACCURACIES[prices][method].by_data[data][0]


def _mean_of_others(prices: str, data: str, method: str) -> float:
    others = [name for name in paper_results.IN_FIGURES if name != method]
    return float(np.mean([_printed(prices, data, name) for name in others]))


_LOSS = {
    name: np.mean([line[0][0] - line[-1][0] for (n, _), line in paper_results.SHIFT.items() if n == name])
    for name in (*JOINT, *SEPARATE)
}
_RHO = spearmanr(
    [paper_results.VARIABLE[name].average for name in paper_results.BIAS],
    [ratio for _, _, ratio in paper_results.BIAS.values()],
).statistic
_CART = {prices: _printed(prices, "cirrhosis", "greedy-cart") for prices in ("uniform", "variable")}
_CWCF = _printed("uniform", "cirrhosis", "cwcf")
_OTHERS = {p: _mean_of_others(p, "cirrhosis", "greedy-cart") for p in _CART}
_OTHERS_CWCF = _mean_of_others("uniform", "cirrhosis", "cwcf")

TABLE_CLAIMS = [
    Claim("The choices of ReMLP gain 2 to 5 points over random ones", "Section 4.2", partial(gains, 2.0, 5.0)),
    Claim("Lambda of 0.1 gains 0.9 % over 0 (relative)", "Section 4.2", partial(relative_gain, 0.1, 0.9)),
    Claim(
        "Stronger methods are farther from local models (KL ratio)",
        "Section 4.2",
        farther_when_stronger,
        agreement(_RHO > 0, f"rank correlation {_RHO:.2f}"),
    ),
    Claim("On Heart accuracy is not monotone (equal prices)", "Appendix E", partial(falls_somewhere, "heart")),
    Claim(
        "On Heart neural methods end alike (within 5 points, equal prices)",
        "Appendix E",
        partial(neural_end_alike, "heart", 5.0),
    ),
    Claim("On Heart CART ends below the neural methods", "Appendix E", partial(cart_ends_lower, "heart")),
    Claim("On Heart ECE is lower at larger budgets", "Appendix E", partial(calibration_improves, "heart")),
    Claim(
        "On Cirrhosis greedy CART is good under equal prices and lags under random ones",
        "Appendix E",
        partial(cart_is_good_only_when_equal, "cirrhosis"),
        agreement(
            _CART["uniform"] > _OTHERS["uniform"] and _CART["variable"] < _OTHERS["variable"],
            f"{_CART['uniform']} under equal prices, the others {_OTHERS['uniform']:.1f}",
        ),
    ),
    Claim(
        "On Cirrhosis CWCF is unusually poor under equal prices",
        "Appendix E",
        partial(last_in, "cirrhosis", "uniform", "cwcf"),
        agreement(_CWCF < _OTHERS_CWCF, f"{_CWCF}, the others {_OTHERS_CWCF:.1f}"),
    ),
    Claim("On Yeast DIME and CWCF end 10 points apart", "Appendix E", partial(ten_points_apart, "yeast")),
    Claim(
        "CART is the worst in selective prediction, in every metric",
        "Appendix E",
        of_terms(worst_in_selection("greedy-cart")),
        _not_worst("greedy-cart"),
    ),
    Claim(
        "Rejection by variance is close to that by EU (AURC within a point)",
        "Appendix E",
        of_terms(alike_in_selection(1.0)),
    ),
    Claim(
        "Jointly trained methods (DIME, VIP) lose less to strong noise",
        "Appendix F",
        more_resilient,
        agreement(max(_LOSS[n] for n in JOINT) < min(_LOSS[n] for n in SEPARATE), f"losses {_LOSS}"),
    ),
]
