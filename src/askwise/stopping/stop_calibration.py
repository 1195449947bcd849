"""Calibrating a stop: the runs of cases along a policy, and the rule that reaches a goal on them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from askwise.acquisition import nothing_known, run_episodes
from askwise.calibrate.crossfit import Fold
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.progress import track
from askwise.stopping.calibrated_stop import CalibratedStop, Conditions, Goal, calibrated_threshold
from askwise.stopping.guarantee import FullRuns, threshold_sequence
from askwise.stopping.prediction_sets import PredictionSets
from askwise.table.columns import as_labels
from askwise.table.prices import Prices
from askwise.table.schema import Schema
from askwise.trajectory import Trajectory

ROWS_TO_SHARE = 5
"""One of so many calibration rows says where a conditional test starts, if training rows cannot be cross-fitted."""


def calibrated_stop(
    runs: FullRuns,
    goal: Goal,
    conditions: Conditions,
    classes: np.ndarray,
    *,
    shares: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    grouped_by: str = "",
    others: FullRuns | None = None,
    coverage: float = 0.9,
    by_class: bool = False,
    rows: np.ndarray | None = None,
    assumption: str = "",
    usual_novelty: np.ndarray | None = None,
) -> CalibratedStop:
    """The rule that reaches `goal` on the runs of the calibration rows.

    Parameters
    ----------
    runs
        Runs of the calibration rows along the policy, without an early stop.
    conditions, classes
        What must not change after the calibration, and the labels of the classes, (C,).
    shares
        (C,) usual shares of the classes, by which rare ones are protected; None where classes do not count.
    groups
        (n,) group of each row, if the promise is also made for each of them.
    grouped_by
        The column that holds the groups, if one does.
    others
        Runs of other rows, which say where a conditional test starts; None: some of `runs` are set aside for that.
    coverage, by_class
        Those of the prediction sets, which need labels.
    rows
        Digests of the calibration rows; None: they are cross-fitted training rows, and the promise is an estimate.
    assumption
        What the promise rests on where missing cells were weighed or drawn.
    usual_novelty
        (n,) how novel each row is, to compare later cases with.
    """
    if shares is not None:
        runs = runs.judged_by_class(shares)
        others = None if others is None else others.judged_by_class(shares)
    early_share = None
    if goal.conditional:
        if others is None:
            order = np.random.default_rng(0).permutation(len(runs))
            apart = len(runs) // ROWS_TO_SHARE
            groups = None if groups is None else groups[order[apart:]]
            runs, others = runs.take(order[apart:]), runs.take(order[:apart])
        early_share = others.early(others.stops_at(threshold_sequence())).mean(axis=0)
    goal.check_rows(len(runs))
    threshold, promised = calibrated_threshold(runs, goal, goal.requirements(runs, classes, groups), early_share)
    sets = None
    if runs.labels is not None and runs.proba is not None:
        stops = runs.stops_at(np.array([threshold]))[:, 0]
        sets = PredictionSets(runs.proba, runs.labels, stops, coverage, by_class)
    found: dict[str, Any] = {
        "classes": classes,
        "shares": shares,
        "promised": promised,
        "rows": rows,
        "assumption": assumption,
        "subgroups": [] if groups is None else list(pd.unique(groups)),
        "grouped_by": grouped_by,
        "usual_novelty": usual_novelty,
    }
    return CalibratedStop(runs, threshold, goal, conditions, rows is None, sets, **found)


def usual_shares(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """(C,) shares of the classes among `labels` (N,), positions, none of them 0; equal without any label."""
    counts = np.bincount(labels, minlength=n_classes) + 1.0
    return np.asarray(counts / counts.sum())


def full_runs(
    run: Trajectory, full: np.ndarray, schema: Schema, prices: Prices, labels: np.ndarray | None = None
) -> FullRuns:
    """A run without an early stop, as stops see it.

    Parameters
    ----------
    full
        (n,) decisions from the full rows.
    schema, prices
        The features, some of which may be mandatory or free.
    labels
        (n,) positions of the true classes.
    """
    n = len(run.order)
    amounts = np.stack(list(run.amounts.values()), axis=2)
    free_next = (run.order >= 0) & ((prices.weigh(amounts) == 0) | _leading_to_mandatory(run.order, schema))
    free_next = np.column_stack([free_next, np.zeros(n, dtype=bool)])
    return FullRuns(
        certainty=np.where(free_next, -np.inf, run.decision_is_final),
        decision=run.decision,
        spent=np.column_stack([np.zeros(n), run.costs.cumsum(axis=1)]),
        n_steps=(run.order >= 0).sum(axis=1),
        full=full,
        labels=labels,
        proba=None if labels is None else run.proba,
        final=run.final,
        further=np.pad(amounts.cumsum(axis=1), ((0, 0), (1, 0), (0, 0)))[:, :, 1:] if run.further else None,
    )


def _leading_to_mandatory(order: np.ndarray, schema: Schema) -> np.ndarray:
    """(n, T) purchases of what is mandatory, and those before them of what comes first: no case stops there."""
    found = np.zeros(order.shape, dtype=bool)
    if schema.rules is not None:
        found = schema.rules.must[order] & (order >= 0)
        for t in range(order.shape[1] - 2, -1, -1):
            found[:, t] |= schema.rules.first[order[:, t]] & found[:, t + 1] & (order[:, t] >= 0)
    return found


def runs_of_folds(
    folds: Sequence[Fold],
    beliefs: BeliefModel,
    schema: Schema,
    prices: Prices,
    limit: np.ndarray,
    risk_weight: float = 0.0,
    progress: bool | str = False,
) -> FullRuns:
    """Runs of training rows, each along a policy and a model that were fitted without it."""
    predictor, runs = beliefs.predictor, []
    own = nothing_known(schema, prices, beliefs, predictor.training_rows_.take([0]))
    at_start = beliefs.assess(own.belief, own.rows)
    for fold in track(folds, "cross-fitting", len(folds), progress):
        rows, labels = predictor.training_rows_.take(fold.held), predictor.training_labels_[fold.held]
        state = nothing_known(schema, prices, fold.beliefs.settled_like(beliefs), rows, risk_weight=risk_weight)
        state.remaining = np.tile(limit, (len(rows), 1))
        full = state.beliefs.decisions(state.beliefs.predictor.full_proba(rows))
        run = full_runs(run_episodes(state, rows.values, fold.policy, progress=progress), full, schema, prices, labels)
        # With nothing known all cases are alike and would stop together: test that where the selector itself would.
        assert run.final is not None
        run.final[:, 0], run.decision[:, 0] = at_start.final, at_start.decision
        run.certainty[np.isfinite(run.certainty[:, 0]), 0] = at_start.decision_is_final
        runs.append(run)
    return FullRuns.concatenated(runs)


def checked_groups(subgroups: Any, n_rows: int, X_cal: Any, goal: Goal) -> np.ndarray:
    """The group of each calibration row, (n,), from an array or a column of `X_cal`."""
    if isinstance(subgroups, str):
        if not isinstance(X_cal, pd.DataFrame) or subgroups not in X_cal:
            raise InvalidInput(f"calibrate_stop: subgroups names the column {subgroups!r}, which X_cal does not have.")
        subgroups = X_cal[subgroups]
    groups = as_labels(subgroups)
    if X_cal is None or goal.average_price is not None or goal.recall is not None:
        raise InvalidInput("calibrate_stop: subgroups are for agreement and accuracy_gap, and need X_cal.")
    if groups.shape != (n_rows,) or pd.isna(groups).any():
        raise InvalidInput(
            f"subgroups must hold one group per row of X_cal, {n_rows} in all, none of them missing; got shape "
            f"{groups.shape}. Name a group of its own for rows of which it is not known."
        )
    if not all(isinstance(one, Hashable) for one in groups.tolist()):
        raise InvalidInput("subgroups must be text, numbers or other names; got a list or dict among them.")
    return groups
