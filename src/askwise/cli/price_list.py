"""The price list of a user: a table with a line per feature, which also says how each is shown.

Each resource besides money has a column of its name, such as ``time``, and one for its set-up part, ``setup_time``.
A feature of several set-ups has the others in ``setup_2``, ``setup_cost_2``, ``setup_time_2`` and so on.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from askwise.cli.user_table import read_noted
from askwise.errors import InvalidInput, listed
from askwise.table.desk import Desk, Shown
from askwise.table.prices import MONEY, TIME, Prices
from askwise.table.reading import TableOptions, garbled, read_table
from askwise.table.schema import Schema

TEXT = ("feature", "setup", "label", "unit", "currency", "missing")
NUMBERS = ("price", "setup_cost", "low", "high", "reference_low", "reference_high")
HEADER = ("feature", "price", "setup", "setup_cost", "label", "unit", "low", "high", "currency")
REFERENCE = ("reference_low", "reference_high")
OPTIONAL = (*REFERENCE, "missing")
"""Columns that a price list may have besides: the reference interval of a feature, and why its values are missing."""


SETUP = re.compile(r"setup(_cost|_(?!\d+$)[^=,;]+?)?(_\d+)?")
"""A column about set-ups: their names, or what they save of money or of another resource."""


def price_list(schema: Schema, prices: Prices, desk: Desk) -> str:
    """A price list as CSV: a line per feature, and one without a price for each column of a group."""
    resources = prices.resources[1:]
    setups: list[list[int]] = [[] for _ in schema.features]
    for k, (group, _) in enumerate(prices.shared):
        for i in group:
            setups[i].append(k)
    saved = [part.shared for part in prices.parts]
    some = [r for r in range(1, len(saved)) if any(saving for _, saving in saved[r])]
    n_setups = max(1, *map(len, setups))
    further = [f"setup_{prices.resources[r]}" for r in some]
    names = [f"{name}{_place(n)}" for n in range(n_setups) for name in ("setup", "setup_cost", *further)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["feature", "price", *resources, *names, *HEADER[4:]])
    empty = [""] * (1 + len(resources) + len(names))
    for i, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        own = [f"{part.costs[i]:.10g}" for part in prices.parts]
        for k in setups[i]:
            own += [f"set-up {k + 1}", *(f"{saved[r][k][1]:.10g}" for r in (0, *some))]
        writer.writerow([feature, *own, *empty[len(own) :], *_shown(desk, feature)])
        if len(columns) > 1:
            for j in columns:
                name = schema.columns[j].name
                writer.writerow([name, *empty, *_shown(desk, name)])
    return stream.getvalue()


def _place(n: int) -> str:
    """What the names of the columns of the set-up with number `n` end in."""
    return f"_{n + 1}" if n else ""


def read_price_list(
    path: Path, schema: Schema, ignored: Collection[str], encoding: str | None = None
) -> tuple[Prices, Desk]:
    """Prices and what is shown, from a file; lines of columns that are `ignored`, such as the target, are skipped.

    `encoding` is that of the training table.
    """
    written, resources = _lines(path, encoding)
    lines = [line for line in written if line["feature"] not in ignored]
    names = [line["feature"] for line in lines]
    _check_names(path, names, schema)
    by_name = dict(zip(names, lines, strict=True))
    costs = {feature: _price(path, by_name[feature]) for feature in schema.features}
    currencies = sorted({line["currency"] for line in lines if line["currency"]})
    if len(currencies) > 1:
        raise InvalidInput(f"{path}: prices must be in one currency; got {', '.join(currencies)}.")
    features = {name: _as_shown(line) for name, line in by_name.items()}
    amounts = {name: {feature: by_name[feature][name] or 0.0 for feature in schema.features} for name in resources}
    shared = _shared(path, [by_name[feature] for feature in schema.features], resources)
    prices = Prices(costs, shared, amounts.pop(TIME, None), **amounts)
    reference = {name: found for name, line in by_name.items() if (found := _reference(path, line)) is not None}
    reasons = {name: line["missing"] for name, line in by_name.items() if line["missing"]}
    for name in reasons:
        if name not in schema.features:
            raise InvalidInput(f"{path}: {name!r} is a column of a group; give the reason in the line of the group.")
    try:
        prices.resolve(schema.features)
        currency = currencies[0] if currencies else None
        desk = Desk(currency, features, reference=reference, reasons=reasons)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    return prices, desk


def _shown(desk: Desk, name: str) -> list[str]:
    shown = desk.shown(name)
    ends = ["" if end is None else f"{end:.10g}" for end in (shown.low, shown.high)]
    return [shown.label, shown.unit or "", *ends, desk.currency or ""]


def _lines(path: Path, encoding: str | None) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines as dicts with all the columns of a price list, None where a cell is empty; and its resources."""
    noted = read_noted(path, TableOptions(usual_encoding=encoding)).frame
    there = list(noted.columns)
    others = [str(name) for name in there if name not in (*HEADER, *OPTIONAL)]
    setups = [name for name in others if SETUP.fullmatch(name)]
    resources = [name for name in others if name not in setups]
    known = {"cost", MONEY, *resources}
    unknown = [name for name in setups if (of := SETUP.fullmatch(name)) and of[1] and of[1][1:] not in known]
    unknown += [name for name in resources if _misspelled(name) or not pd.api.types.is_numeric_dtype(noted[name])]
    lacking = [name for name in ("feature", "price") if name not in there]
    if unknown or lacking:
        problem = f"has no column {lacking[0]!r}" if lacking else f"has a column {unknown[0]!r}"
        raise InvalidInput(
            f"{path} {problem}; a price list has the columns {', '.join(HEADER)}, and may have {', '.join(OPTIONAL)}, "
            "and a column of numbers for each other resource, such as time, with setup_time for what is saved of it."
        )
    named = [name for name in setups if (of := SETUP.fullmatch(name)) and of[1] is None]
    options = TableOptions(
        text=[name for name in (*TEXT, *named) if name in there],
        number=[name for name in (*NUMBERS, *resources, *setups) if name in there and name not in named],
        usual_encoding=encoding,
    )
    frame = read_table(path, options).frame
    empty: dict[str, Any] = dict.fromkeys((*HEADER, *OPTIONAL))
    rows = frame.to_dict("records")
    lines = [{**empty, **{str(name): None if cell != cell else cell for name, cell in row.items()}} for row in rows]
    return lines, resources


def _misspelled(name: str) -> bool:
    """Whether a column is more probably one of those that every price list has than a resource."""
    return bool(difflib.get_close_matches(name.lower(), (*HEADER, *OPTIONAL), n=1, cutoff=0.75))


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


def _shared(path: Path, lines: Sequence[Mapping[str, Any]], resources: Sequence[str]) -> list[tuple[list[str], Any]]:
    """The set-up groups; a set-up of one feature is simply part of its price."""
    groups: dict[str, dict[str, tuple[Any, ...]]] = {}
    places = sorted(
        {of[2] or "" for name in lines[0] if (of := SETUP.fullmatch(name))}, key=lambda end: (len(end), end)
    )
    for line in lines:
        for end in places:
            setup, columns = line.get(f"setup{end}"), [f"setup_{name}{end}" for name in ("cost", *resources)]
            saved = tuple(line.get(column) for column in columns)
            if setup:
                groups.setdefault(setup, {})[line["feature"]] = saved
            elif any(saved):
                given = next(column for column, saving in zip(columns, saved, strict=True) if saving)
                raise InvalidInput(
                    f"{path}: {line['feature']!r} has a {given} and no setup{end}; name the set-up it is of."
                )
    for setup, members in groups.items():
        if len(set(members.values())) > 1 or any(all(saving is None for saving in of) for of in members.values()):
            shown = {name: of[0] if len(of) == 1 else of for name, of in members.items()}
            raise InvalidInput(
                f"{path}: the set-up {setup!r} must have the same setup_cost in all its lines; got {shown}."
            )
    return [(list(of), _saving(next(iter(of.values())), resources)) for of in groups.values() if len(of) > 1]


def _saving(saved: Sequence[Any], resources: Sequence[str]) -> Any:
    amounts = {name: float(saving or 0.0) for name, saving in zip((MONEY, *resources), saved, strict=True)}
    return amounts if any(amounts[name] for name in resources) else amounts[MONEY]


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
