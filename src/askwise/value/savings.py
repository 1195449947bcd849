"""What a feature is expected to save in the cost of errors, from the completions of a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.predict.belief import Completions
from askwise.predict.conditional import ConditionalPredictor
from askwise.rows import EncodedRows
from askwise.schema import Schema
from askwise.value.base import State
from askwise.value.outcomes import Outcomes
from askwise.value.reductions import Evidence, information, predictions_after

ROWS_AT_ONCE = 64
COMPLETIONS_AT_THE_START = 1000
MOST_PAIRED = 12
"""Features per case that are also considered in pairs, those that save most on their own."""
PAIRED_OUTCOMES = 4
ROWS_FOR_PAIRS = 12
"""Resolution of the outcomes of a pair: numbers in three bins, so that each cell of two features has completions."""


class Savings(NamedTuple):
    """Expected savings of n cases, in the unit of the error costs, by features on their own, in pairs, and together."""

    single: np.ndarray  # (n, M)
    single_error: np.ndarray  # (n, M) standard errors
    pairs: np.ndarray  # (n, P, 2) positions of the features
    paired: np.ndarray  # (n, P)
    paired_error: np.ndarray  # (n, P)
    all: np.ndarray  # (n,) by everything that is not known
    information: np.ndarray  # (n, M) expected reduction of discrepancy by each feature

    def take(self, rows: np.ndarray) -> Savings:
        """The savings of some cases."""
        return Savings(*(part[rows] for part in self))

    def less_errors(self, n_errors: float) -> Savings:
        """Savings lower by `n_errors` standard errors."""
        single, paired = self.single - n_errors * self.single_error, self.paired - n_errors * self.paired_error
        return self._replace(single=single, paired=paired)

    @classmethod
    def concatenated(cls, parts: Sequence[Savings]) -> Savings:
        """The savings of several blocks of cases as one."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class NeighborSavings:
    r"""Expected saving of each feature: the cost of the best decision now minus that of the best decision after it.

    .. math:: \min_d \sum_y p_S(y) c(y, d) - \sum_b P(b) \min_d \sum_y p_b(y) c(y, d)

    over the outcomes :math:`b` of the feature among the completions of the case, where :math:`p_b` is shrunk towards
    :math:`p_S` (see `expected_reductions`): the minimum over noisy means would promise savings where there are none.

    Parameters
    ----------
    beliefs
        Completes cases: a `BeliefModel` around a `ConditionalPredictor`.
    schema
        The columns, grouped into features.
    error_costs
        (C, C) cost of deciding for a class (column) where another is true (row).
    random_state
        Seed of the clusters of grouped columns.
    """

    def __init__(self, beliefs: BeliefModel, schema: Schema, error_costs: np.ndarray, random_state: int = 0) -> None:
        predictor = beliefs.predictor
        assert isinstance(predictor, ConditionalPredictor)
        self.beliefs = beliefs.without_members()
        self.predictor = predictor
        self.schema = schema
        self.error_costs = error_costs
        scores = predictor.neighbors_.scale(predictor.pool_)
        coarse = Outcomes.of_features(scores, schema, ROWS_FOR_PAIRS, random_state)
        self._coarse = np.stack([np.minimum(outcomes.of_row, PAIRED_OUTCOMES - 1) for outcomes in coarse])  # (M, N)
        self._outcomes = Outcomes.of_features(scores, schema, predictor.neighbors_.n_neighbors, random_state)
        self._at_the_start = self._of_nothing(scores, random_state)

    def savings(self, state: State) -> Savings:
        """The expected savings of the features of a state."""
        begun = np.any(state.rows.observed, axis=1)
        out = self._at_the_start.take(np.zeros(len(begun), dtype=int))
        if begun.any():
            same = state.beliefs.predictor is self.predictor
            belief = state.belief_of(begun) if same else self.beliefs.believe(state.rows.take(begun))
            assert belief.completions is not None
            found = self._of_completions(belief.completions, state.mask[begun], self._outcomes)
            for part, new in zip(out, found, strict=True):
                part[begun] = new
        return out

    def _of_nothing(self, scores: np.ndarray, random_state: int) -> Savings:
        """The savings where nothing is known, which is the same for all cases, from many completions."""
        nothing = EncodedRows(np.full((1, scores.shape[1]), np.nan))
        found = self.predictor.with_neighbors(COMPLETIONS_AT_THE_START).believe(nothing).completions
        assert found is not None
        outcomes = Outcomes.of_features(scores, self.schema, found.index.shape[1], random_state)
        return self._of_completions(found, np.zeros((1, len(outcomes)), dtype=bool), outcomes)

    def _of_completions(self, found: Completions, mask: np.ndarray, outcomes: list[Outcomes]) -> Savings:
        blocks = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(mask), ROWS_AT_ONCE)]
        parts = [self._of_block(found.take(block), mask[block], outcomes) for block in blocks]
        return Savings.concatenated(parts)

    def _of_block(self, found: Completions, mask: np.ndarray, outcomes: list[Outcomes]) -> Savings:
        answers = found.answers[:, :, 0]  # (n, K, C) of the wrapped model
        evidence = Evidence.of(found.weights, answers, answers.shape[2])
        each = [self._of_feature(found, answers, outcome, evidence) for outcome in outcomes]
        single, error, relevance = (np.where(mask, 0.0, np.stack(part, axis=1)) for part in zip(*each, strict=True))
        pairs = most_promising_pairs(np.where(mask, -1.0, single), np.where(mask, -1.0, relevance))
        full = np.ascontiguousarray(answers.transpose(2, 0, 1))
        everything = (found.weights * self._regret(full, evidence.before)).sum(axis=1)
        return Savings(single, error, pairs, *self._of_pairs(found, answers, pairs, evidence), everything, relevance)

    def _of_feature(
        self, found: Completions, answers: np.ndarray, outcome: Outcomes, evidence: Evidence
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) expected saving, its standard error, and expected reduction of discrepancy by one feature."""
        joint = joint_with(outcome.of_row[found.index], len(outcome.parent), found.weights, answers)
        chance = joint.sum(axis=0)
        after = predictions_after(joint, chance, outcome.parent, evidence)
        return *self._saving(chance, after, evidence), information(joint, chance, after, evidence)

    def _of_pairs(
        self, found: Completions, answers: np.ndarray, pairs: np.ndarray, evidence: Evidence
    ) -> tuple[np.ndarray, np.ndarray]:
        """(n, P) savings and standard errors of pairs, whose joint outcomes are the cells of a coarse table."""
        n, n_pairs = pairs.shape[:2]
        first, second = (self._coarse[pairs[..., side, None], found.index[:, None]] for side in (0, 1))  # (n, P, K)
        cell = (first * PAIRED_OUTCOMES + second).reshape(n * n_pairs, -1)
        weights = np.repeat(found.weights, n_pairs, axis=0)
        joint = joint_with(cell, PAIRED_OUTCOMES**2, weights, np.repeat(answers, n_pairs, axis=0))
        repeated = Evidence(
            np.repeat(evidence.before, n_pairs, axis=1),
            np.repeat(evidence.spread, n_pairs),
            np.repeat(evidence.size, n_pairs),
            evidence.n_classes,
        )
        chance = joint.sum(axis=0)
        of_first = np.arange(PAIRED_OUTCOMES**2) // PAIRED_OUTCOMES  # what the second adds must exceed chance
        after = predictions_after(joint, chance, of_first, repeated)
        saving, error = self._saving(chance, after, repeated)
        return saving.reshape(n, n_pairs), error.reshape(n, n_pairs)

    def _saving(self, chance: np.ndarray, after: np.ndarray, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        """(n,) expected saving over outcomes with the predictions `after` (C, n, B), and its standard error."""
        regret = self._regret(after, evidence.before)
        saving = (chance * regret).sum(axis=1)
        variance = np.maximum((chance * regret**2).sum(axis=1) - saving**2, 0.0)
        return saving, np.sqrt(variance / evidence.size)

    def _regret(self, after: np.ndarray, before: np.ndarray) -> np.ndarray:
        """(n, B) how much the decision for `before` (C, n, 1) costs more than the best one for `after` (C, n, B)."""
        costs = np.einsum("cnb,cd->dnb", after, self.error_costs)
        now = np.einsum("cn,cd->dn", before[..., 0], self.error_costs).argmin(axis=0)
        stay = np.take_along_axis(costs, now[None, :, None], axis=0)[0]
        return np.asarray(np.maximum(stay - costs.min(axis=0), 0.0))


def joint_with(cell: np.ndarray, n_cells: int, weights: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """(C, n, B) probability of each class together with each outcome, from the outcomes `cell` (n, K)."""
    n, _, n_classes = answers.shape
    at = (cell + n_cells * np.arange(n)[:, None]).ravel()
    sums = [
        np.bincount(at, (weights * answers[..., c]).ravel(), minlength=n * n_cells).reshape(n, n_cells)
        for c in range(n_classes)
    ]
    return np.stack(sums)


def most_promising_pairs(single: np.ndarray, information: np.ndarray) -> np.ndarray:
    """(n, P, 2) pairs of the features with the largest `single` savings (n, M), and of those the most informative."""
    best = np.lexsort((-information, -single), axis=1)[:, :MOST_PAIRED]
    first, second = np.triu_indices(best.shape[1], 1)
    return np.stack([best[:, first], best[:, second]], axis=2)
