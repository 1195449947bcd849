"""Rules as data: one condition per column, the value of a rule, and how a set of rules is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.trees.partitions import trapezium_membership


@dataclass(frozen=True)
class Interval:
    """``low < x <= high``."""

    low: float = -np.inf
    high: float = np.inf

    @property
    def bounds(self) -> tuple[float, ...]:
        """Values at which the membership may change."""
        return (self.low, self.high)

    def covers(self, low: float, high: float) -> bool:
        """Whether it holds between two neighboring bounds."""
        return self.low <= low and high <= self.high

    def membership(self, cells: np.ndarray) -> np.ndarray:
        """Degree to which each cell satisfies it, from 0 to 1; 0 where the cell is NaN."""
        return ((cells > self.low) & (cells <= self.high)).astype(float)


@dataclass(frozen=True)
class OneOf:
    """One of several values, such as the codes of some categories."""

    values: frozenset[float]

    @property
    def bounds(self) -> tuple[float, ...]:
        return tuple(sorted(self.values))

    def covers(self, low: float, high: float) -> bool:
        return False

    def membership(self, cells: np.ndarray) -> np.ndarray:
        return np.isin(cells, self.bounds).astype(float)


@dataclass(frozen=True)
class Term:
    """A fuzzy term, such as "high": a trapezium that is 0 up to a, 1 from b to c, 0 from d on."""

    trapezium: tuple[float, float, float, float]
    word: str

    def membership(self, cells: np.ndarray) -> np.ndarray:
        return np.nan_to_num(trapezium_membership(cells, np.array(self.trapezium)))


@dataclass(frozen=True)
class ForeignTerm:
    """A term with membership functions of another library; several are multiplied, then raised to `power`."""

    functions: tuple[Any, ...]
    word: str
    power: float = 1.0

    @classmethod
    def joined(cls, fuzzy_sets: Sequence[Any], power: float = 1.0) -> ForeignTerm:
        """From objects with `membership` and `name`; a power such as 2 means "very"."""
        words = " and ".join(dict.fromkeys(str(fuzzy_set.name) for fuzzy_set in fuzzy_sets))
        functions = tuple(fuzzy_set.membership for fuzzy_set in fuzzy_sets)
        return cls(functions, words if power == 1 else f"{words} (to the power of {power:g})", power)

    def membership(self, cells: np.ndarray) -> np.ndarray:
        known = ~np.isnan(cells)
        degrees = np.zeros(len(cells))
        degrees[known] = np.prod([self._degrees(function, cells[known]) for function in self.functions], axis=0)
        return np.clip(degrees, 0.0, 1.0) ** self.power

    def _degrees(self, function: Any, cells: np.ndarray) -> np.ndarray:
        degrees = np.asarray(function(cells), dtype=float)
        return degrees.mean(axis=tuple(range(1, degrees.ndim)))  # the midpoint of interval-valued degrees


@dataclass(frozen=True, eq=False)
class Rule:
    """``if every condition holds, then value``: conditions by column, and class probabilities (C,).

    Without a value, the rule's confidences on the training rows are used.
    """

    conditions: Mapping[int, Any]
    value: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules that are evaluated together.

    Attributes
    ----------
    rules
        The rules, over the input columns of the model.
    fuzzy
        Whether conditions hold by degrees; the prediction then averages all firing rules by their degrees.
    t_norm
        ``"product"`` or ``"minimum"``: how the degrees of the conditions of one rule are joined.
    ordered
        Whether only the first rule that fires counts, as in a list of "else if".
    default
        (C,) the prediction where no rule can fire any more; None = the class prior.
    exact
        Whether fully observed rules give the model's own prediction; otherwise the model itself is called then.
    """

    rules: Sequence[Rule]
    fuzzy: bool = False
    t_norm: str = "product"
    ordered: bool = False
    default: np.ndarray | None = None
    exact: bool = True

    @property
    def n_subrules(self) -> int:
        """Upper bound of the number of sub-rules: 2^k for a rule on k columns."""
        return sum(2 ** len(rule.conditions) for rule in self.rules)
