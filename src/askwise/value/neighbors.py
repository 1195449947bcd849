"""The value of a feature without training: v_q of Eq. 8 over the completions of the case."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr
from sklearn.cluster import KMeans

from askwise.epistemic import EpistemicEstimator, FeatureDistance
from askwise.predict.conditional import Completions, ConditionalPredictor
from askwise.predict.stacked import StackedModels
from askwise.schema import Schema

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
    predictor
        A fitted `ConditionalPredictor`.
    schema
        The same columns, grouped into features.
    epistemic
        A fitted `EpistemicEstimator`, or None.
    random_state
        Seed of the clusters of grouped columns.
    """

    def __init__(
        self,
        predictor: ConditionalPredictor,
        schema: Schema,
        epistemic: EpistemicEstimator | None = None,
        random_state: int = 0,
    ) -> None:
        self.predictor = predictor
        self.schema = schema
        self.epistemic = epistemic
        members = None if epistemic is None else epistemic.stacked()
        self._with_members = (
            None if members is None else predictor.with_model(StackedModels([predictor.model_, members]))
        )
        self._first: dict[bool, tuple[np.ndarray, np.ndarray]] = {}
        scores = predictor.neighbors_.scale(predictor.pool_)
        self._outcomes = [
            _outcomes(scores[:, members], schema.is_category[members], random_state)
            for members in schema.feature_columns
        ]

    def reductions(self, values: np.ndarray, mask: np.ndarray, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Expected reductions of u and of e by each feature, (n, M) each; the second 0 without members or `risk`."""
        discrepancy, epistemic = np.zeros(mask.shape), np.zeros(mask.shape)
        columns = self.schema.expand(mask) & ~np.isnan(values)
        begun = columns.any(axis=1)
        if not begun.all():
            discrepancy[~begun], epistemic[~begun] = self._at_the_start(values.shape[1], risk)
        asked = self._asked(risk)
        rows_begun = np.flatnonzero(begun)
        for start in range(0, len(rows_begun), ROWS_AT_ONCE):
            rows = rows_begun[start : start + ROWS_AT_ONCE]
            discrepancy[rows], epistemic[rows] = self._of_rows(asked, values[rows], columns[rows], risk)
        return discrepancy, epistemic

    def _asked(self, risk: bool) -> ConditionalPredictor:
        return self._with_members if risk and self._with_members is not None else self.predictor

    def _at_the_start(self, n_columns: int, risk: bool) -> tuple[np.ndarray, np.ndarray]:
        """The reductions of a case of which nothing is known: the same for all, so worth many completions, once."""
        if risk not in self._first:
            nothing = np.full((1, n_columns), np.nan)
            asked = self._asked(risk).with_neighbors(COMPLETIONS_AT_THE_START)
            self._first[risk] = self._of_rows(asked, nothing, np.zeros((1, n_columns), dtype=bool), risk)
        return self._first[risk]

    def _of_rows(
        self, asked: ConditionalPredictor, values: np.ndarray, columns: np.ndarray, risk: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        completions = asked.completions(values, columns)
        discrepancy, epistemic = self._reductions(completions)
        if risk and isinstance(self.epistemic, FeatureDistance):
            epistemic = self._by_trial(values, columns, completions)
        return discrepancy, epistemic

    def _reductions(self, completions: Completions) -> tuple[np.ndarray, np.ndarray]:
        n, n_classes = len(completions.index), len(self.predictor.classes_)
        before = np.maximum(completions.mean(), SMALLEST)[:, None, :]  # (n, 1, C), or (n, 1, (1 + k) C) with members
        weighted = completions.weights[:, :, None] * completions.proba
        around_the_mean = self.epistemic is not None and self.epistemic.around_the_mean
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

    def _by_trial(self, values: np.ndarray, columns: np.ndarray, completions: Completions) -> np.ndarray:
        """Expected reduction of an e that has no members, by trying the likeliest values."""
        assert isinstance(self.epistemic, FeatureDistance)
        before = self.epistemic.distance(values, columns)
        likely = np.argsort(-completions.weights, axis=1, kind="stable")[:, :N_TRIALS]
        index = np.take_along_axis(completions.index, likely, axis=1)
        weights = np.take_along_axis(completions.weights, likely, axis=1)
        n_trials, n_features = likely.shape[1], len(self.schema.feature_columns)
        tried = np.tile(values, (n_features, n_trials, 1, 1))  # (M, trials, n, D): one feature filled in each
        for i, members in enumerate(self.schema.feature_columns):
            tried[i][:, :, members] = self.predictor.pool_[index.T][:, :, members]
        cells = tried.reshape(-1, values.shape[1])
        found = self.epistemic.distance(cells, ~np.isnan(cells)).reshape(n_features, n_trials, -1)
        after = np.einsum("itn,nt->ni", found, weights / weights.sum(axis=1, keepdims=True))
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
