"""A booster of XGBoost, LightGBM or CatBoost, as their files hold it, as a function from rows to probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from askwise.errors import InvalidInput


class BoosterModel:
    """A booster that was trained to classify: ``askwise.wrap(BoosterModel(booster), classes=[...])``.

    Columns are matched by name where the booster knows their names.

    Parameters
    ----------
    booster
        An `xgboost.Booster` with an objective that gives probabilities (binary:logistic, multi:softprob), or a
        `lightgbm.Booster` (binary, multiclass), or a fitted `catboost.CatBoostClassifier` that was read from a file.
    """

    def __init__(self, booster: Any) -> None:
        self.booster = booster

    @property
    def names(self) -> list[str] | None:
        """The columns that the booster was trained on; None where it does not know them."""
        if self._library == "xgboost":
            return self.booster.feature_names
        names = list(self.booster.feature_name() if self._library == "lightgbm" else self.booster.feature_names_)
        unnamed = (f"Column_{j}" if self._library == "lightgbm" else str(j) for j in range(len(names)))
        return None if names == list(unnamed) else names

    @property
    def _library(self) -> str:
        return type(self.booster).__module__.split(".")[0]

    def __call__(self, X: Any) -> np.ndarray:
        """(n, C) probabilities, or (n,) those of the second of two classes."""
        names = self.names
        if isinstance(X, pd.DataFrame) and names is not None and set(names) == set(map(str, X.columns)):
            X = X.set_axis([str(name) for name in X.columns], axis=1)[names]
        if self._library == "catboost":
            return np.asarray(self.booster.predict_proba(X), dtype=float)
        try:
            cells = np.asarray(X, dtype=float)
        except ValueError as error:
            raise InvalidInput(f"The booster takes numbers only ({error}). Turn text into numbers first.") from None
        if self._library == "lightgbm":
            return np.asarray(self.booster.predict(cells), dtype=float)
        from xgboost import DMatrix

        return np.asarray(self.booster.predict(DMatrix(cells, feature_names=names)), dtype=float)
