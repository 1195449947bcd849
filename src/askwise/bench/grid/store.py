"""The folder of a run: what made it, the results of its cells, and the tables of all their numbers."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Container, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import askwise
from askwise.bench.grid.trials import CELLS, file_name, read, read_result, write_whole
from askwise.errors import AskwiseError, InvalidInput

COLUMNS = ("data", "method", "prices", "seed", "budget", "metric", "value")
TIMING_COLUMNS = (*COLUMNS[:4], "study", "fit_seconds", "study_seconds")
FORMAT = 1
MANIFEST, ROWS, TIMINGS = "manifest.json", "rows.csv", "timings.csv"
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "pytorch-tabnet")


def open_folder(out: Path, profile: str, limits: dict[str, int], command: str) -> None:
    """Make the folder, or see that what is in it was made by the same parameters; and note the command there."""
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"{out} is a file; choose a folder with --out.")
    ours = {"format": FORMAT, "askwise": askwise.__version__, "profile": profile, "limits": limits}
    found = read(out / MANIFEST)
    if found is None:
        if any((out / name).exists() for name in (MANIFEST, CELLS, ROWS, TIMINGS)):
            raise InvalidInput(f"{out} holds files but no manifest.json of a run; choose another folder with --out.")
        found = {**ours, "versions": versions(), "commands": []}
    _refuse_to_mix(out, {**found, **_dict(found.get("versions"))}, {**ours, **versions()})
    commands = found.get("commands")
    if not isinstance(commands, list) or not all(isinstance(told, str) for told in commands):
        raise InvalidInput(f"{out / MANIFEST} must list commands; got {commands!r}. Choose another folder with --out.")
    try:
        (out / CELLS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AskwiseError(f"The folder {out} cannot be made: {error.strerror}. Choose another with --out.") from None
    if command not in commands:
        write_whole(out / MANIFEST, json.dumps({**found, "commands": [*commands, command]}, indent=1))


def _refuse_to_mix(out: Path, found: dict[str, Any], ours: dict[str, Any]) -> None:
    for name, value in ours.items():
        if found.get(name) != value:
            raise InvalidInput(
                f"{out} holds results made with {name} {found.get(name)!r}, not {value!r}, and these are not to be "
                "mixed. Choose another folder with --out, run with the same settings, or delete this one."
            )


def versions() -> dict[str, str]:
    """What the numbers are made with."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def about(out: Path) -> dict[str, Any]:
    """The manifest of a folder: limits and versions by name, commands, profile; empty where it cannot be told."""
    found = read(out / MANIFEST) or {}
    commands = found.get("commands")
    return {
        **found,
        "limits": _dict(found.get("limits")),
        "versions": _dict(found.get("versions")),
        "commands": commands if isinstance(commands, list) else [],
    }


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def results(out: Path, expected: Container[Path] = ()) -> list[dict[str, Any]]:
    """Every finished result of a folder, in the order of their names; those `expected` to be made may be broken."""
    found = {path: read_result(path) for path in _files(out)}
    strange = [path.name for path, document in found.items() if document is None and path not in expected]
    if strange:
        raise AskwiseError(
            f"{len(strange)} of the files in {out / CELLS} are no results, {strange[0]} for one. Delete them, and run "
            "the command that made them again."
        )
    return [document for document in found.values() if document is not None]


def _files(out: Path) -> list[Path]:
    return sorted((out / CELLS).glob("*.json"))


def collect(out: Path) -> None:
    """Write ``rows.csv``, a tidy row per number, and ``timings.csv``, from the finished cells."""
    documents = results(out)
    rows = [
        [d["data"], d["method"], d["prices"], d["seed"], "" if budget is None else repr(budget), metric, repr(value)]
        for d in documents
        for budget, metric, value in d["rows"]
    ]
    timings = [
        [d["data"], d["method"], d["prices"], d["seed"], d["study"], d["seconds"]["fit"], d["seconds"]["study"]]
        for d in documents
    ]
    write_whole(out / ROWS, _csv(COLUMNS, rows))
    write_whole(out / TIMINGS, _csv(TIMING_COLUMNS, timings))


def bring_up_to_date(out: Path) -> None:
    """`collect` where the tables lack finished cells, as after a run that was killed."""
    files = _files(out)
    if not files or read(out / MANIFEST) is None:
        return
    written = [path.stat().st_mtime_ns for path in (out / ROWS, out / TIMINGS) if path.exists()]
    newest = max(path.stat().st_mtime_ns for path in files)
    if len(written) < 2 or min(written) < newest or _collected(out) != {path.name for path in files}:
        collect(out)


def _collected(out: Path) -> set[str]:
    """Names of the results that are in the tables."""
    with (out / TIMINGS).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    return {file_name(row[4], *row[:4]) for row in rows if len(row) == len(TIMING_COLUMNS)}


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
