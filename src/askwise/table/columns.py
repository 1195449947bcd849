"""One column of a table: its kind, its categories, and its cells as numbers and back."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from pandas.api import types

from askwise.errors import InvalidInput

LARGEST_EXACT_INTEGER = 2**53 - 1
"""Above it, two different whole numbers can become the same float."""


@dataclass(frozen=True)
class Column:
    """One column of the training table: a number, or a category (text, boolean, pandas category) held as a code.

    `values` lists the categories of the training table; it is None for a number.
    """

    label: Any
    dtype: Any
    values: tuple[Any, ...] | None = None
    missing: Any = np.nan

    @cached_property
    def codes(self) -> dict[Any, int]:
        """The code of each category."""
        return {value: code for code, value in enumerate(self.values or ())}

    @cached_property
    def name(self) -> str:
        return str(self.label)

    @property
    def is_category(self) -> bool:
        return self.values is not None

    @property
    def known(self) -> list[Any]:
        """The categories of the training table."""
        return list(self.values or ())

    def encode(self, series: pd.Series) -> tuple[np.ndarray, list[Any]]:
        """Numbers as they are, categories as codes, missing as NaN; and the categories not seen in training.

        The codes of those follow the known ones. The wrapped model may or may not accept them.
        """
        if self.values is None:
            return _numbers(series, self.name), []
        missing = series.isna().to_numpy(dtype=bool)
        try:
            present = pd.unique(series[~missing])
            unseen = [value for value in present if value not in self.codes]
        except TypeError:  # unhashable
            self._refuse(f"{series.dtype} cells")
        for value in unseen:
            self._check_unseen(value)
        codes = {**self.codes, **{value: len(self.values) + i for i, value in enumerate(unseen)}}
        return series.map({value: codes[value] for value in present}).to_numpy(dtype=float, na_value=np.nan), unseen

    def decode(self, encoded: np.ndarray, unseen: Sequence[Any] = (), typed: bool = True) -> Any:
        """The inverse of `encode`; numbers in the dtype of the training table if `typed`, else as floats."""
        if self.values is None:
            return cast(encoded, self.dtype) if typed else encoded
        codes = np.where(np.isnan(encoded), -1, encoded).astype(int)
        values = [*self.values, *unseen]
        if isinstance(self.dtype, pd.CategoricalDtype):
            seen_later = codes.max(initial=-1) >= len(self.values)
            categories = pd.Index(values) if seen_later else self.dtype.categories
            return pd.Categorical.from_codes(codes, categories=categories, ordered=self.dtype.ordered)
        decoded = pd.Series(values, dtype=self.dtype).array.take(codes, allow_fill=True)
        if self.dtype == object:
            decoded[codes < 0] = self.missing
        return decoded

    def encode_answer(self, value: Any) -> float:
        """One value entered by a user; unlike in a batch, an unseen category is an error."""
        if is_missing(value):
            raise InvalidInput(
                f"The answer for {self.name!r} is missing. If it is unavailable, call unavailable({self.name!r})."
            )
        if self.values is not None:
            try:
                code = self.codes.get(value)
            except TypeError:  # unhashable
                code = None
            if code is None:
                raise InvalidInput(f"The answer for {self.name!r} must be one of {list(self.values)}; got {value!r}.")
            return float(code)
        if isinstance(value, str | bytes | bool | np.bool_) or not isinstance(value, numbers.Real):
            raise InvalidInput(f"The answer for {self.name!r} must be a number; got {value!r}.")
        if _is_inexact(value):
            raise InvalidInput(f"The answer for {self.name!r} must be a whole number below 2**53; got {value!r}.")
        if not np.isfinite(float(value)):
            raise InvalidInput(f"The answer for {self.name!r} must be a finite number; got {value!r}.")
        return float(value)

    def parse_answer(self, text: str) -> float:
        """One value typed by a user."""
        if self.values is not None:
            spelled = {str(value): value for value in self.values}
            return self.encode_answer(spelled.get(text, text))
        try:
            return self.encode_answer(float(text))
        except ValueError as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"The answer for {self.name!r} must be a number; got {text!r}.") from None

    def show(self, code: float, unseen: Sequence[Any] = ()) -> Any:
        """A cell for display or JSON: str, bool, int or float; None where missing."""
        if np.isnan(code):
            return None
        if self.values is not None:
            return plain([*self.values, *unseen][int(code)])
        return int(code) if types.is_integer_dtype(self.dtype) and code == int(code) else float(code)

    def castable(self, cells: np.ndarray) -> np.ndarray | bool:
        """Which cells the dtype of the training table can hold exactly; True = any."""
        if self.values is not None:
            return (cells < len(self.values)) | (np.isnan(cells) & (self.dtype != bool))
        dtype = self.dtype if isinstance(self.dtype, np.dtype) else getattr(self.dtype, "numpy_dtype", None)
        if dtype is None or dtype == np.float64:
            return True
        has_missing = dtype.kind == "f" or dtype is not self.dtype  # nullable integers have NA
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray((cells.astype(dtype).astype(float) == cells) | (np.isnan(cells) & has_missing))

    def _check_unseen(self, value: Any) -> None:
        """A new category must be of the kind of the known ones: a boolean column has no third value."""
        if types.is_bool_dtype(self.dtype) or all(isinstance(known, bool | np.bool_) for known in self.values or ()):
            self._refuse(repr(value))
        if not isinstance(value, str) and all(isinstance(known, str) for known in self.values or ()):
            self._refuse(f"{value!r}, which is not text")

    def _refuse(self, got: str) -> NoReturn:
        raise InvalidInput(f"Column {self.name!r} must hold one of {list(self.values or ())}; got {got}.") from None


def as_labels(given: Any) -> np.ndarray:
    """Labels as an array that keeps different ones apart, as numpy does not keep 1 and "1" of a list.

    >>> as_labels([1, "1"]).tolist()
    [1, '1']
    """
    return np.asarray(given, dtype=None if hasattr(given, "dtype") else object)


def plain(value: Any) -> Any:
    """A label or category for JSON: str, bool, int or float."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | bool | int | float) else str(value)


def cast(cells: np.ndarray, dtype: Any) -> Any:
    """Cells in `dtype`, which must hold them all (see `Column.castable`)."""
    return cells.astype(dtype) if isinstance(dtype, np.dtype) else pd.array(cells, dtype)


def is_missing(value: Any) -> bool:
    """Whether a value means missing: None, NA or NaN."""
    return value is None or value is pd.NA or (isinstance(value, numbers.Real) and bool(value != value))


def refuse_times(dtype: Any, name: str) -> None:
    """Dates and times are not supported as numbers."""
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
        return Column(label, dtype, tuple(dtype.categories))
    if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype):
        return Column(label, dtype)
    present = series.dropna()
    texts = present.map(lambda value: isinstance(value, str | bool | np.bool_)).to_numpy(dtype=bool)
    if texts.all():
        values = sorted(present.unique().tolist(), key=lambda value: (str(type(value)), value))
        values = [False, True] if types.is_bool_dtype(dtype) else values
        absent = series[series.isna()]
        return Column(label, dtype, tuple(values), missing=absent.iloc[0] if len(absent) else np.nan)
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
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if not types.is_numeric_dtype(series.dtype):
        for value in series.dropna():
            if not isinstance(value, numbers.Real):
                raise InvalidInput(f"Column {name!r} must hold numbers; got {value!r}.")
            if _is_inexact(value):
                _refuse_inexact(name)
    values = np.asarray(series.to_numpy(dtype=float, na_value=np.nan))
    if types.is_integer_dtype(series.dtype) and (np.abs(values) > LARGEST_EXACT_INTEGER).any():
        _refuse_inexact(name)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise InvalidInput(f"Column {name!r} holds an infinite value (row {row}); use NaN for what is not known.")
    return values


def _is_inexact(value: Any) -> bool:
    """Whether `value` is a whole number that a float cannot tell from the next one."""
    return isinstance(value, numbers.Integral) and abs(int(value)) > LARGEST_EXACT_INTEGER


def _refuse_inexact(name: str) -> NoReturn:
    raise InvalidInput(
        f"Column {name!r} holds whole numbers beyond 2**53, which lose digits when treated as measurements. If it is "
        "an identifier, drop it or turn it into text."
    )
