"""DynamicFeatureSelector: the main estimator of the package."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from askwise import options
from askwise.acquirer import USUAL_MEMORY, FeatureAcquirer
from askwise.calibrate.crossfit import (
    MOST_CASES,
    N_FOLDS,
    CrossFit,
    Fold,
    cases_to_examine,
    cross_fitted,
    out_of_bag,
    refitted,
)
from askwise.calibrate.horizons import Comparison, compared
from askwise.calibrate.tuning import settle
from askwise.calibrate.unseen import digests, labeled_unseen
from askwise.calibrate.visited_states import VisitedStates, sizes_visited, states_of_folds
from askwise.cards import selector_card
from askwise.epistemic import AuxiliaryEnsemble, BeliefModel, EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.model.black_box import BlackBox
from askwise.model.wrapped import FrozenModel, fitted_classifier
from askwise.options import AdaptationName, EpistemicName, PolicyName
from askwise.parameters import FINITE, POSITIVE, Jobs, check_limits
from askwise.policy.base import Policy, PolicyContext
from askwise.policy.expected_saving import ExpectedSaving
from askwise.policy.lookahead import Lookahead
from askwise.predict.base import SubsetPredictor, check_labels, class_positions
from askwise.randomness import generator, seed_from
from askwise.stopping.pays_off import PaysOff
from askwise.table.constraints import Rule, house_rules
from askwise.table.prices import as_prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Groups, read_table
from askwise.value import UsualGains, held_out_states


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
        cost 1), or `askwise.Prices`, which also has time and other resources. 0 = free, known from the start whenever
        available.
    groups
        ``{feature name: [columns]}``: columns that are acquired together; every other column is a feature. For
        images (N, C, H, W), ``askwise.vision.PatchGrid(4, 4)`` makes each patch a feature; the meaning of "auto" for
        images is documented in `askwise.images.defaults`.
    adaptation
        How p(y | x_S) is computed: ``"conditional"`` (the default of ``"auto"``: the model's average over completions
        from similar training rows, and over these rows), ``"pooled"`` (completions pooled with Gaussians of each
        class: accuracy before faithfulness; see `predict.PooledPredictor`), ``"mean"`` (the model on rows filled
        with means and modes), reparametrizations of that with torch: ``"output"`` (any model), ``"last-layer"``,
        ``"low-rank"``; ``"rules"`` (rules of trees, forests, rule lists, fuzzy models); or a `SubsetPredictor`.
    epistemic
        Where the members around the model come from: ``"ensemble"`` (models trained like it), ``"dropout"`` (torch
        modules with dropout), ``"distance"`` (no members: distance to the training data, any model), None (epistemic
        uncertainties are NaN), or an `EpistemicEstimator`. ``"auto"`` takes the first of these that the model allows.
    policy
        ``"greedy"`` (expected gain for the price), ``"planned"`` (greedy, weighed by what the rest of the budget can
        buy), ``"lookahead"`` (with what the best next feature then tells), ``"distilled"`` (the choices of ``"greedy"``
        or ``"lookahead"``, learned by a fast network), ``"rl"`` (a Q-network; needs torch), ``"static"`` (one order),
        ``"random"``, or a `Policy`. ``"auto"`` is ``"lookahead"`` where that pays (by the
        labels of unseen cases, too), else ``"planned"`` if prices differ, else ``"greedy"``; the last two then also
        count what features usually tell (`usual_gains_`).
    risk_weight
        The paper's lambda, the weight of epistemic uncertainty in the gain of a feature. It can be changed after
        fitting for the greedy policy. Not used with `error_costs`: an expected saving has no term for it.
    error_costs
        What a wrong decision costs, in the unit of the prices (tables only): a (C, C) matrix [true class, class decided
        for] in the order of `classes_`, ``{true class: cost of a wrong decision}`` or ``{true class: {class decided
        for: cost}}``. Decisions then have the least expected cost, ``"greedy"`` acquires what is expected to save most
        per price (`ExpectedSaving`), and without another `stop` nothing is acquired that does not pay (`PaysOff`).
    budget
        Default budget of `acquire`, `score` and `suggest`: a number, or ``{"money": 200, "time": 24}`` if the prices
        have such resources; None = unlimited.
    constraints
        Rules of the house, a list made with `askwise.constraints`: ``requires("mri", "x-ray")``, ``excludes(a, b)``,
        ``first(a)``, ``mandatory(a)``, ``at_most(2, of=[...])``, ``only_if(a, b, ">= 3")``, ``pilot("new question")``.
        Whatever acquires obeys them. Rules that contradict each other are refused.
    calibration
        ``"auto"`` calibrates the predictions from incomplete rows, and how likely a decision is final, on rows that the
        model has not seen: those given to `fit`, or training rows, about which models are asked that have not seen
        them: the members of the ensemble (each leaves out about a third of the rows), where there are five and their
        preparation reads no labels, otherwise clones fitted without a fold of the rows.
        The most probable class stays, and so does the model's own answer on complete rows. What the adaptation leaves
        open (the weights of ``"pooled"``, the kernel width) is chosen on the same rows. None: off. It is also
        off (`calibration_` is None) if no such rows are given and the model cannot be fitted again: a callable, a torch
        module, images, too few rows per class. Of five parts so many are used as hold 400 cases; fewer cases, down to
        80, if the model is very large (by its trees, stored rows or weights, the features and the classes: by counts,
        never by time, so that the same seed gives the same numbers on a busy machine). A whole number of at least 2:
        so many folds, all of which are used, each with a clone of the model fitted without it.
    random_state, n_jobs, progress, memory_limit
        Seed, also of a given predictor or estimator of uncertainty without one; threads of `acquire`, and jobs of
        `evaluate` if each budget needs its own episodes; ``"auto"`` shows a progress bar on a terminal; MiB, about,
        that the cases processed at a time may take beside the selector.

    Attributes
    ----------
    features_ : list of feature names, in mask order
    classes_ : (C,) labels, in the order of the columns of `predict_proba`
    costs_ : (M,) prices
    estimator_ : the fitted classifier
    predictor_ : the `SubsetPredictor` in use
    epistemic_ : the `EpistemicEstimator` in use, or None
    calibration_ : the `Calibration` in use (temperatures by number of known features), or None
    choices_ : what was chosen and why, JSON-ready: policy, kernel of the answer, weights of pooling,
        temperatures; and under "settling" how many folds, refits and cases that took, and why so many
    adaptation_report_ : DataFrame of the log loss on held-out rows before and after each step that was fitted, by how
        much is known (`size`). Its `stage` is "adaptation" (sizes in columns), "pooling" (with the share of the weight
        that the wrapped model keeps) or "calibration" (sizes in features); `kept` says whether the step is in use.
        Absent where no step was fitted
    policy_ : the `Policy` in use
    usual_gains_ : what features usually tell (`UsualGains`), which the gains of ``policy="auto"`` take into account;
        None where that is not learned: there is nothing to calibrate on, or another policy was fitted
    looked_ahead_ : what looking ahead was worth on unseen cases (`Comparison`), which decides whether ``policy="auto"``
        does; None where no feature seemed to say which others matter, or there is nothing to calibrate on
    pays_off_ : the stopping rule if `error_costs` are given, else None
    stop_, handover_ : the rules of the last `calibrate_stop` and `calibrate_handover`, or None

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

    usual_gains_: UsualGains | None = None
    looked_ahead_: Comparison | None = None

    def __init__(
        self,
        estimator: Any,
        *,
        costs: Any = None,
        groups: Groups = None,
        adaptation: AdaptationName | SubsetPredictor = "auto",
        epistemic: EpistemicName | EpistemicEstimator | None = "auto",
        policy: PolicyName | Policy = "auto",
        risk_weight: float = 0.1,
        error_costs: Any = None,
        budget: float | Mapping[str, float] | None = None,
        constraints: Sequence[Rule] | None = None,
        calibration: Literal["auto"] | int | None = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
        memory_limit: float = USUAL_MEMORY,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.groups = groups
        self.adaptation = adaptation
        self.epistemic = epistemic
        self.policy = policy
        self.risk_weight = risk_weight
        self.error_costs = error_costs
        self.budget = budget
        self.constraints = constraints
        self.calibration = calibration
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_unseen: Any = None, y_unseen: Any = None) -> Self:
        """Fit the predictor, the members and the policy, and calibrate; a fitted model is not changed.

        Parameters
        ----------
        X, y
            Training rows, as the model takes them (NaN = missing), and their labels, (n,).
        sample_weight
            Used to fit an unfitted estimator.
        X_unseen, y_unseen
            Rows that the model has not been trained on, and their labels, to calibrate on; not used for anything else.
        """
        self._check_options()
        rows, y = self._read(X, y, sample_weight)
        self._believe(rows, y)
        self._choose()
        self._calibrate(X_unseen, y_unseen)
        return self

    def _html_repr(self) -> str:
        """For notebooks: the diagram of scikit-learn, and below it what was fitted."""
        diagram = str(super()._html_repr())
        return diagram + selector_card(self) if hasattr(self, "policy_") else diagram

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[EncodedRows, np.ndarray]:
        """Stage 1: the columns, prices and classes, and the model, fitted if it was not; rows and labels, encoded."""
        schema, rows = read_table(X, self.groups)  # errors in columns are raised before anything is trained
        schema.rules = house_rules(self.constraints, schema)
        for name in (
            "policy_",
            "looked_ahead_",
            "calibration_",
            "choices_",
            "adaptation_report_",
            "stop_",
            "handover_",
        ):
            self.__dict__.pop(name, None)  # parts of two fits must not mix
        X = self._table(X, reset=True, schema=schema)
        y = check_labels(X, y)
        prices = as_prices(self.costs).resolve(schema.features)
        prices.limits(self.budget, 1)  # refuses a budget that these prices do not have
        rng = generator(self.random_state)
        self._seeds = {name: seed_from(rng) for name in ("predictor", "epistemic", "policy", "folds", "model")}
        self._sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        self.estimator_ = fitted_classifier(self.estimator, X, y, sample_weight, random_state=self._seeds["model"])
        self.schema_, self.features_, self.prices_, self.costs_ = schema, schema.features, prices, prices.costs
        self.classes_ = np.asarray(self.estimator_.classes_)
        return rows, class_positions(self.classes_, y)

    def _believe(self, rows: EncodedRows, y: np.ndarray) -> None:
        """Stage 2: what the model says of a case of which only some features are known, and how sure it is."""
        self.beliefs_ = self._make_beliefs(FrozenModel(self.estimator_, self.schema_), rows, y)
        self.beliefs_.novelty = options.defaults_of(self.schema_).make_novelty(
            self.beliefs_.predictor, self._seeds["predictor"]
        )
        self.predictor_, self.epistemic_ = self.beliefs_.predictor, self.beliefs_.epistemic
        options.check_model(self.predictor_)

    def _choose(self) -> None:
        """Stage 3: the policy and, where errors have a cost, the rule that weighs it against the prices."""
        saving = None if self.error_costs is None else self._fitted_policy(ExpectedSaving(), self.beliefs_)
        self.pays_off_ = PaysOff(saving) if isinstance(saving, ExpectedSaving) else None
        self.policy_ = self._chosen_policy()

    def _calibrate(self, X_unseen: Any, y_unseen: Any) -> None:
        """Stage 4: temperatures and what else is settled on rows that the model has not seen."""
        unseen = None if X_unseen is None and y_unseen is None else self._unseen(X_unseen, y_unseen)
        states, settling = self._states_to_calibrate_on(unseen)
        self.calibrated_on_ = None if unseen is None else digests(unseen[0])
        seed = None if self.calibration is None else self._seeds["folds"]
        self.calibration_, choices, report = settle(self.beliefs_, states, len(self.features_), seed)
        seen = None if states is None else states.gains()
        self.usual_gains_ = None if seen is None else UsualGains.learned(seen)
        self.policy_ = options.informed(self.policy, self.policy_, self.usual_gains_)
        described = options.policy_choice(self.policy, self.policy_, self.features_)
        self.choices_ = {"policy": described, **choices, "settling": settling}
        if report is not None:
            self.adaptation_report_ = report

    def with_policy(self, policy: PolicyName | Policy) -> Self:
        """The same fitted model, predictor and members with another `policy`; this selector is not changed."""
        check_is_fitted(self, "policy_")
        other = copy.copy(self)
        other._runs = self._runs  # of the same parts; a copy leaves them out
        other.policy = policy
        other._check_options()
        other.policy_ = options.informed(policy, other._chosen_policy(), self.usual_gains_)
        described = options.policy_choice(policy, other.policy_, self.features_)
        other.choices_ = {**self.choices_, "policy": described}
        other.stop_ = other.handover_ = None  # calibrated for another policy
        return other

    def around(self, predictor: SubsetPredictor) -> Self:
        """The same with another fitted `predictor` of the same model; members and policy are fitted to it again.

        This selector is not changed. What was calibrated for the other predictor is dropped.
        """
        check_is_fitted(self, "policy_")
        other = copy.copy(self)
        kind = None if self.epistemic_ is None else self.epistemic
        epistemic = options.make_epistemic(kind, predictor, self._seeds["epistemic"], self.n_jobs, self.progress)
        fitted = None if epistemic is None else epistemic.fit(predictor)
        other.beliefs_ = BeliefModel(predictor, fitted, self.beliefs_.novelty, self.beliefs_.error_costs)
        other.predictor_, other.epistemic_, other.calibration_ = predictor, fitted, None
        other.policy_ = other._chosen_policy()
        described = options.policy_choice(self.policy, other.policy_, self.features_)
        other.choices_ = {**self.choices_, "policy": described}
        other.stop_ = other.handover_ = None
        return other

    def _unseen(self, X_unseen: Any, y_unseen: Any) -> tuple[EncodedRows, np.ndarray]:
        """The rows to calibrate on, encoded, and their labels as positions."""
        if self.calibration is None or X_unseen is None or y_unseen is None:
            problem = "calibration is None" if self.calibration is None else "one of them is None"
            raise InvalidInput(f"X_unseen and y_unseen are rows and their labels to calibrate on; {problem}.")
        if not isinstance(self.calibration, str):
            raise InvalidInput(
                f"calibration={self.calibration} asks for folds of the training rows, and X_unseen are other rows to "
                'calibrate on; give one of them (calibration="auto" uses X_unseen).'
            )
        return labeled_unseen(self._encode(X_unseen), y_unseen, self.predictor_)

    def _states_to_calibrate_on(self, unseen: Any) -> tuple[VisitedStates | None, dict[str, Any]]:
        """States visited on unseen rows, given ones or held-out folds, None where there are none; and for `choices_`.

        How many follows from counts that are known before, never from how long anything takes.
        """
        settling: dict[str, Any] = {"folds": 0, "refits": 0, "cases": 0, "cut_short": False}
        if self.calibration is None:
            return None, {**settling, "reason": "calibration is None"}
        n_cases = MOST_CASES
        if self.calibration == "auto":
            n_cases = cases_to_examine(self.predictor_, len(sizes_visited(len(self.features_))))
        if unseen is not None:
            parts = [Fold(np.arange(len(unseen[0])), self.beliefs_, self.policy_)]
            (rows, y), reason = unseen, "rows given as X_unseen"
        else:
            rows, y = self.predictor_.training_rows_, self.predictor_.training_labels_
            parts, settling["refits"], reason = self._folds_to_calibrate_on(n_cases)
            settling["folds"] = len(parts)
        few = n_cases < MOST_CASES
        if few:
            reason += f"; {n_cases} instead of {MOST_CASES} cases, because an answer of this model takes much work"
        settling |= {"cut_short": few, "reason": reason}
        if not parts:
            return None, settling
        weight = self._risk_weight()
        parts = self._looked_ahead(rows, y, parts, weight)
        rng = np.random.default_rng(self._seeds["folds"])
        gains = options.learns_gains(self.policy, self.policy_)
        states = states_of_folds(
            rows, y, parts, rng, n_cases, gains=gains, prices=self.prices_, risk_weight=weight, progress=self.progress
        )
        return states, {**settling, "cases": len(np.unique(states.case))}

    def _looked_ahead(self, rows: EncodedRows, y: np.ndarray, parts: list[Fold], risk_weight: float) -> list[Fold]:
        """The folds with the policy that is better on their rows: the one that looks ahead, or a plainer one."""
        if self.policy != "auto" or not isinstance(self.policy_, Lookahead):
            return parts
        ahead = [part.policy for part in parts]
        assert all(isinstance(policy, Lookahead) for policy in ahead)
        plainer = [policy.plainer() for policy in ahead if isinstance(policy, Lookahead)]
        rng = np.random.default_rng(self._seeds["folds"])
        self.looked_ahead_ = compared(rows, y, parts, plainer, rng, prices=self.prices_, risk_weight=risk_weight)
        context = self._policy_context(self.beliefs_)
        self.policy_ = options.settled(self.policy, self.policy_, context, self.looked_ahead_)
        if self.looked_ahead_.pays:
            return parts
        return [replace(part, policy=plain) for part, plain in zip(parts, plainer, strict=True)]

    def _folds_to_calibrate_on(self, n_cases: int) -> CrossFit:
        """By default as many of five parts as hold the cases to examine; all where a number of folds is asked for."""
        if isinstance(self.calibration, str):
            n_rows = 1 if self.predictor_.slow_to_fit else n_cases
            found = self._cross_fit_with_reason(n_rows=n_rows, fold=self._left_out_by_members())
            if self.predictor_.slow_to_fit:
                found = found._replace(reason=f"{found.reason}, because this adaptation is slow to fit")
            elif 0 < len(found.folds) < N_FOLDS:
                found = found._replace(reason=f"{found.reason}, which hold the {n_cases} cases to examine")
            return found
        found = self._cross_fit_with_reason(int(self.calibration or 0))
        if not found.folds:
            raise InvalidInput(
                f"calibration={self.calibration} asks for so many folds of the training rows, but there are "
                f'{found.reason}. Give rows as X_unseen and y_unseen with calibration="auto", or calibration=None.'
            )
        return found

    def _left_out_by_members(self) -> np.ndarray | None:
        """(N,) for each training row a member that has not seen it and can stand in for the model; None without any."""
        trained_on = None if self._stand_ins is None else self._stand_ins.trained_on_
        if trained_on is None or len(trained_on) < N_FOLDS:
            return None
        rows, y = self.predictor_.training_rows_.values, self.predictor_.training_labels_
        return out_of_bag(rows, y, trained_on[:N_FOLDS], self._seeds["folds"])

    @property
    def _stand_ins(self) -> AuxiliaryEnsemble | None:
        """The ensemble, if its members can stand in for clones of the model that are fitted without some rows."""
        found = self.epistemic_
        weighted = self._sample_weight is not None  # which members do not know of
        return found if isinstance(found, AuxiliaryEnsemble) and not weighted else None

    def _check_options(self) -> None:
        options.check_options(self.adaptation, self.epistemic, self.policy)
        options.check_calibration(self.calibration)
        self._check_risk_weight()
        check_limits(self, {"n_jobs": Jobs(), "memory_limit": POSITIVE})

    def _check_risk_weight(self) -> None:
        if not FINITE.allows(self.risk_weight):
            raise InvalidInput(f"risk_weight must be a finite number; got {self.risk_weight!r}.")

    def _make_beliefs(self, model: FrozenModel, rows: EncodedRows, y: np.ndarray, members: bool = True) -> BeliefModel:
        """Predictor and members around `model`, from encoded rows and labels as positions in its classes."""
        error_costs = options.error_matrix(self.error_costs, model.classes, self.schema_)
        seeds, show = self._seeds, self.progress
        unfitted = options.make_predictor(self.adaptation, model.estimator, self.schema_, seeds["predictor"], show)
        predictor = unfitted.fit_encoded(model, rows, y)
        kind = self.epistemic if members else None
        epistemic = options.make_epistemic(kind, predictor, seeds["epistemic"], self.n_jobs, show)
        fitted = None if epistemic is None else epistemic.fit(predictor)
        return BeliefModel(predictor, fitted, error_costs=error_costs)

    def _chosen_policy(self) -> Policy:
        """The policy that the parameter `policy` stands for, fitted."""
        if self.pays_off_ is not None and self.policy in ("auto", "greedy"):
            return self.pays_off_.policy
        context = self._policy_context(self.beliefs_)
        fitted = options.make_policy(self.policy, self.predictor_).fit(context)
        return options.settled(self.policy, fitted, context, self.looked_ahead_)

    def _fitted_policy(self, policy: Policy, beliefs: BeliefModel) -> Policy:
        """`policy`, fitted around `beliefs` on the rows they were fitted on."""
        return policy.fit(self._policy_context(beliefs))

    def _policy_context(self, beliefs: BeliefModel) -> PolicyContext:
        used_as_it_is = self.estimator_ is self.estimator or isinstance(self.estimator_, BlackBox)
        refit = None if used_as_it_is or beliefs is not self.beliefs_ else self._fitted_without
        return PolicyContext(
            rows=beliefs.predictor.training_rows_,
            y=beliefs.predictor.training_labels_,
            schema=self.schema_,
            prices=self.prices_,
            beliefs=beliefs,
            risk_weight=self.risk_weight,
            held_out=lambda: held_out_states(beliefs, self.schema_, refit, random_state=self._seeds["folds"]),
            random_state=self._seeds["policy"],
            progress=self.progress,
        )

    def _fitted_without(self, rows: np.ndarray, members: bool = True) -> BeliefModel:
        """Predictor and members around a model that has not seen `rows`: a member, or a clone fitted without them."""
        rest = np.setdiff1d(np.arange(len(self.predictor_.training_rows_)), rows)
        known, labels = self.predictor_.training_rows_.take(rest), self.predictor_.training_labels_[rest]
        model = None if self._stand_ins is None else self._stand_ins.member_without(rows)
        if model is None:
            weights = None if self._sample_weight is None else self._sample_weight[rest]
            table, seed = self.schema_.decode(known), self._seeds["model"]
            model = refitted(self.estimator_, table, self.classes_[labels], weights, random_state=seed)
        takes = self.predictor_.takes_missing_
        return self._make_beliefs(FrozenModel(model, self.schema_, takes_at_most=takes), known, labels, members)

    def _cross_fit(self, n_folds: int = N_FOLDS, **limits: Any) -> list[Fold] | None:
        return self._cross_fit_with_reason(n_folds, **limits).folds or None

    def _cross_fit_with_reason(self, n_folds: int = N_FOLDS, **limits: Any) -> CrossFit:
        """Model, pool and policy fitted without a fold of the training rows, for each fold; see `cross_fitted`."""
        return cross_fitted(
            self.predictor_,
            lambda held: self._fitted_without(held, members=False),
            lambda beliefs: self.policy_.refitted(self._policy_context(beliefs)),
            n_folds=n_folds,
            random_state=self._seeds["folds"],
            progress=self.progress,
            **limits,
        )

    def _static_policy(self) -> Policy:
        return self.with_policy("static").policy_

    def _risk_weight(self) -> float:
        self._check_risk_weight()
        return float(self.risk_weight)
