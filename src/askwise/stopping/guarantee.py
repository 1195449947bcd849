"""The maths of a stopping rule with a guarantee, on arrays: learn-then-test with a fixed sequence of thresholds.

A rule stops at the first state whose decision is final with a probability of at least t. On n rows that neither the
model nor the policy has seen, the number of cases with a loss (0 or 1) is binomial; a threshold passes when so few
losses would be improbable at the allowed risk. Thresholds are tested in an order fixed beforehand, from "never"
downwards, and testing ends at the first that fails, so that the confidence holds for whichever passed last
(Angelopoulos et al. 2021, "Learn then test").

Several promises, such as one for each class, are tested together along the same sequence: a threshold passes when it
passes for each of them. A threshold that breaks any promise passes no more often than that one test does, so that the
confidence holds for all promises at once without a correction for their number. Only where a promise may be broken
even without an early stop, and is then left out, each is tested at its share of the error (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.stats import beta, binom

from askwise.table.rows import ByRow

SMALLEST_STEP, STEP_RATIO = 1e-6, 1.15
START_MARGIN = 1.5
"""A conditional test starts where this many times the smallest useful number of cases are expected to stop early."""


@dataclass(frozen=True, eq=False)
class FullRuns(ByRow):
    """Cases along the policy until nothing more is bought: what any stopping rule would have seen.

    Attributes
    ----------
    certainty
        (n, T + 1) probability that the decision is final; -inf where a free feature comes next, because no rule stops
        before free features.
    decision
        (n, T + 1) position of the class decided for.
    spent
        (n, T + 1) price so far.
    n_steps
        (n,) number of purchases of the case; later entries repeat its last state.
    full
        (n,) decision from the full row.
    labels
        (n,) positions of the true classes, None where they are not known.
    proba
        (n, T + 1, C) predictions, None where they are not needed.
    final
        (n, T + 1, C) probability that the full row is decided for a class, None where it is not needed.
    further
        (n, T + 1, R - 1) what was spent so far of the resources other than money; None where there are none.
    """

    certainty: np.ndarray
    decision: np.ndarray
    spent: np.ndarray
    n_steps: np.ndarray
    full: np.ndarray
    labels: np.ndarray | None = None
    proba: np.ndarray | None = None
    final: np.ndarray | None = None
    further: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.full)

    @property
    def changed(self) -> np.ndarray:
        """(n, T + 1) whether the decision differs from that of the full row."""
        return np.asarray(self.decision != self.full[:, None])

    @property
    def worse(self) -> np.ndarray:
        """(n, T + 1) whether the decision is wrong where that of the full row is right."""
        assert self.labels is not None
        truth = self.labels[:, None]
        return np.asarray((self.full[:, None] == truth) & (self.decision != truth))

    def judged_by_class(self, shares: np.ndarray) -> Self:
        """The same runs with `class_certainty` as certainty."""
        assert self.final is not None
        by_class = class_certainty(self.final, self.decision, shares)
        return replace(self, certainty=np.where(np.isneginf(self.certainty), -np.inf, by_class))

    def stops_at(self, thresholds: np.ndarray) -> np.ndarray:
        """(n, K) step at which each case stops: the first with a certainty >= the threshold, otherwise its last."""
        highest = np.maximum.accumulate(self.certainty, axis=1)
        steps = [(highest < threshold).sum(axis=1) for threshold in thresholds]
        return np.minimum(np.stack(steps, axis=1), self.n_steps[:, None])

    def stops_within(self, budgets: np.ndarray) -> np.ndarray:
        """(n, K) last step of each case that a common budget pays for."""
        steps = [(self.spent <= budget * (1 + 1e-9)).sum(axis=1) - 1 for budget in budgets]
        return np.minimum(np.stack(steps, axis=1), self.n_steps[:, None])

    def early(self, steps: np.ndarray) -> np.ndarray:
        """(n, K) whether a case that stops at `steps` would have bought more."""
        return np.asarray(steps < self.n_steps[:, None])

    @classmethod
    def concatenated(cls, parts: Sequence[Self]) -> Self:
        """Several blocks of cases as one; the shorter ones are padded with their last state."""
        longest = max(run.certainty.shape[1] for run in parts)
        return super().concatenated([run._padded(longest) for run in parts])

    def _padded(self, length: int) -> Self:
        at = np.minimum(np.arange(length), self.certainty.shape[1] - 1)
        steps: dict[str, Any] = {
            name: part[:, at] for name, part in vars(self).items() if part is not None and part.ndim > 1
        }
        return replace(self, **steps)


@dataclass(frozen=True, eq=False)
class Requirement:
    """One promise: of the cases marked `members` (n,), at most the share `risk` stops with a loss (n, T + 1).

    `subject` says whom it is about, as in "at most 5% of ... stop with"; an `optional` one may be left out if it cannot
    be kept.
    """

    subject: str
    members: np.ndarray
    losses: np.ndarray
    risk: float
    optional: bool = False

    def p_values(self, steps: np.ndarray) -> np.ndarray:
        """(K,) the p value of each rule, by which cases stop at `steps` (n, K)."""
        lost = np.take_along_axis(self.losses, steps, axis=1)[self.members]
        return p_values(lost.sum(axis=0), len(lost), self.risk)


def class_certainty(final: np.ndarray, decision: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(...) how certain a decision is, measured by how rare each other class is.

    1 less the largest factor by which the full row is more probably decided for another class than the usual `shares`
    (C,) of these decisions: 1 where that is impossible, 0 or less where another class is as probable as if nothing was
    known. A case may then stop at a common decision only where a rare one has become much rarer still.

    Parameters
    ----------
    final, decision
        (..., C) as in `FullRuns.final`, and (...).

    >>> class_certainty(np.array([[0.96, 0.04], [0.999, 0.001]]), np.array([0, 0]), np.array([0.9, 0.1])).round(2)
    array([0.6 , 0.99])
    """
    times = final / shares
    np.put_along_axis(times, decision[..., None], 0.0, axis=-1)
    return np.asarray(1 - times.max(axis=-1))


def threshold_sequence() -> np.ndarray:
    """The thresholds in the order of their tests: infinity, 1 - 1e-6, then 1 - geometric steps down to 0."""
    count = int(np.log(1 / SMALLEST_STEP) / np.log(STEP_RATIO)) + 1
    return np.r_[np.inf, 1 - SMALLEST_STEP * STEP_RATIO ** np.arange(count), 0.0]


def rows_needed(risk: float, confidence: float) -> int:
    """The smallest number of rows, all without a loss, that shows a risk of at most `risk`.

    >>> rows_needed(0.05, 0.9), rows_needed(0.02, 0.9)
    (45, 114)
    """
    return int(np.ceil(np.log1p(-confidence) / np.log1p(-risk) - 1e-9))


def p_values(losses: np.ndarray, cases: np.ndarray | int, risk: float) -> np.ndarray:
    """(K,) probability of so few `losses` among so many `cases` if the risk were `risk`; 1 without cases."""
    return np.asarray(binom.cdf(losses, cases, risk))


def exact_interval(losses: int, cases: int, confidence: float) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of the share without a loss; 0 to 1 without cases."""
    tail, kept = (1 - confidence) / 2, cases - losses
    low = float(beta.ppf(tail, kept, losses + 1)) if kept else 0.0
    return low, float(beta.ppf(1 - tail, kept + 1, losses)) if losses else 1.0


def last_passed(p: np.ndarray, confidence: float) -> int | None:
    """Position of the last p value before the first that is above 1 - confidence; None where the first one is."""
    failed = np.append(p > (1 - confidence) * (1 + 1e-12), True)
    first = int(failed.argmax())
    return first - 1 if first else None


def early_start(early_share: np.ndarray, n_rows: int, needed: int) -> int:
    """Position of the first threshold at which enough of `n_rows` cases can be expected to stop early.

    `early_share` (K,) must come from other rows than those of the test.
    """
    enough = min(START_MARGIN * needed, (needed + n_rows) / 2)
    reached = early_share * n_rows >= enough
    return int(reached.argmax()) if reached.any() else len(early_share)


def price_thresholds(runs: FullRuns) -> tuple[np.ndarray, np.ndarray]:
    """All thresholds that differ in what they buy for some case, ascending, and the average price of each."""
    highest = np.maximum.accumulate(runs.certainty, axis=1)[:, :-1].ravel()
    order = np.argsort(highest, kind="stable")
    values, first = np.unique(highest[order], return_index=True)
    paid = np.r_[0.0, np.cumsum(np.diff(runs.spent, axis=1).ravel()[order])] / len(runs)
    thresholds = np.r_[0.0, (values[:-1] + values[1:]) / 2, np.inf]
    free = np.isneginf(thresholds)  # a free feature comes next: no threshold stops there
    return thresholds[~free], paid[np.r_[first, len(highest)]][~free]
