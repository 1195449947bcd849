"""Expected reductions of discrepancy and of epistemic uncertainty, from the completions of a case (Eq. 8 to 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from askwise.uncertainty import smoothed
from askwise.value.outcomes import Outcomes

DOUBT = 2.0
"""Standard deviations beyond chance by which fine outcomes must differ to be treated separately."""
SMALLEST = 1e-12


class Evidence(NamedTuple):
    """Summary of the completions of n cases before another feature is acquired.

    Classes (followed by those of the members) are the first axis of every array of this module: sums over a short
    first axis are sums of whole arrays, which are fast in numpy.
    """

    before: np.ndarray  # (C, n, 1), or ((1 + k) C, n, 1) with members: p(y | x_S)
    spread: np.ndarray  # (n,) mean squared answer, each class in units of its p(y | x_S)
    size: np.ndarray  # (n,) Kish's effective number of completions
    n_classes: int

    @classmethod
    def of(cls, weights: np.ndarray, proba: np.ndarray, n_classes: int) -> Evidence:
        before = np.maximum(np.einsum("nk,nkc->cn", weights, proba), SMALLEST)[..., None]
        squares = np.einsum("nk,nkc->cn", weights, proba[..., :n_classes] ** 2) / before[:n_classes, :, 0]
        return cls(before, squares.sum(axis=0), 1 / (weights**2).sum(axis=1), n_classes)

    def squares(self, means: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """(n,) like `spread`, of the means of outcomes."""
        primary = (means[: self.n_classes] ** 2 / self.before[: self.n_classes]).sum(axis=0)
        return np.einsum("nb,nb->n", chance, primary)


def expected_reductions(
    index: np.ndarray,
    weights: np.ndarray,
    proba: np.ndarray,
    outcomes: Sequence[Outcomes],
    *,
    n_classes: int,
    around_the_mean: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Expected reductions of u and of e by each feature, (n, M) each, from K completions of n cases.

    Parameters
    ----------
    index, weights
        (n, K) pool rows and their weights.
    proba
        (n, K, C) the model's answers; (n, K, (1 + k) C) followed by those of k members.
    outcomes
        The outcomes of each feature.
    n_classes, around_the_mean
        C, and whether e is the divergence from the members' mean (Eq. 17) instead of the prediction (Eq. 13).
    """
    n, k = index.shape
    evidence = Evidence.of(weights, proba, n_classes)
    answers, ends = proba.reshape(n * k, -1), np.arange(n * k + 1)
    e_before = _divergence_of_members(evidence.before, evidence, around_the_mean)[:, 0]
    discrepancy, epistemic = np.empty((n, len(outcomes))), np.empty((n, len(outcomes)))
    for i, outcome in enumerate(outcomes):
        n_outcomes = len(outcome.parent)
        cell = outcome.of_row[index] + n_outcomes * np.arange(n)[:, None]
        sums = sparse.csc_array((weights.ravel(), cell.ravel(), ends), shape=(n * n_outcomes, n * k))
        joint = np.ascontiguousarray((sums @ answers).T).reshape(-1, n, n_outcomes)  # outcome and class together
        chance = joint[:n_classes].sum(axis=0)
        after = predictions_after(joint, chance, outcome.parent, evidence)
        discrepancy[:, i] = information(joint, chance, after, evidence)
        e_after = _divergence_of_members(after, evidence, around_the_mean)
        epistemic[:, i] = e_before - np.einsum("nb,nb->n", chance, e_after)
    return discrepancy, epistemic


def predictions_after(joint: np.ndarray, chance: np.ndarray, parent: np.ndarray, evidence: Evidence) -> np.ndarray:
    """(C, n, B) predictions after each outcome: means of the answers, shrunk by the share that chance explains.

    Coarse outcomes are shrunk towards p(y | x_S), fine ones towards their coarse ones.
    """
    before = (evidence.before, np.ones((joint.shape[1], 1)), evidence.before)
    if not parent.any():
        return _shrunk(joint, chance, np.zeros(len(parent), dtype=int), before, evidence)
    belongs = np.eye(parent.max() + 1)[parent]  # (B, coarse)
    coarse_joint, coarse_chance = joint @ belongs, chance @ belongs
    coarse = _shrunk(coarse_joint, coarse_chance, np.zeros(belongs.shape[1], dtype=int), before, evidence)
    means = coarse_joint / np.maximum(coarse_chance, SMALLEST)
    return _shrunk(joint, chance, parent, (means, coarse_chance, coarse), evidence, DOUBT)


def _shrunk(
    joint: np.ndarray,
    chance: np.ndarray,
    parent: np.ndarray,
    above: tuple[np.ndarray, np.ndarray, np.ndarray],
    evidence: Evidence,
    doubt: float = 0.0,
) -> np.ndarray:
    r"""Means of outcomes shrunk towards `above`, their parents' (means, chances, predictions): empirical Bayes.

    An analysis of variance of the answers gives :math:`V`, their variance within an outcome, and :math:`T`, that of
    the true means of the outcomes of one parent. Of an outcome of :math:`n_b` completions
    :math:`n_b T / (n_b T + V)` of its distance from its parent is kept: everything in the limit of many completions,
    or where an outcome determines the answer; nothing where outcomes differ no more than samples of one distribution.
    """
    parent_means, parent_chance, towards = above
    means = joint / np.maximum(chance, SMALLEST)  # 0 for an outcome without completions
    inner = evidence.squares(means, chance)
    between = np.maximum(inner - evidence.squares(parent_means, parent_chance), 0)
    within = np.maximum(evidence.spread - inner, 0)
    n_seen = np.count_nonzero(chance, axis=1)
    freedom = np.maximum(n_seen - np.count_nonzero(parent_chance, axis=1), 1)
    # One pseudo-completion at the typical distance: outcomes with one completion each give no estimate of V.
    noise = (evidence.size * within + within + between) / (np.maximum(evidence.size - n_seen, 0) + 1)
    noise *= 1 + doubt * np.sqrt(2 / freedom)
    signal = np.maximum(evidence.size * between / freedom - noise, 0)
    share = chance**2 / np.maximum(parent_chance[:, parent], SMALLEST)
    rows_each = evidence.size * (1 - share.sum(axis=1)) / freedom
    kept = (evidence.size * signal)[:, None] * chance
    kept /= np.maximum(kept + (rows_each * noise)[:, None], SMALLEST)
    drawn = towards[..., parent]
    return np.asarray(drawn + kept * (means - drawn))


def information(joint: np.ndarray, chance: np.ndarray, after: np.ndarray, evidence: Evidence) -> np.ndarray:
    """(n,) expected reduction of u by Lemma 1.

    With few completions per outcome, raw means as weights overestimate it and shrunk means underestimate it; with the
    mean of the two the bias cancels to first order.
    """
    of_model = slice(evidence.n_classes)
    weight = (joint[of_model] + chance * after[of_model]) / 2
    ratio = np.maximum(after[of_model], SMALLEST) / evidence.before[of_model]
    return np.asarray((weight * np.log(ratio)).sum(axis=(0, 2)))


def _divergence_of_members(proba: np.ndarray, evidence: Evidence, around_the_mean: bool) -> np.ndarray:
    """((1 + k) C, n, B), the primary prediction first -> e of Eq. 13 (or Eq. 17), (n, B); 0 without members."""
    n_classes = evidence.n_classes
    if len(proba) == n_classes:
        return np.zeros(proba.shape[1:])
    members = proba[n_classes:].reshape(-1, n_classes, *proba.shape[1:])
    mean = members.mean(axis=0)
    # A class that an outcome rules out for the model but not for a member would make e infinite.
    primary = mean if around_the_mean else smoothed(proba[:n_classes], evidence.before[:n_classes])
    own = (members * np.log(np.maximum(members, SMALLEST))).sum(axis=(0, 1)) / len(members)
    return np.asarray(own - (mean * np.log(np.maximum(primary, SMALLEST))).sum(axis=0))
