"""DynamicFeatureSelector: the scikit-learn front door."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from askwise.acquire.acquisition import Acquisition, Trajectory, checked_scores, run_episodes
from askwise.acquire.dqn import DQN
from askwise.acquire.evaluation import default_budgets, measures, state_within
from askwise.acquire.policies import Greedy, Policy, Problem, Random, Static
from askwise.acquire.session import Session
from askwise.acquire.stopping import Stopping
from askwise.epistemic import (
    AuxiliaryEnsemble,
    EpistemicEstimator,
    FeatureDistance,
    MCDropout,
    assess,
    suitable_epistemic,
)
from askwise.errors import InvalidInput
from askwise.predict import ConditionalPredictor, ImputedPredictor, ReparametrizedPredictor, SubsetPredictor
from askwise.predict.base import check_labels, class_positions
from askwise.predict.wrapped import BlackBox, fitted_classifier
from askwise.prices import as_prices, check_budget
from askwise.progress import track
from askwise.randomness import generator, seed_from
from askwise.schema import Schema, as_array
from askwise.subsets import check_mask
from askwise.uncertainty import Uncertainty
from askwise.value.targets import Fitted, rehearse

ADAPTATIONS = ("auto", "conditional", "mean", "output", "last-layer", "low-rank")
EPISTEMICS = ("auto", "ensemble", "dropout", "distance", None)
POLICIES = ("auto", "greedy", "rl", "static", "random")


class DynamicFeatureSelector(ClassifierMixin, BaseEstimator):
    """Which feature to acquire next for each case, what the model predicts so far, and how far to trust it.

    The wrapped model is never changed. Rows hold NaN (or None, NA) for what is not known.

    Parameters
    ----------
    estimator
        A fitted classifier, used as it is, or an unfitted one, which is cloned and fitted: anything with
        `predict_proba` (a whole `Pipeline` on a raw DataFrame, XGBoost, LightGBM, `FrozenEstimator`), a
        `torch.nn.Module` that gives logits, or a callable ``X -> probabilities``. In cross-validation, where `clone`
        drops the fit, pass a fitted one as ``FrozenEstimator(model)``.
    costs
        Price of each feature: None = 1 each, an array in feature order, ``{feature name: price}`` (absent names
        cost 1), or `askwise.Prices`. 0 = free, known from the start whenever available.
    groups
        ``{feature name: [columns]}``: columns that are bought together. Others are features of their own.
    adaptation
        How p(y | x_S) is answered: ``"conditional"`` (the model averaged over completions from similar training
        rows; what ``"auto"`` takes), ``"mean"`` (the model on rows filled with means and modes), reparametrised from
        there with torch: ``"output"`` (any model), ``"last-layer"``, ``"low-rank"``; or a `SubsetPredictor`.
    epistemic
        Where the members around the model come from: ``"ensemble"`` (models trained like it), ``"dropout"`` (torch
        modules with dropout), ``"distance"`` (no members: distance to the training data, any model), None (epistemic
        numbers are NaN), or an `EpistemicEstimator`. ``"auto"`` takes the first of these that the model allows.
    policy
        ``"greedy"`` (expected gain per cost; what ``"auto"`` takes), ``"rl"`` (a Q-network; needs torch), ``"static"``
        (one order by mutual information), ``"random"``, or a `Policy`.
    risk_weight
        The paper's lambda, the weight of epistemic uncertainty in the gain of a feature. It can be changed after
        fitting for the greedy policy.
    budget
        Default budget of `acquire`, `score` and `suggest`; None = unlimited.
    random_state, n_jobs, progress
        Seed; parallel jobs of `evaluate` when each budget is an episode of its own; ``"auto"`` shows a progress
        bar on a terminal.

    Attributes
    ----------
    features_ : list of feature names, in mask order
    classes_ : (C,) labels, in the order of the columns of `predict_proba`
    costs_ : (M,) prices
    estimator_ : the fitted classifier
    predictor_ : the `SubsetPredictor` in use
    epistemic_ : the `EpistemicEstimator` in use, or None
    adaptation_report_ : held-out log loss before and after by subset size, where the adaptation is trained
    policy_ : the `Policy` in use

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> session = selector.start(budget=3)
    >>> session.answer(session.suggest().feature, 2.5)
    >>> session.report()["spent"]
    1.0
    """

    def __init__(
        self,
        estimator: Any,
        *,
        costs: Any = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        adaptation: Any = "auto",
        epistemic: Any = "auto",
        policy: Any = "auto",
        risk_weight: float = 0.1,
        budget: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.groups = groups
        self.adaptation = adaptation
        self.epistemic = epistemic
        self.policy = policy
        self.risk_weight = risk_weight
        self.budget = budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Prepare everything that is asked for; a fitted model is left as it is.

        Parameters
        ----------
        X
            Training rows, as the model takes them. NaN = nobody has the cell.
        y
            (n,) labels.
        sample_weight
            Passed on when an unfitted estimator is fitted.
        """
        self._check_options()
        schema = Schema.read(X)  # names the column that cannot be used, before anything is trained
        X = self._table(X, reset=True)
        y = check_labels(X, y)
        as_prices(self.costs).resolve(schema.grouped(self.groups).features)
        self.__dict__.pop("adaptation_report_", None)
        rng = generator(self.random_state)
        self._seeds = {name: seed_from(rng) for name in ("predictor", "epistemic", "policy", "folds")}
        self._sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        self.estimator_ = fitted_classifier(self.estimator, X, y, sample_weight)
        self.predictor_ = self._make_predictor(self.estimator_).fit(X, y)
        self.classes_ = self.predictor_.classes_
        self.schema_ = self.predictor_.schema_.grouped(self.groups)
        self.features_ = self.schema_.features
        self.prices_ = as_prices(self.costs).resolve(self.features_)
        self.costs_ = self.prices_.costs
        self.epistemic_ = self._make_epistemic(self.predictor_, X, y)
        self.policy_ = self._make_policy()
        if hasattr(self.predictor_, "adaptation_report_"):
            self.adaptation_report_ = self.predictor_.adaptation_report_
        return self

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
        return run_episodes(state, truth, self._policy(), self.predictor_, self.epistemic_, stop, self.progress)

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
        ends = self._ends(truth, budgets)
        return pd.DataFrame([{"budget": b, **measures(labels, *end)} for b, end in zip(budgets, ends, strict=True)])

    def start(self, known: Mapping[str, Any] | None = None, budget: float | None = None) -> Session:
        """One case, by feature name; `known` (feature -> value) is had already and not charged."""
        check_is_fitted(self, "policy_")
        budget = self.budget if budget is None else budget
        return Session(self.schema_, self.prices_, self._policy(), self.predictor_, self.epistemic_, known, budget)

    def with_policy(self, policy: Any) -> Self:
        """The same fitted model, predictor and members with another `policy`; this selector stays as it is."""
        check_is_fitted(self, "policy_")
        other = copy.copy(self)
        other.policy = policy
        other._check_options()
        other.policy_ = other._make_policy()
        return other

    def default_budgets(self) -> list[float]:
        """The budgets that `evaluate` takes by itself."""
        check_is_fitted(self, "policy_")
        return default_budgets(self.prices_)

    def _check_options(self) -> None:
        for name, value, known, family in (
            ("adaptation", self.adaptation, ADAPTATIONS, SubsetPredictor),
            ("policy", self.policy, POLICIES, Policy),
            ("epistemic", self.epistemic, EPISTEMICS, EpistemicEstimator),
        ):
            named = value is None or isinstance(value, str)
            if not isinstance(value, family) and not (named and value in known):
                raise InvalidInput(f"{name} must be one of {known} or a {family.__name__}; got {value!r}.")
        self._check_risk_weight()
        check_budget(self.budget, 1)

    def _check_risk_weight(self) -> None:
        weight = self.risk_weight
        if not isinstance(weight, numbers.Real) or isinstance(weight, bool) or not np.isfinite(float(weight)):
            raise InvalidInput(f"risk_weight must be a finite number; got {weight!r}.")

    def _make_predictor(self, estimator: Any) -> SubsetPredictor:
        seed = self._seeds["predictor"]
        if isinstance(self.adaptation, SubsetPredictor):
            predictor: SubsetPredictor = clone(self.adaptation).set_params(estimator=estimator)
            return predictor
        if self.adaptation == "mean":
            return ImputedPredictor(estimator, "mean")
        if self.adaptation in ("auto", "conditional"):
            return ConditionalPredictor(estimator, random_state=seed)
        return ReparametrizedPredictor(estimator, self.adaptation, random_state=seed, progress=self.progress)

    def _make_epistemic(self, predictor: SubsetPredictor, X: Any, y: np.ndarray) -> EpistemicEstimator | None:
        seed = self._seeds["epistemic"]
        if self.epistemic is None:
            return None
        if isinstance(self.epistemic, EpistemicEstimator):
            return copy.copy(self.epistemic).fit(predictor, X, y)  # a clone would unfit the members it was given
        kinds: dict[str, Callable[[], EpistemicEstimator]] = {
            "ensemble": lambda: AuxiliaryEnsemble(random_state=seed, n_jobs=self.n_jobs, progress=self.progress),
            "dropout": lambda: MCDropout(random_state=seed),
            "distance": lambda: FeatureDistance(random_state=seed),
        }
        kind = suitable_epistemic(predictor, y) if self.epistemic == "auto" else self.epistemic
        return kinds[kind]().fit(predictor, X, y)

    def _make_policy(self) -> Policy:
        named = {"auto": Greedy, "greedy": Greedy, "rl": DQN, "static": Static, "random": Random}
        policy = self.policy if isinstance(self.policy, Policy) else named[self.policy]()
        fitted = (self.predictor_, self.epistemic_)
        used_as_it_is = self.estimator_ is self.estimator or isinstance(self.estimator_, BlackBox)
        refit = None if used_as_it_is else self._fitted_without
        problem = Problem(
            values=self.predictor_.training_values_,
            y=self.predictor_.training_labels_,
            schema=self.schema_,
            prices=self.prices_,
            predictor=self.predictor_,
            epistemic=self.epistemic_,
            risk_weight=self.risk_weight,
            rehearsal=lambda: rehearse(fitted, self.schema_, refit, random_state=self._seeds["folds"]),
            random_state=self._seeds["policy"],
            progress=self.progress,
        )
        return policy.fit(problem)

    def _fitted_without(self, rows: np.ndarray) -> Fitted:
        """Predictor and members around a model fitted on all training rows but `rows`."""
        rest = np.setdiff1d(np.arange(len(self.predictor_.training_values_)), rows)
        X = self.schema_.decode(self.predictor_.training_values_[rest])
        y = self.classes_[self.predictor_.training_labels_[rest]]
        weights = None if self._sample_weight is None else self._sample_weight[rest]
        model = fitted_classifier(self.estimator, X, y, weights)
        predictor = self._make_predictor(model).fit(X, y, schema=self.predictor_.schema_)
        return predictor, self._make_epistemic(predictor, X, y)

    def _policy(self) -> Policy:
        """The policy with the risk weight of now."""
        self._check_risk_weight()
        has_its_own = isinstance(self.policy, Greedy) and self.policy.risk_weight is not None
        if isinstance(self.policy_, Greedy) and not has_its_own:
            self.policy_.risk_weight = self.risk_weight
        return self.policy_

    def _table(self, X: Any, reset: bool) -> Any:
        """`X` as a DataFrame or a numeric array, its columns checked against those of `fit` as scikit-learn does."""
        table = X if isinstance(X, pd.DataFrame) else as_array(X)
        validate_data(self, table, reset=reset, skip_check_array=True)
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

    def _episode(self, truth: np.ndarray, budget: float, progress: bool | str) -> Trajectory:
        state = self._state(np.full_like(truth, np.nan), budget, self.schema_.any_column(~np.isnan(truth)))
        return run_episodes(state, truth, self._policy(), self.predictor_, None, None, progress)

    def _ends(self, truth: np.ndarray, budgets: Sequence[float]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(proba, spent, features bought) of each row under each budget."""
        if self.prices_.uniform and not self.policy_.reads_budget:
            run = self._episode(truth, max(budgets, default=0.0), self.progress)
            return [state_within(run, budget) for budget in budgets]
        jobs = (delayed(self._episode)(truth, budget, False) for budget in budgets)
        runs = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        return [state_within(run, np.inf) for run in track(runs, "budgets", len(budgets), self.progress)]
