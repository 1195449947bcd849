"""What a feature is expected to save in the cost of errors, from the completions of a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from askwise.epistemic import BeliefModel
from askwise.predict.belief import Completions
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.schema import Schema
from askwise.value.base import State
from askwise.value.neighbors import completed, knowing_nothing
from askwise.value.outcomes import Outcomes
from askwise.value.reductions import DOUBT, Evidence, Level, predicted_outcomes, shrunk_outcomes

ROWS_AT_ONCE = 64
MOST_PAIRED = 12
"""Features per case that are also considered in pairs, those that save most on their own."""
PAIRED_OUTCOMES = 4
ROWS_FOR_PAIRS = 12
"""Resolution of the outcomes of a pair: numbers in three bins, so that each cell of two features has completions."""


class Savings(NamedTuple):
    """Expected savings of n cases, in the unit of the error costs, by features on their own, in pairs, and together.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.acquisition import nothing_known
    >>> from askwise.value import NeighborSavings
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> beliefs, schema = selector.beliefs_, selector.schema_
    >>> state = nothing_known(schema, selector.prices_, beliefs, schema.encode(X[:1]))
    >>> value = NeighborSavings(beliefs, schema, 10 * (1 - np.eye(3)))
    >>> found = value.savings(state)
    >>> found.single.shape, found.all.shape
    ((1, 4), (1,))
    """

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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.acquisition import nothing_known
    >>> from askwise.value import NeighborSavings
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> beliefs, schema = selector.beliefs_, selector.schema_
    >>> state = nothing_known(schema, selector.prices_, beliefs, schema.encode(X[:1]))
    >>> value = NeighborSavings(beliefs, schema, 10 * (1 - np.eye(3)))
    >>> found = value.savings(state)
    >>> found.single.argmax(axis=1).tolist()
    [3]
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
        self._coarse = np.minimum(coarse.of_row - coarse.of_row.min(axis=0), PAIRED_OUTCOMES - 1)  # (N, M)
        self._outcomes = Outcomes.of_features(scores, schema, predictor.neighbors_.n_neighbors, random_state)
        completions, outcomes = knowing_nothing(self.beliefs, schema, scores, random_state)
        unknown = np.zeros((1, len(schema.features)), dtype=bool)
        self._at_the_start = self._of_completions(self._halfway_to_labels(completions), unknown, outcomes)

    def savings(self, state: State) -> Savings:
        """The expected savings of the features of a state."""
        begun = np.any(state.rows.observed, axis=1)
        out = self._at_the_start.take(np.zeros(len(begun), dtype=int))
        if begun.any():
            belief = completed(self.beliefs, state, begun, members=False)
            assert belief.completions is not None
            found = self._of_completions(belief.completions, state.mask[begun], self._outcomes)
            for part, new in zip(out, found, strict=True):
                part[begun] = new
        return out

    def _halfway_to_labels(self, found: Completions) -> Completions:
        """Completions with answers between those of the model, which has seen these rows, and their labels.

        On rows that it has seen, a model that overfits promises savings that it does not keep on new ones.
        """
        labels = np.eye(len(self.error_costs))[self.predictor.pool_labels()[found.index]]  # (n, K, C)
        return replace(found, answers=(found.answers[:, :, :1] + labels[:, :, None]) / 2)

    def _of_completions(self, found: Completions, mask: np.ndarray, outcomes: Outcomes) -> Savings:
        blocks = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(mask), ROWS_AT_ONCE)]
        parts = [self._of_block(found.take(block), mask[block], outcomes) for block in blocks]
        return Savings.concatenated(parts)

    def _of_block(self, found: Completions, mask: np.ndarray, outcomes: Outcomes) -> Savings:
        answers = found.answers[:, :, 0]  # (n, K, C) of the wrapped model
        n_classes = answers.shape[2]
        single, error, relevance = (np.zeros(mask.shape) for _ in range(3))
        if not mask.all():
            each = predicted_outcomes(found.index, found.weights, answers, outcomes, ~mask, n_classes)
            at = each.case, each.feature
            single[at], error[at] = self._saving(each.level, each.after, each.evidence)
            relevance[at] = each.information()
        pairs = most_promising_pairs(np.where(mask, -1.0, single), np.where(mask, -1.0, relevance))
        before = np.repeat(Evidence.of(found.weights, answers, n_classes).before, answers.shape[1], axis=1)
        regret = self._regret(answers.reshape(-1, n_classes).T, before).reshape(found.weights.shape)
        everything = (found.weights * regret).sum(axis=1)
        return Savings(single, error, pairs, *self._of_pairs(found, answers, pairs), everything, relevance)

    def _of_pairs(self, found: Completions, answers: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, P) savings and standard errors of pairs, whose joint outcomes are the cells of a coarse table."""
        n, n_pairs = pairs.shape[:2]
        if not n_pairs:
            return np.zeros((n, 0)), np.zeros((n, 0))
        first, second = (self._coarse[found.index[:, None], pairs[..., side, None]] for side in (0, 1))  # (n, P, K)
        n_cells = PAIRED_OUTCOMES**2
        cell = first * PAIRED_OUTCOMES + second + n_cells * np.arange(n * n_pairs).reshape(n, n_pairs, 1)
        joint = np.stack(
            [
                np.bincount(
                    cell.ravel(),
                    np.broadcast_to((found.weights * answers[..., c])[:, None], cell.shape).ravel(),
                    minlength=n * n_pairs * n_cells,
                )
                for c in range(answers.shape[2])
            ],
            axis=1,
        )
        occurring = np.flatnonzero(joint.any(axis=1))
        repeated = Evidence.of(found.weights, answers, answers.shape[2], np.repeat(np.arange(n), n_pairs))
        # The coarse outcomes are those of the first feature: what the second adds must exceed chance.
        doubt = np.full(n * n_pairs, DOUBT)
        level, after = shrunk_outcomes(
            joint[occurring], occurring // n_cells, occurring // PAIRED_OUTCOMES, repeated, doubt
        )
        saving, error = self._saving(level, after, repeated)
        return saving.reshape(n, n_pairs), error.reshape(n, n_pairs)

    def _saving(self, level: Level, after: np.ndarray, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        """(P,) expected saving over outcomes with the predictions `after` (C, b), and its standard error."""
        regret = self._regret(after, evidence.before.take(level.pair, axis=1))
        saving = np.add.reduceat(level.chance * regret, level.start)
        variance = np.maximum(np.add.reduceat(level.chance * regret**2, level.start) - saving**2, 0.0)
        return saving, np.sqrt(variance / evidence.size)

    def _regret(self, after: np.ndarray, before: np.ndarray) -> np.ndarray:
        """(b,) how much the decision for `before` (C, b) costs more than the best one for `after` (C, b)."""
        costs = self.error_costs.T @ after
        now = (self.error_costs.T @ before).argmin(axis=0)
        return np.asarray(np.maximum(costs[now, np.arange(len(now))] - costs.min(axis=0), 0.0))


def most_promising_pairs(single: np.ndarray, information: np.ndarray) -> np.ndarray:
    """(n, P, 2) pairs of the features with the largest `single` savings (n, M), and of those the most informative."""
    best = np.lexsort((-information, -single), axis=1)[:, :MOST_PAIRED]
    first, second = np.triu_indices(best.shape[1], 1)
    return np.stack([best[:, first], best[:, second]], axis=2)
