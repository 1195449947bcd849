"""MNIST, CIFAR-10 and Imagenette, from the data home or from their original source."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from askwise.datasets.home import DataFile, checksum, data_home, fetch, unchanged
from askwise.datasets.image_files import EncodedImages, read_batch, read_idx
from askwise.errors import AskwiseError, InvalidInput

MNIST_DESCRIPTION = """MNIST: 60,000 + 10,000 handwritten digits, 28 x 28 gray pixels. LeCun, Bottou, Bengio and Haffner
(1998), Proceedings of the IEEE 86:2278-2324."""

CIFAR10_DESCRIPTION = """CIFAR-10: {train:,} + {test:,} photographs of ten kinds of things, 32 x 32 pixels in color.
Krizhevsky (2009), Learning Multiple Layers of Features from Tiny Images.{subset}"""

CIFAR10_SUBSET = " A class-balanced random subset of the 50,000 + 10,000 of the original."

IMAGENETTE_DESCRIPTION = """Imagenette 2: {train:,} + {test:,} photographs of ten easy classes of ImageNet, in color,
squashed to {size} x {size} pixels (the aspect ratio is lost). J. Howard, fast.ai (2019). The photographs are ImageNet's
and stay under its terms: research, not commerce."""

_MNIST_SOURCES = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/")


def _raw(path: str, digest: str, *sources: str) -> DataFile[bytes]:
    """A file that is checked byte by byte; a digest of 32 letters is an md5."""
    digest_of = partial(checksum, algorithm="md5") if len(digest) == 32 else checksum
    return DataFile(f"images/{path}", sources, unchanged, digest, digest_of=digest_of)


MNIST = {
    part: _raw(f"mnist/{name}", digest, *(source + name for source in _MNIST_SOURCES))
    for part, name, digest in (
        ("x_train", "train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        ("y_train", "train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        ("x_test", "t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        ("y_test", "t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    )
}

CIFAR10_BATCHES = {
    name: _raw(f"cifar10/cifar-10-batches-py/{name}", digest)
    for name, digest in (
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
        ("test_batch", "40351d587109b95175f43aff81a1287e"),
    )
}
CIFAR10_ARCHIVE = _raw(
    "cifar10/cifar-10-python.tar.gz",
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
)
CIFAR10_NPZ = _raw(
    "cifar10/cifar10_subset_10000_2000.npz", "a9645076dde500f36498e03229d5a05a6e66ec2f58f869a38c3122f4c820e1b9"
)
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

IMAGENETTE_ZIPS = (
    _raw("imagenette/imagenette2-128_train.zip", "a0d045bc129d3421eff9c7a5a700d4301ae6ed3a9a76ab6345bba7751b7cb4a8"),
    _raw("imagenette/imagenette2-128_val.zip", "d3fae083833b19007787ee9dd0597c43c2f6afe1dd4c51acd30eb048d1f2c1f5"),
)
IMAGENETTE_ARCHIVE = _raw(
    "imagenette/imagenette2-160.tgz",
    "e793b78cc4c9e9a4ccc0c1155377a412",
    "https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-160.tgz",
)
IMAGENETTE_CLASSES = {
    "n01440764": "tench",
    "n02102040": "English springer",
    "n02979186": "cassette player",
    "n03000684": "chain saw",
    "n03028079": "church",
    "n03394916": "French horn",
    "n03417042": "garbage truck",
    "n03425413": "gas pump",
    "n03445777": "golf ball",
    "n03888257": "parachute",
}
IMAGENETTE_SIZE = 128


@dataclass(frozen=True, eq=False, repr=False)
class ImageDataset:
    """Images with their labels, divided into training and test as their distributor did; terms in the description.

    `images` are (N, C, H, W) uint8, colors first; those of Imagenette are decoded when they are indexed
    (`EncodedImages`), and ``np.asarray`` decodes all of them. `y` are class numbers, named by `class_names`.

    Examples
    --------
    >>> import numpy as np
    >>> from askwise.datasets import ImageDataset
    >>> blank = np.zeros((4, 1, 8, 8), dtype=np.uint8)
    >>> y = np.array([0, 1, 0, 1])
    >>> data = ImageDataset("blank", blank, y, blank[:2], y[:2], ("no", "yes"), "Made up")
    >>> data.images.shape
    (4, 1, 8, 8)
    """

    name: str
    images: np.ndarray | EncodedImages
    y: np.ndarray
    test_images: np.ndarray | EncodedImages
    test_y: np.ndarray
    class_names: tuple[str, ...]
    description: str

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.images.shape[1:]))
        counts = f"{len(self.y):,} training and {len(self.test_y):,} test images of {size}"
        return f"ImageDataset({self.name!r}: {counts}, {len(self.class_names)} classes)"


def load_images(name: str, *, size: int | None = None) -> ImageDataset:
    """A set of images by name: "cifar10", "imagenette" or "mnist".

    The files are kept in the data home (see `load`), are downloaded from their original source when they are first
    asked for, and are verified on every load. For CIFAR-10 the data home may hold the folder `cifar-10-batches-py`, the
    archive `cifar-10-python.tar.gz` or a balanced subset of it; for Imagenette (which needs Pillow, the extra `images`)
    a folder or archive with `train/<synset>/*.JPEG` and `val/<synset>/*.JPEG`.

    Parameters
    ----------
    name
        One of the three.
    size
        Only for Imagenette: height and width of the images in pixels; None means 128.

    Examples
    --------
    >>> from askwise.datasets import load_images
    >>> load_images("mnist").images.shape  # doctest: +SKIP
    >>> load_images("minst")
    Traceback (most recent call last):
        ...
    askwise.errors.InvalidInput: load_images: name must be one of cifar10, imagenette, mnist; got 'minst'.
    """
    if not isinstance(name, str) or name not in _LOADERS:
        raise InvalidInput(f"load_images: name must be one of {', '.join(_LOADERS)}; got {name!r}.")
    if name != "imagenette" and size is not None:
        raise InvalidInput(f"load_images: size is an option of imagenette only; leave it out for {name}.")
    return _LOADERS[name]() if size is None else _load_imagenette(size)


def _load_mnist() -> ImageDataset:
    parts = {part: read_idx(fetch(file)) for part, file in MNIST.items()}
    digits = tuple(map(str, range(10)))
    return _from_parts(
        "mnist", {**parts, **{k: parts[k][:, None] for k in ("x_train", "x_test")}}, digits, MNIST_DESCRIPTION
    )


def _load_cifar10() -> ImageDataset:
    home = data_home()
    folder, archive = (home / CIFAR10_BATCHES["test_batch"].path).parent, home / CIFAR10_ARCHIVE.path
    if (home / CIFAR10_NPZ.path).exists() and not folder.exists() and not archive.exists():
        with np.load(io.BytesIO(fetch(CIFAR10_NPZ))) as stored:
            parts = {part: stored[part] for part in ("x_train", "y_train", "x_test", "y_test")}
        parts |= {part: parts[part].transpose(0, 3, 1, 2) for part in ("x_train", "x_test")}
        return _from_parts("cifar10", parts, CIFAR10_CLASSES, CIFAR10_DESCRIPTION, subset=CIFAR10_SUBSET)
    if folder.exists():
        contents = {name: fetch(file) for name, file in CIFAR10_BATCHES.items()}
    else:
        contents = {PurePosixPath(path).name: content for path, content in _tar_members(fetch(CIFAR10_ARCHIVE)).items()}
    *train, test = (read_batch(contents[name]) for name in CIFAR10_BATCHES)
    images, labels = (np.concatenate(part) for part in zip(*train, strict=True))
    parts = {"x_train": images, "y_train": labels, "x_test": test[0], "y_test": test[1]}
    return _from_parts("cifar10", parts, CIFAR10_CLASSES, CIFAR10_DESCRIPTION, subset="")


def _from_parts(
    name: str, parts: Mapping[str, np.ndarray], classes: tuple[str, ...], description: str, **facts: Any
) -> ImageDataset:
    y, test_y = parts["y_train"].astype(int), parts["y_test"].astype(int)
    said = description.format(train=len(y), test=len(test_y), **facts)
    return ImageDataset(
        name, np.ascontiguousarray(parts["x_train"]), y, np.ascontiguousarray(parts["x_test"]), test_y, classes, said
    )


def _load_imagenette(size: int = IMAGENETTE_SIZE) -> ImageDataset:
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
        raise InvalidInput(f"load_images: size must be a whole number of at least 1; got {size!r}.")
    where, files = _imagenette_files()
    (images, y), (test_images, test_y) = (_imagenette_split(where, files, split, size) for split in ("train", "val"))
    said = IMAGENETTE_DESCRIPTION.format(train=len(y), test=len(test_y), size=size)
    return ImageDataset("imagenette", images, y, test_images, test_y, tuple(IMAGENETTE_CLASSES.values()), said)


def _imagenette_files() -> tuple[Path, dict[str, bytes | Path]]:
    """Where the images are, and the files as `split/synset/name` -> the encoded image, or where to read it."""
    home = data_home()
    folder = (home / IMAGENETTE_ARCHIVE.path).parent
    if all((home / file.path).exists() for file in IMAGENETTE_ZIPS):
        return folder, {
            path: content for file in IMAGENETTE_ZIPS for path, content in _zip_members(fetch(file)).items()
        }
    for unpacked in (folder, *sorted(folder.glob("*/"))):
        if (unpacked / "train").is_dir() and (unpacked / "val").is_dir():
            found = (path for split in ("train", "val") for path in sorted((unpacked / split).glob("*/*")))
            return unpacked, {path.relative_to(unpacked).as_posix(): path for path in found}
    members = _tar_members(fetch(IMAGENETTE_ARCHIVE))
    return home / IMAGENETTE_ARCHIVE.path, {path.partition("/")[2]: content for path, content in members.items()}


def _imagenette_split(
    where: Path, files: Mapping[str, bytes | Path], split: str, size: int
) -> tuple[EncodedImages, np.ndarray]:
    names, labels = [], []
    for label, (synset, class_name) in enumerate(IMAGENETTE_CLASSES.items()):
        own = sorted(path for path in files if path.startswith(f"{split}/{synset}/") and path.endswith(".JPEG"))
        if not own:
            raise AskwiseError(
                f"datasets: {where} has no images in the class folder {split}/{synset} ({class_name}). Replace it by a "
                "complete copy, or delete it, and the next call downloads Imagenette."
            )
        names += own
        labels += [label] * len(own)
    return EncodedImages([files[path] for path in names], names, size), np.array(labels)


def _zip_members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {path: archive.read(path) for path in archive.namelist() if not path.endswith("/")}


def _tar_members(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}  # type: ignore[union-attr]


_LOADERS: dict[str, Callable[[], ImageDataset]] = {
    "cifar10": _load_cifar10,
    "imagenette": _load_imagenette,
    "mnist": _load_mnist,
}
