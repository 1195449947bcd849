"""Rules under any mask: conditions removed, rows counted anew and cached (App. C.2 and C.3).

The confidences follow from the counts in `aggregation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.predict.rules.conditions import Rule, RuleSet
from askwise.predict.rules.evidence import CrispEvidence, FuzzyEvidence, SubRuleCache
from askwise.predict.rules.firing import CrispFiring, FuzzyFiring
from askwise.table.rows import CELLS_AT_ONCE
from askwise.table.subsets import meets, unique_masks

CELLS_PER_MASK = 8000
"""With more cells (rows x rules x classes) per mask than this, one product per mask beats one sum per row."""


@dataclass(frozen=True)
class Reduced:
    """The rules of a set under one mask, or under one mask per row (with an additional first axis).

    Attributes
    ----------
    counts
        (L, C) training rows (or their memberships) that satisfy the reduced antecedent, by class.
    kept
        (L,) whether any condition is left; otherwise the rule is pruned.
    whole
        (L,) whether every condition is observed, so that the rule's own value is used.
    """

    counts: np.ndarray
    kept: np.ndarray
    whole: np.ndarray


Combine = Callable[[np.ndarray, Reduced, np.ndarray | None], np.ndarray]


class ReducedRules:
    """A rule set compiled for any mask, together with the training rows.

    Parameters
    ----------
    rules
        The rules, over P columns.
    inputs
        (N, P) training rows as inputs of the rules, NaN where a cell is missing.
    y
        (N,) class positions.
    n_classes
        C.
    max_bytes
        Memory for cached counts.
    """

    def __init__(self, rules: RuleSet, inputs: np.ndarray, y: np.ndarray, n_classes: int, max_bytes: int) -> None:
        if not rules.rules:  # a model without rules always predicts the same
            rules = replace(rules, rules=[Rule({}, rules.default)])
        self.rules = rules
        self.n_classes = n_classes
        self.columns = np.array(sorted({column for rule in rules.rules for column in rule.conditions}), dtype=int)
        self.prior = np.bincount(y, minlength=n_classes).astype(float)  # (C,) counts
        self.cache = SubRuleCache(n_classes, max_bytes)
        self._number_conditions()
        n_rules, used = len(rules.rules), inputs[:, self.columns]
        by_column = [self._conditions_of(u) for u in range(len(self.columns))]
        if rules.fuzzy:
            self._firing: Any = FuzzyFiring(by_column, n_rules, rules.t_norm)
            self._evidence: Any = FuzzyEvidence(self._conditions, used, y, n_classes, rules.t_norm)
        else:
            self._firing = CrispFiring(by_column, n_rules)
            self._evidence = CrispEvidence(self._conditions, used, y, n_classes)
        self.values = np.stack([self._value(number) for number in range(n_rules)])  # (L, C)

    def _number_conditions(self) -> None:
        """Equal conditions get one number; ``which[l, u]`` is that of rule l on the u-th used column, -1 = none."""
        position = {int(column): u for u, column in enumerate(self.columns)}
        numbers: dict[tuple[int, Any], int] = {}
        self._which = np.full((len(self.rules.rules), len(self.columns)), -1, dtype=np.int32)
        for number, rule in enumerate(self.rules.rules):
            for column, condition in rule.conditions.items():
                u = position[column]
                self._which[number, u] = numbers.setdefault((u, condition), len(numbers))
        self._conditions = list(numbers)
        self.uses = self._which >= 0  # (L, U)
        words = np.random.default_rng(0).integers(1, 2**64, size=len(numbers) + 1, dtype=np.uint64)
        words[-1] = 0  # found by -1, no condition
        self._words = words[self._which]  # (L, U)

    def _conditions_of(self, u: int) -> list[tuple[np.ndarray, Any]]:
        """(rules, condition) of one column, one entry per distinct condition."""
        numbers = self._which[:, u]
        return [(np.flatnonzero(numbers == k), self._conditions[k][1]) for k in np.unique(numbers[numbers >= 0])]

    def _value(self, number: int) -> np.ndarray:
        value = self.rules.rules[number].value
        if value is not None:
            return value
        counts = self._evidence(self._which[[number]])[0]
        return counts / counts.sum() if counts.sum() > 0 else self.prior / self.prior.sum()

    @property
    def rows_at_once(self) -> int:
        """Rows, or masks, per batch, to bound memory."""
        return max(1, CELLS_AT_ONCE // self.values.size)

    def degrees(self, inputs: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(n, L) firing degrees by the observed conditions; 0 = the rule is contradicted."""
        present = seen[:, self.columns]
        looked_up = self._firing.look_up(inputs[:, self.columns])
        return self._reached(self._firing(len(inputs), looked_up, present), present)

    def reduce(self, masks: np.ndarray) -> list[Reduced]:
        """The rules under each of the masks (m, P)."""
        found = self._reduced(masks[:, self.columns])
        return [Reduced(*parts) for parts in zip(found.counts, found.kept, found.whole, strict=True)]

    def _reduced(self, masks: np.ndarray, wanted: np.ndarray | None = None) -> Reduced:
        """The rules under masks (m, U) of the used columns, (m, L, ...); counts are 0 for rules not `wanted` (m, L)."""
        kept = meets(masks, self.uses)  # (m, L) whether a condition is left
        signatures = np.zeros(kept.shape, dtype=np.uint64)
        for u in range(len(self.columns)):
            signatures[masks[:, u]] ^= self._words[:, u]
        asked = kept if wanted is None else wanted & kept
        counts = np.zeros((*kept.shape, self.n_classes))
        mask_at, rule_at = np.nonzero(asked)
        counts[asked] = self._counts(signatures[asked], mask_at, rule_at, masks)
        return Reduced(counts, kept, ~meets(~masks, self.uses))

    def _counts(self, signatures: np.ndarray, mask_at: np.ndarray, rule_at: np.ndarray, masks: np.ndarray) -> Any:
        """(E, C) class counts of sub-rules: rule ``rule_at[e]`` under ``masks[mask_at[e]]``."""
        unique, first, inverse = np.unique(signatures, return_index=True, return_inverse=True)

        def count(missing: np.ndarray) -> np.ndarray:
            at = first[missing]
            return self._evidence(np.where(masks[mask_at[at]], self._which[rule_at[at]], -1))

        return self.cache.get(unique, count)[inverse]

    def answer(self, inputs: np.ndarray, seen: np.ndarray, combine: Combine, own: np.ndarray | None = None) -> Any:
        """(n, C) for rows (n, P) of which `seen` (n, P) is observed, by `combine`.

        `own` (n,) is the class of training rows to be left out of their own predictions.
        """
        out = np.empty((len(inputs), self.n_classes))
        step = self.rows_at_once
        for start in range(0, len(inputs), step):
            part = slice(start, start + step)
            out[part] = self._answer(inputs[part], seen[part], combine, None if own is None else own[part])
        return out

    def _answer(self, inputs: np.ndarray, seen: np.ndarray, combine: Combine, own: np.ndarray | None) -> np.ndarray:
        degrees = self.degrees(inputs, seen)
        masks, number = unique_masks(seen[:, self.columns])
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(len(masks)))
        found = self._reduced(masks, np.logical_or.reduceat(degrees[order] > 0, starts, axis=0))
        if degrees.size * self.n_classes < CELLS_PER_MASK * len(masks):
            return combine(degrees, Reduced(found.counts[number], found.kept[number], found.whole[number]), own)
        out = np.empty((len(inputs), self.n_classes))
        for m, rows in enumerate(np.split(order, starts[1:])):
            reduced = Reduced(found.counts[m], found.kept[m], found.whole[m])
            out[rows] = combine(degrees[rows], reduced, None if own is None else own[rows])
        return out

    def answer_grid(self, inputs: np.ndarray, masks: np.ndarray, combine: Combine) -> Iterator[np.ndarray]:
        """For each of the masks (m, P) in turn, (n, C) for all rows (n, P), with one lookup of the rows."""
        looked_up = self._firing.look_up(inputs[:, self.columns])
        step = self.rows_at_once
        for start in range(0, len(masks), step):
            part = masks[start : start + step]
            for mask, reduced in zip(part, self.reduce(part), strict=True):
                present = mask[self.columns]
                degrees = self._reached(self._firing(len(inputs), looked_up, present), present[None])
                yield combine(degrees, reduced, None)

    def _reached(self, degrees: np.ndarray, present: np.ndarray) -> np.ndarray:
        """In a list of "else if", rules after one that fires with all its conditions are never reached."""
        if not self.rules.ordered:
            return degrees
        whole = ~meets(~present, self.uses)
        settled = np.cumsum((degrees > 0) & whole, axis=1)
        return np.where(settled - ((degrees > 0) & whole) > 0, 0.0, degrees)
