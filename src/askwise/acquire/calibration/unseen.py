"""Rows to calibrate on: checked, and refused where they were training rows or are copies of each other."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.stats import binom, poisson

from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.rows import EncodedRows

CHANCE = 1e-3
"""Rows are taken for training rows where so many equal ones are less probable than this."""


PAIRS_UNSEEN = 7
"""So many pairs can be expected where none was seen, with a probability of about 1 - CHANCE."""


def digests(rows: EncodedRows) -> np.ndarray:
    """(n,) a number per row by which it can be recognized; no value can be read from it."""
    keys = [key.tobytes() for key in list(rounded_keys(rows))]
    return np.array([int.from_bytes(blake2b(key, digest_size=8).digest()) for key in keys], dtype=np.uint64)


def rounded_keys(rows: EncodedRows) -> np.ndarray:
    """(n,) `EncodedRows.keys` in single precision: a copy is recognized although it was rounded on its way."""
    with np.errstate(over="ignore"):
        return rows.with_values(rows.values.astype(np.float32).astype(float)).keys()


def check_unseen(rows: np.ndarray, seen: np.ndarray, name: str, given_to: str = "fit") -> None:
    """An error if more of `rows` were seen than chance explains.

    Tables of few discrete values repeat rows by chance: as often as one that was seen equals another one.

    Parameters
    ----------
    rows, seen
        The `rounded_keys` or the `digests` of the rows, and those of the rows that were given to `fit`.
    name, given_to
        The parameter that the rows were given as, and what the others were given to.
    """
    known, of_row, count = np.unique(seen, return_inverse=True, return_counts=True)
    n_seen = int(np.isin(rows, known).sum())
    by_chance = ((count[of_row] > 1).sum() + 1) / (len(seen) + 1)
    if n_seen > 1 and binom.sf(n_seen - 1, len(rows), by_chance) < CHANCE:
        raise InvalidInput(
            f"{name}: {n_seen} of {len(rows)} rows were given to {given_to} as well. On rows that it has seen, the "
            "model looks better than it is on new ones, and so would what is measured or calibrated on them. Give rows "
            f"that neither the model nor {given_to} has seen."
        )


def check_distinct(rows: np.ndarray, seen: np.ndarray) -> None:
    """An error if more of `rows` repeat another one than chance explains, judged by pairs of equal rows in `seen`.

    Copies count as cases of their own although they show nothing new: what is calibrated on them promises too much.
    """
    repeated = len(rows) - len(np.unique(rows))
    count = np.unique(seen, return_counts=True)[1]
    pairs = (count * (count - 1) / 2).sum() + PAIRS_UNSEEN
    expected = pairs * (len(rows) * (len(rows) - 1)) / max(len(seen) * (len(seen) - 1), 1)
    if poisson.sf(repeated - 1, expected) < CHANCE:
        raise InvalidInput(
            f"X_cal: {repeated} of {len(rows)} rows repeat another one, more than among the rows given to fit. Copies "
            "and empty rows show nothing new, so the promise would not hold. Give each case once."
        )


def labeled_unseen(rows: EncodedRows, y_unseen: Any, predictor: SubsetPredictor) -> tuple[EncodedRows, np.ndarray]:
    """Rows that `predictor` was not fitted on, and their labels as class positions; errors say what is wrong."""
    given = np.asarray(y_unseen)
    if given.shape != (len(rows),):
        raise InvalidInput(f"y_unseen must be one label per row, {len(rows)} in all; got shape {given.shape}.")
    if len(rows) < 2:
        raise InvalidInput("X_unseen must have at least 2 rows to calibrate on, better 100; got 1. Or leave it out.")
    check_unseen(rounded_keys(rows), rounded_keys(predictor.training_rows_), "X_unseen")
    return rows, class_positions(predictor.classes_, given, "y_unseen")
