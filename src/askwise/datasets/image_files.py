"""File formats of images: idx, the pickled batches of CIFAR-10, and JPEG files that are decoded when needed."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from askwise.errors import AskwiseError

_ARRAY_PARTS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


def read_idx(content: bytes) -> np.ndarray:
    """The array of bytes in a gzipped idx file."""
    plain = gzip.decompress(content)
    if plain[:3] != b"\0\0\x08":
        raise AskwiseError("datasets: not an idx file of bytes: it must begin with 0, 0, 8.")
    start = 4 + 4 * plain[3]
    shape = struct.unpack(f">{plain[3]}I", plain[4:start])
    if len(plain) - start != prod(shape):
        raise AskwiseError(
            f"datasets: an idx file of shape {shape} must hold {prod(shape)} bytes, not {len(plain) - start}."
        )
    return np.frombuffer(plain, dtype=np.uint8, offset=start).reshape(shape)


def read_batch(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, 32, 32) and labels (n,) of a batch of CIFAR-10."""
    batch = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
    return np.asarray(batch[b"data"], dtype=np.uint8).reshape(-1, 3, 32, 32), np.array(batch[b"labels"])


class _ArraysOnly(pickle.Unpickler):
    """Reads pickled arrays, lists and dicts; a pickle that names anything else could run code and is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ARRAY_PARTS:
            raise AskwiseError(f"datasets: a batch of CIFAR-10 holds arrays only; this file asks for {module}.{name}.")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


class EncodedImages:
    """Color images that are decoded when they are indexed along the first axis.

    `files` are the encoded images, or where to read them, `names` are for messages, `size` is the height and width;
    an image of another size is squashed.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, files: Sequence[bytes | Path], names: Sequence[str], size: int) -> None:
        self._files = files
        self._names = names
        self._size = size
        _pillow()

    def __len__(self) -> int:
        return len(self._files)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, 3, size, size)."""
        return (len(self), 3, self._size, self._size)

    def __getitem__(self, index: Any) -> np.ndarray:
        """(3, size, size) of a number; (n, 3, size, size) of a slice, of numbers or of booleans."""
        wanted = np.arange(len(self))[index]
        images = np.empty((wanted.size, *self.shape[1:]), dtype=np.uint8)
        for at, number in enumerate(wanted.ravel()):
            images[at] = self._decoded(int(number))
        return images.reshape(*wanted.shape, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        images = self[:]
        return images if dtype is None else images.astype(dtype)

    def _decoded(self, number: int) -> np.ndarray:
        image_module, file = _pillow(), self._files[number]
        try:
            with image_module.open(io.BytesIO(file) if isinstance(file, bytes) else file) as encoded:
                image = encoded.convert("RGB")
        except (OSError, SyntaxError) as error:
            where = self._names[number] if isinstance(file, bytes) else file
            raise AskwiseError(
                f"datasets: the image {where} cannot be decoded: {error}. Replace it by a good copy."
            ) from error
        if image.size != (self._size, self._size):
            image = image.resize((self._size, self._size), image_module.Resampling.LANCZOS)
        return np.asarray(image).transpose(2, 0, 1)


def _pillow() -> Any:
    """The module that decodes images; where Pillow is not installed, an error that names the extra."""
    try:
        from PIL import Image
    except ImportError:
        raise AskwiseError('Imagenette needs Pillow, which is not installed: pip install "askwise[images]".') from None
    return Image
