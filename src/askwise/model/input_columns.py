"""Which columns of the table each input of a classifier behind the steps of a Pipeline depends on, found by trial."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

LOG = logging.getLogger(__name__)

ROWS_AT_ONCE = 20_000
"""Rows that are transformed in one call: many at once cost little more than one, but all of them much memory."""

Transform = Callable[[np.ndarray], np.ndarray]
"""Encoded cells (n, D) -> inputs of the classifier (n, P)."""
Probe = tuple[int, np.ndarray]
"""A column, and cells to try in it."""


def changed_inputs(
    transform: Transform, probes: Sequence[Probe], rows: np.ndarray, before: np.ndarray, refusable: bool = False
) -> np.ndarray:
    """(probes, P) inputs that change when the cells of a column are replaced by those of a probe.

    Parameters
    ----------
    transform
        The steps before the classifier.
    probes
        Columns, and the cells to try in each. Rows and cells are repeated where the others are more.
    rows, before
        (n, D) complete rows, and (n, P) their inputs.
    refusable
        Whether a probe that raises an error in one of the steps changes nothing, because such values cannot occur.
    """
    sizes = [max(len(rows), len(cells)) for _, cells in probes]
    if len(probes) < 2 or sum(sizes) <= ROWS_AT_ONCE:
        try:
            return _changed_at_once(transform, probes, sizes, rows, before)
        except Exception as error:  # the steps may be of any package: that of an encoder need not be a ValueError
            if not refusable:
                raise
            LOG.debug("A probe is refused, one column at a time: %s", error)
            if len(probes) < 2:
                return np.zeros((len(probes), before.shape[1]), dtype=bool)
    half = len(probes) // 2
    return np.concatenate(
        [changed_inputs(transform, part, rows, before, refusable) for part in (probes[:half], probes[half:])]
    )


def _changed_at_once(
    transform: Transform, probes: Sequence[Probe], sizes: Sequence[int], rows: np.ndarray, before: np.ndarray
) -> np.ndarray:
    if not probes:
        return np.zeros((0, before.shape[1]), dtype=bool)
    at = np.concatenate([np.arange(size) % len(rows) for size in sizes])
    starts = np.cumsum([0, *sizes[:-1]])
    other = rows[at]
    for (j, cells), start, size in zip(probes, starts, sizes, strict=True):
        other[start : start + size, j] = np.resize(cells, size)
    after, before = transform(other), before[at]
    changed = (after != before) & ~(np.isnan(after) & np.isnan(before))
    return np.asarray(np.logical_or.reduceat(changed, starts, axis=0))


def present_values(cells: np.ndarray, most: int | None = None) -> np.ndarray:
    """The distinct values of a column, sorted, without missing ones; of more than `most`, evenly spaced ranks."""
    found = np.unique(cells[~np.isnan(cells)])
    if most is None or not len(found):
        return found
    return found[np.unique(np.linspace(0, len(found) - 1, most).astype(int))]
