"""The frozen model on rows whose hidden cells are filled in: the simplest answer to p(y | x_S), and a biased one."""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.randomness import generator

STRATEGIES = ("mean", "zero", "marginal")


class ImputedPredictor(SubsetPredictor):
    """The wrapped model on imputed rows.

    Parameters
    ----------
    estimator
        The classifier to wrap; see `SubsetPredictor`.
    strategy
        ``"mean"``: the mean of a number, the most frequent category; ``"zero"``: 0 for numbers, the most frequent
        category; ``"marginal"``: the model's answers averaged over hidden cells taken together from `n_draws`
        training rows, whatever is observed.
    n_draws
        Training rows for ``"marginal"``.
    random_state
        Seed of the choice of these rows.
    """

    averages_the_model = True

    def __init__(self, estimator: Any, strategy: str = "mean", n_draws: int = 50, random_state: Any = None) -> None:
        super().__init__(estimator)
        self.strategy = strategy
        self.n_draws = n_draws
        self.random_state = random_state

    def _fit(self, values: np.ndarray, y: np.ndarray) -> None:
        if self.strategy not in STRATEGIES:
            raise InvalidInput(f"strategy must be one of {STRATEGIES}; got {self.strategy!r}.")
        typical = typical_row(values, self.schema_.is_category)
        if self.strategy == "marginal":
            rows = generator(self.random_state).permutation(len(values))[: self.n_draws]
            drawn = values[rows]
            self.fill_ = np.where(np.isnan(drawn) & ~self.takes_missing_, typical, drawn)  # (draws, D)
        elif self.strategy == "zero":
            self.fill_ = np.where(self.schema_.is_category, typical, 0.0)[None]
        else:
            self.fill_ = typical[None]

    def _predict(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return self._by_rows(np.all(mask, axis=1), values, mask, self._average)

    def _average(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        total = np.zeros((len(values), self.model_.n_outputs))
        for fill in self.fill_:
            total += self.model_(np.where(mask, values, fill))
        return total / len(self.fill_)


def typical_row(values: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """(D,) mean of each number, most frequent code of each category, over the cells that are there."""
    typical = np.nanmean(values, axis=0)
    for j in np.flatnonzero(is_category):
        codes = values[~np.isnan(values[:, j]), j].astype(int)
        typical[j] = np.bincount(codes).argmax()
    return typical
