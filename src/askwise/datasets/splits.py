"""One way to split the rows of a table into those to train on and those to test on."""

from __future__ import annotations

import numpy as np

from askwise.datasets.dataset import Dataset


def split_rows(
    dataset: Dataset,
    seed: int,
    *,
    test_share: float = 0.2,
    most_training: int | None = None,
    most_test: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train on and to test on, each in random order: by class, or by `row_groups` where rows have them.

    A class of a single row is trained on. A cut to `most_training` rows keeps a row of every class as long as there
    is room for them; test rows of a class without training rows are left out, because no model could predict it.
    """
    rng = np.random.default_rng(seed)
    y, groups = dataset.y, dataset.row_groups
    order = rng.permutation(len(y))
    if groups is None:
        testing = _share_of_each_class(y, order, test_share)
    else:
        distinct = rng.permutation(np.unique(groups))
        testing = np.isin(groups, distinct[: round(test_share * len(distinct))])
    train = _led_by_every_class(y, order[~testing[order]])[:most_training]
    test = order[testing[order]][:most_test]
    return train, test[np.isin(y[test], y[train])]


def _share_of_each_class(y: np.ndarray, order: np.ndarray, share: float) -> np.ndarray:
    """(n,) bool: the first rows of each class, in the given order."""
    chosen = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = order[y[order] == label]
        chosen[rows[: round(share * len(rows))]] = True
    return chosen


def _led_by_every_class(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    first = np.unique(y[rows], return_index=True)[1]
    return np.concatenate([rows[first], np.delete(rows, first)])
