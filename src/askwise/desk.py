"""What people at a desk see of a selector: the currency of the prices, and labels, units and ranges of the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from askwise.columns import Column, plain
from askwise.errors import InvalidInput, listed

FILE = "desk.json"
"""The name of its file in a saved folder."""


@dataclass(frozen=True)
class Shown:
    """How a feature, or a column of a group, is shown.

    `low` and `high` are the range in which a number is entered without a warning, `values` the categories to choose
    from. None: there is no unit, no range, no list.
    """

    label: str
    unit: str | None = None
    low: float | None = None
    high: float | None = None
    values: list[Any] | None = None

    def unusual(self, value: Any) -> str | None:
        """How a number is outside of the range, in words; None if it is not, or if the value is no number.

        >>> Shown("Age", "years", high=99).unusual(175)
        'Age is usually at most 99 years; got 175.'
        """
        low, high = self.low, self.high
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if (low is None or value >= low) and (high is None or value <= high):
            return None
        usual = f"at most {high:g}" if low is None else f"at least {low:g}" if high is None else f"{low:g} to {high:g}"
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.label} is usually {usual}{unit}; got {value:.10g}."


@dataclass(frozen=True)
class Desk:
    """The currency, how features and the columns of groups are shown, by name, and the column that holds the class."""

    currency: str | None = None
    features: Mapping[str, Shown] = field(default_factory=dict)
    target: str | None = None

    @classmethod
    def of(cls, selector: Any, given: Desk | None = None) -> Desk:
        """The desk of a fitted selector: what is `given`, completed from its schema and its training rows.

        A number without a range has that of the training rows; labels are names unless given.
        """
        given, schema = cls.checked(given), selector.schema_
        unknown = [name for name in given.features if name not in [*schema.features, *_column_names(schema)]]
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
        return cls(given.currency, features, given.target)

    @classmethod
    def checked(cls, given: Desk | None) -> Desk:
        """What a caller gave as a desk; an empty one for None."""
        if not isinstance(given, Desk | None):
            raise InvalidInput(f"desk must be an askwise.desk.Desk or None; got {given!r}.")
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

    def with_unit(self, name: str, text: str) -> str:
        """A value in words with the unit of its feature."""
        unit = self.shown(name).unit
        return f"{text} {unit}" if unit else text

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
        return {"currency": self.currency, "target": self.target, "features": shown}

    @classmethod
    def from_dict(cls, found: Any) -> Desk:
        """The inverse of `to_dict`, for a file that may have been written by hand."""
        try:
            features = {str(name): Shown(**{"label": name, **entry}) for name, entry in found["features"].items()}
            desk = cls(found["currency"], features, found.get("target"))
            for shown in features.values():
                _check(shown)
        except (TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(f"{FILE} must hold a currency and features with label, unit, ...; {error}.") from None
        return desk


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
    low = float(present.min()) if shown.low is None else shown.low
    return replace(shown, low=low, high=float(present.max()) if shown.high is None else shown.high)


def _column_names(schema: Any) -> list[str]:
    return [column.name for column in schema.columns] if schema.tabular else []
