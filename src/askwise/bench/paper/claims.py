"""How a sentence of the paper is judged by our own rows: holds, does not hold, undecided, or not measured.

A claim is put as numbers that must be above 0, one per seed: a paired difference, or what is left to a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from askwise.bench.paper import paper_results
from askwise.bench.report.tables import PERCENT_PER_LEVEL, curves, data_name, method_name, ordered_data

HOLDS, FAILS, UNDECIDED, NOT_MEASURED = "holds", "does not hold", "undecided", "not measured"
CONFIDENCE = 0.95
TEST_TO_TRAINING = 0.25
"""Rows that judge for each that trains, in every split."""

FEWEST_SEEDS = 3
"""With fewer nothing is decided: on small test sets two seeds can give the very same difference."""

MOST_NUMBERS = 3
DYNAMIC = [name for name in paper_results.METHODS if name not in paper_results.STATIC]
Pair = tuple[str, str]
Source = tuple[str | None, str | Sequence[str]]


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
    """What must be above 0 for a claim to hold, one number per seed, over `data`; empty where it was not measured.

    `n_tried` is the number of comparisons that it is the best of.
    """

    what: str
    samples: np.ndarray
    data: tuple[str, ...]
    n_tried: int = 1

    @classmethod
    def over(cls, what: str, by_seed: pd.Series) -> Finding:
        """The mean over the data, of numbers by (data, seed), for the seeds that have all of the data."""
        complete = by_seed.dropna().unstack("data").dropna()
        return cls(what, complete.mean(axis=1).to_numpy(dtype=float), tuple(map(str, complete.columns)))

    def interval(self, n_compared: int = 1) -> tuple[float, float]:
        """Bounds of the mean over the seeds by the t distribution, wide enough for the least of `n_compared` findings.

        The error that is allowed is divided by their number (Bonferroni). The splits of the seeds share rows, so the
        variance of the mean is more than 1 / n of theirs: what the test rows are to the training rows is added (Nadeau
        and Bengio, 2003). No bounds with fewer than `FEWEST_SEEDS`.
        """
        n = len(self.samples)
        if n < FEWEST_SEEDS:
            return -np.inf, np.inf
        quantile = stats.t.ppf(1 - (1 - CONFIDENCE) / 2 / (n_compared * self.n_tried), n - 1)
        half = quantile * self.samples.std(ddof=1) * np.sqrt(1 / n + TEST_TO_TRAINING)
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
    return means[means.index.get_level_values("data").isin(paper_results.DATA)]


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
    """Whether the averages that the paper prints say the same of all pairs."""
    average = {name: row.average for name, row in paper_results.ACCURACIES[prices].items()}
    return _contradictions([(a, average[a], b, average[b], "") for a, b in pairs])


def in_print_on_each(prices: str, pairs: Iterable[tuple[str, Pair]]) -> str:
    """Whether the figures that the paper prints for each table say the same."""
    printed = {name: row.by_data for name, row in paper_results.ACCURACIES[prices].items()}
    return _contradictions(
        [(a, printed[a][data][0], b, printed[b][data][0], f" on {data_name(data)}") for data, (a, b) in pairs]
    )


def _contradictions(compared: Iterable[tuple[str, float, str, float, str]]) -> str:
    against = [f"{method_name(a)} {x} and {method_name(b)} {y}{on}" for a, x, b, y, on in compared if x <= y]
    return f"contradict: {', '.join(against)}" if against else "agree"


def against_random(methods: Iterable[str], rows: pd.DataFrame) -> list[Finding]:
    """Points of accuracy that the choices of each method gain over random ones."""
    gain = _gain_over_random(rows)
    return [Finding.over(f"{method_name(name)}, points gained", of_method(gain, name)) for name in methods]


def hardly_beats_random(method: str, points: float, rows: pd.DataFrame) -> list[Finding]:
    """What the gain of a method over random choices leaves to a margin."""
    left = points - of_method(_gain_over_random(rows), method)
    return [Finding.over(f"{points:g} less the points gained", left)]


def _gain_over_random(rows: pd.DataFrame) -> pd.Series:
    return accuracy_by_seed(rows, "variable") - accuracy_by_seed(rows, "variable", "random_accuracy")


def equal_prices_are_easier(rows: pd.DataFrame) -> list[Finding]:
    """Points of accuracy that each of the paper's methods gains from random prices to equal ones."""
    gain = accuracy_by_seed(rows, "uniform") - accuracy_by_seed(rows, "variable")
    return [Finding.over(f"{method_name(name)}, points", of_method(gain, name)) for name in paper_results.METHODS]


def static_beats_half(rows: pd.DataFrame) -> list[Finding]:
    """Which share of the dynamic methods that were run on the same data static CMI leaves behind; half is enough."""
    scores = accuracy_by_seed(rows, "uniform").unstack("data")
    scores = scores[scores.index.get_level_values("method").isin([*DYNAMIC, "static-cmi"])]
    scores = scores.loc[:, scores.groupby("method").mean().notna().all()].dropna()
    mean = scores.mean(axis=1).unstack("method").dropna(axis=1)
    rivals = [name for name in DYNAMIC if name in mean]
    if not rivals or "static-cmi" not in mean:
        return [Finding("", np.empty(0), ())]
    share = mean[rivals].lt(mean["static-cmi"], axis=0).mean(axis=1)
    enough = (len(rivals) / 2 - 0.5) / len(rivals)
    what = f"share of {len(rivals)} dynamic methods below it, less {enough:.2f}"
    return [Finding(what, share.to_numpy(dtype=float) - enough, tuple(map(str, scores.columns)))]


def entropy_falls(rows: pd.DataFrame) -> list[Finding]:
    """Nats from the lowest budget to the highest, by own and by random choices."""
    own, at_random = _fall(rows, "entropy"), _fall(rows, "random_entropy")
    return [Finding.over("nats, own choices", own), Finding.over("nats, random choices", at_random)]


def entropy_falls_alike(rows: pd.DataFrame) -> list[Finding]:
    """Random choices bring about at least 0.8 times the fall."""
    surplus = _fall(rows, "random_entropy") - 0.8 * _fall(rows, "entropy")
    return [Finding.over("fall by random choices less 0.8 times that by own ones, nats", surplus)]


def _fall(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Entropy at the lowest budget less that at the highest, mean over the paper's methods, by (data, seed)."""
    by_level = _of_the_paper(curves(rows, metric, "variable"))
    fall = by_level.bfill(axis=1).iloc[:, :1].sum(axis=1) - by_level.ffill(axis=1).iloc[:, -1:].sum(axis=1)
    return fall.groupby(["data", "seed"]).mean()


def _of_the_paper(by_level: pd.DataFrame) -> pd.DataFrame:
    """The lines of the paper's methods on the paper's data."""
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

    A metric is (method, name or names); method None is the mean over all that have it.
    """

    what: str
    first: Source
    second: Source | None = None
    margin: float = 0.0
    scale: float = 1.0

    def find(self, rows: pd.DataFrame) -> Finding:
        """The term by seed, over the paper's data, at the budgets that both metrics have."""
        value = _by_budget(rows, self.first)
        if self.second is not None:
            value = (value - _by_budget(rows, self.second)).dropna()
        return Finding.over(self.what, self.scale * value.groupby(["data", "seed"]).mean() + self.margin)


def _by_budget(rows: pd.DataFrame, source: Source) -> pd.Series:
    """A metric by (data, seed, budget), without a budget where it has none; over several metrics their mean."""
    method, metrics = source
    chosen = rows[rows["metric"].isin([metrics] if isinstance(metrics, str) else metrics)]
    chosen = chosen[chosen["data"].isin(paper_results.DATA)]
    chosen = chosen if method is None else chosen[chosen["method"] == method]
    return chosen.fillna({"budget": 0.0}).groupby(["data", "seed", "budget"])["value"].mean()
