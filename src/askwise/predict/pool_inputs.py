"""Models at the end of a Pipeline on completions of a case, without transforming the completions.

Most preprocessing works on each column by itself. An input of the classifier is then that of the case where its column
is observed and that of the pool row where it is not: the steps see the case itself, and the pool rows once, but not the
K completions of the case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from askwise.predict.final_layer import dense, prepared, split_pipeline
from askwise.predict.neighbors import CELLS_AT_ONCE
from askwise.predict.stacked import StackedModels
from askwise.predict.wrapped import ROWS_PER_CALL, FrozenModel, asked
from askwise.rows import EncodedRows

MOST_BYTES = 256 * 2**20
"""Memory for the inputs of pool rows; with more of them, completions are transformed one by one."""
PROBES, MIXES = 64, 200

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
        (P,) the column of the table that each input depends on.
    pool
        The pool rows, complete where the model needs that.
    """

    def __init__(self, model: FrozenModel, steps: Any, depends: np.ndarray, pool: EncodedRows) -> None:
        self.model, self.steps, self.depends = model, steps, depends
        self._filler = pool.values[0]
        self.of_pool = self._of_completed(pool)  # (N, P)

    @classmethod
    def of(cls, model: FrozenModel, pool: EncodedRows) -> Self | None:
        """The inputs of a wrapped model; None where one of them depends on several columns."""
        steps = split_pipeline(model.estimator)[0]
        depends = np.arange(pool.values.shape[1]) if steps is None else _single_columns(model, steps, pool)
        return None if depends is None else cls(model, steps, depends, pool)

    def of_cases(self, rows: EncodedRows) -> np.ndarray:
        """(n, P); those of columns that are not observed are arbitrary."""
        return self._of_completed(rows.filled(self._filler))

    def _of_completed(self, rows: EncodedRows) -> np.ndarray:
        return self.model.by_table(rows, self._transformed, len(self.depends))

    def _transformed(self, table: Any) -> np.ndarray:
        return dense(table if self.steps is None else asked(self.steps, "transform", table))


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
        own, shown = self.inputs.of_cases(rows), rows.observed[:, self.inputs.depends]
        step = max(1, min(CELLS_AT_ONCE // own.shape[1], ROWS_PER_CALL) // index.shape[1])
        for start in range(0, len(index), step):
            part = slice(start, start + step)
            cells = np.where(shown[part, None], own[part, None], self.inputs.of_pool[index[part]])
            answers[part] = self.models.of_inputs(cells.reshape(-1, cells.shape[2])).reshape(*index[part].shape, -1)
        return answers


def pool_classifiers(model: Any, pool: EncodedRows) -> PoolClassifiers | None:
    """The wrapped model, alone or stacked with its members, on a pool; None where that is impossible or no faster.

    It must be a Pipeline each of whose outputs depends on one column, with a classifier that takes arrays.
    """
    models = model if isinstance(model, StackedModels) else StackedModels([model])
    if not models.share_steps or len(pool) < 2:
        return None
    frozen = models.models[0]
    try:
        few = prepared(frozen, split_pipeline(frozen.estimator)[0], pool.take(slice(2)))
        are_floats = type(few) is np.ndarray and few.dtype == np.float64
        if not (are_floats or models.take_arrays) or 8 * len(pool) * few.shape[1] > MOST_BYTES:
            return None
        inputs = PoolInputs.of(frozen, pool)
        made = None if inputs is None else PoolClassifiers(inputs, models)
        return made if made is not None and answers_alike(made, model, pool) else None
    except Exception:  # the model answers for completions as before, and says what is wrong
        return None


def answers_alike(on_pool: AnswerOnPool, model: Any, pool: EncodedRows) -> bool:
    """Whether the answers on random mixes of pool rows are those of the model itself."""
    rng = np.random.default_rng(0)
    own, other = rng.integers(len(pool), size=(2, MIXES))
    shown = rng.random((MIXES, pool.values.shape[1])) < rng.random((MIXES, 1))
    shown &= pool.observed[own]
    mixed = pool.with_values(np.where(shown, pool.values[own], pool.values[other]))
    found = on_pool(pool.take(own).masked(shown), other[:, None])[:, 0]
    return bool(np.allclose(found, model(mixed), rtol=0, atol=1e-9))


def _single_columns(model: FrozenModel, steps: Any, pool: EncodedRows) -> np.ndarray | None:
    """(P,) the column that each input depends on, found by changing one column at a time; None if it is not one.

    Every category is tried, and numbers over their range and beyond: an input that none of them changes is constant.
    """
    rows = pool.values[np.random.default_rng(0).permutation(len(pool))[:PROBES]]
    probes = [_values_to_try(model.schema.columns[j].known, cells, len(rows)) for j, cells in enumerate(pool.values.T)]
    at = np.concatenate([np.arange(len(cells)) % len(rows) for cells in probes])
    column = np.repeat(np.arange(len(probes)), [len(cells) for cells in probes])
    changed = rows[at]
    changed[np.arange(len(at)), column] = np.concatenate(probes)
    table = model.table(pool.with_values(np.concatenate([rows, changed])))
    before, after = np.split(dense(asked(steps, "transform", table)), [len(rows)])
    before = before[at]
    differs = (after != before) & ~(np.isnan(after) & np.isnan(before))
    depends = np.logical_or.reduceat(differs, np.flatnonzero(np.diff(column, prepend=-1)), axis=0)  # (D, P)
    return depends.argmax(axis=0) if (depends.sum(axis=0) <= 1).all() else None


def _values_to_try(categories: list[Any], cells: np.ndarray, least: int) -> np.ndarray:
    """At least so many values of a column: all categories, or numbers over the range of `cells` (N,) and beyond it."""
    if categories:
        found = np.arange(len(categories), dtype=float)
    else:
        present = np.unique(cells[~np.isnan(cells)])
        span = np.ptp(present) or 1.0
        found = present[np.unique(np.linspace(0, len(present) - 1, least).astype(int))]
        found = np.concatenate([found, [present[0] - span, present[-1] + span]])
    found = np.append(found, cells[np.isnan(cells)][:1])
    return np.resize(found, max(least, len(found)))
