"""Rules of fitted trees, forests and rule lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from askwise.errors import InvalidInput
from askwise.predict.rules.conditions import Interval, OneOf, Rule, RuleSet
from askwise.table.columns import Column
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.trees.rule_list import RuleListClassifier

LEAF = -1


def tree_rules(tree: Any) -> RuleSet:
    """The leaves of a fitted tree (scikit-learn's `tree_` arrays) as rules, one interval per column and rule."""
    return RuleSet([Rule(path, _shares(tree.value[leaf, 0])) for leaf, path in _leaves(tree)])


def list_rules(model: RuleListClassifier, schema: Schema | None) -> RuleSet:
    """A rule list as rules over encoded rows; without a schema, over the numeric output of a Pipeline."""
    named = {} if schema is None else named_categories(model, schema)
    columns = {} if schema is None else dict(enumerate(schema.columns))
    rules = [
        Rule({j: _coded(columns.get(j), c, named.get(j, [])) for j, c in conditions.items()}, value)
        for conditions, value in zip(model.conditions_, model.values_, strict=True)
    ]
    return RuleSet(rules, ordered=True, default=model.default_)


def named_categories(model: RuleListClassifier, schema: Schema) -> dict[int, list[Any]]:
    """Categories that occur in rules but not in training, by column: they may occur later and have their own codes."""
    named: dict[int, list[Any]] = {}
    for j, column in enumerate(schema.columns):
        kinds = {type(value) for value in column.known}
        conditions = [rule[j] for rule in model.conditions_ if isinstance(rule.get(j), frozenset)]
        absent = {value for values in conditions for value in values if value not in column.codes}
        named[j] = sorted((value for value in absent if type(value) in kinds), key=repr)
    return named


def recoded(rows: EncodedRows, columns: Sequence[Column], named: Mapping[int, list[Any]]) -> np.ndarray:
    """The cells of `rows` (n, D), with the codes that rules use for categories that do not occur in training."""
    cells = rows.values.copy()
    for j, unseen in rows.unseen.items():
        n_known, own = len(columns[j].known), named.get(j, [])
        codes = np.array([own.index(v) if v in own else len(own) + i for i, v in enumerate(unseen)])
        new = cells[:, j] >= n_known  # False where a cell is missing
        cells[new, j] = n_known + codes[(cells[new, j] - n_known).astype(int)]
    return cells


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


def _coded(column: Column | None, condition: Any, named: list[Any]) -> Interval | OneOf:
    if column is not None and column.is_category:
        if not isinstance(condition, frozenset):
            raise InvalidInput(f"A rule gives an interval for {column.name!r}, whose values are {column.known!r}.")
        codes = {**column.codes, **{value: len(column.known) + i for i, value in enumerate(named)}}
        return OneOf(frozenset(float(codes[value]) for value in condition if value in codes))
    if not isinstance(condition, frozenset):
        return Interval(*condition)
    other = [value for value in condition if not isinstance(value, Real)]
    if other:
        where = "a column of a Pipeline's output" if column is None else f"{column.name!r}"
        raise InvalidInput(f"A rule gives the value {other[0]!r} for {where}, which must hold numbers to be reduced.")
    return OneOf(frozenset(float(value) for value in condition))
