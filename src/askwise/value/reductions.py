"""Expected reductions of discrepancy and of epistemic uncertainty, from the completions of a case (Eq. 8 to 11).

A pair is a case and a feature that it can acquire next. The outcomes of all P pairs that occur among the completions
are side by side on the last axis of an array, pair by pair; the first axis has the classes, followed by those of the
members. So a few numpy calls serve all features, and sums over classes, a short first axis, are fast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from askwise.uncertainty import SMALLEST, smoothed
from askwise.value.outcomes import Outcomes

DOUBT = 2.0
"""Standard deviations beyond chance by which fine outcomes must differ to be treated separately."""


class Evidence(NamedTuple):
    """Summary of the completions before another feature is acquired, by case or by pair."""

    before: np.ndarray  # (C, n), or ((1 + k) C, n) with members: p(y | x_S)
    spread: np.ndarray  # (n,) mean squared answer, each class in units of its p(y | x_S)
    size: np.ndarray  # (n,) Kish's effective number of completions
    n_classes: int

    @classmethod
    def of(cls, weights: np.ndarray, proba: np.ndarray, n_classes: int, case: np.ndarray | None = None) -> Evidence:
        """The evidence by case or, given the `case` (P,) of each, by pair."""
        before = np.maximum((weights[:, None] @ proba)[:, 0].T, SMALLEST)
        squares = (weights[:, None] @ proba[..., :n_classes] ** 2)[:, 0].T / before[:n_classes]
        spread, size = squares.sum(axis=0), 1 / (weights**2).sum(axis=1)
        if case is not None:
            before, spread, size = before.take(case, axis=1), spread[case], size[case]
        return cls(before, spread, size, n_classes)


class Level:
    """The outcomes of all pairs at one resolution.

    Parameters
    ----------
    joint
        (C, b) probability of outcome and class together.
    pair, parent
        (b,) number of the pair of each outcome, ascending, and of the outcome of the coarser level that it is part of.
    evidence
        The evidence of each pair.

    Attributes
    ----------
    start
        (P,) the first outcome of each pair: sums over the outcomes of the pairs are ``np.add.reduceat(values, start)``.
    """

    def __init__(self, joint: np.ndarray, pair: np.ndarray, parent: np.ndarray, evidence: Evidence) -> None:
        of_model = slice(evidence.n_classes)
        self.joint = joint
        self.pair = pair
        self.parent = parent
        self.n_seen = np.bincount(pair)  # (P,)
        self.start = np.cumsum(self.n_seen) - self.n_seen
        self.chance = joint[of_model].sum(axis=0)
        squares = joint[of_model] ** 2 / np.maximum(self.chance, SMALLEST)
        squares = np.add.reduceat(squares, self.start, axis=1) / evidence.before[of_model]
        self.squares = squares.sum(axis=0)  # (P,) like `spread`, of the mean answers of the outcomes


def expected_reductions(
    index: np.ndarray,
    weights: np.ndarray,
    proba: np.ndarray,
    outcomes: Outcomes,
    wanted: np.ndarray,
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
        The outcomes of all features.
    wanted
        (n, M) the features to evaluate, such as those that are not known; the others get 0.
    n_classes, around_the_mean
        C, and whether e is the divergence from the members' mean (Eq. 17) instead of the prediction (Eq. 13).
    """
    discrepancy, epistemic = np.zeros(wanted.shape), np.zeros(wanted.shape)
    if wanted.any():
        found = predicted_outcomes(index, weights, proba, outcomes, wanted, n_classes)
        discrepancy[found.case, found.feature] = found.information()
        if proba.shape[2] > n_classes:
            epistemic[found.case, found.feature] = _agreement(found, around_the_mean)
    return discrepancy, epistemic


class PredictedOutcomes(NamedTuple):
    """The outcomes of P pairs of a case and a feature, and the prediction after each of them."""

    case: np.ndarray  # (P,)
    feature: np.ndarray  # (P,)
    level: Level
    after: np.ndarray  # (C, b)
    evidence: Evidence

    def information(self) -> np.ndarray:
        """(P,) expected reduction of u by Lemma 1.

        With few completions per outcome, raw means as weights overestimate it and shrunk means underestimate it; with
        the mean of the two the bias cancels to first order.
        """
        of_model, level = slice(self.evidence.n_classes), self.level
        weight = (level.joint[of_model] + level.chance * self.after[of_model]) / 2
        before = self.evidence.before[of_model].take(level.pair, axis=1)
        ratio = np.maximum(self.after[of_model], SMALLEST) / before
        return np.asarray(np.add.reduceat((weight * np.log(ratio)).sum(axis=0), level.start))


def predicted_outcomes(
    index: np.ndarray, weights: np.ndarray, proba: np.ndarray, outcomes: Outcomes, wanted: np.ndarray, n_classes: int
) -> PredictedOutcomes:
    """The outcomes of the `wanted` features among the completions; parameters as in `expected_reductions`."""
    case, outcome, joint = _occurring(index, weights, proba, outcomes, wanted)
    coarse = outcomes.coarse[outcome]
    feature = outcomes.feature[coarse]
    first, pair = _runs(case * wanted.shape[1] + feature)
    evidence = Evidence.of(weights, proba, n_classes, case[first])
    has_levels = np.bincount(outcomes.feature)[feature[first]] > 1
    key, doubt = case * len(outcomes.feature) + coarse, np.where(has_levels, DOUBT, 0.0)
    level, after = shrunk_outcomes(joint, pair, key, evidence, doubt)
    return PredictedOutcomes(case[first], feature[first], level, after, evidence)


def shrunk_outcomes(
    joint: np.ndarray, pair: np.ndarray, coarse: np.ndarray, evidence: Evidence, doubt: np.ndarray
) -> tuple[Level, np.ndarray]:
    """The outcomes of pairs, and the predictions after each, (C, b): means of the answers without what chance explains.

    Coarse outcomes are shrunk towards p(y | x_S), fine ones towards their coarse ones, with a `doubt` (P,) about them.

    Parameters
    ----------
    joint
        (b, C) probability of outcome and class together.
    pair, coarse
        (b,) numbers of the pair and of the coarse outcome of each, both ascending.
    """
    start, parent = _runs(coarse)
    ends = np.append(start, len(joint))
    runs = sparse.csr_array((np.ones(len(joint)), np.arange(len(joint)), ends), shape=(len(start), len(joint)))
    sums = np.ascontiguousarray((runs @ joint).T)  # faster than `np.add.reduceat`
    coarser = Level(sums, pair[start], pair[start], evidence)
    level = Level(np.ascontiguousarray(joint.T), pair, parent, evidence)
    each = np.arange(len(doubt))
    now = Level(evidence.before, each, each, evidence)
    return level, _shrunk(level, coarser, _shrunk(coarser, now, evidence.before, evidence), evidence, doubt)


def _occurring(
    index: np.ndarray, weights: np.ndarray, proba: np.ndarray, outcomes: Outcomes, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Case (b,) and outcome (b,) of all that occur, and their probability together with each class, (b, C)."""
    n, n_outcomes = len(index), len(outcomes.coarse)
    at = outcomes.of_row[index] + n_outcomes * np.arange(n, dtype=np.int32)[:, None, None]  # (n, K, M)
    occurs = np.zeros(n * n_outcomes, dtype=bool)
    occurs[at[weights > 0]] = True
    occurs &= wanted[:, outcomes.feature[outcomes.coarse]].ravel()
    found = np.flatnonzero(occurs)
    number = np.full(len(occurs), len(found), dtype=np.int32)  # the last number is for what is not wanted
    number[found] = np.arange(len(found))
    ends = np.arange(0, at.size + 1, at.shape[2], dtype=np.int32)
    parts = (np.repeat(weights, at.shape[2]), number[at].ravel(), ends)
    sums = sparse.csc_array(parts, shape=(len(found) + 1, weights.size))
    return *np.divmod(found, n_outcomes), (sums @ proba.reshape(weights.size, -1))[:-1]


def _runs(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each run of equal keys starts, and for each key the number of its run."""
    starts = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=starts[1:])
    return np.flatnonzero(starts), np.cumsum(starts) - 1


def _shrunk(
    level: Level, above: Level, towards: np.ndarray, evidence: Evidence, doubt: np.ndarray | float = 0.0
) -> np.ndarray:
    r"""(C, b) means of outcomes shrunk `towards` the predictions (C, a) of the level above: empirical Bayes.

    An analysis of variance of the answers gives :math:`V`, their variance within an outcome, and :math:`T`, that of
    the true means of the outcomes of one parent. Of an outcome of :math:`n_b` completions
    :math:`n_b T / (n_b T + V)` of its distance from its parent is kept: everything in the limit of many completions,
    or where an outcome determines the answer; nothing where outcomes differ no more than samples of one distribution.
    """
    size = evidence.size
    between = np.maximum(level.squares - above.squares, 0)
    within = np.maximum(evidence.spread - level.squares, 0)
    freedom = np.maximum(level.n_seen - above.n_seen, 1)
    # One pseudo-completion at the typical distance: outcomes with one completion each give no estimate of V.
    noise = (size * within + within + between) / (np.maximum(size - level.n_seen, 0) + 1)
    noise *= 1 + doubt * np.sqrt(2 / freedom)
    signal = np.maximum(size * between / freedom - noise, 0)
    share = level.chance**2 / np.maximum(above.chance[level.parent], SMALLEST)
    rows_each = size * (1 - np.add.reduceat(share, level.start)) / freedom
    kept = (size * signal)[level.pair] * level.chance
    kept /= np.maximum(kept + (rows_each * noise)[level.pair], SMALLEST)
    shrunk = towards.take(level.parent, axis=1)
    shrunk *= 1 - kept
    shrunk += level.joint * (kept / np.maximum(level.chance, SMALLEST))  # times the mean answers
    return shrunk


def _agreement(found: PredictedOutcomes, around_the_mean: bool) -> np.ndarray:
    """(P,) expected reduction of e; exactly 0 where no outcome changes a prediction, so that such features tie."""
    level, before = found.level, found.evidence.before[: found.evidence.n_classes]
    e_before = _divergence_of_members(found.evidence.before, before, around_the_mean)
    e_after = _divergence_of_members(found.after, before.take(level.pair, axis=1), around_the_mean)
    return np.asarray(np.add.reduceat(level.chance * (e_before[level.pair] - e_after), level.start))


def _divergence_of_members(proba: np.ndarray, before: np.ndarray, around_the_mean: bool) -> np.ndarray:
    """((1 + k) C, b), the primary prediction first, and p(y | x_S) (C, b) -> e of Eq. 13 (or Eq. 17), (b,).

    `askwise.uncertainty.epistemic_divergence` (`mutual_information`) for arrays with the classes first and a smoothed
    primary prediction.
    """
    n_classes = len(before)
    members = proba[n_classes:]
    mean = members.reshape(-1, *before.shape).mean(axis=0)
    # A class that an outcome rules out for the model but not for a member would make e infinite.
    primary = mean if around_the_mean else smoothed(proba[:n_classes], before)
    own = np.maximum(members, SMALLEST)
    np.log(own, out=own)
    own *= members
    cross = mean * np.log(np.maximum(primary, SMALLEST))
    return np.asarray(own.sum(axis=0) * (n_classes / len(members)) - cross.sum(axis=0))
