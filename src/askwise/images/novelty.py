"""Novelty of images: pixels outside the training range, and patches unlike those of every training image."""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise.epistemic.novelty import MARGIN, USUAL
from askwise.images.similar import SimilarImages
from askwise.predict.base import SubsetPredictor
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample_of_sizes

MOST_IMAGES, MOST_QUERIES = 1000, 200
LEAST_USUAL = 0.1
"""Root mean squared difference of a patch, in standard deviations of a pixel, that always counts as usual."""


class ImageNovelty:
    """How far images are outside of everything seen in training; 0 within it. Has the methods of `Novelty`.

    The distance to the nearest training image over the observed patches (on downsampled pixels) is compared with what
    is usual among the training images for the same number of patches. All pixels share one range, and a patch far
    outside it (0 to 255 instead of 0 to 1) adds to the distance.

    Parameters
    ----------
    predictor, seed
        As in `Novelty`.
    """

    def __init__(self, predictor: SubsetPredictor, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        rows = predictor.training_rows_
        schema: Any = predictor.schema_
        self.schema = schema
        self.low, self.high = float(np.nanmin(rows.values)), float(np.nanmax(rows.values))
        self.spread = self.high - self.low if self.high > self.low else max(abs(self.low), 1.0)
        pool = rows.take(np.sort(rng.permutation(len(rows))[:MOST_IMAGES]))
        self.neighbors = SimilarImages(pool, self.schema, 1, 1.0)
        self.usual = self._usual_distances(pool, rng)  # by number of patches, 0..M

    def outside(self, rows: EncodedRows) -> np.ndarray:
        """(n, M) how far the pixels of each patch are outside the training range: 0 within."""
        beyond = np.maximum(self.low - rows.values, rows.values - self.high) / self.spread - MARGIN
        blocks = np.nan_to_num(np.maximum(beyond, 0.0)).reshape(-1, *self.schema.block_shape)
        return np.asarray(blocks.max(axis=(1, 3, 5)).reshape(len(rows), -1))

    def excess(self, rows: EncodedRows, distances: np.ndarray | None = None) -> np.ndarray:
        """(n,) 0 for an image within what was seen, growing without bound outside."""
        size = self.schema.any_column(rows.observed).sum(axis=1)
        squared = self.neighbors.squared_distances(rows).min(axis=1)
        distance = np.sqrt(np.maximum(squared, 0.0) / np.maximum(size, 1))
        return np.maximum(distance / self.usual[size] - 1, 0.0) + self.outside(rows).sum(axis=1)

    def describe(self, rows: EncodedRows) -> list[list[dict[str, Any]]]:
        """For each image the patches outside what was seen: name, a description, and the range seen; ready for JSON."""
        found: list[list[dict[str, Any]]] = [[] for _ in range(len(rows))]
        for r, i in zip(*np.nonzero(self.outside(rows) > 0), strict=True):
            name = self.schema.features[i]
            value = self.schema.show_feature(int(i), rows.values[r])
            found[r].append({"feature": name, "column": name, "value": value, "seen": [self.low, self.high]})
        return found

    def _usual_distances(self, pool: EncodedRows, rng: np.random.Generator) -> np.ndarray:
        n_patches = len(self.schema.features)
        asked = rng.permutation(len(pool))[:MOST_QUERIES]
        usual = np.full(n_patches + 1, LEAST_USUAL)
        for size in sorted({1, max(1, n_patches // 4), max(1, n_patches // 2), n_patches}):
            mask = sample_of_sizes(np.full(len(asked), size), n_patches, rng)
            squared = self.neighbors.squared_distances(pool.take(asked).masked(self.schema.expand(mask)))
            squared[np.arange(len(asked)), asked] = np.inf
            nearest = squared.min(axis=1)
            if np.isfinite(nearest).all():
                usual[size:] = max(float(np.quantile(np.sqrt(np.maximum(nearest, 0) / size), USUAL)), LEAST_USUAL)
        return usual
