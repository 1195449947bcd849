"""Where to cut the values of a column, so that cases on the same side agree: an exact search over few cut points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MOST_BLOCKS = 128
"""Runs of neighboring values between which a number may be cut."""

MOST_BRANCHES = 3
PRICE_OF_A_BRANCH = 2.0
"""The log-likelihood in nats that another branch must gain. It keeps the chart small and cuts out of the noise."""


class Grouping(NamedTuple):
    """The groups of the values of a column, and the log-likelihood that they gain over one group.

    `cuts` of a number: a value belongs to the group above the cuts that it reaches. `codes` of a category, by group.

    Examples
    --------
    >>> Grouping(2.5, [13.0], []).n_groups
    2
    """

    gain: float
    cuts: list[float]
    codes: list[list[int]]

    @property
    def n_groups(self) -> int:
        return max(len(self.cuts) + 1, len(self.codes))


def group_numbers(values: np.ndarray, labels: Sequence[np.ndarray], fewest: int) -> Grouping:
    """Cut numbers (n,) into few ranges with at least `fewest` cases each, in which the `labels`, (n,) each, agree.

    >>> group_numbers(np.arange(40.0), [np.arange(40) >= 13], fewest=5).cuts
    [13.0]
    """
    distinct, which = np.unique(values, return_inverse=True)
    first = _candidates(which, labels) if len(distinct) > MOST_BLOCKS else np.arange(len(distinct))
    block = np.searchsorted(first, which, side="right") - 1
    gain, edges = segments([_counts(block, label) for label in labels], fewest)
    return Grouping(gain, [neat_cut(distinct[first[e] - 1], distinct[first[e]]) for e in edges], [])


def group_categories(codes: np.ndarray, labels: Sequence[np.ndarray], fewest: int) -> Grouping:
    """Group the categories of `codes` (n,) in the same way.

    They are ordered by the most frequent first label and the average of the last, which for two classes makes the
    search over all groupings exact (Breiman et al., 1984, Theorem 4.5), and then cut like numbers.

    Examples
    --------
    >>> group_categories(np.array([0, 1, 2] * 10), [np.array([0, 1, 1] * 10)], fewest=5).codes
    [[0], [1, 2]]
    """
    present, which = np.unique(codes.astype(int), return_inverse=True)
    mode = _counts(which, labels[0]).argmax(axis=1)
    mean = np.bincount(which, weights=labels[-1].astype(float)) / np.bincount(which)
    order = np.lexsort((mean, mode))
    gain, edges = segments([_counts(np.argsort(order)[which], label) for label in labels], fewest)
    return Grouping(gain, [], [sorted(group.tolist()) for group in np.split(present[order], edges)])


def segments(counts: Sequence[np.ndarray], fewest: int) -> tuple[float, list[int]]:
    """Cut V blocks, in order, into at most `MOST_BRANCHES` runs, in which the labels agree best.

    Parameters
    ----------
    counts
        For each kind of label, (V, L): how often each block has each label.
    fewest
        Number of cases that every run must have.

    Returns
    -------
    The log-likelihood gained after the price of the branches, and the first block of each run but the first.
    """
    before = np.r_[0, counts[0].sum(axis=1).cumsum()]
    score = np.sum([_log_likelihoods(count) for count in counts], axis=0)  # (V + 1, V + 1): run from i to before j
    score[before[None, :] - before[:, None] < max(fewest, 1)] = -np.inf
    best, origins = [score[0]], []
    for _ in range(MOST_BRANCHES - 1):
        total = best[-1][:, None] + score
        origins.append(total.argmax(axis=0))
        best.append(total.max(axis=0))
    ends = np.array([run[-1] for run in best]) - PRICE_OF_A_BRANCH * np.arange(MOST_BRANCHES)
    if not np.isfinite(ends[0]) or ends.argmax() == 0:
        return 0.0, []
    edges = [len(counts[0])]
    for origin in reversed(origins[: int(ends.argmax())]):
        edges.insert(0, int(origin[edges[0]]))
    return float(ends.max() - ends[0]), edges[:-1]


def neat_cut(below: float, above: float) -> float:
    """A number with few digits that is larger than `below` and at most `above`, near the middle.

    >>> neat_cut(0.1337, 0.1352), neat_cut(688.6, 711.2), neat_cut(0.0, 1.0)
    (0.134, 700.0, 1.0)
    """
    middle = below + (above - below) / 2
    coarsest = -math.ceil(math.log10(max(abs(below), abs(above))))
    for digits in range(coarsest, coarsest + 17):
        if digits > 0 and float(below).is_integer() and float(above).is_integer():
            return float(math.ceil(middle))
        if below < round(middle, digits) <= above:
            return float(round(middle, digits)) + 0.0  # never -0.0
    return float(above)


def _candidates(which: np.ndarray, labels: Sequence[np.ndarray]) -> np.ndarray:
    """The first value of each block, where there are many values: quantiles, and where the labels change if rarely.

    Without a smallest number of cases, best cuts are only where labels change (Fayyad and Irani, 1993).
    """
    kind = np.unique(np.column_stack(labels), axis=0, return_inverse=True)[1].reshape(-1)
    n_values = int(which.max()) + 1
    lowest, highest = np.full(n_values, len(kind)), np.full(n_values, -1)
    np.minimum.at(lowest, which, kind)
    np.maximum.at(highest, which, kind)
    alike = (lowest[1:] == highest[1:]) & (lowest[1:] == lowest[:-1]) & (highest[1:] == highest[:-1])
    changes = np.flatnonzero(~alike) + 1
    quantiles = np.quantile(which, np.linspace(0, 1, MOST_BLOCKS, endpoint=False), method="higher")
    return np.unique(np.r_[0, quantiles.astype(int), changes if len(changes) <= MOST_BLOCKS else []]).astype(int)


def _counts(block: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(V, L) number of cases of each label in each block."""
    kinds, label = np.unique(label, return_inverse=True)
    counts = np.zeros((int(block.max(initial=0)) + 1, len(kinds)))
    np.add.at(counts, (block, label), 1)
    return counts


def _log_likelihoods(counts: np.ndarray) -> np.ndarray:
    """(V + 1, V + 1) log-likelihood of the labels of the blocks from i to before j under their own frequencies."""
    before = np.vstack([np.zeros(counts.shape[1]), counts.cumsum(axis=0)])
    within = np.maximum(before[None, :] - before[:, None], 0.0)
    return _x_log_x(within).sum(axis=2) - _x_log_x(within.sum(axis=2))


def _x_log_x(x: np.ndarray) -> np.ndarray:
    return x * np.log(np.where(x > 0, x, 1.0))
