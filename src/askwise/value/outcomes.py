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
        alone = [columns[0] for columns in schema.feature_columns if len(columns) == 1]
        numbers = [j for j in alone if not schema.is_category[j]]
        binned = iter(_of_numbers(scores[:, numbers], n_fine, n_coarse))
        features = []
        for columns in schema.feature_columns:
            cells, is_category = scores[:, columns], schema.is_category[columns]
            if len(columns) > 1:
                features.append(_of_group(cells, is_category, n_fine, n_coarse, random_state))
            elif is_category[0]:
                features.append(_of_categories(cells[:, 0], n_completions))
            else:
                features.append(next(binned))
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


def _of_numbers(cells: np.ndarray, n_fine: int, n_coarse: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The outcomes of each column of `cells` (N, F); the last one is that a cell is missing."""
    order = np.argsort(cells, axis=0, kind="stable")  # missing cells come last
    cells = np.take_along_axis(cells, order, axis=0)
    missing = np.isnan(cells)
    n_there = (~missing).sum(axis=0)
    fine = _by_rank(_numbered(cells, missing), n_there, n_fine)
    coarse = _by_rank(fine, n_there, n_coarse)
    coarse[:, fine.max(axis=0, initial=0) < n_coarse] = 0  # so few are not grouped
    grouped = coarse.any(axis=0)
    fine, coarse = fine + (missing & (n_there > 0)), coarse + (missing & grouped)
    first = np.ones(fine.shape, dtype=bool)
    first[1:] = fine[1:] != fine[:-1]
    of_row = np.empty_like(fine)
    np.put_along_axis(of_row, order, fine, axis=0)
    return [(of_row[:, j], coarse[first[:, j], j]) for j in range(fine.shape[1])]


def _of_categories(cells: np.ndarray, n_completions: int) -> tuple[np.ndarray, np.ndarray]:
    """The outcomes of a column of categories; the last one is that a cell is missing."""
    missing = np.isnan(cells)
    _, fine, counts = np.unique(cells[~missing], return_inverse=True, return_counts=True)
    n_outcomes = min(len(counts), n_completions + 1)
    of_row = np.full(len(cells), n_outcomes)
    of_row[~missing] = _rarest_together(fine, counts, n_completions)
    return of_row, np.zeros(n_outcomes + missing.any(), dtype=int)


def _rarest_together(codes: np.ndarray, counts: np.ndarray, n_completions: int) -> np.ndarray:
    """Keep as many of the most frequent categories as there are completions; the others share one outcome."""
    rank = np.empty(len(counts), dtype=int)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank[codes], n_completions)


def _numbered(ascending: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """(N, F) the values of ascending columns, numbered from 0 without gaps; missing cells like the last value."""
    new = np.zeros(ascending.shape, dtype=int)
    new[1:] = (ascending[1:] != ascending[:-1]) & ~missing[1:]
    return new.cumsum(axis=0)


def _by_rank(codes: np.ndarray, n_there: np.ndarray, n_bins: int) -> np.ndarray:
    """Ascending codes (N, F) in bins of about equally many of the first `n_there` (F,) rows, numbered without gaps.

    Equal codes share a bin, that of their middle rank. Columns with as few codes as bins stay as they are.
    """
    at = np.arange(len(codes))[:, None]
    new = np.ones((len(codes) + 1, codes.shape[1]), dtype=bool)
    new[1:-1] = codes[1:] != codes[:-1]
    start = np.maximum.accumulate(np.where(new[:-1], at, 0), axis=0)
    end = np.minimum.accumulate(np.where(new[1:], at + 1, len(codes))[::-1], axis=0)[::-1]
    end = np.minimum(end, n_there)
    middle = (end - (end - start) / 2) / np.maximum(n_there, 1)
    binned = _numbered((middle * n_bins).astype(int), np.zeros(codes.shape, dtype=bool))
    return np.where(codes[-1] < n_bins, codes, binned)


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
