"""What features take of money, time and other resources now, minus shared set-up parts that are already paid."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from askwise.errors import InvalidInput, listed

MONEY, TIME = "money", "time"
"""The resource that everything has, and the one of which tests that are ordered together take the longest."""
AFFORDABLE_WITHIN = 1e-9
TAKEN = frozenset(
    word
    for words in (
        "accuracy agreement aleatoric assumes balanced_accuracy bought budget case cost currency decision_is_final",
        "departure ece effective epistemic error_cost feature features guaranteed handed_over high kept kept_of_worst",
        "label level log_loss low missing money mutual_information n_bought net_benefit novelty prediction price",
        "resources rows self setup share spent step subgroup total total_cost trusted unit way worst_class",
    )
    for word in words.split()
)
TAKEN_BEGINNINGS = ("added_", "budget_", "price_per_", "proba_", "recall_", "reference_", "setup_")
TAKEN_ENDINGS = ("_low", "_high")
"""Names that tables use for something else than a resource."""

Amounts = Sequence[float] | np.ndarray | pd.Series | Mapping[Any, float] | None


def affordable(price: Any, money: Any) -> Any:
    """Whether `price` is at most `money`, within a relative 1e-9, so that ten times 0.1 pays a price of 1.

    >>> affordable(1.0, sum([0.1] * 10)), affordable(1.0, 0.99)
    (True, False)
    """
    return price * (1 - AFFORDABLE_WITHIN) <= money


class Prices:
    """What each feature takes of each resource, with set-up parts shared between features.

    Money is the resource that everything has; others, such as time or harm, are named. A case can have a budget of each
    (``budget={"money": 200, "time": 24}``), and asks only for what all of them allow.

    Parameters
    ----------
    costs
        One price per feature, in money: an array in feature order, a mapping or Series from feature name to price
        (features it does not name cost 1), or None for 1 each. A price of 0 means free.
    shared
        Pairs ``(features, saving)``: as soon as one of the features is acquired, each of the others is cheaper by
        `saving`, an amount of money or ``{"money": 2.1, "time": 0.5}``. Features are given by name or by position.
    time
        How long the result of each feature takes, in hours or any unit: an array, or a mapping (features it does not
        name take no time). Tests asked one after the other take the sum, those ordered together the longest. Sessions
        also use it for results that are out, and for deadlines.
    weights
        ``{resource: weight}``: what a unit of a resource is worth in money where features are ranked. Gains are divided
        by money plus weight times amount; without a weight (0), a resource only has its budget. A feature for which
        that is 0 is free, and comes first.
    resources
        Further resources by name, such as ``harm={"x-ray": 1.0}``, given like `time`.

    Examples
    --------
    The first blood test pays 2.10 for the needle, the second does not:

    >>> prices = Prices([7.27, 5.20, 1.0], shared=[([0, 1], 2.10)])
    >>> prices.now(np.array([[False, False, False], [True, False, False]])).round(2).tolist()
    [[7.27, 5.2, 1.0], [7.27, 3.1, 1.0]]

    An hour counts as much as 1.50:

    >>> names = ["blood", "x-ray", "age"]
    >>> prices = Prices([7, 30, 1], time={"blood": 24}, harm={"x-ray": 1}, weights={"time": 1.5}).resolve(names)
    >>> prices.resources, prices.weighed.costs.tolist()
    (['money', 'time', 'harm'], [43.0, 30.0, 1.0])
    >>> prices.limits({"money": 20, "harm": 0}, 1).tolist()
    [[20.0, inf, 0.0]]
    """

    time: Any = None
    others: Mapping[str, Any] = MappingProxyType({})
    weights: Mapping[str, float] = MappingProxyType({})

    def __init__(
        self,
        costs: Amounts = None,
        shared: Sequence[tuple[Any, Any]] | None = (),
        time: Amounts = None,
        *,
        weights: Mapping[str, float] | None = None,
        **resources: Amounts,
    ) -> None:
        self.costs: Any = costs
        self.shared = () if shared is None else shared
        self.time = time
        self.others = resources
        self.weights = {} if weights is None else weights

    def __repr__(self) -> str:
        named = "".join(f", {name}={amounts!r}" for name, amounts in self._further.items())
        weights = f", weights={self.weights!r}" if self.weights else ""
        return f"Prices({self.costs!r}, shared={self.shared!r}{named}{weights})"

    @property
    def _further(self) -> dict[str, Any]:
        """What is given of each resource besides money."""
        return {**({} if self.time is None else {TIME: self.time}), **self.others}

    @property
    def resources(self) -> list[str]:
        """The names of the resources, money first."""
        return [MONEY, *self._further]

    def resolve(self, features: Sequence[Any]) -> Prices:
        """The same prices in feature order, every name checked and replaced by its position."""
        amounts = {MONEY: _in_order(self.costs, features)}
        for name, given in self._further.items():
            _check_resource(name)
            amounts[name] = _in_order(given, features, 0.0, name)
        if isinstance(self.shared, str | Mapping) or not isinstance(self.shared, Iterable):
            raise InvalidInput(f"Prices: shared must be a list of pairs (features, saving); got {self.shared!r}.")
        shared = [_resolve_shared(entry, features, list(amounts)) for entry in self.shared]
        for name, amount in amounts.items():
            savings = np.zeros(len(features))
            for together, saving in shared:
                savings[together] += _part(saving, name)
            for i in np.flatnonzero(~affordable(savings, amount)).tolist():
                what = "price" if name == MONEY else name
                raise InvalidInput(
                    f"Prices: the shared savings of {features[i]!r} add up to {savings[i]:g}, more than its {what} "
                    f"{amount[i]:g}. A saving is the part of the {what} that is paid once for the whole set; lower it."
                )
        weights = _check_weights(self.weights, list(amounts))
        costs, time = amounts.pop(MONEY), amounts.pop(TIME, None)
        return Prices(costs, shared, time, weights=weights, **amounts)

    @property
    def hours(self) -> np.ndarray:
        """(M,) how long each result takes; zeros where no times are given."""
        return np.zeros(len(self.costs)) if self.time is None else np.asarray(self.time, dtype=float)

    def of(self, resource: str) -> Prices:
        """One resource as prices of its own: `now`, `total` and `added` are then amounts of it.

        >>> Prices([7.0, 5.0], shared=[([0, 1], {"time": 0.5})], time=[3.0, 1.0]).of("time").total()
        3.5
        """
        if len(self.resources) == 1:
            return self
        amounts = self.costs if resource == MONEY else self._further[resource]
        return Prices(amounts, [(together, _part(saving, resource)) for together, saving in self.shared])

    @property
    def parts(self) -> list[Prices]:
        """Each resource as prices of its own, in the order of `resources`."""
        return [self.of(name) for name in self.resources]

    @property
    def weighed(self) -> Prices:
        """What gains are divided by: money plus weight times amount, as prices of their own."""
        weights = {name: weight for name, weight in self.weights.items() if weight}
        if not weights:
            return self.of(MONEY)
        costs = np.asarray(self.costs, dtype=float)
        for name, weight in weights.items():
            costs = costs + weight * np.asarray(self._further[name], dtype=float)
        shared = [
            (together, _part(saving, MONEY) + sum(weight * _part(saving, name) for name, weight in weights.items()))
            for together, saving in self.shared
        ]
        return Prices(costs, shared)

    def weigh(self, amounts: np.ndarray) -> np.ndarray:
        """(...) what `amounts` (..., R) of the resources come to in a ranking: money plus weight times amount."""
        found = amounts[..., 0]
        for name, weight in self.weights.items():
            if weight:
                found = found + weight * amounts[..., self.resources.index(name)]
        return np.asarray(found)

    def now(self, mask: np.ndarray) -> np.ndarray:
        """Price of each feature given the features already acquired; `mask` and the result are (n, M)."""
        prices = np.tile(np.asarray(self.costs, dtype=float), (len(mask), 1))
        for together, given in self.shared:
            saving = _part(given, MONEY)
            if saving:
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
            price = price - _part(saving, MONEY) * np.maximum(mask[:, together].sum(axis=1) - 1, 0)
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
            price -= _part(saving, MONEY) * (np.maximum(both - 1, 0) - np.maximum(before - 1, 0))
        return np.maximum(price, 0.0)

    def fits(self, mask: np.ndarray, sets: np.ndarray, left: np.ndarray) -> np.ndarray:
        """(n, Q) whether what is `left` (n, R) pays for each of `sets` (Q, M), asked one after the other."""
        found = [affordable(part.added(mask, sets), left[:, [k]]) for k, part in enumerate(self.parts)]
        return np.asarray(np.logical_and.reduce(found))

    def together(self, mask: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """(R,) what the features `chosen` (M,) take if they are ordered at once where `mask` (M,) is acquired.

        Of time that is the longest, of everything else the sum.

        >>> prices = Prices(np.array([7.0, 5.0]), time=np.array([24.0, 2.0]))
        >>> prices.together(np.array([False, False]), np.array([True, True])).tolist()
        [12.0, 24.0]
        """
        found = np.array([part.added(mask[None], chosen[None])[0, 0] for part in self.parts])
        if self.time is not None:
            hours = self.of(TIME).now(mask[None])[0]
            found[self.resources.index(TIME)] = hours[chosen & ~mask].max(initial=0.0)
        return found

    @property
    def uniform(self) -> bool:
        """Whether all features that are not free cost the same money, whatever has been acquired."""
        costs = np.asarray(self.costs, dtype=float)
        paid = costs[costs > 0]
        shared = any(_part(saving, MONEY) for _, saving in self.shared) if self._further else len(self.shared)
        return not shared and (len(paid) == 0 or bool(np.all(paid == paid[0])))

    def same_as(self, other: Prices) -> bool:
        """Whether `other`, resolved for the same features, takes as much of the same resources at the same weights."""
        if self.resources != other.resources or dict(self.weights) != dict(other.weights):
            return False
        return all(
            np.array_equal(one.costs, two.costs)
            and len(one.shared) == len(two.shared)
            and all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(one.shared, two.shared, strict=True))
            for one, two in zip(self.parts, other.parts, strict=True)
        )

    def limits(self, budget: Any, n: int, name: str = "budget") -> np.ndarray:
        """(n, R) a budget as it is given: a number (money), one per row, or those by resource; None = no limit."""
        given = budget if isinstance(budget, Mapping) else {MONEY: budget}
        if not given:
            raise InvalidInput(
                f"{name} must be a number >= 0, a dict that names one resource or more, such as {{'money': 200}}, or "
                f"None for no limit; got {budget!r}."
            )
        found = np.full((n, len(self.resources)), np.inf)
        for resource, most in given.items():
            if resource not in self.resources:
                hint = "" if len(self.resources) > 1 else " Give others to Prices, such as time={feature: hours}."
                raise InvalidInput(
                    f"{name}: there is no resource {resource!r} in the prices, which have "
                    f"{listed(self.resources)}.{hint}"
                )
            owner = name if budget is not given else f"{name} of {resource}"
            found[:, self.resources.index(resource)] = check_budget(most, n, owner)
        return found

    def limits_of_each(self, budgets: Any) -> list[np.ndarray]:
        """(R,) each of the budgets to compare, of which there must be at least one."""
        given = list(budgets) if np.iterable(budgets) and not isinstance(budgets, str | Mapping) else []
        if not given:
            raise InvalidInput(f"budgets must be a list of at least one number; got {budgets!r}.")
        for one in given:
            if any(np.ndim(most) for most in (one.values() if isinstance(one, Mapping) else [one])):
                raise InvalidInput(f"budgets must be a list of numbers, the same for all rows; got {budgets!r}.")
        return [self.limits(one, 1, "each of budgets")[0] for one in given]

    def as_columns(self, limits: Sequence[np.ndarray]) -> list[dict[str, float]]:
        """Each limit (R,) as the columns of a table: `budget` is money, and there are others where they are limited."""
        limited = [k for k in range(1, len(self.resources)) if any(np.isfinite(limit[k]) for limit in limits)]
        names = {k: f"budget_{self.resources[k]}" for k in limited}
        return [{"budget": float(limit[0]), **{name: float(limit[k]) for k, name in names.items()}} for limit in limits]

    def plain(self, limit: np.ndarray) -> Any:
        """A limit (R,) as a user gives it: a number where only money is limited, infinite if nothing; else a dict."""
        if np.isinf(limit[1:]).all():
            return float(limit[0])
        return {name: float(most) for name, most in zip(self.resources, limit, strict=True) if np.isfinite(most)}


def budget_in_words(budget: Any) -> str:
    """A budget as users give it, in words.

    >>> budget_in_words(20.0), budget_in_words({"money": 20.0, "time": 1.5}), budget_in_words(float("inf"))
    ('20', 'money 20, time 1.5', 'no limit')
    """
    if isinstance(budget, Mapping):
        return ", ".join(f"{name} {most:g}" for name, most in budget.items())
    return "no limit" if budget is None or np.isinf(budget) else f"{budget:g}"


def as_prices(costs: Any) -> Prices:
    """`costs` of the public interface (None, array, mapping or Prices) as Prices."""
    return costs if isinstance(costs, Prices) else Prices(costs)


def check_budget(budget: Any, n: int, name: str = "budget") -> np.ndarray:
    """Budget per row, (n,): one number or one per row; None is unlimited."""
    if budget is None:
        return np.full(n, np.inf)
    flags = isinstance(budget, Sequence) and any(isinstance(each, bool | np.bool_) for each in budget)
    money = None if flags else _real_array(budget)
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
            f"{owner}: the {_WHAT.get(owner, owner)} of {name!r} must be a finite number >= 0 "
            f"({_NONE.get(owner, '0 = none')}); got {price!r}. "
            "For a feature that is unavailable, use `available` of acquire or suggest."
        )
    return value


_WHAT = {"costs": "price"}
_NONE = {"costs": "0 = free", TIME: "0 = at once"}


def _part(saving: Any, resource: str) -> float:
    """How much a saving is of one resource; a number is money."""
    if isinstance(saving, Mapping):
        return float(saving.get(resource, 0.0))
    return float(saving) if resource == MONEY else 0.0


def _resolve_shared(entry: Any, features: Sequence[Any], resources: Sequence[str]) -> tuple[np.ndarray, Any]:
    if not isinstance(entry, Sequence) or len(entry) != 2 or isinstance(entry[0], str) or not np.iterable(entry[0]):
        raise InvalidInput(f"Prices: shared must hold pairs (features, saving); got {entry!r}.")
    names, saving = entry
    together = [_position(name, features, "Prices(shared)") for name in names]
    if len(set(together)) < 2 or len(set(together)) < len(together):
        raise InvalidInput(f"Prices: a shared saving needs two or more different features; got {list(names)!r}.")
    what = f"saving of {list(names)!r}"
    if not isinstance(saving, Mapping):
        return np.array(together), _price(saving, what)
    for name in saving:
        _check_known(name, resources, "Prices(shared)")
    return np.array(together), {str(name): _price(amount, f"{what} in {name}") for name, amount in saving.items()}


def _check_resource(name: str) -> None:
    taken = name in TAKEN or name.startswith(TAKEN_BEGINNINGS) or name.endswith(TAKEN_ENDINGS)
    if taken or not name.strip() or set(name) & set("=,;"):
        raise InvalidInput(
            f"Prices: a resource cannot be called {name!r}: tables use that name for something else, or it is empty or "
            "holds one of = , ; (money is what `costs` gives). Choose another name."
        )


def _check_weights(weights: Any, resources: Sequence[str]) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise InvalidInput(f"Prices: weights must be a dict {{resource: weight}}; got {weights!r}.")
    for name in weights:
        _check_known(name, resources, "Prices(weights)")
        if name == MONEY:
            raise InvalidInput(
                "Prices: weights are amounts of money for a unit of another resource; leave out 'money'."
            )
    return {str(name): _weight(weight, name) for name, weight in weights.items()}


def _weight(weight: Any, name: str) -> float:
    number = isinstance(weight, numbers.Real) and not isinstance(weight, bool | np.bool_)
    if not number or not 0 <= float(weight) < np.inf:
        raise InvalidInput(f"Prices: the weight of {name!r} must be a finite number >= 0; got {weight!r}.")
    return float(weight)


def _check_known(name: Any, resources: Sequence[str], owner: str) -> None:
    if name not in resources:
        raise InvalidInput(f"{owner}: there is no resource {name!r}. The resources are: {listed(resources)}.")


def _position(name: Any, features: Sequence[Any], owner: str) -> int:
    """A feature by its name, which may be a number, or else by its position."""
    for given in (name, str(name)):
        if given in features:
            return list(features).index(given)
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(features):
        return int(name)
    raise InvalidInput(f"{owner}: there is no feature {name!r}. The features are: {listed(features)}.")
