"""Real data sets by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from askwise.datasets import embedded, uci
from askwise.datasets.dataset import Dataset
from askwise.errors import InvalidInput

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "breast_cancer": embedded.load_breast_cancer,
    "bupa": uci.load_bupa,
    "cirrhosis": uci.load_cirrhosis,
    "diabetes130": uci.load_diabetes130,
    "digits": embedded.load_digits,
    "heart": uci.load_heart,
    "hepatitis": uci.load_hepatitis,
    "wine": embedded.load_wine,
    "yeast": uci.load_yeast,
}


def names() -> list[str]:
    """The names that `load` accepts, in alphabetical order."""
    return sorted(_LOADERS)


def load(name: str, **options: Any) -> Dataset:
    """A real data set by name.

    `breast_cancer`, `digits` and `wine` come with scikit-learn. The others are kept in the data home, a
    folder named by the environment variable ASKWISE_DATA (by default `askwise` in the user's cache folder),
    are downloaded from the UCI repository when they are first asked for, and are verified on every load.

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
