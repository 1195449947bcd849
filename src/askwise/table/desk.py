"""What people at a desk see of a selector: the currency of the prices, and labels, units and ranges of the features."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from askwise.errors import InvalidInput, listed
from askwise.table.columns import Column, plain

FILE = "desk.json"
"""The name of its file in a saved folder."""

REASONS = ("not ordered", "not available")
"""Why a value is missing in records: nobody asked for it, or it could not be had."""

OR_MORE = " or more"
"""How a range without an upper end is said in words; a unit stands before it."""

TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Shown:
    """How a feature, or a column of a group, is shown.

    `low` and `high` are the range in which a number is entered without a warning, `values` the categories to choose
    from. None: there is no unit, no range, no list. `seen` says that the range is that of the training rows.

    Examples
    --------
    >>> from askwise.table.desk import Shown
    >>> Shown("Age", "years", low=20, high=79).range
    '20 to 79 years expected'
    """

    label: str
    unit: str | None = None
    low: float | None = None
    high: float | None = None
    values: list[Any] | None = None
    seen: bool = False

    @property
    def range(self) -> str | None:
        """The range in words, with its unit and where it is from; None if there is none.

        >>> Shown("Age", "years", 20, 79, seen=True).range, Shown("Age", "years", high=120).range
        ('20 to 79 years seen in training', 'at most 120 years expected')
        """
        low, high = self.low, self.high
        if low is None and high is None:
            return None
        ends = f"at most {high:g}" if low is None else f"at least {low:g}" if high is None else f"{low:g} to {high:g}"
        unit = f" {self.unit}" if self.unit else ""
        return f"{ends}{unit} {'seen in training' if self.seen else 'expected'}"

    def unusual(self, value: Any) -> str | None:
        """How a number is outside of the range, in words; None if it is not, or if the value is no number.

        >>> Shown("Age", "years", high=99).unusual(175)
        'Age is 175; at most 99 years expected.'
        """
        low, high = self.low, self.high
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if (low is None or value >= low) and (high is None or value <= high):
            return None
        return f"{self.label} is {value:.10g}; {self.range}."


@dataclass(frozen=True)
class Desk:
    """The currency, how features and the columns of groups are shown, by name, and the column that holds the class.

    `encoding` is that of the training table, in which other files of the same origin probably are. `reference` has the
    reference interval of a feature or column, (low, high), which is shown beside the range of the training rows, and
    `reasons` why values of a feature are missing in records: "not ordered" or "not available" (see `evaluate`).

    Examples
    --------
    >>> from askwise.table.desk import Desk, Shown
    >>> desk = Desk("EUR", {"age": Shown("Age", "years")})
    >>> desk.label("age"), desk.money(12.5)
    ('Age', '12.50 EUR')
    """

    currency: str | None = None
    features: Mapping[str, Shown] = field(default_factory=dict)
    target: str | None = None
    encoding: str | None = None
    reference: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, shown in self.features.items():
            _check_written(name, shown)
        for name, interval in self.reference.items():
            _check_interval(name, interval)
        for name, reason in self.reasons.items():
            if reason not in REASONS:
                raise InvalidInput(
                    f"The reason why {name!r} is missing must be {' or '.join(REASONS)}; got {reason!r}."
                )

    @classmethod
    def of(cls, selector: Any, given: Desk | None = None) -> Desk:
        """The desk of a fitted selector: what is `given`, completed from its schema and its training rows.

        A number without a range has that of the training rows; labels are names unless given.
        """
        given, schema = cls.checked(given), selector.schema_
        named = (*given.features, *given.reference, *given.reasons)
        unknown = [name for name in named if name not in [*schema.features, *_column_names(schema)]]
        if unknown:
            raise InvalidInput(
                f"desk: there is no feature {unknown[0]!r}. The features are: {listed(schema.features)}."
            )
        rows = getattr(selector.predictor_, "training_rows_", None)
        features = {}
        for name, columns in zip(schema.features, schema.feature_columns, strict=True):
            features[name] = given.shown(name)
            for j in columns if schema.tabular else ():
                own = name if len(columns) == 1 else schema.columns[j].name
                cells = np.empty(0) if rows is None else rows.values[:, j]
                features[own] = _completed(given.shown(own), schema.columns[j], cells)
        return replace(given, features=features)

    @classmethod
    def checked(cls, given: Desk | None) -> Desk:
        """What a caller gave as a desk; an empty one for None."""
        if not isinstance(given, Desk | None):
            raise InvalidInput(f"desk must be an askwise.table.desk.Desk or None; got {given!r}.")
        return given or cls()

    @classmethod
    def load(cls, folder: str | Path, selector: Any, key_file: str | Path | None = None) -> Desk:
        """The desk of a saved folder, whose `selector` is loaded; defaults where the folder has no desk."""
        from askwise.persistence.saving import load_desk

        return cls.of(selector, load_desk(folder, key_file))

    def shown(self, name: str) -> Shown:
        """How a feature or column is shown; by its name if nothing was given."""
        return self.features.get(name) or Shown(name)

    def label(self, name: str) -> str:
        return self.shown(name).label

    def ranges(self, name: str) -> str | None:
        """What is known about the values of a number: the range, and the reference interval if one was given.

        >>> Desk(features={"tsh": Shown("TSH", "mU/l", 0, 235, seen=True)}, reference={"tsh": (0.4, 4)}).ranges("tsh")
        '0 to 235 mU/l seen in training, reference interval 0.4 to 4 mU/l'
        """
        shown, known = self.shown(name), []
        if shown.range is not None:
            known.append(shown.range)
        if name in self.reference:
            low, high = self.reference[name]
            known.append(self.with_unit(name, f"reference interval {low:g} to {high:g}"))
        return ", ".join(known) or None

    def with_unit(self, name: str, text: str) -> str:
        """A value in words, or a range of them, with the unit of its feature.

        >>> desk = Desk(features={"crp": Shown("CRP", "mg/l")})
        >>> desk.with_unit("crp", "12"), desk.with_unit("crp", "12 or more")
        ('12 mg/l', '12 mg/l or more')
        """
        unit, number = self.shown(name).unit, text.removesuffix(OR_MORE)
        return f"{number} {unit}{text[len(number) :]}" if unit else text

    def money(self, amount: float) -> str:
        """An amount in words: "7.27 CAD", "free" for nothing.

        >>> Desk("CAD").money(7.2699), Desk().money(1), Desk().money(0)
        ('7.27 CAD', '1', 'free')
        """
        return "free" if amount == 0 else self.amount(amount)

    def amount(self, amount: float) -> str:
        """An amount as a number with its currency: with cents where it has any."""
        tiny = 0 < abs(amount) < 0.005
        number = f"{amount:.2g}" if tiny else f"{amount:,.2f}".removesuffix(".00")
        return f"{number} {self.currency}" if self.currency else number

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        shown = {name: asdict(shown) for name, shown in self.features.items()}
        reference = {name: list(ends) for name, ends in self.reference.items()}
        reasons = {"reasons": dict(self.reasons)} if self.reasons else {}
        return {
            **reasons,
            "currency": self.currency,
            "target": self.target,
            "encoding": self.encoding,
            "features": shown,
            "reference": reference,
        }

    @classmethod
    def from_dict(cls, found: Any) -> Desk:
        """The inverse of `to_dict`, for a file that may have been written by hand."""
        try:
            features = {str(name): Shown(**{"label": name, **entry}) for name, entry in found["features"].items()}
            for shown in features.values():
                _check(shown)
            reference = {str(name): tuple(ends) for name, ends in (found.get("reference") or {}).items()}
            desk = cls(found["currency"], features, found.get("target"), found.get("encoding"), reference)
            desk = replace(desk, reasons=dict(found.get("reasons") or {}))
            if not isinstance(desk.encoding, str | None):
                raise TypeError(f"encoding must be text; got {desk.encoding!r}")
        except (TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(f"{FILE} must hold a currency and features with label, unit, ...; {error}.") from None
        return desk


def percent(share: float) -> str:
    """A share in whole percent that says 100 only where it is all.

    Examples
    --------
    >>> percent(0.994), percent(0.999), percent(1.0)
    ('99%', '99%', '100%')
    """
    return f"{min(round(100 * share), 99) if share < 1 else 100}%"


def _check_written(name: str, shown: Shown) -> None:
    """Refuse marks that turn the direction of writing: 12 would be read as 21 on the page and in a print."""
    for text in filter(None, (name, shown.label, shown.unit)):
        for mark in TURNING.findall(text):
            raise InvalidInput(
                f"The label, unit or name of the feature {TURNING.sub('', name)!r} holds U+{ord(mark):04X}, "
                "an invisible mark that turns the direction of writing. Remove it."
            )


def _check_interval(name: str, interval: Any) -> None:
    ends = tuple(interval) if isinstance(interval, tuple | list) else ()
    numbers = [end for end in ends if isinstance(end, int | float) and not isinstance(end, bool) and np.isfinite(end)]
    if len(ends) != 2 or len(numbers) != 2 or not ends[0] < ends[1]:
        raise InvalidInput(f"The reference interval of {name!r} must be two numbers, low < high; got {interval!r}.")


def _check(shown: Shown) -> None:
    """Raise TypeError for an entry of the wrong type."""
    if not isinstance(shown.label, str) or not isinstance(shown.unit, str | None):
        raise TypeError(f"label and unit must be text; got {shown.label!r} and {shown.unit!r}")
    ends = [end for end in (shown.low, shown.high) if end is not None]
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
        raise TypeError(f"low and high of {shown.label!r} must be numbers; got {ends}")
    if not isinstance(shown.values, list | None):
        raise TypeError(f"values of {shown.label!r} must be a list; got {shown.values!r}")


def _completed(shown: Shown, column: Column, cells: np.ndarray) -> Shown:
    if column.is_category:
        return replace(shown, low=None, high=None, values=[plain(value) for value in column.known])
    present = cells[~np.isnan(cells)]
    if not len(present):
        return shown
    least, most = float(present.min()), float(present.max())
    low = least if shown.low is None else shown.low
    high = most if shown.high is None else shown.high
    # A price list repeats the range of training in ten digits, unless somebody changed it.
    seen = shown.seen or bool(np.allclose([low, high], [least, most], rtol=1e-9, atol=0))
    return replace(shown, low=low, high=high, seen=seen)


def _column_names(schema: Any) -> list[str]:
    return [column.name for column in schema.columns] if schema.tabular else []
