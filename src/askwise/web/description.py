"""The selector for those who use it: prices, labels, units, and the ranges of the features seen in training."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askwise import __version__
from askwise.errors import InvalidInput
from askwise.persistence.folder import MANIFEST
from askwise.table.columns import plain
from askwise.table.desk import Desk


def version_of(folder: str | Path) -> str:
    """The version of a saved selector: the beginning of the checksum of its manifest."""
    return hashlib.sha256((Path(folder) / MANIFEST).read_bytes()).hexdigest()[:12]


class Description:
    """A loaded selector in words.

    Parameters
    ----------
    selector
        The selector.
    folder, key_file
        Where it was loaded from, and the key that the folder is signed with.

    Attributes
    ----------
    desk
        Labels, units, ranges and the currency.
    model
        Version of the saved selector: the beginning of the checksum of its manifest.
    """

    def __init__(self, selector: Any, folder: str | Path, key_file: str | Path | None = None) -> None:
        if not selector.schema_.tabular:
            raise InvalidInput("askwise serve takes selectors of tables; this one is of images.")
        self._selector = selector
        self._name = Path(folder).resolve().name
        self.desk = Desk.load(folder, selector, key_file)
        self.model = version_of(folder)

    def as_dict(self) -> dict[str, Any]:
        """Everything about the selector, ready for JSON."""
        selector = self._selector
        stop, budget = getattr(selector, "stop_", None), getattr(selector, "budget", None)
        handover = getattr(selector, "handover_", None)
        return {
            "features": [*map(self._feature, range(len(selector.schema_.features))), *map(self._pilot, self.pilots)],
            "classes": [plain(label) for label in selector.classes_],
            "currency": self.desk.currency,
            "everything": float(selector.prices_.total()),  # set-ups that tests share are paid once
            "budget": budget if budget is None or isinstance(budget, Mapping) else float(budget),
            "resources": selector.prices_.resources,
            "guarantee": None if stop is None else {"text": stop.promise, "coverage": _coverage(stop)},
            "handover": None if handover is None else handover.promise,
            "versions": {"askwise": __version__, "model": self.model},
            "texts": {"name": self._name},
        }

    @property
    def pilots(self) -> list[str]:
        """The pilot items of the rules of the house: questions that the model does not know."""
        rules = self._selector.schema_.rules
        return [] if rules is None else [rule.features[0] for rule in rules.pilots]

    def examples(self, named: bool = True) -> dict[str, dict[str, Any]]:
        """For each message of the HTTP interface, by its name in the description: bodies that this selector takes.

        If not `named`, they name no feature.
        """
        values = {feature["name"]: self._usual(feature) for feature in self.as_dict()["features"]}
        (first, value), (second, other) = (*values.items(), *values.items())[:2]
        plain_ones: dict[str, dict[str, Any]] = {
            "NewCase": {"nothing known": {"label": "bed 3"}},
            "NewEvent": {
                "finish": {"type": "finish", "version": 1},
                "reopen": {"type": "reopen", "version": 2},
                "take the last step back": {"type": "undo", "version": 2},
            },
            "NextCase": {"nothing known": {}},
        }
        with_names: dict[str, dict[str, Any]] = {
            "NewCase": {
                "one value known": {"label": "bed 3", "known": {first: value}},
                "a limit of each resource": {"label": "bed 4", "budget": self._limits()},
            },
            "NewEvent": {
                "a value": {"type": "answer", "feature": first, "value": value, "version": 1},
                "a result that comes later": {"type": "order", "feature": first, "value": 2.5, "version": 1},
                "not to be had": {"type": "unavailable", "feature": first, "version": 1},
            },
            "NextCase": {
                "one value known": {"known": {first: value}},
                "one value acquired": {"answers": {second: other}, "outcomes": False},
                "within limits": {"budget": self._limits(), "outcomes": False},
            },
        }
        return {name: {**bodies, **(with_names[name] if named else {})} for name, bodies in plain_ones.items()}

    def _limits(self) -> dict[str, float]:
        """A budget by resource: half of what everything takes, one after the other."""
        prices = self._selector.prices_
        return {name: round(part.total() / 2, 2) for name, part in zip(prices.resources, prices.parts, strict=True)}

    def _usual(self, feature: Mapping[str, Any]) -> Any:
        """A value of a feature as clients send it, within its range."""
        if feature["kind"] == "group":
            return {part["name"]: self._usual(part) for part in feature["columns"]}
        if feature["kind"] == "number":
            low, high = feature["low"], feature["high"]
            return low if low is not None else high if high is not None else 1
        return feature["values"][0] if feature["kind"] == "category" else feature["kind"] == "boolean" or "text"

    def unusual(self, feature: str, value: Any) -> str | None:
        """Why a value should be confirmed; None if it is within the range, or is no number."""
        cells = value if isinstance(value, Mapping) else {feature: value}
        found = (self.desk.shown(str(name)).unusual(cell) for name, cell in cells.items())
        return next((f"{message} Confirm it if it is right." for message in found if message is not None), None)

    def _pilot(self, name: str) -> dict[str, Any]:
        return {"name": name, **vars(self.desk.shown(name)), "price": 0.0, "kind": "text", "pilot": True}

    def _feature(self, i: int) -> dict[str, Any]:
        schema = self._selector.schema_
        name, columns = schema.features[i], schema.feature_columns[i]
        prices = self._selector.prices_
        price: dict[str, Any] = {"price": float(prices.costs[i])}
        if prices.time is not None:
            price["hours"] = float(prices.hours[i])
        others = zip(prices.resources[1:], prices.parts[1:], strict=True)
        if len(prices.resources) > 1:
            price["amounts"] = {name: float(part.costs[i]) for name, part in others}
        if len(columns) == 1:
            return {**self._column(columns[0], name), **price}
        parts = [self._column(j, schema.columns[j].name) for j in columns]
        return {"name": name, **vars(self.desk.shown(name)), **price, "kind": "group", "columns": parts}

    def _column(self, j: int, name: str) -> dict[str, Any]:
        column, kind = self._selector.schema_.columns[j], "number"
        reference = (getattr(self.desk, "reference", None) or {}).get(name)
        if column.is_category:
            kind = "boolean" if all(isinstance(plain(value), bool) for value in column.known) else "category"
        shown = {"name": name, **vars(self.desk.shown(name)), "kind": kind}
        return shown if reference is None else {**shown, "reference": list(reference)}


def _coverage(stop: Any) -> float | None:
    """How often the prediction sets of the stop hold the true class; None without sets."""
    return None if stop.prediction_sets is None else stop.prediction_sets.coverage
