"""The parts of a Parquet table: what is read and written at a time, and what a run must share with one it resumes."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from askwise.errors import AskwiseError, InvalidInput
from askwise.files import write_whole

PLAN = "plan.json"


@dataclass(frozen=True)
class RowGroup:
    """Rows that a worker reads in one go, in parts: a row group of a Parquet file.

    `first_part` and `first_row` number its first part and its first row within the whole table.
    """

    file: str
    number: int
    n_rows: int
    first_part: int
    first_row: int


@dataclass(frozen=True)
class Options:
    """What is acquired and written; see `acquire_parquet`."""

    budget: float | dict[str, float] | None
    stop: str | None
    known: tuple[str, ...]
    write: str
    id_column: str | None
    rows_per_part: int
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A run: the saved selector, the row groups of the cases, the options, and the folder for finished parts."""

    selector: str
    digest: str  # of the selector and the cases
    groups: tuple[RowGroup, ...]
    options: Options
    parts: str

    @property
    def n_parts(self) -> int:
        """The number of parts in all."""
        return sum(-(-group.n_rows // self.options.rows_per_part) for group in self.groups)

    def part(self, number: int) -> Path:
        """The file of a part."""
        return Path(self.parts) / f"part-{number:06d}.parquet"

    def prepare(self) -> int:
        """Make the folder of the parts, and count those that an earlier run with the same plan has finished.

        Parts of another plan are refused: they may be hours of work.
        """
        folder, text = Path(self.parts), json.dumps(asdict(self), sort_keys=True)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / PLAN).exists():
                write_whole(folder / PLAN, text)
            same = (folder / PLAN).read_text(encoding="utf-8") == text
        except OSError as error:
            raise AskwiseError(f"{folder} cannot be written: {error}. Choose another place.") from None
        if not same:
            raise InvalidInput(
                f"{folder} holds parts of a run with another selector, other cases or other options. Give those again "
                "to resume it, delete the folder to start anew, or choose another output."
            )
        return sum(self.part(number).exists() for number in range(self.n_parts))

    def remove(self) -> None:
        """Remove the parts."""
        shutil.rmtree(self.parts)


def make_plan(selector: Path, cases: Path, parts: Path, options: Options) -> Plan:
    """The plan for a Parquet file, or for a folder of them in alphabetical order."""
    arrow = import_parquet()
    files = sorted(cases.rglob("*.parquet")) if cases.is_dir() else [cases]
    if not files or not files[0].exists():
        raise InvalidInput(f"There is no Parquet file at {cases}.")
    if not (selector / "manifest.json").exists():
        raise InvalidInput(f"{selector} is not a folder that save() wrote: it has no manifest.json.")
    digest = hashlib.sha256((selector / "manifest.json").read_bytes())
    groups: list[RowGroup] = []
    part = row = 0
    for file in files:
        try:
            found = arrow.ParquetFile(file).metadata
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{file} cannot be read as Parquet: {error}") from None
        digest.update(f"{file.name}:{file.stat().st_size}:{found.num_rows}".encode())
        for k in range(found.num_row_groups):
            n = found.row_group(k).num_rows
            digest.update(f":{n}:{found.row_group(k).total_byte_size}".encode())
            if n:
                groups.append(RowGroup(str(file), k, n, part, row))
            part, row = part + -(-n // options.rows_per_part), row + n
    if not groups:
        raise InvalidInput(f"{cases} has no rows.")
    return Plan(str(selector), digest.hexdigest(), tuple(groups), options, str(parts))


def import_parquet() -> Any:
    """The module pyarrow.parquet; if it is not installed, an error that names the extra."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise AskwiseError('Parquet needs pyarrow: pip install "askwise[arrow]".') from None
    return parquet
