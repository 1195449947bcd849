"""Expected reductions of discrepancy and of epistemic uncertainty, from the completions of a case (Eq. 8 to 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import rel_entr

from askwise.uncertainty import smoothed
from askwise.value.outcomes import Outcomes

DOUBT = 2.0
"""Standard deviations by which fine outcomes must differ more than by chance before they are told apart."""
SMALLEST = 1e-12


class Evidence(NamedTuple):
    """What the completions of n cases say before any feature is asked for."""

    before: np.ndarray  # (n, 1, C), or (n, 1, (1 + k) C) with members: p(y | x_S)
    spread: np.ndarray  # (n,) mean squared answer, each class in units of its p(y | x_S)
    size: np.ndarray  # (n,) Kish's effective number of completions
    n_classes: int

    @classmethod
    def of(cls, weights: np.ndarray, proba: np.ndarray, n_classes: int) -> Evidence:
        before = np.maximum(np.einsum("nk,nkc->nc", weights, proba), SMALLEST)[:, None]
        squares = proba[..., :n_classes] ** 2 / before[..., :n_classes]
        return cls(before, np.einsum("nk,nkc->n", weights, squares), 1 / (weights**2).sum(axis=1), n_classes)

    def squares(self, means: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """(n,) like `spread`, of the means of outcomes."""
        primary = means[..., : self.n_classes] ** 2 / self.before[..., : self.n_classes]
        return np.asarray((chance * primary.sum(axis=2)).sum(axis=1))


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
        (n, K, C) the model's answers; (n, K, (1 + k) C) with those of k members behind them.
    outcomes
        Of each feature.
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
        joint = (sums @ answers).reshape(n, n_outcomes, -1)  # outcome and class together
        chance = joint[..., :n_classes].sum(axis=2)
        after = predictions_after(joint, chance, outcome.parent, evidence)
        discrepancy[:, i] = _information(joint, chance, after, evidence)
        epistemic[:, i] = e_before - (chance * _divergence_of_members(after, evidence, around_the_mean)).sum(axis=1)
    return discrepancy, epistemic


def predictions_after(joint: np.ndarray, chance: np.ndarray, parent: np.ndarray, evidence: Evidence) -> np.ndarray:
    """(n, B, C) predictions after each outcome: means of the answers, shrunk as far as chance explains them.

    Coarse outcomes are shrunk towards p(y | x_S), fine ones towards the coarse ones that they belong to.
    """
    root = np.zeros(len(parent), dtype=int)
    before, certain = evidence.before, np.ones((len(joint), 1))
    if not parent.any():
        return _shrunk(joint, chance, root, (before, certain, before), evidence)
    members = np.eye(parent.max() + 1)[:, parent]
    coarse_joint, coarse_chance = members @ joint, chance @ members.T
    root = np.zeros(len(members), dtype=int)
    coarse = _shrunk(coarse_joint, coarse_chance, root, (before, certain, before), evidence)
    means = _means(coarse_joint, coarse_chance, before)
    return _shrunk(joint, chance, parent, (means, coarse_chance, coarse), evidence, DOUBT)


def _shrunk(
    joint: np.ndarray,
    chance: np.ndarray,
    parent: np.ndarray,
    above: tuple[np.ndarray, np.ndarray, np.ndarray],
    evidence: Evidence,
    doubt: float = 0.0,
) -> np.ndarray:
    r"""Means of outcomes drawn towards `above`, their parents' (means, chances, predictions): empirical Bayes.

    An analysis of variance of the answers gives :math:`V`, their variance within an outcome, and :math:`T`, that of
    the true means of the outcomes of one parent. Of an outcome of :math:`n_b` completions
    :math:`n_b T / (n_b T + V)` of its distance from its parent is kept: everything in the limit of many completions,
    or where an outcome settles the answer; nothing where outcomes differ no more than samples of one distribution.
    """
    parent_means, parent_chance, towards = above
    means = _means(joint, chance, parent_means[:, parent])
    inner = evidence.squares(means, chance)
    between = np.maximum(inner - evidence.squares(parent_means, parent_chance), 0)
    within = np.maximum(evidence.spread - inner, 0)
    n_seen = (chance > 0).sum(axis=1)
    freedom = np.maximum(n_seen - (parent_chance > 0).sum(axis=1), 1)
    # One more completion, as far from its outcome's mean as any two are: outcomes seen once each prove nothing.
    noise = (evidence.size * within + within + between) / (np.maximum(evidence.size - n_seen, 0) + 1)
    noise *= 1 + doubt * np.sqrt(2 / freedom)
    signal = np.maximum(evidence.size * between / freedom - noise, 0)
    share = chance**2 / np.maximum(parent_chance[:, parent], SMALLEST)
    rows_each = evidence.size * (1 - share.sum(axis=1)) / freedom
    kept = (evidence.size * signal)[:, None] * chance
    total = kept + (rows_each * noise)[:, None]
    kept = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return np.asarray(towards[:, parent] + kept[..., None] * (means - towards[:, parent]))


def _means(joint: np.ndarray, chance: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Mean answers of each outcome, (n, B, C); `otherwise` where an outcome has no completions."""
    seen = (chance > 0)[..., None]
    return np.where(seen, joint / np.where(seen, chance[..., None], 1.0), otherwise)


def _information(joint: np.ndarray, chance: np.ndarray, after: np.ndarray, evidence: Evidence) -> np.ndarray:
    """(n,) expected reduction of u by Lemma 1.

    Raw means as weights would give too much of it where there are few completions to an outcome, the shrunk ones
    too little; with the mean of the two the bias cancels to first order.
    """
    of_model = slice(evidence.n_classes)
    weight = (joint[..., of_model] + chance[..., None] * after[..., of_model]) / 2
    ratio = np.maximum(after[..., of_model], SMALLEST) / evidence.before[..., of_model]
    return np.asarray((weight * np.log(ratio)).sum(axis=(1, 2)))


def _divergence_of_members(proba: np.ndarray, evidence: Evidence, around_the_mean: bool) -> np.ndarray:
    """(n, B, (1 + k) C), the primary prediction first -> e of Eq. 13 (or Eq. 17), (n, B); 0 without members."""
    primary, *members = np.split(proba, proba.shape[-1] // evidence.n_classes, axis=-1)
    if not members:
        return np.zeros(proba.shape[:-1])
    # A class that an outcome rules out for the model but not for a member would make e infinite.
    primary = smoothed(primary, evidence.before[..., : evidence.n_classes])
    if around_the_mean:
        primary = np.mean(members, axis=0)
    return np.mean([rel_entr(member, primary).sum(axis=-1) for member in members], axis=0)
