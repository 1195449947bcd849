"""How a sentence of the paper is judged by our own rows: holds, does not hold, undecided, or not measured.

A claim is put as numbers that must be above 0, one per seed: a paired difference, or what is left to a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

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


def against_random(signs: Mapping[str, int], rows: pd.DataFrame) -> list[Finding]:
    """Points of accuracy that the choices of each method gain over random ones; a sign of -1 counts what they lose."""
    gain = accuracy_by_seed(rows, "variable") - accuracy_by_seed(rows, "variable", "random_accuracy")
    return [
        Finding.over(f"{method_name(name)}, points {'gained' if sign > 0 else 'lost'}", sign * of_method(gain, name))
        for name, sign in signs.items()
    ]


def equal_prices_are_easier(rows: pd.DataFrame) -> list[Finding]:
    """Points of accuracy that each of the paper's methods gains from random prices to equal ones."""
    gain = accuracy_by_seed(rows, "uniform") - accuracy_by_seed(rows, "variable")
    return [Finding.over(f"{method_name(name)}, points", of_method(gain, name)) for name in published.METHODS]


def static_beats_half(rows: pd.DataFrame) -> list[Finding]:
    """Which share of the dynamic methods that were run on the same data static CMI leaves behind."""
    scores = accuracy_by_seed(rows, "uniform").unstack("data").dropna()
    mean = scores.mean(axis=1).unstack("method").dropna(axis=1)
    rivals = [name for name in DYNAMIC if name in mean]
    if not rivals or "static-cmi" not in mean:
        return [Finding("", np.empty(0), ())]
    share = mean[rivals].lt(mean["static-cmi"], axis=0).mean(axis=1)
    what = f"share of {len(rivals)} dynamic methods below it, less one half"
    return [Finding(what, share.to_numpy(dtype=float) - 0.5, tuple(map(str, scores.columns)))]


def entropy_falls(rows: pd.DataFrame) -> list[Finding]:
    """Nats from the lowest budget to the highest, by own and by random choices."""
    own, at_random = _fall(rows, "entropy"), _fall(rows, "random_entropy")
    return [Finding.over("nats, own choices", own), Finding.over("nats, random choices", at_random)]


def entropy_falls_alike(rows: pd.DataFrame) -> list[Finding]:
    """Random choices bring about at least 0.8 times the fall."""
    surplus = _fall(rows, "random_entropy") - 0.8 * _fall(rows, "entropy")
    return [Finding.over("fall by random choices less 0.8 times that by own ones, nats", surplus)]


def _fall(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Entropy at the lowest budget less that at the highest, mean over the methods, by (data, seed)."""
    by_level = curves(rows, metric, "variable")
    by_level = by_level[by_level.index.get_level_values("data").isin(published.DATA)]
    fall = by_level.bfill(axis=1).iloc[:, :1].sum(axis=1) - by_level.ffill(axis=1).iloc[:, -1:].sum(axis=1)
    return fall.groupby(["data", "seed"]).mean()


def accuracy_not_monotone(rows: pd.DataFrame) -> list[Finding]:
    """How often one more step of the budget lowers accuracy."""
    steps = curves(rows, "accuracy", "variable").diff(axis=1).iloc[:, 1:]
    falls = (steps < 0).sum(axis=1) / steps.notna().sum(axis=1)
    falls = falls[falls.index.get_level_values("data").isin(published.DATA)]
    return [Finding.over("share of budget steps that lower accuracy", falls.groupby(["data", "seed"]).mean())]


def wine_is_easy(rows: pd.DataFrame) -> list[Finding]:
    """How many of the paper's methods pass 95 % on Wine with 8 features."""
    at_eight = curves(rows, "accuracy", "uniform").reindex(columns=[8])[8].dropna()
    wine = at_eight[[data == "wine" and method in published.METHODS for data, method, _ in at_eight.index]]
    share = (wine > 0.95).astype(float).groupby(["data", "seed"]).mean()
    return [Finding.over("share of methods above 95 %, less one half", share - 0.5)]


def calibrated_on_diabetes(rows: pd.DataFrame) -> list[Finding]:
    """What VIP and RL ReMLP leave to an ECE of 0.03 on Diabetes."""
    error = curves(rows, "ece", "variable").mean(axis=1)
    error = error[error.index.get_level_values("data") == "diabetes130"]
    return [
        Finding.over(f"0.03 less the ECE of {method_name(name)}", 0.03 - of_method(error, name))
        for name in ("vip", "rl-remlp")
    ]


@dataclass(frozen=True)
class Term:
    """What must be above 0: a metric less another, times a scale, plus a margin.

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
