"""Rules of `FuzzyTreeClassifier` and of models of ex-fuzzy, which are recognized by their attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from askwise.errors import InvalidInput, listed
from askwise.predict.rules.conditions import ForeignTerm, Interval, Rule, RuleSet, Term
from askwise.trees.fuzzy_tree import FuzzyTreeClassifier


def fuzzy_tree_rules(tree: FuzzyTreeClassifier) -> RuleSet:
    """The leaves of a fuzzy tree: a range of terms, which is one trapezium, per column and rule."""
    rules = [Rule({j: _term(tree, j, *span) for j, span in rule.ranges.items()}, rule.value) for rule in tree.rules_]
    return RuleSet(rules, fuzzy=True, t_norm=tree.t_norm)


def foreign_rules(model: Any, names: Sequence[str], numbered: bool) -> RuleSet | None:
    """The rules of a fuzzy model of ex-fuzzy; None if `model` is not one.

    Once all conditions are observed, the model itself predicts (`exact` is False), since it combines rules in its own
    way. `names` are those of its input columns; `numbered` means that it was trained on an array.
    """
    if hasattr(model, "node_activation_matrix") and hasattr(model, "fuzzy_partitions_"):
        return RuleSet(list(_node_rules(model, model._root, ())), fuzzy=True, exact=False)
    if not hasattr(model, "rule_base") and callable(getattr(model, "internal_classifier", None)):
        model = model.internal_classifier()
    if hasattr(getattr(model, "rule_base", None), "rule_bases"):
        bases = [base for base in model.rule_base.rule_bases if len(base.rules)]
        t_norm = "minimum" if any(base.tnorm is np.min for base in bases) else "product"
        rules = [rule for base in bases for rule in _base_rules(base, names, numbered)]
        return RuleSet(rules, fuzzy=True, t_norm=t_norm, exact=False)
    return None


def _term(tree: FuzzyTreeClassifier, j: int, first: int, last: int) -> Term | Interval:
    """A fuzzy term; a plain interval if its edges are crisp (few distinct values)."""
    partition = tree.partitions_[j]
    a, b, c, d = partition.trapezium(first, last).tolist()
    return Interval(a, d) if a == b and c == d else Term((a, b, c, d), partition.words(first, last))


def _node_rules(model: Any, node: Any, path: tuple[tuple[int, int], ...]) -> Iterator[Rule]:
    """Every node but the root of a FERL tree, as in its soft inference."""
    if path:
        spans: dict[int, list[Any]] = {}
        for column, number in path:
            spans.setdefault(int(column), []).append(model.fuzzy_partitions_[column][number])
        terms = {column: ForeignTerm.joined(sets) for column, sets in spans.items()}
        yield Rule(terms, np.asarray(node["class_probabilities"], dtype=float))
    for child in (node.get("children") or {}).values():
        yield from _node_rules(model, child, (*path, (child["feature"], child["fuzzy_set"])))


def _base_rules(base: Any, names: Sequence[str], numbered: bool) -> Iterator[Rule]:
    """The rules of one class; their confidences are counted on the training rows."""
    columns = [_column_of(str(variable.name), names, numbered) for variable in base.antecedents]
    for rule in base.rules:
        chosen = [(k, int(number)) for k, number in enumerate(rule.antecedents) if number >= 0]
        if chosen:  # a rule without conditions never fires in ex-fuzzy
            powers = _powers(rule)
            yield Rule(
                {columns[k]: ForeignTerm.joined([base.antecedents[k][number]], powers[k]) for k, number in chosen}
            )


def _powers(rule: Any) -> list[float]:
    """The power of each antecedent's membership; -1 there means none."""
    modifiers = getattr(rule, "modifiers", None)
    return [1.0 if m == -1 else float(m) for m in ([-1] * len(rule.antecedents) if modifiers is None else modifiers)]


def _column_of(variable: str, names: Sequence[str], numbered: bool) -> int:
    """Position of a linguistic variable's column: by name, or by the number that ex-fuzzy gives to arrays."""
    if variable in names:
        return list(names).index(variable)
    if numbered and variable.isdigit():
        return int(variable)
    raise InvalidInput(
        f"The fuzzy rules refer to {variable!r}; the columns of X are {listed(names)}. Train the fuzzy model with the "
        "names of the columns."
    )
