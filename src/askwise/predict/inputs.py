"""What the classifier at the end of a Pipeline sees of a partly observed row, and what that is in the user's words."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from askwise.columns import Column
from askwise.predict.final_layer import dense, prepared, split_pipeline
from askwise.predict.imputed import typical_row
from askwise.predict.rules import Interval, OneOf
from askwise.predict.wrapped import FrozenModel

ROWS_TO_PROBE = 2000
MOST_VALUES = 500
MOST_WORDS = 4


class ModelInputs:
    """Encoded rows (n, D) -> the columns that the classifier sees (n, P), and which of them are observed.

    A column of a Pipeline's output is observed when all columns of the table are that it depends on, which is found
    out by shuffling each column of the training rows and looking at what changes.

    Parameters
    ----------
    model
        The wrapped model.
    values
        (N, D) encoded training rows.
    encoded
        Whether the classifier's rules speak of encoded rows, so that nothing is to be transformed.
    rounded
        Whether the classifier compares in single precision, as scikit-learn's trees do.
    """

    def __init__(self, model: FrozenModel, values: np.ndarray, *, encoded: bool, rounded: bool) -> None:
        self._model = model
        self._rounded = rounded
        self._steps = split_pipeline(model.estimator)[0]
        self._columns = model.schema.columns
        self._plain = encoded or (self._steps is None and not model.schema.is_category.any())
        self._typical = typical_row(values, model.schema.is_category)
        self._values = values
        self.depends = np.eye(values.shape[1], dtype=bool) if self._steps is None else self._dependencies()  # (D, P)

    def __call__(self, values: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and observed inputs, (n, P) each; inputs that are not observed are NaN."""
        if self._plain:
            return self._rounding(values), mask
        seen = ~(~mask @ self.depends)
        return np.where(seen, self._transformed(np.where(mask, values, self._typical)), np.nan), seen

    def columns_behind(self, wanted: np.ndarray) -> np.ndarray:
        """(n, P) inputs -> (n, D) columns of the table that they depend on."""
        return wanted if self._steps is None else wanted @ self.depends.T

    def in_words(self, k: int, condition: Any) -> str:
        """A condition on the k-th input in the names, units and categories of the table."""
        behind = np.flatnonzero(self.depends[:, k])
        if len(behind) != 1:
            return _said(self._names[k], condition, None)
        column = self._columns[behind[0]]
        if hasattr(condition, "word"):
            return f"{column.name} is {condition.word}"
        if self._plain and not column.is_category:
            return _said(column.name, condition, column)
        cells, inputs = self._table_of(int(behind[0]), k)
        if column.is_category:
            return _categories(column, cells[condition.membership(inputs) > 0], cells)
        back = _brought_back(condition, cells, inputs)
        return _said(self._names[k], condition, None) if back is None else _said(column.name, back, column)

    def _table_of(self, j: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Values of column j of the table, sorted, and what the k-th input is for each."""
        column = self._columns[j]
        if column.is_category:
            cells = np.arange(len(column.known), dtype=float)
        else:
            cells = np.unique(self._values[~np.isnan(self._values[:, j]), j])
            cells = cells[np.unique(np.linspace(0, len(cells) - 1, MOST_VALUES).astype(int))]
        if self._plain:
            return cells, cells
        rows = np.repeat(self._typical[None], len(cells), axis=0)
        rows[:, j] = cells
        return cells, self._transformed(rows)[:, k]

    def _dependencies(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(self._values))[:ROWS_TO_PROBE]
        complete = np.where(np.isnan(self._values[rows]), self._typical, self._values[rows])
        before = self._transformed(complete)
        depends = np.zeros((complete.shape[1], before.shape[1]), dtype=bool)
        for j in range(complete.shape[1]):
            shuffled = complete.copy()
            shuffled[:, j] = rng.permutation(shuffled[:, j])
            depends[j] = (self._transformed(shuffled) != before).any(axis=0)
        return depends

    def _transformed(self, completed: np.ndarray) -> np.ndarray:
        return self._rounding(dense(prepared(self._model, self._steps, completed)))

    def _rounding(self, cells: np.ndarray) -> np.ndarray:
        if not self._rounded:
            return cells
        with np.errstate(over="ignore"):
            return cells.astype(np.float32).astype(float)

    @cached_property
    def _names(self) -> list[str]:
        if self._steps is None:
            return [column.name for column in self._columns]
        try:
            return [str(name) for name in self._steps.get_feature_names_out()]
        except Exception:  # a step of the user's own need not have names
            return [f"input {k}" for k in range(self.depends.shape[1])]


def _brought_back(condition: Any, cells: np.ndarray, inputs: np.ndarray) -> Interval | None:
    """A condition on a rising or falling function of a number as one on the number itself; None where it is neither."""
    if not isinstance(condition, Interval) or len(cells) < 2:
        return None
    step = np.diff(inputs)
    if (step > 0).all():
        low, high = (_where(bound, cells, inputs) for bound in (condition.low, condition.high))
    elif (step < 0).all():
        high, low = (_where(bound, cells[::-1], inputs[::-1]) for bound in (condition.low, condition.high))
        low, high = (-np.inf if np.isinf(condition.high) else low), (np.inf if np.isinf(condition.low) else high)
    else:
        return None
    return Interval(low, high)


def _where(bound: float, cells: np.ndarray, inputs: np.ndarray) -> float:
    return bound if np.isinf(bound) else float(np.interp(bound, inputs, cells))


def _said(name: str, condition: Any, column: Column | None) -> str:
    if isinstance(condition, OneOf):
        return f"{name} is {_or([f'{value:.4g}' for value in sorted(condition.values)])}"
    if not isinstance(condition, Interval):
        return f"{name} is {condition.word}"
    low, high = condition.low, condition.high
    if column is not None and isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
        low, high = np.floor(low) + 1, np.floor(high)
        if low == high:
            return f"{name} = {low:g}"
        return (
            f"{name} <= {high:g}"
            if np.isinf(low)
            else f"{name} >= {low:g}"
            if np.isinf(high)
            else f"{low:g} <= {name} <= {high:g}"
        )
    return (
        f"{name} <= {high:.4g}"
        if np.isinf(low)
        else f"{name} > {low:.4g}"
        if np.isinf(high)
        else f"{low:.4g} < {name} <= {high:.4g}"
    )


def _categories(column: Column, holding: np.ndarray, every: np.ndarray) -> str:
    """The categories that satisfy a condition, or those that do not where they are fewer."""
    others = np.setdiff1d(every, holding)
    positive = len(holding) <= len(others) or not len(others)
    shown = [str(column.show(code)) for code in (holding if positive else others)]
    if len(shown) > MOST_WORDS:
        shown = [*shown[:MOST_WORDS], f"{len(shown) - MOST_WORDS} others"]
    return f"{column.name} is {'' if positive else 'not '}{_or(shown)}"


def _or(words: list[str]) -> str:
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} or {words[-1]}"
