"""How much each column counts where rows are compared: as much as makes similar rows reproduce a model's answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from askwise.predict.similarity import Neighbors
from askwise.table.schema import Schema
from askwise.table.subsets import sample_of_sizes

MOST_ROWS, MOST_STATES = 500, 500
"""Rows that answer, and incomplete rows about which they do."""
MOST_KNOWN = 30
"""Features that are known of such a row."""
MOST_DISTANCES = 4_000_000
"""Distances of a known cell to a row, each of them a float32; groups of many columns leave fewer incomplete rows."""
PENALTY = 1.0
"""In rows: how strongly the logarithms of the weights are drawn to 0."""
LARGEST = 4.0
"""The logarithms of the weights stay within plus and minus this."""
FLOOR = 0.01
"""Share of the uniform distribution in an answer, so that no loss is infinite."""
FARTHEST = 1e30
"""Largest scaled distance, so that their sums do not overflow."""
MINIMIZER = {"maxiter": 40, "ftol": 1e-6}
"""Losses in float32 are not more exact than that."""


@dataclass(frozen=True, eq=False)
class _States:
    """Incomplete rows, and their distances to all N rows, one line per known cell; the cells of a row are adjacent."""

    row: np.ndarray  # (s,) which row each state is
    first: np.ndarray  # (s,) the first of its known cells
    state: np.ndarray  # (cells,)
    column: np.ndarray  # (cells,)
    scaled: np.ndarray  # (cells, N) squared distances / (2 width^2)
    by_row: np.ndarray  # (N, cells) the same, of which adjacent cells are summed three times as fast


def learned_weights(
    neighbors: Neighbors,
    answers: np.ndarray,
    schema: Schema,
    widths: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
) -> np.ndarray:
    r"""(D,) weights of the squared distances by column, drawn to 1.

    Rows are left out in turn, and a random part of the features of each is known. The mean answer on the other rows,
    weighted by a Gaussian kernel over the known columns, should be the answer :math:`f_l` on the row itself:

    .. math:: \min_w -\sum_l \sum_y f_l(y) \log \frac{\sum_m K_w(l, m) f_m(y)}{\sum_m K_w(l, m)} + \frac12 |\log w|^2

    A sample of the rows is used (`MOST_ROWS`), and answers are kept from 0 (`FLOOR`).

    Parameters
    ----------
    neighbors
        N rows.
    answers
        (N, C) the model's answers on them.
    schema
        The columns, grouped into features.
    widths
        Width of the kernel by the number of known columns.
    rng
        Draws rows and features.
    """
    n, n_columns = min(MOST_ROWS, len(answers)), len(neighbors.is_category)
    states = _random_states(neighbors.first(n), schema, widths, rng)
    if not len(states.row):
        return np.ones(n_columns)
    own = answers[:n].astype(np.float32)
    share = n / len(states.row)  # several states of a row count as one row
    bounds = [(-LARGEST, LARGEST)] * n_columns
    start, given = np.zeros(n_columns), (states, own, share)
    found = minimize(_loss, start, given, jac=True, method="L-BFGS-B", bounds=bounds, options=MINIMIZER)
    return np.asarray(np.exp(found.x))


def _random_states(
    rows: Neighbors, schema: Schema, widths: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> _States:
    """Each row about equally often, with few features more often than with many."""
    n, n_features = len(rows.scores), len(schema.features)
    row = np.concatenate([rng.permutation(n) for _ in range(-(-MOST_STATES // n))])[:MOST_STATES]
    most = max(1, min(MOST_KNOWN, n_features - 1))
    size = np.exp(rng.uniform(0, np.log(most + 1), size=len(row))).astype(int)  # 1 to `most`
    known = schema.expand(sample_of_sizes(size, n_features, rng)) & ~np.isnan(rows.scores[row])
    n_known = known.sum(axis=1)
    kept = (n_known > 0) & (np.cumsum(n_known) * n <= MOST_DISTANCES)
    row, known, n_known = row[kept], known[kept], n_known[kept]
    state, column = np.nonzero(known)
    squared, twice = rows.cell_distances(rows.scores[row[state], column], column), 2 * widths(n_known) ** 2
    scaled = np.minimum(squared / twice[state, None], FARTHEST).astype(np.float32)
    return _States(row, np.cumsum(n_known) - n_known, state, column, scaled, np.ascontiguousarray(scaled.T))


def _loss(logs: np.ndarray, states: _States, answers: np.ndarray, share: float) -> tuple[float, np.ndarray]:
    """Cross entropy of the answers on the rows and of the means over the others, times `share`, and penalized.

    And its slope, both by the logarithms of the weights, `logs` (D,).
    """
    weights = np.exp(logs)
    weighted = weights.astype(states.by_row.dtype)[states.column] * states.by_row
    total = np.ascontiguousarray(np.add.reduceat(weighted, states.first, axis=1).T)
    total[np.arange(len(states.row)), states.row] = np.inf
    similarity = np.exp(total.min(axis=1, keepdims=True) - total)
    similarity /= similarity.sum(axis=1, keepdims=True)
    mean, wanted = similarity @ answers, answers[states.row]
    floored = (1 - FLOOR) * mean + FLOOR / answers.shape[1]
    ratio = (1 - FLOOR) * wanted / floored
    pull = similarity * (ratio @ answers.T - (ratio * mean).sum(axis=1, keepdims=True))
    by_cell = np.einsum("cn,cn->c", pull[states.state], states.scaled)
    slope = np.bincount(states.column, weights=by_cell, minlength=len(weights))
    found = -float((wanted * np.log(floored)).sum())
    return share * found + PENALTY / 2 * logs @ logs, share * slope * weights + PENALTY * logs
