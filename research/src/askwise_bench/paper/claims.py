"""How a sentence of the paper is judged by our own rows: holds, does not hold, undecided, or not measured.

A claim is stated as numbers that must be above 0, one per seed: a paired difference, or the distance to a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from askwise_bench.paper import paper_results
from askwise_bench.report.rows import Quantity, data_name, method_name, ordered_data

HOLDS, FAILS, UNDECIDED, NOT_MEASURED = "holds", "does not hold", "undecided", "not measured"
CONFIDENCE = 0.95
TEST_TO_TRAINING = 0.25
"""Test rows per training row, in every split."""

FEWEST_SEEDS = 3
"""With fewer nothing is decided: on small test sets two seeds can give exactly the same difference."""

MOST_NUMBERS = 3
Methods = str | Sequence[str] | None


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
    """A sentence of the paper ("where: what"), the evidence for it, and whether the paper's own figures agree."""

    sentence: str
    evidence: Sequence[Term] | Callable[[pd.DataFrame], list[Finding]]
    printed: str = ""

    @property
    def where(self) -> str:
        """The section, table or figure."""
        return self.sentence.split(": ")[0]

    @property
    def text(self) -> str:
        """What is claimed."""
        return self.sentence.split(": ", 1)[1]

    def look(self, rows: pd.DataFrame) -> list[Finding]:
        """What the rows say about it."""
        return self.evidence(rows) if callable(self.evidence) else [term.find(rows) for term in self.evidence]


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
    """What must be above 0: a sum of quantities, each times a factor, plus a margin.

    A part is (factor, method, quantity); of several methods, or all (None), it is the mean. The quantities are compared
    at the budgets that all of them have, unless they are not `paired`.
    """

    what: str
    parts: Sequence[tuple[float, Methods, Quantity]]
    margin: float = 0.0
    paired: bool = True

    def find(self, rows: pd.DataFrame) -> Finding:
        """The term by seed, over the paper's data."""
        keys = ["data", "seed", "budget"] if self.paired else ["data", "seed"]
        found = [factor * mean_of(rows, method, quantity, keys) for factor, method, quantity in self.parts]
        total = sum(found[1:], found[0]).dropna()
        return Finding.over(self.what, total.groupby(["data", "seed"]).mean() + self.margin)


def mean_of(rows: pd.DataFrame, methods: Methods, quantity: Quantity, keys: list[str]) -> pd.Series:
    """A quantity by `keys`, with budget 0 where it has none."""
    chosen = quantity.of(rows)
    chosen = chosen[chosen["data"].isin([*paper_results.DATA, *paper_results.IMAGES])]
    if methods is not None:
        chosen = chosen[chosen["method"].isin([methods] if isinstance(methods, str) else methods)]
    return chosen.fillna({"budget": 0.0}).groupby(keys)["value"].mean()


def compared(
    sentence: str, quantity: Quantity, pairs: str, printed: Mapping[str, float] | None = None, *, scale: float = 1
) -> Claim:
    """The first method of each of the pairs has the larger value, and so has it in print."""
    against = opposite(pairs, printed) if printed else []
    agree = agreement(not against, ", ".join(against)) if printed else ""
    return Claim(sentence, larger(quantity, pairs, scale), agree)


def opposite(pairs: str, printed: Mapping[str, float], on: str = "") -> list[str]:
    """The pairs of which the paper prints the opposite."""
    return [
        f"{method_name(a)} {printed[a]} and {method_name(b)} {printed[b]}{on}"
        for a, b in paired(pairs)
        if printed[a] <= printed[b]
    ]


def larger(quantity: Quantity, pairs: str, scale: float = 1.0, on: str = "") -> list[Term]:
    """The first method of each of the pairs has the larger value."""
    return [
        Term(f"{method_name(a)} over {method_name(b)}{on}", [(scale, a, quantity), (-scale, b, quantity)])
        for a, b in paired(pairs)
    ]


def paired(text: str) -> list[tuple[str, str]]:
    """The pairs of methods in ``"a b > c d, e > f"``: each on the left with each other one on the right."""
    sides = [[side.split() for side in part.split(">")] for part in text.split(",")]
    return [(a, b) for left, right in sides for a in left for b in right if a != b]
