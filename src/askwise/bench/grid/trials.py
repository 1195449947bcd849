"""A cell: one method on one task, and what the studies that ask for it measure; each study's result is a file.

A file is written under another name and then renamed, so that it is there whole or not at all: whoever is killed loses
the study in hand and nothing else.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from askwise import files
from askwise.errors import AskwiseError
from askwise.progress import interruptible

CELLS = "cells"
"""Folder of the results, one file each."""


@dataclass(frozen=True, order=True)
class Cell:
    """What is fitted once, whichever studies use it."""

    data: str
    method: str
    prices: str
    seed: int

    def file(self, folder: Path, study: str) -> Path:
        """Where the result of a study is kept."""
        return folder / CELLS / file_name(study, *astuple(self))


def file_name(study: str, *cell: object) -> str:
    """Of the result of a study, by the parts of its cell."""
    return f"{'--'.join([study, *map(str, cell)])}.json"


@dataclass(frozen=True)
class Measurement:
    """One number; `budget` is None where there is none."""

    metric: str
    value: float
    budget: float | None = None


Study = Callable[[Any, Any], Iterable[Measurement]]
"""Function of a task and of the method fitted on it."""


def work(
    cell: Cell, studies: Mapping[str, Study], folder: Path, fit: Callable[[Cell], tuple[Any, Any]]
) -> dict[str, str | None]:
    """Fit once, run the studies and write each result at once; returns the error of each study, None = none."""
    start = time.perf_counter()
    try:
        with interruptible():
            task, fitted = fit(cell)
    except Exception:
        for study in studies:
            write(cell, study, folder, [], 0.0, error=traceback.format_exc())
        return dict.fromkeys(studies, traceback.format_exc())
    fitting = time.perf_counter() - start
    return {name: _study(cell, name, study, folder, task, fitted, fitting) for name, study in studies.items()}


def _study(cell: Cell, name: str, study: Study, folder: Path, task: Any, fitted: Any, fitting: float) -> str | None:
    start = time.perf_counter()
    error = None
    rows: Sequence[Measurement] = []
    try:
        with interruptible():
            rows = list(study(task, fitted))
    except Exception:
        error = traceback.format_exc()
    write(cell, name, folder, rows, fitting, time.perf_counter() - start, error)
    return error


def write(
    cell: Cell,
    study: str,
    folder: Path,
    rows: Sequence[Measurement],
    fitting: float,
    measuring: float = 0.0,
    error: str | None = None,
) -> None:
    """Keep a result, or how it failed."""
    document = {
        **asdict(cell),
        "study": study,
        "seconds": {"fit": fitting, "study": measuring},
        "error": error,
        "rows": [[row.budget, row.metric, float(row.value)] for row in rows],
    }
    write_whole(cell.file(folder, study), json.dumps(document))


def read(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where there is none that can be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def read_result(path: Path) -> dict[str, Any] | None:
    """A result as `write` leaves it under this name; None where the file is not one."""
    document = read(path)
    if document is None:
        return None
    try:
        cell = Cell(*(document[name] for name in ("data", "method", "prices", "seed")))
        rows = [
            (None if budget is None else float(budget), str(name), float(x)) for budget, name, x in document["rows"]
        ]
        seconds = {name: float(document["seconds"][name]) for name in ("fit", "study")}
        right = path == cell.file(path.parent.parent, document["study"]) and isinstance(document["error"], str | None)
    except (KeyError, TypeError, ValueError):
        return None
    return {**document, "rows": rows, "seconds": seconds} if right else None


def write_whole(path: Path, text: str) -> None:
    """Write a file at once or not at all, its folder made where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, text)
    except OSError as error:
        raise AskwiseError(
            f"{path.name} cannot be written to {path.parent}: {error.strerror or error}. What is finished is kept; "
            "make room or choose another folder, and run the same command again."
        ) from error
