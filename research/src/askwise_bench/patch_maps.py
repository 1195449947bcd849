"""Maps of photographs, computed once for each image and kept: the frozen first stages of a network, patch by patch.

The first stages see each patch by itself (`askwise_bench.image_networks.patch_stages`), so that the map of an image in
which any patches are hidden follows from the map of the whole image. What is trained behind them sees thousands of
images under new masks in every epoch, at the price of the last stage alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askwise.locking import file_lock
from askwise.networks import seeded
from askwise_bench.image_networks import FROZEN_BLOCKS, packaged_weights, patch_stages

CACHE = "ASKWISE_CACHE"
"""Variable with the folder in which maps are kept; by default `.cache/askwise` in the home folder."""
SIDE = 4
"""Patches along each side of an image."""
SAVED_EVERY = 100
"""Images after which those done are noted, so that a run that is killed loses little."""


def cache_folder() -> Path:
    """Where maps are kept."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache" / "askwise")


def patch_maps(name: str, images: Any, rows: np.ndarray) -> np.ndarray:
    """(n, C, 4, 4) maps of the images numbered `rows`, from the files of the cache; those lacking are computed now.

    Parameters
    ----------
    name
        Of the set of images, such as "imagenette-train"; with the weights and the size it names the file.
    images
        (N, 3, H, W) photographs of one byte per pixel, or what gives them when it is indexed.
    """
    digest = hashlib.sha256(packaged_weights().read_bytes()).hexdigest()[:8]
    path = cache_folder() / f"{name}-{images.shape[-1]}-{FROZEN_BLOCKS}-{digest}.npy"
    return KeptMaps(path, len(images)).of(rows, lambda row: images[row], patch_stages)


class KeptMaps:
    """A file of maps in half precision, mapped to memory, and a file that says which of them are done.

    Parameters
    ----------
    path
        The file of the maps; the other one has the same name with the ending `.done.npy`.
    n_images
        How many images the set has.
    """

    def __init__(self, path: Path, n_images: int) -> None:
        self.path = path
        self.n_images = n_images

    def of(self, rows: np.ndarray, image: Callable[[int], np.ndarray], stages: Callable[[], Any]) -> np.ndarray:
        """Maps in single precision of `rows`; `image` gives a photograph by number, `stages` makes the network."""
        with file_lock(self.path.with_suffix(".lock")):
            lacking = np.unique(rows) if not self.path.exists() else np.unique(rows)[~self._done()[np.unique(rows)]]
            if len(lacking):
                self._compute(lacking.tolist(), image, stages())
            kept = np.load(self.path, mmap_mode="r")
            return np.asarray(kept[rows], dtype=np.float32)

    @property
    def _done_path(self) -> Path:
        return self.path.with_suffix(".done.npy")

    def _done(self) -> np.ndarray:
        return np.asarray(np.load(self._done_path))

    def _compute(self, rows: Sequence[int], image: Callable[[int], np.ndarray], stages: Any) -> None:
        kept = done = None
        for start in range(0, len(rows), SAVED_EVERY):
            for row in rows[start : start + SAVED_EVERY]:
                found = patches_through(stages, image(row))
                if kept is None or done is None:
                    kept, done = self._opened(found.shape)
                kept[row], done[row] = found, True
            assert kept is not None
            assert done is not None
            kept.flush()
            done.flush()  # only what is on disk is said to be done

    def _opened(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Both files, to be written to; new ones where there are none."""
        if not (self.path.exists() and self._done_path.exists()):
            for path, of, kind in ((self.path, shape, np.float16), (self._done_path, (), np.bool_)):
                np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=(self.n_images, *of)).flush()
        return np.load(self.path, mmap_mode="r+"), np.load(self._done_path, mmap_mode="r+")


def patches_through(stages: Any, image: np.ndarray) -> np.ndarray:
    """(C, rows, columns) the map of one photograph (3, H, W), each patch by itself.

    One image at a time: rounding then does not depend on which others are asked for.
    """
    import torch

    channels, height, width = image.shape
    cut = image.reshape(channels, SIDE, height // SIDE, SIDE, width // SIDE).transpose(1, 3, 0, 2, 4)
    patches = torch.as_tensor(cut.reshape(SIDE * SIDE, channels, height // SIDE, width // SIDE).astype(np.float32))
    with seeded(0), torch.no_grad():  # `seeded` sets one thread
        maps = stages(patches.contiguous(memory_format=torch.channels_last)).numpy()
    n_maps, down, right = maps.shape[1:]
    by_patch = maps.reshape(SIDE, SIDE, n_maps, down, right).transpose(2, 0, 3, 1, 4)
    return np.asarray(by_patch.reshape(n_maps, SIDE * down, SIDE * right))
