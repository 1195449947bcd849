"""Calibrating a stop on rows that were not seen in training, and what it saves: methods of every acquirer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from askwise.acquire.acquisition import Acquisition, nothing_known, run_episodes
from askwise.acquire.calibration.crossfit import N_FOLDS, Fold
from askwise.acquire.calibration.unseen import check_distinct, check_unseen, digests, rounded_keys
from askwise.acquire.policies.base import Policy
from askwise.acquire.policies.orders import Static
from askwise.acquire.stopping.calibrated_stop import INSIDE, CalibratedStop, Conditions, Goal, calibrated_threshold
from askwise.acquire.stopping.guarantee import FullRuns, threshold_sequence
from askwise.acquire.stopping.pays_off import PaysOff
from askwise.acquire.stopping.prediction_sets import PredictionSets
from askwise.acquire.stopping.rules import Stopping
from askwise.acquire.stopping.savings import LEVELS, check_levels, savings_table
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.parameters import Flag, Limits, check_values
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.prices import Prices, check_budget
from askwise.progress import track
from askwise.rows import EncodedRows
from askwise.schema import Schema

ROWS_TO_SHARE = 5
"""One of so many calibration rows says where a conditional test starts, if training rows cannot be cross-fitted."""


class StopCalibration:
    """The methods `calibrate_stop` and `savings`, for `FeatureAcquirer`."""

    budget: float | None
    progress: bool | str
    schema_: Schema
    prices_: Prices
    classes_: np.ndarray
    predictor_: SubsetPredictor
    beliefs_: BeliefModel
    policy_: Policy
    pays_off_: PaysOff | None = None
    stop_: CalibratedStop | None = None
    calibrated_on_: np.ndarray | None = None
    """Digests of the rows that `fit` calibrated on, if some were given to it."""

    def calibrate_stop(
        self,
        X_cal: Any = None,
        y_cal: Any = None,
        *,
        agreement: float | None = None,
        accuracy_gap: float | None = None,
        average_price: float | None = None,
        confidence: float = 0.9,
        conditional: bool = False,
        budget: float | None = None,
        coverage: float = 0.9,
        by_class: bool = False,
    ) -> CalibratedStop:
        """A stopping rule that keeps its word, calibrated on rows that neither the model nor `fit` has seen.

        A case stops as soon as `decision_is_final`, the probability that the full row is decided alike, reaches a
        threshold. The threshold is chosen for exactly one of the goals `agreement`, `accuracy_gap` and `average_price`,
        so the promise does not depend on how good that probability is, only the price does. The rule is kept as `stop_`
        and used by ``acquire(stop="calibrated")`` and ``start(stop="calibrated")``.

        Parameters
        ----------
        X_cal
            Rows to calibrate on; missing cells are unavailable. None: training rows, each with a model fitted without
            it (5 folds). That calibrates other models than the one in use, so the promise is then an estimate.
        y_cal
            Their labels, needed for `accuracy_gap` and for prediction sets only.
        agreement
            At least this share of all cases stops with the decision that all features would have led to.
        accuracy_gap
            At most this share of all cases stops with a wrong decision where all features lead to the right one.
        average_price
            Cases cost this much on average; a soft budget, spent where decisions are open.
        confidence
            Probability, over the draw of the calibration rows, that `agreement` or `accuracy_gap` is kept.
        conditional
            Whether `agreement` or `accuracy_gap` must also be kept among the cases that stop early. Where training
            rows cannot be cross-fitted, a fifth of the calibration rows is used to find the start of this test.
        budget
            Maximum price of a case; None = the selector's own, and unlimited if that is None. The rule is then
            valid for this budget only.
        coverage, by_class
            Coverage of the prediction sets of a session, and whether it must hold for each class separately.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.linear_model import LogisticRegression
        >>> from askwise import DynamicFeatureSelector
        >>> X, y = load_wine(return_X_y=True, as_frame=True)
        >>> model = LogisticRegression(max_iter=10_000)
        >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X[::2], y[::2])
        >>> stop = selector.calibrate_stop(X[1::2], agreement=0.95)
        >>> stop.price < 0.7 * stop.everything
        True
        """
        goal = Goal(agreement, accuracy_gap, average_price, confidence, conditional)
        limits: Limits = {"coverage": INSIDE, "by_class": Flag()}
        check_values("calibrate_stop", {"coverage": coverage, "by_class": by_class}, limits)
        limit = float(check_budget(self.budget if budget is None else budget, 1)[0])
        rows, runs = self._calibration_runs(X_cal, y_cal, goal, limit)
        share = None
        if goal.conditional:
            runs, share = self._early_share(runs, limit, cross_fitted=X_cal is None)
        goal.check_rows(len(runs))
        missing = np.asarray(~self.schema_.any_column(rows.observed).all(axis=0))
        conditions = Conditions(self.policy_, self.prices_, self._risk_weight(), limit, missing)
        threshold = calibrated_threshold(runs, goal, share)
        sets = None
        if runs.labels is not None and runs.proba is not None:
            stops = runs.stops_at(np.array([threshold]))[:, 0]
            sets = PredictionSets(runs.proba, runs.labels, stops, coverage, by_class)
        self.stop_ = CalibratedStop(runs, threshold, goal, conditions, X_cal is None, sets)
        return self.stop_

    def savings(self, X: Any, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
        """The average price at which a share of the decisions of the full rows is kept, in hindsight.

        Parameters
        ----------
        X
            Rows that were not seen in training; missing cells are unavailable.
        levels
            Shares of decisions to keep.

        Returns
        -------
        DataFrame
            One row per level and way to stop (`way`): ``"stop per case"`` (at a threshold of `decision_is_final`),
            ``"fixed budget"`` (the same budget for all cases, in the order of the policy) and ``"static order"`` (the
            same budget and the same order). `price`, its 95 % bootstrap interval over cases (`low`, `high`), and
            `share`, the price divided by that of everything. NaN: never reached.
        """
        shares = check_levels(levels)
        truth = self._encode(X)
        runs = self._full_runs(truth, self._policy_for(truth), np.inf)
        order = self._static_policy()
        static = None if order is None else self._full_runs(truth, order, np.inf)
        return savings_table(runs, static, shares)

    def check_unseen(self, X: Any, name: str = "X") -> None:
        """An error if more of the rows `X` were given to `fit` than chance explains; `name` is what it calls them."""
        self._check_unseen(self._encode(X), name)

    def _check_unseen(self, rows: EncodedRows, name: str, distinct: bool = False) -> None:
        """As `check_unseen`; `distinct` rows must not repeat each other either."""
        training = getattr(self.predictor_, "training_rows_", None)
        if training is not None:
            keys, seen = rounded_keys(rows), rounded_keys(training)
            check_unseen(keys, seen, name)
            if distinct:
                check_distinct(keys, seen)
        if self.calibrated_on_ is not None:
            check_unseen(digests(rows), self.calibrated_on_, name)

    def _stopping(self, stop: Any, budget: Any, n: int) -> Stopping | None:
        """The rule that `stop` stands for; None: the selector's own, if errors have a cost.

        A calibrated one is refused if it was calibrated for something else.
        """
        if isinstance(stop, str) and stop == "calibrated":
            stop = self.stop_
            if stop is None:
                raise InvalidInput('stop="calibrated" needs a rule: call calibrate_stop first.')
        if stop is not None and not isinstance(stop, Stopping):
            raise InvalidInput(
                'stop must be None, "calibrated" or an askwise.acquire.Stopping such as Confidence(0.95); '
                f"got {stop!r}."
            )
        if isinstance(stop, CalibratedStop):
            limit = check_budget(self.budget if budget is None else budget, n)
            stop.conditions.check(self.policy_, self.prices_, self._risk_weight(), limit)
        return self.pays_off_ if stop is None else stop

    def _calibration_runs(self, X: Any, y: Any, goal: Goal, budget: float) -> tuple[EncodedRows, FullRuns]:
        """The calibration rows, given or cross-fitted, and their runs along the policy."""
        if X is None:
            if y is not None:
                raise InvalidInput("calibrate_stop: y_cal needs X_cal; without it the training labels are used.")
            return self.predictor_.training_rows_, self._runs_of_folds(budget)
        rows = self._encode(X)
        if y is None and goal.accuracy_gap is not None:
            raise InvalidInput("calibrate_stop: accuracy_gap needs the labels y_cal; agreement does without.")
        given = None if y is None else np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
        if given is not None and given.shape != (len(rows),):
            raise InvalidInput(f"y_cal must hold one label per row, {len(rows)} in all; got shape {given.shape}.")
        self._check_unseen(rows, "X_cal", distinct=True)
        goal.check_rows(len(rows))
        labels = None if given is None else class_positions(self.classes_, given, "y_cal")
        return rows, self._full_runs(rows, self._policy_for(rows), budget, labels)

    def _early_share(self, runs: FullRuns, budget: float, cross_fitted: bool) -> tuple[FullRuns, np.ndarray]:
        """The runs to test on, and the share of early stops at each threshold on other rows."""
        others = None if cross_fitted else self._runs_of_folds(budget, optional=True)
        if others is None:
            order = np.random.default_rng(0).permutation(len(runs))
            apart = len(runs) // ROWS_TO_SHARE
            runs, others = runs.take(order[apart:]), runs.take(order[:apart])
        return runs, others.early(others.stops_at(threshold_sequence())).mean(axis=0)

    def _runs_of_folds(self, budget: float, optional: bool = False) -> Any:
        """Runs of training rows along policies that were fitted without them; None or an error where impossible."""
        folds = self._cross_fit()
        if folds is None:
            if optional:
                return None
            raise InvalidInput(
                f"calibrate_stop needs X_cal, rows that were not in fit: {type(self).__name__} cannot be fitted again "
                "without some of the training rows (a callable, a network, images, a baseline, or too few rows)."
            )
        predictor, runs = self.predictor_, []
        own = nothing_known(self.schema_, self.prices_, self.beliefs_, predictor.training_rows_.take([0]))
        at_start = self.beliefs_.decision_is_final(own.belief)[0]
        for fold in track(folds, "cross-fitting", len(folds), self.progress):
            rows, labels = predictor.training_rows_.take(fold.held), predictor.training_labels_[fold.held]
            beliefs = fold.beliefs.settled_like(self.beliefs_)
            state = nothing_known(self.schema_, self.prices_, beliefs, rows, risk_weight=self._risk_weight())
            run = full_runs(state, rows, fold.policy, budget, labels, self.progress)
            # With nothing known all cases are alike and would stop together: test that where the selector itself would.
            np.maximum(run.certainty[:, 0], at_start, out=run.certainty[:, 0], where=np.isfinite(run.certainty[:, 0]))
            runs.append(run)
        return FullRuns.concatenated(runs)

    def _full_runs(
        self, truth: EncodedRows, policy: Policy, budget: float, labels: np.ndarray | None = None
    ) -> FullRuns:
        blocks = self._blocks(len(truth))
        runs = [
            full_runs(
                self._nothing_known(truth, part, policy),
                truth.take(part),
                policy,
                budget,
                None if labels is None else labels[part],
                self.progress,
            )
            for part in track(blocks, "blocks of cases", len(blocks), self.progress)
        ]
        return FullRuns.concatenated(runs)

    def _static_policy(self) -> Policy | None:
        """One order for all cases, by conditional information; None where the training rows are not kept."""
        rows = getattr(self.predictor_, "training_rows_", None)
        if rows is None or not self.schema_.tabular:
            return None
        return Static().fit_order(rows, self.predictor_.training_labels_, self.schema_, self.prices_)

    def _cross_fit(self, n_folds: int = N_FOLDS, **limits: Any) -> list[Fold] | None:
        """What was fitted without each fold of the training rows; None where that is impossible."""
        return None

    if TYPE_CHECKING:  # methods of FeatureAcquirer

        def _encode(self, X: Any) -> EncodedRows: ...

        def _policy_for(self, truth: EncodedRows) -> Policy: ...

        def _risk_weight(self) -> float: ...

        def _blocks(self, n: int, n_jobs: int = 1) -> list[slice]: ...

        def _nothing_known(self, truth: EncodedRows, part: slice, policy: Policy) -> Acquisition: ...


def full_runs(
    state: Acquisition,
    truth: EncodedRows,
    policy: Policy,
    budget: float,
    labels: np.ndarray | None = None,
    progress: bool | str = False,
) -> FullRuns:
    """Run cases of which nothing is known until the budget or the features are used up."""
    state.left = np.full(len(truth), budget)
    run = run_episodes(state, truth.values, policy, progress=progress)
    free_next = np.column_stack([(run.order >= 0) & (run.costs == 0), np.zeros(len(truth), dtype=bool)])
    return FullRuns(
        certainty=np.where(free_next, -np.inf, run.decision_is_final),
        decision=run.decision,
        spent=np.column_stack([np.zeros(len(truth)), run.costs.cumsum(axis=1)]),
        n_steps=(run.order >= 0).sum(axis=1),
        full=state.beliefs.decisions(state.beliefs.predictor.full_proba(truth)),
        labels=labels,
        proba=None if labels is None else run.proba,
    )
