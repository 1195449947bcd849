"""What can be asked: the columns of a table, their kinds, and the features (columns or groups) that are bought.

Below this module everything is numeric: a `Schema` turns a DataFrame into an array (NaN = not observed) and
completed arrays back into exactly the kind of table that the wrapped model was trained on.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import extensions, types
from sklearn.utils.validation import check_array

from askwise.errors import InvalidInput


@dataclass
class Column:
    """One column: a number, or a category (text, boolean, pandas category) held as a code.

    `values` lists the categories seen in training and then, as they turn up, those seen later in a batch: these
    are passed on to the wrapped model, which may or may not take them.
    """

    label: Any
    dtype: Any
    values: list[Any] | None = None
    n_known: int = 0
    codes: dict[Any, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.values is not None:
            self.n_known = self.n_known or len(self.values)
            self.codes = {value: code for code, value in enumerate(self.values)}

    @property
    def name(self) -> str:
        return str(self.label)

    @property
    def is_category(self) -> bool:
        return self.values is not None

    @property
    def known(self) -> list[Any]:
        """The categories of the training table."""
        return (self.values or [])[: self.n_known]

    def encode(self, series: pd.Series) -> np.ndarray:
        """Numbers as they are, categories as codes, missing as NaN."""
        if self.values is None:
            return _numbers(series, self.name)
        missing = series.isna().to_numpy(dtype=bool)
        distinct = {value: self._code(value) for value in pd.unique(series[~missing])}
        return series.map(distinct).to_numpy(dtype=float, na_value=np.nan)

    def decode(self, encoded: np.ndarray) -> Any:
        """The inverse of `encode`, in the dtype of the training table wherever the cells allow it."""
        if self.values is None:
            if types.is_integer_dtype(self.dtype) and not np.all(np.mod(encoded, 1) == 0):
                return encoded  # an imputed mean or a missing cell: no integer says it
            return encoded.astype(self.dtype) if isinstance(self.dtype, np.dtype) else pd.array(encoded, self.dtype)
        codes = np.where(np.isnan(encoded), -1, encoded).astype(int)
        if isinstance(self.dtype, pd.CategoricalDtype):
            return pd.Categorical.from_codes(codes, categories=self.values, ordered=self.dtype.ordered)
        table = pd.Series(self.values, dtype=self.dtype).array
        return extensions.take(table, codes, allow_fill=True)

    def encode_answer(self, value: Any) -> float:
        """One value given by a person; unlike in a batch, a category never seen is refused."""
        if value is None or (isinstance(value, float) and np.isnan(value)) or value is pd.NA:
            raise InvalidInput(
                f"The answer for {self.name!r} is missing. If it cannot be had, call unavailable({self.name!r})."
            )
        if self.values is not None:
            try:
                code = self.codes.get(value)
            except TypeError:  # unhashable
                code = None
            if code is None or code >= self.n_known:
                raise InvalidInput(f"The answer for {self.name!r} must be one of {self.known!r}; got {value!r}.")
            return float(code)
        if isinstance(value, str | bytes | bool | np.bool_) or not isinstance(value, numbers.Real):
            raise InvalidInput(f"The answer for {self.name!r} must be a number; got {value!r}.")
        if not np.isfinite(value):
            raise InvalidInput(f"The answer for {self.name!r} must be a finite number; got {value!r}.")
        return float(value)

    def parse_answer(self, text: str) -> float:
        """One value typed by a person."""
        if self.values is not None:
            spelled = {str(value): value for value in self.known}
            return self.encode_answer(spelled.get(text, text))
        try:
            return self.encode_answer(float(text))
        except ValueError as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"The answer for {self.name!r} must be a number; got {text!r}.") from None

    def show(self, code: float) -> Any:
        """A cell as a person or JSON would have it: str, bool, int or float; None where missing."""
        if np.isnan(code):
            return None
        if self.values is not None:
            value = self.values[int(code)]
            return (
                value.item()
                if isinstance(value, np.generic)
                else value
                if isinstance(value, str | bool | int | float)
                else str(value)
            )
        return int(code) if types.is_integer_dtype(self.dtype) and code == int(code) else float(code)

    def _code(self, value: Any) -> int:
        assert self.values is not None
        if value not in self.codes:
            self.codes[value] = len(self.values)
            self.values.append(value)
        return self.codes[value]


class Schema:
    """The columns of a table and the features made of them.

    A feature is what can be asked for at one price: a column, or a group of columns. Features stand in the order
    of their first columns. Masks per feature are (n, M), masks per column (n, D).
    """

    def __init__(
        self, columns: Sequence[Column], framed: bool, groups: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        self.columns = list(columns)
        self.framed = framed
        self.features, self.members = _features(self.columns, groups or {})
        self.owner = np.empty(len(self.columns), dtype=int)
        for i, members in enumerate(self.members):
            self.owner[members] = i

    @classmethod
    def read(cls, X: Any) -> Schema:
        """Read kinds and categories off a training table."""
        if not isinstance(X, pd.DataFrame):
            array = _as_array(X)
            columns = [Column(f"x{j}", array.dtype) for j in range(array.shape[1])]
        else:
            repeated = X.columns[X.columns.duplicated()]
            if len(repeated):
                raise InvalidInput(f"X has two columns named {repeated[0]!r}; column names must differ.")
            if not X.shape[1]:
                raise InvalidInput("X has 0 feature(s) (columns) while a minimum of 1 is required.")
            columns = [_read_column(label, X[label]) for label in X.columns]
        schema = cls(columns, isinstance(X, pd.DataFrame))
        empty = np.isnan(schema.encode(X)).all(axis=0)
        for j in np.flatnonzero(empty):
            raise InvalidInput(
                f"Column {columns[j].name!r} of X has no value in any row, so nothing can be learnt about it. Drop it "
                "(and wrap a model that does without it)."
            )
        return schema

    def grouped(self, groups: Mapping[str, Sequence[Any]] | None) -> Schema:
        """The same columns (shared, not copied) with `groups` of them as features."""
        return Schema(self.columns, self.framed, groups)

    @property
    def is_category(self) -> np.ndarray:
        return np.array([column.is_category for column in self.columns])

    def encode(self, X: Any) -> np.ndarray:
        """Table -> (n, D) floats, NaN = not observed. An array of numbers is taken as encoded already."""
        if not isinstance(X, pd.DataFrame):
            array = _as_array(X).astype(float)
            if array.shape[1] != len(self.columns):
                raise InvalidInput(f"X must have {len(self.columns)} columns, as in fit; got {array.shape[1]}.")
            return array
        if self.framed and list(X.columns) != [column.label for column in self.columns]:
            raise InvalidInput(_column_difference([column.label for column in self.columns], list(X.columns)))
        if X.shape[1] != len(self.columns):
            raise InvalidInput(f"X must have {len(self.columns)} columns, as in fit; got {X.shape[1]}.")
        cells = [column.encode(X.iloc[:, j]) for j, column in enumerate(self.columns)]
        return np.column_stack(cells) if len(X) else np.empty((0, len(self.columns)))

    def decode(self, values: np.ndarray, columns: Iterable[int] | None = None, framed: bool | None = None) -> Any:
        """(n, D) floats -> the table the wrapped model takes, or some columns of it."""
        picked = range(len(self.columns)) if columns is None else list(columns)
        if not (self.framed if framed is None else framed):
            return values[:, list(picked)].astype(self.columns[0].dtype if not self.framed else float)
        return pd.DataFrame({self.columns[j].label: self.columns[j].decode(values[:, j]) for j in picked})

    def expand(self, feature_mask: np.ndarray) -> np.ndarray:
        """Mask per feature (n, M) -> mask per column (n, D)."""
        return feature_mask[:, self.owner]

    def any_column(self, column_mask: np.ndarray) -> np.ndarray:
        """Mask per column (n, D) -> per feature (n, M): whether any column of the feature is set."""
        out = np.zeros((len(column_mask), len(self.features)), dtype=bool)
        for i, members in enumerate(self.members):
            out[:, i] = column_mask[:, members].any(axis=1)
        return out

    def position(self, feature: Any, owner: str = "feature") -> int:
        """Index of a feature by its name."""
        if feature not in self.features:
            raise InvalidInput(
                f"{owner}: there is no feature {feature!r}. The features are: {', '.join(self.features)}."
            )
        return self.features.index(feature)

    def encode_feature(self, i: int, value: Any) -> np.ndarray:
        """An answer for feature `i` -> the encoded cells of its columns; a group takes a dict of columns."""
        members = [self.columns[j] for j in self.members[i]]
        if len(members) == 1 and not isinstance(value, Mapping):
            return np.array([members[0].encode_answer(value)])
        names = [column.name for column in members]
        if not isinstance(value, Mapping) or not value or not set(map(str, value)) <= set(names):
            raise InvalidInput(
                f"The answer for {self.features[i]!r} must be a dict with one or more of the columns {names}; got {value!r}."
            )
        given = {str(name): cell for name, cell in value.items()}
        return np.array(
            [column.encode_answer(given[column.name]) if column.name in given else np.nan for column in members]
        )

    def show_feature(self, i: int, row: np.ndarray) -> Any:
        """The value of feature `i` in an encoded row, JSON-ready; a dict for a group."""
        shown = {self.columns[j].name: self.columns[j].show(row[j]) for j in self.members[i]}
        return shown if len(shown) > 1 else next(iter(shown.values()))


def _as_array(X: Any) -> np.ndarray:
    try:
        return np.asarray(check_array(X, ensure_all_finite="allow-nan", input_name="X"))
    except ValueError as error:
        if "could not convert string" in str(error):
            raise InvalidInput(
                f"X is an array with text in it ({error}); pass text and categories in a DataFrame."
            ) from None
        raise


def _read_column(label: Any, series: pd.Series) -> Column:
    dtype = series.dtype
    name = str(label)
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype) or types.is_timedelta64_dtype(dtype):
        raise InvalidInput(
            f"Column {name!r} holds dates or times ({dtype}); turn it into a number first, such as days since a date."
        )
    if types.is_complex_dtype(dtype):
        raise InvalidInput(f"Complex data not supported: column {name!r}.")
    if isinstance(dtype, pd.CategoricalDtype):
        return Column(label, dtype, list(dtype.categories))
    if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype):
        return Column(label, dtype)
    present = series.dropna()
    texts = present.map(lambda value: isinstance(value, str | bool | np.bool_)).to_numpy(dtype=bool)
    if texts.all():
        return Column(label, dtype, sorted(present.unique().tolist(), key=lambda value: (str(type(value)), value)))
    other = present[~texts].iloc[0]
    if not texts.any() and isinstance(other, numbers.Real):
        _numbers(series, name)
        return Column(label, np.dtype(float))
    raise InvalidInput(
        f"Column {name!r} of type {dtype} holds {other!r} ({type(other).__name__})"
        f"{' beside text' if texts.any() else ''}; a column must hold numbers, text, booleans or a pandas category."
    )


def _numbers(series: pd.Series, name: str) -> np.ndarray:
    try:
        if types.is_bool_dtype(series.dtype) or isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(float)
        values = np.asarray(series.to_numpy(dtype=float, na_value=np.nan))
    except (TypeError, ValueError):
        bad = [value for value in series.dropna() if not isinstance(value, numbers.Real)]
        raise InvalidInput(f"Column {name!r} must hold numbers; got {bad[0] if bad else series.dtype!r}.") from None
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise InvalidInput(f"Column {name!r} holds an infinite value (row {row}); use NaN for what is not known.")
    return values


def _features(columns: Sequence[Column], groups: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[np.ndarray]]:
    labels = [column.label for column in columns]
    names = [column.name for column in columns]
    owner: dict[int, str] = {}
    members: dict[str, list[int]] = {}
    for group, listed in groups.items():
        if isinstance(listed, str) or not isinstance(listed, Iterable) or not list(listed):
            raise InvalidInput(f"groups[{group!r}] must list one or more columns by name or position; got {listed!r}.")
        for column in listed:
            if column in labels or column in names:
                j = labels.index(column) if column in labels else names.index(column)
            elif isinstance(column, int | np.integer) and 0 <= column < len(columns):
                j = int(column)
            else:
                raise InvalidInput(f"groups[{group!r}] names the column {column!r}, which X does not have.")
            if j in owner:
                raise InvalidInput(
                    f"groups: the column {names[j]!r} stands in {owner[j]!r} and in {group!r}; it can be bought once only."
                )
            owner[j] = str(group)
            members.setdefault(str(group), []).append(j)
    for j, name in enumerate(names):
        if j not in owner:
            if name in members:
                raise InvalidInput(
                    f"groups: {name!r} is the name of a group and of a column outside it; rename the group."
                )
            members[name] = [j]
    ordered = sorted(members, key=lambda feature: min(members[feature]))
    return ordered, [np.array(sorted(members[feature])) for feature in ordered]


def _column_difference(expected: list[Any], got: list[Any]) -> str:
    missing = [label for label in expected if label not in got]
    extra = [label for label in got if label not in expected]
    if not missing and not extra:
        return f"X must have its columns in the order of fit, {expected}; got {got}."
    return f"X must have the columns of fit. Missing: {missing or 'none'}; unexpected: {extra or 'none'}."
