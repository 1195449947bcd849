"""The current price of each feature, minus shared set-up costs that are already paid."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from askwise.errors import InvalidInput, listed

AFFORDABLE_WITHIN = 1e-9


def affordable(price: Any, money: Any) -> Any:
    """Whether `price` is at most `money`, within a relative 1e-9, so that ten times 0.1 pays a price of 1.

    >>> affordable(1.0, sum([0.1] * 10)), affordable(1.0, 0.99)
    (True, False)
    """
    return price * (1 - AFFORDABLE_WITHIN) <= money


class Prices:
    """Price of each feature, with set-up costs shared between features.

    Parameters
    ----------
    costs
        One price per feature: an array in feature order, a mapping or Series from feature name to price (features it
        does not name cost 1), or None for 1 each. A price of 0 means free.
    shared
        Pairs ``(features, saving)``: as soon as one of the features is acquired, each of the others is cheaper by
        `saving`. Features are given by name or by position.
    time
        How long the result of each feature takes, in hours or any unit: an array, or a mapping (features it does not
        name take no time). It changes no choice by itself: sessions use it for results that are out, and for deadlines.

    Examples
    --------
    The first blood test pays 2.10 for the needle, the second does not:

    >>> prices = Prices([7.27, 5.20, 1.0], shared=[([0, 1], 2.10)])
    >>> prices.now(np.array([[False, False, False], [True, False, False]])).round(2).tolist()
    [[7.27, 5.2, 1.0], [7.27, 3.1, 1.0]]
    """

    time: Any = None

    def __init__(
        self,
        costs: Sequence[float] | np.ndarray | pd.Series | Mapping[Any, float] | None = None,
        shared: Sequence[tuple[Any, float]] | None = (),
        time: Sequence[float] | np.ndarray | pd.Series | Mapping[Any, float] | None = None,
    ) -> None:
        self.costs: Any = costs
        self.shared = () if shared is None else shared
        self.time = time

    def __repr__(self) -> str:
        time = "" if self.time is None else f", time={self.time!r}"
        return f"Prices({self.costs!r}, shared={self.shared!r}{time})"

    def resolve(self, features: Sequence[Any]) -> Prices:
        """The same prices in feature order, every name checked and replaced by its position."""
        costs = _in_order(self.costs, features)
        if isinstance(self.shared, str | Mapping) or not isinstance(self.shared, Iterable):
            raise InvalidInput(f"Prices: shared must be a list of pairs (features, saving); got {self.shared!r}.")
        shared = [_resolve_shared(entry, features, costs) for entry in self.shared]
        savings = np.zeros(len(costs))
        for together, saving in shared:
            savings[together] += saving
        for i in np.flatnonzero(~affordable(savings, costs)).tolist():
            raise InvalidInput(
                f"Prices: the shared savings of {features[i]!r} add up to {savings[i]:g}, more than its price "
                f"{costs[i]:g}. A saving is the part of the price that is paid once for the whole set; lower it."
            )
        return Prices(costs, shared, None if self.time is None else _in_order(self.time, features, 0.0, "time"))

    @property
    def hours(self) -> np.ndarray:
        """(M,) how long each result takes; zeros where no times are given."""
        return np.zeros(len(self.costs)) if self.time is None else np.asarray(self.time, dtype=float)

    def now(self, mask: np.ndarray) -> np.ndarray:
        """Price of each feature given the features already acquired; `mask` and the result are (n, M)."""
        prices = np.tile(np.asarray(self.costs, dtype=float), (len(mask), 1))
        for together, saving in self.shared:
            acquired = mask[:, together]
            another = acquired.sum(axis=1, keepdims=True) - acquired > 0
            prices[:, together] -= saving * another
        return np.maximum(prices, 0.0)

    def total(self, mask: np.ndarray | None = None) -> Any:
        """Price of the features of each row of `mask` (n, M) together, (n,), each set-up cost paid once.

        Without a mask: the price of everything, a number.
        """
        if mask is None:
            return float(self.total(np.ones((1, len(self.costs)), dtype=bool))[0])
        price = mask @ np.asarray(self.costs, dtype=float)
        for together, saving in self.shared:
            price = price - saving * np.maximum(mask[:, together].sum(axis=1) - 1, 0)
        return np.asarray(price)

    def added(self, mask: np.ndarray, sets: np.ndarray) -> np.ndarray:
        """(n, Q) what each of `sets` (Q, M) adds to the price where the features of `mask` (n, M) are acquired.

        >>> had, sets = np.array([[True, False, False]]), np.array([[True, True, False], [False, False, True]])
        >>> Prices(np.array([7.0, 5.0, 1.0]), shared=[([0, 1], 2.0)]).added(had, sets).tolist()
        [[3.0, 1.0]]
        """
        costs, had, wanted = np.asarray(self.costs, dtype=float), mask.astype(float), sets.astype(float)
        price = (1 - had) @ (wanted * costs).T
        for together, saving in self.shared:
            before = had[:, together].sum(axis=1, keepdims=True)
            both = before + wanted[:, together].sum(axis=1) - had[:, together] @ wanted[:, together].T
            price -= saving * (np.maximum(both - 1, 0) - np.maximum(before - 1, 0))
        return np.maximum(price, 0.0)

    @property
    def uniform(self) -> bool:
        """Whether all features that are not free cost the same, whatever has been acquired."""
        costs = np.asarray(self.costs, dtype=float)
        paid = costs[costs > 0]
        return not len(self.shared) and (len(paid) == 0 or bool(np.all(paid == paid[0])))


def as_prices(costs: Any) -> Prices:
    """`costs` of the public interface (None, array, mapping or Prices) as Prices."""
    return costs if isinstance(costs, Prices) else Prices(costs)


def check_budgets(budgets: Any) -> list[float]:
    """Budgets to compare, at least one; None among them is unlimited."""
    given = list(budgets) if np.iterable(budgets) and not isinstance(budgets, str) else []
    if not given:
        raise InvalidInput(f"budgets must be a list of at least one number; got {budgets!r}.")
    if any(np.ndim(budget) for budget in given):
        raise InvalidInput(f"budgets must be a list of numbers, the same for all rows; got {budgets!r}.")
    return [float(check_budget(budget, 1, "each of budgets")[0]) for budget in given]


def check_budget(budget: Any, n: int, name: str = "budget") -> np.ndarray:
    """Budget per row, (n,): one number or one per row; None is unlimited."""
    if budget is None:
        return np.full(n, np.inf)
    money = _real_array(budget)
    if money is None:
        raise InvalidInput(f"{name} must be a number >= 0, or None for no limit; got {budget!r}.")
    if money.ndim not in (0, 1) or (money.ndim == 1 and len(money) != n):
        raise InvalidInput(f"{name} must be one number or {n} numbers (one per row); got shape {money.shape}.")
    if not (money >= 0).all():
        raise InvalidInput(f"{name} must be >= 0 (None means unlimited); got {money[~(money >= 0)].flat[0]:g}.")
    return np.broadcast_to(money, (n,)).copy()


def _in_order(costs: Any, features: Sequence[Any], unnamed: float = 1.0, owner: str = "costs") -> np.ndarray:
    if costs is None:
        return np.full(len(features), unnamed)
    if isinstance(costs, pd.Series):
        costs = _named(costs, owner)
    if isinstance(costs, Mapping):
        values = np.full(len(features), np.nan)
        for name, price in costs.items():
            i = _position(name, features, owner)
            if not np.isnan(values[i]):
                raise InvalidInput(
                    f"{owner} names the feature {features[i]!r} twice, by name and by position; name it once."
                )
            values[i] = _price(price, name, owner)
        return np.where(np.isnan(values), unnamed, values)
    given = _real_array(costs)
    if not isinstance(costs, np.ndarray) and np.iterable(costs):
        for name, price in zip(features, costs, strict=False):
            if isinstance(price, bool | np.bool_):  # which an array of numbers would take for 1 or 0
                _price(price, name, owner)
    if given is None:
        raise InvalidInput(
            f"{owner} must be numbers in feature order, a dict {{feature name: price}} or askwise.Prices; "
            f"got {costs!r}."
        )
    if given.shape != (len(features),):
        raise InvalidInput(
            f"{owner} must hold one price for each of the {len(features)} features; got shape {given.shape}. "
            f"The features are: {listed(features)}."
        )
    return np.array([_price(price, name, owner) for price, name in zip(given, features, strict=True)])


def _named(costs: pd.Series, owner: str) -> Any:
    """A Series is read by name if its index has names, and in order if it has the default index."""
    if isinstance(costs.index, pd.RangeIndex):
        return costs.to_numpy()
    if costs.index.has_duplicates:
        raise InvalidInput(
            f"{owner} names the feature {costs.index[costs.index.duplicated()][0]!r} twice; name it once."
        )
    return costs.to_dict()


def _real_array(given: Any) -> np.ndarray | None:
    """Numbers as floats; None for anything else, including text that looks like numbers."""
    try:
        array = np.asarray(given)
    except ValueError:  # ragged
        return None
    return array.astype(float) if array.dtype.kind in "iuf" else None


def _price(price: Any, name: Any, owner: str = "costs") -> float:
    value = float(price) if isinstance(price, numbers.Real) and not isinstance(price, bool | np.bool_) else np.nan
    if not np.isfinite(value) or value < 0:
        raise InvalidInput(
            f"{owner}: the {'time' if owner == 'time' else 'price'} of {name!r} must be a finite number >= 0 "
            f"({'0 = at once' if owner == 'time' else '0 = free'}); got {price!r}. "
            "For a feature that is unavailable, use `available` of acquire or suggest."
        )
    return value


def _resolve_shared(entry: Any, features: Sequence[Any], costs: np.ndarray) -> tuple[np.ndarray, float]:
    if not isinstance(entry, Sequence) or len(entry) != 2 or isinstance(entry[0], str) or not np.iterable(entry[0]):
        raise InvalidInput(f"Prices: shared must hold pairs (features, saving); got {entry!r}.")
    names, saving = entry
    together = [_position(name, features, "Prices(shared)") for name in names]
    if len(set(together)) < 2 or len(set(together)) < len(together):
        raise InvalidInput(f"Prices: a shared saving needs two or more different features; got {list(names)!r}.")
    return np.array(together), _price(saving, f"saving of {list(names)!r}")


def _position(name: Any, features: Sequence[Any], owner: str) -> int:
    """A feature by its name, which may be a number, or else by its position."""
    for given in (name, str(name)):
        if given in features:
            return list(features).index(given)
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(features):
        return int(name)
    raise InvalidInput(f"{owner}: there is no feature {name!r}. The features are: {listed(features)}.")
