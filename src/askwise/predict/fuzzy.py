"""Rules of fuzzy trees of our own, and of models of ex-fuzzy, which are known by what they have, not by their class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from askwise.errors import InvalidInput, listed
from askwise.predict.rules import ForeignTerm, Interval, Rule, RuleSet, Term
from askwise.schema import Schema
from askwise.trees.fuzzy_tree import FuzzyTreeClassifier


def fuzzy_tree_rules(tree: FuzzyTreeClassifier) -> RuleSet:
    """The leaves of a fuzzy tree: a range of words, which is one trapezium, per column and rule."""
    rules = [Rule({j: _term(tree, j, *span) for j, span in rule.ranges.items()}, rule.value) for rule in tree.rules_]
    return RuleSet(rules, fuzzy=True, t_norm=tree.t_norm)


def foreign_rules(model: Any, schema: Schema) -> RuleSet | None:
    """The rules of a fuzzy model of ex-fuzzy; None where `model` is no such thing.

    The model itself answers on complete rows (`exact` is False): its ways to join rules are its own.
    """
    if hasattr(model, "node_activation_matrix") and hasattr(model, "fuzzy_partitions_"):
        return RuleSet(list(_node_rules(model, model._root, ())), fuzzy=True, exact=False)
    if not hasattr(model, "rule_base") and callable(getattr(model, "internal_classifier", None)):
        model = model.internal_classifier()
    if hasattr(getattr(model, "rule_base", None), "rule_bases"):
        bases = [base for base in model.rule_base.rule_bases if len(base.rules)]
        t_norm = "minimum" if any(base.tnorm is np.min for base in bases) else "product"
        rules = [rule for base in bases for rule in _base_rules(base, schema)]
        return RuleSet(rules, fuzzy=True, t_norm=t_norm, exact=False)
    return None


def _term(tree: FuzzyTreeClassifier, j: int, first: int, last: int) -> Term | Interval:
    """A word for a range of numbers; the plain interval where its edges are crisp (few different values)."""
    partition = tree.partitions_[j]
    a, b, c, d = partition.trapezium(first, last).tolist()
    return Interval(a, d) if a == b and c == d else Term((a, b, c, d), partition.words(first, last))


def _node_rules(model: Any, node: Any, path: tuple[tuple[int, int], ...]) -> Iterator[Rule]:
    """Every node but the root of a FERL tree, as its soft inference has it."""
    if path:
        spans: dict[int, list[Any]] = {}
        for column, number in path:
            spans.setdefault(int(column), []).append(model.fuzzy_partitions_[column][number])
        terms = {column: ForeignTerm.joined(sets) for column, sets in spans.items()}
        yield Rule(terms, np.asarray(node["class_probabilities"], dtype=float))
    for child in (node.get("children") or {}).values():
        yield from _node_rules(model, child, (*path, (child["feature"], child["fuzzy_set"])))


def _base_rules(base: Any, schema: Schema) -> Iterator[Rule]:
    """The rules of one class; what they are worth is counted on the training rows."""
    columns = _columns_of([variable.name for variable in base.antecedents], schema)
    for rule in base.rules:
        chosen = [(k, int(number)) for k, number in enumerate(rule.antecedents) if number >= 0]
        yield Rule({columns[k]: ForeignTerm.joined([base.antecedents[k][number]]) for k, number in chosen})


def _columns_of(variables: Sequence[str], schema: Schema) -> list[int]:
    """Position of each linguistic variable's column: by name, or by the number that ex-fuzzy gives to arrays."""
    position = {column.name: j for j, column in enumerate(schema.columns)}
    if not schema.framed:
        position |= {str(j): j for j in range(len(schema.columns))}
    unknown = [name for name in variables if str(name) not in position]
    if unknown:
        raise InvalidInput(
            f"The fuzzy rules speak of {unknown[0]!r}; the columns of X are {listed(position)}. Train the fuzzy model "
            "with the names of the columns."
        )
    return [position[str(name)] for name in variables]
