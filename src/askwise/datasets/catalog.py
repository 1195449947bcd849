"""Real data sets by name; heart, and those that come with scikit-learn, are available offline."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sklearn import datasets as sklearn_datasets

from askwise.datasets import uci
from askwise.datasets.dataset import Dataset
from askwise.errors import InvalidInput

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


_LOADERS: dict[str, Callable[..., Dataset]] = {
    "breast_cancer": load_breast_cancer,
    "bupa": uci.load_bupa,
    "cirrhosis": uci.load_cirrhosis,
    "diabetes130": uci.load_diabetes130,
    "digits": load_digits,
    "heart": uci.load_heart,
    "hepatitis": uci.load_hepatitis,
    "wine": load_wine,
    "yeast": uci.load_yeast,
}


def names() -> list[str]:
    """The names that `load` accepts, in alphabetical order.

    Examples
    --------
    >>> names()[:3]
    ['breast_cancer', 'bupa', 'cirrhosis']
    """
    return sorted(_LOADERS)


def load(name: str, **options: Any) -> Dataset:
    """A real data set by name.

    `breast_cancer`, `digits` and `wine` come with scikit-learn, `heart` with askwise. The others are kept in the
    data home, a folder named by the environment variable ASKWISE_DATA (by default `askwise` in the user's cache
    folder), are downloaded from the UCI repository when they are first asked for, and are verified on every load.

    Parameters
    ----------
    name
        One of `names()`.
    options
        For `diabetes130` only: ``target="readmitted"`` (at any time later, the default) or
        ``"within_30_days"``.

    Raises
    ------
    InvalidInput
        For an unknown name or option.
    AskwiseError
        If a file can be neither found nor downloaded, or has the wrong checksum.

    Examples
    --------
    >>> cancer = load("breast_cancer")
    >>> cancer
    Dataset('breast_cancer': 569 rows, 10 features (30 columns), 2 classes, no missing cells)
    >>> cancer.groups["radius"]
    ['mean radius', 'radius error', 'worst radius']
    """
    if not isinstance(name, str):
        raise InvalidInput(f"load: name must be a string, one of {', '.join(names())}; got {name!r}.")
    loader = _LOADERS.get(name)
    if loader is None:
        raise InvalidInput(f"load: there is no data set {name!r}. The data sets are: {', '.join(names())}.")
    known = list(inspect.signature(loader).parameters)
    for option in options:
        if option not in known:
            what = f"its options are: {', '.join(known)}" if known else "it has no options"
            raise InvalidInput(f"load: {name!r} has no option {option!r}; {what}.")
    return loader(**options)
