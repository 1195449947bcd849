"""Calibration on the states that a policy visits on rows the model has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from askwise.acquisition import Acquisition, nothing_known
from askwise.calibrate.crossfit import Fold
from askwise.epistemic import BeliefModel
from askwise.policy.base import Policy
from askwise.policy.greedy import Greedy
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief
from askwise.predict.calibration import SPREADS, Calibration, fit_final, fit_temperatures, log_losses
from askwise.predict.conditional import ConditionalPredictor
from askwise.predict.pooled import PooledPredictor
from askwise.progress import track
from askwise.table.prices import Prices
from askwise.table.rows import ByRow, EncodedRows
from askwise.value import NeighborValue, SeenGains
from askwise.value.usual import MOST_STATES, actual_gains

N_SIZES = 12
N_PARTS = 5


@dataclass(frozen=True, eq=False)
class VisitedStates(ByRow):
    """What is said, uncalibrated, about unseen cases as a policy acquires their features, and what is true of them.

    `case` (N,) number of the case, `size` (N,) known features, `proba` (N, C), `votes` (N, C) as in `BeliefModel.votes`
    or None without completions, `labels` (N,) true classes and `final` (N,) decisions on the full rows, as positions;
    `by_factor` (N, F, C) and `second` (N, C) are what `tuning` chooses from: answers by the factor of the kernel's
    width, and log probabilities to pool them with; None where there are none. `expected` and `actual` (N, M) are those
    of `SeenGains`, NaN in states that were not examined for them; None where gains were not asked for.
    """

    case: np.ndarray
    size: np.ndarray
    proba: np.ndarray
    votes: np.ndarray | None
    labels: np.ndarray
    final: np.ndarray
    by_factor: np.ndarray | None = None
    second: np.ndarray | None = None
    expected: np.ndarray | None = None
    actual: np.ndarray | None = None

    def gains(self) -> SeenGains | None:
        """The states that were examined for the gains of their features; None if there are none."""
        if self.expected is None or self.actual is None:
            return None
        at = ~np.isnan(self.actual).all(axis=1)
        return SeenGains(self.case[at], self.size[at], self.expected[at], self.actual[at]) if at.any() else None


def states_of_folds(
    rows: EncodedRows,
    y: np.ndarray,
    folds: Sequence[Fold],
    rng: np.random.Generator,
    n_cases: int,
    *,
    progress: bool | str = False,
    gains: bool = False,
    **options: Any,
) -> VisitedStates:
    """The states visited on the rows that each fold holds, a random sample of about `n_cases` in all, if there are.

    With `gains`, those of the features are recorded in about `MOST_STATES` of them.
    """
    if gains:
        n_seen = min(n_cases, sum(len(fold.held) for fold in folds))
        n_states = n_seen * len(sizes_visited(len(folds[0].beliefs.predictor.schema_.features)))
        options["every"] = max(1, round(n_states / MOST_STATES))
    found: list[VisitedStates] = []
    for fold in track(folds, "calibrating", len(folds), progress):
        at = rng.permutation(fold.held)[: -(-n_cases // len(folds))]
        states = visited_states(rows.take(at), y[at], fold.beliefs, fold.policy, **options)
        found.append(replace(states, case=at[states.case]))  # numbers that no other fold has
    return VisitedStates.concatenated(found)


def visited_states(
    rows: EncodedRows,
    labels: np.ndarray,
    beliefs: BeliefModel,
    policy: Policy,
    *,
    prices: Prices,
    risk_weight: float,
    every: int | None = None,
) -> VisitedStates:
    """The incomplete states, at about a dozen sizes, that `policy` visits on `rows`, which hold the truth.

    The gains of the features are recorded in every so many of them; None = in none.
    """
    part_of = beliefs if policy.reads_members(risk_weight) else beliefs.without_members()
    schema, found = beliefs.predictor.schema_, []
    step = max(1, part_of.rows_at_once // len(sizes_visited(len(schema.features))))  # what is said is kept of each size
    for start in range(0, max(len(rows), 1), step):
        ids = np.arange(len(rows))[start : start + step]
        truth = rows.take(ids)
        state = nothing_known(schema, prices, part_of, truth, risk_weight=risk_weight, ids=ids)
        found.append(_visited_from(state, truth, labels[ids], policy, every))
    return VisitedStates.concatenated(found)


def _visited_from(
    state: Acquisition, truth: EncodedRows, labels: np.ndarray, policy: Policy, every: int | None
) -> VisitedStates:
    model, said, cells, masks = state.beliefs, [], [], []
    noting = None if every is None else _NotingGains(policy, state.ids)
    for size in sizes_visited(len(state.schema.features)):
        _acquire_until(state, truth.values, policy if noting is None else noting, size)
        incomplete = np.any(~state.rows.observed, axis=1)
        said.append(replace(state.belief_of(incomplete), distances=None, weighted_distances=None))
        cells.append(state.rows.values)
        masks.append(state.mask)
    incomplete, mask = np.any(np.isnan(cells), axis=2), np.stack(masks)  # (S, n), (S, n, M)
    belief, rows = Belief.concatenated(said), truth.with_values(np.stack(cells)[incomplete])
    votes = None if belief.completions is None else model.votes(belief)
    case = np.nonzero(incomplete)[1]
    final = model.decisions(model.predictor.full_proba(truth))
    known, open_ = mask[incomplete].sum(axis=1), _to_choose_from(model.predictor, belief, rows)
    found = VisitedStates(state.ids[case], known, belief.proba, votes, labels[case], final[case], *open_)
    if noting is None or every is None:
        return found
    buyable = np.any(state.buyable(), axis=1)
    if buyable.any():
        noting.scores(state.part(buyable))
    in_turn = (np.arange(len(mask))[:, None] + state.ids) % every == 0
    expected, actual = noting.in_states(mask, incomplete & in_turn, truth)
    return replace(found, expected=expected[incomplete], actual=actual[incomplete])


class _NotingGains(Policy):
    """A greedy policy that keeps the gains it expects of the features of the states that it scores."""

    def __init__(self, policy: Policy, ids: np.ndarray) -> None:
        assert isinstance(policy, Greedy)
        assert isinstance(policy.value_, NeighborValue)
        self.policy, self.predictor, self.ids = policy, policy.value_.predictor, ids
        self.noted: list[np.ndarray] = []

    def scores(self, state: Acquisition) -> np.ndarray:
        discrepancy, epistemic = self.policy.reductions(state)
        self.noted.append(np.full((len(self.ids), state.mask.shape[1]), np.nan))
        self.noted[-1][np.searchsorted(self.ids, state.ids)] = discrepancy
        return self.policy.ranked(self.policy.weighed(discrepancy, epistemic, state), state)

    def in_states(self, masks: np.ndarray, examined: np.ndarray, truth: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """`expected` and `actual` (S, n, M) of the features not in `masks` (S, n, M), in the states `examined` (S, n).

        NaN in other states. The states are those that were scored, in order; where nothing is left to acquire, none is.
        """
        schema = self.predictor.schema_
        expected, actual = np.full((2, *masks.shape), np.nan)
        if self.noted:  # otherwise no case has anything to buy
            expected[: len(self.noted)] = self.noted
        step, case = np.nonzero(examined)
        whole, mask = truth.take(case), masks[step, case]
        wanted = ~mask & schema.any_column(whole.observed)
        actual[step, case] = actual_gains(self.predictor, whole.masked(schema.expand(mask)), whole, wanted)
        return np.where(np.isnan(actual), np.nan, expected), actual


def _to_choose_from(
    predictor: SubsetPredictor, belief: Belief, rows: EncodedRows
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """`by_factor` and `second` of `VisitedStates`; images have widths of their own."""
    if belief.completions is None or not isinstance(predictor, ConditionalPredictor) or not predictor.schema_.tabular:
        return None, None
    second = predictor.second_opinion(rows) if isinstance(predictor, PooledPredictor) else None
    return predictor.answers_by_factor(belief, rows), second


def sizes_visited(n_features: int) -> list[int]:
    """0, 1, ...: every number of features up to a dozen; if there are more features, growing by a constant factor."""
    if n_features <= N_SIZES:
        return list(range(n_features))
    return [0, *np.unique(np.geomspace(1, n_features - 1, N_SIZES - 1).round().astype(int)).tolist()]


def calibrated(
    states: VisitedStates, n_features: int, decisions: Callable[[np.ndarray], np.ndarray]
) -> tuple[Calibration, pd.DataFrame]:
    """The calibration fitted on the states, and the log loss before and after, by size.

    The log loss after is that of temperatures fitted without the case, so that it holds for other cases, too. If it is
    higher by more than a standard error, the temperatures are 1 (`kept` is False in the report).

    Parameters
    ----------
    n_features
        M.
    decisions
        Function of probabilities (N, C) that returns the positions of the classes decided for.
    """
    calibration, spread = temperatures(states, states.proba, n_features)
    report = _report(states, n_features, spread)
    if not report["kept"].all():
        calibration = Calibration(np.ones(n_features + 1))
    proba = calibration.proba(states.proba, states.size)
    votes, decision = proba if states.votes is None else states.votes, decisions(proba)
    chosen = np.arange(len(decision)), decision
    final_map = fit_final(votes[chosen], proba[chosen], decision == states.final)
    return replace(calibration, final_map=final_map), report


def temperatures(
    states: VisitedStates, proba: np.ndarray, n_features: int, spreads: Sequence[float] = SPREADS
) -> tuple[Calibration, float]:
    """`fit_temperatures` for answers `proba` (N, C) about the states."""
    average_at_start = states.votes is not None  # completions: with nothing known, all training rows
    return fit_temperatures(proba, states.size, states.labels, n_features, spreads, average_at_start=average_at_start)


def _report(states: VisitedStates, n_features: int, spread: float) -> pd.DataFrame:
    part = states.case % N_PARTS
    after = np.empty(len(part))
    for k in np.unique(part):
        rest, held = states.take(part != k), states.take(part == k)
        without, _ = temperatures(rest, rest.proba, n_features, [spread])
        after[part == k] = log_losses(without.proba(held.proba, held.size), held.labels)
    before = log_losses(states.proba, states.labels)
    by_case = pd.Series(after - before).groupby(states.case).mean().to_numpy()
    clearly_worse = by_case.mean() > by_case.std(ddof=1) / np.sqrt(len(by_case))
    return losses_by_size(states.size, before, after).assign(kept=not clearly_worse)


def losses_by_size(size: np.ndarray, before: np.ndarray, after: np.ndarray) -> pd.DataFrame:
    """The mean of losses (N,) before and after, by the number of known features (N,)."""
    by_size = pd.DataFrame({"size": size, "before": before, "after": after}).groupby("size")
    return by_size.mean().assign(rows=by_size.size(), kept=True).reset_index()


def _acquire_until(state: Acquisition, truth: np.ndarray, policy: Policy, size: int) -> None:
    """Acquire the features that `policy` ranks highest, all of them by one ranking, until `size` are known."""
    wanted = np.maximum(size - state.mask.sum(axis=1), 0)
    buyable = state.buyable() & (wanted > 0)[:, None]
    if not buyable.any():
        return
    if state.schema.rules is not None:  # what may come next changes with each feature
        _acquire_one_by_one(state, truth, policy, wanted)
        return
    ranked, _ = state.ranked(policy, buyable)
    rank = np.argsort(np.argsort(-ranked, axis=1, kind="stable"), axis=1)
    n_ranked = np.minimum(wanted, np.sum(~np.isneginf(ranked), axis=1))
    state.reveal(state.mask | (rank < n_ranked[:, None]), truth)


def _acquire_one_by_one(state: Acquisition, truth: np.ndarray, policy: Policy, wanted: np.ndarray) -> None:
    """`wanted` (n,) more features of each case, or as many as can be had."""
    for step in range(int(wanted.max())):
        buyable = state.buyable() & (step < wanted)[:, None]
        if not buyable.any():
            return
        state.receive(state.choose(policy, buyable)[0], truth)
        if isinstance(policy, _NotingGains):  # it keeps the gains in the first state only
            policy = policy.policy
