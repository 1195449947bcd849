"""Images: tiny files in each layout, damaged ones, and the real ones where the data home has them."""

from __future__ import annotations

import dataclasses
import gzip
import io
import pickle
import struct
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from askwise.datasets import images, load_images
from askwise.datasets.home import checksum, data_home
from askwise.errors import AskwiseError, InvalidInput

RNG = np.random.default_rng(0)
SYNSETS = list(images.IMAGENETTE_CLASSES)


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    return tmp_path


def put(home, file, content, md5=False):
    """Write a file of the data home; returns its entry with the checksum of this content."""
    target = home / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return dataclasses.replace(file, digest=checksum(content, "md5" if md5 else "sha256"))


def idx(array):
    return gzip.compress(
        b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    )


def jpeg(shade, size=(40, 30), mode="RGB"):
    image = pytest.importorskip("PIL.Image")
    content = io.BytesIO()
    image.new(mode, size, (shade,) * 3 if mode == "RGB" else shade).save(content, "JPEG", quality=95)
    return content.getvalue()


def imagenette_files(split, leave_out=None):
    """One image per class, the shade of which is ten times its class number, and a gray one."""
    files = {f"{split}/{s}/b.JPEG": jpeg(10 * k) for k, s in enumerate(SYNSETS) if s != leave_out}
    return {
        **files,
        f"{split}/{SYNSETS[1]}/a.JPEG": jpeg(10, mode="L"),
        f"{split}/{SYNSETS[0]}/notes.txt": b"not an image",
    }


def tiny_mnist(home, monkeypatch):
    parts = {
        "x_train": RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8),
        "y_train": np.array([3, 1, 4, 1, 5], dtype=np.uint8),
        "x_test": RNG.integers(0, 256, (2, 28, 28), dtype=np.uint8),
        "y_test": np.array([9, 2], dtype=np.uint8),
    }
    monkeypatch.setattr(images, "MNIST", {k: put(home, images.MNIST[k], idx(part)) for k, part in parts.items()})
    return parts


def cifar_batches():
    batches = {}
    for name in images.CIFAR10_BATCHES:
        rows = RNG.integers(0, 256, (3, 3072), dtype=np.uint8)
        batches[name] = {b"data": rows, b"labels": RNG.integers(0, 10, 3).tolist()}
    return batches


def check_cifar(found, batches):
    train = [batches[f"data_batch_{k}"] for k in range(1, 6)]
    assert_array_equal(found.images, np.vstack([batch[b"data"] for batch in train]).reshape(-1, 3, 32, 32))
    assert_array_equal(found.y, np.concatenate([batch[b"labels"] for batch in train]))
    assert_array_equal(found.test_images, batches["test_batch"][b"data"].reshape(-1, 3, 32, 32))
    assert found.class_names[int(found.test_y[0])] == images.CIFAR10_CLASSES[batches["test_batch"][b"labels"][0]]


def check_imagenette(found, size):
    assert found.images.shape == found.test_images.shape == (11, 3, size, size)
    assert found.y.tolist() == found.test_y.tolist() == [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    decoded = np.asarray(found.images)
    assert decoded.dtype == np.uint8
    assert_array_equal(np.abs(decoded.mean(axis=(1, 2, 3)) - 10 * found.y) < 2, True)
    assert_array_equal(found.images[3], decoded[3])
    assert_array_equal(found.images[-2:], decoded[-2:])
    assert_array_equal(found.images[found.y == 1], decoded[1:3])
    assert found.images[[]].shape == (0, 3, size, size)


def test_idx_files_are_read(home, monkeypatch):
    parts = tiny_mnist(home, monkeypatch)
    found = load_images("mnist")
    assert_array_equal(found.images, parts["x_train"][:, None])
    assert_array_equal(found.test_images, parts["x_test"][:, None])
    assert (found.y.tolist(), found.test_y.tolist()) == ([3, 1, 4, 1, 5], [9, 2])
    assert repr(found) == "ImageDataset('mnist': 5 training and 2 test images of 1 x 28 x 28, 10 classes)"


def test_a_truncated_file_is_named_with_both_checksums(home, monkeypatch):
    tiny_mnist(home, monkeypatch)
    expected, target = images.MNIST["x_train"].digest, home / images.MNIST["x_train"].path
    target.write_bytes(target.read_bytes()[:-9])
    with pytest.raises(AskwiseError) as caught:
        load_images("mnist")
    for part in (str(target), expected, checksum(target.read_bytes()), "Delete it"):
        assert part in str(caught.value)


def test_files_with_the_right_checksum_and_the_wrong_content_are_refused(home, monkeypatch):
    tiny_mnist(home, monkeypatch)
    for content, said in (
        (gzip.compress(b"PNG"), "not an idx file"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x09abc"), "9 bytes"),
    ):
        monkeypatch.setitem(images.MNIST, "y_test", put(home, images.MNIST["y_test"], content))
        with pytest.raises(AskwiseError, match=said):
            load_images("mnist")


def test_every_layout_of_cifar10(home, monkeypatch):
    batches = cifar_batches()
    stored: dict[str, Any] = {
        "x_train": RNG.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8),
        "y_train": np.arange(4, dtype=np.uint8),
        "x_test": RNG.integers(0, 256, (2, 32, 32, 3), dtype=np.uint8),
        "y_test": np.arange(2, dtype=np.uint8),
    }
    content = io.BytesIO()
    np.savez(content, **stored)
    monkeypatch.setattr(images, "CIFAR10_NPZ", put(home, images.CIFAR10_NPZ, content.getvalue()))
    found = load_images("cifar10")
    assert_array_equal(found.images, stored["x_train"].transpose(0, 3, 1, 2))
    assert (found.test_y.tolist(), "subset" in found.description) == ([0, 1], True)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, batch in batches.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            entry.size = len(pickle.dumps(batch, protocol=2))
            archive.addfile(entry, io.BytesIO(pickle.dumps(batch, protocol=2)))
    monkeypatch.setattr(images, "CIFAR10_ARCHIVE", put(home, images.CIFAR10_ARCHIVE, packed.getvalue()))
    check_cifar(load_images("cifar10"), batches)  # the whole set before the subset
    others = cifar_batches()
    files = {k: put(home, images.CIFAR10_BATCHES[k], pickle.dumps(batch), md5=True) for k, batch in others.items()}
    monkeypatch.setattr(images, "CIFAR10_BATCHES", files)
    check_cifar(load_images("cifar10"), others)
    (home / files["data_batch_3"].path).unlink()
    with pytest.raises(AskwiseError, match=r"data_batch_3 is missing"):
        load_images("cifar10")


def test_a_batch_that_would_run_code_is_refused(home, monkeypatch):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    batches = {**cifar_batches(), "data_batch_2": Evil()}
    files = {k: put(home, images.CIFAR10_BATCHES[k], pickle.dumps(batch), md5=True) for k, batch in batches.items()}
    monkeypatch.setattr(images, "CIFAR10_BATCHES", files)
    with pytest.raises(AskwiseError, match="holds arrays only"):
        load_images("cifar10")


def test_every_layout_of_imagenette(home, monkeypatch):
    folder = home / "images" / "imagenette"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, content in {**imagenette_files("train"), **imagenette_files("val")}.items():
            entry = tarfile.TarInfo(f"imagenette2-160/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    monkeypatch.setattr(images, "IMAGENETTE_ARCHIVE", put(home, images.IMAGENETTE_ARCHIVE, packed.getvalue(), md5=True))
    check_imagenette(load_images("imagenette"), 128)
    for path, content in {**imagenette_files("train"), **imagenette_files("val")}.items():
        (folder / "imagenette2" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "imagenette2" / path).write_bytes(content)
    check_imagenette(load_images("imagenette", size=16), 16)
    zips = []
    for split, file in zip(("train", "val"), images.IMAGENETTE_ZIPS, strict=True):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for path, image in imagenette_files(split).items():
                archive.writestr(path, image)
        zips.append(put(home, file, content.getvalue()))
    monkeypatch.setattr(images, "IMAGENETTE_ZIPS", tuple(zips))
    found = load_images("imagenette", size=8)
    check_imagenette(found, 8)
    check_imagenette(pickle.loads(pickle.dumps(found)), 8)


def test_what_is_wrong_in_a_folder_is_named(home):
    folder = home / "images" / "imagenette"
    for path, content in {**imagenette_files("train"), **imagenette_files("val", leave_out=SYNSETS[4])}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    with pytest.raises(AskwiseError, match=rf"no images in the class folder val/{SYNSETS[4]} \(church\)"):
        load_images("imagenette")
    (folder / "val" / SYNSETS[4]).mkdir()
    (folder / "val" / SYNSETS[4] / "b.JPEG").write_bytes(jpeg(40)[:-100])
    found = load_images("imagenette", size=8)
    assert found.test_images[0].shape == (3, 8, 8)
    with pytest.raises(AskwiseError, match=rf"{SYNSETS[4]}.b\.JPEG cannot be decoded"):
        found.test_images[found.test_y == 4]


def test_without_pillow_the_extra_is_named(home, monkeypatch):
    for split in ("train", "val"):
        for path, content in imagenette_files(split).items():
            (home / "images" / "imagenette" / path).parent.mkdir(parents=True, exist_ok=True)
            (home / "images" / "imagenette" / path).write_bytes(content)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(AskwiseError, match=r"askwise\[images\]"):
        load_images("imagenette")


def test_wrong_parameters_are_refused():
    cases: list[Any] = ["fashion", ["mnist"], None, 3]
    for name in cases:
        with pytest.raises(InvalidInput, match="name must be one of cifar10, imagenette, mnist"):
            load_images(name)
    with pytest.raises(InvalidInput, match="size is an option of imagenette only"):
        load_images("mnist", size=28)
    sizes: list[Any] = [0, -3, 2.5, "large", True]
    for size in sizes:
        with pytest.raises(InvalidInput, match="size must be a whole number"):
            load_images("imagenette", size=size)


def real(*paths: str) -> Path:
    """The data home; skips the test where it lacks one of the files."""
    folder = data_home()
    for path in paths:
        if not (folder / "images" / path).exists():
            pytest.skip(f"{path} is not in the data home {folder}")
    return folder


def test_the_real_mnist():
    real(*(file.path.removeprefix("images/") for file in images.MNIST.values()))
    found = load_images("mnist")
    assert found.images.shape == (60_000, 1, 28, 28)
    assert found.test_images.shape == (10_000, 1, 28, 28)
    assert found.y[:8].tolist() == [5, 0, 4, 1, 9, 2, 1, 3]
    assert np.bincount(found.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_the_real_cifar10():
    real("cifar10/cifar10_subset_10000_2000.npz")
    found = load_images("cifar10")
    assert found.images.shape[1:] == (3, 32, 32)
    assert len(set(np.bincount(found.y).tolist())) == len(set(np.bincount(found.test_y).tolist())) == 1
    means = np.asarray(found.images).mean(axis=(0, 2, 3)) / 255
    assert_array_equal(np.abs(means - [0.4914, 0.4822, 0.4465]) < 0.01, True)  # the published means of the channels


def test_the_real_imagenette():
    pytest.importorskip("PIL")
    real("imagenette/imagenette2-128_train.zip", "imagenette/imagenette2-128_val.zip")
    found = load_images("imagenette", size=64)
    assert (len(found.images), len(found.test_images)) == (9469, 3925)
    assert found.images[::1000].shape == (10, 3, 64, 64)
    assert found.class_names[int(found.y[-1])] == "parachute"
