"""The form of every data set, and its rows split into those to train on and those to test on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from askwise.table.prices import Prices


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table with its labels, and what is known about acquiring its features.

    Attributes
    ----------
    name
        The name that `load` knows it by.
    X
        One row per case. A missing cell (NaN or None) is unavailable: it cannot be acquired.
    y
        The label of each row, (n,).
    prices
        Published prices, ready for ``costs=`` of a selector; None if there are none.
    groups
        ``{feature: [columns]}`` where several columns are acquired together; None where each column is a
        feature.
    description
        Where the table comes from, what the label means, and known pitfalls.
    row_groups
        A number per row, (n,), equal for rows that belong together (one patient's visits, say) and must not
        be split between training and test; None where rows are independent.

    Examples
    --------
    >>> from askwise.datasets import load
    >>> load("wine")
    Dataset('wine': 178 rows, 13 features, 3 classes, no missing cells)
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    prices: Prices | None
    groups: dict[str, list[str]] | None
    description: str
    row_groups: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        """What can be acquired: columns, or groups of columns."""
        groups = self.groups or {}
        return len(groups) + self.X.shape[1] - sum(map(len, groups.values()))

    def __repr__(self) -> str:
        columns, missing = self.X.shape[1], int(self.X.isna().to_numpy().sum())
        facts = [
            f"{len(self.X):,} rows",
            f"{self.n_features} features{'' if self.groups is None else f' ({columns} columns)'}",
            f"{len(np.unique(self.y))} classes",
            f"{f'{missing:,}' if missing else 'no'} missing cell{'' if missing == 1 else 's'}",
        ]
        if self.prices is not None:
            facts.append("with prices")
        if self.row_groups is not None:
            facts.append(f"in {len(np.unique(self.row_groups)):,} row groups")
        return f"{type(self).__name__}({self.name!r}: {', '.join(facts)})"


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
