"""A hand-written list of "if ... else if ..." as a classifier."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from askwise.errors import InvalidInput, listed
from askwise.trees.growth import ProbableClassifier, refuse_missing_labels


class RuleListClassifier(ProbableClassifier):
    """Predicts by the first rule whose conditions all hold.

    Parameters
    ----------
    rules
        Pairs (conditions, outcome), in order. Conditions are a dict by column: ``(low, high)`` means
        ``low < x <= high`` with None for an open side; a set or list is one of these values; anything else is that
        value. The outcome is a class, a dict ``{class: probability}``, or None: the class shares of the training rows
        that the rule is the first to match.
    default
        The outcome where no rule matches; None: the class shares of the training rows that no rule matches.

    Attributes
    ----------
    classes_ : (C,) labels
    values_ : (L, C) class probabilities of each rule
    default_ : (C,) those where no rule matches

    Examples
    --------
    >>> X = pd.DataFrame({"age": [30, 64, 71, 45], "smoker": ["no", "yes", "no", "yes"]})
    >>> model = RuleListClassifier([({"age": (60, None)}, "ill"), ({"smoker": "no"}, "well")], default="ill")
    >>> model.fit(X, ["well", "ill", "ill", "ill"]).predict(X).tolist()
    ['well', 'ill', 'ill', 'ill']
    """

    def __init__(self, rules: Sequence[tuple[Mapping[Any, Any], Any]], default: Any = None) -> None:
        self.rules = rules
        self.default = default

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the classes, and the probabilities of the outcomes that are not given."""
        if not isinstance(self.rules, Sequence):
            raise InvalidInput(f"rules must be a list of pairs (dict of conditions, outcome); got {self.rules!r}.")
        refuse_missing_labels(y)
        table, y = pd.DataFrame(X), column_or_1d(y)
        if table.columns.has_duplicates:
            twice = table.columns[table.columns.duplicated()][0]
            raise InvalidInput(f"X has two columns named {twice!r}; column names must differ.")
        if len(table) != len(y) or not len(y):
            raise InvalidInput(f"X and y must have the same number of rows, at least one; got {len(table)}, {len(y)}.")
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.n_features_in_ = table.shape[1]
        if isinstance(X, pd.DataFrame):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.conditions_ = [self._checked(number, rule, table) for number, rule in enumerate(self.rules)]
        taken = self._first_rule(table)
        shares = np.eye(len(self.classes_))[labels]
        self.values_ = np.array(
            [self._outcome(f"rule {k}", rule[1], shares[taken == k], shares) for k, rule in enumerate(self.rules)]
        ).reshape(len(self.rules), len(self.classes_))
        self.default_ = self._outcome("default", self.default, shares[taken < 0], shares)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, C) the probabilities of the first rule that holds."""
        check_is_fitted(self, "values_")
        return np.vstack([self.values_, self.default_])[self._first_rule(self._table(X))]

    def _table(self, X: Any) -> pd.DataFrame:
        """Rows with the columns of `fit`."""
        table, names = pd.DataFrame(X), list(getattr(self, "feature_names_in_", []))
        if table.shape[1] != self.n_features_in_:
            raise InvalidInput(f"X must have {self.n_features_in_} columns, as in fit; got {table.shape[1]}.")
        if isinstance(X, pd.DataFrame) and names and list(X.columns) != names:
            raise InvalidInput(f"X must have the columns of fit, {names}; got {list(X.columns)}.")
        return table

    def _first_rule(self, table: pd.DataFrame) -> np.ndarray:
        """(n,) the first matching rule of each row; -1 = none."""
        first = np.full(len(table), -1)
        for number, conditions in reversed(list(enumerate(self.conditions_))):
            holds = np.ones(len(table), dtype=bool)
            for column, condition in conditions.items():
                holds &= _holds(table.iloc[:, column], condition)
            first[holds] = number
        return first

    def _checked(self, number: int, rule: Any, table: pd.DataFrame) -> dict[int, Any]:
        """The conditions of a rule by position of the column."""
        if not (isinstance(rule, Sequence) and len(rule) == 2 and isinstance(rule[0], Mapping)):
            raise InvalidInput(f"rule {number} must be a pair (dict of conditions, outcome); got {rule!r}.")
        if not rule[0]:
            raise InvalidInput(f"rule {number} has no conditions; give its outcome as `default`.")
        conditions = {_position(number, column, table): _condition(number, c) for column, c in rule[0].items()}
        for j, condition in conditions.items():
            _check_cells(number, table.iloc[:, j], condition)
        return conditions

    def _outcome(self, owner: str, outcome: Any, rows: np.ndarray, everyone: np.ndarray) -> np.ndarray:
        if outcome is None:
            return np.asarray((rows if len(rows) else everyone).mean(axis=0))
        if not isinstance(outcome, Mapping | Hashable):
            raise InvalidInput(
                f"The outcome of {owner} must be a class, a dict {{class: probability}} or None; got {outcome!r}."
            )
        given = outcome if isinstance(outcome, Mapping) else {outcome: 1.0}
        numbers = all(isinstance(p, Real) for p in given.values())
        unknown = [label for label in given if label not in self.classes_.tolist()]
        if unknown:
            raise InvalidInput(
                f"{owner} has the outcome {unknown[0]!r}; the classes of y are {self.classes_.tolist()}."
            )
        proba = np.array([float(given.get(label, 0.0)) if numbers else np.nan for label in self.classes_.tolist()])
        if not np.isclose(proba.sum(), 1.0) or (proba < 0).any():
            raise InvalidInput(f"The probabilities of {owner} must be >= 0 and sum to one; got {outcome!r}.")
        return proba


def _position(number: int, column: Any, table: pd.DataFrame) -> int:
    names = list(table.columns)
    if column in names:
        return names.index(column)
    raise InvalidInput(f"rule {number} refers to {column!r}; the columns of X are {listed(names)}.")


def _condition(number: int, condition: Any) -> tuple[float, float] | frozenset[Any]:
    """(low, high), or the values that satisfy it."""
    if not isinstance(condition, tuple):
        values = condition if isinstance(condition, set | frozenset | list) else [condition]
        if not values or any(isinstance(value, Iterable) and not isinstance(value, str) for value in values):
            raise InvalidInput(
                f"rule {number}: a condition must be (low, high), a value, or a set or list of some; got {condition!r}."
            )
        return frozenset(values)
    low, high = condition if len(condition) == 2 else (np.nan, np.nan)
    bounds = (-np.inf if low is None else low, np.inf if high is None else high)
    if not all(isinstance(bound, Real) for bound in bounds) or not bounds[0] < bounds[1]:
        raise InvalidInput(f"rule {number}: an interval must be (low, high) with low < high; got {condition!r}.")
    return (float(bounds[0]), float(bounds[1]))


def _check_cells(number: int, cells: pd.Series, condition: tuple[float, float] | frozenset[Any]) -> None:
    """Raise an error for an interval on a column without numbers, and for a missing value as a condition."""
    if isinstance(condition, frozenset):
        if any(pd.isna(value) for value in condition):
            raise InvalidInput(
                f"rule {number} has a missing value as a condition on {cells.name!r}; a condition must be a value."
            )
        return
    if not _holds_numbers(cells):
        raise InvalidInput(
            f"rule {number} gives an interval for {cells.name!r}, which does not hold numbers; give a set of values."
        )


def _holds_numbers(cells: pd.Series) -> bool:
    """Whether all present cells are numbers; numeric text does not count."""
    if types.is_numeric_dtype(cells.dtype):
        return True
    return all(isinstance(cell, Real) for cell in cells.dropna().astype(object))


def _holds(cells: pd.Series, condition: tuple[float, float] | frozenset[Any]) -> np.ndarray:
    if isinstance(condition, frozenset):
        return cells.isin(list(condition)).to_numpy(dtype=bool)
    if not _holds_numbers(cells):
        raise InvalidInput(f"Column {cells.name!r} must hold numbers, as in fit: a rule gives an interval for it.")
    numbers = cells.to_numpy(dtype=float, na_value=np.nan)
    return (numbers > condition[0]) & (numbers <= condition[1])
