"""The value of a feature without training: v_q of Eq. 8 over the completions of the case."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr
from sklearn.cluster import KMeans

from askwise.epistemic import BeliefModel, FeatureDistance
from askwise.predict.belief import Belief, Completions
from askwise.predict.conditional import ConditionalPredictor
from askwise.rows import EncodedRows
from askwise.schema import Schema
from askwise.value.base import State

N_OUTCOMES = 8
PRIOR_WEIGHT = 0.1
BIN_SIMILARITY = np.exp(-2.0 * np.subtract.outer(np.arange(N_OUTCOMES), np.arange(N_OUTCOMES)) ** 2)
ROWS_AT_ONCE = 256
COMPLETIONS_AT_THE_START = 1000
N_TRIALS = 5
SMALLEST = 1e-12


class NeighborValue:
    r"""Expected reduction of discrepancy and of epistemic uncertainty, straight from completions of the case.

    The K completions of a case (pool rows :math:`l` with weights :math:`w_l`) give the wrapped model's answers
    :math:`f_l`: each is the full prediction of one way the case may turn out. A feature's outcomes are bins of a
    number, categories, or clusters of a group's columns. After outcome :math:`b` of feature :math:`i` the prediction
    is the mean of the :math:`f_l` that share it, :math:`p_b`, shrunk towards :math:`p_S`, and by Lemma 1

    .. math:: E[u(S) - u(S + i)] = \sum_l w_l \sum_y f_l(y) \log \frac{p_{b(l)}(y)}{p_S(y)}

    The same means of the ensemble members' answers give :math:`E[e(S) - e(S + i)]`. One set of K model calls per case
    serves all candidates.

    Parameters
    ----------
    beliefs
        Completes cases: a `BeliefModel` around a `ConditionalPredictor`.
    schema
        The same columns, grouped into features.
    random_state
        Seed of the clusters of grouped columns.
    """

    def __init__(self, beliefs: BeliefModel, schema: Schema, random_state: int = 0) -> None:
        self.beliefs = beliefs
        self.schema = schema
        predictor = beliefs.predictor
        assert isinstance(predictor, ConditionalPredictor)
        self.predictor = predictor
        scores = predictor.neighbors_.scale(predictor.pool_)
        self._outcomes = [
            _outcomes(scores[:, columns], schema.is_category[columns], random_state)
            for columns in schema.feature_columns
        ]
        self._first = self._at_the_start()

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Expected reductions of u and of e by each feature, (n, M) each; the second 0 without members or `risk`."""
        discrepancy, epistemic = np.zeros(state.mask.shape), np.zeros(state.mask.shape)
        begun = np.any(state.rows.observed, axis=1)
        discrepancy[~begun], epistemic[~begun] = self._first
        if begun.any():
            rows = state.rows.take(begun)
            belief = self._belief(state, begun, risk)
            discrepancy[begun], epistemic[begun] = self._of_belief(belief, rows, risk)
        return discrepancy, epistemic if risk else np.zeros(state.mask.shape)

    def _belief(self, state: State, rows: np.ndarray, risk: bool) -> Belief:
        """The belief of the state where it holds completions, else one of our own."""
        if state.beliefs.predictor is self.predictor:
            return state.belief_of(rows)
        return self.beliefs.believe(state.rows.take(rows), members=risk)

    def _at_the_start(self) -> tuple[np.ndarray, np.ndarray]:
        """The reductions of a case of which nothing is known: the same for all, so worth many completions, once."""
        nothing = EncodedRows(np.full((1, len(self.schema.columns)), np.nan))
        many = BeliefModel(self.predictor.with_neighbors(COMPLETIONS_AT_THE_START), self.beliefs.epistemic)
        return self._of_belief(many.believe(nothing), nothing, True)

    def _of_belief(self, belief: Belief, rows: EncodedRows, risk: bool) -> tuple[np.ndarray, np.ndarray]:
        assert belief.completions is not None
        parts = [
            self._reductions(belief.completions.take(slice(start, start + ROWS_AT_ONCE)))
            for start in range(0, len(rows), ROWS_AT_ONCE)
        ]
        discrepancy, epistemic = (np.concatenate(part) for part in zip(*parts, strict=True))
        if risk and isinstance(self.beliefs.epistemic, FeatureDistance):
            epistemic = self._by_trial(rows, belief.completions)
        return discrepancy, epistemic

    def _reductions(self, completions: Completions) -> tuple[np.ndarray, np.ndarray]:
        n, n_classes = len(completions.index), len(self.predictor.classes_)
        answers = completions.answers.reshape(*completions.index.shape, -1)  # (n, K, (1 + k) C)
        before = np.maximum(completions.mean().reshape(n, 1, -1), SMALLEST)
        weighted = completions.weights[:, :, None] * answers
        around_the_mean = self.beliefs.epistemic is not None and self.beliefs.epistemic.around_the_mean
        e_before = _divergence_of_members(before, n_classes, around_the_mean)[:, 0]
        discrepancy = np.empty((n, len(self._outcomes)))
        epistemic = np.zeros((n, len(self._outcomes)))
        for i, (outcome, similarity) in enumerate(self._outcomes):
            happens = (outcome[completions.index][:, None, :] == np.arange(len(similarity))[:, None]).astype(float)
            joint = happens @ weighted  # (n, B, C): outcome and class together
            chance = happens @ completions.weights[:, :, None]  # (n, B, 1)
            after = (similarity @ joint + PRIOR_WEIGHT * before) / (similarity @ chance + PRIOR_WEIGHT)
            gain = joint[..., :n_classes] * np.log(after[..., :n_classes] / before[..., :n_classes])
            discrepancy[:, i] = gain.sum(axis=(1, 2))
            e_after = _divergence_of_members(after, n_classes, around_the_mean)
            epistemic[:, i] = e_before - (chance[..., 0] * e_after).sum(axis=1)
        return discrepancy, epistemic

    def _by_trial(self, rows: EncodedRows, completions: Completions) -> np.ndarray:
        """Expected reduction of an e that has no members, by trying the likeliest values."""
        distance = self.beliefs.epistemic
        assert isinstance(distance, FeatureDistance)
        before = distance.distance(rows)
        likely = np.argsort(-completions.weights, axis=1, kind="stable")[:, :N_TRIALS]
        index = np.take_along_axis(completions.index, likely, axis=1)
        weights = np.take_along_axis(completions.weights, likely, axis=1)
        n_trials, n_features = likely.shape[1], len(self.schema.feature_columns)
        tried = np.tile(rows.values, (n_features, n_trials, 1, 1))  # (M, trials, n, D): one feature filled in each
        for i, columns in enumerate(self.schema.feature_columns):
            tried[i][:, :, columns] = self.predictor.pool_[index.T][:, :, columns]
        found = distance.distance(rows.with_values(tried.reshape(-1, rows.values.shape[1])))
        after = np.einsum(
            "itn,nt->ni", found.reshape(n_features, n_trials, -1), weights / weights.sum(axis=1, keepdims=True)
        )
        return before[:, None] - after


def _divergence_of_members(proba: np.ndarray, n_classes: int, around_the_mean: bool) -> np.ndarray:
    """(n, B, (1 + k) C), the primary prediction first -> e of Eq. 13 (or Eq. 17), (n, B); 0 without members."""
    primary, *members = np.split(proba, proba.shape[-1] // n_classes, axis=-1)
    if not members:
        return np.zeros(proba.shape[:-1])
    if around_the_mean:
        primary = np.mean(members, axis=0)
    return np.mean([rel_entr(member, primary).sum(axis=-1) for member in members], axis=0)


def _outcomes(scores: np.ndarray, is_category: np.ndarray, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """What a feature can turn out to be: the outcome of each pool row, (N,), and how alike outcomes are, (B, B)."""
    if len(is_category) > 1:
        return _clusters(scores, is_category, random_state)
    cells = scores[:, 0]
    missing = np.isnan(cells)
    if is_category[0]:
        codes, counts = np.unique(cells[~missing], return_counts=True)
        frequent = codes[np.argsort(-counts, kind="stable")][: 2 * N_OUTCOMES]
        rank = {code: r for r, code in enumerate(frequent)}
        outcome = np.array([rank.get(code, len(frequent)) for code in cells])
        return outcome, np.eye(len(frequent) + 1)
    edges = np.quantile(cells[~missing], np.linspace(0, 1, N_OUTCOMES + 1)[1:-1])
    outcome = np.searchsorted(edges, cells, side="right")
    similarity = np.eye(N_OUTCOMES + 1)  # the last outcome: not there
    similarity[:N_OUTCOMES, :N_OUTCOMES] = BIN_SIMILARITY
    return np.where(missing, N_OUTCOMES, outcome), similarity


def _clusters(scores: np.ndarray, is_category: np.ndarray, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    parts = [
        (scores[:, [j]] == np.unique(scores[:, j])).astype(float) if is_category[j] else np.nan_to_num(scores[:, [j]])
        for j in range(len(is_category))
    ]
    points = np.hstack(parts)
    k = min(N_OUTCOMES, len(np.unique(points, axis=0)))
    return np.asarray(KMeans(k, n_init=1, random_state=random_state).fit_predict(points)), np.eye(k)
