"""The paper's claims about accuracy, calibration and entropy under budgets, and the evidence for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from askwise.bench.paper import paper_results
from askwise.bench.paper.claims import Claim, Finding, agreement
from askwise.bench.report.rows import PERCENT_PER_LEVEL, curves, data_name, method_name

Pair = tuple[str, str]
DYNAMIC = [name for name in paper_results.METHODS if name not in paper_results.STATIC]
REPARAMETRIZED_PAIRS = [
    (data, (f"{policy}-remlp", f"{policy}-mlp"))
    for data in paper_results.DATA
    for policy in ("rl", "greedy")
    if (data, policy) != ("yeast", "greedy")
]
"""Where the paper says that ReMLP beats MLP: everywhere but on Yeast with the greedy policy."""

RULES_AND_NETWORKS = [
    (f"{policy}-{network}", f"{policy}-{rules}")
    for policy in ("rl", "greedy")
    for network in ("remlp", "mlp")
    for rules in ("cart", "ftree")
]


def accuracy_by_seed(rows: pd.DataFrame, prices: str, metric: str = "accuracy") -> pd.Series:
    """Percent, mean over the budgets, by (data, method, seed), on the paper's data."""
    means = 100 * curves(rows, metric, prices).mean(axis=1)
    return means[means.index.get_level_values("data").isin(paper_results.DATA)]


def of_method(by_seed: pd.Series, method: str) -> pd.Series:
    """The numbers of one method, by (data, seed); empty if it was not run."""
    return by_seed[by_seed.index.get_level_values("method") == method].droplevel("method")


def better(prices: str, pairs: Sequence[Pair], rows: pd.DataFrame) -> list[Finding]:
    """The first of each pair is the more accurate one."""
    scores = accuracy_by_seed(rows, prices)
    return [
        Finding.over(f"{method_name(a)} over {method_name(b)}", of_method(scores, a) - of_method(scores, b))
        for a, b in pairs
    ]


def better_on_each(prices: str, pairs: Sequence[tuple[str, Pair]], rows: pd.DataFrame) -> list[Finding]:
    """The first of each pair is the more accurate one on the table that is named with it."""
    scores = accuracy_by_seed(rows, prices)
    found = []
    for data, (a, b) in pairs:
        here = scores[scores.index.get_level_values("data") == data]
        what = f"{method_name(a)} over {method_name(b)} on {data_name(data)}"
        found.append(Finding.over(what, of_method(here, a) - of_method(here, b)))
    return found


def in_print(prices: str, pairs: Iterable[Pair]) -> str:
    """Whether the averages that the paper prints agree for all pairs."""
    average = {name: row.average for name, row in paper_results.ACCURACIES[prices].items()}
    return _contradictions([(a, average[a], b, average[b], "") for a, b in pairs])


def in_print_on_each(prices: str, pairs: Iterable[tuple[str, Pair]]) -> str:
    """Whether the figures that the paper prints for each data set agree."""
    printed = {name: row.by_data for name, row in paper_results.ACCURACIES[prices].items()}
    return _contradictions(
        [(a, printed[a][data][0], b, printed[b][data][0], f" on {data_name(data)}") for data, (a, b) in pairs]
    )


def _contradictions(compared: Iterable[tuple[str, float, str, float, str]]) -> str:
    against = [f"{method_name(a)} {x} and {method_name(b)} {y}{on}" for a, x, b, y, on in compared if x <= y]
    return agreement(not against, ", ".join(against))


def against_random(methods: Iterable[str], rows: pd.DataFrame) -> list[Finding]:
    """Points of accuracy that the choices of each method gain over random ones."""
    gain = gain_over_random(rows)
    return [Finding.over(f"{method_name(name)}, points gained", of_method(gain, name)) for name in methods]


def hardly_beats_random(method: str, points: float, rows: pd.DataFrame) -> list[Finding]:
    """How far the gain of a method over random choices stays below a margin."""
    left = points - of_method(gain_over_random(rows), method)
    return [Finding.over(f"{points:g} minus the points gained", left)]


def gain_over_random(rows: pd.DataFrame) -> pd.Series:
    """Points of accuracy by (data, method, seed)."""
    return accuracy_by_seed(rows, "variable") - accuracy_by_seed(rows, "variable", "random_accuracy")


def equal_prices_are_easier(rows: pd.DataFrame) -> list[Finding]:
    """Points of accuracy that each of the paper's methods gains from random prices to equal ones."""
    gain = accuracy_by_seed(rows, "uniform") - accuracy_by_seed(rows, "variable")
    return [Finding.over(f"{method_name(name)}, points", of_method(gain, name)) for name in paper_results.METHODS]


def static_beats_half(rows: pd.DataFrame) -> list[Finding]:
    """The share of the dynamic methods run on the same data that static CMI beats; half is enough."""
    scores = accuracy_by_seed(rows, "uniform").unstack("data")
    scores = scores[scores.index.get_level_values("method").isin([*DYNAMIC, "static-cmi"])]
    scores = scores.loc[:, scores.groupby("method").mean().notna().all()].dropna()
    mean = scores.mean(axis=1).unstack("method").dropna(axis=1)
    dynamic = [name for name in DYNAMIC if name in mean]
    if not dynamic or "static-cmi" not in mean:
        return [Finding("", np.empty(0), ())]
    share = mean[dynamic].lt(mean["static-cmi"], axis=0).mean(axis=1)
    enough = (len(dynamic) / 2 - 0.5) / len(dynamic)
    what = f"share of the {len(dynamic)} dynamic methods below it, minus {enough:.2f}:"
    return [Finding(what, share.to_numpy(dtype=float) - enough, tuple(map(str, scores.columns)))]


def entropy_falls(rows: pd.DataFrame) -> list[Finding]:
    """Nats from the lowest budget to the highest, by own and by random choices."""
    own, at_random = _fall(rows, "entropy"), _fall(rows, "random_entropy")
    return [Finding.over("nats, own choices", own), Finding.over("nats, random choices", at_random)]


def entropy_falls_alike(rows: pd.DataFrame) -> list[Finding]:
    """The fall by random choices is at least 0.8 times that by own ones."""
    surplus = _fall(rows, "random_entropy") - 0.8 * _fall(rows, "entropy")
    return [Finding.over("fall by random choices minus 0.8 times that by own ones, nats", surplus)]


def _fall(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Entropy at the lowest budget minus that at the highest, mean over the paper's methods, by (data, seed)."""
    by_level = _of_the_paper(curves(rows, metric, "variable"))
    fall = by_level.bfill(axis=1).iloc[:, :1].sum(axis=1) - by_level.ffill(axis=1).iloc[:, -1:].sum(axis=1)
    return fall.groupby(["data", "seed"]).mean()


def _of_the_paper(by_level: pd.DataFrame) -> pd.DataFrame:
    """The curves of the paper's methods on the paper's data."""
    data, method, _ = (by_level.index.get_level_values(k) for k in range(3))
    return by_level[data.isin(paper_results.DATA) & method.isin(paper_results.METHODS)]


def accuracy_not_monotone(rows: pd.DataFrame) -> list[Finding]:
    """The largest of all falls of a method's accuracy on one table by one more step of the budget."""
    falls = -100 * _of_the_paper(curves(rows, "accuracy", "variable")).diff(axis=1).iloc[:, 1:]
    steps = {
        (str(data), str(method), level): part[level].dropna().to_numpy(dtype=float)
        for (data, method), part in falls.groupby(["data", "method"])
        for level in falls.columns.astype(int).tolist()
    }
    most_seeds = max(map(len, steps.values()), default=0)
    steps = {key: samples for key, samples in steps.items() if len(samples) == most_seeds > 0}
    if not steps:
        return [Finding("", np.empty(0), ())]
    data, method, level = max(steps, key=lambda key: steps[key].mean())
    start, end = PERCENT_PER_LEVEL * (level - 1), PERCENT_PER_LEVEL * level
    where = f"from {start} % to {end} % of the price"
    what = f"points lost by {method_name(method)} {where}, the most of {len(steps)} steps:"
    return [Finding(what, steps[data, method, level], (data,), len(steps))]


def wine_is_easy(rows: pd.DataFrame) -> list[Finding]:
    """How many of the paper's methods pass 95 % on Wine with 8 features."""
    at_eight = _of_the_paper(curves(rows, "accuracy", "uniform")).reindex(columns=[8])[8].dropna()
    wine = at_eight[at_eight.index.get_level_values("data") == "wine"]
    share = (wine > 0.95).astype(float).groupby(["data", "seed"]).mean()
    return [Finding.over("share of methods above 95 %, minus one half:", share - 0.5)]


def calibrated_on_diabetes(rows: pd.DataFrame) -> list[Finding]:
    """How far the ECE of VIP and of RL ReMLP stays below 0.03 on Diabetes."""
    error = curves(rows, "ece", "variable").mean(axis=1)
    error = error[error.index.get_level_values("data") == "diabetes130"]
    return [
        Finding.over(f"0.03 minus the ECE of {method_name(name)}", 0.03 - of_method(error, name))
        for name in ("vip", "rl-remlp")
    ]


def comparison(text: str, where: str, prices: str, pairs: Sequence[Pair]) -> Claim:
    """The first of each pair is the more accurate one."""
    return Claim(text, where, partial(better, prices, pairs), in_print(prices, pairs))


def _against_all(best: str, others: Iterable[str]) -> list[Pair]:
    return [(best, name) for name in others if name != best]


_EASIER = [name for name, row in paper_results.UNIFORM.items() if row.average > paper_results.VARIABLE[name].average]
_BELOW_STATIC = [
    name for name in DYNAMIC if paper_results.UNIFORM[name].average < paper_results.UNIFORM["static-cmi"].average
]

ACCURACY_CLAIMS = [
    comparison(
        "RL ReMLP has the best average accuracy", "Table 1", "variable", _against_all("rl-remlp", paper_results.METHODS)
    ),
    comparison("VIP is the best greedy method", "Section 4.2", "variable", _against_all("vip", paper_results.GREEDY)),
    comparison(
        "With a neural backbone RL beats the greedy policy",
        "Section 4.2",
        "variable",
        [("rl-remlp", "greedy-remlp"), ("rl-mlp", "greedy-mlp")],
    ),
    comparison(
        "With a rule-based backbone RL is worse than the greedy policy",
        "Section 4.2",
        "variable",
        [("greedy-cart", "rl-cart"), ("greedy-ftree", "rl-ftree")],
    ),
    comparison(
        "Reparametrization helps on average: ReMLP beats MLP under both policies",
        "Section 4.2",
        "variable",
        [("rl-remlp", "rl-mlp"), ("greedy-remlp", "greedy-mlp")],
    ),
    Claim(
        "It helps on every data set under both policies, except for the greedy one on Yeast",
        "Section 4.2",
        partial(better_on_each, "variable", REPARAMETRIZED_PAIRS),
        in_print_on_each("variable", REPARAMETRIZED_PAIRS),
    ),
    comparison(
        "DIME is the worst greedy method",
        "Table 1",
        "variable",
        [(name, "dime") for name in paper_results.GREEDY if name != "dime"],
    ),
    comparison(
        "Greedy CART beats CWCF, DIME and INVASE",
        "Section 5",
        "variable",
        [("greedy-cart", name) for name in ("cwcf", "dime", "invase")],
    ),
    comparison("Neural backbones beat rule-based ones", "Section 5", "variable", RULES_AND_NETWORKS),
    Claim(
        "The choices of ReMLP and VIP beat random ones",
        "Figure 1",
        partial(against_random, ("rl-remlp", "greedy-remlp", "vip")),
    ),
    Claim(
        "The choices of DIME are hardly better than random ones (by less than a point)",
        "Figure 1",
        partial(hardly_beats_random, "dime", 1.0),
    ),
    Claim("Entropy falls with the budget, by own and by random choices", "Section 5", entropy_falls),
    Claim("It falls about as much by random choices (at least 0.8 times as much)", "Section 5", entropy_falls_alike),
    Claim("More budget can mean less accuracy", "Section 5", accuracy_not_monotone),
    comparison(
        "VIP has the best average accuracy", "Appendix E", "uniform", _against_all("vip", paper_results.METHODS)
    ),
    comparison(
        "No dynamic method except VIP beats static CMI",
        "Appendix E",
        "uniform",
        [("vip", "static-cmi"), *(("static-cmi", name) for name in DYNAMIC if name != "vip")],
    ),
    Claim(
        "Static CMI beats half of the dynamic methods, six of twelve",
        "Appendix E",
        static_beats_half,
        agreement(2 * len(_BELOW_STATIC) == len(DYNAMIC), f"{len(_BELOW_STATIC)} of {len(DYNAMIC)} are below it"),
    ),
    comparison("TabNet is below static CMI", "Appendix E", "uniform", [("static-cmi", "tabnet")]),
    comparison(
        "RL beats the greedy policy for every backbone",
        "Appendix E",
        "uniform",
        [(f"rl-{name}", f"greedy-{name}") for name in ("remlp", "mlp", "cart", "ftree")],
    ),
    comparison(
        "Rule-based methods with RL beat CWCF", "Appendix E", "uniform", [("rl-cart", "cwcf"), ("rl-ftree", "cwcf")]
    ),
    Claim(
        "Every method is better under equal prices than under random ones",
        "Appendix E",
        equal_prices_are_easier,
        agreement(len(_EASIER) == len(paper_results.UNIFORM), f"{len(_EASIER)} of {len(paper_results.UNIFORM)}"),
    ),
    Claim("On Wine most methods pass 95 % with 8 features", "Appendix E", wine_is_easy),
    Claim("On Diabetes VIP and RL ReMLP are calibrated (ECE below 0.03)", "Appendix E", calibrated_on_diabetes),
]
