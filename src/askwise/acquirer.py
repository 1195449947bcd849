"""FeatureAcquirer: prediction, suggestion, acquisition and evaluation with a fitted predictor and a policy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from askwise.acquisition import Acquisition, nothing_known, run_episodes
from askwise.case.session import Session
from askwise.case.suggesting import Suggesting
from askwise.epistemic import BeliefModel, EpistemicEstimator
from askwise.epistemic.novelty import unlike_training
from askwise.errors import AskwiseWarning, InvalidInput
from askwise.evaluation import (
    FinalState,
    default_budgets,
    ends_of_each_budget,
    ends_of_one_run,
    measures,
)
from askwise.explain.mixin import FlowchartMixin
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.predict.rules.explanation import Explanation
from askwise.progress import track
from askwise.saved import Saveable
from askwise.stopping.calibrated_stop import CalibratedStop
from askwise.stopping.rules import Stopping
from askwise.stopping.stop_calibration import StopCalibration
from askwise.table.columns import plain
from askwise.table.prices import Prices, check_budget, check_budgets
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema, as_table
from askwise.table.subsets import check_mask
from askwise.trajectory import Trajectory
from askwise.uncertainty import Uncertainty

USUAL_MEMORY = 512.0
"""MiB that a block of `rows_at_once` cases takes, about."""

GUARANTEE_VOID = "The guarantee of the stop does not hold for"
"""How the warning about cases begins that differ from those of the calibration."""


class FeatureAcquirer(Suggesting, Saveable, StopCalibration, FlowchartMixin, ClassifierMixin, BaseEstimator):
    """Base class that predicts, suggests, acquires and evaluates; `fit` of a subclass sets the attributes below."""

    budget: float | None = None
    n_jobs: int | None = None
    progress: bool | str = False
    memory_limit: float = USUAL_MEMORY

    schema_: Schema
    features_: list[str]
    classes_: np.ndarray
    prices_: Prices
    costs_: np.ndarray
    predictor_: SubsetPredictor
    epistemic_: EpistemicEstimator | None
    beliefs_: BeliefModel
    policy_: Policy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(y | x_S) for rows with NaN for what is not known, (n, C). Never acquires."""
        rows = self._encode(X)
        return self.beliefs_.proba(rows)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class, or that of least expected cost, for rows with NaN for what is not known, (n,)."""
        proba = self.predict_proba(X)
        return np.asarray(self.classes_[self.beliefs_.decisions(proba)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; when `budget` is set, after acquiring features under it, starting with nothing known."""
        predicted = self.predict(X) if self.budget is None else self.acquire(X).predict()
        if np.shape(y) not in ((len(predicted),), (len(predicted), 1)):
            raise InvalidInput(f"score needs one label per row, {len(predicted)} in all; got y of shape {np.shape(y)}.")
        if sample_weight is not None and np.shape(sample_weight) != (len(predicted),):
            shape = np.shape(sample_weight)
            raise InvalidInput(f"score: sample_weight must hold {len(predicted)} numbers, one per row; got {shape}.")
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def uncertainty(self, X: Any) -> Uncertainty:
        """How far to trust `predict_proba`: total, aleatoric, mutual_information, epistemic and more, (n,) each."""
        rows = self._encode(X)
        parts = [rows.take(part) for part in self._blocks(len(rows))]
        found = [self.beliefs_.uncertainty(self.beliefs_.believe(part), part) for part in parts]
        return Uncertainty.concatenated(found)

    def explain(self, X: Any, mask: Any = None, most: int = 5) -> list[Explanation]:
        """The rules behind `predict_proba` of each row: those that fire in reduced form, and those still possible.

        Parameters
        ----------
        mask
            (n, M) or (M,) bool: features to treat as known, such as ``trajectory.mask_after(2)``; None = all in `X`.
        most
            Number of rules of each kind to list, those with the largest weight first.
        """
        rows = self._encode(X)
        if mask is not None:
            rows = rows.masked(
                self.schema_.expand(check_mask(mask, (len(rows), len(self.features_)), names=self.features_))
            )
        found = self.predictor_.explain_encoded(rows, most)
        if found is None:
            raise InvalidInput(
                f"{type(self.predictor_).__name__} has no rules to explain a prediction. A tree, a forest, a rule "
                'list or a fuzzy model has rules with adaptation="rules".'
            )
        return found

    def acquire(
        self,
        X: Any,
        budget: Any = None,
        stop: Stopping | str | None = None,
        available: Any = None,
        known: Any = None,
    ) -> Trajectory:
        """Acquire features one at a time, revealing their values from `X`, and record every step.

        Parameters
        ----------
        X
            The true values; NaN = unavailable. The policy sees a cell only after acquiring it.
        budget
            Total price per row, one number or one per row; None = the selector's own, and unlimited if that is None.
        stop
            A `Stopping` rule, or ``"calibrated"`` for that of `calibrate_stop`; None spends what it can or, with
            `error_costs`, what pays for itself. The promise of a calibrated one does not hold for cases that differ
            from those of the calibration by what is known or unavailable, of which a warning tells, nor for cases
            unlike all training rows: `Trajectory.departures` says for which and why.
        available
            (n, M) or (M,) bool: features that can be acquired.
        known
            (n, M) or (M,) bool: features known from the start; they are not charged.
        """
        truth = self._encode(X)
        rule = self._stopping(stop, budget, len(truth))
        shape = (len(truth), len(self.features_))
        at_start = np.zeros(shape, dtype=bool) if known is None else check_mask(known, shape, "known", self.features_)
        there = self.schema_.any_column(truth.observed)
        allowed = there if available is None else there & check_mask(available, shape, "available", self.features_)
        state = self._state(truth.masked(self.schema_.expand(at_start)), budget, allowed)
        policy = self._policy_for(truth)
        n_jobs = max(1, min(len(truth), effective_n_jobs(self.n_jobs)))
        blocks = self._blocks(len(truth), n_jobs)
        departures = None
        if isinstance(rule, CalibratedStop):
            departures = rule.conditions.departures(at_start, allowed, self.features_)
            _warn_of_departures(departures)  # at once: whoever sees it need not wait for the run
        if len(blocks) == 1:
            found = run_episodes(state, truth.values, policy, rule, self.progress)
        else:
            jobs = (delayed(run_episodes)(state.take(part), truth.values[part], policy, rule) for part in blocks)
            with threadpool_limits(1) if n_jobs > 1 else nullcontext():  # the products of each thread use one core
                runs = Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")(jobs)
                found = Trajectory.concatenated(list(track(runs, "acquiring", len(blocks), self.progress)))
        handover = self._handover(rule, budget, len(truth))
        said = found.said
        over = None if handover is None else handover.hands_over(said.after(found.n_steps))
        if departures is not None:
            outside = self._outside(truth.masked(self.schema_.expand(found.mask_after(-1))))
            if over is not None:  # as in a session
                over = over | [bool(why or cells) for why, cells in zip(departures, outside, strict=True)]
            novelty = said.after(found.n_steps).uncertainty.novelty
            ends = zip(departures, outside, novelty, strict=True)
            departures = [why or unlike_training(cells, far) for why, cells, far in ends]
        index = X.index if isinstance(X, pd.DataFrame) else None
        return replace(found, index=index, departures=departures, handed_over=over)

    def evaluate(self, X: Any, y: Any, budgets: Sequence[float] | None = None) -> pd.DataFrame:
        """Accuracy, log loss, calibration error, cost (also of errors) and decisions kept, one row per budget.

        `kept` is the share of the cases with the decision of the full row, and `kept_of_worst` that of the class with
        the lowest such share, `worst_class`; a stop per case keeps more of them for the same price (see `savings`).
        `budgets` defaults to 1..10 features where all cost the same, else to 5 %..50 % of
        the price of everything.
        """
        truth = self._encode(X)
        given = np.asarray(y)
        if given.shape != (len(truth),) or not len(given):
            raise InvalidInput(f"evaluate needs one label per row, {len(truth)} in all; got shape {given.shape}.")
        labels = class_positions(self.classes_, given)
        budgets = self.default_budgets() if budgets is None else check_budgets(budgets)
        ends = self.final_states(X, budgets)
        decide, costs = self.beliefs_.decisions, self.beliefs_.error_costs
        full = decide(self.predictor_.full_proba(truth))
        found = []
        for end in ends:
            kept = decide(end.proba) == full
            by_class = {plain(self.classes_[c]): float(kept[full == c].mean()) for c in np.unique(full)}
            worst = min(by_class, key=by_class.__getitem__)
            shares = {"kept": float(kept.mean()), "worst_class": worst, "kept_of_worst": by_class[worst]}
            found.append({**measures(labels, end, costs), **shares})
        return pd.DataFrame([{"budget": b, **row} for b, row in zip(budgets, found, strict=True)])

    def start(
        self, known: Mapping[str, Any] | None = None, budget: float | None = None, stop: Stopping | str | None = None
    ) -> Session:
        """Start a session for one case, with features given by name.

        Parameters
        ----------
        known
            Feature -> value of what is already known; not charged.
        budget
            The most that the case may cost; None = the selector's own, and unlimited if that is None.
        stop
            A `Stopping` rule or ``"calibrated"``; once it is met, nothing more is suggested. None as in `acquire`.
        """
        check_is_fitted(self, "policy_")
        rule = self._stopping(stop, budget, 1)
        nothing = EncodedRows(np.full((1, len(self.schema_.columns)), np.nan))
        state, handover = self._state(nothing, budget, None), self._handover(rule, budget, 1)
        return Session(state, self.policy_, known, rule, handover)

    def _outside(self, rows: EncodedRows) -> list[list[dict[str, Any]]]:
        """For each row its cells outside of everything seen in training; see `Novelty.describe`."""
        novelty = self.beliefs_.novelty
        return [[] for _ in range(len(rows))] if novelty is None else novelty.describe(rows)

    def default_budgets(self) -> list[float]:
        """The budgets that `evaluate` uses by default."""
        check_is_fitted(self, "policy_")
        return default_budgets(self.prices_)

    def _policy_for(self, truth: EncodedRows) -> Policy:
        """The policy for rows with the true values `truth`, which only baselines that see the full row may read."""
        return self.policy_

    def _risk_weight(self) -> float:
        """The weight of epistemic uncertainty in a gain."""
        return 0.0

    def _table(self, X: Any, reset: bool, schema: Schema | None = None) -> Any:
        """`X` as a DataFrame or a numeric array, its columns checked against those of `fit` as scikit-learn does.

        Input that is not a table is checked by its `schema` only.
        """
        if schema is not None and not schema.tabular:
            return X
        table = as_table(X)
        if not len(table):
            raise InvalidInput("X has no rows; at least one is needed.")
        try:
            validate_data(self, table, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise InvalidInput(f"X: {str(error).strip()}\nUse NaN for unknown values and keep their columns.") from None
        return table

    def _encode(self, X: Any) -> EncodedRows:
        check_is_fitted(self, "policy_")
        return self.schema_.encode(self._table(X, reset=False, schema=self.schema_))

    def _blocks(self, n: int, n_jobs: int = 1) -> list[slice]:
        """Blocks of rows to process together, so that the beliefs of `n_jobs` of them fit into `memory_limit`."""
        most = int(self.beliefs_.rows_at_once * self.memory_limit / USUAL_MEMORY / n_jobs)
        step = max(1, min(most, -(-n // n_jobs)))
        return [slice(start, start + step) for start in range(0, max(n, 1), step)]

    def _state(self, rows: EncodedRows, budget: Any, available: Any) -> Acquisition:
        n, shape = len(rows), (len(rows), len(self.features_))
        allowed = (
            np.ones(shape, dtype=bool)
            if available is None
            else check_mask(available, shape, "available", self.features_)
        )
        left = check_budget(self.budget if budget is None else budget, n)
        mask = self.schema_.any_column(rows.observed)
        weight = self._risk_weight()
        return Acquisition(self.schema_, self.prices_, self.beliefs_, rows, mask, allowed, left, risk_weight=weight)

    def final_states(self, X: Any, budgets: Sequence[float], policy: Policy | None = None) -> list[FinalState]:
        """The final state of each case under each budget; `X` holds the true values.

        `policy` is used in place of the fitted one, such as `askwise.policy.Random(0)`. With equal prices one run
        serves all budgets, unless the policy reads the budget.
        """
        truth = self._encode(X)
        chosen = self._policy_for(truth) if policy is None else policy
        one_run = self.prices_.uniform and not chosen.depends_on_budget(self.prices_)
        ends_of = ends_of_one_run if one_run else ends_of_each_budget
        n_jobs = 1 if one_run else max(1, min(len(budgets), effective_n_jobs(self.n_jobs)))
        shares = np.array_split(np.array(budgets, dtype=float), n_jobs)
        show = self.progress if n_jobs == 1 else False
        jobs = (delayed(self._ends)(ends_of, truth, share, chosen, show) for share in shares)
        return [end for ends in Parallel(n_jobs=n_jobs)(jobs) for end in ends]

    def _ends(
        self, ends_of: Any, truth: EncodedRows, budgets: np.ndarray, policy: Policy, progress: bool | str
    ) -> list[FinalState]:
        """The final states by `ends_of`, block by block."""
        blocks = [self._nothing_known(truth, part, policy) for part in self._blocks(len(truth))]
        ends = [
            ends_of(state, truth.values[state.ids], policy, self.pays_off_, budgets, progress)
            for state in track(blocks, "blocks of cases", len(blocks), progress)
        ]
        return [FinalState.concatenated(parts) for parts in zip(*ends, strict=True)]

    def _nothing_known(self, truth: EncodedRows, part: slice, policy: Policy) -> Acquisition:
        weight = self._risk_weight()
        beliefs = self.beliefs_ if policy.reads_members(weight) else self.beliefs_.without_members()
        ids = np.arange(len(truth))[part]
        return nothing_known(self.schema_, self.prices_, beliefs, truth.take(part), risk_weight=weight, ids=ids)


def _warn_of_departures(departures: Sequence[str]) -> None:
    apart = [why for why in departures if why]
    if apart:
        warnings.warn(
            f"{GUARANTEE_VOID} {len(apart)} of {len(departures)} cases (for example: "
            f"{apart[0]}). It holds for cases like those of the calibration, with only free features known at the "
            "start; Trajectory.departures says which these are.",
            AskwiseWarning,
            stacklevel=3,
        )
