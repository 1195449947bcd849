"""The selector for those who use it: labels, units, usual ranges and prices of the features."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from askwise import __version__
from askwise.columns import Column, plain
from askwise.errors import InvalidInput

DESK = "desk.json"
MANIFEST = "manifest.json"


class Description:
    """A loaded selector and the words of its folder.

    Attributes
    ----------
    model
        Version of the saved selector: the beginning of the checksum of its manifest.
    """

    def __init__(self, selector: Any, folder: str | Path) -> None:
        if not selector.schema_.tabular:
            raise InvalidInput("askwise serve takes selectors of tables; this one is of images.")
        self._selector = selector
        self.model = hashlib.sha256((Path(folder) / MANIFEST).read_bytes()).hexdigest()[:12]
        self._name = Path(folder).resolve().name
        desk = Path(folder) / DESK
        self._desk = json.loads(desk.read_text(encoding="utf-8")) if desk.is_file() else {}
        rows = getattr(selector.predictor_, "training_rows_", None)
        values = np.full((1, len(selector.schema_.columns)), np.nan) if rows is None else rows.values
        seen = ~np.isnan(values)
        self._low = np.where(seen, values, np.inf).min(axis=0)
        self._high = np.where(seen, values, -np.inf).max(axis=0)
        self._features = {feature["name"]: feature for feature in self._described()}

    def as_dict(self) -> dict[str, Any]:
        """Everything about the selector, ready for JSON."""
        selector = self._selector
        stop = getattr(selector, "stop_", None)
        budget = getattr(selector, "budget", None)
        return {
            "features": list(self._features.values()),
            "classes": [plain(label) for label in selector.classes_],
            "currency": self._desk.get("currency"),
            "budget": None if budget is None else float(budget),
            "guarantee": None if stop is None else {"text": stop.promise},
            "versions": {"askwise": __version__, "model": self.model},
            "texts": {"name": self._name},
        }

    def label(self, feature: str) -> str:
        """The name of a feature to show."""
        return str(self._features[feature]["label"])

    def unusual(self, feature: str, value: Any) -> str | None:
        """Why a value should be confirmed; None if it is within the usual range, or no number."""
        described = self._features.get(feature, {})
        columns = {column["name"]: column for column in described.get("columns", ())}
        if not isinstance(value, Mapping):
            return _outside(described, value)
        found = (_outside(columns.get(str(name), described), cell) for name, cell in value.items())
        return next((message for message in found if message is not None), None)

    def _described(self) -> Iterator[dict[str, Any]]:
        schema, prices = self._selector.schema_, self._selector.prices_
        for i, name in enumerate(schema.features):
            columns = schema.feature_columns[i]
            price = {"price": float(prices.costs[i])}
            if len(columns) == 1:
                yield {**self._column(columns[0], name), **price}
            else:
                parts = [self._column(j, schema.columns[j].name) for j in columns]
                group = {"kind": "group", "values": None, "low": None, "high": None, "columns": parts}
                yield {**self._words(name), **price, **group}

    def _column(self, j: int, name: str) -> dict[str, Any]:
        column: Column = self._selector.schema_.columns[j]
        words = self._words(name)
        if column.is_category:
            values = [plain(value) for value in column.known]
            kind = "boolean" if set(values) <= {False, True} and isinstance(values[0], bool) else "category"
            return {**words, "kind": kind, "values": values, "low": None, "high": None}
        given = self._desk.get("features", {}).get(name, {})
        limits = {"low": given.get("low"), "high": given.get("high")}
        for end, seen in (("low", self._low[j]), ("high", self._high[j])):
            if limits[end] is None and np.isfinite(seen):
                limits[end] = float(seen)
        return {**words, "kind": "number", "values": None, **limits}

    def _words(self, name: str) -> dict[str, Any]:
        given = self._desk.get("features", {}).get(name, {})
        return {"name": name, "label": given.get("label") or name, "unit": given.get("unit")}


def _outside(column: Mapping[str, Any], value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    low, high = column.get("low"), column.get("high")
    unit = f" {column['unit']}" if column.get("unit") else ""
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    usual = " to ".join("..." if end is None else f"{end:g}" for end in (low, high))
    return f"{column['label']} is usually {usual}{unit}; got {value:g}. Confirm it if it is right."
