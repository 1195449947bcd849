"""The audit trail as JSON and CSV: suggested, asked, answered, predicted, by whom, when, and with which model."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from askwise.web.store import Event

COLUMNS = (
    "case",
    "label",
    "version",
    "at",
    "by",
    "event",
    "suggested",
    "feature",
    "value",
    "confirmed",
    "cost",
    "prediction",
    "probability",
    "model",
    "askwise",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A cell of text that begins with one of them is run as a formula by spreadsheets."""


def as_json(trail: Iterable[tuple[str, Event]]) -> Iterator[str]:
    """A JSON list, piece by piece."""
    yield '{"trail": ['
    for number, row in enumerate(_rows(trail)):
        yield ("," if number else "") + "\n" + json.dumps(row)
    yield "\n]}\n"


def as_csv(trail: Iterable[tuple[str, Event]]) -> Iterator[str]:
    """A CSV file, line by line; text that a spreadsheet would run as a formula gets an apostrophe in front."""
    line = io.StringIO()
    writer = csv.writer(line)
    for cells in chain([COLUMNS], ([_cell(row[name]) for name in COLUMNS] for row in _rows(trail))):
        writer.writerow(cells)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _rows(trail: Iterable[tuple[str, Event]]) -> Iterator[dict[str, Any]]:
    for label, event in trail:
        given = vars(event) | {"case": event.case_id, "label": label, "event": event.type}
        yield {name: given[name] for name in COLUMNS}


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return json.dumps(value)  # begins with a brace
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
