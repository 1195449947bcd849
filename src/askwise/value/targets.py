"""What each further feature really brought, on training rows: targets of value networks, and rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.model_selection import StratifiedKFold

from askwise.epistemic import EpistemicEstimator
from askwise.predict.base import SubsetPredictor
from askwise.schema import Schema
from askwise.subsets import extended
from askwise.uncertainty import kl_divergence, smoothed

PAIRS_AT_ONCE = 4096
N_FOLDS = 3

Fitted = tuple[SubsetPredictor, EpistemicEstimator | None]


class HeldOutStates:
    """Training rows met as if they were new: what would be predicted for them, and how sure.

    Parameters
    ----------
    values
        (N, D) encoded training rows.
    y
        (N,) labels as class positions.
    schema
        Columns grouped into features.
    predictors, epistemics
        One predictor for all rows, which leaves a row out of its own answer; or one per fold, fitted without it.
    fold
        (N,) the predictor of each row.
    """

    def __init__(
        self,
        values: np.ndarray,
        y: np.ndarray,
        schema: Schema,
        predictors: Sequence[SubsetPredictor],
        epistemics: Sequence[EpistemicEstimator | None],
        fold: np.ndarray | None = None,
    ) -> None:
        self.values = values
        self.schema = schema
        self.predictors = predictors
        self.epistemics = epistemics
        self.fold = fold
        self.available = schema.any_column(~np.isnan(values))  # (N, M)
        self.prior = np.bincount(y, minlength=len(predictors[0].classes_)) / len(y)
        self.full = np.empty((len(values), len(self.prior)))
        for predictor, _, rows in self._by_fold(np.arange(len(values))):
            self.full[rows] = predictor.predict_full(values[rows])

    def state(self, rows: np.ndarray, mask: np.ndarray, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Discrepancy u and epistemic uncertainty e of training `rows` (r,) with features `mask` (r, M), (r,) each.

        Without `risk`, or without members, e is 0.
        """
        columns = self.schema.expand(mask) & ~np.isnan(self.values[rows])
        discrepancy, epistemic = np.empty(len(rows)), np.zeros(len(rows))
        for predictor, members, at in self._by_fold(rows):
            values = np.where(columns[at], self.values[rows[at]], np.nan)
            left_out = rows[at] if self.fold is None else None
            if members is None or not risk:
                proba = predictor.predict_proba(values, columns[at], leave_out=left_out)
            else:
                proba, found = members.assess(values, columns[at], leave_out=left_out, smooth_with=self.prior)
                epistemic[at] = found.epistemic
            discrepancy[at] = kl_divergence(self.full[rows[at]], smoothed(proba, self.prior))
        return discrepancy, epistemic

    def _by_fold(self, rows: np.ndarray) -> list[tuple[SubsetPredictor, EpistemicEstimator | None, np.ndarray]]:
        if self.fold is None:
            return [(self.predictors[0], self.epistemics[0], np.arange(len(rows)))]
        own = self.fold[rows]
        return [(self.predictors[k], self.epistemics[k], np.flatnonzero(own == k)) for k in np.unique(own)]


def held_out_states(
    fitted: Fitted,
    schema: Schema,
    refit: Callable[[np.ndarray], Fitted] | None = None,
    random_state: int = 0,
) -> HeldOutStates:
    """Training rows as if new: left out of their own completions, and of the model itself where it can be refitted.

    Parameters
    ----------
    fitted
        The predictor and the epistemic estimator in use.
    schema
        Columns grouped into features.
    refit
        Given rows, both fitted without them; None for a model that is used as it is.
    """
    values, y = fitted[0].training_values_, fitted[0].training_labels_
    fold = None if refit is None else _folds(values, y, random_state)
    parts = [fitted] if refit is None or fold is None else [refit(np.flatnonzero(fold == k)) for k in range(N_FOLDS)]
    predictors = [predictor.for_training() for predictor, _ in parts]
    epistemics = [e and e.around(predictor) for (_, e), predictor in zip(parts, predictors, strict=True)]
    return HeldOutStates(values, y, schema, predictors, epistemics, fold)


def _folds(values: np.ndarray, y: np.ndarray, random_state: int) -> np.ndarray | None:
    """(N,) the fold of each row; None where a class, or a column that few have, would be missing without one."""
    if np.bincount(y).min() < N_FOLDS:
        return None
    fold = np.empty(len(y), dtype=int)
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=random_state)
    for k, (rest, held) in enumerate(splitter.split(values, y)):
        fold[held] = k
        if np.isnan(values[rest]).all(axis=0).any():
            return None
    return fold


def value_targets(
    held_out: HeldOutStates, rows: np.ndarray, mask: np.ndarray, candidates: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """u(S) - u(S + i) and e(S) - e(S + i) for every feature i that can be had, (n, M) each, NaN elsewhere.

    All pairs of a row and a candidate go to the model in batches of bounded size, whatever n and M.

    Parameters
    ----------
    rows, mask
        (n,) training rows and (n, M) the features known of each.
    candidates
        (n, M) bool, to ask about some features only.
    """
    wanted = ~mask & held_out.available[rows]
    if candidates is not None:
        wanted &= candidates
    u_before, e_before = held_out.state(rows, mask)
    discrepancy, epistemic = np.full(mask.shape, np.nan), np.full(mask.shape, np.nan)
    at, feature = np.nonzero(wanted)
    for start in range(0, len(at), PAIRS_AT_ONCE):
        r, i = at[start : start + PAIRS_AT_ONCE], feature[start : start + PAIRS_AT_ONCE]
        u_after, e_after = held_out.state(rows[r], extended(mask[r], i))
        discrepancy[r, i] = u_before[r] - u_after
        epistemic[r, i] = e_before[r] - e_after
    return discrepancy, epistemic
