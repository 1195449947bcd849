"""Acquisition for many cases, block by block; finished blocks are kept until the whole is written."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from askwise.errors import AskwiseError, InvalidInput
from askwise.files import only_writer, write_whole, writing
from askwise.progress import track
from askwise.scale.parts import ends_of
from askwise.stopping.calibrated_stop import GUARANTEE_VOID
from askwise.table.columns import plain


class Resumable:
    """A run that goes on where an earlier one with the same inputs and options stopped.

    Two runs that write to one output at the same time are refused, whatever their options.

    Parameters
    ----------
    output
        The file to write in the end; the blocks are in a folder beside it, `parts`.
    inputs
        Contents that the result depends on: blocks of other inputs are not used.
    options
        Options of the run, ready for JSON.
    """

    def __init__(self, output: Path, inputs: Iterable[bytes], options: Mapping[str, Any]) -> None:
        self.output, self.options = output, options
        digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode())
        for content in inputs:
            digest.update(hashlib.sha256(content).digest())
        self.parts = output.with_name(f".{output.name}.{digest.hexdigest()[:16]}.parts")
        self.resumed = 0

    def complete(self, selector: Any, cases: pd.DataFrame) -> pd.DataFrame:
        """Run all blocks that are not finished, and write the whole."""
        step = int(self.options["at_once"])
        starts = range(0, len(cases), step)
        known = _known_mask(selector, self.options["known"] or [])
        with only_writer(self.output), writing(self.output):
            self.parts.mkdir(exist_ok=True)
            blocks = [
                self._block(selector, cases.iloc[start : start + step], known, self.parts / f"{start:09d}.json")
                for start in track(starts, "acquiring", len(starts), "auto")
            ]
            table = pd.concat(blocks, ignore_index=True)
            self._write(table)
            shutil.rmtree(self.parts)
        return table

    def _block(self, selector: Any, cases: pd.DataFrame, known: np.ndarray, path: Path) -> pd.DataFrame:
        if path.exists():
            self.resumed += len(cases)
            return pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", GUARANTEE_VOID)  # the command says it of the whole
            run = selector.acquire(cases, budget=self.options["budget"], stop=self.options["stop"], known=known)
        table = run.to_frame() if self.options["steps"] else ends_of(run, cases.index.to_numpy(), "all")
        rows = {str(name): [cell if cell is None else plain(cell) for cell in table[name]] for name in table.columns}
        write_whole(path, json.dumps(rows))
        return pd.DataFrame(rows)  # as it is read again, so that a resumed run writes the same file

    def _write(self, table: pd.DataFrame) -> None:
        if self.output.suffix == ".csv":
            write_whole(self.output, table.to_csv(index=False, lineterminator="\n"))
            return
        try:
            write_whole(self.output, table.to_parquet(index=False))
        except ImportError:
            raise AskwiseError('Writing Parquet needs pyarrow: pip install "askwise[arrow]".') from None


def _known_mask(selector: Any, features: Iterable[str]) -> np.ndarray:
    mask = np.zeros(len(selector.features_), dtype=bool)
    for feature in features:
        mask[selector.schema_.position(feature, "--known")] = True
    return mask


def check_ids(cases: pd.DataFrame, column: str) -> None:
    """Ids must differ: a case is found by its own."""
    repeated = cases[column][cases[column].duplicated()]
    if len(repeated):
        raise InvalidInput(f"--id: {column!r} holds {plain(repeated.iloc[0])!r} more than once; ids must differ.")
