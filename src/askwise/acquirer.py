"""FeatureAcquirer: prediction, suggestion, acquisition and evaluation with a fitted predictor and a policy."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from askwise.acquisition import Acquisition, RunMemory, checked_scores, nothing_known, run_episodes
from askwise.calibrate.crossfit import N_FOLDS, Fold
from askwise.calibrate.unseen import check_new_rows, check_unseen, digests
from askwise.case.quick import QuickSelector, QuickStop
from askwise.case.results import Next
from askwise.case.session import Session
from askwise.case.suggested_set import SuggestedSet, check_price, suggested_set
from askwise.epistemic import BeliefModel, EpistemicEstimator
from askwise.epistemic.novelty import unlike_training
from askwise.errors import InvalidInput
from askwise.evaluation import (
    FinalState,
    default_budgets,
    ends_of_each_budget,
    ends_of_one_run,
    measures,
)
from askwise.explain.chart import Flowchart
from askwise.explain.policy_chart import check_chart, policy_chart
from askwise.metrics import share_by_class
from askwise.parameters import Flag, Limits, Number, Whole, check_values
from askwise.policy.base import Policy
from askwise.policy.distilled import Distilled
from askwise.policy.orders import Static
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.predict.rules.explanation import Explanation
from askwise.progress import track
from askwise.records.completions import completions
from askwise.records.estimators import (
    ASSUMPTIONS,
    MISSING,
    N_DRAWS,
    chance_of_everything,
    check_missing,
    check_reasons,
    warn_of_missing,
)
from askwise.records.runs import RecordRuns
from askwise.records.tables import ALL_CASES, overlap_table, table_of_records
from askwise.stopping.calibrated_stop import INSIDE, CalibratedStop, Conditions, Goal, warn_of_departures
from askwise.stopping.guarantee import FullRuns
from askwise.stopping.handover import Handover, HandoverGoal, calibrated_handover
from askwise.stopping.pays_off import PaysOff
from askwise.stopping.rules import Stopping
from askwise.stopping.savings import LEVELS, check_levels, savings_table
from askwise.stopping.stop_calibration import calibrated_stop, checked_groups, full_runs, runs_of_folds, usual_shares
from askwise.table.columns import as_labels, plain
from askwise.table.desk import Desk
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema, as_table
from askwise.table.subsets import check_mask
from askwise.trajectory import Trajectory
from askwise.uncertainty import Uncertainty

if TYPE_CHECKING:
    from askwise.persistence.privacy import SyntheticReport

USUAL_MEMORY = 512.0
"""MiB that a block of `rows_at_once` cases takes, about."""


class FeatureAcquirer(ClassifierMixin, BaseEstimator):
    """Predicts, suggests, acquires, stops and evaluates with a fitted predictor and a policy.

    What `DynamicFeatureSelector` and every rival share. `fit` of a subclass checks the columns (`_table`) and sets the
    attributes that end in ``_``. A subclass may also say which policy reads which rows (`_policy_for`), the weight of
    epistemic uncertainty (`_risk_weight`), a static order to compare with (`_static_policy`), how it is fitted again
    without some of the training rows (`_cross_fit`), and the end of cases under budgets (`_final_states`).
    """

    budget: Any = None
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
    pays_off_: PaysOff | None = None
    stop_: CalibratedStop | None = None
    handover_: Handover | None = None
    calibrated_on_: np.ndarray | None = None
    """Digests of the rows that `fit` calibrated on, if some were given to it."""

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

    def gains(self, X: Any) -> np.ndarray:
        """Expected gain per price of each feature, (n, M), whatever rule the policy ranks by; -inf for those known."""
        return np.concatenate([self.policy_.gains(_ranking(self.policy_, part), part) for part in self._parts(X)])

    def ranking(self, X: Any) -> np.ndarray:
        """What the policy ranks the features by, prices included, (n, M); -inf for those that are known."""
        return np.concatenate([_ranking(self.policy_, part) for part in self._parts(X)])

    def suggest(self, X: Any, budget: Any = None, available: Any = None, *, as_names: bool = False) -> np.ndarray:
        """Index of the next feature for rows with NaN for what is not known, (n,); -1 = stop.

        Parameters
        ----------
        budget
            Budget left, one number or one per row, or ``{resource: either}``. Known features are not charged, and count
            for shared savings.
        available
            (n, M) or (M,) bool: features that can be acquired.
        as_names
            Return names instead of positions, None = stop.
        """
        parts = self._parts(X, budget, available)
        choice = np.concatenate([part.choose(self.policy_, part.buyable())[0] for part in parts])
        return np.array([*self.features_, None], dtype=object)[choice] if as_names else choice

    def suggest_set(self, X: Any, price: Any, available: Any = None) -> list[SuggestedSet]:
        """The features to order together for each row, within a price; see `Session.suggest_set`.

        Parameters
        ----------
        price
            The most that the set may cost, one number >= 0, or ``{resource: number}``; shared set-up costs count once,
            and of time the longest.
        available
            (n, M) or (M,) bool: features that can be acquired.
        """
        check_price(price, self.prices_)
        parts = self._parts(X, price, available)
        return [suggested_set(part, self.policy_, r, price) for part in parts for r in range(len(part.rows))]

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
            With other resources in the prices, ``{"money": 200, "time": 24}``: no case exceeds any of them.
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
            warn_of_departures(departures)  # at once: whoever sees it need not wait for the run
        if len(blocks) == 1:
            found = run_episodes(state, truth.values, policy, rule, self.progress)
        else:
            jobs = (delayed(run_episodes)(state.take(part), truth.values[part], policy, rule) for part in blocks)
            with threadpool_limits(1) if n_jobs > 1 else nullcontext():  # the products of each thread use one core
                runs = Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")(jobs)
                found = Trajectory.concatenated(list(track(runs, "acquiring", len(blocks), self.progress)))
        index = X.index if isinstance(X, pd.DataFrame) else None
        return self._with_promises(
            replace(found, index=index), truth, departures, self._handover(rule, budget, shape[0])
        )

    def evaluate(
        self,
        X: Any,
        y: Any,
        budgets: Sequence[Any] | None = None,
        *,
        missing: str = "auto",
        stop: Stopping | str | None = None,
        reasons: Mapping[str, str] | None = None,
        subgroups: Any = None,
        against: Policy | str | None = None,
        draws: int = N_DRAWS,
        confidence: float = 0.9,
    ) -> pd.DataFrame:
        """Accuracy, log loss, calibration error, price, cost of errors and decisions kept, one row per budget.

        `kept` is the share of the cases with the decision of the full row, and `kept_of_worst` that of the class with
        the lowest such share, `worst_class`; a stop per case keeps more of them for the same price (see `savings`).
        With `error_costs`, `net_benefit` is what the tests save per case: the cost of errors of deciding without any
        test (but what is free), less that at the end and the price.

        Parameters
        ----------
        X, y
            Records that the model has not seen, NaN = missing, and their labels.
        budgets
            By default 1..10 features where all cost the same, else 5 %..50 % of the price of everything; with a `stop`
            the selector's own. Numbers, or dicts by resource as in `acquire`. Of resources other than money, the table
            has what a case takes on average, in a column of their name, and their limit if there is one (`budget_...`).
        missing
            What is made of a test that is asked for and not recorded: ``"blocked"``: it could not have been done;
            ``"weighted"``: the case is left out, and cases of its like whose tests are recorded count for more;
            ``"simulated"``: its value is drawn, given what is recorded; ``"doubly_robust"``: both, which is right where
            one of them is. The last three estimate what happens where every test can be had, and hold if nothing
            unrecorded decides what is recorded. ``"all"``: the four side by side, with what each assumes.
            ``"auto"``: ``"blocked"``, and a warning if much is missing.
        stop
            As in `acquire`.
        reasons
            ``{feature: "not ordered" or "not available"}``: why values are missing. What was not available then will
            not be available later: it stays blocked. By default nothing was ordered that is missing.
        subgroups
            (n,) group of each row, such as the hospital, or the name of a column of `X`: a row of the table for each,
            with the price, the decisions kept and the recall of each class, and their intervals: who pays more, and who
            is decided worse.
        against
            Another policy, such as ``"static"``: the table says how many more decisions are right (`added_correct`), at
            which added price (`added_price`), and the price of one more right decision (`price_per_added_correct`; NaN
            where one of the two is both cheaper and better). Not with `stop`, `subgroups` or another `missing`.
        draws
            Completions of each record, for ``"simulated"`` and ``"doubly_robust"``.
        confidence
            Of the intervals (`..._low`, `..._high`) that are given unless the plain table of ``"blocked"`` is meant.

        Returns
        -------
        DataFrame
            With another `missing` than the default, or with a `stop`, also: `missing`, intervals, the number of equally
            weighted cases that would tell as much (`effective`), and whether the records can carry the number
            (`trusted`); of those that they cannot a warning tells, with the tests and cases why.
        """
        way = check_missing(missing, "evaluate", ("auto", *MISSING, "all"))
        truth = self._encode(X)
        given = np.asarray(y)
        if given.shape != (len(truth),) or not len(given):
            raise InvalidInput(f"evaluate needs one label per row, {len(truth)} in all; got shape {given.shape}.")
        labels = class_positions(self.classes_, given)
        never = check_reasons(reasons, self.schema_)
        usual = [self.budget] if stop is not None else default_budgets(self.prices_)
        limits = self.prices_.limits_of_each(usual if budgets is None else budgets)
        if way == "auto":
            warn_of_missing(self.schema_.any_column(truth.observed) | never)
            way = "blocked"
        if way != "blocked" or stop is not None or subgroups is not None:
            if against is not None:
                raise InvalidInput("evaluate: against compares plain tables; leave out missing, stop and subgroups.")
            groups = None if subgroups is None else self._groups(subgroups, X, len(truth))
            return self._evaluate_records(X, truth, labels, limits, way, stop, never, draws, confidence, groups)
        decide, costs = self.beliefs_.decisions, self.beliefs_.error_costs
        # What errors cost without any test is read off a budget of 0, in the same run.
        plain_limits = [self.prices_.plain(limit) for limit in limits]
        ends = self._final_states(X, plain_limits if costs is None else [*plain_limits, 0.0])
        untested = None if costs is None else ends.pop()
        full = decide(self.predictor_.full_proba(truth))
        found = []
        for end in ends:
            kept = decide(end.proba) == full
            of_class = share_by_class(kept, full)
            worst = min(of_class, key=of_class.__getitem__)
            found.append(
                {
                    **measures(labels, end, costs, self.prices_.resources[1:]),
                    "kept": float(kept.mean()),
                    "worst_class": plain(self.classes_[worst]),
                    "kept_of_worst": of_class[worst],
                }
            )
        given_limits = self.prices_.as_columns(limits)
        table = pd.DataFrame([{**limit, **row} for limit, row in zip(given_limits, found, strict=True)])
        if untested is not None:
            table["net_benefit"] = (
                measures(labels, untested, costs, self.prices_.resources[1:])["error_cost"] - table["total_cost"]
            )
        table["price_per_correct"] = (table["spent"] / table["accuracy"]).where(table["accuracy"] > 0)
        return table if against is None else self._compared(table, X, y, against, plain_limits)

    def _compared(self, table: pd.DataFrame, X: Any, y: Any, against: Any, budgets: Sequence[Any]) -> pd.DataFrame:
        """The table with what is right more often than by another policy, and what that costs."""
        if not hasattr(self, "with_policy"):
            raise InvalidInput(f"evaluate: against needs a selector; {type(self).__name__} has one policy only.")
        other = self.with_policy(against).evaluate(X, y, budgets, missing="blocked")
        right, price = table["accuracy"] - other["accuracy"], table["spent"] - other["spent"]
        exchange = (right * price > 0) & (right.abs() > 1e-12)
        return table.assign(
            added_correct=right, added_price=price, price_per_added_correct=(price / right).where(exchange)
        )

    def _groups(self, subgroups: Any, X: Any, n: int) -> np.ndarray:
        """The subgroup of each row, (n,), from an array or a column of `X`."""
        if isinstance(subgroups, str):
            if not isinstance(X, pd.DataFrame) or subgroups not in X:
                raise InvalidInput(f"evaluate: subgroups names the column {subgroups!r}, which X does not have.")
            subgroups = X[subgroups]
        groups = as_labels(subgroups)
        if groups.shape != (n,) or pd.isna(groups).any():
            raise InvalidInput(
                f"evaluate: subgroups must hold one group per row, {n} in all, none of them missing; got shape "
                f"{groups.shape}. Name a group of its own for rows of which it is not known."
            )
        for one in groups.tolist():
            if not isinstance(one, Hashable) or (isinstance(one, str) and one == ALL_CASES):
                raise InvalidInput(
                    f"evaluate: subgroups must be text, numbers or other names, and not {ALL_CASES!r}, which is the "
                    f"row of all of them; got {one!r}. Name it otherwise."
                )
        return groups

    def _evaluate_records(
        self,
        X: Any,
        truth: EncodedRows,
        labels: np.ndarray,
        limits: Sequence[np.ndarray],
        way: str,
        stop: Any,
        never: np.ndarray,
        draws: int,
        confidence: float,
        groups: np.ndarray | None,
    ) -> pd.DataFrame:
        """The table of `evaluate` with intervals."""
        check_values("evaluate", {"draws": draws, "confidence": confidence}, {"draws": Whole(2), "confidence": INSIDE})
        runs = self._record_runs(truth, labels, limits, stop, never, draws)
        names = np.arange(len(truth)) if not isinstance(X, pd.DataFrame) else X.index.to_numpy()
        return table_of_records(runs, MISSING if way == "all" else (way,), confidence, names, self.classes_, groups)

    def _record_runs(
        self,
        truth: EncodedRows,
        labels: np.ndarray,
        limits: Sequence[np.ndarray],
        stop: Any,
        never: np.ndarray,
        draws: int = N_DRAWS,
    ) -> RecordRuns:
        """The policy on records of which some cells are missing."""
        if not self.schema_.tabular:
            raise InvalidInput('evaluate: images have no missing cells to weigh or to simulate; use missing="blocked".')
        budgets = [tuple(limit.tolist()) for limit in limits]
        rules = {budget: self._stopping(stop, self.prices_.plain(np.array(budget)), len(truth)) for budget in budgets}
        rows = getattr(self.predictor_, "training_rows_", None)
        donors = None if rows is None else (rows.values, self.predictor_.training_labels_)

        def run(rows: EncodedRows, available: np.ndarray, budget: tuple[float, ...]) -> Trajectory:
            policy, blocks, runs = self._policy_for(rows), self._blocks(len(rows)), []
            for part in track(blocks, "blocks of cases", len(blocks), self.progress):
                state = self._nothing_known(rows, part, policy, members=rules[budget] is not None)
                state.available, state.remaining = available[part], np.tile(budget, (len(state.mask), 1))
                runs.append(run_episodes(state, rows.values[part], policy, rules[budget]))
            return Trajectory.concatenated(runs)

        return RecordRuns(
            truth,
            labels,
            self.schema_,
            budgets,
            never,
            run,
            lambda rows: self.beliefs_.decisions(self.predictor_.full_proba(rows)),
            donors=donors,
            n_draws=draws,
            one_run=self._one_run(limits, self._policy_for(truth)),
            error_costs=self.beliefs_.error_costs,
            columns=self.prices_.as_columns(limits),
            resources=self.prices_.resources[1:],
        )

    def overlap(
        self,
        X: Any,
        y: Any,
        budget: Any = None,
        *,
        stop: Stopping | str | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> pd.DataFrame:
        """Which tests the policy asks for that the records hardly ever hold, one row per feature asked for.

        `asked` counts the cases that can be followed until they ask for it, `recorded` those that then have it, and
        `hardly` lists the cases (labels of the rows of `X`) whose like hardly ever has it: what the policy does with
        them, these records cannot tell. Parameters as in `evaluate`.
        """
        truth = self._encode(X)
        labels = self._calibration_labels(y, len(truth), "y")
        limit = self._limits(budget, 1)[0]
        never = check_reasons(reasons, self.schema_)
        found = self._record_runs(truth, labels, [limit], stop, never).overlap(tuple(limit.tolist()))
        names = np.arange(len(truth)) if not isinstance(X, pd.DataFrame) else X.index.to_numpy()
        return overlap_table(found, self.features_, names)

    def start(
        self,
        known: Mapping[str, Any] | None = None,
        budget: float | Mapping[str, float] | None = None,
        stop: Stopping | str | None = None,
        deadline: float | None = None,
        check: bool = False,
    ) -> Session:
        """Start a session for one case, with features given by name.

        Parameters
        ----------
        known
            Feature -> value of what is already known; not charged.
        budget
            The most that the case may cost, a number or, with other resources in the prices, ``{"money": 200, "time":
            24}``; None = the selector's own, and unlimited if that is None. Tests asked one after the other take the
            sum of their times, those that are out together the longest (`Session.order`).
        stop
            A `Stopping` rule or ``"calibrated"``; once it is met, nothing more is suggested. None as in `acquire`.
        deadline
            Hours after which the case is decided: what takes longer by the `time` of the prices is not suggested.
        check
            Whether to ask on after the `stop`, for everything and whatever it costs, to see whether the decision would
            have been another one: `check` of the report says so, for the `monitor` of the stop.
        """
        return self._session(known, budget, stop, deadline=deadline, check=check)

    def quick(self) -> QuickSelector:
        """The same policy and belief from small networks, in microseconds and without the wrapped model.

        For `policy="distilled"`, whose networks have learned to choose and to predict alike. ``quick().start()`` is a
        case, ``quick().acquire(X)`` many; what the networks are unsure of is left to the selector itself.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from askwise import DynamicFeatureSelector
        >>> X, y = load_wine(return_X_y=True, as_frame=True)
        >>> selector = DynamicFeatureSelector(GaussianNB(), policy="distilled", epistemic=None, random_state=0)
        >>> case = selector.fit(X[::2], y[::2]).quick().start(known={"alcohol": 13.2}, budget=3)
        >>> case.predict_proba().shape
        (3,)
        """
        if not isinstance(self.policy_, Distilled):
            raise InvalidInput(f'quick() needs policy="distilled"; this selector has {type(self.policy_).__name__}.')
        parts = self.beliefs_, self.schema_, self.prices_, self.classes_
        return QuickSelector(self.policy_, *parts, self._risk_weight(), self.budget, self._encode)

    def next(
        self,
        known: Mapping[str, Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        *,
        unavailable: Sequence[str] = (),
        pending: Sequence[str] = (),
        budget: float | Mapping[str, float] | None = None,
        stop: Stopping | str | None = None,
        deadline: float | None = None,
        desk: Desk | None = None,
        outcomes: bool = True,
    ) -> Next:
        """What to do next in a case of which this is known, and why, ready for JSON; nothing is kept.

        It is what a session says after the same answers: `Session.next`.

        Parameters
        ----------
        known, budget, stop, deadline
            As in `start`.
        answers
            Feature -> value of what was acquired, in that order; charged.
        unavailable
            Features that cannot be had.
        pending
            Features that are ordered and not back, see `Session.order`; charged.
        desk, outcomes
            As in `Session.why`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from askwise import DynamicFeatureSelector
        >>> X, y = load_iris(return_X_y=True)
        >>> model = GaussianNB().fit(X, y)
        >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
        >>> found = selector.next(answers={"x3": 1.4}, budget=2)
        >>> found["suggestion"], found["spent"], found["budget_left"]
        ('x2', 1.0, 1.0)
        """
        check_values("next", {"outcomes": outcomes}, {"outcomes": Flag()})
        if answers is not None and not isinstance(answers, Mapping):
            raise InvalidInput(f"answers must be a dict {{feature: value}}; got {answers!r}.")
        for given, owner in ((unavailable, "unavailable"), (pending, "pending")):
            if isinstance(given, str | Mapping) or not np.iterable(given):
                raise InvalidInput(f"{owner} must be a list of features; got {given!r}.")
        session = self._session(known, budget, stop, quiet=True, deadline=deadline)
        for name, value in (answers or {}).items():
            session.answer(name, value)
        for name in unavailable:
            session.unavailable(name)
        for name in pending:
            session.order(name)
        return session.next(desk, outcomes)

    def _session(
        self, known: Any, budget: Any, stop: Any, quiet: bool = False, deadline: Any = None, check: bool = False
    ) -> Session:
        check_is_fitted(self, "policy_")
        if deadline is not None:
            check_values("start", {"deadline": deadline}, {"deadline": Number()})
        rule = self._stopping(stop, budget, 1)
        check_values("start", {"check": check}, {"check": Flag()})
        if check and rule is None:
            raise InvalidInput('start: check=True checks a stop; give one, such as stop="calibrated".')
        nothing = EncodedRows(np.full((1, len(self.schema_.columns)), np.nan))
        state, handover = self._state(nothing, budget, None), self._handover(rule, budget, 1)
        return Session(state, self.policy_, known, rule, handover, quiet, deadline, check)

    def savings(
        self,
        X: Any,
        levels: Sequence[float] = LEVELS,
        *,
        missing: str = "blocked",
        draws: int = N_DRAWS,
        budget: float | Mapping[str, float] | None = None,
    ) -> pd.DataFrame:
        """The average price at which a share of the decisions of the full rows is kept, in hindsight.

        Parameters
        ----------
        X
            Rows that were not seen in training.
        levels
            Shares of decisions to keep.
        missing
            What is made of missing cells: ``"blocked"``: they are unavailable; ``"weighted"``: only complete rows, by
            the inverse probability of that; ``"simulated"``: they are drawn `draws` times. See `evaluate`, which also
            has ``"doubly_robust"``: it averages over cases, and a price in hindsight is no average.
        budget
            Limits within which all of this happens, such as ``{"time": 24}``; None = no limit. Decisions are compared
            with those of the full rows all the same.

        Returns
        -------
        DataFrame
            One row per level and way to stop (`way`): ``"stop per case"`` (at a threshold of `decision_is_final`),
            ``"fixed budget"`` (the same budget for all cases, in the order of the policy) and ``"static order"`` (the
            same budget and the same order), and ``"stop per case, each class"``, which keeps that share of the cases
            of every class. `price`, its 95 % bootstrap interval over cases (`low`, `high`), and `share`, the price
            divided by that of everything. NaN: never reached. `worst_class` is the class, by the decision of the full
            row, of which the fewest decisions are kept, and `kept_of_worst` their share. With `error_costs`,
            `net_benefit`: what the tests are expected to save per case, their price taken off, beside deciding without
            any (but what is free), by the probabilities of the full row in place of labels. Resources other than money
            have a column each: what a case then takes on average.
        """
        shares = check_levels(levels)
        check_values("savings", {"draws": draws}, {"draws": Whole(2)})
        truth, weights, cases = self._rows_by(check_missing(missing, "savings", MISSING[:3]), self._encode(X), draws)
        limit = self.prices_.limits(budget, 1)[0]
        runs = self._full_runs(truth, self._policy_for(truth), limit)
        order = self._static_policy()
        static = None if order is None else self._full_runs(truth, order, limit)
        costs = self.beliefs_.error_costs
        expected = None if costs is None else self.predictor_.full_proba(truth) @ costs
        names = self.prices_.resources[1:]
        return savings_table(runs, static, shares, self.classes_, self._usual_shares(), weights, cases, expected, names)

    def _rows_by(
        self, missing: str, truth: EncodedRows, draws: int, labels: np.ndarray | None = None
    ) -> tuple[EncodedRows, np.ndarray | None, np.ndarray]:
        """Rows that stand for `truth` by one of the ways of `MISSING`, their weights, and which cases they are."""
        case = np.arange(len(truth))
        if missing == "blocked":
            return truth, None, case
        recorded = self.schema_.any_column(truth.observed)
        if missing == "weighted":
            chance = chance_of_everything(truth.values, recorded, self.schema_, labels, len(self.classes_))
            whole = recorded.all(axis=1)
            if not whole.any():
                raise InvalidInput('missing="weighted" needs complete rows; there are none. Try "simulated".')
            return truth.take(whole), 1 / chance[whole], np.flatnonzero(whole)
        rows = getattr(self.predictor_, "training_rows_", None)
        donors = None if rows is None else (rows.values, self.predictor_.training_labels_)
        drawn = completions(truth.values, ~recorded, labels, self.schema_, draws, 0, donors=donors)
        return truth.with_values(drawn.reshape(-1, drawn.shape[2])), None, np.tile(case, draws)

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
        budget: float | Mapping[str, float] | None = None,
        coverage: float = 0.9,
        by_class: bool = False,
        missing: str = "blocked",
        quick: bool = False,
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
            (n,) group of each row of `X_cal`, such as the hospital, or the name of a column of it: the promise then
            holds for each group, too.
        budget
            Maximum price of a case, or ``{resource: most}``; None = the selector's own, and unlimited if that is None.
            The rule is then valid for this budget only.
        coverage, by_class
            Coverage of the prediction sets of a session, and whether it must hold for each class separately.
        missing
            What is made of missing cells of `X_cal`: ``"blocked"``: they are unavailable, and will be as often;
            ``"weighted"``: complete rows are drawn as they would be if every test could be had (others are left out);
            ``"simulated"``: they are drawn, once. With the last two the promise is an estimate for a use in which every
            test can be had; it names the assumption. ``"doubly_robust"`` corrects averages, and a promise is tested on
            single cases, each with a loss or none: there is no such stop.
        quick
            Whether it is for the cases of `quick()`, which stop by what the networks say: the rows are run as such
            cases, and the rule is theirs instead of `stop_`. The promise is about the wrapped model's decisions, too.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from askwise import DynamicFeatureSelector
        >>> X, y = load_wine(return_X_y=True, as_frame=True)
        >>> model = GaussianNB()
        >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X[::2], y[::2])
        >>> stop = selector.calibrate_stop(X[1::2], agreement=0.95)
        >>> stop.price < 0.7 * stop.everything
        True
        """
        goal = Goal(agreement, accuracy_gap, average_price, confidence, conditional, recall, per_class)
        limits: Limits = {"coverage": INSIDE, "by_class": Flag(), "quick": Flag()}
        check_values("calibrate_stop", {"coverage": coverage, "by_class": by_class, "quick": quick}, limits)
        limit = self._limits(budget, 1)[0]
        way = check_missing(missing, "calibrate_stop", MISSING[:3])
        if way != "blocked" and (X_cal is None or subgroups is not None):
            raise InvalidInput(f'calibrate_stop: missing="{way}" needs X_cal, and goes without subgroups.')
        if quick and (X_cal is None or conditional):
            raise InvalidInput("calibrate_stop: quick=True needs X_cal, and goes without conditional.")
        rows, runs = self._calibration_runs(X_cal, y_cal, goal, limit, way)
        shares = self._usual_shares() if goal.by_class else None
        if quick:
            runs = self.quick().full_runs(rows, runs, self.prices_.plain(limit), shares)
        lacking = np.asarray(~self.schema_.any_column(rows.observed).all(axis=0))
        stop = calibrated_stop(
            runs,
            goal,
            Conditions(self.policy_, self.prices_, self._risk_weight(), self.prices_.plain(limit), lacking),
            self.classes_,
            shares=None if quick else shares,  # quick runs are judged by them already
            groups=None if subgroups is None else checked_groups(subgroups, len(rows), X_cal, goal),
            grouped_by=subgroups if isinstance(subgroups, str) else "",
            others=self._runs_of_folds(limit) if goal.conditional and X_cal is not None else None,
            coverage=coverage,
            by_class=by_class,
            rows=None if X_cal is None else digests(self._encode(X_cal)),
            assumption="" if way == "blocked" else ASSUMPTIONS[way],
            usual_novelty=None if X_cal is None else self._novelty_of(rows),
        )
        stop.warn_of_lost_classes()
        if quick:
            self.policy_.quick_stop_ = QuickStop(stop.threshold, shares, float(limit[0]), stop.promise)
            return stop
        self.stop_ = stop
        self.handover_ = None  # it was calibrated with another stop
        return stop

    def calibrate_handover(
        self,
        X_cal: Any,
        y_cal: Any,
        *,
        accuracy: float | None = None,
        error_cost: float | None = None,
        confidence: float = 0.9,
        budget: float | Mapping[str, float] | None = None,
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
        labels = self._calibration_labels(y_cal, len(rows))
        self._check_unseen(rows, "X_cal", distinct=True)
        if self.stop_ is not None and self.stop_.rows is not None:
            check_unseen(digests(rows), self.stop_.rows, "X_cal", given_to="calibrate_stop")
        run = self.acquire(X_cal, budget, stop=None if self.stop_ is None else "calibrated")
        limit = self.prices_.plain(self._limits(budget, 1)[0])
        error_costs = self.beliefs_.error_costs
        rule = calibrated_handover(run.ends, labels, goal, error_costs, self.stop_, limit, self.classes_)
        rule.warn_of_lost_classes()
        self.handover_ = rule
        return rule

    def flowchart(
        self, X: Any, max_depth: int = 4, stop: Stopping | str | None = None, budget: Any = None
    ) -> Flowchart:
        """The policy as a tree of questions that can be printed and followed by hand.

        Two thirds of the rows, drawn with a fixed seed, grow the chart: each node asks what the policy would ask for
        most of the rows that arrive there, and the answers are grouped where the next question or the decision
        changes. On the other rows its decisions are compared with those of the policy, which stops by the same rule
        and after as many features.

        Parameters
        ----------
        X
            The true values of rows, preferably ones that `fit` has not seen; NaN = unavailable. No labels are needed.
        max_depth
            The most questions on a path. Free features count only where the chart uses their answer.
        stop
            A `Stopping` rule or ``"calibrated"``; None spends the budget on up to `max_depth` features, with
            `error_costs` as long as they pay.
        budget
            As in `start`; None = the selector's own. A path exceeds none of its limits.
        """
        truth = self._encode(X)
        rule = self._stopping(stop, budget, 1)
        check_chart(self.schema_.tabular, len(truth), max_depth)

        def start(rows: EncodedRows) -> tuple[Acquisition, Policy]:
            policy = self._policy_for(rows)
            state = self._nothing_known(rows, slice(None), policy, members=rule is not None)
            state.remaining = self._limits(budget, len(rows))
            return state, policy

        return policy_chart(start, truth, self.classes_, max_depth, rule)

    def save(
        self,
        folder: str | Path,
        rows: Literal["training", "synthetic"] = "training",
        key_file: str | Path | None = None,
        desk: Desk | None = None,
    ) -> SyntheticReport | None:
        """Write the fitted selector as a folder that `askwise.load` reads; there is no pickle in it.

        A selector that was saved there before is replaced in one step, and not kept: whoever loads the folder meanwhile
        gets the one or the other, whole. A wrapped function, or a torch module of a class of your own, is not in it:
        give it again with ``askwise.load(folder, model=...)``.

        Parameters
        ----------
        folder
            Where to write.
        rows
            ``"training"``: with the training rows, which completions need; the manifest says how many.
            ``"synthetic"``: with rows drawn from a model of the table in their place. What this costs in accuracy, and
            how close the drawn rows come to real ones, is measured, printed and returned.
        key_file
            File with a secret key of 16 bytes or more, to sign the folder with.
        desk
            Labels, units, ranges and the currency for the people who use it; kept in the folder as ``desk.json``.
        """
        from askwise.persistence import save

        return save(self, folder, rows, key_file, desk)

    def _with_promises(
        self, run: Trajectory, truth: EncodedRows, departures: list[str] | None, handover: Handover | None
    ) -> Trajectory:
        """The run, with the cases to hand to a person and those to which the promise of the stop does not apply.

        `departures` says how cases differ from those of the calibration at the start; None without a promise.
        """
        over = None if handover is None else handover.hands_over(run.ends)
        if departures is not None:
            outside = self._outside(truth.masked(self.schema_.expand(run.mask_after(-1))))
            if over is not None:  # as in a session
                over = over | [bool(why or cells) for why, cells in zip(departures, outside, strict=True)]
            ends = zip(departures, outside, run.ends.uncertainty.novelty, strict=True)
            departures = [why or unlike_training(cells, far) for why, cells, far in ends]
        return replace(run, departures=departures, handed_over=over)

    def novelty_of_rows(self, X: Any) -> np.ndarray:
        """(n,) how far each row is from the training rows, as a monitor of a stop compares it (`StopMonitor.update`).

        Above 1 it is farther than nearly all training rows are from each other; cells outside their range add to it.
        NaN where the selector does not measure it.
        """
        found = self._novelty_of(self._encode(X))
        return np.full(len(X), np.nan) if found is None else found

    def _novelty_of(self, rows: EncodedRows) -> np.ndarray | None:
        novelty = self.beliefs_.novelty
        return None if novelty is None or not self.schema_.tabular else novelty.relative(rows)

    def _outside(self, rows: EncodedRows) -> list[list[dict[str, Any]]]:
        """For each row its cells outside of everything seen in training; see `Novelty.describe`."""
        novelty = self.beliefs_.novelty
        return [[] for _ in range(len(rows))] if novelty is None else novelty.describe(rows)

    def _policy_for(self, truth: EncodedRows) -> Policy:
        """The policy for rows with the true values `truth`, which only baselines that see the full row may read."""
        return self.policy_

    def _risk_weight(self) -> float:
        """The weight of epistemic uncertainty in a gain."""
        return 0.0

    def _check_unseen(self, rows: EncodedRows, name: str, distinct: bool = False) -> None:
        """An error if more of `rows` were given to `fit` than chance explains; `name` is what it calls them.

        `distinct` rows must not repeat each other either.
        """
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
            stop.conditions.check(self.policy_, self.prices_, self._risk_weight(), self._limits(budget, n))
        return self.pays_off_ if stop is None else stop

    def _handover(self, rule: Stopping | None, budget: Any, n: int) -> Handover | None:
        """The rule of `calibrate_handover`, if cases stop as they did when it was calibrated; else None."""
        found, own = self.handover_, None if rule is self.pays_off_ else rule
        if found is None or own is not found.stop:
            return None
        return found if np.all(self._limits(budget, n) == self.prices_.limits(found.budget, 1)) else None

    def _calibration_runs(
        self, X: Any, y: Any, goal: Goal, limit: np.ndarray, missing: str
    ) -> tuple[EncodedRows, FullRuns]:
        """The calibration rows, given or cross-fitted, and their runs along the policy."""
        if X is None:
            if y is not None:
                raise InvalidInput("calibrate_stop: y_cal needs X_cal; without it the training labels are used.")
            runs = self._runs_of_folds(limit)
            if runs is None:
                raise InvalidInput(
                    f"calibrate_stop needs X_cal, rows that were not in fit: {type(self).__name__} cannot be fitted "
                    "again without some of the training rows (a callable, a network, images, a baseline, or too few "
                    "rows)."
                )
            return self.predictor_.training_rows_, runs
        rows = self._encode(X)
        if y is None and goal.needs_labels:
            raise InvalidInput(f"calibrate_stop: {goal.needs_labels} needs the labels y_cal; agreement does without.")
        labels = None if y is None else self._calibration_labels(y, len(rows))
        self._check_unseen(rows, "X_cal", distinct=True)
        rows, weights, cases = self._rows_by(missing, rows, 1, labels)
        if weights is not None:  # accepted in proportion to their weights, they are drawn as if all were complete
            kept = np.random.default_rng(0).random(len(rows)) < weights / weights.max()
            rows, cases = rows.take(kept), cases[kept]
        labels = None if labels is None else labels[cases]
        goal.check_rows(len(rows))
        return rows, self._full_runs(rows, self._policy_for(rows), limit, labels)

    def _calibration_labels(self, y: Any, n_rows: int, name: str = "y_cal") -> np.ndarray:
        """The labels `y_cal` as positions in the classes, (n,)."""
        given = as_labels(y)
        if given.shape != (n_rows,):
            raise InvalidInput(f"{name} must hold one label per row, {n_rows} in all; got shape {given.shape}.")
        return class_positions(self.classes_, given, name)

    def _full_runs(
        self, truth: EncodedRows, policy: Policy, limit: np.ndarray, labels: np.ndarray | None = None
    ) -> FullRuns:
        """Runs of cases with the true values `truth` along `policy`, without an early stop."""
        full = self.beliefs_.decisions(self.predictor_.full_proba(truth))
        return full_runs(self._run(truth, policy, limit), full, self.schema_, self.prices_, labels)

    @cached_property
    def _runs(self) -> RunMemory:
        """The last runs: `evaluate`, `savings` and `calibrate_stop` of the same cases share them."""
        return RunMemory()

    def __getstate__(self) -> Any:
        """What is pickled, hashed and copied: a question, whose runs are remembered, changes nothing of it."""
        return {name: value for name, value in super().__getstate__().items() if name != "_runs"}

    def _run(
        self,
        truth: EncodedRows,
        policy: Policy,
        limit: np.ndarray,
        stop: Stopping | None = None,
        or_longer: bool = False,
    ) -> Trajectory:
        """Cases of which nothing is known along `policy` until the budget or the features are used up, or they stop."""

        def run() -> Trajectory:
            blocks, found = self._blocks(len(truth)), []
            for part in track(blocks, "blocks of cases", len(blocks), self.progress):
                state, cells = self._nothing_known(truth, part, policy), truth.values[part]
                state.remaining = np.tile(limit, (len(cells), 1))
                found.append(run_episodes(state, cells, policy, stop, self.progress))
            return found[0] if len(found) == 1 else Trajectory.concatenated(found)

        beliefs = (self.beliefs_, self.beliefs_.predictor, self.beliefs_.calibration, self.beliefs_.novelty)
        made_with = (policy, stop, *beliefs, self.schema_, self.prices_, self._risk_weight())
        return self._runs.run(truth, made_with, limit, run, or_longer)

    def _runs_of_folds(self, limit: np.ndarray) -> FullRuns | None:
        """Runs of training rows along policies that were fitted without them; None where that is impossible."""
        folds = self._cross_fit()
        if folds is None:
            return None
        weight = self._risk_weight()
        return runs_of_folds(folds, self.beliefs_, self.schema_, self.prices_, limit, weight, self.progress)

    def _usual_shares(self) -> np.ndarray:
        """(C,) shares of the classes among the training rows, none of them 0; equal where these are not kept."""
        labels = getattr(self.predictor_, "training_labels_", np.empty(0, dtype=int))
        return usual_shares(labels, len(self.classes_))

    def _static_policy(self) -> Policy | None:
        """One order for all cases, by conditional information; None where the training rows are not kept."""
        rows = getattr(self.predictor_, "training_rows_", None)
        if rows is None or not self.schema_.tabular:
            return None
        return Static().fit_order(rows, self.predictor_.training_labels_, self.schema_, self.prices_)

    def _cross_fit(self, n_folds: int = N_FOLDS, **limits: Any) -> list[Fold] | None:
        """What was fitted without each fold of the training rows; None where that is impossible."""
        return None

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

    def _blocks(self, n: int, n_jobs: int = 1, n_copies: int = 1) -> list[slice]:
        """Blocks of rows to process together, so that the beliefs of `n_jobs` of them fit into `memory_limit`.

        Each row is there in `n_copies`.
        """
        most = int(self.beliefs_.rows_at_once * self.memory_limit / USUAL_MEMORY / n_jobs / n_copies)
        step = max(1, min(most, -(-n // n_jobs)))
        return [slice(start, start + step) for start in range(0, max(n, 1), step)]

    def _parts(self, X: Any, budget: Any = np.inf, available: Any = None) -> list[Acquisition]:
        state = self._state(self._encode(X), budget, available)
        return [state.take(part) for part in self._blocks(len(state.mask))]

    def _state(self, rows: EncodedRows, budget: Any, available: Any) -> Acquisition:
        n, shape = len(rows), (len(rows), len(self.features_))
        allowed = (
            np.ones(shape, dtype=bool)
            if available is None
            else check_mask(available, shape, "available", self.features_)
        )
        left = self._limits(budget, n)
        mask = self.schema_.any_column(rows.observed)
        weight = self._risk_weight()
        return Acquisition(self.schema_, self.prices_, self.beliefs_, rows, mask, allowed, left, risk_weight=weight)

    def _limits(self, budget: Any, n: int) -> np.ndarray:
        """(n, R) the limits of a budget; None = the selector's own."""
        return self.prices_.limits(self.budget if budget is None else budget, n)

    def _one_run(self, limits: Sequence[np.ndarray], policy: Policy) -> bool:
        """Whether one run under the largest budget serves all: the others are its prefixes."""
        only_money = all(np.isinf(limit[1:]).all() for limit in limits)
        return only_money and self.prices_.uniform and not policy.depends_on_budget(self.prices_)

    def _final_states(self, X: Any, budgets: Sequence[Any], policy: Policy | None = None) -> list[FinalState]:
        """See `askwise.evaluation.final_states`."""
        truth, limits = self._encode(X), self.prices_.limits_of_each(budgets)
        chosen = self._policy_for(truth) if policy is None else policy
        if self._one_run(limits, chosen):
            most = np.max(limits, axis=0)
            return ends_of_one_run(self._run(truth, chosen, most, self.pays_off_, or_longer=True), limits)
        n_jobs = max(1, min(len(limits), effective_n_jobs(self.n_jobs)))
        shares = np.array_split(np.array(limits, dtype=float), n_jobs)
        show = self.progress if n_jobs == 1 else False
        jobs = (delayed(self._ends)(truth, share, chosen, show) for share in shares)
        return [end for ends in Parallel(n_jobs=n_jobs)(jobs) for end in ends]

    def _ends(self, truth: EncodedRows, budgets: np.ndarray, policy: Policy, progress: bool | str) -> list[FinalState]:
        """The final states under each of the budgets (B, R), block by block."""
        blocks = [self._nothing_known(truth, part, policy) for part in self._blocks(len(truth), n_copies=len(budgets))]
        ends = [
            ends_of_each_budget(state, truth.values[state.ids], policy, self.pays_off_, budgets, progress)
            for state in track(blocks, "blocks of cases", len(blocks), progress)
        ]
        return [FinalState.concatenated(parts) for parts in zip(*ends, strict=True)]

    def _nothing_known(self, truth: EncodedRows, part: slice, policy: Policy, members: bool = False) -> Acquisition:
        """Cases of which nothing is known; with members only where `policy` reads them, or if they are asked for."""
        weight = self._risk_weight()
        beliefs = self.beliefs_ if members or policy.reads_members(weight) else self.beliefs_.without_members()
        ids = np.arange(len(truth))[part]
        return nothing_known(self.schema_, self.prices_, beliefs, truth.take(part), risk_weight=weight, ids=ids)


def _ranking(policy: Policy, state: Acquisition) -> np.ndarray:
    return np.where(state.mask, -np.inf, checked_scores(policy, state))
