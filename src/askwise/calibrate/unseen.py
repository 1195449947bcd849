"""Rows to calibrate on: checked, and refused where they were training rows or are copies of each other."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.stats import betabinom, poisson

from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

CHANCE = 1e-3
"""Rows are taken for training rows where so many equal ones are less probable than this."""


PAIRS_UNSEEN = 7
"""So many pairs can be expected where none was seen, with a probability of about 1 - CHANCE."""
NEAR = (0.5, 0.1, 0.02, 4e-3, 1e-3, 1e-4)
"""Widths, in standard deviations of the training rows, of the cells in which rows count as nearly equal. Many columns
need wide cells, in which noise seldom crosses a border; few columns narrow ones, which rows seldom share by chance."""
WIDEST_PER_COLUMN = 0.02
"""The widest cell for each column that a table has: in wider ones, new rows of a narrower population would meet."""
AROUND = 5
"""How many times as wide the cells are whose rows tell how many meet in a cell by chance."""
BORDER = 0.381966
"""Where the borders of the cells lie: rounded numbers and means must not lie on them."""


def digests(rows: EncodedRows) -> np.ndarray:
    """(n,) a number per row by which it can be recognized; no value can be read from it."""
    keys = [key.tobytes() for key in list(rounded_keys(rows))]
    return np.array([int.from_bytes(blake2b(key, digest_size=8).digest()) for key in keys], dtype=np.uint64)


def rounded_keys(rows: EncodedRows) -> np.ndarray:
    """(n,) `EncodedRows.keys` in single precision: a copy is recognized although it was rounded on its way."""
    with np.errstate(over="ignore"):
        return rows.with_values(rows.values.astype(np.float32).astype(float)).keys()


def check_new_rows(
    rows: EncodedRows, training: EncodedRows, schema: Schema, name: str, *, distinct: bool = False
) -> None:
    """An error if more of `rows` equal `training` rows, or nearly, than chance explains.

    Near copies are rows in the same cell of a grid in every number, equal in everything else. What chance explains is
    seen in the training rows: in tables of discrete or rounded values, of repeated rows, or of one column they share
    cells as well. It is also seen in wider cells: where rows are dense, as those of a narrower population are, some
    meet. Takes n log n steps for each of a few grids.

    Parameters
    ----------
    name
        The parameter that the rows were given as.
    distinct
        Whether the rows must not repeat each other either.
    """
    grids: list[tuple[np.ndarray, np.ndarray, str, float, float]] = []
    grids.append((rounded_keys(rows), rounded_keys(training), "", 0.0, 0.0))
    if schema.tabular and len(training) > 1:
        values = np.where(np.isfinite(training.values), training.values, np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = np.nanstd(values, axis=0)
        scale = np.where(np.isfinite(deviation) & (deviation > 0), deviation, 1.0)
        widest = WIDEST_PER_COLUMN * len(scale)
        for width in [width for width in NEAR if width <= widest]:
            cell = np.where(schema.is_category, 1.0, width * scale)
            words = f" nearly, within {width:g} standard deviations in each number,"
            wide = np.where(schema.is_category, 1.0, AROUND * cell)
            share = float(AROUND) ** -np.count_nonzero(~schema.is_category & (deviation > 0))
            expected = _expected(_cells(rows, wide).keys(), _cells(training, wide).keys(), share)
            grids.append((_cells(rows, cell).keys(), _cells(training, cell).keys(), words, *expected))
    chance = CHANCE / len(grids)
    for keys, seen, nearly, meetings, repeats in grids:
        check_unseen(keys, seen, name, nearly, chance, expected=meetings)
        if distinct:
            check_distinct(keys, seen, name, nearly, chance, expected=repeats)


def _expected(rows: np.ndarray, seen: np.ndarray, share: float) -> tuple[float, float]:
    """How many rows meet one that was seen, and one another, by chance in a cell that is a `share` of those given."""
    _, of_row, count = np.unique(np.concatenate([seen, rows]), return_inverse=True, return_counts=True)
    known = np.bincount(of_row[: len(seen)], minlength=len(count))
    own = count - known
    meetings = np.minimum(known[of_row[len(seen) :]] * share, 1.0).sum()
    return float(meetings), float((own * (own - 1) / 2).sum() * share)


def _cells(rows: EncodedRows, cell: np.ndarray) -> EncodedRows:
    with np.errstate(over="ignore", invalid="ignore"):
        return rows.with_values(np.floor(rows.values / cell + BORDER))


def check_unseen(
    rows: np.ndarray,
    seen: np.ndarray,
    name: str,
    nearly: str = "",
    chance: float = CHANCE,
    given_to: str = "fit",
    expected: float = 0.0,
) -> None:
    """An error if more of `rows` were seen than chance explains.

    Tables of few discrete values repeat rows by chance: as often as one that was seen equals another one.

    Parameters
    ----------
    rows, seen
        The `rounded_keys` or the `digests` of the rows, and those of the rows that were given to `fit`.
    name
        The parameter that the rows were given as.
    nearly
        How far equal keys mean equal rows, in words; empty: they do.
    chance
        The probability that new rows are refused.
    given_to
        What the rows that were seen had been given to.
    expected
        How many rows can be expected to be equal by chance, judged by how dense they lie.
    """
    known, of_row, count = np.unique(seen, return_inverse=True, return_counts=True)
    n_seen = int(np.isin(rows, known).sum())
    shared = (count[of_row] > 1).sum()
    # Rows that share a key come in pairs at least, so they count half; how often they do is itself an estimate.
    like_training = betabinom.sf(n_seen - 1, len(rows), (shared + 1) / 2, (len(seen) - shared + 1) / 2)
    if n_seen > 1 and max(like_training, poisson.sf(n_seen - 1, expected)) < chance:
        given = f"rows{nearly} equal rows given to {given_to}" if nearly else f"rows were given to {given_to} as well"
        raise InvalidInput(
            f"{name}: {n_seen} of {len(rows)} {given}{', more than chance explains' if nearly else ''}. On rows that "
            "it has seen, or copies of them with noise, the model looks better than it is on new ones, and so would "
            f"what is measured or calibrated on them. Give rows that neither the model nor {given_to} has seen."
        )


def check_distinct(
    rows: np.ndarray,
    seen: np.ndarray,
    name: str = "X_cal",
    nearly: str = "",
    chance: float = CHANCE,
    expected: float = 0.0,
) -> None:
    """An error if more of `rows` repeat another one than chance explains, judged by pairs of equal rows in `seen`.

    Copies count as cases of their own although they show nothing new: what is calibrated on them promises too much.
    The other parameters are those of `check_unseen`.
    """
    repeated = len(rows) - len(np.unique(rows))
    count = np.unique(seen, return_counts=True)[1]
    pairs = (count * (count - 1) / 2).sum() + PAIRS_UNSEEN
    expected = max(expected, pairs * (len(rows) * (len(rows) - 1)) / max(len(seen) * (len(seen) - 1), 1))
    if poisson.sf(repeated - 1, expected) < chance:
        raise InvalidInput(
            f"{name}: {repeated} of {len(rows)} rows{nearly} repeat another one, more than among the rows given to "
            "fit. Copies, also with noise, and empty rows show nothing new, so the promise would not hold. Give each "
            "case once."
        )


def labeled_unseen(rows: EncodedRows, y_unseen: Any, predictor: SubsetPredictor) -> tuple[EncodedRows, np.ndarray]:
    """Rows that `predictor` was not fitted on, and their labels as class positions; errors say what is wrong."""
    given = np.asarray(y_unseen)
    if given.shape != (len(rows),):
        raise InvalidInput(f"y_unseen must be one label per row, {len(rows)} in all; got shape {given.shape}.")
    if len(rows) < 2:
        raise InvalidInput("X_unseen must have at least 2 rows to calibrate on, better 100; got 1. Or leave it out.")
    check_new_rows(rows, predictor.training_rows_, predictor.schema_, "X_unseen")
    return rows, class_positions(predictor.classes_, given, "y_unseen")
