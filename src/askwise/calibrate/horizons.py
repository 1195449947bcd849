"""Which of two policies serves unseen cases better, along whole trajectories: by the labels, at several horizons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from askwise.acquisition import nothing_known, purchases
from askwise.calibrate.crossfit import Fold
from askwise.policy.base import Policy
from askwise.predict.calibration import log_losses
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows

HORIZONS = (2, 3, 5, 7, 10)
"""Numbers of features at which the predictions are compared."""
MOST_CASES = 200


@dataclass(frozen=True, eq=False)
class Comparison:
    """By how much the log loss of a policy is below that of a plainer one, on unseen cases.

    Attributes
    ----------
    horizons
        (H,) numbers of features.
    less
        (n, H) loss of the plainer policy less that of the other, by case.

    Examples
    --------
    >>> clear = Comparison((2, 3), np.array([[0.5, 0.3], [0.4, 0.2]]))
    >>> clear.pays, round(clear.mean, 2), round(clear.error, 2)
    (True, 0.35, 0.05)
    """

    horizons: tuple[int, ...]
    less: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.less.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean over the cases; infinite for fewer than two."""
        by_case = self.less.mean(axis=1)
        return float(by_case.std(ddof=1) / np.sqrt(len(by_case))) if len(by_case) > 1 else float("inf")

    @property
    def pays(self) -> bool:
        """Whether it is lower by more than a standard error."""
        return self.mean > self.error

    def described(self) -> dict[str, Any]:
        """Ready for JSON."""
        at = dict(zip(map(str, self.horizons), self.less.mean(axis=0).tolist(), strict=True))
        return {"cases": len(self.less), "less_log_loss": self.mean, "standard_error": self.error, "at_features": at}


def compared(
    rows: EncodedRows,
    labels: np.ndarray,
    folds: Sequence[Fold],
    plainer: Sequence[Policy],
    rng: np.random.Generator,
    *,
    prices: Prices,
    risk_weight: float,
) -> Comparison:
    """The policies of some folds and a `plainer` one for each, on about `MOST_CASES` rows that the folds hold.

    All features that are not free cost the same: what a price does to a choice is not what is compared.
    """
    schema = folds[0].beliefs.predictor.schema_
    equal = Prices((np.asarray(prices.costs) > 0).astype(float)).resolve(schema.features)
    n_features = len(schema.features)
    horizons = tuple(h for h in HORIZONS if h < n_features) or (n_features,)
    found = []
    for fold, plain in zip(folds, plainer, strict=True):
        at = rng.permutation(fold.held)[: -(-MOST_CASES // len(folds))]
        for part in np.array_split(at, -(-len(at) // fold.beliefs.rows_at_once)):
            losses = [
                _losses(rows.take(part), labels[part], fold, policy, equal, risk_weight, horizons)
                for policy in (plain, fold.policy)
            ]
            found.append(losses[0] - losses[1])
    return Comparison(horizons, np.concatenate(found))


def _losses(
    truth: EncodedRows,
    labels: np.ndarray,
    fold: Fold,
    policy: Policy,
    prices: Prices,
    risk_weight: float,
    horizons: tuple[int, ...],
) -> np.ndarray:
    """(n, H) log losses of the cases once they have so many features, or all that they can."""
    beliefs = fold.beliefs if policy.reads_members(risk_weight) else fold.beliefs.without_members()
    state = nothing_known(fold.beliefs.predictor.schema_, prices, beliefs, truth, risk_weight=risk_weight)
    free = int((np.asarray(prices.costs) == 0).sum())
    found, steps = np.empty((len(truth), len(horizons))), 0
    for step, _ in enumerate(islice(purchases(state, truth.values, policy), free + max(horizons)), 1):
        steps = step
        if step - free in horizons:
            found[:, horizons.index(step - free)] = log_losses(state.belief.proba, labels)
    for k, horizon in enumerate(horizons):
        if horizon > steps - free:
            found[:, k] = log_losses(state.belief.proba, labels)
    return found
