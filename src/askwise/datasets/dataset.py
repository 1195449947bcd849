"""The form of every data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from askwise.prices import Prices


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
            f"{f'{missing:,}' if missing else 'no'} missing cells",
        ]
        if self.prices is not None:
            facts.append("with prices")
        if self.row_groups is not None:
            facts.append(f"in {len(np.unique(self.row_groups)):,} row groups")
        return f"{type(self).__name__}({self.name!r}: {', '.join(facts)})"
