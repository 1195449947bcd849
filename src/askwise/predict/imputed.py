"""The frozen model on rows whose hidden cells are filled in: a simple but biased estimate of p(y | x_S)."""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise.parameters import Choice, Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.randomness import generator
from askwise.table.rows import EncodedRows


class ImputedPredictor(SubsetPredictor):
    """The wrapped model on imputed rows.

    Parameters
    ----------
    estimator
        The classifier to wrap; see `SubsetPredictor`.
    strategy
        ``"mean"``: the mean of a number, the most frequent category; ``"zero"``: 0 for numbers, the most frequent
        category; ``"marginal"``: the model's answers averaged over the hidden cells of `n_draws` training rows,
        independently of what is observed.
    n_draws
        Training rows for ``"marginal"``.
    random_state
        Seed of the choice of these rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import numpy as np
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ImputedPredictor(model).fit(X, y)
    >>> only_first = np.array([[True, False, False, False]])
    >>> proba = predictor.predict_proba(X[[120]], only_first)
    >>> proba.round(1).tolist()
    [[0.0, 1.0, 0.0]]
    """

    averages_the_model = True

    fill_: np.ndarray  # (draws, D)

    def __init__(self, estimator: Any, strategy: str = "mean", n_draws: int = 50, random_state: Any = None) -> None:
        super().__init__(estimator)
        self.strategy = strategy
        self.n_draws = n_draws
        self.random_state = random_state

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        check_limits(self, {"strategy": Choice(("mean", "zero", "marginal")), "n_draws": Whole(1)})
        typical = typical_row(rows, self.schema_.is_category)
        if self.strategy == "marginal":
            drawn = rows.values[generator(self.random_state).permutation(len(rows))[: self.n_draws]]
            self.fill_ = np.where(np.isnan(drawn) & ~self.takes_missing_, typical, drawn)
        elif self.strategy == "zero":
            self.fill_ = np.where(self.schema_.is_category, typical, 0.0)[None]
        else:
            self.fill_ = typical[None]

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        return self._by_rows(np.all(rows.observed, axis=1), rows, self._average)

    def _average(self, rows: EncodedRows) -> np.ndarray:
        total = np.zeros((len(rows), self.model_.n_outputs))
        for fill in self.fill_:
            total += self.model_(rows.filled(fill))
        return total / len(self.fill_)


def typical_row(rows: EncodedRows, is_category: np.ndarray) -> np.ndarray:
    """(D,) mean of each number, most frequent code of each category, over the cells that are not missing."""
    typical = np.nanmean(rows.values, axis=0)
    for j in np.flatnonzero(is_category):
        codes = rows.values[rows.observed[:, j], j].astype(int)
        typical[j] = np.bincount(codes).argmax()
    return typical
