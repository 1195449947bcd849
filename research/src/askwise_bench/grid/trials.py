"""A trial: one method on one task, and what the suites that include it measure; each suite's result is a file.

A file is written under another name and then renamed, so that it is there whole or not at all: a run that is killed
loses the study that was running and nothing else.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from askwise import files
from askwise.errors import AskwiseError
from askwise.progress import interruptible

TRIALS = "trials"
"""Folder of the results, one file each."""


@dataclass(frozen=True, order=True)
class Trial:
    """What is fitted once, whichever suites use it."""

    data: str
    method: str
    prices: str
    seed: int

    def file(self, folder: Path, suite: str) -> Path:
        """Where the result of a suite is kept."""
        return folder / TRIALS / file_name(suite, *astuple(self))


def file_name(suite: str, *trial: object) -> str:
    """Of the result of a suite, by the fields of its trial."""
    return f"{'--'.join([suite, *map(str, trial)])}.json"


@dataclass(frozen=True)
class Measurement:
    """One number, a row of ``rows.csv``; docs/project/benchmarks-history.md says what each of its columns means.

    A parameter is None where the number does not depend on it.
    """

    metric: str
    value: float
    budget: float | None = None
    subset_size: int | None = None
    subset: int | None = None
    case: int | None = None
    measure: str | None = None
    loss: str | None = None
    risk_weight: float | None = None
    sigma: float | None = None
    unavailable_share: float | None = None
    l1: float | None = None
    rejected: int | None = None
    bin: int | None = None
    draw: int | None = None


PARAMETERS = tuple(field.name for field in fields(Measurement))[2:]
WORDS = ("metric", "measure", "loss")
"""Fields of a measurement that are text; the others are numbers."""

Study = Callable[[Any, Any], Iterable[Measurement]]
"""Function of a task and of the method fitted on it; its name is the ``study`` of its rows."""


def work(
    trial: Trial, studies: Mapping[str, Study], folder: Path, fit: Callable[[Trial], tuple[Any, Any]]
) -> dict[str, str | None]:
    """Fit once, run the study of each suite and write each result at once; returns the errors by suite, None = none."""
    fitted, error, fitting = _tried(fit, trial)
    errors = {}
    for suite, study in studies.items():
        if error is None:
            rows, errors[suite], measuring = _tried(lambda study: list(study(*fitted)), study)
            seconds = {"fit": fitting, "study": measuring}
        else:
            rows, errors[suite], seconds = None, error, {"fit": 0.0, "study": 0.0}
        write(trial, suite, study.__name__, folder, rows or [], seconds, errors[suite])
    return errors


def _tried(act: Callable[..., Any], argument: Any) -> tuple[Any, str | None, float]:
    """What `act` returns, or None and the traceback; and how many seconds it took."""
    start, result, error = time.perf_counter(), None, None
    try:
        with interruptible():
            result = act(argument)
    except Exception:
        error = traceback.format_exc()
    return result, error, time.perf_counter() - start


def write(
    trial: Trial,
    suite: str,
    study: str,
    folder: Path,
    rows: Iterable[Measurement],
    seconds: Mapping[str, float],
    error: str | None = None,
) -> None:
    """Keep a result, or how it failed, with the seconds of the ``fit`` and of the ``study``."""
    kept = [{name: value for name, value in vars(row).items() if value is not None} for row in rows]
    document = {**asdict(trial), "suite": suite, "study": study, "seconds": seconds, "error": error, "rows": kept}
    write_whole(trial.file(folder, suite), json.dumps(document, default=float))


def read(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where the file is missing or holds something else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def read_result(path: Path) -> dict[str, Any] | None:
    """A result as `write` leaves it under this name; None where the file is not one."""
    document = read(path)
    if document is None:
        return None
    try:
        trial = Trial(*(document[name] for name in ("data", "method", "prices", "seed")))
        rows = [_measurement(row) for row in document["rows"]]
        seconds = {name: float(document["seconds"][name]) for name in ("fit", "study")}
        right = path == trial.file(path.parent.parent, document["suite"]) and isinstance(document["error"], str | None)
        right &= isinstance(document["study"], str)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return {**document, "rows": rows, "seconds": seconds} if right else None


def _measurement(row: Mapping[str, Any]) -> Measurement:
    wrong = [name for name, value in row.items() if not isinstance(value, str if name in WORDS else int | float)]
    if wrong:
        raise TypeError(f"{wrong[0]} has the wrong type")
    return Measurement(**row)


def write_whole(path: Path, text: str) -> None:
    """Write a file at once or not at all, and create its folder where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, text)
    except OSError as error:
        raise AskwiseError(
            f"{path.name} cannot be written to {path.parent}: {error.strerror or error}. Finished results are kept; "
            "make room or choose another folder, and run the same command again."
        ) from error
