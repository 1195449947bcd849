"""One column of a table: its kind, its categories, and its cells as numbers and back."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import extensions, types

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
    missing: Any = np.nan
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
        try:
            distinct = {value: self._code(value) for value in pd.unique(series[~missing])}
        except TypeError:  # unhashable
            raise InvalidInput(
                f"Column {self.name!r} must hold one of {self.known!r}; got {series.dtype} cells."
            ) from None
        return series.map(distinct).to_numpy(dtype=float, na_value=np.nan)

    def decode(self, encoded: np.ndarray) -> Any:
        """The inverse of `encode`, in the dtype of the training table wherever the cells allow it."""
        if self.values is None:
            return cast_if_exact(encoded, self.dtype)
        codes = np.where(np.isnan(encoded), -1, encoded).astype(int)
        if isinstance(self.dtype, pd.CategoricalDtype):
            seen_later = codes.max(initial=-1) >= self.n_known
            categories = pd.Index(self.values) if seen_later else self.dtype.categories
            return pd.Categorical.from_codes(codes, categories=categories, ordered=self.dtype.ordered)
        decoded = extensions.take(pd.Series(self.values, dtype=self.dtype).array, codes, allow_fill=True)
        if self.dtype == object:
            decoded[codes < 0] = self.missing
        return decoded

    def encode_answer(self, value: Any) -> float:
        """One value given by a person; unlike in a batch, a category never seen is refused."""
        if is_missing(value):
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
        try:
            finite = bool(np.isfinite(float(value)))
        except OverflowError:
            finite = False
        if not finite:
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


def cast_if_exact(cells: np.ndarray, dtype: Any) -> Any:
    """Cells in `dtype` where it can say them all; as they are where it cannot (a mean of integers, a large number)."""
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            cast: Any = cells.astype(dtype) if isinstance(dtype, np.dtype) else pd.array(cells, dtype)
    except (TypeError, ValueError, OverflowError):
        return cells
    back = np.asarray(cast.astype(float)) if isinstance(dtype, np.dtype) else cast.to_numpy(float, na_value=np.nan)
    return cast if np.array_equal(back, cells, equal_nan=True) else cells


def is_missing(value: Any) -> bool:
    """Whether a value says "not there": None, NA or NaN."""
    return value is None or value is pd.NA or (isinstance(value, numbers.Real) and bool(value != value))


def refuse_times(dtype: Any, name: str) -> None:
    """Dates and times are no numbers yet."""
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype) or types.is_timedelta64_dtype(dtype):
        raise InvalidInput(
            f"Column {name!r} holds dates or times ({dtype}); turn it into a number first, such as days since a date."
        )


def read_column(label: Any, series: pd.Series) -> Column:
    dtype = series.dtype
    name = str(label)
    refuse_times(dtype, name)
    if types.is_complex_dtype(dtype):
        raise InvalidInput(f"Complex data not supported: column {name!r}.")
    if isinstance(dtype, pd.CategoricalDtype):
        return Column(label, dtype, list(dtype.categories))
    if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype):
        return Column(label, dtype)
    present = series.dropna()
    texts = present.map(lambda value: isinstance(value, str | bool | np.bool_)).to_numpy(dtype=bool)
    if texts.all():
        values = sorted(present.unique().tolist(), key=lambda value: (str(type(value)), value))
        absent = series[series.isna()]
        return Column(label, dtype, values, missing=absent.iloc[0] if len(absent) else np.nan)
    other = present[~texts].iloc[0]
    if not texts.any() and isinstance(other, numbers.Real):
        _numbers(series, name)
        return Column(label, np.dtype(float))
    raise InvalidInput(
        f"Column {name!r} of type {dtype} holds {other!r} ({type(other).__name__})"
        f"{' beside text' if texts.any() else ''}; a column must hold numbers, text, booleans or a pandas category."
    )


def _numbers(series: pd.Series, name: str) -> np.ndarray:
    refuse_times(series.dtype, name)
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
