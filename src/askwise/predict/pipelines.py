"""Inputs of the classifier at the end of a Pipeline for partly observed rows, and conditions on them in words."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pandas.api import types

from askwise.errors import InvalidInput
from askwise.locking import Lock
from askwise.model.final_layer import prepared
from askwise.model.input_columns import changed_inputs, present_values
from askwise.model.parts import dense, split_pipeline
from askwise.model.wrapped import FrozenModel
from askwise.predict.imputed import typical_row
from askwise.predict.rules.conditions import Interval, OneOf
from askwise.predict.rules.crisp import recoded
from askwise.table.columns import Column
from askwise.table.rows import EncodedRows

LOG = logging.getLogger(__name__)

ROWS_TO_PROBE = 500
ROWS_BEYOND = 100
MOST_VALUES = 500
MOST_WORDS = 4
LARGEST_SINGLE = float(np.finfo(np.float32).max)


class ModelInputs:
    """Encoded rows -> the inputs of the classifier (n, P), and which of them are observed.

    An output column of a Pipeline is observed when all table columns that it depends on are. The dependencies are found
    by changing the values in each column of the training rows and comparing the output.

    Parameters
    ----------
    model
        The wrapped model.
    rows
        Encoded training rows.
    encoded
        Whether the classifier's rules refer to encoded rows, so that nothing is transformed.
    rounded
        Whether the classifier compares in single precision, as scikit-learn's trees do.
    named
        Categories that occur in rules but not in training, by column (`rules.crisp.named_categories`).
    """

    def __init__(
        self,
        model: FrozenModel,
        rows: EncodedRows,
        *,
        encoded: bool,
        rounded: bool,
        named: Mapping[int, list[Any]] | None = None,
    ) -> None:
        values = rows.values
        self._named = {} if named is None else named
        self._model = model
        self._rounded = rounded
        self._steps = split_pipeline(model.estimator)[0]
        self._columns = model.schema.columns
        self._plain = encoded or (self._steps is None and not model.schema.is_category.any())
        typical = typical_row(rows, model.schema.is_category)
        # A value that occurs in training: an encoder of whole numbers refuses their mean.
        self._typical = values[np.nanargmin(np.abs(values - typical), axis=0), np.arange(values.shape[1])]
        self._values = values
        # Both caches are bounded by the number of the model's conditions.
        self._lock = Lock()
        self._words: dict[tuple[int, Any], str] = {}
        self._tables: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self.depends = np.eye(values.shape[1], dtype=bool) if self._steps is None else self._dependencies()  # (D, P)

    def __call__(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and observed inputs, (n, P) each; inputs that are not observed are NaN."""
        if self._plain:
            return self._rounding(recoded(rows, self._columns, self._named)), rows.observed
        seen = ~(~rows.observed @ self.depends)
        return np.where(seen, self._transformed(self.completed(rows)), np.nan), seen

    def completed(self, rows: EncodedRows) -> EncodedRows:
        """Rows with a typical value in every cell that is not observed."""
        return rows.filled(self._typical)

    def columns_behind(self, wanted: np.ndarray) -> np.ndarray:
        """(n, P) inputs -> (n, D) columns of the table that they depend on."""
        return wanted if self._steps is None else wanted @ self.depends.T

    def in_words(self, k: int, condition: Any) -> str:
        """A condition on the k-th input in the names, units and categories of the table."""
        with self._lock:
            if (k, condition) not in self._words:
                self._words[k, condition] = self._put_in_words(k, condition)
            return self._words[k, condition]

    def _put_in_words(self, k: int, condition: Any) -> str:
        behind = np.flatnonzero(self.depends[:, k])
        if len(behind) != 1:
            return _said(self._names[k], condition, None)
        column = self._columns[behind[0]]
        if hasattr(condition, "word"):
            return f"{column.name} is {condition.word}"
        if self._plain and not column.is_category:
            return _said(column.name, condition, column)
        cells, inputs = self._table_of(int(behind[0]), k)
        if column.is_category:  # a rule list may contain categories that occur in no row
            holding = np.array(condition.bounds) if self._plain else cells[condition.membership(inputs) > 0]
            return _categories(column, holding, cells, self._named.get(int(behind[0]), []))
        back = _brought_back(condition, cells, inputs)
        return _said(self._names[k], condition, None) if back is None else _said(column.name, back, column)

    def _table_of(self, j: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Sorted values of column j of the table, and the k-th input for each."""
        if (j, k) not in self._tables:
            self._tables[j, k] = self._made_table(j, k)
        return self._tables[j, k]

    def _made_table(self, j: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        column = self._columns[j]
        cells = np.arange(len(column.known), dtype=float) if column.is_category else self._values_of(j)
        if self._plain:
            return cells, cells
        rows = np.repeat(self._typical[None], len(cells), axis=0)
        rows[:, j] = cells
        return cells, self._transformed(EncodedRows(rows))[:, k]

    def _values_of(self, j: int) -> np.ndarray:
        """Distinct values of a column, sorted: a selection of numbers, or all categories."""
        return present_values(self._values[:, j], None if self._columns[j].is_category else MOST_VALUES)

    def _dependencies(self) -> np.ndarray:
        rows = np.random.default_rng(0).permutation(len(self._values))[:ROWS_TO_PROBE]
        complete = np.where(np.isnan(self._values[rows]), self._typical, self._values[rows])
        before = self._inputs_of(complete)
        seen = [(j, self._values_of(j)) for j in range(complete.shape[1])]
        depends = changed_inputs(self._inputs_of, seen, complete, before)
        beyond = [(j, cell) for j, cells in seen for cell in self._values_beyond(j, cells)]
        few = complete[:ROWS_BEYOND], before[:ROWS_BEYOND]
        changed = changed_inputs(self._inputs_of, beyond, *few, refusable=True)
        for (j, _), line in zip(beyond, changed, strict=True):
            depends[j] |= line
        # A constant column may determine any input that no other column changes.
        constant = np.array([len(cells) == 1 for _, cells in seen])
        depends[np.ix_(constant & ~depends.any(axis=1), ~depends.any(axis=0))] = True
        return depends

    def _values_beyond(self, j: int, seen: np.ndarray) -> list[np.ndarray]:
        """Values that occur in no row of `fit`, although the model may have been trained on rows with them."""
        if self._columns[j].is_category:
            return [np.array([c]) for c in np.setdiff1d(np.arange(len(self._columns[j].known), dtype=float), seen)]
        span = max(1.0, float(np.ptp(seen)))
        return [seen[[0]] - span, seen[[-1]] + span]

    def _inputs_of(self, cells: np.ndarray) -> np.ndarray:
        return self._transformed(EncodedRows(cells))

    def _transformed(self, completed: EncodedRows) -> np.ndarray:
        return self._rounding(dense(prepared(self._model, self._steps, completed)))

    def _rounding(self, cells: np.ndarray) -> np.ndarray:
        if not self._rounded:
            return cells
        too_large = np.abs(cells) > LARGEST_SINGLE
        if too_large.any():
            row, k = np.argwhere(too_large)[0]
            raise InvalidInput(
                f"{self._names[k]} is {cells[row, k]:g}, which a decision tree cannot compare: it works in single "
                f"precision, up to {LARGEST_SINGLE:.2g}. Check the value and its unit."
            )
        return cells.astype(np.float32).astype(float)

    @cached_property
    def _names(self) -> list[str]:
        if self._steps is None:
            return [column.name for column in self._columns]
        n_inputs = dense(prepared(self._model, self._steps, EncodedRows(self._typical[None]))).shape[1]
        return output_names(self._steps) or [f"input {k}" for k in range(n_inputs)]


def output_names(steps: Any) -> list[str]:
    """Names of the output columns of a Pipeline's steps; empty if a step does not provide them."""
    try:
        return [str(name) for name in steps.get_feature_names_out()]
    except Exception as error:  # a custom step need not have names, and may say so by any error
        LOG.debug("The steps name no outputs: %s", error)
        return []


def _brought_back(condition: Any, cells: np.ndarray, inputs: np.ndarray) -> Interval | None:
    """A condition on a monotone function of a number as a condition on the number; None if not monotone."""
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
    """The cell whose input is `bound`, by linear interpolation or extrapolation."""
    if np.isinf(bound):
        return bound
    after = int(np.clip(np.searchsorted(inputs, bound), 1, len(inputs) - 1))
    share = (bound - inputs[after - 1]) / (inputs[after] - inputs[after - 1])
    return float(cells[after - 1] + share * (cells[after] - cells[after - 1]))


def _said(name: str, condition: Any, column: Column | None) -> str:
    if isinstance(condition, OneOf):
        return f"{name} is {_or([_number(value) for value in sorted(condition.values)])}"
    if not isinstance(condition, Interval):
        return f"{name} is {condition.word}"
    low, high = condition.low, condition.high
    # A split of a tree may only separate missing cells from the others.
    if np.isposinf(low) or (np.isneginf(low) and np.isposinf(high)):
        return f"{name} is {'missing' if np.isposinf(low) else 'known'}"
    if column is not None and types.is_integer_dtype(column.dtype):
        low, high = np.floor(low) + 1, np.floor(high)
        if low == high:
            return f"{name} = {_number(low)}"
        at_least, above = f"{name} >= {_number(low)}", f"{_number(low)} <= "
    else:
        at_least, above = f"{name} > {_number(low)}", f"{_number(low)} < "
    if np.isinf(high):
        return at_least
    return f"{'' if np.isinf(low) else above}{name} <= {_number(high)}"


def _number(value: float) -> str:
    """At least four significant digits, and all digits before the point."""
    digits = int(np.log10(max(abs(value), 1.0))) + 1 if np.isfinite(value) else 0
    return f"{value:.{max(4, digits)}g}"


def _categories(column: Column, holding: np.ndarray, every: np.ndarray, named: list[Any]) -> str:
    """The categories that satisfy a condition, or those that do not if they are fewer."""
    others = np.setdiff1d(every, holding)
    positive = 0 < len(holding) <= len(others) or not len(others)
    shown = [str(column.show(code, named)) for code in (holding if positive else others)]
    if len(shown) > MOST_WORDS:
        shown = [*shown[:MOST_WORDS], f"{len(shown) - MOST_WORDS} others"]
    return f"{column.name} is {'' if positive else 'not '}{_or(shown)}"


def _or(words: list[str]) -> str:
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} or {words[-1]}"
