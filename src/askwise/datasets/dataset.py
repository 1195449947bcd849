"""The form of every data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def __repr__(self) -> str:
        facts = [
            f"{len(self.X):,} rows",
            _features(self.X, self.groups),
            f"{len(np.unique(self.y))} classes",
            _missing(self.X),
        ]
        if self.prices is not None:
            facts.append("with prices")
        if self.row_groups is not None:
            facts.append(f"in {len(np.unique(self.row_groups)):,} row groups")
        return f"{type(self).__name__}({self.name!r}: {', '.join(facts)})"


def _features(X: pd.DataFrame, groups: dict[str, list[str]] | None) -> str:
    columns = X.shape[1]
    if groups is None:
        return f"{columns} features"
    features = len(groups) + columns - sum(len(members) for members in groups.values())
    return f"{features} features ({columns} columns)"


def _missing(X: pd.DataFrame) -> str:
    cells: Any = X.isna().to_numpy().sum()
    return f"{int(cells):,} missing cells" if cells else "no missing cells"
