"""The schema of a table: its columns, their kinds, and the features (columns or groups) that can be acquired.

Below this module everything is numeric: a `Schema` turns a DataFrame into an array (NaN = not observed) and
completed arrays back into exactly the kind of table that the wrapped model was trained on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from askwise.errors import InvalidInput, did_you_mean
from askwise.table.columns import LARGEST_EXACT_INTEGER, Column, cast, is_missing, read_column
from askwise.table.rows import EncodedRows

if TYPE_CHECKING:
    from askwise.table.constraints import HouseRules


class Schema:
    """The columns of a table and the features made of them.

    A feature is what can be acquired at one price: a column, or a group of columns. Features are in the order of
    their first columns. Masks per feature are (n, M), masks per column (n, D).
    """

    tabular = True
    """Whether rows are those of a table; images are not (`askwise.vision`)."""

    rows_per_call = 65_536
    """Maximum number of rows per call of the model."""

    rules: HouseRules | None = None
    """Which features may be asked when (`askwise.constraints`); None = any, at any time."""

    def __init__(
        self, columns: Sequence[Column], framed: bool, groups: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        self.columns = list(columns)
        self.framed = framed
        self.is_category = np.array([column.is_category for column in self.columns])
        self.features, self.feature_columns = _features(self.columns, groups or {})
        self._alike = _alike(self.columns)
        self._typed = [alike for alike in self._alike if self.columns[alike[0]].dtype != np.float64]
        self.owner = np.empty(len(self.columns), dtype=int)
        for i, columns_of_feature in enumerate(self.feature_columns):
            self.owner[columns_of_feature] = i

    def encode(self, X: Any) -> EncodedRows:
        """A table with the columns of the training table -> numbers, NaN = not observed."""
        table = as_table(X)
        framed = isinstance(table, pd.DataFrame)
        if not framed and self.is_category.any():
            raise InvalidInput(
                "X must be a DataFrame with the columns of fit, because some of them are categories; got an array."
            )
        if framed and self.framed and list(table.columns) != [column.label for column in self.columns]:
            raise InvalidInput(_column_difference([column.label for column in self.columns], list(table.columns)))
        if table.shape[1] != len(self.columns):
            raise InvalidInput(f"X must have {len(self.columns)} columns, as in fit; got {table.shape[1]}.")
        if not framed:
            return EncodedRows(table.astype(float))
        if not len(table):
            return EncodedRows(np.empty((0, len(self.columns))))
        cells, unseen = zip(*(c.encode(table.iloc[:, j]) for j, c in enumerate(self.columns)), strict=True)
        return EncodedRows(np.column_stack(cells), {j: new for j, new in enumerate(unseen) if new})

    def decode(
        self,
        rows: EncodedRows,
        columns: Iterable[int] | None = None,
        framed: bool | None = None,
        typed: bool | None = None,
    ) -> Any:
        """Encoded rows -> the table the wrapped model takes, or some columns of it.

        Numbers have the dtypes of the training table if all rows fit them (see `castable`), else they all are floats;
        `typed` says so where it is known already.
        """
        picked = list(range(len(self.columns)) if columns is None else columns)
        typed = bool(self.castable(rows.values, picked).all()) if typed is None else typed
        if not (self.framed if framed is None else framed):
            cells = rows.values if columns is None else rows.values[:, picked]
            return cast(cells, self.columns[0].dtype) if typed and not self.framed else cells
        one_dtype = len(self._alike) == 1 and isinstance(self.columns[0].dtype, np.dtype)
        if not self.is_category.any() and (one_dtype or not typed):  # one block, as of a dict of columns
            cells = np.array(rows.values[:, picked], order="F")
            cells = cells.astype(self.columns[0].dtype, copy=False) if typed else cells
            return pd.DataFrame(cells, columns=[self.columns[j].label for j in picked], copy=False)
        cells_of = {j: self.columns[j].decode(rows.values[:, j], rows.unseen.get(j, ()), typed) for j in picked}
        return pd.DataFrame({self.columns[j].label: cells for j, cells in cells_of.items()})

    def castable(self, values: np.ndarray, columns: Collection[int] | None = None) -> np.ndarray:
        """(n,) rows whose cells, in all or some columns, fit the dtypes of the training table."""
        fits = np.ones(len(values), dtype=bool)
        for alike in self._typed:
            at = alike if columns is None else alike[np.isin(alike, list(columns))]
            if len(at) and (found := self.columns[at[0]].castable(values[:, at])) is not True:
                fits &= np.all(found, axis=1)
        return fits

    def expand(self, feature_mask: np.ndarray) -> np.ndarray:
        """Mask per feature (n, M) -> mask per column (n, D)."""
        return feature_mask[:, self.owner]

    def any_column(self, column_mask: np.ndarray) -> np.ndarray:
        """Mask per column (n, D) -> per feature (n, M): whether any column of the feature is set."""
        if len(self.features) == len(self.columns):  # each column is a feature
            return column_mask.copy()
        out = np.zeros((len(column_mask), len(self.features)), dtype=bool)
        for i, columns in enumerate(self.feature_columns):
            out[:, i] = column_mask[:, columns].any(axis=1)
        return out

    def position(self, feature: Any, owner: str = "feature") -> int:
        """Index of a feature by its name."""
        if feature not in self.features:
            names = [getattr(column, "name", np.nan) for column in self.columns]  # pixels have none
            group = next((i for i, of in enumerate(self.feature_columns) if feature in [names[j] for j in of]), None)
            hint = did_you_mean(feature, self.features)
            if group is not None:
                hint = f" It is a column of {self.features[group]!r}, which is answered by a dict of its columns."
            raise InvalidInput(
                f"{owner}: there is no feature {feature!r}.{hint} The features are: {', '.join(self.features)}."
            )
        return self.features.index(feature)

    def encode_feature(self, i: int, value: Any) -> np.ndarray:
        """An answer for feature `i` -> the encoded cells of its columns; a group takes a dict of columns."""
        columns = [self.columns[j] for j in self.feature_columns[i]]
        if len(columns) == 1 and not isinstance(value, Mapping):
            return np.array([columns[0].encode_answer(value)])
        names = [column.name for column in columns]
        if not isinstance(value, Mapping) or not value or not set(map(str, value)) <= set(names):
            raise InvalidInput(
                f"The answer for {self.features[i]!r} must be a dict with columns out of {names}; got {value!r}."
            )
        given = {str(name): cell for name, cell in value.items() if not is_missing(cell)}
        if not given:
            feature = self.features[i]
            raise InvalidInput(
                f"The answer for {feature!r} is missing. If it is unavailable, call unavailable({feature!r})."
            )
        return np.array(
            [column.encode_answer(given[column.name]) if column.name in given else np.nan for column in columns]
        )

    def show_feature(self, i: int, row: np.ndarray) -> Any:
        """The value of feature `i` in an encoded row, JSON-ready; a dict for a group."""
        shown = {self.columns[j].name: self.columns[j].show(row[j]) for j in self.feature_columns[i]}
        return shown if len(shown) > 1 else next(iter(shown.values()))


class Grouping(Protocol):
    """Alternative to a dict as `groups`: it reads training rows that are not a table, such as images."""

    def read(self, X: Any) -> tuple[Schema, EncodedRows]:
        """The schema of the rows, and the rows encoded by it."""
        ...


Groups = Mapping[str, Sequence[Any]] | Grouping | None


def read_table(X: Any, groups: Groups = None) -> tuple[Schema, EncodedRows]:
    """The schema of training rows, with `groups` of columns as features, and the rows encoded by it."""
    if groups is not None and not isinstance(groups, Mapping) and hasattr(groups, "read"):
        return groups.read(X)
    table = as_table(X)
    if not isinstance(table, pd.DataFrame):
        columns = [Column(f"x{j}", table.dtype) for j in range(table.shape[1])]
    else:
        columns = _columns(table)
    schema = Schema(columns, isinstance(table, pd.DataFrame), groups)  # type: ignore[arg-type]  # checked inside
    rows = schema.encode(table)
    for j in np.flatnonzero(~rows.observed.any(axis=0)):
        raise InvalidInput(
            f"Column {columns[j].name!r} of X has no value in any row, so nothing can be learned about it. Drop it "
            "(and wrap a model that does not use it)."
        )
    return schema, rows


def _alike(columns: Sequence[Column]) -> list[np.ndarray]:
    """The positions of columns that hold the same cells: numbers of one dtype, or equally many categories."""
    found: dict[Any, list[int]] = {}
    for j, column in enumerate(columns):
        found.setdefault((str(column.dtype), None if column.values is None else len(column.values)), []).append(j)
    return [np.array(positions) for positions in found.values()]


def _columns(table: pd.DataFrame) -> list[Column]:
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise InvalidInput(f"X has two columns named {repeated[0]!r}; column names must differ.")
    if not table.shape[1]:
        raise InvalidInput("X has 0 feature(s) (columns) while a minimum of 1 is required.")
    columns = [read_column(label, table[label]) for label in table.columns]
    alike = pd.Index([column.name for column in columns])
    if alike.has_duplicates:
        raise InvalidInput(f"X has two columns that read {alike[alike.duplicated()][0]!r}; rename one of them.")
    return columns


def as_table(X: Any) -> Any:
    """`X` as a DataFrame, or as a checked two-dimensional array of numbers; NaN allowed."""
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "get_columns") and hasattr(X, "to_dict"):  # polars, whose own conversion needs pyarrow
        return pd.DataFrame(X.to_dict(as_series=False))
    if issparse(X):
        raise InvalidInput("X is a sparse matrix, and rows must be dense here; pass X.toarray() or a DataFrame.")
    if isinstance(X, np.ma.MaskedArray):
        _refuse_inexact(X.compressed())
        X = np.ma.filled(X.astype(float), np.nan)
    try:
        array = np.asarray(check_array(X, ensure_all_finite="allow-nan", input_name="X"))
    except ValueError as error:
        if "could not convert string" in str(error) or "bytes/strings" in str(error):
            raise InvalidInput(
                f"X is an array with text in it ({error}); pass text and categories in a DataFrame."
            ) from None
        raise
    _refuse_inexact(array)
    return array


def _refuse_inexact(array: np.ndarray) -> None:
    if array.dtype.kind in "iu" and array.size and max(-int(array.min()), int(array.max())) > LARGEST_EXACT_INTEGER:
        raise InvalidInput("X holds whole numbers beyond 2**53, which lose digits when treated as measurements.")


def _features(columns: Sequence[Column], groups: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[np.ndarray]]:
    labels = [column.label for column in columns]
    names = [column.name for column in columns]
    if not isinstance(groups, Mapping) or len({str(group) for group in groups}) < len(groups):
        raise InvalidInput(f"groups must be a dict {{feature name: [columns]}} with different names; got {groups!r}.")
    owner: dict[int, str] = {}
    columns_of: dict[str, list[int]] = {}
    for group, listed in groups.items():
        if isinstance(listed, str) or not isinstance(listed, Collection) or not len(listed):
            raise InvalidInput(f"groups[{group!r}] must list one or more columns by name or position; got {listed!r}.")
        for column in listed:
            if column in labels or column in names:
                j = labels.index(column) if column in labels else names.index(column)
            elif isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < len(columns):
                j = int(column)
            else:
                raise InvalidInput(f"groups[{group!r}] names the column {column!r}, which X does not have.")
            if j in owner:
                raise InvalidInput(
                    f"groups: the column {names[j]!r} is in {owner[j]!r} and in {group!r}; remove it from one of them."
                )
            owner[j] = str(group)
            columns_of.setdefault(str(group), []).append(j)
    for j, name in enumerate(names):
        if j not in owner:
            if name in columns_of:
                raise InvalidInput(
                    f"groups: {name!r} is the name of a group and of a column outside it; rename the group."
                )
            columns_of[name] = [j]
    ordered = sorted(columns_of, key=lambda feature: min(columns_of[feature]))
    return ordered, [np.array(sorted(columns_of[feature])) for feature in ordered]


def _column_difference(expected: list[Any], got: list[Any]) -> str:
    missing = [label for label in expected if label not in got]
    extra = [label for label in got if label not in expected]
    if not missing and not extra:
        return f"X must have its columns in the order of fit, {expected}; got {got}."
    return f"X must have the columns of fit. Missing: {missing or 'none'}; unexpected: {extra or 'none'}."
