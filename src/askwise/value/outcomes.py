"""The possible outcomes of a feature: fine outcomes, grouped into coarse ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from askwise.table.schema import Schema

COARSE_BINS = 1.5
"""Coarse bins per cube root of the completions, the rate at which a histogram's bins should grow."""
ROWS_PER_FINE_BIN = 4
MOST_CLUSTERS = 250
"""Fine outcomes of a group of columns; more clusters take too long to find."""


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of M features at a resolution that grows with the number of completions.

    Each category is an outcome, and so is each value of a number with few distinct values; other numbers, and the
    columns of a group, are binned. Neighboring fine outcomes form a coarse one, towards which the estimates of fine
    outcomes are shrunk. The outcomes of all features are numbered consecutively.
    """

    of_row: np.ndarray  # (N, M) fine outcome of each pool row
    coarse: np.ndarray  # (B,) coarse outcome of each fine one, ascending
    feature: np.ndarray  # (coarse outcomes,) their features, ascending

    @classmethod
    def of_features(cls, scores: np.ndarray, schema: Schema, n_completions: int, random_state: int) -> Outcomes:
        """The outcomes of all features, from the pool's `scores` (N, D) of `Neighbors.scale`."""
        n_fine = max(2, n_completions // ROWS_PER_FINE_BIN)
        n_coarse = max(2, round(COARSE_BINS * n_completions ** (1 / 3)))
        features = []
        for columns in schema.feature_columns:
            cells, is_category = scores[:, columns], schema.is_category[columns]
            if len(columns) > 1:
                features.append(_of_group(cells, is_category, n_fine, n_coarse, random_state))
            elif is_category[0]:
                features.append(_of_categories(cells[:, 0], n_completions))
            else:
                features.append(_of_numbers(cells[:, 0], n_fine, n_coarse))
        return cls.joined(features)

    @classmethod
    def joined(cls, features: Iterable[tuple[np.ndarray, np.ndarray]]) -> Outcomes:
        """From each feature's (N,) fine outcomes of the pool rows, and (B,) coarse outcomes of the fine ones."""
        of_row, coarse, feature = [], np.empty(0, dtype=int), np.empty(0, dtype=int)
        for i, (fine, parent) in enumerate(features):
            groups, parent = np.unique(parent, return_inverse=True)
            order = np.argsort(parent, kind="stable")  # makes the fine outcomes of a coarse one adjacent
            of_row.append(len(coarse) + np.argsort(order)[fine])
            coarse = np.append(coarse, len(feature) + parent[order])
            feature = np.append(feature, np.full(len(groups), i))
        return cls(np.stack(of_row, axis=1).astype(np.int32), coarse, feature)


def _of_numbers(cells: np.ndarray, n_fine: int, n_coarse: int) -> tuple[np.ndarray, np.ndarray]:
    _, fine, counts = np.unique(cells[~np.isnan(cells)], return_inverse=True, return_counts=True)
    fine = _by_rank(counts, n_fine)[fine]
    counts = np.bincount(fine)
    parent = _by_rank(counts, n_coarse) if len(counts) > n_coarse else np.zeros(len(counts), dtype=int)
    return _with_missing(cells, fine, parent)


def _of_categories(cells: np.ndarray, n_completions: int) -> tuple[np.ndarray, np.ndarray]:
    _, fine, counts = np.unique(cells[~np.isnan(cells)], return_inverse=True, return_counts=True)
    fine = _rarest_together(fine, counts, n_completions)
    return _with_missing(cells, fine, np.zeros(fine.max(initial=-1) + 1, dtype=int))


def _with_missing(cells: np.ndarray, fine: np.ndarray, parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outcomes `fine` of the cells that are there; the last outcome is that a cell is missing."""
    missing = np.isnan(cells)
    if not missing.any():
        return fine, parent
    of_row = np.full(len(cells), len(parent))
    of_row[~missing] = fine
    return of_row, np.append(parent, parent.max() + 1 if parent.any() else 0)


def _rarest_together(codes: np.ndarray, counts: np.ndarray, n_completions: int) -> np.ndarray:
    """Keep as many of the most frequent categories as there are completions; the others share one outcome."""
    rank = np.empty(len(counts), dtype=int)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank[codes], n_completions)


def _by_rank(counts: np.ndarray, n_bins: int) -> np.ndarray:
    """Values in ascending order with `counts` rows each -> bins of about equally many rows, numbered without gaps."""
    if len(counts) <= n_bins:
        return np.arange(len(counts))
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    return np.unique((middle * n_bins).astype(int), return_inverse=True)[1]


def _of_group(
    cells: np.ndarray, is_category: np.ndarray, n_fine: int, n_coarse: int, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    points = points_of_group(cells, is_category)
    distinct, fine = np.unique(points, axis=0, return_inverse=True)
    n_clusters = min(n_fine, MOST_CLUSTERS)
    if len(distinct) > n_clusters:
        clusters = KMeans(n_clusters, n_init=1, random_state=random_state).fit(points)
        distinct, fine = clusters.cluster_centers_, clusters.labels_
    parent = np.zeros(len(distinct), dtype=int)
    if len(distinct) > n_coarse:
        counts = np.bincount(fine, minlength=len(distinct))
        coarse = KMeans(n_coarse, n_init=1, random_state=random_state)
        parent = np.asarray(coarse.fit_predict(distinct, sample_weight=counts), dtype=int)
    return fine, parent


def points_of_group(cells: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """The cells (N, columns) of a group as points, which can be clustered."""
    return np.hstack([_coordinates(cells[:, j], bool(is_category[j])) for j in range(len(is_category))])


def _coordinates(cells: np.ndarray, is_category: bool) -> np.ndarray:
    """One column as coordinates of a point: one-hot categories, and an indicator of missing numbers."""
    if is_category:
        return (cells[:, None] == np.unique(cells)).astype(float)
    missing = np.isnan(cells)
    return np.column_stack([np.where(missing, 0.0, cells), missing] if missing.any() else [cells])
