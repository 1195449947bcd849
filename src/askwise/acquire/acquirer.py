"""FeatureAcquirer: all that a fitted predictor and a policy can do together, for one case or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from askwise.acquire.acquisition import Acquisition, Trajectory, checked_scores, purchases, run_episodes
from askwise.acquire.evaluation import default_budgets, measures, state_within
from askwise.acquire.policies import CachedPolicy, Policy
from askwise.acquire.session import Session
from askwise.acquire.stopping import Stopping
from askwise.epistemic import EpistemicEstimator, assess
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.predict.rules.explanation import Explanation
from askwise.prices import Prices, check_budget
from askwise.progress import track
from askwise.schema import Schema, as_array
from askwise.subsets import check_mask
from askwise.uncertainty import Uncertainty


class FeatureAcquirer(ClassifierMixin, BaseEstimator):
    """Predicts, suggests, acquires and is evaluated; `fit` of a subclass sets the attributes below."""

    budget: float | None = None
    n_jobs: int | None = None
    progress: bool | str = False

    schema_: Schema
    features_: list[str]
    classes_: np.ndarray
    prices_: Prices
    costs_: np.ndarray
    predictor_: SubsetPredictor
    epistemic_: EpistemicEstimator | None
    policy_: Policy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(y | x_S) for rows with NaN for what is not known, (n, C). Never acquires."""
        values = self._encode(X)
        return self.predictor_.predict_proba(values)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class for rows with NaN for what is not known, (n,). Never acquires."""
        proba = self.predict_proba(X)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; when `budget` is set, after acquiring under it from rows of which nothing is known."""
        predicted = self.predict(X) if self.budget is None else self.acquire(X).predict()
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def uncertainty(self, X: Any) -> Uncertainty:
        """How far to trust `predict_proba`: total, aleatoric, mutual_information, epistemic and more, (n,) each."""
        values = self._encode(X)
        return assess(self.predictor_, self.epistemic_, values, ~np.isnan(values))[1]

    def explain(self, X: Any, mask: Any = None, most: int = 5) -> list[Explanation]:
        """The rules behind `predict_proba` of each row: those that fire in reduced form, and those still possible.

        Parameters
        ----------
        mask
            (n, M) or (M,) bool: features to regard as known, such as ``trajectory.mask_after(2)``; None = all in `X`.
        most
            Rules of each kind that are listed, the weightiest first.
        """
        values = self._encode(X)
        if mask is not None:
            known = check_mask(mask, (len(values), len(self.features_)))
            values = np.where(self.schema_.expand(known), values, np.nan)
        found = self.predictor_.explain(values, most=most)
        if found is None:
            raise InvalidInput(
                f"{type(self.predictor_).__name__} has no rules to explain a prediction with. A tree, a forest, a rule "
                'list or a fuzzy model has them with adaptation="rules".'
            )
        return found

    def scores(self, X: Any) -> np.ndarray:
        """Expected gain per cost of each feature, (n, M); -inf for those that are known."""
        state = self._state(self._encode(X), np.inf, None)
        return np.where(state.mask, -np.inf, checked_scores(self._policy(), state.values, state.mask, state.left))

    def suggest(self, X: Any, budget: Any = None, available: Any = None) -> np.ndarray:
        """Index of the next feature for rows with NaN for what is not known, (n,); -1 = stop.

        Parameters
        ----------
        budget
            Money that is left, one number or one per row. What is known is not charged, and triggers savings.
        available
            (n, M) or (M,) bool: features that can be had.
        """
        state = self._state(self._encode(X), budget, available)
        return state.choose(self._policy(), state.buyable(self.predictor_))[0]

    def acquire(
        self,
        X: Any,
        budget: Any = None,
        stop: Stopping | None = None,
        available: Any = None,
        known: Any = None,
    ) -> Trajectory:
        """Buy features one at a time for rows whose truth is in `X`, and record every step.

        Parameters
        ----------
        X
            The truth; NaN = cannot be had. The policy sees a cell only once it is bought.
        budget
            Total price per row, one number or one per row; None = the selector's own, and unlimited if that is None.
        stop
            A `Stopping` rule; None spends what it can.
        available
            (n, M) or (M,) bool: features that can be had.
        known
            (n, M) or (M,) bool: features had from the start; they are not charged.
        """
        if stop is not None and not isinstance(stop, Stopping):
            raise InvalidInput(
                f"stop must be None or an askwise.acquire.Stopping such as Confidence(0.95); got {stop!r}."
            )
        truth = self._encode(X)
        shape = (len(truth), len(self.features_))
        had = np.zeros(shape, dtype=bool) if known is None else check_mask(known, shape, "known")
        there = self.schema_.any_column(~np.isnan(truth))
        allowed = there if available is None else there & check_mask(available, shape, "available")
        values = np.where(self.schema_.expand(had), truth, np.nan)
        state = self._state(values, budget, allowed)
        policy = self._policy_for(truth)
        return run_episodes(state, truth, policy, self.predictor_, self.epistemic_, stop, self.progress)

    def evaluate(self, X: Any, y: Any, budgets: Sequence[float] | None = None) -> pd.DataFrame:
        """Accuracy, balanced accuracy, log loss, calibration error and money spent, one row per budget.

        `budgets` defaults to 1..10 features where all cost the same, else to 5 %..50 % of the price of everything.
        """
        truth = self._encode(X)
        given = np.asarray(y)
        if given.shape != (len(truth),) or not len(given):
            raise InvalidInput(f"evaluate needs one label per row, {len(truth)} in all; got shape {given.shape}.")
        labels = class_positions(self.classes_, given)
        if budgets is not None and not np.iterable(budgets):
            raise InvalidInput(f"budgets must be a list of numbers; got {budgets!r}.")
        budgets = self.default_budgets() if budgets is None else [float(check_budget(b, 1)[0]) for b in budgets]
        ends = self.final_states(X, budgets)
        return pd.DataFrame([{"budget": b, **measures(labels, *end)} for b, end in zip(budgets, ends, strict=True)])

    def start(self, known: Mapping[str, Any] | None = None, budget: float | None = None) -> Session:
        """One case, by feature name; `known` (feature -> value) is had already and not charged."""
        check_is_fitted(self, "policy_")
        budget = self.budget if budget is None else budget
        return Session(self.schema_, self.prices_, self._policy(), self.predictor_, self.epistemic_, known, budget)

    def default_budgets(self) -> list[float]:
        """The budgets that `evaluate` takes by itself."""
        check_is_fitted(self, "policy_")
        return default_budgets(self.prices_)

    def _policy(self) -> Policy:
        """The policy as it is to score now."""
        return self.policy_

    def _policy_for(self, truth: np.ndarray) -> Policy:
        """The policy that buys for rows whose truth is `truth`, which only one that declares it may read."""
        return self._policy()

    def _table(self, X: Any, reset: bool) -> Any:
        """`X` as a DataFrame or a numeric array, its columns checked against those of `fit` as scikit-learn does."""
        table = X if isinstance(X, pd.DataFrame) else as_array(X)
        try:
            validate_data(self, table, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise InvalidInput(f"X: {str(error).strip()}\nWhat is not known is NaN; its column stays.") from None
        return table

    def _encode(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "policy_")
        X = self._table(X, reset=False)
        if not isinstance(X, pd.DataFrame) and self.schema_.is_category.any():
            raise InvalidInput(
                "X must be a DataFrame with the columns of fit, because some of them are categories; got an array."
            )
        return self.schema_.encode(X)

    def _state(self, values: np.ndarray, budget: Any, available: Any) -> Acquisition:
        n, shape = len(values), (len(values), len(self.features_))
        allowed = np.ones(shape, dtype=bool) if available is None else check_mask(available, shape, "available")
        left = check_budget(self.budget if budget is None else budget, n)
        mask = self.schema_.any_column(~np.isnan(values))
        return Acquisition(self.schema_, self.prices_, values.copy(), mask, allowed, left)

    def final_states(
        self, X: Any, budgets: Sequence[float], policy: Policy | None = None
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(proba (n, C), spent (n,), known features (n, M)) under each budget, from rows whose truth is in `X`.

        `policy` in place of the fitted one, such as `askwise.acquire.Random(0)`. With equal prices one run serves all
        budgets, unless the policy reads the budget.
        """
        truth = self._encode(X)
        chosen = self._policy_for(truth) if policy is None else policy
        if self.prices_.uniform and not chosen.reads_budget:
            start = self._nothing_known(truth, max(budgets, default=0.0))
            run = run_episodes(start, truth, chosen, self.predictor_, progress=self.progress)
            return [state_within(run, budget) for budget in budgets]
        n_jobs = max(1, min(len(budgets), effective_n_jobs(self.n_jobs)))
        parts = np.array_split(np.array(budgets, dtype=float), n_jobs)
        jobs = (delayed(self._ends)(truth, part, chosen, self.progress if n_jobs == 1 else False) for part in parts)
        return [end for ends in Parallel(n_jobs=n_jobs)(jobs) for end in ends]

    def _nothing_known(self, truth: np.ndarray, budget: float) -> Acquisition:
        return self._state(np.full_like(truth, np.nan), budget, self.schema_.any_column(~np.isnan(truth)))

    def _ends(
        self, truth: np.ndarray, budgets: np.ndarray, policy: Policy, progress: bool | str
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """As `final_states`, an episode for each budget: nothing is predicted before the money is spent."""
        cached = CachedPolicy(policy)
        ends = []
        for budget in track(budgets, "budgets", len(budgets), progress):
            cached.start()
            state = self._nothing_known(truth, budget)
            spent = np.zeros(len(truth))
            for _, paid in purchases(state, truth, cached, self.predictor_):
                spent += paid
            ends.append((self.predictor_.predict_proba(state.values, state.column_mask), spent, state.mask))
        return ends
