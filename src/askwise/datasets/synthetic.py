"""Synthetic data sets: the exact p(y | x_S), the exact gain of a feature, and the accuracy of the best policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from askwise.datasets.dataset import Dataset
from askwise.errors import InvalidInput
from askwise.parameters import Whole, check_values
from askwise.randomness import generator


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SyntheticDataset(Dataset, ABC):
    """A data set together with the distribution that it was drawn from.

    Attributes
    ----------
    classes
        The labels in the order of the columns of `exact_proba`, (C,).

    Examples
    --------
    >>> import numpy as np
    >>> from askwise.datasets import make_gaussian
    >>> data = make_gaussian(100, random_state=0)
    >>> nothing = np.zeros(data.X.shape, dtype=bool)
    >>> data.exact_proba(data.X, nothing)[0].round(2).tolist()
    [0.33, 0.33, 0.33]
    """

    classes: np.ndarray

    def exact_proba(self, X: pd.DataFrame | np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """The true p(y | x_S), (n, C), in the order of `classes`.

        Parameters
        ----------
        X
            Rows as in the data set, (n, D). A missing cell is not observed.
        mask
            Which cells are observed, (n, D); None means all that are not missing. With nothing observed the
            answer is the prior.
        """
        values, observed = self._observed(X, mask)
        return self._exact_proba(values, observed)

    def exact_gain(self, X: pd.DataFrame | np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        r"""The exact :math:`I(y; x_i \mid x_S)` of each hidden feature in nats, (n, D), -inf where observed.

        It is the expected reduction of KL(p(y | x) || p(y | x_S)) when both are exact, so its maximum is the exact
        greedy choice. `X` and `mask` are those of `exact_proba`.
        """
        values, observed = self._observed(X, mask)
        return np.where(observed, -np.inf, self._exact_gain(values, observed))

    def sample(self, n_samples: int, random_state: Any = None) -> tuple[pd.DataFrame, np.ndarray]:
        """Further rows of the same distribution and their labels."""
        check_values("sample", {"n_samples": n_samples}, {"n_samples": Whole(1)})
        return self._draw(n_samples, generator(random_state))

    def drawn(self, n_samples: int, random_state: Any) -> Self:
        """This data set with rows of its distribution."""
        X, y = self._draw(n_samples, generator(random_state))
        return replace(self, X=X, y=y)

    @abstractmethod
    def best_accuracy(self, budget: float | None = None) -> float:
        """Accuracy of the best policy within a `budget`, each feature costing 1; None is unlimited."""

    @abstractmethod
    def _draw(self, n_samples: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
        """Rows and labels."""

    @abstractmethod
    def _exact_proba(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """(n, C) from numbers and the mask of what is observed, both (n, D); hidden cells are NaN."""

    @abstractmethod
    def _exact_gain(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """(n, D) from the same arrays; entries of observed cells are not used."""

    def _observed(self, X: pd.DataFrame | np.ndarray, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The rows as numbers with NaN in hidden cells, and which cells are observed, (n, D) each."""
        rows = self._rows(X)
        if mask is not None:
            rows = rows.where(_checked_mask(mask, rows.shape))
        values = self._numbers(rows)
        return values, ~np.isnan(values)

    def _numbers(self, X: pd.DataFrame) -> np.ndarray:
        """The rows as floats, (n, D), NaN where missing."""
        return X.to_numpy(dtype=float, na_value=np.nan)

    def _rows(self, X: pd.DataFrame | np.ndarray) -> pd.DataFrame:
        """`X` with the columns of this data set in their order; an array is taken to have that order."""
        columns = self.X.columns
        if isinstance(X, pd.DataFrame):
            absent = [name for name in columns if name not in X.columns]
            if absent:
                raise InvalidInput(f"X must have the columns of the data set; it lacks {absent}.")
            return X[list(columns)]
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != len(columns):
            raise InvalidInput(f"X must have {len(columns)} columns ({', '.join(columns)}); got shape {rows.shape}.")
        return pd.DataFrame(rows, columns=columns)


def _checked_mask(mask: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != shape:
        raise InvalidInput(
            f"mask must be boolean of the shape of X, {shape}, True where observed; "
            f"got {mask.dtype} of shape {mask.shape}."
        )
    return mask
