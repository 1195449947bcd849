"""Rows to calibrate on: checked, and refused where they were training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.rows import EncodedRows

CHANCE = 1e-3
"""Rows are taken for training rows where so many equal ones are less probable than this."""


def check_unseen(rows: EncodedRows, training: EncodedRows, name: str) -> None:
    """An error if more of `rows` equal training rows than chance explains.

    Tables of few discrete values repeat rows by chance: as often as a training row equals another one.

    Parameters
    ----------
    rows, training
        Encoded rows, and those that were given to `fit`.
    name
        The parameter that the rows were given as.
    """
    known, of_row, count = np.unique(training.keys(), return_inverse=True, return_counts=True)
    n_seen = int(np.isin(rows.keys(), known).sum())
    by_chance = ((count[of_row] > 1).sum() + 1) / (len(training) + 1)
    if n_seen > 1 and binom.sf(n_seen - 1, len(rows), by_chance) < CHANCE:
        raise InvalidInput(
            f"{name}: {n_seen} of {len(rows)} rows were given to fit as well. On rows that it has seen, the model "
            "looks better than it is on new ones, and so would what is calibrated on them. Give rows that neither the "
            "model nor fit has seen."
        )


def labeled_unseen(rows: EncodedRows, y_unseen: Any, predictor: SubsetPredictor) -> tuple[EncodedRows, np.ndarray]:
    """Rows that `predictor` was not fitted on, and their labels as class positions; errors say what is wrong."""
    given = np.asarray(y_unseen)
    if given.shape != (len(rows),):
        raise InvalidInput(f"y_unseen must be one label per row, {len(rows)} in all; got shape {given.shape}.")
    check_unseen(rows, predictor.training_rows_, "X_unseen")
    return rows, class_positions(predictor.classes_, given, "y_unseen")
