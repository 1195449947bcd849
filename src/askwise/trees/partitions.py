"""Fuzzy terms: each column is covered by overlapping trapezia whose memberships sum to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.trees.growth import midway

_WORDS = {
    2: ("low", "high"),
    3: ("low", "medium", "high"),
    5: ("very low", "low", "medium", "high", "very high"),
}


def trapezium_membership(x: Any, trapezium: Any) -> np.ndarray:
    """Membership of `x` in the trapezium (a, b, c, d): 0 up to a, 1 from b to c, 0 from d on, linear in between.

    An infinite pair means that there is no edge on that side. A crisp edge (a = b, or c = d) belongs to the trapezium
    on its left, as in ``x <= threshold``. The membership of NaN is NaN.

    >>> trapezium_membership([0.0, 1.5, 2.5, 9.0], (1, 2, 2, 3))
    array([0. , 0.5, 0.5, 0. ])
    >>> trapezium_membership([1.0, 2.0, 3.0], (1, 1, 2, 2))
    array([0., 1., 0.])
    """
    a, b, c, d = trapezium
    return ramp(x, a, b) - ramp(x, c, d)


def ramp(x: Any, start: float, end: float) -> np.ndarray:
    """Height at `x` of a linear slope from 0 at `start` to 1 at `end`; a step (start = end) rises after its edge."""
    x = np.asarray(x, dtype=float)
    if start == end:
        return np.where(np.isnan(x), np.nan, x > start)
    return (np.clip(x, start, end) - start) / (end - start)


@dataclass(frozen=True, eq=False)
class Partition:
    """The terms of one column, from low to high: a trapezium and a name for each.

    Attributes
    ----------
    trapezia
        (T, 4): a, b, c, d of each term. A term ends where the next one begins, so that memberships sum to 1; the
        first one has no lower edge, and the last one no upper edge.
    names
        T words.

    Examples
    --------
    >>> import numpy as np
    >>> from askwise.trees import Partition
    >>> terms = Partition(np.array([[0, 0, 1, 2], [1, 2, 3, 3]]), ("low", "high"))
    >>> terms.memberships(np.array([0.0, 1.5, 9.0])).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """

    trapezia: np.ndarray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def slopes(self, x: Any) -> np.ndarray:
        """(n, T + 1) membership in "this term or a later one"; terms first..last have column first - column last+1."""
        rises = [ramp(x, a, b) for a, b in self.trapezia[:, :2]]
        return np.stack([*rises, np.zeros(np.shape(x))], axis=-1)

    def memberships(self, x: Any) -> np.ndarray:
        """(n, T) membership of each value in each term; rows sum to 1."""
        slopes = self.slopes(x)
        return slopes[..., :-1] - slopes[..., 1:]

    def trapezium(self, first: int, last: int) -> np.ndarray:
        """(4,) the adjacent terms first..last as one trapezium: the sum of theirs."""
        return np.concatenate([self.trapezia[first, :2], self.trapezia[last, 2:]])

    def words(self, first: int, last: int) -> str:
        """The terms first..last in short: "low", "low or medium", "low to high", or "not high"."""
        names = self.names[first : last + 1]
        others = self.names[:first] + self.names[last + 1 :]
        if not others:
            return "any"
        if len(names) == 1:
            return names[0]
        said = f"{names[0]} {'or' if len(names) == 2 else 'to'} {names[-1]}"
        denied = f"not {others[0]}"
        return denied if len(others) == 1 and len(denied) < len(said) else said


def quantile_partition(x: np.ndarray, n_terms: int, weights: np.ndarray) -> Partition:
    """Terms from the quantiles of a column `x` (n,) whose rows have positive `weights` (n,).

    The 2T - 1 intervals between equally spaced quantiles are alternately the core of a term and the overlap with the
    next. An overlap without width (frequently repeated values) is left out, and its two terms are merged. A column
    of at most `n_terms` distinct values has a crisp term for each, named by the value.

    >>> quantile_partition(np.arange(1.0, 6.0), 3, np.ones(5)).trapezia
    array([[-inf, -inf,   1.,   2.],
           [  1.,   2.,   3.,   4.],
           [  3.,   4.,  inf,  inf]])
    """
    values, inverse = np.unique(x, return_inverse=True)
    if len(values) <= n_terms:
        edges = midway(values[:-1], values[1:])
        return _partition(np.column_stack([edges, edges]), tuple(_spelled(value) for value in values))
    overlaps = _overlaps(values, np.bincount(inverse, weights=weights), n_terms)
    if not len(overlaps):
        overlaps = _overlaps(values, np.ones(len(values)), n_terms)
    return _partition(overlaps, term_names(len(overlaps) + 1))


def term_names(n_terms: int) -> tuple[str, ...]:
    """The words for `n_terms` terms, from low to high."""
    return _WORDS.get(n_terms) or tuple(f"level {k} of {n_terms}" for k in range(1, n_terms + 1))


def _overlaps(values: np.ndarray, weights: np.ndarray, n_terms: int) -> np.ndarray:
    """(k, 2) quantiles between which adjacent terms overlap, those without width left out."""
    steps = np.arange(1, 2 * n_terms - 1) / (2 * n_terms - 1)
    reached = np.cumsum(weights)
    # The smallest value that at least this share of the weight does not exceed, so that a row of weight 2 is two rows.
    places = np.searchsorted(reached, steps * reached[-1] * (1 - 1e-12))
    overlaps = values[places].reshape(-1, 2)
    return overlaps[overlaps[:, 0] < overlaps[:, 1]]


def _partition(overlaps: np.ndarray, names: tuple[str, ...]) -> Partition:
    """Terms that overlap between the pairs of `overlaps` (T - 1, 2)."""
    rising = np.vstack([[-np.inf, -np.inf], overlaps])
    falling = np.vstack([overlaps, [np.inf, np.inf]])
    return Partition(np.hstack([rising, falling]), names)


def _spelled(value: float) -> str:
    return str(float(value)).removesuffix(".0")
