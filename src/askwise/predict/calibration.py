r"""Calibration of p(y | x_S): a temperature per number of known features, and how likely a decision is to be final.

The mean answer over completions is less sharp than what happens, because neighbors that are not like the case are
averaged as well. A temperature :math:`T < 1` sharpens it, and a small floor :math:`\varepsilon` keeps it from excluding
what it has not seen,

.. math:: (1 - \varepsilon) \frac{p_c^{1/T}}{\sum_k p_k^{1/T}} + \frac{\varepsilon}{C}.

The most probable class stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit, softmax

from askwise.uncertainty import SMALLEST

SPREADS = (0.2, 0.8)
"""Standard deviations of a log temperature around 0, that is T = 1, of which the most probable one is used."""
STEP = 0.5
"""Standard deviation of the change of a log temperature while 1 + the number of known features grows by a factor e."""
USUAL_FLOOR = 0.01
MINIMIZER = {"ftol": 1e-7}
"""A log loss is known much less exactly than that, so that a few steps fewer do."""
SMALLEST_SLOPE = 0.01
"""Of agreement, so that it always tells cases apart."""
MARGIN = 0.005
"""Shares of completions are kept so far from 0 and 1, whose logits are infinite."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Temperatures by number of known features, and the map to `decision_is_final`.

    Attributes
    ----------
    temperatures
        (M + 1,) of the probabilities of cases of which 0 to M features are known.
    floor
        Share of the uniform distribution that is mixed in.
    final_map
        Coefficients of the logits of the agreement and of the probability of the decision, neither below 0, and the
        intercept: their sum is the logit of `decision_is_final`.
    """

    temperatures: np.ndarray
    floor: float = 0.0
    final_map: tuple[float, float, float] = (1.0, 0.0, 0.0)

    def proba(self, answers: np.ndarray, size: np.ndarray) -> np.ndarray:
        """(n, ..., C) answers about cases of which `size` (n,) features are known, calibrated."""
        scaled = tempered(answers, self.temperatures[size].reshape(-1, *[1] * (answers.ndim - 1)))
        return (1 - self.floor) * scaled + self.floor / answers.shape[-1]

    def final(self, agreement: np.ndarray, proba: np.ndarray) -> np.ndarray:
        """(n,) probability that the decision is final.

        From the share of completions that agree with it and its own (calibrated) probability: a completion on which the
        model hardly decides otherwise says less than one on which it is sure.
        """
        by_agreement, by_proba, intercept = self.final_map
        return np.asarray(expit(by_agreement * _logit(agreement) + by_proba * _logit(proba) + intercept))


def tempered(proba: np.ndarray, temperature: np.ndarray | float) -> np.ndarray:
    """``p ** (1 / T)``, normalized over the last axis; 0 stays 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(softmax(np.log(proba) / temperature, axis=-1))


def log_losses(proba: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(N,) log loss of each prediction (N, C), bounded where the true class has probability 0."""
    return np.asarray(-np.log(np.maximum(proba[np.arange(len(labels)), labels], SMALLEST)))


def fit_temperatures(
    proba: np.ndarray,
    size: np.ndarray,
    labels: np.ndarray,
    n_features: int,
    spreads: Sequence[float] = SPREADS,
    *,
    average_at_start: bool = False,
) -> tuple[Calibration, float]:
    r"""Temperatures and floor by penalized maximum likelihood, and which of `spreads` was used.

    Log temperatures are piecewise linear in the number of known features, with a knot at each size visited. Their prior
    is a random walk over the knots around T = 1: sizes with few states follow their neighbors. Its spread is the one
    that makes the labels most probable (Laplace's approximation): all stay near 1 unless the rows say otherwise.

    Parameters
    ----------
    proba, size, labels
        (N, C) predictions, (N,) numbers of known features and (N,) true classes, as positions, of states that a policy
        visits on rows that the model has not seen.
    n_features
        M.
    average_at_start
        With nothing known the prediction is the average over all rows: it is as sharp as it should be, whatever the
        other sizes need, and keeps T = 1.
    """
    states = _States(proba, size, labels)
    theta = np.append(np.zeros(len(states.knots)), logit(USUAL_FLOOR))
    best: tuple[float, np.ndarray, float] | None = None
    for spread in spreads:
        precision = states.precision(spread)
        found = minimize(states.loss, theta, args=(precision,), jac=True, method="L-BFGS-B", options=MINIMIZER)
        theta = found.x
        information = np.linalg.slogdet(states.curvature(theta) + precision)[1]
        evidence = -found.fun - (information - np.linalg.slogdet(precision)[1]) / 2
        if best is None or evidence > best[0]:
            best = evidence, theta, spread
    assert best is not None
    _, theta, spread = best
    logs = np.interp(np.arange(n_features + 1), states.knots, theta[:-1])
    if average_at_start:
        logs[0] = 0.0
    return Calibration(np.exp(logs), float(expit(theta[-1]))), spread


class _States:
    """The log loss of states as a function of theta: the log temperatures at the knots, and the logit of the floor.

    The states of one case say nearly the same: together they count as one.
    """

    def __init__(self, proba: np.ndarray, size: np.ndarray, labels: np.ndarray) -> None:
        self.knots = np.unique(size)
        self.weights = np.column_stack([np.interp(size, self.knots, row) for row in np.eye(len(self.knots))])
        self.logs = np.log(np.maximum(proba, SMALLEST))
        self.true = np.arange(len(labels)), labels
        self.repeats = len(labels) / np.bincount(size).max()

    def precision(self, spread: float) -> np.ndarray:
        """Inverse covariance of the log temperatures."""
        n = len(self.knots)
        change = np.diff(np.eye(n), axis=0)
        stiffness = 1 / (STEP**2 * np.diff(np.log1p(self.knots)))
        return np.asarray(change.T @ (stiffness[:, None] * change) + np.eye(n) / (n * spread**2))

    def loss(self, theta: np.ndarray, precision: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalized log loss and its gradient."""
        sharpness = np.exp(-(self.weights @ theta[:-1]))
        scaled = softmax(self.logs * sharpness[:, None], axis=1)
        floor, n_classes = expit(theta[-1]), scaled.shape[1]
        likelihood = (1 - floor) * scaled[self.true] + floor / n_classes
        slope = (scaled * self.logs).sum(axis=1) - self.logs[self.true]
        slope *= (1 - floor) * scaled[self.true] / likelihood
        by_floor = floor * (1 - floor) * ((scaled[self.true] - 1 / n_classes) / likelihood).sum() / self.repeats
        pull, surplus = precision @ theta[:-1], theta[-1] - logit(USUAL_FLOOR)
        gradient = np.append(pull - self.weights.T @ (slope * sharpness) / self.repeats, by_floor + surplus)
        return -np.log(likelihood).sum() / self.repeats + (theta[:-1] @ pull + surplus**2) / 2, gradient

    def curvature(self, theta: np.ndarray) -> np.ndarray:
        """Expected second derivative of the log loss by the log temperatures."""
        sharpness = np.exp(-(self.weights @ theta[:-1]))
        scaled = softmax(self.logs * sharpness[:, None], axis=1)
        variance = (scaled * self.logs**2).sum(axis=1) - (scaled * self.logs).sum(axis=1) ** 2
        return np.asarray((self.weights.T * (sharpness**2 * variance)) @ self.weights / self.repeats)


def fit_final(agreement: np.ndarray, proba: np.ndarray, agrees: np.ndarray) -> tuple[float, float, float]:
    """`Calibration.final_map`, from the agreement (N,) and the probability (N,) of the decision in states of which it
    is known whether the full row was decided alike (N,)."""
    x = np.column_stack([_logit(agreement), _logit(proba), np.ones(len(agrees))])

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ theta
        gradient = x.T @ (expit(z) - agrees) + theta
        return -log_expit(np.where(agrees, z, -z)).sum() + (theta**2).sum() / 2, gradient

    bounds = [(SMALLEST_SLOPE, None), (0, None), (None, None)]
    first, second, intercept = minimize(loss, [1.0, 0.0, 0.0], jac=True, bounds=bounds, method="L-BFGS-B").x
    return float(first), float(second), float(intercept)


def _logit(share: np.ndarray) -> np.ndarray:
    return np.asarray(logit(MARGIN + (1 - 2 * MARGIN) * share))
