"""Rules of the house drawn at random, and a slow reading of them, rule by rule, that owes nothing to the masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from askwise.constraints import Rule, at_most, excludes, first, mandatory, only_if, requires

COMPARED = {">": operator.gt, "<": operator.lt}


def drawn_rules(features: list[str], rng: np.random.Generator) -> list[Rule]:
    """One to five rules about some of the features; they may contradict each other."""

    def two() -> tuple[str, str]:
        one, other = rng.choice(features, 2, replace=False)
        return str(one), str(other)

    def some() -> Rule:
        size = int(rng.integers(2, len(features) + 1))
        return at_most(int(rng.integers(1, size + 1)), of=[str(f) for f in rng.choice(features, size, replace=False)])

    kinds: list[Any] = [
        lambda: requires(*two()),
        lambda: excludes(*two()),
        lambda: first(two()[0]),
        lambda: mandatory(two()[0]),
        some,
        lambda: only_if(*two(), f"{rng.choice(list(COMPARED))} {rng.normal():.2f}"),
    ]
    return [kinds[k]() for k in rng.integers(len(kinds), size=rng.integers(1, 6))]


def barred(rule_set: list[Rule], feature: str, known: dict[str, float]) -> bool:
    """Whether a rule, other than those that say what comes first, forbids to ask a feature next."""
    for rule in rule_set:
        named = rule.features
        if rule.kind == "requires" and feature == named[0] and named[1] not in known:
            return True
        if rule.kind == "excludes" and feature in named and known.keys() & (set(named) - {feature}):
            return True
        if rule.kind == "at_most" and feature in named and len(known.keys() & set(named)) >= rule.n:
            return True
        if rule.kind == "only_if" and feature == named[0]:
            sign, limit = rule.condition.split()
            if named[1] not in known or not COMPARED[sign](known[named[1]], float(limit)):
                return True
    return False


def broken(
    rule_set: list[Rule],
    order: list[str],
    truth: dict[str, float],
    known: set[str],
    costs: dict[str, float],
    left: float,
) -> list[str]:
    """What one case, acquired in `order`, does against the rules; NaN in `truth` is unavailable."""
    now, found = {name: truth[name] for name in known}, []
    firsts = {rule.features[0] for rule in rule_set if rule.kind == "first"}
    needed = {rule.features[0] for rule in rule_set if rule.kind == "mandatory"}
    while True:
        more = {r.features[1] for r in rule_set if r.kind in ("requires", "only_if") and r.features[0] in needed}
        if more <= needed:
            break
        needed |= more

    def waiting(names: set[str]) -> list[str]:
        open_ = [
            name for name in names if name not in now and truth[name] == truth[name] and costs[name] <= left + 1e-9
        ]
        return [name for name in open_ if not barred(rule_set, name, now)]

    for name in order:
        if barred(rule_set, name, now):
            found.append(f"{name} is barred")
        if name not in firsts and waiting(firsts):
            found.append(f"{name} is asked before {waiting(firsts)}")
        if name not in firsts | needed and waiting(needed):
            found.append(f"{name} is asked before the mandatory {waiting(needed)}")
        now[name] = truth[name]
        left -= costs[name]
    return found + [f"{name} is mandatory and was not asked" for name in waiting(needed)]
