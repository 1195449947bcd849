"""Uncertainty of predictions: entropies and divergences of class distributions, in nats.

Classes are on the last axis and ensemble members on the first: `proba` is (n, C), `members` are (k, n, C), and the
result is (n,). A NaN probability gives a NaN uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, rel_entr

from askwise.errors import InvalidInput

ROUNDING = 1e-6
"""Tolerance for rounding: rows in single precision sum to 1 only to this accuracy."""
SMALLEST = 1e-12
"""What takes the place of a zero under a logarithm or a fraction line: far below every probability that matters, and
far above what doubles lose to rounding, so a certain wrong answer costs 28 nats instead of infinitely many."""


def entropy(proba: ArrayLike) -> np.ndarray:
    """Entropy of each distribution of `proba` (..., C), between 0 and ln C.

    H(p) = -sum_y p(y) ln p(y), with 0 ln 0 = 0: the left-hand side of Eq. 14 (Appendix A).

    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(3).tolist()
    [0.693, 0.0]
    """
    return _not_below_zero(entr(as_floats("proba", proba)).sum(axis=-1))


def kl_divergence(p: ArrayLike, q: ArrayLike) -> np.ndarray:
    """Kullback-Leibler divergence of `q` from `p`, infinite where `q` is 0 and `p` is not.

    D(p || q) = sum_y p(y) ln(p(y) / q(y)), with 0 ln 0 = 0: the discrepancy u of Eq. 11 (Section 3.2.1) when
    p is the prediction from all features and q the one from a subset. Both are (..., C); the leading axes broadcast.

    >>> kl_divergence([[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75], [1.0, 0.0]]).round(3).tolist()
    [0.144, inf]
    """
    p, q = as_floats("p", p), as_floats("q", q)
    if p.shape[-1:] != q.shape[-1:]:
        raise InvalidInput(
            f"kl_divergence: p and q must have the same classes on their last axis; got shapes {p.shape} and {q.shape}."
        )
    return _not_below_zero(rel_entr(p, q).sum(axis=-1))


def aleatoric(members: ArrayLike) -> np.ndarray:
    """Aleatoric uncertainty: the mean entropy of the members (k, n, C), (n,) between 0 and ln C.

    AU = (1/k) sum_i H(p_i), Eq. 16 (Appendix A): the uncertainty that would remain if the true model were known.
    Two members that are certain of opposite classes, and two that are both undecided:

    >>> aleatoric([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]).round(3).tolist()
    [0.0, 0.693]
    """
    return np.asarray(entropy(_check_members(members)).mean(axis=0))


def mutual_information(members: ArrayLike) -> np.ndarray:
    """Epistemic uncertainty of an ensemble about its own mean: how much the members (k, n, C) disagree.

    EU = H(mean_i p_i) - (1/k) sum_i H(p_i) = (1/k) sum_i D(p_i || mean_i p_i), Eq. 17 (Appendix A); (n,) between 0
    and ln C.

    >>> mutual_information([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]).round(3).tolist()
    [0.693, 0.0]
    """
    members = _check_members(members)
    return _disagreement(members, aleatoric(members))


def epistemic_divergence(members: ArrayLike, proba: ArrayLike) -> np.ndarray:
    """Epistemic uncertainty around the primary prediction (n, C): how far the members (k, n, C) diverge from it.

    e(x_S) = (1/k) sum_i D(p_i || q), Eq. 13 (Section 3.2.2), with q the primary prediction. By Eq. 19
    (Appendix A) it is `mutual_information` plus D(mean_i p_i || q), so it also grows where the members agree
    with each other and not with the primary model. It is infinite where q is 0 for a class and a member
    is not. The members agree; the first primary prediction agrees with them, the second does not:

    >>> members = [[[0.9, 0.1], [0.9, 0.1]], [[0.9, 0.1], [0.9, 0.1]]]
    >>> epistemic_divergence(members, [[0.9, 0.1], [0.5, 0.5]]).round(3).tolist()
    [0.0, 0.368]
    """
    members, proba = _check_members(members), as_floats("proba", proba)
    if proba.shape != members.shape[1:]:
        raise InvalidInput(
            "proba must hold one primary prediction for each row of members (k, n, C), so have shape "
            f"{members.shape[1:]}; got {proba.shape}."
        )
    return np.asarray(kl_divergence(members, proba).mean(axis=0))


def ensemble_variance(members: ArrayLike) -> np.ndarray:
    """Variance of the probabilities of the members (k, n, C), averaged over the classes; (n,) between 0 and 1/4.

    (1/C) sum_y (1/k) sum_i (p_i(y) - mean_i p_i(y))^2: the "ensemble variance" of the rejection curves
    (Appendix E) and the "epistemic variance" of Appendix F. The paper writes no formula for it; the mean over
    the classes is our reading. A sum would be C times as large and would order the rows of one table alike.

    >>> ensemble_variance([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]).tolist()
    [0.25, 0.0]
    """
    return np.asarray(_check_members(members).var(axis=0).mean(axis=-1))


def confidence_gap(proba: ArrayLike) -> np.ndarray:
    """One minus the largest probability of `proba` (..., C): 1 - max_y p(y) (Appendix E).

    >>> confidence_gap([[0.75, 0.25], [0.0, 1.0]]).tolist()
    [0.25, 0.0]
    """
    return _not_below_zero(1.0 - as_floats("proba", proba).max(axis=-1))


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The uncertainties of some predictions, as arrays of one shape; NaN where a number is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> found = selector.uncertainty(X[:3])
    >>> found.total.shape, list(found.as_dict())
    ((3,), ['total', 'aleatoric', 'mutual_information', 'epistemic', 'variance', 'confidence_gap', 'novelty'])
    """

    total: np.ndarray  # entropy of the primary prediction
    aleatoric: np.ndarray  # mean entropy of the members
    mutual_information: np.ndarray  # disagreement of the members with each other
    epistemic: np.ndarray  # divergence of the members from the primary prediction, plus novelty if computed
    variance: np.ndarray  # variance of the members' probabilities
    confidence_gap: np.ndarray  # 1 - probability of the predicted class
    novelty: np.ndarray  # how far the case is outside of what was seen in training, 0 within it; NaN if not computed

    def as_dict(self) -> dict[str, np.ndarray]:
        """The arrays by name, for instance as columns of a DataFrame."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def replaced(self, rows: np.ndarray, new: Uncertainty) -> Uncertainty:
        """A copy with the entries of `rows` (n,) bool replaced by those of `new`, in order."""
        arrays = {name: values.copy() for name, values in self.as_dict().items()}
        for name, values in new.as_dict().items():
            arrays[name][rows] = values
        return Uncertainty(**arrays)

    @classmethod
    def concatenated(cls, parts: Sequence[Uncertainty]) -> Uncertainty:
        """The uncertainties of several blocks of rows as one."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in parts[0].as_dict()})

    @classmethod
    def stacked(cls, steps: Sequence[Uncertainty]) -> Uncertainty:
        """(n,) arrays of several steps as (n, steps) arrays."""
        return cls(**{name: np.stack([getattr(step, name) for step in steps], axis=1) for name in steps[0].as_dict()})


def summarize(proba: ArrayLike, members: ArrayLike | None = None) -> Uncertainty:
    """All uncertainties of each row at once, by the primary prediction (n, C) and the members (k, n, C).

    Without members what depends on them is NaN, since it is unknown and not 0.

    >>> summarize([[0.5, 0.5]]).total.round(3), summarize([[0.5, 0.5]]).epistemic
    (array([0.693]), array([nan]))
    """
    total, gap = entropy(proba), confidence_gap(proba)
    unknown = np.full_like(total, np.nan)
    if members is None:
        return Uncertainty(total, unknown, unknown.copy(), unknown.copy(), unknown.copy(), gap, unknown.copy())
    members = _check_members(members)
    inner, outer = aleatoric(members), epistemic_divergence(members, proba)
    return Uncertainty(
        total, inner, _disagreement(members, inner), outer, ensemble_variance(members), gap, novelty=unknown
    )


def _disagreement(members: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Eq. 17 from the members and their mean entropy."""
    return _not_below_zero(entropy(members.mean(axis=0)) - inner)


def as_floats(owner: str, values: ArrayLike) -> np.ndarray:
    """`values` as an array of floats; `owner` names the parameter in the error.

    Examples
    --------
    >>> as_floats("proba", [0, 1]).tolist()
    [0.0, 1.0]
    """
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(f"{owner} must be an array of numbers; got {values!r}.") from None


def _check_members(members: ArrayLike) -> np.ndarray:
    checked = as_floats("members", members)
    if checked.ndim != 3 or len(checked) == 0:
        raise InvalidInput(
            "members must have shape (k, n, C): one or more members first, then rows, then classes; "
            f"got shape {checked.shape}."
        )
    return checked


def _not_below_zero(values: np.ndarray) -> np.ndarray:
    """Set to 0 what is negative by rounding; larger negative values come from the input and are kept."""
    return np.where(np.abs(values) < ROUNDING, np.maximum(values, 0.0) + 0.0, values)


def smoothed(proba: ArrayLike, prior: ArrayLike, share: float = 0.01) -> np.ndarray:
    """`proba` mixed with a little of `prior`, so that a divergence from it is finite.

    >>> smoothed([[1.0, 0.0]], [0.5, 0.5]).tolist()
    [[0.995, 0.005]]
    """
    return (1 - share) * as_floats("proba", proba) + share * as_floats("prior", prior)
