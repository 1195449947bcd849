"""Patches of images: what is encoded, what is decoded, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from askwise.errors import InvalidInput
from askwise.images.grid import PatchGrid
from askwise.table.schema import read_table


def test_patches_are_named_by_row_and_column_and_own_their_pixels():
    images = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)
    schema, rows = PatchGrid(2, 3).read(images)
    assert schema.features == ["patch r1c1", "patch r1c2", "patch r1c3", "patch r2c1", "patch r2c2", "patch r2c3"]
    for i, (r, c) in enumerate((r, c) for r in range(2) for c in range(3)):
        expected = images[1, :, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2]
        np.testing.assert_array_equal(schema.patch(i, rows.values[1]), expected)
        np.testing.assert_array_equal(schema.encode_feature(i, expected), expected.ravel())
    assert rows.values.dtype == np.float32


def test_masks_are_expanded_and_contracted():
    schema, _ = read_table(np.zeros((1, 2, 4, 4)), PatchGrid(2, 2))
    mask = np.random.default_rng(0).random((5, 4)) < 0.5
    by_pixel = schema.expand(mask)
    np.testing.assert_array_equal(by_pixel, mask[:, schema.owner])
    np.testing.assert_array_equal(schema.any_column(by_pixel), mask)
    one_pixel = np.zeros((1, 32), dtype=bool)
    one_pixel[0, 5] = True  # row 1, column 1 of the first channel
    assert schema.any_column(one_pixel).tolist() == [[True, False, False, False]]


def test_images_come_back_in_their_own_dtype():
    rng = np.random.default_rng(0)
    for dtype in (np.uint8, np.int16, np.float16, np.float32, np.float64):
        images = (rng.random((3, 1, 4, 4)) * 200).astype(dtype)
        schema, rows = read_table(images, PatchGrid(2, 2))
        decoded = schema.decode(rows)
        assert decoded.dtype == dtype
        assert np.allclose(decoded, images, rtol=1e-6)
    schema, rows = read_table(np.full((1, 1, 4, 4), 7, dtype=np.uint8), PatchGrid(2, 2))
    assert schema.decode(rows.with_values(rows.values + 0.5)).dtype == np.float32


def test_tensors_and_masked_arrays_are_taken():
    torch = pytest.importorskip("torch")
    images = np.random.default_rng(0).random((2, 1, 4, 4)).astype(np.float32)
    grid = PatchGrid(2, 2)
    for given in (torch.as_tensor(images), torch.as_tensor(images).requires_grad_(True)):
        np.testing.assert_array_equal(grid.read(given)[1].values, images.reshape(2, -1))
    assert grid.read(torch.as_tensor(images).bfloat16())[1].values.shape == (2, 16)
    hidden = np.ma.masked_array(images, images > 2)
    hidden[0, 0, 0, 0] = np.ma.masked
    assert np.isnan(grid.read(hidden)[1].values).sum() == 1


def test_patches_in_the_middle_come_first():
    relevance = PatchGrid(4, 4).middle_first().reshape(4, 4)
    assert relevance[1, 1] == relevance[2, 2] > relevance[0, 1] > relevance[0, 0]


def test_bad_images_are_refused():
    grid = PatchGrid(4, 4)
    for bad, message in (
        (np.zeros((2, 1, 30, 28)), "does not divide images of 30 x 28"),
        (np.zeros((2, 28, 28)), r"X\[:, None\]"),
        (np.zeros((2, 784)), r"\(N, C, H, W\)"),
        (pd.DataFrame(np.zeros((2, 4))), "got a table"),
        (np.array([["a"]]), "whole numbers or floats"),
        (np.zeros((2, 1, 28, 28), dtype=bool), "bool"),
        (np.zeros((2, 1, 28, 28), dtype=complex), "complex"),
        ([np.zeros((1, 4, 4)), np.zeros((1, 8, 8))], "different shapes"),
        (np.full((2, 1, 28, 28), np.inf), "infinite"),
        (np.full((2, 1, 28, 28), 2**30), "16777216"),
    ):
        with pytest.raises(InvalidInput, match=message):
            grid.read(bad)
    hidden = np.zeros((2, 1, 28, 28))
    hidden[:, :, :7, 7:14] = np.nan
    with pytest.raises(InvalidInput, match="patch r1c2 of X is NaN in every image"):
        grid.read(hidden)
    sizes: list[Any] = [0, 1.5, "4", True]
    for rows in sizes:
        with pytest.raises(InvalidInput, match="PatchGrid: rows must be"):
            PatchGrid(rows, 4)


def test_images_in_other_units_than_those_of_fit_are_refused():
    grid = PatchGrid(2, 2)
    whole, shares = np.full((2, 1, 4, 4), 200, dtype=np.uint8), np.full((2, 1, 4, 4), 0.7)
    of_whole, of_shares = grid.read(whole)[0], grid.read(shares)[0]
    with pytest.raises(InvalidInput, match="not 0 to 1"):
        of_whole.encode(shares)
    with pytest.raises(InvalidInput, match="scale the pixels"):
        of_shares.encode(whole)
    partly = np.where(np.arange(4) < 2, 200.0, np.nan) * np.ones((2, 1, 4, 4))
    assert np.isnan(of_whole.encode(partly).values).sum() == 16  # whole numbers with NaN for what is hidden
    with pytest.raises(InvalidInput, match=r"shape \(1, 4, 4\) \(C, H, W\), as in fit; got \(3, 4, 4\)"):
        of_shares.encode(np.zeros((2, 3, 4, 4)))


def test_bad_patches_are_refused():
    schema, _ = PatchGrid(2, 2).read(np.zeros((2, 1, 4, 4), dtype=np.uint8))
    assert schema.encode_feature(0, np.ones((2, 2))).shape == (4,)  # one channel may be left out
    for bad, message in (
        (np.ones((1, 3, 2)), r"'patch r1c1' must be a patch of shape \(1, 2, 2\)"),
        (np.full((1, 2, 2), np.nan), "unavailable"),
        (np.full((1, 2, 2), 0.5), "0 to 255"),
        (np.full((1, 2, 2), 300), "0 to 255"),
        ("bright", "'patch r1c1' must be an array"),
        ({"x": 1}, "'patch r1c1' must be an array"),
    ):
        with pytest.raises(InvalidInput, match=message):
            schema.encode_feature(0, bad)


def test_no_images_are_refused():
    images = np.ones((2, 1, 4, 4), dtype=np.float32)
    schema, _ = PatchGrid(2, 2).read(images)
    with pytest.raises(InvalidInput, match="X has no images"):
        schema.encode(images[:0])
