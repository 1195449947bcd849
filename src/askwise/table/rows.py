"""Encoded rows, the numeric representation of a table that everything below the schema uses, and arrays by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from askwise.table.subsets import check_mask

CELLS_AT_ONCE = 4_000_000
"""Cells of completed rows that are computed at a time."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows of a table as numbers; created by `Schema.encode`, converted back by `Schema.decode`.

    Parameters
    ----------
    values
        (n, D) numbers as they are, categories as codes, NaN where a cell is not observed.
    unseen
        Categories not seen in training, by column: their codes follow those of the known ones. They belong to
        these rows and not to the schema, so a query never changes what was fitted.
    """

    values: np.ndarray
    unseen: Mapping[int, list[Any]] = field(default_factory=dict)

    @cached_property
    def observed(self) -> np.ndarray:
        """(n, D) cells that are observed."""
        return ~np.isnan(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> EncodedRows:
        """Some of the rows, by position or by a boolean mask."""
        return EncodedRows(self.values[rows], self.unseen)

    def keys(self) -> np.ndarray:
        """(n,) one item per row that is equal for equal rows, missing cells included."""
        cells = np.ascontiguousarray(np.where(self.observed, self.values + 0.0, np.nan))  # one NaN, and no -0
        return cells.view(np.dtype((np.void, cells.shape[1] * cells.itemsize))).reshape(-1)

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The first of equal rows, for each set of them, and for each row the position of its set."""
        _, first, inverse = np.unique(self.keys(), return_index=True, return_inverse=True)
        return first, inverse

    def with_values(self, values: np.ndarray) -> EncodedRows:
        """Other cells with the same meaning of the codes, such as completed ones."""
        return EncodedRows(values, self.unseen)

    def masked(self, mask: Any) -> EncodedRows:
        """Keep only the cells that `mask` (n, D) or (D,) marks; every other one becomes NaN.

        A computation that reads a hidden cell then yields NaN instead of leaking its value.

        >>> EncodedRows(np.array([[1.0, 2.0, np.nan]])).masked([True, False, True]).values
        array([[ 1., nan, nan]])
        """
        shown = check_mask(mask, self.values.shape)
        return self.with_values(np.where(shown, self.values, np.nan))

    def filled(self, fill: np.ndarray) -> EncodedRows:
        """Every hidden cell replaced by that of `fill`, which is broadcast."""
        return self.with_values(np.where(self.observed, self.values, fill))


class ByRow:
    """A dataclass of arrays with one entry per row, None where there is nothing."""

    def take(self, rows: Any) -> Self:
        """The entries of some rows, by position or by a boolean mask."""
        taken = {}
        for name, part in vars(self).items():
            taken[name] = part.take(rows) if isinstance(part, ByRow) else None if part is None else part[rows]
        return type(self)(**taken)

    def put(self, rows: np.ndarray, new: Self) -> Self:
        """A copy with the entries of `rows` replaced by those of `new`, in order."""
        replaced = {}
        for name, old in vars(self).items():
            part = getattr(new, name)
            replaced[name] = old.put(rows, part) if isinstance(old, ByRow) else _put(old, rows, part)
        return type(self)(**replaced)

    @classmethod
    def concatenated(cls, parts: Sequence[Self]) -> Self:
        """Several blocks of rows as one."""
        joined: dict[str, Any] = {}
        for name, first in vars(parts[0]).items():
            found = [getattr(part, name) for part in parts]
            lacking = any(part is None for part in found)
            joined[name] = None if lacking else getattr(first, "concatenated", np.concatenate)(found)
        return cls(**joined)


def _put(old: np.ndarray | None, rows: np.ndarray, new: np.ndarray | None) -> np.ndarray | None:
    if old is None or new is None:
        return None
    out = old.copy()
    out[rows] = new
    return out
