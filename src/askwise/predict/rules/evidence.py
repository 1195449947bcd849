"""Class counts of the training rows that satisfy a sub-rule, cached by signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from askwise.locking import Lock
from askwise.trees.fuzzy_growth import T_NORMS

WORDS_AT_ONCE = 2_000_000
WORD = 64


class SubRuleCache:
    """Class counts of sub-rules by a 64-bit signature; the least recently used are dropped first.

    The signature of a sub-rule is the exclusive or of random words of its conditions, so that equal sub-rules of
    different rules share one entry. Among a million sub-rules the chance that any two collide is below 1e-7.
    Thread-safe: missing entries are counted outside the lock.
    """

    def __init__(self, n_classes: int, max_bytes: int) -> None:
        self.max_entries = max_bytes // (8 * (n_classes + 2))
        # Signatures (E,), sorted; their counts (E, C); when each was used last (E,).
        self._entries = np.empty(0, dtype=np.uint64), np.empty((0, n_classes)), np.empty(0, dtype=np.int64)
        self._clock = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries[0])

    @property
    def nbytes(self) -> int:
        """Memory of the entries."""
        return sum(part.nbytes for part in self._entries)

    def get(self, signatures: np.ndarray, count: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """(E, C) counts of different `signatures` (E,); ``count(positions)`` computes the missing ones."""
        counts, found = self._look_up(signatures)
        missing = np.flatnonzero(~found)
        if len(missing):
            counts[missing] = count(missing)
            with self._lock:
                self._keep(signatures[missing], counts[missing])
        return counts

    def _look_up(self, signatures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(E, C) counts of the cached signatures, and which ones are cached (E,)."""
        with self._lock:
            self._clock += 1
            kept, of_kept, used = self._entries
            at = np.searchsorted(kept, signatures)
            found = np.zeros(len(signatures), dtype=bool)
            inside = at < len(kept)
            found[inside] = kept[at[inside]] == signatures[inside]
            counts = np.empty((len(signatures), of_kept.shape[1]))
            counts[found] = of_kept[at[found]]
            used[at[found]] = self._clock
        return counts, found

    def _keep(self, signatures: np.ndarray, counts: np.ndarray) -> None:
        room = self.max_entries - len(signatures)
        if room < 0:
            return
        before, of_before, used = self._entries
        kept = np.arange(len(before)) if len(before) <= room else np.argsort(-used, kind="stable")[:room]
        # Another thread may have added the same ones in the meantime.
        joined, order = np.unique(np.concatenate([before[kept], signatures]), return_index=True)
        all_counts = np.concatenate([of_before[kept], counts])
        all_used = np.concatenate([used[kept], np.full(len(signatures), self._clock)])
        self._entries = joined, all_counts[order], all_used[order]


class CrispEvidence:
    """Rows that satisfy all conditions of a sub-rule, by class: bits of rows joined by `and`, then counted.

    Parameters
    ----------
    conditions
        (column, condition) by number.
    inputs
        (N, U) training rows; a missing cell satisfies no condition.
    y
        (N,) class positions.
    n_classes
        C.
    """

    def __init__(
        self, conditions: Sequence[tuple[int, Any]], inputs: np.ndarray, y: np.ndarray, n_classes: int
    ) -> None:
        # Rows are sorted by class and each class starts a new word, so that counting by class is counting by words.
        n_words = np.maximum(1, -(-np.bincount(y, minlength=n_classes) // WORD))
        self._starts = np.concatenate([[0], np.cumsum(n_words)[:-1]])
        order = np.argsort(y, kind="stable")
        rank = np.arange(len(y)) - np.searchsorted(y[order], y[order])
        self._bit_of_row = self._starts[y[order]] * WORD + rank
        self._n_words = int(n_words.sum())
        self._bits = np.stack(
            [self._packed(condition.membership(inputs[order, u]) > 0) for u, condition in conditions]
            or [np.empty(0, dtype=np.uint64)]
        )
        self._everyone = self._packed(np.ones(len(y), dtype=bool))

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """(E, C) counts of sub-rules given by the `numbers` (E, U) of their conditions, -1 = none."""
        counts = np.empty((len(numbers), len(self._starts)))
        step = max(1, WORDS_AT_ONCE // self._n_words)
        for start in range(0, len(numbers), step):
            part = numbers[start : start + step]
            rows = np.repeat(self._everyone[None], len(part), axis=0)
            for of_column in part.T:
                asked = np.flatnonzero(of_column >= 0)
                rows[asked] &= self._bits[of_column[asked]]
            counts[start : start + step] = np.add.reduceat(np.bitwise_count(rows), self._starts, axis=1, dtype=float)
        return counts

    def _packed(self, holds: np.ndarray) -> np.ndarray:
        bits = np.zeros(self._n_words * WORD, dtype=bool)
        bits[self._bit_of_row] = holds
        return np.packbits(bits, bitorder="little").view(np.uint64)


class FuzzyEvidence:
    """Memberships of the training rows in a sub-rule, summed by class; parameters as for `CrispEvidence`."""

    def __init__(
        self,
        conditions: Sequence[tuple[int, Any]],
        inputs: np.ndarray,
        y: np.ndarray,
        n_classes: int,
        t_norm: str,
    ) -> None:
        self._degrees = np.stack(
            [condition.membership(inputs[:, u]) for u, condition in conditions] or [np.empty(len(y))]
        )
        self._classes = np.eye(n_classes)[y]
        self._t_norm = t_norm  # by its name: a function is not data that can be saved

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """(E, C) sums of memberships; `numbers` as in `CrispEvidence`."""
        sums = np.empty((len(numbers), self._classes.shape[1]))
        step = max(1, WORDS_AT_ONCE // len(self._classes))
        for start in range(0, len(numbers), step):
            part = numbers[start : start + step]
            degrees = np.ones((len(part), len(self._classes)))
            for of_column in part.T:
                asked = np.flatnonzero(of_column >= 0)
                degrees[asked] = T_NORMS[self._t_norm](degrees[asked], self._degrees[of_column[asked]])
            sums[start : start + step] = degrees @ self._classes
        return sums
