"""What features tell once a gate is known: from the labels of all training rows in which it turned out alike.

A gate says which other features matter. How much they do is then a property of its outcome, and not of the few rows
that also resemble the case in everything else: counts over all rows with this outcome tell a feature that matters from
one that seems to by luck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import calinski_harabasz_score

from askwise.table.schema import Schema
from askwise.value.lookahead import GROUP_LEVELS, LEVELS, MOST_LEVELS, ROWS_PER_LEVEL, levels_of

OWN_SHARE = 0.5
"""Of the case in a gain, once the gate is known."""
SHOWN_PER_OUTCOME = 3


@dataclass(frozen=True, eq=False)
class GateOutcomes:
    """How a gate turned out: the number of the nearest of some centers.

    Attributes
    ----------
    columns
        (c,) of the gate.
    categories
        The codes of each column if it is a category, else None.
    middle, spread
        (c,) by which numbers are scaled. They are not ranked: columns of a group that are near 0 or near 1, say, differ
        by that, and not by the noise around it.
    centers
        (L, P) one point for each outcome.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [1.0]])
    >>> outcomes = GateOutcomes.of_cells(X, np.array([0]), np.array([False]))
    >>> outcomes.number(np.array([[0.9], [-5.0]])).tolist()
    [1, 0]
    """

    columns: np.ndarray
    categories: list[np.ndarray | None]
    middle: np.ndarray
    spread: np.ndarray
    centers: np.ndarray

    @classmethod
    def of_cells(cls, values: np.ndarray, columns: np.ndarray, is_category: np.ndarray) -> Self:
        """From encoded rows (N, D): each of a few distinct values, else parts of a number or clusters of a group."""
        cells = values[:, columns]
        there = ~np.isnan(cells)
        n_there, filled = np.maximum(there.sum(axis=0), 1), np.where(there, cells, 0.0)
        middle = filled.sum(axis=0) / n_there
        spread = np.sqrt(np.where(there, (filled - middle) ** 2, 0.0).sum(axis=0) / n_there)
        codes = [
            np.unique(cells[there[:, k], k]) if category else None
            for k, category in enumerate(is_category[columns].tolist())
        ]
        outcomes = cls(columns, codes, middle, np.where(spread > 0, spread, 1.0), np.empty((0, 0)))
        points = outcomes.points(values)
        return cls(columns, codes, middle, outcomes.spread, _centers(points, grouped=len(columns) > 1))

    def points(self, values: np.ndarray) -> np.ndarray:
        """(n, P) the cells of the gate in encoded rows (n, D) as points; a missing number is in the middle, marked."""
        found = []
        for k, codes in enumerate(self.categories):
            cell = values[:, [self.columns[k]]]
            if codes is not None:
                found.append((cell == codes).astype(float))
            else:
                missing = np.isnan(cell)
                found += [np.where(missing, 0.0, (cell - self.middle[k]) / self.spread[k]), missing.astype(float)]
        return np.hstack(found)

    def number(self, values: np.ndarray) -> np.ndarray:
        """(n,) outcome of the gate in encoded rows (n, D)."""
        apart = self.points(values)[:, None] - self.centers
        return np.asarray((apart**2).sum(axis=2).argmin(axis=1))


def _centers(points: np.ndarray, grouped: bool) -> np.ndarray:
    distinct = np.unique(points, axis=0)
    if len(distinct) <= MOST_LEVELS:
        return np.asarray(distinct)
    if grouped:
        return _clustered(points)
    order = np.lexsort(points.T[::-1])
    return np.stack([points[part].mean(axis=0) for part in np.array_split(order, LEVELS)])


def _clustered(points: np.ndarray) -> np.ndarray:
    """(L, P) centers of as many clusters as are best told apart: fewer have more rows each to count in."""
    tried = [KMeans(k, n_init=3, random_state=0).fit(points) for k in range(2, GROUP_LEVELS + 1)]
    apart = [calinski_harabasz_score(points, clusters.labels_) for clusters in tried]
    return np.asarray(tried[int(np.argmax(apart))].cluster_centers_)


@dataclass(frozen=True, eq=False)
class GatedGains:
    r"""What features tell after each outcome of a gate, and how far to trust the gain of a case beside it.

    .. math:: gain_i = \frac{t_{gi}\, gain_i(x_S) + usual_{gi}}{2}, \qquad
              usual_{gi} = \frac{\max(0, \chi^2_{gi} - c)}{2 n_g}, \quad t_{gi} = \max(0, 1 - c / \chi^2_{gi})

    where :math:`\chi^2_{gi}` compares feature and label in the :math:`n_g` training rows with outcome g, and c is what
    chance gives: the degrees of freedom and one standard deviation. So a feature that tells nothing after this outcome
    comes last, however much the few rows that resemble the case make of it.

    Attributes
    ----------
    gate
        Its position.
    outcomes
        How it can turn out.
    usual, trust
        (L, M) both parts, by outcome.

    Examples
    --------
    >>> outcomes = GateOutcomes.of_cells(np.array([[0.0], [1.0]]), np.array([0]), np.array([False, False, False]))
    >>> told = np.array([[0.0, 0.3, 0.0], [0.0, 0.0, 0.3]])
    >>> gated = GatedGains(0, outcomes, usual=told, trust=np.minimum(2 * told, 1.0))
    >>> gain, mask = np.full((1, 3), 0.1), np.array([[True, False, False]])
    >>> gated.mixed(gain, mask, np.array([[1.0, np.nan, np.nan]])).round(2).tolist()
    [[0.0, 0.0, 0.18]]
    """

    gate: int
    outcomes: GateOutcomes
    usual: np.ndarray
    trust: np.ndarray

    @classmethod
    def learned(
        cls, gates: np.ndarray, values: np.ndarray, scores: np.ndarray, labels: np.ndarray, schema: Schema
    ) -> Self:
        """Those of the gate after which features tell most, from rows (N, D), their scores and labels (N,)."""
        codes = levels_of(scores, schema, np.arange(len(schema.features))).T
        found = [cls._of_gate(gate, values, codes, labels, schema) for gate in gates.tolist()]
        share = [np.bincount(one.outcomes.number(values), minlength=len(one.usual)) / len(values) for one in found]
        return found[int(np.argmax([part @ one.usual.sum(axis=1) for part, one in zip(share, found, strict=True)]))]

    @classmethod
    def _of_gate(cls, gate: int, values: np.ndarray, codes: np.ndarray, labels: np.ndarray, schema: Schema) -> Self:
        outcomes = GateOutcomes.of_cells(values, schema.feature_columns[gate], schema.is_category)
        number, n = outcomes.number(values), len(outcomes.centers)
        usual, trust = np.zeros((n, len(codes))), np.ones((n, len(codes)))
        often = np.bincount(number, minlength=n) >= 2 * ROWS_PER_LEVEL  # of others, the case alone must say
        for i, code in enumerate(codes):
            if i != gate:
                square, chance, n_rows = _dependence(number, code, labels, n)
                more = np.maximum(square - chance, 0.0)
                usual[often, i] = (more / np.maximum(2 * n_rows, 1))[often]
                trust[often, i] = (more / np.maximum(square, 1e-300))[often]
        return cls(gate, outcomes, usual, trust)

    def mixed(self, gain: np.ndarray, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n, M) the mean of both for cases (n, D) with the features `mask` (n, M); the gain where no gate is known."""
        found, known = gain.copy(), mask[:, self.gate]
        if known.any():
            number = self.outcomes.number(values[known])
            own = OWN_SHARE * self.trust[number] * gain[known]
            found[known] = own + (1 - OWN_SHARE) * self.usual[number]
        return found

    def described(self, features: list[str]) -> dict[str, Any]:
        """Ready for JSON: the gate, and what tells most after each of its outcomes."""
        best = np.argsort(-self.usual, axis=1, kind="stable")[:, :SHOWN_PER_OUTCOME]
        told = [
            {features[i]: float(row[i]) for i in top if row[i] > 0} for row, top in zip(self.usual, best, strict=True)
        ]
        return {"gate": features[self.gate], "tells_most_after_each_outcome": told}


def _dependence(
    number: np.ndarray, code: np.ndarray, labels: np.ndarray, n_outcomes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chi square of codes and labels among the rows of each outcome, what chance gives, and the rows: (L,) each."""
    shape = n_outcomes, int(code.max()) + 1, int(labels.max()) + 1
    cells = np.ravel_multi_index((number, code, labels), shape)
    counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)
    n_rows, by_code, by_label = counts.sum(axis=(1, 2)), counts.sum(axis=2), counts.sum(axis=1)
    expected = by_code[:, :, None] * by_label[:, None, :] / np.maximum(n_rows, 1)[:, None, None]
    apart = (counts - expected) ** 2 / np.where(expected > 0, expected, 1.0)
    of_code, of_label = (np.maximum((by > 0).sum(axis=1) - 1, 0) for by in (by_code, by_label))
    freedom = of_code * of_label
    return apart.sum(axis=(1, 2)), freedom + np.sqrt(2 * freedom), n_rows
