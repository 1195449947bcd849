"""The price list of a user: a table with a line per feature, which also says how each is shown."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askwise.cli.user_table import read_noted
from askwise.errors import InvalidInput, listed
from askwise.table.desk import Desk, Shown
from askwise.table.prices import Prices
from askwise.table.reading import TableOptions, garbled, read_table
from askwise.table.schema import Schema

TEXT = ("feature", "setup", "label", "unit", "currency", "missing")
NUMBERS = ("price", "setup_cost", "low", "high", "reference_low", "reference_high")
HEADER = ("feature", "price", "setup", "setup_cost", "label", "unit", "low", "high", "currency")
REFERENCE = ("reference_low", "reference_high")
OPTIONAL = (*REFERENCE, "missing")
"""Columns that a price list may have besides: the reference interval of a feature, and why its values are missing."""


def price_list(schema: Schema, prices: Prices, desk: Desk) -> str:
    """A price list as CSV: a line per feature, and one without a price for each column of a group."""
    setups = {i: (f"set-up {k + 1}", saving) for k, (group, saving) in enumerate(prices.shared) for i in group}
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    for i, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        own = [feature, f"{prices.costs[i]:.10g}", *_as_text(setups.get(i, ("", "")))]
        writer.writerow([*own, *_shown(desk, feature)])
        if len(columns) > 1:
            for j in columns:
                name = schema.columns[j].name
                writer.writerow([name, "", "", "", *_shown(desk, name)])
    return stream.getvalue()


def read_price_list(
    path: Path, schema: Schema, ignored: Collection[str], encoding: str | None = None
) -> tuple[Prices, Desk]:
    """Prices and what is shown, from a file; lines of columns that are `ignored`, such as the target, are skipped.

    `encoding` is that of the training table.
    """
    lines = [line for line in _lines(path, encoding) if line["feature"] not in ignored]
    names = [line["feature"] for line in lines]
    _check_names(path, names, schema)
    by_name = dict(zip(names, lines, strict=True))
    costs = {feature: _price(path, by_name[feature]) for feature in schema.features}
    currencies = sorted({line["currency"] for line in lines if line["currency"]})
    if len(currencies) > 1:
        raise InvalidInput(f"{path}: prices must be in one currency; got {', '.join(currencies)}.")
    features = {name: _as_shown(line) for name, line in by_name.items()}
    prices = Prices(costs, _shared(path, [by_name[feature] for feature in schema.features]))
    reference = {name: found for name, line in by_name.items() if (found := _reference(path, line)) is not None}
    reasons = {name: line["missing"] for name, line in by_name.items() if line["missing"]}
    for name in reasons:
        if name not in schema.features:
            raise InvalidInput(f"{path}: {name!r} is a column of a group; give the reason in the line of the group.")
    try:
        prices.resolve(schema.features)
        currency = currencies[0] if currencies else None
        desk = Desk.checked(Desk(currency, features, reference=reference, reasons=reasons))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    return prices, desk


def _as_text(setup: tuple[str, Any]) -> tuple[str, str]:
    return setup[0], f"{setup[1]:.10g}" if setup[0] else ""


def _shown(desk: Desk, name: str) -> list[str]:
    shown = desk.shown(name)
    ends = ["" if end is None else f"{end:.10g}" for end in (shown.low, shown.high)]
    return [shown.label, shown.unit or "", *ends, desk.currency or ""]


def _lines(path: Path, encoding: str | None) -> list[dict[str, Any]]:
    """The lines as dicts with all the columns of a price list; None where a cell is empty."""
    there = list(read_noted(path, TableOptions(usual_encoding=encoding)).frame.columns)
    unknown = [name for name in there if name not in (*HEADER, *OPTIONAL)]
    lacking = [name for name in ("feature", "price") if name not in there]
    if unknown or lacking:
        problem = f"has no column {lacking[0]!r}" if lacking else f"has a column {unknown[0]!r}"
        raise InvalidInput(
            f"{path} {problem}; a price list has the columns {', '.join(HEADER)}, and may have {', '.join(OPTIONAL)}."
        )
    options = TableOptions(
        text=[name for name in TEXT if name in there],
        number=[name for name in NUMBERS if name in there],
        usual_encoding=encoding,
    )
    frame = read_table(path, options).frame
    empty: dict[str, Any] = dict.fromkeys((*HEADER, *OPTIONAL))
    rows = frame.to_dict("records")
    return [{**empty, **{str(name): None if cell != cell else cell for name, cell in row.items()}} for row in rows]


def _check_names(path: Path, names: Sequence[str], schema: Schema) -> None:
    allowed = [*schema.features, *(column.name for column in schema.columns)]
    twice = sorted({name for name in names if names.count(name) > 1})
    extra = [name for name in names if name not in allowed]
    lacking = [name for name in schema.features if name not in names]
    problems = {"names twice": twice, "names what is no feature:": extra, "has no line for": lacking}
    for problem, found in problems.items():
        if found:
            hint = garbled(lacking, extra) or garbled(extra, lacking)
            raise InvalidInput(f"{path} {problem} {listed(found)}. The features are: {listed(schema.features)}.{hint}")


def _price(path: Path, line: Mapping[str, Any]) -> float:
    price = line["price"]
    if price is None or not np.isfinite(price) or price < 0:
        got = "nothing" if price is None else f"{price:g}"
        raise InvalidInput(f"{path}: the price of {line['feature']!r} must be a number >= 0 (0 = free); got {got}.")
    return float(price)


def _shared(path: Path, lines: Sequence[Mapping[str, Any]]) -> list[tuple[list[str], float]]:
    """The set-up groups; a set-up of one feature is simply part of its price."""
    groups: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line["setup"]:
            groups.setdefault(line["setup"], {})[line["feature"]] = line["setup_cost"]
        elif line["setup_cost"]:
            raise InvalidInput(f"{path}: {line['feature']!r} has a setup_cost and no setup; name the set-up it is of.")
    for setup, members in groups.items():
        if len(set(members.values())) > 1 or None in members.values():
            raise InvalidInput(
                f"{path}: the set-up {setup!r} must have the same setup_cost in all its lines; got {members}."
            )
    return [(list(of), float(next(iter(of.values())))) for of in groups.values() if len(of) > 1]


def _reference(path: Path, line: Mapping[str, Any]) -> tuple[float, float] | None:
    low, high = (line[name] for name in REFERENCE)
    if low is None and high is None:
        return None
    if low is None or high is None:
        lacking = REFERENCE[0] if low is None else REFERENCE[1]
        raise InvalidInput(f"{path}: {line['feature']!r} has no {lacking}; a reference interval needs both ends.")
    return float(low), float(high)


def _as_shown(line: Mapping[str, Any]) -> Shown:
    return Shown(line["label"] or line["feature"], line["unit"] or None, line["low"], line["high"])
