"""What features tell once a gate is known: from the labels of all training rows in which it turned out alike.

A gate says which other features matter. How much they do is then a property of its outcome, and not of the few rows
that also resemble the case in everything else: counts over all rows with this outcome tell a feature that matters from
one that seems to by luck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax, xlogy
from sklearn.cluster import KMeans
from sklearn.metrics import calinski_harabasz_score

from askwise.table.schema import Schema
from askwise.uncertainty import SMALLEST
from askwise.value.lookahead import GROUP_LEVELS, LEVELS, MOST_LEVELS, ROWS_PER_LEVEL

OWN_SHARE = 0.5
"""Of the case in a gain, once the gate is known."""
PRIOR_ROWS = 4.0
"""In rows: how strongly the levels of a feature within a class are drawn to those of all classes."""
SHOWN_PER_OUTCOME, LEAST_SHOWN = 3, 1e-9


@dataclass(frozen=True, eq=False)
class GateOutcomes:
    """How a gate, or a feature after it, turned out: the number of the nearest of some centers.

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

    .. math:: gain_i = \frac{t_{gi}\, gain_i(x_S) + told_i(x_S, g)}{2}, \qquad
              told_i = I_g(y; x_i \mid x_S), \quad t_{gi} = \max(0, 1 - c / \chi^2_{gi})

    where :math:`I_g` is the mutual information if, in the training rows with outcome g, features are independent of
    each other within a class, and :math:`\chi^2_{gi}` compares feature and label in these rows; c is what chance gives:
    the degrees of freedom and one standard deviation. The frequencies of a feature within a class are drawn by
    :math:`1 - t` to those of all classes. So a feature that tells nothing after this outcome comes last, however much
    the few rows that resemble the case make of it, and so does one that tells what is known by now.

    Attributes
    ----------
    gate
        Its position.
    outcomes
        How it can turn out.
    levels
        How each of the M features can.
    prior
        (L, C) shares of the classes, by outcome of the gate.
    chance
        (M, L, B, C) chance of each level of each feature, by outcome and class; 0 beyond the last one.
    trust
        (L, M) t.

    Examples
    --------
    >>> from askwise.table.schema import read_table
    >>> X = np.array([[0.0, 0, 0], [0, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 0]] * 10)
    >>> y = np.where(X[:, 0] == 0, X[:, 1], X[:, 2]).astype(int)
    >>> gated = GatedGains.learned(np.array([0]), X, y, read_table(X)[0])
    >>> gain, mask = np.array([[0.0, 0.1, 0.1]]), np.array([[True, False, False]])
    >>> gated.mixed(gain, mask, np.array([[1.0, np.nan, np.nan]])).round(2).tolist()
    [[0.0, 0.0, 0.22]]
    """

    gate: int
    outcomes: GateOutcomes
    levels: list[GateOutcomes]
    prior: np.ndarray
    chance: np.ndarray
    trust: np.ndarray

    @classmethod
    def learned(cls, gates: np.ndarray, values: np.ndarray, labels: np.ndarray, schema: Schema) -> Self:
        """Those of the gate after which features tell most, from rows (N, D) and their labels (N,)."""
        levels = [GateOutcomes.of_cells(values, columns, schema.is_category) for columns in schema.feature_columns]
        codes = [of_feature.number(values) for of_feature in levels]
        found = [cls._of_gate(gate, levels, codes, labels) for gate in gates.tolist()]
        share = [np.bincount(codes[one.gate], minlength=len(one.prior)) / len(labels) for one in found]
        told = [part @ one.told_at_once().sum(axis=1) for part, one in zip(share, found, strict=True)]
        return found[int(np.argmax(told))]

    @classmethod
    def _of_gate(cls, gate: int, levels: list[GateOutcomes], codes: list[np.ndarray], labels: np.ndarray) -> Self:
        number, n_outcomes, n_classes = codes[gate], len(levels[gate].centers), int(labels.max()) + 1
        n_levels = [len(of_feature.centers) for of_feature in levels]
        chance = np.zeros((len(levels), n_outcomes, max(n_levels), n_classes))
        trust = np.ones((n_outcomes, len(levels)))
        of_class = _counts(number, labels, (n_outcomes, n_classes))
        often = of_class.sum(axis=1) >= 2 * ROWS_PER_LEVEL  # of others, the case alone must say
        for i, code in enumerate(codes):
            counts = _counts(number, code, labels, (n_outcomes, n_levels[i], n_classes))
            square, by_chance = _dependence(counts)
            share = np.where(often & (i != gate), np.maximum(square - by_chance, 0) / np.maximum(square, SMALLEST), 0.0)
            trust[:, i] = np.where(often & (i != gate), share, 1.0)
            usual = (counts.sum(axis=2) + 1) / (of_class.sum(axis=1) + n_levels[i])[:, None]  # (L, B)
            within = (counts + PRIOR_ROWS * usual[:, :, None]) / (of_class + PRIOR_ROWS)[:, None]
            chance[i, :, : n_levels[i]] = usual[:, :, None] + share[:, None, None] * (within - usual[:, :, None])
        prior = (of_class + 1) / (of_class + 1).sum(axis=1, keepdims=True)
        return cls(gate, levels[gate], levels, prior, chance, trust)

    def mixed(self, gain: np.ndarray, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n, M) the mean of both for cases (n, D) with the features `mask` (n, M); the gain where no gate is known."""
        found, known = gain.copy(), mask[:, self.gate]
        if known.any():
            number = self.outcomes.number(values[known])
            own = OWN_SHARE * self.trust[number] * gain[known]
            found[known] = own + (1 - OWN_SHARE) * self.told(number, mask[known], values[known])
        return found

    def told(self, number: np.ndarray, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n, M) what each feature tells of cases (n, D) with the features `mask` (n, M), after outcomes (n,)."""
        logs = np.log(self.prior[number])
        for i in np.flatnonzero(mask.any(axis=0)):
            had = mask[:, i]
            logs[had] += np.log(self.chance[i, number[had], self.levels[i].number(values[had])])
        return self._information(number, softmax(logs, axis=1))

    def told_at_once(self) -> np.ndarray:
        """(L, M) what each feature tells when the outcome of the gate is all that is known."""
        return self._information(np.arange(len(self.prior)), self.prior)

    def _information(self, number: np.ndarray, proba: np.ndarray) -> np.ndarray:
        """(n, M) mutual information of each feature and a class with probabilities (n, C), after outcomes (n,)."""
        found = np.zeros((len(number), len(self.levels)))
        for i, of_feature in enumerate(self.chance):
            joint = of_feature[number] * proba[:, None]  # (n, B, C)
            level = joint.sum(axis=2)
            found[:, i] = xlogy(joint, joint).sum(axis=(1, 2)) - xlogy(level, level).sum(axis=1)
        return np.maximum(found - xlogy(proba, proba).sum(axis=1, keepdims=True), 0.0)

    def described(self, features: list[str]) -> dict[str, Any]:
        """Ready for JSON: the gate, and what tells most after each of its outcomes."""
        usual = self.told_at_once()
        best = np.argsort(-usual, axis=1, kind="stable")[:, :SHOWN_PER_OUTCOME]
        told = [
            {features[i]: float(row[i]) for i in top if row[i] > LEAST_SHOWN}
            for row, top in zip(usual, best, strict=True)
        ]
        return {"gate": features[self.gate], "tells_most_after_each_outcome": told}


def _counts(*codes_and_shape: Any) -> np.ndarray:
    """How many rows have each combination of codes (N,), as an array of the shape that comes last."""
    *codes, shape = codes_and_shape
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape).astype(float)


def _dependence(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chi square of level and label from counts (L, B, C), by outcome, and what chance gives: (L,) each."""
    n_rows, by_code, by_label = counts.sum(axis=(1, 2)), counts.sum(axis=2), counts.sum(axis=1)
    expected = by_code[:, :, None] * by_label[:, None, :] / np.maximum(n_rows, 1)[:, None, None]
    apart = (counts - expected) ** 2 / np.where(expected > 0, expected, 1.0)
    of_code, of_label = (np.maximum((by > 0).sum(axis=1) - 1, 0) for by in (by_code, by_label))
    freedom = of_code * of_label
    return apart.sum(axis=(1, 2)), freedom + np.sqrt(2 * freedom)
