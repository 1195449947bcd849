"""Constraints on the parameters of estimators; `fit` checks them before training begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from askwise.errors import InvalidInput


class Limit(Protocol):
    """A set of allowed values; its text completes "must be ..."."""

    def allows(self, value: Any) -> bool:
        """Whether `value` is one of them."""
        ...


Limits = Mapping[str, Limit]


@dataclass(frozen=True)
class Whole:
    """A whole number of at least `least` and at most `most`, or None where that is allowed."""

    least: int
    optional: bool = False
    most: float = np.inf

    def __str__(self) -> str:
        bounds = f"of at least {self.least}" if np.isinf(self.most) else f"from {self.least} to {self.most}"
        return f"a whole number {bounds}{' or None' if self.optional else ''}"

    def allows(self, value: Any) -> bool:
        if value is None:
            return self.optional
        return isinstance(value, Integral) and not isinstance(value, bool) and self.least <= int(value) <= self.most


@dataclass(frozen=True)
class Number:
    """A finite number from `low` to `high`; `above` and `below` exclude the ends."""

    low: float = 0.0
    high: float = np.inf
    above: bool = False
    below: bool = False

    def __str__(self) -> str:
        if np.isinf(self.low):
            return "a finite number"
        if np.isinf(self.high):
            return f"a number {'>' if self.above else '>='} {self.low:g}"
        return f"a number in {'(' if self.above else '['}{self.low:g}, {self.high:g}{')' if self.below else ']'}"

    def allows(self, value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond all floats
            return False
        if not np.isfinite(number):
            return False
        at_end = (self.above and number == self.low) or (self.below and number == self.high)
        return self.low <= number <= self.high and not at_end


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def __str__(self) -> str:
        return "True or False"

    def allows(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    words: Sequence[str]

    def __str__(self) -> str:
        return f"one of {tuple(self.words)}"

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.words


@dataclass(frozen=True)
class Jobs:
    """A number of parallel jobs as joblib counts them."""

    def __str__(self) -> str:
        return "a whole number other than 0 or None"

    def allows(self, value: Any) -> bool:
        return value is None or (isinstance(value, Integral) and not isinstance(value, bool) and value != 0)


@dataclass(frozen=True)
class Several:
    """A list or tuple of values within `each`: `count` of them, or at least `fewest`."""

    each: Limit
    count: int | None = None
    fewest: int = 0

    def __str__(self) -> str:
        how_many = f"of {self.count} entries" if self.count is not None else f"of at least {self.fewest} entries"
        return f"a list or tuple {how_many}, each {self.each}"

    def allows(self, value: Any) -> bool:
        if not isinstance(value, Sequence) or isinstance(value, str):
            return False
        enough = len(value) == self.count if self.count is not None else len(value) >= self.fewest
        return enough and all(self.each.allows(entry) for entry in value)


FINITE = Number(-np.inf)
POSITIVE, SHARE, DROPOUT = Number(above=True), Number(0, 1), Number(0, 1, below=True)
RATE = Number(0, 1, above=True)
WIDTHS = Several(Whole(1))
ADAM: Limits = {"learning_rate": POSITIVE, "batch_size": Whole(1)}


def within(limit: Limit, default: Any) -> Any:
    """The default of a parameter of a dataclass, whose values must be within `limit`."""
    return field(default=default, metadata={"limit": limit})


def limits_of(kind: type) -> Limits:
    """The limits of the parameters of a dataclass; a subclass that changes only a default keeps the limit.

    >>> @dataclass
    ... class Forest:
    ...     n_trees: int = within(Whole(1), 100)
    >>> limits_of(Forest)
    {'n_trees': Whole(least=1, optional=False, most=inf)}
    """
    declared = [vars(base).get("__dataclass_fields__", {}) for base in reversed(kind.__mro__)]
    every = [parameter for parameters in declared for parameter in parameters.values()]
    return {parameter.name: parameter.metadata["limit"] for parameter in every if "limit" in parameter.metadata}


def check_limits(estimator: Any, limits: Limits | None = None) -> None:
    """Raise an error for parameters of `estimator` that are outside their limits; by default those of its class."""
    limits = limits_of(type(estimator)) if limits is None else limits
    check_values(type(estimator).__name__, {name: getattr(estimator, name) for name in limits}, limits)


def check_values(owner: str, values: Mapping[str, Any], limits: Limits) -> None:
    """Raise an error for arguments of the function `owner` that are outside their limits."""
    for name, limit in limits.items():
        if not limit.allows(values[name]):
            raise InvalidInput(f"{owner}: {name} must be {limit}; got {values[name]!r}.")
