"""Numbers rounded so that their sums are exact, and do not depend on the order of summation."""

from __future__ import annotations

import numpy as np

FINEST, DIGITS = 20, 53
"""Binary digits to which numbers are rounded at most, and those of a float."""


def on_grid(numbers: np.ndarray) -> np.ndarray:
    """Numbers rounded to `FINEST` binary digits after the point."""
    grid = 2.0**FINEST
    return np.asarray(np.rint(numbers * grid) / grid)


def rounded(numbers: np.ndarray, n_rows: int) -> np.ndarray:
    """Numbers from 0 to 1 with so few digits that a sum of `n_rows` products of two of them is exact in any order.

    >>> float(rounded(np.array([1 / 3]), 5000)[0] * 2**20)
    349525.0
    """
    grid = 2.0 ** min(FINEST, (DIGITS - n_rows.bit_length()) // 2)
    return np.asarray(np.rint(numbers * grid) / grid)


def exact_means(weights: np.ndarray, answers: np.ndarray, n_classes: int) -> np.ndarray:
    """(n, models, C) means of the `rounded` answers (N, models x C) on N rows by weights (n, N) from 0 to 1.

    The products of a matrix product are summed in an order that depends on the number of rows; here that makes no
    difference, so that a case has the same answer in any batch.
    """
    total = (rounded(weights, len(answers)) @ answers).reshape(len(weights), -1, n_classes)
    return np.asarray(total / total.sum(axis=2, keepdims=True))
