"""Calibrating a stop on rows that were not seen in training, and what it saves: methods of every acquirer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from askwise.acquisition import Acquisition, nothing_known, run_episodes
from askwise.calibrate.crossfit import N_FOLDS, Fold
from askwise.calibrate.unseen import check_new_rows, check_unseen, digests
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.parameters import Flag, Limits, check_values
from askwise.policy.base import Policy
from askwise.policy.orders import Static
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.progress import track
from askwise.stopping.calibrated_stop import INSIDE, CalibratedStop, Conditions, Goal, calibrated_threshold
from askwise.stopping.guarantee import FullRuns, threshold_sequence
from askwise.stopping.handover import Handover, HandoverGoal, calibrated_handover
from askwise.stopping.pays_off import PaysOff
from askwise.stopping.prediction_sets import PredictionSets
from askwise.stopping.rules import Stopping
from askwise.stopping.savings import LEVELS, check_levels, savings_table
from askwise.table.prices import Prices, check_budget
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.trajectory import Trajectory

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
    handover_: Handover | None = None
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
        per_class: bool | str = "auto",
        recall: Mapping[Any, float] | None = None,
        subgroups: Any = None,
        budget: float | None = None,
        coverage: float = 0.9,
        by_class: bool = False,
    ) -> CalibratedStop:
        """A stopping rule that keeps its word, calibrated on rows that neither the model nor `fit` has seen.

        A case stops as soon as its decision is certain enough: the probability that the full row is decided for another
        class must be low, compared with how rare that class is. How low is chosen for exactly one of the goals
        `agreement`, `accuracy_gap`, `average_price` and `recall`, so the promise does not depend on how good that
        probability is, only the price does. The rule is kept as `stop_` and used by ``acquire(stop="calibrated")`` and
        ``start(stop="calibrated")``; its `by_class` says what it does to each class.

        Parameters
        ----------
        X_cal
            Rows to calibrate on; missing cells are unavailable. None: training rows, each with a model fitted without
            it (5 folds). That calibrates other models than the one in use, so the promise is then an estimate.
        y_cal
            Their labels, needed for `accuracy_gap`, `recall` and prediction sets only.
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
        per_class
            ``"auto"``: `agreement` is also promised among the cases that all features decide for a class, and
            `accuracy_gap` among the true cases of it, for each class with enough calibration rows; the confidence is
            that of all these promises together. Other classes are named in the promise, and cases that may still turn
            into one are not stopped before that is as improbable as for other classes. True refuses instead. False
            promises only what holds of all cases: with a rare class, nearly none of its cases may then be found.
        recall
            ``{class: share}``: of the true cases of the class that all features find, at least this share is found.
        subgroups
            (n,) group of each row of `X_cal`, such as the hospital: the promise then holds for each group, too.
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
        goal = Goal(agreement, accuracy_gap, average_price, confidence, conditional, recall, per_class)
        limits: Limits = {"coverage": INSIDE, "by_class": Flag()}
        check_values("calibrate_stop", {"coverage": coverage, "by_class": by_class}, limits)
        limit = float(check_budget(self.budget if budget is None else budget, 1)[0])
        rows, runs = self._calibration_runs(X_cal, y_cal, goal, limit)
        groups = None if subgroups is None else _checked_groups(subgroups, len(rows), X_cal, goal)
        shares = self._usual_shares() if goal.by_class else None
        if shares is not None:
            runs = runs.judged_by_class(shares)
        early_share = None
        if goal.conditional:
            runs, groups, early_share = self._early_share(runs, groups, shares, limit, cross_fitted=X_cal is None)
        goal.check_rows(len(runs))
        missing = np.asarray(~self.schema_.any_column(rows.observed).all(axis=0))
        conditions = Conditions(self.policy_, self.prices_, self._risk_weight(), limit, missing)
        required = goal.requirements(runs, self.classes_, groups)
        threshold, promised = calibrated_threshold(runs, goal, required, early_share)
        sets = None
        if runs.labels is not None and runs.proba is not None:
            stops = runs.stops_at(np.array([threshold]))[:, 0]
            sets = PredictionSets(runs.proba, runs.labels, stops, coverage, by_class)
        self.stop_ = CalibratedStop(
            runs,
            threshold,
            goal,
            conditions,
            X_cal is None,
            sets,
            classes=self.classes_,
            shares=shares,
            promised=promised,
            rows=None if X_cal is None else digests(rows),
        )
        self.handover_ = None  # it was calibrated with another stop
        self.stop_.warn_of_classes_far_below()
        return self.stop_

    def calibrate_handover(
        self,
        X_cal: Any,
        y_cal: Any,
        *,
        accuracy: float | None = None,
        error_cost: float | None = None,
        confidence: float = 0.9,
        budget: float | None = None,
    ) -> Handover:
        """A rule for which cases to hand to a person, calibrated on rows that neither the model nor `fit` has seen.

        The cases are acquired with the last `calibrate_stop`, or else with everything that the budget pays for. Where
        nothing more is acquired, a case is decided or, if it is too uncertain, handed over. What it is judged by (total
        or epistemic uncertainty, novelty, whether the decision is final, or all of them together) is the measure that
        hands over the fewest of a third of the rows; on the other rows it is tested how many can be decided. The rule
        is kept as `handover_`: `acquire` and sessions that stop alike use it.

        Parameters
        ----------
        X_cal, y_cal
            Rows and their labels; other ones than those of `calibrate_stop`.
        accuracy
            At least this share of the cases that are decided is decided rightly.
        error_cost
            Errors cost at most this much on average among the cases that are decided, by the selector's `error_costs`.
        confidence
            Probability, over the draw of the rows, that the promise is kept.
        budget
            As in `acquire`.
        """
        goal = HandoverGoal(accuracy, error_cost, confidence)
        rows = self._encode(X_cal)
        given = np.asarray(y_cal, dtype=None if hasattr(y_cal, "dtype") else object)
        if given.shape != (len(rows),):
            raise InvalidInput(f"y_cal must hold one label per row, {len(rows)} in all; got shape {given.shape}.")
        self._check_unseen(rows, "X_cal", distinct=True)
        if self.stop_ is not None and self.stop_.rows is not None:
            check_unseen(digests(rows), self.stop_.rows, "X_cal", given_to="calibrate_stop")
        labels = class_positions(self.classes_, given, "y_cal")
        run = self.acquire(X_cal, budget, stop=None if self.stop_ is None else "calibrated")
        limit = float(check_budget(self.budget if budget is None else budget, 1)[0])
        error_costs = self.beliefs_.error_costs
        self.handover_ = calibrated_handover(run.said.after(run.n_steps), labels, goal, error_costs, self.stop_, limit)
        return self.handover_

    def _handover(self, rule: Stopping | None, budget: Any, n: int) -> Handover | None:
        """The rule of `calibrate_handover`, if cases stop as they did when it was calibrated; else None."""
        found, limit = self.handover_, check_budget(self.budget if budget is None else budget, n)
        own = None if rule is self.pays_off_ else rule
        return found if found is not None and own is found.stop and np.all(limit == found.budget) else None

    def _usual_shares(self) -> np.ndarray:
        """(C,) shares of the classes among the training rows, none of them 0; equal where these are not kept."""
        labels = getattr(self.predictor_, "training_labels_", np.empty(0, dtype=int))
        counts = np.bincount(labels, minlength=len(self.classes_)) + 1.0
        return np.asarray(counts / counts.sum())

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
            same budget and the same order), and ``"stop per case, each class"``, which keeps that share of the cases
            of every class. `price`, its 95 % bootstrap interval over cases (`low`, `high`), and `share`, the price
            divided by that of everything. NaN: never reached. `worst_class` is the class, by the decision of the full
            row, of which the fewest decisions are kept, and `kept_of_worst` their share.
        """
        shares = check_levels(levels)
        truth = self._encode(X)
        runs = self._full_runs(truth, self._policy_for(truth), np.inf)
        order = self._static_policy()
        static = None if order is None else self._full_runs(truth, order, np.inf)
        return savings_table(runs, static, shares, self.classes_, self._usual_shares())

    def check_unseen(self, X: Any, name: str = "X") -> None:
        """An error if more of the rows `X` were given to `fit` than chance explains; `name` is what it calls them."""
        self._check_unseen(self._encode(X), name)

    def _check_unseen(self, rows: EncodedRows, name: str, distinct: bool = False) -> None:
        """As `check_unseen`; `distinct` rows must not repeat each other either."""
        training = getattr(self.predictor_, "training_rows_", None)
        if training is not None:
            check_new_rows(rows, training, self.schema_, name, distinct=distinct)
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
                'stop must be None, "calibrated" or an askwise.stopping.Stopping such as Confidence(0.95); '
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
        if y is None and goal.needs_labels:
            raise InvalidInput(f"calibrate_stop: {goal.needs_labels} needs the labels y_cal; agreement does without.")
        given = None if y is None else np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
        if given is not None and given.shape != (len(rows),):
            raise InvalidInput(f"y_cal must hold one label per row, {len(rows)} in all; got shape {given.shape}.")
        self._check_unseen(rows, "X_cal", distinct=True)
        goal.check_rows(len(rows))
        labels = None if given is None else class_positions(self.classes_, given, "y_cal")
        return rows, self._full_runs(rows, self._policy_for(rows), budget, labels)

    def _early_share(
        self, runs: FullRuns, groups: np.ndarray | None, shares: np.ndarray | None, budget: float, cross_fitted: bool
    ) -> tuple[FullRuns, np.ndarray | None, np.ndarray]:
        """The runs to test on with their groups, and the share of early stops at each threshold on other rows."""
        others = None if cross_fitted else self._runs_of_folds(budget, optional=True)
        if others is None:
            order = np.random.default_rng(0).permutation(len(runs))
            apart = len(runs) // ROWS_TO_SHARE
            groups = None if groups is None else groups[order[apart:]]
            runs, others = runs.take(order[apart:]), runs.take(order[:apart])
        elif shares is not None:
            others = others.judged_by_class(shares)
        return runs, groups, others.early(others.stops_at(threshold_sequence())).mean(axis=0)

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
        at_start = self.beliefs_.assess(own.belief, own.rows)
        for fold in track(folds, "cross-fitting", len(folds), self.progress):
            rows, labels = predictor.training_rows_.take(fold.held), predictor.training_labels_[fold.held]
            beliefs = fold.beliefs.settled_like(self.beliefs_)
            state = nothing_known(self.schema_, self.prices_, beliefs, rows, risk_weight=self._risk_weight())
            run = full_runs(state, rows, fold.policy, budget, labels, self.progress)
            # With nothing known all cases are alike and would stop together: test that where the selector itself would.
            assert run.final is not None
            run.final[:, 0], run.decision[:, 0] = at_start.final, at_start.decision
            run.certainty[np.isfinite(run.certainty[:, 0]), 0] = at_start.decision_is_final
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

        def acquire(self, X: Any, budget: Any = None, stop: Any = None) -> Trajectory: ...

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
        final=run.final,
    )


def _checked_groups(subgroups: Any, n_rows: int, X_cal: Any, goal: Goal) -> np.ndarray:
    """The group of each calibration row, (n,)."""
    groups = np.asarray(subgroups)
    if X_cal is None or goal.average_price is not None or goal.recall is not None:
        raise InvalidInput("calibrate_stop: subgroups are for agreement and accuracy_gap, and need X_cal.")
    if groups.shape != (n_rows,) or pd.isna(groups).any():
        raise InvalidInput(
            f"subgroups must hold one group per row of X_cal, {n_rows} in all, none of them missing; got shape "
            f"{groups.shape}. Name a group of its own for rows of which it is not known."
        )
    return groups
