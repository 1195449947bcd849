"""DynamicFeatureSelector: the main estimator of the package."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.dqn import DQN
from askwise.acquire.policies import Greedy, Policy, PolicyContext, Random, Static
from askwise.epistemic import (
    AuxiliaryEnsemble,
    BeliefModel,
    EpistemicEstimator,
    FeatureDistance,
    MCDropout,
    Novelty,
    suitable_epistemic,
)
from askwise.errors import InvalidInput
from askwise.parameters import FINITE, Jobs, check_limits
from askwise.predict import (
    ConditionalPredictor,
    ImputedPredictor,
    ReparametrizedPredictor,
    RulePredictor,
    SubsetPredictor,
)
from askwise.predict.base import check_labels, class_positions
from askwise.predict.black_box import BlackBox
from askwise.predict.wrapped import FrozenModel, fitted_classifier, warn_if_worse_than_prior
from askwise.prices import as_prices, check_budget
from askwise.randomness import generator, seed_from
from askwise.rows import EncodedRows
from askwise.schema import Groups, read_table
from askwise.value import held_out_states

ADAPTATIONS = ("auto", "conditional", "mean", "output", "last-layer", "low-rank", "rules")
EPISTEMICS = ("auto", "ensemble", "dropout", "distance", None)
ROWS_TO_CHECK = 1000
POLICIES = ("auto", "greedy", "rl", "static", "random")


class DynamicFeatureSelector(FeatureAcquirer):
    """Which feature to acquire next for each case, what the model predicts so far, and how far to trust it.

    The wrapped model is never changed. Rows hold NaN (or None, NA) for what is not known.

    Parameters
    ----------
    estimator
        A fitted classifier, used as it is, or an unfitted one, which is cloned and fitted: anything with
        `predict_proba` (a whole `Pipeline` on a raw DataFrame, XGBoost, LightGBM, `FrozenEstimator`), a
        `torch.nn.Module` that gives logits or probabilities, or a callable ``X -> probabilities``. In cross-validation,
        where `clone` drops the fit, pass a fitted one as ``FrozenEstimator(model)``.
    costs
        Price of each feature: None = 1 each, an array in feature order, ``{feature name: price}`` (absent names
        cost 1), or `askwise.Prices`. 0 = free, known from the start whenever available.
    groups
        ``{feature name: [columns]}``: columns that are acquired together; every other column is a feature. For
        images (N, C, H, W), ``askwise.vision.PatchGrid(4, 4)`` makes each patch a feature; the meaning of "auto" for
        images is documented in `askwise.vision.defaults`.
    adaptation
        How p(y | x_S) is computed: ``"conditional"`` (the model averaged over completions from similar training
        rows; the default of ``"auto"``), ``"mean"`` (the model on rows filled with means and modes), reparametrizations
        of that with torch: ``"output"`` (any model), ``"last-layer"``, ``"low-rank"``; ``"rules"`` (trees, forests,
        rule lists and fuzzy models by structure, with their rules shown); or a `SubsetPredictor`.
    epistemic
        Where the members around the model come from: ``"ensemble"`` (models trained like it), ``"dropout"`` (torch
        modules with dropout), ``"distance"`` (no members: distance to the training data, any model), None (epistemic
        uncertainties are NaN), or an `EpistemicEstimator`. ``"auto"`` takes the first of these that the model allows.
    policy
        ``"greedy"`` (expected gain per cost; the default of ``"auto"``), ``"rl"`` (a Q-network; needs torch),
        ``"static"`` (one order by mutual information), ``"random"``, or a `Policy`.
    risk_weight
        The paper's lambda, the weight of epistemic uncertainty in the gain of a feature. It can be changed after
        fitting for the greedy policy.
    budget
        Default budget of `acquire`, `score` and `suggest`; None = unlimited.
    random_state, n_jobs, progress
        Seed; parallel jobs of `evaluate` when each budget needs its own episodes; ``"auto"`` shows a progress
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
        groups: Groups = None,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the predictor, the members and the policy; a fitted model is not changed.

        Parameters
        ----------
        X
            Training rows, as the model takes them. NaN = missing.
        y
            (n,) labels.
        sample_weight
            Used to fit an unfitted estimator.
        """
        self._check_options()
        schema, rows = read_table(X, self.groups)  # errors in columns are raised before anything is trained
        for name in ("policy_", "adaptation_report_"):  # not fitted until the end: parts of two fits must not mix
            self.__dict__.pop(name, None)
        X = self._table(X, reset=True, schema=schema)
        y = check_labels(X, y)
        prices = as_prices(self.costs).resolve(schema.features)
        rng = generator(self.random_state)
        self._seeds = {name: seed_from(rng) for name in ("predictor", "epistemic", "policy", "folds", "model")}
        self._sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        self.estimator_ = fitted_classifier(self.estimator, X, y, sample_weight, random_state=self._seeds["model"])
        self.schema_, self.features_, self.prices_, self.costs_ = schema, schema.features, prices, prices.costs
        model = FrozenModel(self.estimator_, schema)
        self.classes_ = model.classes
        self.beliefs_ = self._make_beliefs(model, rows, class_positions(model.classes, y))
        make_novelty = Novelty if schema.tabular else _defaults(schema).make_novelty
        self.beliefs_.novelty = make_novelty(self.beliefs_.predictor, self._seeds["predictor"])
        self.predictor_, self.epistemic_ = self.beliefs_.predictor, self.beliefs_.epistemic
        self._check_model()
        self.policy_ = self._make_policy()
        if hasattr(self.predictor_, "adaptation_report_"):
            self.adaptation_report_ = self.predictor_.adaptation_report_
        return self

    def with_policy(self, policy: Any) -> Self:
        """The same fitted model, predictor and members with another `policy`; this selector is not changed."""
        check_is_fitted(self, "policy_")
        other = copy.copy(self)
        other.policy = policy
        other._check_options()
        other.policy_ = other._make_policy()
        return other

    def _check_model(self) -> None:
        """Warn if the wrapped model fits the training rows so badly that its classes may be in another order."""
        usable = self.predictor_.training_rows_for_models()[:ROWS_TO_CHECK]
        if len(usable):
            proba = self.predictor_.model_(self.predictor_.training_rows_.take(usable))
            warn_if_worse_than_prior(proba, self.predictor_.training_labels_[usable], self.classes_)

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
        check_limits(self, {"n_jobs": Jobs()})
        check_budget(self.budget, 1)

    def _check_risk_weight(self) -> None:
        if not FINITE.allows(self.risk_weight):
            raise InvalidInput(f"risk_weight must be a finite number; got {self.risk_weight!r}.")

    def _make_predictor(self, estimator: Any) -> SubsetPredictor:
        seed = self._seeds["predictor"]
        if isinstance(self.adaptation, SubsetPredictor):
            predictor: SubsetPredictor = clone(self.adaptation).set_params(estimator=estimator)
            return predictor
        if not self.schema_.tabular:
            made: SubsetPredictor = _defaults(self.schema_).make_predictor(
                self.adaptation, estimator, seed, self.progress
            )
            return made
        if self.adaptation == "mean":
            return ImputedPredictor(estimator, "mean")
        if self.adaptation == "rules":
            return RulePredictor(estimator)
        if self.adaptation in ("auto", "conditional"):
            return ConditionalPredictor(estimator, random_state=seed)
        return ReparametrizedPredictor(estimator, self.adaptation, random_state=seed, progress=self.progress)

    def _make_beliefs(self, model: FrozenModel, rows: EncodedRows, y: np.ndarray) -> BeliefModel:
        """Predictor and members around `model`, from encoded rows and labels as positions in its classes."""
        predictor = self._make_predictor(model.estimator).fit_encoded(model, rows, y)
        epistemic = self._make_epistemic(predictor)
        return BeliefModel(predictor, None if epistemic is None else epistemic.fit(predictor))

    def _make_epistemic(self, predictor: SubsetPredictor) -> EpistemicEstimator | None:
        seed = self._seeds["epistemic"]
        if self.epistemic is None:
            return None
        if isinstance(self.epistemic, EpistemicEstimator):
            return copy.copy(self.epistemic)  # a clone would drop the fit of given members
        if not self.schema_.tabular:
            made: EpistemicEstimator | None = _defaults(self.schema_).make_epistemic(self.epistemic, predictor, seed)
            return made
        kinds: dict[str, Callable[[], EpistemicEstimator]] = {
            "ensemble": lambda: AuxiliaryEnsemble(random_state=seed, n_jobs=self.n_jobs, progress=self.progress),
            "dropout": lambda: MCDropout(random_state=seed),
            "distance": lambda: FeatureDistance(random_state=seed),
        }
        return kinds[suitable_epistemic(predictor) if self.epistemic == "auto" else self.epistemic]()

    def _make_policy(self) -> Policy:
        named = {"auto": Greedy, "greedy": Greedy, "rl": DQN, "static": Static, "random": Random}
        policy: Policy
        if isinstance(self.policy, Policy):
            policy = clone(self.policy)
        elif self.schema_.tabular:
            policy = named[self.policy]()
        else:
            policy = _defaults(self.schema_).make_policy(self.policy, self.predictor_)
        return policy.fit(self._policy_context())

    def _policy_context(self) -> PolicyContext:
        used_as_it_is = self.estimator_ is self.estimator or isinstance(self.estimator_, BlackBox)
        refit = None if used_as_it_is else self._fitted_without
        return PolicyContext(
            rows=self.predictor_.training_rows_,
            y=self.predictor_.training_labels_,
            schema=self.schema_,
            prices=self.prices_,
            beliefs=self.beliefs_,
            risk_weight=self.risk_weight,
            held_out=lambda: held_out_states(self.beliefs_, self.schema_, refit, random_state=self._seeds["folds"]),
            random_state=self._seeds["policy"],
            progress=self.progress,
        )

    def _fitted_without(self, rows: np.ndarray) -> BeliefModel:
        """Predictor and members around a model fitted on all training rows except `rows`."""
        rest = np.setdiff1d(np.arange(len(self.predictor_.training_rows_)), rows)
        known, labels = self.predictor_.training_rows_.take(rest), self.predictor_.training_labels_[rest]
        weights = None if self._sample_weight is None else self._sample_weight[rest]
        table, seed = self.schema_.decode(known), self._seeds["model"]
        model = fitted_classifier(self.estimator, table, self.classes_[labels], weights, random_state=seed)
        return self._make_beliefs(FrozenModel(model, self.schema_), known, labels)

    def _risk_weight(self) -> float:
        self._check_risk_weight()
        return float(self.risk_weight)


def _defaults(schema: Any) -> Any:
    """The module that resolves the names of options if rows are not those of a table; named by the schema."""
    return schema.defaults()
