"""Models at the end of a Pipeline on completions of a case, without transforming the completions.

Most preprocessing works on each column by itself. An input of the classifier is then that of the case where its column
is observed and that of the pool row where it is not: the steps see the case itself, and the pool rows once, but not the
K completions of the case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from askwise.errors import InvalidInput
from askwise.model.final_layer import prepared
from askwise.model.input_columns import changed_inputs, present_values
from askwise.model.parts import asked, dense, unfrozen
from askwise.model.stacked import BatchedLayers, StackedModels, shares_steps
from askwise.model.wrapped import ROWS_PER_CALL, FrozenModel
from askwise.table.rows import CELLS_AT_ONCE, EncodedRows

LOG = logging.getLogger(__name__)
MOST_BYTES = 256 * 2**20
"""Memory for the inputs of pool rows, or of probes; with more of them, completions are transformed one by one."""
BY_COLUMN = (
    *(Binarizer, KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, MissingIndicator, OneHotEncoder, OrdinalEncoder),
    *(PowerTransformer, QuantileTransformer, RobustScaler, SimpleImputer, SplineTransformer, StandardScaler),
    TargetEncoder,
)
"""Transformers each of whose outputs depends on one column. Of any other, no number of trials would show it."""
LARGEST_SHARE = 1e6
"""Of the first layer of a network: shares are subtracted again, which leaves an error of 1e-16 of the largest."""
MIXES = 200
MOST_NUMBERS = 64
"""Numbers of a column that are tried."""

AnswerOnPool = Callable[[EncodedRows, np.ndarray], np.ndarray]
"""Rows and the pool rows (n, K) that complete them -> (n, K, outputs)."""


class PoolInputs:
    """The inputs of a classifier for cases and for pool rows.

    Parameters
    ----------
    model
        A wrapped model, which says how tables are read.
    steps
        The steps before its classifier; None if there are none.
    depends
        (P,) the column of the table that each input depends on; -1 for one that no value seen in training changes.
    pool
        The pool rows, complete where the model needs that.
    """

    def __init__(self, model: FrozenModel, steps: Any, depends: np.ndarray, pool: EncodedRows) -> None:
        self.model, self.steps, self._depends = model, steps, depends
        self._filler = pool.values[0]
        self.of_pool = self._of_completed(pool)  # (N, P)
        # NaN sorts last: the value of a column that is missing in all pool rows, which equals no cell.
        self._values = [np.unique(cells, return_index=True) for cells in pool.values.T]

    @classmethod
    def of(cls, model: FrozenModel, pool: EncodedRows) -> Self | None:
        """The inputs of a wrapped model; None where one may depend on several columns, or they need much memory."""
        steps = model.parts[0]
        if steps is None:
            return cls(model, None, np.arange(pool.values.shape[1]), pool)
        if not _works_by_column(steps):
            return None
        probes = [_values_to_try(model.schema.columns[j].known, cells) for j, cells in enumerate(pool.values.T)]
        n_inputs = prepared(model, steps, pool.take(slice(1))).shape[1]
        if 8 * n_inputs * max(len(pool), sum(map(len, probes))) > MOST_BYTES:
            return None
        made = cls(model, steps, _depends_on(model, steps, pool, probes), pool)
        of_none = made.of_pool[:, made._depends < 0]
        return made if ((of_none == of_none[0]) | np.isnan(of_none)).all() else None

    def shown(self, observed: np.ndarray) -> np.ndarray:
        """(..., P) inputs that are those of the case, given the columns (..., D) that are observed of it.

        One that no value seen in training changes is the same for all pool rows: in a case it may differ because of
        an observed cell only.
        """
        return observed[..., self._depends] | (self._depends < 0)

    @property
    def are_arrays(self) -> bool:
        """Whether the classifier itself gets arrays of floats, which are then no other than ours."""
        made = prepared(self.model, self.steps, EncodedRows(self._filler[None]))
        return type(made) is np.ndarray and made.dtype == np.float64

    def of_cases(self, rows: EncodedRows) -> np.ndarray:
        """(n, P); those of columns that are not observed are arbitrary.

        Cells that occur in the pool have its inputs; the steps transform only cases with other ones.
        """
        same, others = self._same_cells(rows)
        inputs = self.of_pool[same[:, self._depends], np.arange(len(self._depends))]
        if others.any():
            inputs[others] = self._of_completed(rows.take(others).filled(self._filler))
        return inputs

    def _same_cells(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """(n, D) a pool row with the same cell, 0 where none is observed; and (n,) cases with a cell of no pool row."""
        same, others = np.zeros(rows.values.shape, dtype=int), np.zeros(len(rows), dtype=bool)
        for j in np.flatnonzero(rows.observed.any(axis=0)):
            (values, first), shown = self._values[j], rows.observed[:, j]
            cells = rows.values[shown, j]
            at = np.searchsorted(values, cells).clip(max=len(values) - 1)
            same[shown, j] = first[at]
            others[shown] |= values[at] != cells
        return same, others

    def _of_completed(self, rows: EncodedRows) -> np.ndarray:
        return self.model.by_table(rows, self._transformed, len(self._depends))

    def _transformed(self, table: Any) -> np.ndarray:
        return as_numbers(table if self.steps is None else asked(self.steps, "transform", table))


class PoolClassifiers:
    """The answers of classifiers that share the steps of a Pipeline on completions from a pool.

    Parameters
    ----------
    inputs
        Their inputs for cases and pool rows.
    models
        Stacked models that share their steps.
    """

    def __init__(self, inputs: PoolInputs, models: StackedModels) -> None:
        self.inputs, self.models = inputs, models

    def __call__(self, rows: EncodedRows, index: np.ndarray) -> np.ndarray:
        """(n, K, outputs) the answers on the completions of each row from the pool rows `index` (n, K)."""
        answers = np.empty((*index.shape, self.models.n_outputs))
        own, shown = self.inputs.of_cases(rows), self.inputs.shown(rows.observed)
        step = max(1, min(CELLS_AT_ONCE // own.shape[1], ROWS_PER_CALL) // index.shape[1])
        for start in range(0, len(index), step):
            part = slice(start, start + step)
            cells = np.where(shown[part, None], own[part, None], self.inputs.of_pool[index[part]])
            answers[part] = self.models.of_inputs(cells.reshape(-1, cells.shape[2])).reshape(*index[part].shape, -1)
        return answers


class PoolLayers:
    """The answers of networks of one shape that share the steps of a Pipeline on completions from a pool.

    The first layer is linear: what a pool row gives it is computed once, and of a completion only the share of the
    observed inputs is replaced.

    Parameters
    ----------
    inputs
        Their inputs for cases and pool rows.
    layers
        The networks.
    """

    def __init__(self, inputs: PoolInputs, layers: BatchedLayers) -> None:
        self.inputs, self.layers = inputs, layers
        self.of_pool = layers.first(inputs.of_pool)  # (k, N, H)

    def __call__(self, rows: EncodedRows, index: np.ndarray) -> np.ndarray:
        """(n, K, outputs) the answers on the completions of each row from the pool rows `index` (n, K)."""
        n_members, _, n_classes = self.layers.weights[-1].shape
        answers, own = np.empty((*index.shape, n_members * n_classes)), self.inputs.of_cases(rows)
        for cases in alike(rows.observed):
            shown = np.flatnonzero(self.inputs.shown(rows.observed[cases[0]]))
            weights = self.layers.weights[0][:, shown]
            used, at = np.unique(index[cases], return_inverse=True)
            hidden = self.of_pool[:, used] - self.inputs.of_pool[np.ix_(used, shown)] @ weights
            known = own[np.ix_(cases, shown)] @ weights
            first = partial(_sums, hidden, at.reshape(-1), known, np.repeat(np.arange(len(cases)), index.shape[1]))
            answers[cases] = self.layers.answers(index[cases].size, first).reshape(len(cases), index.shape[1], -1)
        return answers


def _sums(hidden: np.ndarray, at: np.ndarray, known: np.ndarray, case: np.ndarray, block: slice) -> np.ndarray:
    """(k, n, H) the outputs of the first layer for a block of completions: the shares of hidden and known inputs."""
    outputs = hidden.take(at[block], axis=1)
    outputs += known.take(case[block], axis=1)
    return outputs


def pool_classifiers(
    model: Any, models: Sequence[FrozenModel], pool: EncodedRows
) -> PoolClassifiers | PoolLayers | None:
    """The wrapped model, alone or stacked with its members, on a pool; None where that is impossible or no faster.

    The `models`, which `prepared_alike` has found, must be Pipelines of steps that work on each column alone, with a
    classifier that takes arrays.
    """
    if models[0].parts[0] is None:
        return None
    try:
        inputs = PoolInputs.of(models[0], pool)
        stacked = model if isinstance(model, StackedModels) else StackedModels(models)
        if inputs is None or not (stacked.take_arrays or inputs.are_arrays):
            return None
        layers = stacked.layers
        made: PoolClassifiers | PoolLayers = PoolClassifiers(inputs, stacked)
        if layers is not None and _can_be_split(inputs, layers):
            made = PoolLayers(inputs, layers)
        return made if answers_alike(made, model, pool) else None
    except InvalidInput as refusal:  # the same answers take longer
        LOG.debug("Completions are predicted one by one: %s", refusal)
        return None


def as_numbers(inputs: Any) -> np.ndarray:
    """The inputs of a classifier as an array; `InvalidInput` if they are not numbers, as of one that takes strings."""
    try:
        return dense(inputs)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The inputs of the classifier are not numbers ({error}).") from error


def prepared_alike(model: Any) -> list[FrozenModel] | None:
    """The wrapped model and its members, if they take rows alike and share the steps of a Pipeline; otherwise None."""
    models = model.models if isinstance(model, StackedModels) else [model]
    if not all(isinstance(one, FrozenModel) and models[0].reads_like(one) for one in models):
        return None
    steps = [one.parts[0] for one in models]
    return models if all(shares_steps(steps[0], other) for other in steps) else None


def _can_be_split(inputs: PoolInputs, layers: BatchedLayers) -> bool:
    """Whether the first layer of pool rows fits into memory, and no share of it is so large that others are lost."""
    n_members, _, width = layers.weights[0].shape
    if 8 * n_members * len(inputs.of_pool) * width > MOST_BYTES:
        return False
    return bool((np.abs(inputs.of_pool) @ np.abs(layers.weights[0][:, :-1])).max() <= LARGEST_SHARE)


def alike(observed: np.ndarray) -> list[np.ndarray]:
    """The positions of the rows that have the same cells observed, for each set of cells."""
    _, number = np.unique(np.packbits(observed, axis=1), axis=0, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number.reshape(-1)[order])) + 1)


def answers_alike(on_pool: AnswerOnPool, model: Any, pool: EncodedRows) -> bool:
    """Whether the answers on random mixes of pool rows are those of the model itself."""
    rng = np.random.default_rng(0)
    own, other = rng.integers(len(pool), size=(2, MIXES))
    shown = rng.random((MIXES, pool.values.shape[1])) < rng.random((MIXES, 1))
    shown &= pool.observed[own]
    mixed = pool.with_values(np.where(shown, pool.values[own], pool.values[other]))
    found = on_pool(pool.take(own).masked(shown), other[:, None])[:, 0]
    return bool(np.allclose(found, model(mixed), rtol=0, atol=1e-9))


def _works_by_column(step: Any) -> bool:
    """Whether each output of a fitted transformer depends on one of its columns."""
    step = unfrozen(step)
    if step is None or isinstance(step, str):  # "passthrough" or "drop"
        return True
    if type(step) in (Pipeline, ColumnTransformer, FeatureUnion):
        inner = {Pipeline: "steps", ColumnTransformer: "transformers_", FeatureUnion: "transformer_list"}[type(step)]
        return all(_works_by_column(part[1]) for part in getattr(step, inner))
    if type(step) is FunctionTransformer:
        elementwise = isinstance(step.func, np.ufunc) and step.func.nin == 1
        return step.func is None or elementwise or str(getattr(step.func, "__module__", "")).startswith("askwise.")
    selects = isinstance(step, SelectorMixin) and type(step).__module__.startswith("sklearn.")
    return selects or type(step) in BY_COLUMN


def _values_to_try(categories: list[Any], cells: np.ndarray) -> np.ndarray:
    """All categories of a column, or numbers over the range of its `cells` in the pool and beyond it."""
    present = present_values(cells)
    if categories or not len(present):
        found = np.arange(len(categories), dtype=float)
    else:
        span = np.ptp(present) or 1.0
        found = np.concatenate(
            [present_values(cells, MOST_NUMBERS), [present[0] - span, present[-1] + span]],
        )
    return np.append(found, cells[np.isnan(cells)][:1])


def _depends_on(model: FrozenModel, steps: Any, pool: EncodedRows, probes: list[np.ndarray]) -> np.ndarray:
    """(P,) the column whose values change each output of steps that work by column, -1 where none does."""

    def transform(cells: np.ndarray) -> np.ndarray:
        return as_numbers(prepared(model, steps, pool.with_values(cells)))

    first = pool.values[:1]
    changed = changed_inputs(transform, list(enumerate(probes)), first, transform(first))  # (D, P)
    return np.where(changed.any(axis=0), changed.argmax(axis=0), -1)
