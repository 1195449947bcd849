"""Explanations: the rules behind a prediction in reduced form, and those that could fire once more is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np


@dataclass(frozen=True)
class ExplainedRule:
    """A rule in words, or several with the same text.

    Attributes
    ----------
    conditions
        Observed conditions, which hold.
    proba
        (C,) its confidences.
    support
        Rows given to `fit` (or the sum of their memberships) that satisfy the reduced rule.
    degree
        Its firing degree; 1 for crisp rules.
    from_model
        Whether `proba` is the model's own value, from its own training, and not counted on the rows given to `fit`.
    trees
        Numbers of the trees that hold it; a single tree or rule set is 0.
    """

    conditions: tuple[str, ...]
    proba: np.ndarray
    support: float
    degree: float
    from_model: bool
    trees: frozenset[int]

    @property
    def evidence(self) -> str:
        """What the confidence is based on, in words."""
        whole = self.support >= 10 or float(self.support).is_integer()  # fuzzy rules count rows in part
        shown = f"{self.support:,.{0 if whole else 1}f}" if self.support else "no"
        rows = f"{shown} row{'s' * (shown not in ('1', 'no'))} given to fit"
        if not self.from_model:
            return rows
        return f"the model's own value; {rows} satisf{'y' if self.support > 1 else 'ies'} the rule"

    def as_dict(self, classes: np.ndarray) -> dict[str, Any]:
        """Its content, ready for JSON."""
        best = int(self.proba.argmax())
        label = classes[best]
        return {
            "conditions": list(self.conditions),
            "then": label.item() if isinstance(label, np.generic) else label,
            "confidence": float(self.proba[best]),
            "probabilities": _by_class(classes, self.proba),
            "support": float(self.support),
            "evidence": self.evidence,
            "degree": float(self.degree),
            "n_trees": len(self.trees),
        }


Rule = TypeVar("Rule", bound=ExplainedRule)


@dataclass(frozen=True)
class FiringRule(ExplainedRule):
    """A reduced rule that contributes to the answer; `weight` is its share."""

    weight: float

    def as_dict(self, classes: np.ndarray) -> dict[str, Any]:
        return {**super().as_dict(classes), "weight": float(self.weight)}


@dataclass(frozen=True)
class PossibleRule(ExplainedRule):
    """A rule that no observed value contradicts; `open` are its conditions that are not observed yet."""

    open: tuple[str, ...]

    def as_dict(self, classes: np.ndarray) -> dict[str, Any]:
        return {**super().as_dict(classes), "open": list(self.open)}


@dataclass(frozen=True)
class Explanation:
    """The rules behind one prediction, largest weight first; `n_firing` and `n_possible` count all of them."""

    firing: Sequence[FiringRule]
    possible: Sequence[PossibleRule]
    n_firing: int
    n_possible: int

    def as_dict(self, classes: np.ndarray, proba: np.ndarray | None = None) -> dict[str, Any]:
        """Ready for JSON, with what the rules say together, `proba` (C,), if it is given."""
        together = {} if proba is None else {"probabilities": _by_class(classes, proba)}
        return {
            **together,
            "firing": [rule.as_dict(classes) for rule in self.firing],
            "possible": [rule.as_dict(classes) for rule in self.possible],
            "n_firing": self.n_firing,
            "n_possible": self.n_possible,
        }


def _by_class(classes: np.ndarray, proba: np.ndarray) -> dict[str, float]:
    return {str(label): float(p) for label, p in zip(classes, proba, strict=True)}


def summary(firing: Sequence[FiringRule], possible: Sequence[PossibleRule], most: int) -> Explanation:
    """Merge rules with the same text, and keep the `most` important of both kinds."""
    speaking = [_merged_firing(alike) for alike in _alike(firing, lambda rule: rule.conditions)]
    speaking.sort(key=lambda rule: -rule.weight)
    groups = _alike(possible, lambda rule: (rule.conditions, rule.open))
    waiting = [_merged(alike, np.ones(len(alike))) for alike in groups]
    waiting.sort(key=lambda rule: -rule.degree * rule.support * len(rule.trees))
    return Explanation(speaking[:most], waiting[:most], len(speaking), len(waiting))


def _alike(rules: Sequence[Any], words: Any) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for rule in rules:
        groups[words(rule)].append(rule)
    return list(groups.values())


def _merged_firing(alike: list[FiringRule]) -> FiringRule:
    """The mean of the rules, weighted as in the answer: leaves of several trees may differ."""
    weights = np.array([rule.weight for rule in alike])
    return replace(_merged(alike, weights), weight=float(weights.sum()))


def _merged(alike: Sequence[Rule], weights: np.ndarray) -> Rule:
    shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(alike), 1 / len(alike))
    return replace(
        alike[0],
        proba=shares @ np.array([rule.proba for rule in alike]),
        support=max(rule.support for rule in alike),
        degree=max(rule.degree for rule in alike),
        from_model=any(rule.from_model for rule in alike),
        trees=frozenset().union(*(rule.trees for rule in alike)),
    )
