"""Rules of fitted trees, forests and rule lists."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from askwise.columns import Column
from askwise.errors import InvalidInput
from askwise.predict.rules.conditions import Interval, OneOf, Rule, RuleSet
from askwise.schema import Schema
from askwise.trees.rule_list import RuleListClassifier

LEAF = -1


def tree_rules(tree: Any) -> RuleSet:
    """The leaves of a fitted tree (scikit-learn's `tree_` arrays) as rules, one interval per column and rule."""
    return RuleSet([Rule(path, _shares(tree.value[leaf, 0])) for leaf, path in _leaves(tree)])


def list_rules(model: RuleListClassifier, schema: Schema | None) -> RuleSet:
    """A rule list as rules over encoded rows or, without a schema, over the numeric output of a Pipeline."""
    rules = [
        Rule({j: _coded(None if schema is None else schema.columns[j], c) for j, c in conditions.items()}, value)
        for conditions, value in zip(model.conditions_, model.values_, strict=True)
    ]
    return RuleSet(rules, ordered=True, default=model.default_)


def _leaves(tree: Any) -> Iterator[tuple[int, dict[int, Interval]]]:
    """Each leaf from left to right with its path, without recursion."""
    waiting: list[tuple[int, dict[int, Interval]]] = [(0, {})]
    while waiting:
        node, path = waiting.pop()
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left == LEAF:
            yield node, path
            continue
        column, threshold = int(tree.feature[node]), float(tree.threshold[node])
        before = path.get(column, Interval())
        waiting.append((right, {**path, column: Interval(max(before.low, threshold), before.high)}))
        waiting.append((left, {**path, column: Interval(before.low, min(before.high, threshold))}))


def _shares(value: np.ndarray) -> np.ndarray:
    """Class shares of a leaf; weighted ones if the tree was trained with weights."""
    return np.asarray(value, dtype=float) / value.sum()


def _codes(column: Column, values: frozenset[Any]) -> Iterator[float]:
    """Codes of the values that a cell may hold; a later batch may hold values that no row of `fit` has."""
    kinds = {type(known) for known in column.known}
    for value in values:
        if value in column.codes or type(value) in kinds:
            yield float(column.encode(pd.Series([value], dtype=object))[0])


def _coded(column: Column | None, condition: Any) -> Interval | OneOf:
    if column is not None and column.is_category:
        if not isinstance(condition, frozenset):
            raise InvalidInput(f"A rule gives an interval for {column.name!r}, whose values are {column.known!r}.")
        return OneOf(frozenset(_codes(column, condition)))
    if not isinstance(condition, frozenset):
        return Interval(*condition)
    other = [value for value in condition if not isinstance(value, Real)]
    if other:
        where = "a column of a Pipeline's output" if column is None else f"{column.name!r}"
        raise InvalidInput(f"A rule gives the value {other[0]!r} for {where}, which must hold numbers to be reduced.")
    return OneOf(frozenset(float(value) for value in condition))
