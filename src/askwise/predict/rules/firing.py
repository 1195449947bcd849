"""Firing degrees: the degree to which the observed conditions of each rule hold for each row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from askwise.table.subsets import packed
from askwise.trees.fuzzy_growth import T_NORMS


class CrispFiring:
    """One bit per rule: each cell is looked up as the packed bits of the rules that it satisfies, joined by `and`.

    Parameters
    ----------
    conditions
        ``conditions[u]`` lists (rules, condition) for the u-th column: one entry per distinct condition.
    n_rules
        L.
    """

    def __init__(self, conditions: Sequence[Sequence[tuple[np.ndarray, Any]]], n_rules: int) -> None:
        self.n_rules = n_rules
        self._columns = [_Stretches(of_column, n_rules) for of_column in conditions]
        self._everyone = packed(np.ones((1, n_rules), dtype=bool))

    def look_up(self, inputs: np.ndarray) -> list[np.ndarray]:
        """Per column, the rules that each row's cell satisfies, (n, W) words; undefined where the cell is NaN."""
        return [stretches(inputs[:, u]) for u, stretches in enumerate(self._columns)]

    def __call__(self, n: int, looked_up: list[np.ndarray], present: np.ndarray) -> np.ndarray:
        """(n, L) 1 or 0, for the observed columns `present`, (n, U) or (U,) if it is the same for all rows."""
        alive = np.repeat(self._everyone, n, axis=0)
        for u, words in enumerate(looked_up):
            if present.ndim == 1:
                if present[u]:
                    alive &= words
            else:
                np.bitwise_and(alive, words, out=alive, where=present[:, [u]])
        bits = np.unpackbits(alive.view(np.uint8), axis=1, count=self.n_rules, bitorder="little")
        return bits.astype(float)


class _Stretches:
    """One column divided at all bounds of its conditions; between two bounds the same conditions hold.

    Interval 2i lies before the i-th bound, 2i + 1 is the bound itself.
    """

    def __init__(self, conditions: Sequence[tuple[np.ndarray, Any]], n_rules: int) -> None:
        self.bounds = np.unique([b for _, c in conditions for b in c.bounds if np.isfinite(b)])
        edges = np.array([-np.inf, *self.bounds, np.inf])
        alive = np.ones((2 * len(self.bounds) + 1, n_rules), dtype=bool)
        for rules, condition in conditions:
            between = [condition.covers(low, high) for low, high in pairwise(edges)]
            alive[0::2, rules] = np.array(between)[:, None]
            alive[1::2, rules] = condition.membership(self.bounds)[:, None] > 0
        self.table = packed(alive)

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        before = np.searchsorted(self.bounds, cells, side="left")
        on = np.searchsorted(self.bounds, cells, side="right") > before
        return self.table[np.where(np.isnan(cells), 0, 2 * before + on)]


class FuzzyFiring:
    """Degrees of the conditions joined by a t-norm; parameters as for `CrispFiring`."""

    def __init__(self, conditions: Sequence[Sequence[tuple[np.ndarray, Any]]], n_rules: int, t_norm: str) -> None:
        self.n_rules = n_rules
        self._conditions = conditions
        self._t_norm = t_norm  # by its name: a function is not data that can be saved

    def look_up(self, inputs: np.ndarray) -> list[np.ndarray]:
        """Per column, the degree of each rule's condition, (n, L); 1 for rules without a condition on it."""
        return [self._degrees(of_column, inputs[:, u]) for u, of_column in enumerate(self._conditions)]

    def __call__(self, n: int, looked_up: list[np.ndarray], present: np.ndarray) -> np.ndarray:
        """(n, L) degrees from 0 to 1; `present` as in `CrispFiring`."""
        joined = np.ones((n, self.n_rules))
        for u, degrees in enumerate(looked_up):
            seen = present[u] if present.ndim == 1 else present[:, [u]]
            T_NORMS[self._t_norm](joined, degrees, out=joined, where=seen)
        return joined

    def _degrees(self, conditions: Sequence[tuple[np.ndarray, Any]], cells: np.ndarray) -> np.ndarray:
        degrees = np.ones((len(cells), self.n_rules))
        for rules, condition in conditions:
            degrees[:, rules] = condition.membership(cells)[:, None]
        return degrees
