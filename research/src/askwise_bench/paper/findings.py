"""What the seeds say about one number: its interval, its verdict, its bound, and how many seeds would decide.

A finding holds if its number is above 0. The seeds are random splits of the same tables and share rows, so the variance
of a mean over n seeds is more than 1 / n of theirs: the ratio of test to training rows is added to 1 / n (Nadeau and
Bengio, 2003). That is the floor of an interval, which no number of seeds passes. Several tables are averaged: their
splits are independent, so that their variances add, with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from scipy import stats

HOLDS, FAILS, EQUAL = "holds", "does not hold", "practically equal"
UNDECIDED, NOT_MEASURED = "undecided", "not measured"
CONFIDENCE = 0.95
TEST_TO_TRAINING = 0.25
"""Test rows per training row where the rows do not say it: 20 and 80 % of a table."""

FEWEST_SEEDS = 3
"""With fewer nothing is decided: on small test sets two seeds can give exactly the same difference."""

MOST_SEEDS = 1000
"""More than anybody runs: what these do not decide is left to the floor of the correction."""


@dataclass(frozen=True)
class Scale:
    """In what a number is counted, and how small a difference of it is none; `equal` 0 = no size is called none."""

    unit: str = ""
    equal: float = 0.0

    def scaled(self, factor: float) -> Scale:
        """The same in percent."""
        return self if factor == 1 else Scale("points" if factor == 100 else "", factor * self.equal)


NO_SCALE = Scale()
RATE = Scale("", 0.01)
"""A share of the rows, right or wrong, or an area under such shares: a difference of a point is none."""

NATS = Scale("nats", 0.02)
SCALES = {
    **dict.fromkeys(("accuracy", "random_accuracy", "middle_accuracy", "full_accuracy", "kept_accuracy"), RATE),
    **dict.fromkeys(("aurc", "excess_aurc", "auroc", "risk_at_80", "risk_at_90", "error_saved", "ece"), RATE),
    **dict.fromkeys(("entropy", "random_entropy", "mean_kl_ref", "mean_kl_full"), NATS),
}
"""By metric. Epistemic uncertainty has none: the paper's own effect on it, .008 nats, is below .02."""


@dataclass(frozen=True, eq=False)
class Finding:
    """What must be above 0 for a claim to hold: one number per seed, by table; empty if it was not measured.

    A finding that is `exact` comes from formulas and has no seeds. `ratios` are the test rows per training row.
    """

    what: str
    samples: Mapping[str, np.ndarray] = field(default_factory=dict)
    scale: Scale = Scale()
    ratios: Mapping[str, float] = field(default_factory=dict)
    exact: float | None = None

    @classmethod
    def over(cls, what: str, by_seed: pd.Series, scale: Scale = NO_SCALE) -> Self:
        """Of numbers by (data, seed). Tables with too few seeds are left out where others have enough."""
        found = {str(data): part.to_numpy(dtype=float) for data, part in by_seed.dropna().groupby("data")}
        enough = {data: values for data, values in found.items() if len(values) >= FEWEST_SEEDS}
        return cls(what, enough or found, scale)

    @property
    def measured(self) -> bool:
        """Whether there is a number at all."""
        return self.exact is not None or bool(self.samples)

    @property
    def mean(self) -> float:
        """Over the tables, of the means over their seeds."""
        return float(np.mean([each.mean() for each in self.samples.values()])) if self.exact is None else self.exact

    @property
    def seeds(self) -> int:
        """Of the table with the fewest."""
        return min(map(len, self.samples.values()), default=0)

    def interval(self, n_compared: int = 1, seeds: int = 0) -> tuple[float, float]:
        """Bounds of the mean by the t distribution, wide enough for the least of `n_compared` (Bonferroni).

        With `seeds`, as if each table had at least so many of the same mean and spread. There are no bounds where a
        table has fewer than `FEWEST_SEEDS`, nor where all seeds agree to the last digit: that says how coarse the
        number is, not how sure.
        """
        if self.exact is not None:
            return self.exact, self.exact
        if self.seeds < FEWEST_SEEDS:
            return -np.inf, np.inf
        n = np.array([max(seeds, len(each)) for each in self.samples.values()])
        ratios = np.array([self.ratios.get(data, TEST_TO_TRAINING) for data in self.samples])
        parts = np.array([each.var(ddof=1) for each in self.samples.values()]) * (1 / n + ratios)
        if parts.sum() <= (1e-9 * max(1.0, abs(self.mean))) ** 2:
            return -np.inf, np.inf
        freedom = parts.sum() ** 2 / (parts**2 / (n - 1)).sum()
        quantile = stats.t.ppf(1 - (1 - CONFIDENCE) / 2 / n_compared, freedom)
        half = quantile * np.sqrt(parts.sum()) / len(n)
        return float(self.mean - half), float(self.mean + half)

    def verdict(self, n_compared: int = 1, seeds: int = 0) -> str:
        """Above 0; or below 0 by an interval that allows for `n_compared`; or, where the scale says so, within none.

        The last is two one-sided tests at once: the interval as a whole is nearer to 0 than what counts as none.
        """
        if not self.measured:
            return NOT_MEASURED
        low, high = self.interval(1, seeds)
        if low > 0:
            return HOLDS
        if self.interval(n_compared, seeds)[1] < 0:
            return FAILS
        return EQUAL if max(-low, high) < self.scale.equal else UNDECIDED

    @property
    def bound(self) -> str:
        """What the data leave open."""
        low, high = self.interval()
        if self.seeds < FEWEST_SEEDS:
            return f"nothing yet: {_seeds(self.seeds)}"
        if not np.isfinite(low):
            return "nothing: all seeds agree to the last digit"
        if not self.scale.equal:
            return f"between {low:+.2g} and {high:+.2g}"
        return f"at most {max(-low, high):.2g} {self.scale.unit}".rstrip() + " either way"

    def __str__(self) -> str:
        if self.exact is not None:
            return f"{self.what} {self.exact:+.3g} (exact)"
        low, high = self.interval()
        bounds = f"{low:+.3g} to {high:+.3g}" if np.isfinite(low) else _seeds(self.seeds)
        return f"{self.what} {round(self.mean, 9) + 0.0:+.3g} ({bounds})"


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count != 1)}"


def together(verdicts: list[str]) -> str:
    """Of a sentence that says all of these: one that fails refutes it, and one that is open leaves it open."""
    if FAILS in verdicts:
        return FAILS
    if set(verdicts) == {HOLDS}:
        return HOLDS
    return EQUAL if set(verdicts) <= {HOLDS, EQUAL} else UNDECIDED


def seeds_to_decide(findings: list[Finding]) -> int | None:
    """How many seeds a table would decide a sentence, were mean and spread to stay; None = no number of them."""

    def decided(seeds: int) -> bool:
        n_compared = sum(finding.measured for finding in findings)
        return together([finding.verdict(n_compared, seeds) for finding in findings]) != UNDECIDED

    if not decided(MOST_SEEDS):
        return None
    low, high = FEWEST_SEEDS - 1, MOST_SEEDS
    while high - low > 1:  # more seeds never widen an interval
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


def test_to_training(rows: pd.DataFrame) -> dict[str, float]:
    """Test rows per training row by data, where a study has counted both."""
    counted = rows[rows["metric"].isin(["training_rows", "test_rows"])]
    means = counted.groupby(["data", "metric"], observed=True)["value"].mean().unstack("metric")
    if not {"training_rows", "test_rows"} <= set(means):
        return {}
    ratios = (means["test_rows"] / means["training_rows"]).dropna()
    return {str(data): float(ratio) for data, ratio in ratios.items()}
