"""Boosted trees on completions of a case: pool rows whose observed cells are those of the case.

A tree of at most 64 leaves is evaluated with bits, one per leaf. For each pool row, tree and input of the tree, the
leaves that the pool row's value leaves possible are stored once. For a completion, those of the observed inputs are
replaced by the leaves that the case's own value leaves possible, and the intersection over all inputs is the leaf.
So neither the steps of a Pipeline nor the trees see the K completions of a case, only the case itself. The
intersection over the inputs that are not observed is computed once for all cases of which the same is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from askwise.errors import InvalidInput
from askwise.model.fast.boosting import Ensemble, ensemble_of
from askwise.model.fast.pool_inputs import LOG, PoolInputs, alike, answers_alike
from askwise.table.rows import EncodedRows

MOST_BYTES = 640 * 2**20
"""Memory for the leaves that pool rows leave possible; of larger ensembles completions are evaluated one by one."""
NUMBERS_AT_ONCE = 200_000
"""Completions times trees in one block: arrays of this size stay in the processor's cache."""
NODES_AT_ONCE = 500_000


class PoolTrees:
    """The answers of boosted trees on completions from a pool.

    Parameters
    ----------
    inputs
        The inputs of the trees for cases and pool rows.
    ensembles
        The trees of the wrapped model and its members.
    """

    def __init__(self, inputs: PoolInputs, ensembles: Sequence[Ensemble]) -> None:
        self.inputs = inputs
        self.n_models = len(ensembles)
        trees = [tree for ensemble in ensembles for tree in ensemble.trees]
        n_outputs = [len(ensemble.baseline) for ensemble in ensembles]
        starts = np.cumsum(n_outputs) - n_outputs
        output = np.concatenate([start + ensemble.output for start, ensemble in zip(starts, ensembles, strict=True)])
        self.baseline = np.concatenate([ensemble.baseline for ensemble in ensembles])
        used = [sorted({split[0] for split in splits}) for splits, _ in trees]
        # Trees with more inputs come first: those with a k-th input are then the first ones for every k.
        order = sorted(range(len(trees)), key=lambda t: -len(used[t]))
        self._read(([trees[t] for t in order]), [used[t] for t in order])
        self.sums = np.zeros((len(trees), len(self.baseline)))
        self.sums[np.arange(len(trees)), output[order]] = 1.0
        every_pair = np.ones(len(self.pair_input), dtype=bool)
        of_pool, ends = self._possible(inputs.of_pool, every_pair), np.cumsum(self.n_with)
        self.layers = [np.ascontiguousarray(part) for part in np.split(of_pool, ends[:-1], axis=1)]

    def _read(self, trees: Sequence[tuple[list[Any], list[float]]], inputs: Sequence[list[int]]) -> None:
        """Nodes sorted by the number k of their input within the tree, then by tree; and the values of the leaves."""
        most = max(len(values) for _, values in trees)
        self.kind: Any = np.uint32 if most <= 32 else np.uint64
        bits = 8 * np.dtype(self.kind).itemsize
        nodes = sorted((inputs[t].index(split[0]), t, split) for t, (splits, _) in enumerate(trees) for split in splits)
        first = [i for i, node in enumerate(nodes) if i == 0 or node[:2] != nodes[i - 1][:2]]
        self.pair_start = np.array(first)
        self.pair_input = np.array([nodes[i][2][0] for i in first])
        self.n_with = np.bincount([nodes[i][0] for i in first])  # (layers,) trees that have a k-th input
        feature, threshold, missing_left, left, right = zip(*(split for _, _, split in nodes), strict=True)
        self.feature, self.threshold = np.array(feature), np.array(threshold)
        self.missing_left = np.array(missing_left, dtype=bool)
        within = (1 << bits) - 1
        self.without_left, self.without_right = (
            np.array([mask & within for mask in masks], dtype=self.kind) for masks in (left, right)
        )
        self.leaf_value = np.zeros((len(trees), bits))
        for t, (_, values) in enumerate(trees):
            self.leaf_value[t, : len(values)] = values
        self.leaf_start = bits * np.arange(len(trees))

    def __call__(self, rows: EncodedRows, index: np.ndarray) -> np.ndarray:
        """(n, K, outputs) the models' answers on the completions of each row from the pool rows `index` (n, K)."""
        raw = np.empty((*index.shape, self.sums.shape[1]))
        inputs = self.inputs.of_cases(rows)
        step = max(1, NUMBERS_AT_ONCE // (index.shape[1] * len(self.leaf_start)))
        for cases in alike(rows.observed):
            shown = self.inputs.shown(rows.observed[cases[0]])[self.pair_input]
            own = self._own(inputs[cases], shown)
            of_pool, position = self._of_pool(index[cases], shown)
            for start in range(0, len(cases), step):
                part = slice(start, start + step)
                remaining = of_pool.take(position[part], axis=0, mode="clip")
                remaining &= own[part, None]
                raw[cases[part]] = self._leaf_values(remaining) @ self.sums
        return self._proba(raw + self.baseline)

    def _own(self, cells: np.ndarray, shown: np.ndarray) -> np.ndarray:
        """(n, trees) the leaves that the cases' own values leave possible; of the pairs, those `shown` count."""
        remaining = np.full((len(cells), len(self.leaf_start)), ~self.kind(0))
        possible = self._possible(cells, shown)
        starts = np.cumsum(self.n_with) - self.n_with
        for start, n_with in zip(starts.tolist(), self.n_with.tolist(), strict=True):
            trees = np.flatnonzero(shown[start : start + n_with])
            remaining[:, trees] &= possible[:, : len(trees)]
            possible = possible[:, len(trees) :]
        return remaining

    def _of_pool(self, index: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(R, trees) the leaves that the pairs not `shown` of R pool rows leave possible, and `index` as rows of it."""
        used = np.zeros(len(self.layers[0]), dtype=bool)
        used[index] = True
        rows, seen = np.flatnonzero(used), np.where(shown, ~self.kind(0), self.kind(0))
        found = np.empty((len(rows), len(self.leaf_start)), dtype=self.kind)
        step = max(1, NUMBERS_AT_ONCE // found.shape[1])
        for first in range(0, len(rows), step):
            at, block, start = rows[first : first + step], found[first : first + step], 0
            buffer = np.empty(block.size, dtype=self.kind)
            for layer in self.layers:
                n_with = layer.shape[1]  # the first layer has all trees
                possible = buffer[: len(at) * n_with].reshape(len(at), n_with) if start else block
                layer.take(at, axis=0, out=possible, mode="clip")
                possible |= seen[start : start + n_with]
                if start:
                    block[:, :n_with] &= possible
                start += n_with
        return found, (np.cumsum(used) - 1)[index]

    def _leaf_values(self, remaining: np.ndarray) -> np.ndarray:
        """(n, K, trees) the value of the leaf of each tree: the only one of `remaining` (overwritten), or the first."""
        lower = np.subtract(remaining, self.kind(1))
        lower &= np.bitwise_not(remaining, out=remaining)  # the bits below the lowest one
        leaf = np.add(np.bitwise_count(lower), self.leaf_start, dtype=np.intp)
        return self.leaf_value.take(leaf, mode="clip")  # faster than checking

    def _possible(self, cells: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """(n, pairs) the leaves that the values of each row (n, P) leave possible, for each `wanted` pair."""
        sizes = np.diff(self.pair_start, append=len(self.feature))
        nodes, sizes = np.repeat(wanted, sizes), sizes[wanted]
        found = np.empty((len(cells), len(sizes)), dtype=self.kind)
        if not len(sizes):
            return found
        feature, threshold, missing_left = self.feature[nodes], self.threshold[nodes], self.missing_left[nodes]
        without_left, without_right = self.without_left[nodes], self.without_right[nodes]
        pair_start, step = np.cumsum(sizes) - sizes, max(1, NODES_AT_ONCE // len(feature))
        for start in range(0, len(cells), step):
            seen = cells[start : start + step, feature]
            goes_left = seen <= threshold
            goes_left |= np.isnan(seen) & missing_left
            possible = np.where(goes_left, without_right, without_left)
            found[start : start + step] = np.bitwise_and.reduceat(possible, pair_start, axis=1)
        return found

    def _proba(self, raw: np.ndarray) -> np.ndarray:
        if raw.shape[2] == self.n_models:  # two classes
            positive = expit(raw)
            return np.stack([1 - positive, positive], axis=3).reshape(*raw.shape[:2], -1)
        by_model = raw.reshape(*raw.shape[:2], self.n_models, -1)
        return np.asarray(softmax(by_model, axis=3).reshape(raw.shape))


def pool_trees(model: Any, models: Sequence[Any], pool: EncodedRows) -> PoolTrees | None:
    """The trees of the wrapped model, alone or stacked with its members, on a pool; None where that is impossible.

    All `models`, which `prepared_alike` has found, must be gradient boosting on numbers, and each input of the trees
    must depend on one column.
    """
    ensembles = [ensemble_of(one.parts[1]) for one in models]
    found = [ensemble for ensemble in ensembles if ensemble is not None]
    if len(found) < len(models) or _bytes_needed(found, len(pool)) > MOST_BYTES:
        return None
    try:
        inputs = PoolInputs.of(models[0], pool)
        made = None if inputs is None else PoolTrees(inputs, found)
        return made if made is not None and answers_alike(made, model, pool) else None
    except InvalidInput as refusal:  # the same answers take longer
        LOG.debug("Completions are predicted one by one: %s", refusal)
        return None


def _bytes_needed(ensembles: Sequence[Ensemble], n_rows: int) -> int:
    return 4 * n_rows * sum(len({split[0] for split in splits}) for found in ensembles for splits, _ in found.trees)
