"""How a sentence of the paper is judged by our own rows: holds, does not hold, undecided, or not measured.

A claim is stated as numbers that must be above 0, one per seed: a paired difference, or the distance to a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from askwise.bench.paper import paper_results
from askwise.bench.report.rows import Quantity, data_name, ordered_data

HOLDS, FAILS, UNDECIDED, NOT_MEASURED = "holds", "does not hold", "undecided", "not measured"
CONFIDENCE = 0.95
TEST_TO_TRAINING = 0.25
"""Test rows per training row, in every split."""

FEWEST_SEEDS = 3
"""With fewer nothing is decided: on small test sets two seeds can give exactly the same difference."""

MOST_NUMBERS = 3
Source = tuple[str | None, Quantity]
"""A quantity of a method; method None is the mean over all that have it."""


@dataclass(frozen=True)
class Verdict:
    """What is claimed and where, the verdict, the numbers behind it, and whether the paper's own figures agree."""

    claim: str
    where: str
    verdict: str
    number: str
    printed: str = ""


@dataclass(frozen=True, eq=False)
class Finding:
    """What must be above 0 for a claim to hold, one number per seed, over `data`; empty if it was not measured.

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
        variance of the mean is more than 1 / n of theirs: the ratio of test to training rows is added to 1 / n (Nadeau
        and Bengio, 2003). No bounds with fewer seeds than `FEWEST_SEEDS`.
        """
        n = len(self.samples)
        if n < FEWEST_SEEDS:
            return -np.inf, np.inf
        quantile = stats.t.ppf(1 - (1 - CONFIDENCE) / 2 / (n_compared * self.n_tried), n - 1)
        half = quantile * self.samples.std(ddof=1) * np.sqrt(1 / n + TEST_TO_TRAINING)
        return float(self.samples.mean() - half), float(self.samples.mean() + half)

    def verdict(self, n_compared: int = 1) -> str:
        """Above 0 by its own interval, or below 0 by one that allows for `n_compared` comparisons."""
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
    """A sentence of the paper; `look` finds the evidence, `printed` says whether the paper's own figures agree."""

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


def agreement(agree: bool, why: str = "") -> str:
    """Whether the paper's own figures agree with its sentence, and if not, why."""
    return "agree" if agree else f"contradict: {why}"


@dataclass(frozen=True)
class Term:
    """What must be above 0: a quantity minus another, times a scale, plus a margin."""

    what: str
    first: Source
    second: Source | None = None
    margin: float = 0.0
    scale: float = 1.0

    def find(self, rows: pd.DataFrame) -> Finding:
        """The term by seed, over the paper's data, at the budgets that both quantities have."""
        value = _by_budget(rows, self.first)
        if self.second is not None:
            value = (value - _by_budget(rows, self.second)).dropna()
        return Finding.over(self.what, self.scale * value.groupby(["data", "seed"]).mean() + self.margin)


def _by_budget(rows: pd.DataFrame, source: Source) -> pd.Series:
    """A quantity by (data, seed, budget), with budget 0 where it has none."""
    method, quantity = source
    chosen = quantity.of(rows[rows["data"].isin(paper_results.DATA)])
    chosen = chosen if method is None else chosen[chosen["method"] == method]
    return chosen.fillna({"budget": 0.0}).groupby(["data", "seed", "budget"])["value"].mean()
