"""The folder of a run: what made it, the results of its trials, and the tables of all their numbers."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Container, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import askwise
from askwise.errors import AskwiseError, InvalidInput, listed
from askwise_bench.grid.trials import PARAMETERS, TRIALS, file_name, read, read_result, write_whole

TRIAL = ["data", "method", "prices", "seed"]
COLUMNS = (*TRIAL, "study", "metric", *PARAMETERS, "value")
TIMING_COLUMNS = (*TRIAL, "suite", "fit_seconds", "study_seconds")
FORMAT = 2
MANIFEST, ROWS, TIMINGS = "manifest.json", "rows.csv", "timings.csv"
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "pytorch-tabnet")
REMEDY = (
    "askwise bench writes this file; run that again, or delete the file and it is written anew from the finished "
    "trials."
)


def open_folder(out: Path, profile: str, limits: dict[str, int | None], command: str) -> None:
    """Make the folder, or see that what is in it was made by the same parameters; and note the command there."""
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"{out} is a file; choose a folder with --out.")
    ours = {"askwise": askwise.__version__, "profile": profile, "limits": limits}
    if any((out / name).exists() for name in (MANIFEST, TRIALS, ROWS, TIMINGS)):
        found = read_manifest(out)
    else:
        found = {"format": FORMAT, **ours, "versions": versions(), "commands": []}
    _refuse_to_mix(out, {**found, **found["versions"]}, {**ours, **versions()})
    try:
        (out / TRIALS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AskwiseError(
            f"The folder {out} cannot be created: {error.strerror}. Choose another with --out."
        ) from None
    if command not in found["commands"]:
        write_whole(out / MANIFEST, json.dumps({**found, "commands": [*found["commands"], command]}, indent=1))


def read_manifest(out: Path) -> dict[str, Any]:
    """What made a folder: format, askwise, profile, limits and versions by name, and commands."""
    found = read(out / MANIFEST) or {}
    if found.get("format", FORMAT) != FORMAT:
        raise InvalidInput(
            f"{out} holds results in format {found['format']!r}, and this version of askwise reads and writes format "
            f"{FORMAT} only. Run the benchmark again into another folder (--out), or read this one with the version "
            f"that wrote it, {found.get('askwise', 'unknown')}."
        )
    kinds = {"format": int, "askwise": str, "profile": str, "limits": dict, "versions": dict, "commands": list}
    if not all(isinstance(found.get(name), kind) for name, kind in kinds.items()):
        raise InvalidInput(
            f"{out / MANIFEST} is missing or is not the manifest of a benchmark. Give a folder that `askwise bench "
            "--out` wrote, or for a new run one that does not exist yet."
        )
    return found


def _refuse_to_mix(out: Path, found: dict[str, Any], ours: dict[str, Any]) -> None:
    for name, value in ours.items():
        if found.get(name) != value:
            raise InvalidInput(
                f"{out} holds results made with {name} {found.get(name)!r}, not {value!r}, and the two must not be "
                "mixed. Choose another folder with --out, run with the same settings, or delete this one."
            )


def versions() -> dict[str, str]:
    """Versions of the packages that the numbers depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def results(out: Path, expected: Container[Path] = ()) -> list[dict[str, Any]]:
    """Every finished result of a folder, ordered by name; those `expected` to be made may be broken."""
    found = {path: read_result(path) for path in _files(out)}
    strange = [path.name for path, document in found.items() if document is None and path not in expected]
    if strange:
        raise AskwiseError(
            f"{len(strange)} of the files in {out / TRIALS} are not results of a trial, for example {strange[0]}. "
            "Delete them, and run the command that made them again."
        )
    return [document for document in found.values() if document is not None]


def _files(out: Path) -> list[Path]:
    return sorted((out / TRIALS).glob("*.json"))


def collect(out: Path) -> None:
    """Write ``rows.csv``, a tidy row per number, and ``timings.csv``, from the finished trials."""
    documents = results(out)
    rows = [
        [*(d[name] for name in (*TRIAL, "study")), row.metric]
        + [getattr(row, name) for name in PARAMETERS]  # None becomes an empty field
        + [repr(float(row.value))]
        for d in documents
        for row in d["rows"]
    ]
    timings = [
        [*(d[name] for name in (*TRIAL, "suite")), d["seconds"]["fit"], d["seconds"]["study"]] for d in documents
    ]
    write_whole(out / ROWS, _csv(COLUMNS, rows))
    write_whole(out / TIMINGS, _csv(TIMING_COLUMNS, timings))


def bring_up_to_date(out: Path) -> None:
    """`collect` where the tables lack finished trials, as after a run that was killed."""
    files = _files(out)
    if not files:
        return
    written = [path.stat().st_mtime_ns for path in (out / ROWS, out / TIMINGS) if path.exists()]
    newest = max(path.stat().st_mtime_ns for path in files)
    if len(written) < 2 or min(written) < newest or _collected(out) != {path.name for path in files}:
        collect(out)


def _collected(out: Path) -> set[str]:
    """Names of the results that are in the tables."""
    return {file_name(suite, *trial) for *trial, suite, _, _ in read_timings(out).to_numpy().tolist()}


def read_timings(out: Path) -> pd.DataFrame:
    """The seconds of each fit and study."""
    numbers = dict.fromkeys(("seed", "fit_seconds", "study_seconds"), "number")
    return read_table(out / TIMINGS, TIMING_COLUMNS, numbers).astype({"seed": int})


def read_table(path: Path, columns: Sequence[str], kinds: Mapping[str, str]) -> pd.DataFrame:
    """A table that `askwise bench` wrote, with all of `columns`.

    `kinds` says which are a "number", or may be empty ("... or nothing"); the others are a "word". Numbers are finite.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Give the folder that a benchmark was run into.") from None
    if list(table.columns) != list(columns):
        got = listed([name[:40] for name in table.columns], 20, ascii)  # a binary file has any text here
        raise InvalidInput(f"{path} must have the columns {', '.join(columns)}; got {got}. {REMEDY}")
    for name in columns:
        text, kind = table[name], kinds.get(name, "word")
        empty = text == ""
        wrong = empty & ("nothing" not in kind)
        if kind.startswith("number"):
            table[name] = pd.to_numeric(text, errors="coerce").astype(float)
            wrong |= ~np.isfinite(table[name]) & ~empty
        if wrong.any():
            line = int(wrong.to_numpy().argmax())
            raise InvalidInput(f"{path}, line {line + 2}: {name} must be a {kind}; got {text.iloc[line]!r}. {REMEDY}")
    return table


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
