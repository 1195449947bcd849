"""Gaussian classes: every subset of the features is Gaussian, so p(y | x_S) has a closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_softmax, softmax

from askwise.datasets.synthetic import SyntheticDataset
from askwise.errors import InvalidInput
from askwise.parameters import Flag, Limits, Number, Whole, check_values
from askwise.randomness import generator
from askwise.table.prices import AFFORDABLE_WITHIN, check_budget

_DESCRIPTION = """{classes} equally likely classes, each a Gaussian of {features} features. The `signal`
features have class means that lie {separation:g} standard deviations apart (root mean square over pairs of
classes) and correlations of {correlation:g} or -{correlation:g}, {covariance}; the `noise` features are
independent of everything. Columns are in random order."""

_DRAWS_FOR_ACCURACY = 200_000
LIMITS: Limits = {
    "n_samples": Whole(1),
    "n_features": Whole(1),
    "n_classes": Whole(2),
    "separation": Number(),
    "correlation": Number(0, 1, below=True),
    "shared_covariance": Flag(),
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GaussianDataset(SyntheticDataset):
    """Rows of a mixture of Gaussians, one per class; see `make_gaussian`.

    Of each class: the probability `prior` (C,), `means` (C, D) and `covariances` (C, D, D).
    """

    prior: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def best_accuracy(self, budget: float | None = None) -> float:
        """Accuracy of the best policy where it is known: when all features are affordable, or none.

        With all features it is that of the Bayes rule: the mean of the largest p(y | x) over 200,000 draws of
        a fixed seed, within 0.001 of the truth. With no budget it is that of the most probable class. In
        between, the best sequential policy has no closed form, and an error is raised.
        """
        money = check_budget(budget, 1)[0]
        if money < 1 - AFFORDABLE_WITHIN:
            return float(self.prior.max())
        if money < self.X.shape[1] - AFFORDABLE_WITHIN:
            raise InvalidInput(
                f"best_accuracy: for Gaussian classes it is known for a budget of {self.X.shape[1]} or more "
                f"(all features) and below 1 (none), not for {budget!r}. For data of make_switch it is "
                "known for every budget."
            )
        X, _ = self.sample(_DRAWS_FOR_ACCURACY, random_state=0)
        return float(self.exact_proba(X).max(axis=1).mean())

    def _exact_gain(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """By Gauss-Hermite quadrature over x_i | x_S, y."""
        gains = np.zeros(values.shape)
        for subset, rows in _patterns(observed):
            proba = self._exact_proba(values[rows], observed[rows])
            for j in np.flatnonzero(~subset):
                means, variances = self._conditional(values[rows][:, subset], subset, int(j))
                gains[rows, j] = _mutual_information(proba, means, variances)
        return gains

    def _conditional(self, observed: np.ndarray, subset: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, C) and variance (C,) of feature j in each class, given the observed cells."""
        means, variances = np.empty((len(observed), len(self.prior))), np.empty(len(self.prior))
        for c, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            slope = np.linalg.solve(covariance[np.ix_(subset, subset)], covariance[subset, j])
            means[:, c] = mean[j] + (observed - mean[subset]) @ slope
            variances[c] = covariance[j, j] - covariance[j, subset] @ slope
        return means, variances

    def _draw(self, n_samples: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
        y = rng.choice(len(self.prior), size=n_samples, p=self.prior)
        X = rng.standard_normal((n_samples, self.means.shape[1]))
        for label, (mean, factor) in enumerate(zip(self.means, np.linalg.cholesky(self.covariances), strict=True)):
            X[y == label] = mean + X[y == label] @ factor.T
        return pd.DataFrame(X, columns=self.X.columns), self.classes[y]

    def _exact_proba(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        proba = np.empty((len(values), len(self.prior)))
        for subset, rows in _patterns(observed):
            covariances = self.covariances[:, subset][:, :, subset]
            proba[rows] = gaussian_posterior(values[rows][:, subset], self.prior, self.means[:, subset], covariances)
        return proba


def make_gaussian(
    n_samples: int = 2000,
    n_features: int = 8,
    n_classes: int = 3,
    *,
    separation: float = 3.0,
    correlation: float = 0.5,
    n_informative: int | None = None,
    shared_covariance: bool = True,
    random_state: Any = None,
) -> GaussianDataset:
    """Gaussian classes with correlated features, and the exact p(y | x_S) for every subset S.

    Parameters
    ----------
    n_samples, n_features, n_classes
        Size of the table. The classes are equally likely.
    separation
        Distance between two class means in standard deviations of a feature: root mean square over pairs of classes.
    correlation
        Size of the correlation between any two informative features, in [0, 1); its sign is random.
    n_informative
        How many features depend on the class; the others are independent noise. None means all.
    shared_covariance
        Whether all classes have the same covariance. If not, the signs of the correlations differ from class
        to class, and tell something about it.
    random_state
        Seed of the means, of the signs and of the rows.

    Returns
    -------
    GaussianDataset
        With `exact_proba`, `exact_gain`, `sample` and `best_accuracy`.

    Examples
    --------
    >>> data = make_gaussian(n_features=4, n_classes=2, random_state=0)
    >>> data
    GaussianDataset('gaussian': 2,000 rows, 4 features, 2 classes, no missing cells)
    >>> nothing = np.zeros((1, 4), dtype=bool)
    >>> data.exact_proba(data.X[:1], mask=nothing).tolist()
    [[0.5, 0.5]]
    """
    check_values("make_gaussian", locals(), LIMITS)
    check_values("make_gaussian", locals(), {"n_informative": Whole(1, optional=True, most=n_features)})
    n_informative = n_features if n_informative is None else n_informative
    rng = generator(random_state)
    means, covariances = _signal(n_classes, n_informative, separation, correlation, shared_covariance, rng)
    means, covariances = _with_noise(means, covariances, n_features - n_informative)
    names = [f"signal_{i}" if i < n_informative else f"noise_{i - n_informative}" for i in range(n_features)]
    order = rng.permutation(n_features)
    covariance = "the same in all classes" if shared_covariance else "different from class to class"
    facts = {"separation": separation, "correlation": correlation, "covariance": covariance}
    distribution = GaussianDataset(
        "gaussian",
        pd.DataFrame(columns=[names[i] for i in order]),
        np.empty(0),
        None,
        None,
        _DESCRIPTION.format(classes=n_classes, features=n_features, **facts),
        classes=np.arange(n_classes),
        prior=np.full(n_classes, 1 / n_classes),
        means=means[:, order],
        covariances=covariances[:, order][:, :, order],
    )
    return distribution.drawn(n_samples, rng)


def _patterns(observed: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each pattern of observed features, (D,), and the rows that have it."""
    patterns, pattern_of_row = np.unique(observed, axis=0, return_inverse=True)
    for i, subset in enumerate(patterns):
        yield subset, np.flatnonzero(pattern_of_row.reshape(-1) == i)


def gaussian_posterior(values: np.ndarray, prior: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """p(y | x) by Bayes' rule: rows (n, D), prior (C,), means (C, D), covariances (C, D, D) to (n, C)."""
    factors = np.linalg.cholesky(covariances)
    deviations = values[None, :, :] - means[:, None, :]  # (C, n, D)
    whitened = np.linalg.solve(factors, deviations.transpose(0, 2, 1))  # (C, D, n)
    log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    log_joint = np.log(prior) - log_determinants - 0.5 * (whitened**2).sum(axis=1).T  # (n, C)
    return np.asarray(softmax(log_joint, axis=1))


def _mutual_information(proba: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """I(y; x) of a class with probabilities (n, C) and a Gaussian x with means (n, C) and variances (C,), (n,)."""
    nodes, weights = np.polynomial.hermite.hermgauss(20)
    gain = np.zeros(len(proba))
    for c in range(proba.shape[1]):
        x = means[:, c, None] + np.sqrt(2 * variances[c]) * nodes  # (n, nodes)
        deviations = (x[:, :, None] - means[:, None, :]) ** 2 / variances
        log_joint = np.log(np.maximum(proba, 1e-300))[:, None, :] - 0.5 * (deviations + np.log(variances))
        after = log_softmax(log_joint, axis=2)[:, :, c] - np.log(np.maximum(proba[:, c, None], 1e-300))
        gain += proba[:, c] * (after @ (weights / np.sqrt(np.pi)))
    return gain


def _signal(
    n_classes: int, n_informative: int, separation: float, correlation: float, shared: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Class means (C, D) the wanted distance apart, and unit-variance covariances (C, D, D)."""
    means = rng.standard_normal((n_classes, n_informative))
    means -= means.mean(axis=0)
    # Mean squared distance over pairs of classes = 2 / (C - 1) times the sum of squares around the center.
    means *= separation / np.sqrt(2 / (n_classes - 1) * (means**2).sum())
    signs = rng.choice([-1.0, 1.0], size=(1 if shared else n_classes, n_informative))
    correlations = correlation * signs[:, :, None] * signs[:, None, :]
    covariances = correlations + (1 - correlation) * np.eye(n_informative)
    return means, np.broadcast_to(covariances, (n_classes, n_informative, n_informative))


def _with_noise(means: np.ndarray, covariances: np.ndarray, n_noise: int) -> tuple[np.ndarray, np.ndarray]:
    """The same with independent features of mean 0 and variance 1 after the informative ones."""
    n_classes, n_informative = means.shape
    n_features = n_informative + n_noise
    wider = np.tile(np.eye(n_features), (n_classes, 1, 1))
    wider[:, :n_informative, :n_informative] = covariances
    return np.pad(means, ((0, 0), (0, n_noise))), wider
