"""Why: the rules that speak for a prediction in their reduced form, and those that further answers could bring in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FiringRule:
    """Conditions that are observed and hold, and what the training rows that satisfy them say.

    `weight` is its share in the answer, `degree` how far it fires (1 for crisp rules), `support` the number of
    training rows, `proba` (C,) its confidences.
    """

    conditions: tuple[str, ...]
    proba: np.ndarray
    support: float
    degree: float
    weight: float


@dataclass(frozen=True)
class PossibleRule:
    """A rule of the model that is not contradicted: what holds, what is still `open`, and what it would say."""

    conditions: tuple[str, ...]
    open: tuple[str, ...]
    proba: np.ndarray
    support: float
    degree: float


@dataclass(frozen=True)
class Explanation:
    """The rules behind one prediction, the weightiest first; `n_firing` and `n_possible` count those not listed too."""

    firing: Sequence[FiringRule]
    possible: Sequence[PossibleRule]
    n_firing: int
    n_possible: int

    def as_dict(self, classes: np.ndarray) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "firing": [
                {"conditions": list(rule.conditions), **_says(rule, classes), "weight": float(rule.weight)}
                for rule in self.firing
            ],
            "possible": [
                {"conditions": list(rule.conditions), "open": list(rule.open), **_says(rule, classes)}
                for rule in self.possible
            ],
            "n_firing": self.n_firing,
            "n_possible": self.n_possible,
        }


def _says(rule: FiringRule | PossibleRule, classes: np.ndarray) -> dict[str, Any]:
    best = int(rule.proba.argmax())
    label = classes[best]
    return {
        "then": label.item() if isinstance(label, np.generic) else label,
        "confidence": float(rule.proba[best]),
        "probabilities": {str(name): float(p) for name, p in zip(classes, rule.proba, strict=True)},
        "support": float(rule.support),
        "degree": float(rule.degree),
    }
