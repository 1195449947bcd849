"""Encoded rows: the numeric representation of a table that everything below the schema uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import binom

from askwise.errors import InvalidInput, listed
from askwise.subsets import check_mask

TWINS_BY_CHANCE = 1e-4
"""Rows equal to training rows are refused where chance gives as many less often than this."""


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

    def found_in(self, others: EncodedRows) -> np.ndarray:
        """(n,) bool: the rows that equal a row of `others` in every cell."""
        known = set(_keys(others.values))
        return np.array([key in known for key in _keys(self.values)], dtype=bool)


def check_unseen(rows: EncodedRows, training: EncodedRows, owner: str) -> None:
    """Refuse `rows` if more of them are training rows than chance explains.

    Tables with few values repeat themselves: the share of training rows that have a twin among the others says how
    many new rows can be expected to equal a training row.
    """
    found = rows.found_in(training)
    counts = Counter(_keys(training.values))
    twins = sum(count for count in counts.values() if count > 1) / max(len(training), 1)
    if binom.sf(found.sum() - 1, len(rows), twins) < TWINS_BY_CHANCE:
        raise InvalidInput(
            f"{owner} must hold rows that fit has not seen; {found.sum()} of its {len(rows)} rows were in fit (rows "
            f"{listed(np.flatnonzero(found).tolist(), most=5)}). Decisions on rows that the model was trained on say "
            "little about new cases: leave these rows out."
        )


def _keys(values: np.ndarray) -> list[bytes]:
    """A key per row that is equal for rows with equal cells; NaN equals NaN, and -0.0 equals 0.0."""
    same = np.where(np.isnan(values), np.nan, values + 0.0)
    return [row.tobytes() for row in np.ascontiguousarray(same)]
