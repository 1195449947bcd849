"""Masks of observed cells or features (True): checking, sampling and extending them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from askwise.errors import InvalidInput

WORD = 64


def check_mask(
    mask: Any, shape: tuple[int, int], owner: str = "mask", names: Sequence[str] | None = None
) -> np.ndarray:
    """`mask` as a boolean array of `shape`; one row of it is used for all rows.

    The labels of a DataFrame or Series must be `names` in their order, or plain positions.
    """
    labels = list(getattr(mask, "columns", mask.index)) if hasattr(mask, "iloc") else []
    if labels and names is not None and labels not in (list(names), list(range(shape[1]))):
        raise InvalidInput(f"{owner} must have one column per feature in the order {list(names)}; got {labels}.")
    array = np.asarray(mask)
    if array.dtype != bool:
        raise InvalidInput(f"{owner} must be boolean, True or False; got {array.dtype}.")
    if array.shape not in (shape, shape[1:]):
        raise InvalidInput(f"{owner} must have shape {shape} or {shape[1:]}; got {array.shape}.")
    return np.array(np.broadcast_to(array, shape))


def sample(n: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Random masks (n, n_features): size uniform on 0..M-1, then a uniform subset of that size.

    Uniform subsets would nearly all have about M/2 features, while most budgets are smaller.
    """
    return sample_of_sizes(rng.integers(0, n_features, size=n), n_features, rng)


def sample_of_sizes(sizes: np.ndarray, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Random masks (n, n_features), uniform among those of the given sizes (n,)."""
    ranks = rng.random((len(sizes), n_features)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < sizes[:, None])


def extended(mask: np.ndarray, features: np.ndarray) -> np.ndarray:
    """`mask` with feature ``features[r]`` of each row set; -1 leaves a row as it is.

    >>> extended(np.array([[True, False], [False, False]]), np.array([1, -1])).tolist()
    [[True, True], [False, False]]
    """
    out = mask.copy()
    rows = np.flatnonzero(features >= 0)
    out[rows, features[rows]] = True
    return out


def packed(bits: np.ndarray) -> np.ndarray:
    """Booleans (n, K) as (n, W) words of 64."""
    padded = np.zeros((len(bits), WORD * max(1, -(-bits.shape[1] // WORD))), dtype=bool)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def meets(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(n, m): whether a row of `left` (n, K) and one of `right` (m, K) are True in some place at once.

    By words of 64: a product of numbers, as quick, reports an invalid value on some processors.
    """
    found = np.zeros((len(left), len(right)), dtype=bool)
    for own, other in zip(packed(left).T, packed(right).T, strict=True):
        found |= own[:, None] & other != 0
    return found


def unique_masks(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of `mask`, and for each row the number of its distinct row."""
    if mask.shape[1] > 64:
        rows, inverse = np.unique(mask, axis=0, return_inverse=True)
        return rows, inverse.reshape(-1)
    # A row as one number, first column first, sorts as the row does and much faster.
    padded = np.zeros((len(mask), 64), dtype=bool)
    padded[:, : mask.shape[1]] = mask
    numbers = np.packbits(padded, axis=1).view(">u8").reshape(-1).astype(np.uint64)
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return mask[first], inverse.reshape(-1)
