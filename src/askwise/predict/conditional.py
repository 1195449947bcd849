"""The frozen model averaged over completions of a case: Eq. 5 of the paper, taken literally and without training."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.neighbors import CELLS_AT_ONCE, Neighbors
from askwise.randomness import generator

TRAINING_NEIGHBORS = 20


@dataclass(frozen=True)
class Completions:
    """K ways to complete each row: the pool rows used, their weights, and the wrapped model's answers."""

    index: np.ndarray  # (n, K)
    weights: np.ndarray  # (n, K)
    proba: np.ndarray  # (n, K, C)

    def mean(self) -> np.ndarray:
        """p(y | x_S), (n, C)."""
        return np.einsum("nk,nkc->nc", self.weights, self.proba)


class ConditionalPredictor(SubsetPredictor):
    r"""The wrapped model averaged over completions from training rows that resemble what is observed.

    .. math:: p(y \mid x_S) = \int p(y \mid x_S, x_{\bar S}) \, p(x_{\bar S} \mid x_S) \, dx_{\bar S}

    with the inner distribution represented by the hidden cells of the `n_neighbors` nearest training rows. Equals
    the wrapped model on complete rows. Nothing is trained.

    Parameters
    ----------
    estimator
        The classifier to wrap; see `SubsetPredictor`.
    n_neighbors
        Completions per row, which is also how many rows the wrapped model is asked about for each case.
    bandwidth
        Width of the kernel that weights the neighbors, in standard deviations of a column.
    max_rows
        Training rows kept for the search; a random sample of them when there are more.
    random_state
        Seed of that sample.
    """

    averages_the_model = True

    def __init__(
        self,
        estimator: Any,
        n_neighbors: int = 100,
        bandwidth: float = 0.8,
        max_rows: int = 5000,
        random_state: Any = None,
    ) -> None:
        super().__init__(estimator)
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.max_rows = max_rows
        self.random_state = random_state

    def _fit(self, values: np.ndarray, y: np.ndarray) -> None:
        if self.n_neighbors < 1 or self.max_rows < 1 or not self.bandwidth > 0:
            raise InvalidInput(
                "n_neighbors and max_rows must be at least 1 and bandwidth above 0; got "
                f"{self.n_neighbors}, {self.max_rows}, {self.bandwidth}."
            )
        # Shuffled, so that neighbors at equal distance are a fair sample even of a sorted table.
        rows = generator(self.random_state).permutation(len(values))[: self.max_rows]
        pool = values[rows]
        self.pool_position_ = np.full(len(values), -1)
        self.pool_position_[rows] = np.arange(len(rows))
        self.neighbors_ = Neighbors(pool, self.schema_.is_category, self.n_neighbors, self.bandwidth)
        self.pool_ = np.where(self.takes_missing_, pool, self.neighbors_.filled(pool))

    def for_training(self) -> Self:
        return self.with_neighbors(min(TRAINING_NEIGHBORS, self.neighbors_.n_neighbors))

    def with_neighbors(self, n_neighbors: int) -> Self:
        """The same pool with another number of completions per row."""
        other = copy.copy(self)
        other.neighbors_ = copy.copy(self.neighbors_)
        other.neighbors_.n_neighbors = min(n_neighbors, len(self.pool_))
        return other

    def completions(self, values: np.ndarray, mask: np.ndarray, leave_out: np.ndarray | None = None) -> Completions:
        """The wrapped model's answers on the completions of encoded rows; `leave_out` as in `predict_proba`."""
        positions = None if leave_out is None else self.pool_position_[leave_out]
        index, weights = self.neighbors_.find(values, mask, positions)
        n, k = index.shape
        proba = np.empty((n, k, self.model_.n_outputs))
        step = max(1, CELLS_AT_ONCE // (k * values.shape[1]))
        for start in range(0, n, step):
            part = slice(start, start + step)
            completed = np.where(mask[part, None, :], values[part, None, :], self.pool_[index[part]])
            proba[part] = self.model_(completed.reshape(-1, values.shape[1])).reshape(-1, k, self.model_.n_outputs)
        return Completions(index, weights, proba)

    def _predict(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return self._by_rows(np.all(mask, axis=1), values, mask, lambda v, m: self.completions(v, m).mean())

    def _predict_new(self, values: np.ndarray, mask: np.ndarray, rows: np.ndarray) -> np.ndarray:
        complete = np.all(mask, axis=1)
        return self._by_rows(complete, values, mask, lambda v, m: self.completions(v, m, rows[~complete]).mean())
