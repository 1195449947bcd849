"""The value of a feature without training: v_q of Eq. 8 over the completions of the case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askwise.epistemic import EpistemicEstimator, FeatureDistance
from askwise.predict.conditional import Completions, ConditionalPredictor
from askwise.predict.neighbors import CELLS_AT_ONCE
from askwise.predict.stacked import StackedModels
from askwise.schema import Schema
from askwise.value.outcomes import Outcomes
from askwise.value.reductions import expected_reductions

ROWS_AT_ONCE = 256
COMPLETIONS_AT_THE_START = 1000
N_TRIALS = 5
MOST_TRIED = 32
"""Features per row whose effect on an e without members is tried out."""


class NeighborValue:
    r"""Expected reduction of discrepancy and of epistemic uncertainty, straight from completions of the case.

    The K completions of a case (pool rows :math:`l` with weights :math:`w_l`) give the wrapped model's answers
    :math:`f_l`: each is the full prediction of one way the case may turn out. By Lemma 1

    .. math:: E[u(S) - u(S + i)] = \sum_l w_l \sum_y f_l(y) \log \frac{p_{b(l)}(y)}{p_S(y)}

    where :math:`p_b` is the prediction after outcome :math:`b` of feature :math:`i` (see `Outcomes`): the mean of the
    :math:`f_l` that share it, shrunk towards :math:`p_S` as far as chance explains the difference (see
    `expected_reductions`). The same means of the ensemble members' answers give :math:`E[e(S) - e(S + i)]`. One set of
    K model calls per case serves all candidates.

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
            predictor if members is None else predictor.with_model(StackedModels([predictor.model_, members]))
        )
        scores = predictor.neighbors_.scale(predictor.pool_)
        self._at_the_start = self._of_nothing(scores, random_state)
        self._outcomes = Outcomes.of_features(scores, schema, predictor.neighbors_.n_neighbors, random_state)

    def reductions(self, values: np.ndarray, mask: np.ndarray, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Expected reductions of u and of e by each feature, (n, M) each; the second 0 without members or `risk`."""
        discrepancy, epistemic = np.zeros(mask.shape), np.zeros(mask.shape)
        columns = self.schema.expand(mask) & ~np.isnan(values)
        begun = columns.any(axis=1)
        discrepancy[~begun] = self._at_the_start[0]
        epistemic[~begun] = self._at_the_start[1] * risk
        asked = self._with_members if risk else self.predictor
        rows_begun = np.flatnonzero(begun)
        for start in range(0, len(rows_begun), ROWS_AT_ONCE):
            rows = rows_begun[start : start + ROWS_AT_ONCE]
            discrepancy[rows], epistemic[rows] = self._of_rows(asked, self._outcomes, values[rows], columns[rows], risk)
        return discrepancy, epistemic

    def _of_nothing(self, scores: np.ndarray, random_state: int) -> tuple[np.ndarray, np.ndarray]:
        """The reductions of a case of which nothing is known: the same for all, so worth many completions."""
        nothing = np.full((1, scores.shape[1]), np.nan)
        asked = self._with_members.with_neighbors(COMPLETIONS_AT_THE_START)
        outcomes = Outcomes.of_features(scores, self.schema, asked.neighbors_.n_neighbors, random_state)
        return self._of_rows(asked, outcomes, nothing, ~np.isnan(nothing), risk=True)

    def _of_rows(
        self,
        asked: ConditionalPredictor,
        outcomes: Sequence[Outcomes],
        values: np.ndarray,
        columns: np.ndarray,
        risk: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        completions = asked.completions(values, columns)
        around_the_mean = self.epistemic is not None and self.epistemic.around_the_mean
        discrepancy, epistemic = expected_reductions(
            completions.index,
            completions.weights,
            completions.proba,
            outcomes,
            n_classes=len(self.predictor.classes_),
            around_the_mean=around_the_mean,
        )
        if risk and isinstance(self.epistemic, FeatureDistance):
            epistemic = self._by_trial(values, columns, completions, discrepancy)
        return discrepancy, epistemic

    def _by_trial(
        self, values: np.ndarray, columns: np.ndarray, completions: Completions, discrepancy: np.ndarray
    ) -> np.ndarray:
        """Expected reduction of an e that has no members, by trying the likeliest values of the best features.

        The features that are not tried get the mean of those that are: then none of them comes before all of the
        tried ones, whatever the sign of the risk weight, and prices decide as if e were equal.
        """
        assert isinstance(self.epistemic, FeatureDistance)
        known = self.schema.any_column(columns)
        tried = np.argsort(np.where(known, np.inf, -discrepancy), axis=1, kind="stable")[:, :MOST_TRIED]
        likely = np.argsort(-completions.weights, axis=1, kind="stable")[:, :N_TRIALS]
        index = np.take_along_axis(completions.index, likely, axis=1)
        weights = np.take_along_axis(completions.weights, likely, axis=1)
        weights /= weights.sum(axis=1, keepdims=True)
        reduction = np.repeat(self.epistemic.distance(values, columns)[:, None], tried.shape[1], axis=1)
        step = max(1, CELLS_AT_ONCE // (tried.shape[1] * weights.shape[1] * values.shape[1]))
        for start in range(0, len(values), step):
            rows = slice(start, start + step)
            reduction[rows] -= self._distance_after(values[rows], tried[rows], index[rows], weights[rows])
        counted = ~np.take_along_axis(known, tried, axis=1)
        mean = (reduction * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
        out = np.repeat(mean[:, None], discrepancy.shape[1], axis=1)
        np.put_along_axis(out, tried, reduction, axis=1)
        return out

    def _distance_after(
        self, values: np.ndarray, tried: np.ndarray, index: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """(n, F) mean distance after each feature of `tried` (n, F) took the values of pool rows `index` (n, T)."""
        assert isinstance(self.epistemic, FeatureDistance)
        filled = self.schema.owner == tried[:, :, None, None]  # (n, F, 1, D)
        cells = np.where(filled, self.predictor.pool_[index][:, None], values[:, None, None]).reshape(
            -1, values.shape[1]
        )
        found = self.epistemic.distance(cells, ~np.isnan(cells)).reshape(*tried.shape, -1)
        return np.einsum("nft,nt->nf", found, weights)
