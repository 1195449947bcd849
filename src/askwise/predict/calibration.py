r"""Calibration of p(y | x_S): a temperature per number of known features, and a map of agreement to a probability.

The mean answer over completions is less sharp than what happens: neighbors that are not alike are averaged as well.
A temperature :math:`T < 1` sharpens it, :math:`p^{1/T} / \sum p^{1/T}`, and never changes the most probable class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, logit, softmax

SMALLEST = 1e-12
PRIOR = 0.5
"""Standard deviation of a log temperature around 0, that is T = 1, before rows are seen."""
STEP = 0.5
"""Standard deviation of the change of a log temperature while 1 + the number of known features grows by a factor e."""
MARGIN = 0.005
"""Shares of completions are kept so far from 0 and 1, whose logits are infinite."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Temperatures by number of known features, and the map of agreement.

    Attributes
    ----------
    temperatures
        (M + 1,) of the probabilities of cases of which 0 to M features are known.
    slope, intercept
        ``logit(decision_is_final) = slope * logit(agreement) + intercept``, with `slope` > 0, so that the order of the
        cases stays.
    """

    temperatures: np.ndarray
    slope: float = 1.0
    intercept: float = 0.0

    def proba(self, answers: np.ndarray, size: np.ndarray) -> np.ndarray:
        """(n, ..., C) answers about cases of which `size` (n,) features are known, calibrated."""
        return tempered(answers, self.temperatures[size].reshape(-1, *[1] * (answers.ndim - 1)))

    def final(self, agreement: np.ndarray) -> np.ndarray:
        """(n,) probability that the decision is final, from the share of completions that agree with it."""
        return np.asarray(expit(self.slope * _logit(agreement) + self.intercept))


def tempered(proba: np.ndarray, temperature: np.ndarray | float) -> np.ndarray:
    """``p ** (1 / T)``, normalized over the last axis; 0 stays 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(softmax(np.log(proba) / temperature, axis=-1))


def log_losses(proba: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(N,) log loss of each prediction (N, C), bounded where the true class has probability 0."""
    return -np.log(np.maximum(proba[np.arange(len(labels)), labels], SMALLEST))


def fit_temperatures(proba: np.ndarray, size: np.ndarray, labels: np.ndarray, n_features: int) -> np.ndarray:
    r"""(M + 1,) temperatures by penalized maximum likelihood.

    Log temperatures are piecewise linear in the number of known features, with a knot at each size visited. The log
    loss is summed over the states; as the states of one case say much the same, it counts once per case. The penalty
    is that of a random walk over the knots which starts around T = 1: sizes with few states follow their neighbors, and
    with few rows all stay near 1.

    Parameters
    ----------
    proba, size, labels
        (N, C) predictions, (N,) numbers of known features and (N,) true classes, as positions, of states that a policy
        visits on rows that the model has not seen.
    n_features
        M.
    """
    knots = np.unique(size)
    weights = _hats(size, knots)
    logs = np.log(np.maximum(proba, SMALLEST))
    true = np.arange(len(labels)), labels
    repeats = len(labels) / np.bincount(size).max()
    stiffness = 1 / (STEP**2 * np.diff(np.log1p(knots)))

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        sharpness = np.exp(-(weights @ theta))[:, None]
        scaled = log_softmax(logs * sharpness, axis=1)
        slope = (np.exp(scaled) * logs).sum(axis=1) - logs[true]  # of the log loss in sharpness
        walk = np.diff(theta) * stiffness
        penalty = (theta**2).mean() / PRIOR**2 / 2 + (walk * np.diff(theta)).sum() / 2
        gradient = weights.T @ (-slope * sharpness[:, 0]) / repeats + theta / len(theta) / PRIOR**2
        gradient[1:] += walk
        gradient[:-1] -= walk
        return -scaled[true].sum() / repeats + penalty, gradient

    found = minimize(loss, np.zeros(len(knots)), jac=True, method="L-BFGS-B").x
    return np.exp(np.interp(np.arange(n_features + 1), knots, found))


def fit_agreement(agreement: np.ndarray, agrees: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of the logistic map from agreement (N,) to whether the full row was decided alike (N,)."""
    x = _logit(agreement)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        slope = np.exp(theta[0])
        z = slope * x + theta[1]
        error = expit(z) - agrees
        gradient = np.array([(error * x).sum() * slope, error.sum()]) + theta / PRIOR**2
        return -(log_expit(np.where(agrees, z, -z))).sum() + (theta**2).sum() / 2 / PRIOR**2, gradient

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B").x
    return float(np.exp(found[0])), float(found[1])


def _hats(size: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """(N, knots) weights of linear interpolation between the knots."""
    return np.column_stack([np.interp(size, knots, row) for row in np.eye(len(knots))])


def _logit(share: np.ndarray) -> np.ndarray:
    return np.asarray(logit(MARGIN + (1 - 2 * MARGIN) * share))
