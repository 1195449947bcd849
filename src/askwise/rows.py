"""Encoded rows: the numeric representation of a table that everything below the schema uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from askwise.subsets import check_mask


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
