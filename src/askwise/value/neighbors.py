"""The training-free value of a feature: v_q of Eq. 8 over the completions of the case."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from askwise.epistemic import BeliefModel, FeatureDistance
from askwise.predict.belief import Belief, Completions
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.rows import CELLS_AT_ONCE, EncodedRows
from askwise.table.schema import Schema
from askwise.value.base import State
from askwise.value.outcomes import Outcomes
from askwise.value.reductions import expected_reductions

NUMBERS_AT_ONCE = 100_000
"""Outcomes times classes in one block of cases: arrays of this size stay in the processor's cache."""
N_TRIALS = 5
MOST_TRIED = 32
"""Features per row whose effect on e is simulated if there are no members."""


def completed(beliefs: BeliefModel, state: State, rows: np.ndarray, members: bool) -> Belief:
    """The belief of the cases `rows` (n,) bool of a state if its completions are those of `beliefs`, else a new one."""
    if state.beliefs.predictor is beliefs.predictor:
        return state.belief_of(rows)
    return beliefs.believe(state.rows.take(rows), members=members)


def knowing_nothing(
    beliefs: BeliefModel, schema: Schema, scores: np.ndarray, random_state: int
) -> tuple[Completions, Outcomes]:
    """The completions of a case of which nothing is known, and the outcomes of the features.

    It is the same for all cases, so that all pool rows are affordable as completions: the estimate converges to Eq. 8
    as the pool grows. `scores` (N, D) are those of the pool.
    """
    found = beliefs.whole_pool()
    if found is None:
        nothing = EncodedRows(np.full((1, scores.shape[1]), np.nan))
        found = beliefs.with_neighbors(len(scores)).believe(nothing).completions
    assert found is not None
    return found, Outcomes.of_features(scores, schema, len(scores), random_state)


class NeighborValue:
    r"""Expected reduction of discrepancy and of epistemic uncertainty, directly from completions of the case.

    The K completions of a case (pool rows :math:`l` with weights :math:`w_l`) give the wrapped model's answers
    :math:`f_l`: each is the prediction for one possible complete row. By Lemma 1

    .. math:: E[u(S) - u(S + i)] = \sum_l w_l \sum_y f_l(y) \log \frac{p_{b(l)}(y)}{p_S(y)}

    where :math:`p_b` is the prediction after outcome :math:`b` of feature :math:`i` (see `Outcomes`): the mean of the
    :math:`f_l` that share it, shrunk towards :math:`p_S` as far as chance explains the difference (see
    `expected_reductions`). The same means of the ensemble members' answers give :math:`E[e(S) - e(S + i)]`. One set of
    K model calls per case serves all candidates.

    Parameters
    ----------
    beliefs
        Completes cases: a `BeliefModel` around a `ConditionalPredictor`.
    schema
        The columns, grouped into features.
    random_state
        Seed of the clusters of grouped columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import nothing_known
    >>> from askwise.value import NeighborValue
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> beliefs, schema = selector.beliefs_, selector.schema_
    >>> state = nothing_known(schema, selector.prices_, beliefs, schema.encode(X[:1]))
    >>> u, e = NeighborValue(beliefs, schema).reductions(state)
    >>> u.argmax(axis=1).tolist()
    [3]
    """

    def __init__(self, beliefs: BeliefModel, schema: Schema, random_state: int = 0) -> None:
        predictor = beliefs.predictor
        assert isinstance(predictor, ConditionalPredictor)
        self.beliefs = beliefs
        self.predictor = predictor
        self.schema = schema
        self._labels: np.ndarray | None = None
        scores = predictor.neighbors_.scale(predictor.pool_)
        self._outcomes = Outcomes.of_features(scores, schema, predictor.neighbors_.n_neighbors, random_state)
        completions, outcomes = knowing_nothing(beliefs, schema, scores, random_state)
        wanted, nothing = np.ones((1, len(schema.features)), dtype=bool), np.full((1, scores.shape[1]), np.nan)
        self._at_the_start = self._of_completions(completions, EncodedRows(nothing), outcomes, wanted, risk=True)

    def by_labels(self) -> NeighborValue:
        """The same value with the labels of the pool rows in place of the model's answers, once something is known.

        For a model that overfits where features interact: what it makes of irrelevant features is not worth a price.
        """
        other = copy.copy(self)
        other._labels = self.predictor.pool_labels()
        return other

    def by_answers(self) -> NeighborValue:
        """The same value with the model's answers, as it is without `by_labels`."""
        other = copy.copy(self)
        other._labels = None
        return other

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Expected reductions of u and of e by each feature, (n, M) each; the second is 0 without members or `risk`."""
        discrepancy, epistemic = np.zeros(state.mask.shape), np.zeros(state.mask.shape)
        begun = np.any(state.rows.observed, axis=1)
        discrepancy[~begun], epistemic[~begun] = self._at_the_start
        if begun.any():
            found = completed(self.beliefs, state, begun, members=risk).completions
            assert found is not None
            rows, wanted = state.rows if begun.all() else state.rows.take(begun), ~state.mask[begun]
            discrepancy[begun], epistemic[begun] = self._of_completions(found, rows, self._outcomes, wanted, risk)
        return discrepancy, epistemic * risk

    def _of_completions(
        self, found: Completions, rows: EncodedRows, outcomes: Outcomes, wanted: np.ndarray, risk: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        n, _, n_models, n_classes = found.answers.shape
        n_models = n_models if risk else 1
        step = max(1, NUMBERS_AT_ONCE // (len(outcomes.coarse) * n_models * n_classes))
        discrepancy, epistemic = np.empty((2, *wanted.shape))
        for block in (slice(start, start + step) for start in range(0, n, step)):
            part = found if step >= n else found.take(block)
            where = part.index, part.weights
            common: dict[str, Any] = {"outcomes": outcomes, "wanted": wanted[block], "n_classes": n_classes}
            if n_models > 1:
                members = part.answers[:, :, :n_models].reshape(*part.index.shape, -1)
                both = expected_reductions(*where, members, **common, around_the_mean=self.beliefs.around_the_mean)
                discrepancy[block], epistemic[block] = both
            if n_models == 1 or self._labels is not None:  # labels say nothing about the agreement of members
                own = part.answers[:, :, 0] if self._labels is None else self.answers(part)
                discrepancy[block], nothing = expected_reductions(*where, own, **common)
                epistemic[block] = nothing if n_models == 1 else epistemic[block]
        if risk and isinstance(self.beliefs.epistemic, FeatureDistance):
            epistemic = self._by_trial(rows, found, discrepancy)
        return discrepancy, epistemic

    def answers(self, found: Completions) -> np.ndarray:
        """(n, K, C) what each completion says about the class: the model's answer, or a label."""
        if self._labels is None:
            return found.answers[:, :, 0]
        return np.eye(found.answers.shape[3])[self._labels[found.index]]

    def _by_trial(self, rows: EncodedRows, completions: Completions, discrepancy: np.ndarray) -> np.ndarray:
        """Expected reduction of e without members, by simulating the likeliest values of the best features.

        The features that are not simulated get the mean of those that are, so that they do not rank above all of
        those, whatever the sign of the risk weight.
        """
        assert isinstance(self.beliefs.epistemic, FeatureDistance)
        known = self.schema.any_column(rows.observed)
        tried = np.argsort(np.where(known, np.inf, -discrepancy), axis=1, kind="stable")[:, :MOST_TRIED]
        likely = np.argsort(-completions.weights, axis=1, kind="stable")[:, :N_TRIALS]
        index = np.take_along_axis(completions.index, likely, axis=1)
        weights = np.take_along_axis(completions.weights, likely, axis=1)
        weights /= weights.sum(axis=1, keepdims=True)
        reduction = np.repeat(self.beliefs.epistemic.distance(rows)[:, None], tried.shape[1], axis=1)
        step = max(1, CELLS_AT_ONCE // (tried.shape[1] * weights.shape[1] * rows.values.shape[1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            reduction[part] -= self._distance_after(rows.take(part), tried[part], index[part], weights[part])
        counted = ~np.take_along_axis(known, tried, axis=1)
        mean = (reduction * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
        out = np.repeat(mean[:, None], discrepancy.shape[1], axis=1)
        np.put_along_axis(out, tried, reduction, axis=1)
        return out

    def _distance_after(
        self, rows: EncodedRows, tried: np.ndarray, index: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """(n, F) mean distance after each feature of `tried` (n, F) took the values of pool rows `index` (n, T)."""
        assert isinstance(self.beliefs.epistemic, FeatureDistance)
        filled = self.schema.owner == tried[:, :, None, None]  # (n, F, 1, D)
        cells = np.where(filled, self.predictor.pool_[index][:, None], rows.values[:, None, None])
        found = self.beliefs.epistemic.distance(rows.with_values(cells.reshape(-1, rows.values.shape[1])))
        return np.einsum("nft,nt->nf", found.reshape(*tried.shape, -1), weights)
