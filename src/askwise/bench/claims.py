"""What the paper says in words, judged by our own rows: holds, does not hold, undecided, or not measured.

A claim is put as numbers that must be above 0, one per seed: a paired difference, or what is left to a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from askwise.bench import published
from askwise.bench.tables import curves, data_name, method_name, ordered_data, single

HOLDS, FAILS, UNDECIDED, NOT_MEASURED = "holds", "does not hold", "undecided", "not measured"
CONFIDENCE = 0.95
FEWEST_SEEDS = 3
"""With fewer nothing is decided: on small test sets two seeds can give the very same difference."""

MOST_NUMBERS = 3
WEIGHTS = (0.1, 0.5, 1.0)
"""Sizes of lambda that are judged, of both signs."""

DYNAMIC = [name for name in published.METHODS if name not in published.STATIC]
Pair = tuple[str, str]
Source = tuple[str | None, str]


@dataclass(frozen=True)
class Verdict:
    """One line: what is claimed and where, how it stands, by which number, and what the paper's own figures say."""

    claim: str
    where: str
    verdict: str
    number: str
    printed: str = ""


@dataclass(frozen=True, eq=False)
class Finding:
    """What must be above 0 for a claim to hold, one number per seed, over `data`; empty where it was not measured."""

    what: str
    samples: np.ndarray
    data: tuple[str, ...]

    @classmethod
    def over(cls, what: str, by_seed: pd.Series) -> Finding:
        """The mean over the data, of numbers by (data, seed), for the seeds that have all of the data."""
        complete = by_seed.dropna().unstack("data").dropna()
        return cls(what, complete.mean(axis=1).to_numpy(dtype=float), tuple(map(str, complete.columns)))

    def interval(self, n_compared: int = 1) -> tuple[float, float]:
        """Bounds of the mean over the seeds by the t distribution, wide enough for the least of `n_compared` findings.

        The error that is allowed is divided by their number (Bonferroni). No bounds with fewer than `FEWEST_SEEDS`.
        """
        n = len(self.samples)
        if n < FEWEST_SEEDS:
            return -np.inf, np.inf
        quantile = stats.t.ppf(1 - (1 - CONFIDENCE) / 2 / n_compared, n - 1)
        half = quantile * self.samples.std(ddof=1) / np.sqrt(n)
        return float(self.samples.mean() - half), float(self.samples.mean() + half)

    def verdict(self, n_compared: int = 1) -> str:
        """Above 0 by its own interval, or below 0 although it is one of `n_compared` that might be so by chance."""
        if not len(self.samples):
            return NOT_MEASURED
        if self.interval()[0] > 0:
            return HOLDS
        return FAILS if self.interval(n_compared)[1] < 0 else UNDECIDED

    def __str__(self) -> str:
        n, (low, high) = len(self.samples), self.interval()
        bounds = f"{low:+.3g} to {high:+.3g}" if n >= FEWEST_SEEDS else f"{n} seed{'s' * (n > 1)}"
        return f"{self.what} {round(self.samples.mean(), 9) + 0.0:+.3g} ({bounds})"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper; `look` finds the evidence, `printed` what its own figures say."""

    text: str
    where: str
    look: Callable[[pd.DataFrame], list[Finding]]
    printed: str = ""


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Every claim, in the order of the paper."""
    return [judged(claim, claim.look(rows)) for claim in CLAIMS]


def judged(claim: Claim, findings: Sequence[Finding]) -> Verdict:
    """All of the findings must hold; one that does not refutes, and one that is missing leaves it open."""
    found = sorted((f for f in findings if len(f.samples)), key=lambda finding: finding.samples.mean())
    if not found:
        return Verdict(claim.text, claim.where, NOT_MEASURED, "-", claim.printed)
    single_verdicts = {finding.verdict(len(found)) for finding in findings}
    verdict = FAILS if FAILS in single_verdicts else HOLDS if single_verdicts == {HOLDS} else UNDECIDED
    number = "; ".join(map(str, found[:MOST_NUMBERS]))
    if len(found) > MOST_NUMBERS:
        number += f"; higher in {len(found) - MOST_NUMBERS} more"
    if len(found) < len(findings):
        number += f"; {len(findings) - len(found)} of {len(findings)} comparisons not measured"
    names = ordered_data({name for finding in found for name in finding.data})
    return Verdict(claim.text, claim.where, verdict, f"{number}. On {', '.join(map(data_name, names))}.", claim.printed)


def accuracy_by_seed(rows: pd.DataFrame, prices: str, metric: str = "accuracy") -> pd.Series:
    """Percent, mean over the budgets, by (data, method, seed), on the paper's data."""
    means = 100 * curves(rows, metric, prices).mean(axis=1)
    return means[means.index.get_level_values("data").isin(published.DATA)]


def of_method(by_seed: pd.Series, method: str) -> pd.Series:
    """The part of one method, by (data, seed); empty where there is none."""
    return by_seed[by_seed.index.get_level_values("method") == method].droplevel("method")


def better(prices: str, pairs: Sequence[Pair], rows: pd.DataFrame) -> list[Finding]:
    """The first of each pair is the more accurate one."""
    scores = accuracy_by_seed(rows, prices)
    return [
        Finding.over(f"{method_name(a)} over {method_name(b)}", of_method(scores, a) - of_method(scores, b))
        for a, b in pairs
    ]


def in_print(prices: str, pairs: Iterable[Pair]) -> str:
    """Whether the averages that the paper prints say the same of all pairs."""
    average = {name: row.average for name, row in published.ACCURACIES[prices].items()}
    against = [(a, b) for a, b in pairs if average[a] <= average[b]]
    if not against:
        return "agree"
    said = ", ".join(f"{method_name(a)} {average[a]} and {method_name(b)} {average[b]}" for a, b in against)
    return f"contradict: {said}"


def _comparison(text: str, where: str, prices: str, pairs: Sequence[Pair]) -> Claim:
    return Claim(text, where, partial(better, prices, pairs), in_print(prices, pairs))


def _beyond(text: str, prices: str, pairs: Sequence[Pair]) -> Claim:
    return Claim(text, "beyond the paper", partial(better, prices, pairs))


def _against_random(signs: Mapping[str, int], rows: pd.DataFrame) -> list[Finding]:
    gain = accuracy_by_seed(rows, "variable") - accuracy_by_seed(rows, "variable", "random_accuracy")
    return [
        Finding.over(f"{method_name(name)}, points {'gained' if sign > 0 else 'lost'}", sign * of_method(gain, name))
        for name, sign in signs.items()
    ]


def _equal_prices_are_easier(rows: pd.DataFrame) -> list[Finding]:
    gain = accuracy_by_seed(rows, "uniform") - accuracy_by_seed(rows, "variable")
    return [Finding.over(f"{method_name(name)}, points", of_method(gain, name)) for name in published.METHODS]


def _static_beats_half(rows: pd.DataFrame) -> list[Finding]:
    scores = accuracy_by_seed(rows, "uniform").unstack("data").dropna()
    mean = scores.mean(axis=1).unstack("method").dropna(axis=1)
    rivals = [name for name in DYNAMIC if name in mean]
    if not rivals or "static-cmi" not in mean:
        return [Finding("", np.empty(0), ())]
    share = mean[rivals].lt(mean["static-cmi"], axis=0).mean(axis=1)
    what = f"share of {len(rivals)} dynamic methods below it, less one half"
    return [Finding(what, share.to_numpy(dtype=float) - 0.5, tuple(map(str, scores.columns)))]


def _entropy_falls(rows: pd.DataFrame) -> list[Finding]:
    own, at_random = _fall(rows, "entropy"), _fall(rows, "random_entropy")
    return [Finding.over("nats, own choices", own), Finding.over("nats, random choices", at_random)]


def _entropy_falls_alike(rows: pd.DataFrame) -> list[Finding]:
    surplus = _fall(rows, "random_entropy") - 0.8 * _fall(rows, "entropy")
    return [Finding.over("fall by random choices less 0.8 times that by own ones, nats", surplus)]


def _fall(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Entropy at the lowest budget less that at the highest, mean over the methods, by (data, seed)."""
    by_level = curves(rows, metric, "variable")
    by_level = by_level[by_level.index.get_level_values("data").isin(published.DATA)]
    fall = by_level.bfill(axis=1).iloc[:, :1].sum(axis=1) - by_level.ffill(axis=1).iloc[:, -1:].sum(axis=1)
    return fall.groupby(["data", "seed"]).mean()


def _accuracy_not_monotone(rows: pd.DataFrame) -> list[Finding]:
    steps = curves(rows, "accuracy", "variable").diff(axis=1).iloc[:, 1:]
    falls = (steps < 0).sum(axis=1) / steps.notna().sum(axis=1)
    falls = falls[falls.index.get_level_values("data").isin(published.DATA)]
    return [Finding.over("share of budget steps that lower accuracy", falls.groupby(["data", "seed"]).mean())]


def _wine_is_easy(rows: pd.DataFrame) -> list[Finding]:
    at_eight = curves(rows, "accuracy", "uniform").reindex(columns=[8])[8].dropna()
    wine = at_eight[[data == "wine" and method in published.METHODS for data, method, _ in at_eight.index]]
    share = (wine > 0.95).astype(float).groupby(["data", "seed"]).mean()
    return [Finding.over("share of methods above 95 %, less one half", share - 0.5)]


def _calibrated_on_diabetes(rows: pd.DataFrame) -> list[Finding]:
    error = curves(rows, "ece", "variable").mean(axis=1)
    error = error[error.index.get_level_values("data") == "diabetes130"]
    return [
        Finding.over(f"0.03 less the ECE of {method_name(name)}", 0.03 - of_method(error, name))
        for name in ("vip", "rl-remlp")
    ]


def _against_all(best: str, others: Iterable[str]) -> list[Pair]:
    return [(best, name) for name in others if name != best]


@dataclass(frozen=True)
class Term:
    """What must be above 0: a metric less another plus a margin, times a scale.

    A metric is (method, name); method None is the mean over all that have it.
    """

    what: str
    first: Source
    second: Source | None = None
    margin: float = 0.0
    scale: float = 1.0

    def find(self, rows: pd.DataFrame) -> Finding:
        """The term by seed, over the paper's data."""
        value = _by_seed(rows, self.first)
        if self.second is not None:
            value = value - _by_seed(rows, self.second)
        return Finding.over(self.what, self.scale * value + self.margin)


def _by_seed(rows: pd.DataFrame, source: Source) -> pd.Series:
    """A metric by (data, seed)."""
    method, metric = source
    values = single(rows, metric)
    values = values[values.index.get_level_values("data").isin(published.DATA)]
    return values.groupby(["data", "seed"]).mean() if method is None else of_method(values, method)


def _measured(text: str, where: str, terms: Sequence[Term], printed: str = "") -> Claim:
    return Claim(text, where, lambda rows: [term.find(rows) for term in terms], printed)


def _between(metric: str, pairs: Iterable[Pair], scale: float = 1.0) -> list[Term]:
    """The first method of each pair has the larger value."""
    return [Term(f"{method_name(a)} over {method_name(b)}", (a, metric), (b, metric), scale=scale) for a, b in pairs]


def _steps_of_shift(method: str, metric: str) -> list[Term]:
    """The metric grows from each sigma to the next."""
    return [
        Term(
            f"{method_name(method)}, {low:g} to {high:g}:",
            _shifted(method, metric, high),
            _shifted(method, metric, low),
        )
        for low, high in pairwise(published.SHIFT_SIGMAS)
    ]


def _shifted(method: str, metric: str, sigma: float) -> Source:
    return method, f"shift[sigma={sigma:g}]/{metric}"


def _said(condition: bool, why: str = "") -> str:
    return "agree" if condition else f"contradict: {why}"


def _lowest(table: Mapping[str, Sequence[float]], column: int) -> str:
    return min(table, key=lambda name: table[name][column])


_SHIFTED = sorted({name for name, _ in published.SHIFT})
_LOST = max(100 * (line[0][0] - line[k][0]) for line in published.SHIFT.values() for k in (1, 2))
_VARIANCES = [[cell[2] for cell in line if cell[2] is not None] for line in published.SHIFT.values()]
_CALMER = [f"{method_name(n)} at {b} %" for (n, b), line in published.SHIFT.items() if line[0][1] >= line[-1][1]]
_EASIER = [name for name, row in published.UNIFORM.items() if row.average > published.VARIABLE[name].average]
_BELOW_STATIC = [name for name in DYNAMIC if published.UNIFORM[name].average < published.UNIFORM["static-cmi"].average]

CLAIMS = [
    _comparison(
        "RL ReMLP has the best average accuracy", "Table 1", "variable", _against_all("rl-remlp", published.METHODS)
    ),
    _comparison("VIP is the best greedy method", "Section 4.2", "variable", _against_all("vip", published.GREEDY)),
    _comparison(
        "With a neural backbone RL beats the greedy policy",
        "Section 4.2",
        "variable",
        [("rl-remlp", "greedy-remlp"), ("rl-mlp", "greedy-mlp")],
    ),
    _comparison(
        "With a rule-based backbone RL is worse than the greedy policy",
        "Section 4.2",
        "variable",
        [("greedy-cart", "rl-cart"), ("greedy-ftree", "rl-ftree")],
    ),
    _comparison(
        "Reparametrisation helps: ReMLP beats MLP under both policies",
        "Section 4.2",
        "variable",
        [("rl-remlp", "rl-mlp"), ("greedy-remlp", "greedy-mlp")],
    ),
    _comparison(
        "Greedy CART beats CWCF, DIME and INVASE",
        "Section 5",
        "variable",
        [("greedy-cart", name) for name in ("cwcf", "dime", "invase")],
    ),
    _comparison(
        "Neural backbones beat rule-based ones",
        "Section 5",
        "variable",
        [(f"{policy}-remlp", f"{policy}-{rules}") for policy in ("rl", "greedy") for rules in ("cart", "ftree")],
    ),
    Claim(
        "The choices of ReMLP and VIP beat random ones",
        "Figure 1",
        partial(_against_random, {"rl-remlp": 1, "greedy-remlp": 1, "vip": 1}),
    ),
    Claim("The choices of DIME are no better than random ones", "Figure 1", partial(_against_random, {"dime": -1})),
    Claim("Entropy falls with the budget, whoever chooses", "Section 4.2", _entropy_falls),
    Claim("It falls about as much by random choices (at least 0.8 times)", "Section 4.2", _entropy_falls_alike),
    Claim("More budget can mean less accuracy", "Section 5", _accuracy_not_monotone),
    _comparison("VIP has the best average accuracy", "Appendix E", "uniform", _against_all("vip", published.METHODS)),
    _comparison(
        "No dynamic method but VIP beats static CMI",
        "Appendix E",
        "uniform",
        [("vip", "static-cmi"), *(("static-cmi", name) for name in DYNAMIC if name != "vip")],
    ),
    Claim(
        "Static CMI beats half of the dynamic methods",
        "Appendix E",
        _static_beats_half,
        f"{len(_BELOW_STATIC)} of {len(DYNAMIC)} are below it",
    ),
    _comparison("TabNet is below static CMI", "Appendix E", "uniform", [("static-cmi", "tabnet")]),
    _comparison(
        "RL beats the greedy policy for every backbone",
        "Appendix E",
        "uniform",
        [(f"rl-{name}", f"greedy-{name}") for name in ("remlp", "mlp", "cart", "ftree")],
    ),
    _comparison(
        "Rule-based methods with RL beat CWCF", "Appendix E", "uniform", [("rl-cart", "cwcf"), ("rl-ftree", "cwcf")]
    ),
    Claim(
        "Every method is better under equal prices than under random ones",
        "Appendix E",
        _equal_prices_are_easier,
        _said(len(_EASIER) == len(published.UNIFORM), f"{len(_EASIER)} of {len(published.UNIFORM)}"),
    ),
    Claim("On Wine most methods pass 95 % with 8 features", "Appendix E", _wine_is_easy),
    Claim("On Diabetes VIP and RL ReMLP are calibrated (ECE below 0.03)", "Appendix E", _calibrated_on_diabetes),
    _measured(
        "Positive lambda lowers epistemic uncertainty",
        "Table 2",
        [Term(f"at {w:g}:", (None, "lambda[0]/epistemic"), (None, f"lambda[{w:g}]/epistemic")) for w in WEIGHTS],
        _said(published.LAMBDA["positive"][2] < published.LAMBDA["zero"][2]),
    ),
    _measured(
        "Negative lambda raises epistemic uncertainty",
        "Table 2",
        [Term(f"at {-w:g}:", (None, f"lambda[{-w:g}]/epistemic"), (None, "lambda[0]/epistemic")) for w in WEIGHTS],
        _said(published.LAMBDA["negative"][2] > published.LAMBDA["zero"][2]),
    ),
    _measured(
        "Lambda of 0.1 is more accurate than 0",
        "Section 4.2",
        [Term("points", (None, "lambda[0.1]/accuracy"), (None, "lambda[0]/accuracy"), scale=100)],
    ),
    _measured(
        "DIME is nearest to the model of the subset",
        "Table 3",
        _between("bias/kl_ref", [(name, "dime") for name in published.BIAS if name != "dime"]),
        _said(_lowest(published.BIAS, 0) == "dime"),
    ),
    _measured(
        "Greedy CART is farthest from it",
        "Table 3",
        _between("bias/kl_ref", _against_all("greedy-cart", published.BIAS)),
        _said(max(published.BIAS, key=lambda name: published.BIAS[name][0]) == "greedy-cart"),
    ),
    _measured(
        "Methods trained by RL lean to the full model more than DIME does (KL ratio)",
        "Section 4.2",
        _between("bias/kl_ratio", [(name, "dime") for name in ("rl-remlp", "rl-mlp", "cwcf")]),
        _said(_lowest(published.BIAS, 2) == "dime"),
    ),
    _measured(
        "Entropy rejects better than aleatoric, epistemic uncertainty or variance (AURC)",
        "Appendix E",
        [
            Term(
                f"{method_name(m)}, {other}:", (m, f"selective[{other}]/aurc"), (m, "selective[total]/aurc"), scale=100
            )
            for m in ("greedy-cart", "rl-mlp", "rl-remlp")
            for other in ("aleatoric", "mutual_information", "variance")
        ],
    ),
    _measured(
        "VIP has the lowest AURC",
        "Appendix E",
        _between("selective[total]/aurc", [(name, "vip") for name in published.SELECTIVE if name != "vip"], 100),
        _said(_lowest(published.SELECTIVE, 0) == "vip"),
    ),
    _measured(
        "Reparametrisation helps to find failures (AUROC)",
        "Appendix E",
        _between("selective[total]/auroc", [("rl-remlp", "rl-mlp")], 100),
        _said(published.SELECTIVE["rl-remlp"][2] > published.SELECTIVE["rl-mlp"][2]),
    ),
    _measured(
        "Noise of up to 0.2 costs less than 4 points of accuracy",
        "Appendix F",
        [
            Term(
                f"{method_name(m)}, 4 less the loss:", _shifted(m, "accuracy", 0.2), _shifted(m, "accuracy", 0), 4, 100
            )
            for m in _SHIFTED
        ],
        _said(_LOST < 4, f"{_LOST:.0f}"),
    ),
    _measured(
        "Ensemble variance grows with every step of the noise",
        "Appendix F",
        [term for name in ("greedy-cart", "rl-remlp") for term in _steps_of_shift(name, "variance")],
        _said(all(low <= high for line in _VARIANCES for low, high in pairwise(line))),
    ),
    _measured(
        "The calibration error of every method grows with the noise (0 to 2)",
        "Appendix F",
        [Term(f"{method_name(m)}:", _shifted(m, "ece", 2), _shifted(m, "ece", 0)) for m in _SHIFTED],
        _said(not _CALMER, ", ".join(_CALMER)),
    ),
    _measured(
        "For greedy CART ensemble variance tells the subsets with a large risk gap",
        "Appendix F",
        [Term("Pearson's r", ("greedy-cart", "risk_gap[error]/pearson_variance"))],
        _said(sum(r for (name, _), (r, _) in published.RISK_GAP.items() if name == "greedy-cart") > 0),
    ),
    _measured(
        "For RL ReMLP there is hardly a gap (between -0.02 and 0.02)",
        "Appendix F",
        [
            Term("0.02 less the gap", ("rl-remlp", "risk_gap[error]/mean_delta"), margin=0.02, scale=-1),
            Term("0.02 plus the gap", ("rl-remlp", "risk_gap[error]/mean_delta"), margin=0.02),
        ],
    ),
    _measured(
        "Reparametrisation narrows the risk gap",
        "Appendix F",
        [
            Term(f"{method_name(m)}:", (m, "reparam/mean_abs_delta_imputed"), (m, "reparam/mean_abs_delta_adapted"))
            for m in ("rl-remlp", "greedy-remlp")
        ],
        _said(published.REPARAMETRIZATION["all"][3] < published.REPARAMETRIZATION["all"][2]),
    ),
    _measured(
        "Cases of high aleatoric uncertainty have low epistemic uncertainty",
        "Appendix F",
        [Term("minus Spearman's rho, mean over methods", (None, "scatter/spearman"), scale=-1)],
    ),
    _beyond(
        "The default of this library beats RL ReMLP, VIP and the best fixed subset",
        "variable",
        [("askwise", name) for name in ("rl-remlp", "vip", "static-best")],
    ),
]
