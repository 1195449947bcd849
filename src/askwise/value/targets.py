"""The actual effect of each further feature on training rows: targets of value networks, and rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.model_selection import StratifiedKFold

from askwise.epistemic import BeliefModel
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.table.subsets import extended
from askwise.uncertainty import kl_divergence, smoothed

PAIRS_AT_ONCE, CELLS_AT_ONCE = 4096, 16_000_000
N_FOLDS = 3


class HeldOutStates:
    """Training rows treated as new: their predictions and uncertainties without the use of the row itself.

    Parameters
    ----------
    rows, y
        N encoded training rows, and their labels as class positions.
    schema
        Columns grouped into features.
    beliefs
        One for all rows, which leaves a row out of its own prediction; or one per fold, fitted without the fold.
    fold
        (N,) which of `beliefs` is used for each row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.value import HeldOutStates
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> beliefs = selector.beliefs_
    >>> rows, labels = selector.predictor_.training_rows_, selector.predictor_.training_labels_
    >>> held_out = HeldOutStates(rows, labels, selector.schema_, [beliefs])
    >>> len(held_out.rows)
    150
    """

    def __init__(
        self,
        rows: EncodedRows,
        y: np.ndarray,
        schema: Schema,
        beliefs: Sequence[BeliefModel],
        fold: np.ndarray | None = None,
    ) -> None:
        self.rows = rows
        self.schema = schema
        self.beliefs = beliefs
        self.fold = fold
        self.available = schema.any_column(rows.observed)  # (N, M)
        self.prior = np.bincount(y, minlength=len(beliefs[0].predictor.classes_)) / len(y)
        self.full = np.empty((len(rows), len(self.prior)))
        for model, at in self._by_fold(np.arange(len(rows))):
            for start in range(0, len(at), PAIRS_AT_ONCE):
                part = at[start : start + PAIRS_AT_ONCE]
                self.full[part] = model.predictor.full_proba(rows.take(part))

    def state(self, rows: np.ndarray, mask: np.ndarray, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Discrepancy u and epistemic uncertainty e of training `rows` (r,) with features `mask` (r, M), (r,) each.

        Without `risk`, or without members, e is 0.
        """
        known = self.rows.take(rows).masked(self.schema.expand(mask))
        discrepancy, epistemic = np.empty(len(rows)), np.zeros(len(rows))
        for model, at in self._by_fold(rows):
            left_out = rows[at] if self.fold is None else None
            for start in range(0, len(at), model.rows_at_once):
                part = slice(start, start + model.rows_at_once)
                own = None if left_out is None else left_out[part]
                belief = model.believe(known.take(at[part]), members=risk, leave_out=own)
                discrepancy[at[part]] = kl_divergence(self.full[rows[at[part]]], smoothed(belief.proba, self.prior))
                if risk and model.epistemic is not None:
                    epistemic[at[part]] = model.uncertainty(belief, smooth_with=self.prior).epistemic
        return discrepancy, epistemic

    def _by_fold(self, rows: np.ndarray) -> list[tuple[BeliefModel, np.ndarray]]:
        if self.fold is None:
            return [(self.beliefs[0], np.arange(len(rows)))]
        own = self.fold[rows]
        return [(self.beliefs[k], np.flatnonzero(own == k)) for k in np.unique(own)]


def held_out_states(
    beliefs: BeliefModel,
    schema: Schema,
    refit: Callable[[np.ndarray], BeliefModel] | None = None,
    random_state: int = 0,
) -> HeldOutStates:
    """Training rows treated as new: left out of their own completions, and of the model if it can be refitted.

    Parameters
    ----------
    beliefs
        The belief model in use.
    schema
        Columns grouped into features.
    refit
        Function of rows that returns a belief model fitted without them; None for a model that is used as it is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.value import held_out_states
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> len(held_out_states(selector.beliefs_, selector.schema_).rows)
    150
    """
    rows, y = beliefs.predictor.training_rows_, beliefs.predictor.training_labels_
    fold = None if refit is None else folds(rows.values, y, N_FOLDS, random_state)
    parts = [beliefs] if refit is None or fold is None else [refit(np.flatnonzero(fold == k)) for k in range(N_FOLDS)]
    cheaper = [BeliefModel(part.predictor.for_training(), part.epistemic) for part in parts]
    return HeldOutStates(rows, y, schema, cheaper, fold)


def folds(values: np.ndarray, y: np.ndarray, n_folds: int, random_state: int) -> np.ndarray | None:
    """(N,) the fold of each row; None if a class or a mostly missing column would be absent without a fold."""
    if np.bincount(y).min() < n_folds:
        return None
    fold = np.empty(len(y), dtype=int)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    for k, (rest, held) in enumerate(splitter.split(values, y)):
        fold[held] = k
        if np.isnan(values[rest]).all(axis=0).any():
            return None
    return fold


def value_targets(
    held_out: HeldOutStates, rows: np.ndarray, mask: np.ndarray, candidates: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """u(S) - u(S + i) and e(S) - e(S + i) for every available feature i, (n, M) each, NaN elsewhere.

    All pairs of a row and a candidate go to the model in batches of bounded size, whatever n and M.

    Parameters
    ----------
    rows, mask
        (n,) training rows and (n, M) the features known of each.
    candidates
        (n, M) bool, to compute the targets of some features only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.value import held_out_states, value_targets
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> held_out = held_out_states(selector.beliefs_, selector.schema_)
    >>> u, e = value_targets(held_out, np.arange(2), np.array([[True, False, False, False]] * 2))
    >>> np.isnan(u).tolist()
    [[True, False, False, False], [True, False, False, False]]
    """
    wanted = ~mask & held_out.available[rows]
    if candidates is not None:
        wanted &= candidates
    step = max(1, min(PAIRS_AT_ONCE, CELLS_AT_ONCE // held_out.rows.values.shape[1]))
    blocks = [slice(start, start + step) for start in range(0, max(len(rows), 1), step)]
    states = [held_out.state(rows[block], mask[block]) for block in blocks]
    u_before, e_before = (np.concatenate(part) for part in zip(*states, strict=True))
    discrepancy, epistemic = np.full(mask.shape, np.nan), np.full(mask.shape, np.nan)
    at, feature = np.nonzero(wanted)
    for start in range(0, len(at), step):
        r, i = at[start : start + step], feature[start : start + step]
        u_after, e_after = held_out.state(rows[r], extended(mask[r], i))
        discrepancy[r, i] = u_before[r] - u_after
        epistemic[r, i] = e_before[r] - e_after
    return discrepancy, epistemic
