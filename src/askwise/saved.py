"""Saving as a method of everything that acquires features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from askwise.table.desk import Desk


class Saveable:
    """Adds `save`; `askwise.load` reads what it writes."""

    def save(
        self,
        folder: str | Path,
        rows: str = "training",
        key_file: str | Path | None = None,
        desk: Desk | None = None,
    ) -> Any:
        """Write the fitted selector as a folder that `askwise.load` reads; there is no pickle in it.

        A selector that was saved there before is replaced in one step, and not kept: whoever loads the folder meanwhile
        gets the one or the other, whole. A wrapped function, or a torch module of a class of your own, is not in it:
        give it again with ``askwise.load(folder, model=...)``.

        Parameters
        ----------
        folder
            Where to write.
        rows
            ``"training"``: with the training rows, which completions need; the manifest says how many.
            ``"synthetic"``: with rows drawn from a model of the table in their place. What this costs in accuracy, and
            how close the drawn rows come to real ones, is measured, printed and returned.
        key_file
            File with a secret key of 16 bytes or more, to sign the folder with.
        desk
            Labels, units, ranges and the currency for the people who use it; kept in the folder as ``desk.json``.
        """
        from askwise.persistence import save

        return save(self, folder, rows, key_file, desk)  # type: ignore[arg-type]
