"""The tables that come with scikit-learn, available offline."""

from __future__ import annotations

from sklearn import datasets as sklearn_datasets

from askwise.datasets.dataset import Dataset

WINE = """Chemical analysis of 178 Italian wines of three cultivars. Aeberhard and Forina (1991), UCI 109, as
scikit-learn ships it. Labels 0, 1, 2: the cultivar."""

BREAST_CANCER = """Breast cancer Wisconsin (diagnostic): 569 images of cell nuclei. Wolberg, Mangasarian,
Street and Street (1995), UCI 17, as scikit-learn ships it. Each of ten properties of a nucleus is one feature
of three columns: its mean over the image, the standard error of that, and the mean of the three worst.
Labels: benign, malignant."""

DIGITS = """Handwritten digits, 8 x 8 pixels of 0 to 16, one feature per pixel. Alpaydin and Kaynak (1998),
UCI 80 (test part), as scikit-learn ships it. Labels: 0 to 9."""


def load_wine() -> Dataset:
    """Wine: 178 rows, 13 features, 3 classes."""
    bunch = sklearn_datasets.load_wine(as_frame=True)
    return Dataset("wine", bunch.data, bunch.target.to_numpy(), None, None, WINE)


def load_breast_cancer() -> Dataset:
    """Breast cancer: 569 rows, 10 features of 3 columns each, 2 classes."""
    bunch = sklearn_datasets.load_breast_cancer(as_frame=True)
    properties = [name.removeprefix("mean ") for name in bunch.data.columns if name.startswith("mean ")]
    groups = {name: [f"mean {name}", f"{name} error", f"worst {name}"] for name in properties}
    labels = bunch.target_names[bunch.target.to_numpy()]
    return Dataset("breast_cancer", bunch.data, labels, None, groups, BREAST_CANCER)


def load_digits() -> Dataset:
    """Digits: 1,797 rows, 64 pixels, 10 classes."""
    bunch = sklearn_datasets.load_digits(as_frame=True)
    return Dataset("digits", bunch.data, bunch.target.to_numpy(), None, None, DIGITS)
