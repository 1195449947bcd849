"""How much each column counts where rows are compared: as much as makes similar rows reproduce a model's answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from askwise.predict.neighbors import Neighbors
from askwise.schema import Schema

MOST_ROWS, MOST_STATES = 500, 500
"""Rows that answer, and incomplete rows about which they do."""
MOST_KNOWN = 30
"""Features that are known of such a row."""
PENALTY = 1.0
"""In rows: how strongly the logarithms of the weights are drawn to 0."""
LARGEST = 4.0
"""The logarithms of the weights stay within plus and minus this."""
FLOOR = 0.01
"""Share of the uniform distribution in an answer, so that no loss is infinite."""
MOST_ITERATIONS = 40


@dataclass(frozen=True, eq=False)
class _States:
    """Incomplete rows: which row each is, the columns known of it, and the scaled distances to all rows by column."""

    row: np.ndarray  # (s,)
    known: np.ndarray  # (s, D) bool
    scaled: list[np.ndarray]  # per column (states that know it, N), squared distances / (2 width^2)


def learned_weights(
    neighbors: Neighbors,
    answers: np.ndarray,
    schema: Schema,
    widths: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
) -> np.ndarray:
    r"""(D,) weights of the squared distances by column, drawn to 1.

    Each row in turn is left out, and a random part of its features is known. The mean answer on the other rows,
    weighted by a Gaussian kernel over the known columns, should be the answer :math:`f_l` on the row itself:

    .. math:: \min_w -\sum_l \sum_y f_l(y) \log \frac{\sum_m K_w(l, m) f_m(y)}{\sum_m K_w(l, m)} + \frac12 |\log w|^2

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
    rows, truth = neighbors.first(n), answers[:n].astype(np.float32)
    states = _drawn(rows, schema, widths, rng)

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = _loss(np.exp(logs), states, truth)
        share = n / len(states.row)  # several states of a row count as one row
        return share * found + PENALTY / 2 * logs @ logs, share * slope * np.exp(logs) + PENALTY * logs

    bounds = [(-LARGEST, LARGEST)] * n_columns
    limit = {"maxiter": MOST_ITERATIONS}
    found = minimize(loss, np.zeros(n_columns), jac=True, method="L-BFGS-B", bounds=bounds, options=limit)
    return np.asarray(np.exp(found.x))


def _drawn(
    rows: Neighbors, schema: Schema, widths: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> _States:
    """Each row about equally often, with few features more often than with many."""
    n, n_features = len(rows.scores), len(schema.features)
    row = np.concatenate([rng.permutation(n) for _ in range(-(-MOST_STATES // n))])[:MOST_STATES]
    most = max(1, min(MOST_KNOWN, n_features - 1))
    size = np.exp(rng.uniform(0, np.log(most + 1), size=len(row))).astype(int)  # 1 to `most`
    chosen = rng.random((len(row), n_features)).argsort(axis=1).argsort(axis=1) < size[:, None]
    known = schema.expand(chosen) & ~np.isnan(rows.scores[row])
    twice = 2 * widths(known.sum(axis=1)) ** 2
    scaled = [
        (rows.score_distances(j, rows.scores[row[with_it], j]) / twice[with_it, None]).astype(np.float32)
        for j, with_it in enumerate(known.T)
    ]
    return _States(row, known, scaled)


def _loss(weights: np.ndarray, states: _States, answers: np.ndarray) -> tuple[float, np.ndarray]:
    """Cross entropy of the answers on the rows and of those of the others, and its slope in the weights (D,)."""
    total = np.zeros((len(states.row), len(answers)), dtype=np.float32)
    for weight, with_it, scaled in zip(weights.astype(np.float32), states.known.T, states.scaled, strict=True):
        total[with_it] += weight * scaled
    total[np.arange(len(states.row)), states.row] = np.inf
    kernel = np.exp(total.min(axis=1, keepdims=True) - total)
    kernel /= kernel.sum(axis=1, keepdims=True)
    mean, truth = kernel @ answers, answers[states.row]
    floored = (1 - FLOOR) * mean + FLOOR / answers.shape[1]
    ratio = (1 - FLOOR) * truth / floored
    pull = kernel * (ratio @ answers.T - (ratio * mean).sum(axis=1, keepdims=True))
    slope = [np.vdot(pull[with_it], scaled) for with_it, scaled in zip(states.known.T, states.scaled, strict=True)]
    return -float((truth * np.log(floored)).sum()), np.array(slope, dtype=float)
