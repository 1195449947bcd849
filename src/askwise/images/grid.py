"""A grid of patches over images: the features of an image, and its encoding as a row and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from askwise.errors import InvalidInput
from askwise.parameters import Whole
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

CELLS_PER_CALL = 200_000
"""Maximum number of pixels per call of a model: the feature maps of a network are far larger than its input."""
LARGEST_EXACT_INTEGER = 2**24
"""Whole numbers up to this one are exact in single precision."""


class PatchGrid:
    """`rows` x `columns` patches of equal size over images (N, C, H, W); given to a selector as its `groups`.

    Examples
    --------
    >>> grid = PatchGrid(2, 2)
    >>> schema, rows = grid.read(np.zeros((5, 1, 4, 6), dtype=np.uint8))
    >>> schema.features
    ['patch r1c1', 'patch r1c2', 'patch r2c1', 'patch r2c2']
    """

    def __init__(self, rows: int = 4, columns: int = 4) -> None:
        for name, value in (("rows", rows), ("columns", columns)):
            if not Whole(1).allows(value):
                raise InvalidInput(f"PatchGrid: {name} must be {Whole(1)}; got {value!r}.")
        self.rows = int(rows)
        self.columns = int(columns)

    def __repr__(self) -> str:
        return f"PatchGrid({self.rows}, {self.columns})"

    def read(self, X: Any) -> tuple[ImageSchema, EncodedRows]:
        """The schema of training images, and the images encoded by it."""
        images = as_images(X)
        schema = ImageSchema(self, images.shape[1:], images.dtype)
        rows = schema.encode(images)
        never = ~schema.any_column(rows.observed).any(axis=0)
        if len(rows) and never.any():
            name = schema.features[int(never.argmax())]
            raise InvalidInput(f"{name} of X is NaN in every image, so nothing can be learned about it.")
        return schema, rows

    def middle_first(self) -> np.ndarray:
        """(M,) relevance of each patch by its closeness to the center, for `askwise.policy.Static`."""
        down = np.abs(np.arange(self.rows) - (self.rows - 1) / 2)
        right = np.abs(np.arange(self.columns) - (self.columns - 1) / 2)
        return np.asarray(1 / (1 + np.hypot(down[:, None], right)).ravel())


class ImageSchema(Schema):
    """Images cut into patches, with the attributes and methods of `Schema`: a column is a pixel, a feature a patch.

    Encoded images are (n, C * H * W) in single precision, NaN where a pixel is hidden.

    Parameters
    ----------
    grid
        The patches.
    shape, dtype
        (C, H, W) and dtype of the training images, also of every completed image.
    """

    tabular = False

    def __init__(self, grid: PatchGrid, shape: tuple[int, ...], dtype: Any) -> None:
        channels, height, width = shape
        if height % grid.rows or width % grid.columns:
            raise InvalidInput(
                f"{grid} does not divide images of {height} x {width} pixels into equal patches. Use a grid whose "
                f"rows divide {height} and whose columns divide {width}, or pad or resize the images."
            )
        self.grid, self.shape, self.dtype = grid, (channels, height, width), np.dtype(dtype)
        self.patch_shape = (channels, height // grid.rows, width // grid.columns)
        self.columns: Any = range(channels * height * width)
        self.framed = False
        self.rows_per_call = max(32, CELLS_PER_CALL // len(self.columns))
        self.is_category = np.zeros(len(self.columns), dtype=bool)
        self.features = [f"patch r{r + 1}c{c + 1}" for r in range(grid.rows) for c in range(grid.columns)]
        patches = np.arange(len(self.features)).reshape(1, grid.rows, 1, grid.columns, 1)
        blocks = np.broadcast_to(patches, self.block_shape)
        self.owner = blocks.reshape(-1).astype(int)
        self.feature_columns = [np.flatnonzero(self.owner == i) for i in range(len(self.features))]

    @property
    def block_shape(self) -> tuple[int, int, int, int, int]:
        """(C, grid rows, patch height, grid columns, patch width): an image as blocks."""
        channels, height, width = self.patch_shape
        return channels, self.grid.rows, height, self.grid.columns, width

    def encode(self, X: Any) -> EncodedRows:
        """Images of the training shape -> numbers, NaN = hidden."""
        images = as_images(X)
        if images.shape[1:] != self.shape:
            raise InvalidInput(
                f"X must hold images of shape {self.shape} (C, H, W), as in fit; got {images.shape[1:]}."
            )
        if not len(images):
            raise InvalidInput("X has no images; at least one is needed.")
        values = images.reshape(len(images), -1).astype(np.float32)
        self._check_units(images.dtype, values, "X")
        return EncodedRows(values)

    def decode(
        self,
        rows: EncodedRows,
        columns: Iterable[int] | None = None,
        framed: bool | None = None,
        typed: bool | None = None,
    ) -> Any:
        """Completed rows -> images (n, C, H, W), in the dtype of the training images wherever the pixels allow it."""
        assert columns is None, "an image has no columns to pick"
        whole = bool(self.castable(rows.values).all()) if typed is None else typed
        return rows.values.astype(self.dtype if whole else np.float32).reshape(len(rows), *self.shape)

    def castable(self, values: np.ndarray, columns: Iterable[int] | None = None) -> np.ndarray:
        """(n,) images whose pixels all fit the dtype of the training images."""
        if self.dtype.kind == "f":
            return np.ones(len(values), dtype=bool)
        return np.asarray(self._whole(values).all(axis=1))

    def expand(self, feature_mask: np.ndarray) -> np.ndarray:
        """Mask per patch (n, M) -> mask per pixel (n, D)."""
        by_patch = feature_mask.reshape(-1, 1, self.grid.rows, 1, self.grid.columns, 1)
        return np.broadcast_to(by_patch, (len(feature_mask), *self.block_shape)).reshape(len(feature_mask), -1)

    def any_column(self, column_mask: np.ndarray) -> np.ndarray:
        """Mask per pixel (n, D) -> per patch (n, M): whether any pixel of the patch is set."""
        blocks = column_mask.reshape(-1, *self.block_shape)
        return np.asarray(blocks.any(axis=(1, 3, 5)).reshape(len(column_mask), -1))

    def encode_feature(self, i: int, value: Any) -> np.ndarray:
        """An answer for patch `i`, (C, h, w), or (h, w) for one channel, -> its encoded pixels."""
        name, expected = self.features[i], self.patch_shape
        try:
            patch = as_array(value)
        except InvalidInput as error:
            raise InvalidInput(f"The answer for {name!r} must be an array of shape {expected}. {error}") from None
        if patch.shape == expected[1:] and expected[0] == 1:
            patch = patch[None]
        if patch.shape != expected:
            raise InvalidInput(
                f"The answer for {name!r} must be a patch of shape {expected} (C, h, w); got {patch.shape}."
            )
        pixels = patch.reshape(1, -1).astype(np.float32)
        self._check_units(patch.dtype, pixels, f"The answer for {name!r}")
        if np.isnan(pixels).any():
            raise InvalidInput(
                f"The answer for {name!r} holds NaN. If the patch is unavailable, call unavailable({name!r})."
            )
        return np.asarray(pixels[0])

    def show_feature(self, i: int, row: np.ndarray) -> Any:
        """Patch `i` of an encoded image in a few words."""
        pixels = row[self.feature_columns[i]]
        return f"{' x '.join(map(str, self.patch_shape))} pixels, mean {np.nanmean(pixels):.3g}"

    def patch(self, i: int, row: np.ndarray) -> np.ndarray:
        """Patch `i` of an encoded image, (C, h, w)."""
        return np.asarray(row[self.feature_columns[i]].reshape(self.patch_shape))

    def neighbors(self, rows: EncodedRows, n_neighbors: int, bandwidth: float) -> Any:
        """A search for training images that resemble the observed patches; see `ConditionalPredictor`."""
        from askwise.images.similar import SimilarImages

        return SimilarImages(rows, self, n_neighbors, bandwidth)

    def defaults(self) -> Any:
        """The module that resolves the names of adaptations, epistemic estimators and policies for images."""
        from askwise.images import defaults

        return defaults

    def _whole(self, values: np.ndarray) -> np.ndarray:
        limits = np.iinfo(self.dtype)
        with np.errstate(invalid="ignore"):
            return np.asarray((values == np.rint(values)) & (values >= limits.min) & (values <= limits.max))

    def _check_units(self, dtype: np.dtype[Any], values: np.ndarray, owner: str) -> None:
        """Raise an error for pixels in other units than those of `fit`, such as 0 to 1 instead of 0 to 255."""
        if np.isinf(values).any():
            raise InvalidInput(
                f"{owner} holds infinite pixels, or pixels beyond single precision; hidden ones are NaN."
            )
        if self.dtype.kind == "f" and dtype.kind != "f":
            raise InvalidInput(
                f"{owner} is {dtype} and the images of fit were {self.dtype}; scale the pixels as those of fit."
            )
        if self.dtype.kind != "f" and dtype != self.dtype and not (self._whole(values) | np.isnan(values)).all():
            raise InvalidInput(
                f"{owner} holds pixels that {self.dtype} images, as those of fit, cannot hold. Give whole numbers in "
                "the same units (0 to 255, not 0 to 1), and NaN for what is hidden."
            )


def as_array(X: Any) -> np.ndarray:
    """Pixels as an array of numbers; torch tensors are moved to the CPU, masked cells become NaN."""
    if hasattr(X, "detach") and hasattr(X, "cpu"):
        tensor = X.detach().cpu()
        X = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)
    try:
        array = np.asarray(X)
    except ValueError:
        raise InvalidInput("Pixels must form one array; these have different shapes.") from None
    if array.dtype.kind not in "iuf":
        raise InvalidInput(f"Pixels must be whole numbers or floats; got dtype {array.dtype}.")
    if (
        array.dtype.kind in "iu"
        and array.dtype.itemsize > 2
        and array.size
        and np.abs(array).max() > LARGEST_EXACT_INTEGER
    ):
        raise InvalidInput(
            f"Pixels must not exceed {LARGEST_EXACT_INTEGER}, beyond which single precision is not exact."
        )
    return array


def as_images(X: Any) -> np.ndarray:
    """`X` as an array of images (N, C, H, W)."""
    if hasattr(X, "iloc"):
        raise InvalidInput("X must be images of shape (N, C, H, W), because groups is a PatchGrid; got a table.")
    try:
        images = as_array(X)
    except InvalidInput as error:
        raise InvalidInput(f"X must be images of shape (N, C, H, W). {error}") from None
    if images.ndim != 4 or 0 in images.shape[1:]:
        advice = " Gray images have one channel: X[:, None]." if images.ndim == 3 else ""
        raise InvalidInput(f"X must be images of shape (N, C, H, W); got shape {images.shape}.{advice}")
    return images
