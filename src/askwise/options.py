"""The named options of the selector: what "conditional", "ensemble" or "greedy" stand for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from sklearn.base import clone

from askwise.epistemic import (
    AuxiliaryEnsemble,
    EpistemicEstimator,
    FeatureDistance,
    MCDropout,
    suitable_epistemic,
)
from askwise.errors import InvalidInput, did_you_mean
from askwise.model.wrapped import warn_if_worse_than_prior
from askwise.policy.base import Policy, PolicyContext
from askwise.policy.distilled import Distilled
from askwise.policy.dqn import DQN
from askwise.policy.greedy import Greedy
from askwise.policy.lookahead import Lookahead
from askwise.policy.orders import Random, Static
from askwise.policy.planned import Planned
from askwise.predict import (
    ConditionalPredictor,
    ImputedPredictor,
    PooledPredictor,
    ReparametrizedPredictor,
    RulePredictor,
    SubsetPredictor,
)
from askwise.table.error_costs import as_matrix
from askwise.value import NeighborValue, UsualGains

AdaptationName = Literal["auto", "conditional", "pooled", "mean", "output", "last-layer", "low-rank", "rules"]
EpistemicName = Literal["auto", "ensemble", "dropout", "distance"]
PolicyName = Literal["auto", "greedy", "planned", "lookahead", "distilled", "rl", "static", "random"]
ADAPTATIONS: tuple[str, ...] = get_args(AdaptationName)
EPISTEMICS: tuple[str | None, ...] = (*get_args(EpistemicName), None)
POLICIES: tuple[str, ...] = get_args(PolicyName)
ROWS_TO_CHECK = 1000
SIMILAR_ROWS = 0.5
"""Share of the answers on similar rows themselves; see `ConditionalPredictor`."""
NAMED_POLICIES: dict[PolicyName, type[Policy]] = {
    "auto": Lookahead,  # `settled` once it is fitted
    "greedy": Greedy,
    "planned": Planned,
    "lookahead": Lookahead,
    "distilled": Distilled,
    "rl": DQN,
    "static": Static,
    "random": Random,
}


def check_options(adaptation: Any, epistemic: Any, policy: Any) -> None:
    """An error where an option is neither one of the names nor an object of the right family."""
    for name, value, known, family in (
        ("adaptation", adaptation, ADAPTATIONS, SubsetPredictor),
        ("policy", policy, POLICIES, Policy),
        ("epistemic", epistemic, EPISTEMICS, EpistemicEstimator),
    ):
        named = value is None or isinstance(value, str)
        if not isinstance(value, family) and not (named and value in known):
            hint = did_you_mean(value, known)
            raise InvalidInput(f"{name} must be one of {known} or a {family.__name__}; got {value!r}.{hint}")


def check_model(predictor: SubsetPredictor) -> None:
    """Warn if the wrapped model fits the training rows so badly that its classes may be in another order."""
    usable = predictor.training_rows_for_models()[:ROWS_TO_CHECK]
    if len(usable):
        proba = predictor.model_(predictor.training_rows_.take(usable))
        warn_if_worse_than_prior(proba, predictor.training_labels_[usable], predictor.classes_)


def error_matrix(error_costs: Any, classes: np.ndarray, schema: Any) -> np.ndarray | None:
    """(C, C) what errors cost, or None; refused for images, whose policies know no savings."""
    if error_costs is not None and not schema.tabular:
        raise InvalidInput("error_costs are for tables; for images, decide from the columns of predict_proba.")
    return as_matrix(error_costs, classes)


def make_predictor(adaptation: Any, estimator: Any, schema: Any, seed: int, progress: bool | str) -> SubsetPredictor:
    """An unfitted predictor around `estimator`."""
    made: SubsetPredictor
    if isinstance(adaptation, SubsetPredictor):
        made = clone(adaptation).set_params(estimator=estimator)
    elif not schema.tabular:
        made = defaults_of(schema).make_predictor(adaptation, estimator, seed, progress)
    elif adaptation == "mean":
        made = ImputedPredictor(estimator, "mean")
    elif adaptation == "rules":
        made = RulePredictor(estimator)
    elif adaptation == "pooled":
        made = PooledPredictor(estimator, random_state=seed, answer_bandwidth="auto")
    elif adaptation in ("auto", "conditional"):
        made = ConditionalPredictor(estimator, random_state=seed, answer_bandwidth="auto", similar_rows=SIMILAR_ROWS)
    elif adaptation in ("output", "last-layer", "low-rank"):
        made = ReparametrizedPredictor(estimator, adaptation, random_state=seed, progress=progress)
    else:
        raise InvalidInput(f"adaptation must be one of {ADAPTATIONS} or a SubsetPredictor; got {adaptation!r}.")
    return made


def make_epistemic(
    epistemic: Any, predictor: SubsetPredictor, seed: int, n_jobs: int | None, progress: bool | str
) -> EpistemicEstimator | None:
    """An unfitted estimator of epistemic uncertainty around a fitted predictor; None for none."""
    if epistemic is None:
        return None
    if isinstance(epistemic, EpistemicEstimator):
        return copy.copy(epistemic)  # a clone would drop the fit of given members
    if not predictor.schema_.tabular:
        made: EpistemicEstimator | None = defaults_of(predictor.schema_).make_epistemic(epistemic, predictor, seed)
        return made
    kinds: dict[str, Callable[[], EpistemicEstimator]] = {
        "ensemble": lambda: AuxiliaryEnsemble(random_state=seed, n_jobs=n_jobs, progress=progress),
        "dropout": lambda: MCDropout(random_state=seed),
        "distance": lambda: FeatureDistance(random_state=seed),
    }
    return kinds[suitable_epistemic(predictor) if epistemic == "auto" else epistemic]()


def make_policy(policy: Any, predictor: SubsetPredictor) -> Policy:
    """An unfitted policy; for ``"auto"`` one that looks ahead, which is `settled` once it is fitted."""
    made: Policy
    if isinstance(policy, Policy):
        made = clone(policy)
    elif predictor.schema_.tabular:
        if policy not in NAMED_POLICIES:
            raise InvalidInput(f"policy must be one of {POLICIES} or a Policy; got {policy!r}.")
        made = NAMED_POLICIES[policy]()
    else:
        made = defaults_of(predictor.schema_).make_policy(policy, predictor)
    return made


def policy_choice(policy: Any, fitted: Policy, features: list[str]) -> dict[str, Any]:
    """Which policy is in use, whether it was asked for, and what its `fit` reports; JSON-ready."""
    found: dict[str, Any] = {"name": type(fitted).__name__, "by": "default" if policy == "auto" else "given"}
    exact = fitted.exact_ if isinstance(fitted, Distilled) else fitted
    if isinstance(fitted, Distilled):
        found |= {"exact": type(exact).__name__, "distilled": fitted.report_}
    reports = {"lookahead": getattr(exact, "lookahead_", None), "plans": getattr(exact, "planned_", None)}
    usual = getattr(exact, "usual_", None)
    reports["usual_gains"] = None if usual is None else usual.described(features)
    return found | {name: report for name, report in reports.items() if report is not None}


def settled(policy: Any, fitted: Policy, context: PolicyContext) -> Policy:
    """The fitted policy; for ``"auto"`` a greedy one where it does not pay to look ahead, with plans at unequal prices.

    At equal prices every set of so many features costs the same; plans have been compared at unequal prices only.
    """
    if policy != "auto" or not isinstance(fitted, Lookahead):
        return fitted
    found = fitted.settled()
    return found if found is fitted or context.prices.uniform else Planned.around(found, context)


def learns_gains(policy: Any, fitted: Policy) -> bool:
    """Whether the gains of the fitted policy become better by what features usually tell.

    Only for ``"auto"``, so that what has a name stays as it is; and not where it pays to look ahead, because what a
    gate tells on its own is not what it is worth.
    """
    plain = isinstance(fitted, Greedy) and not isinstance(fitted, Lookahead)
    value = getattr(fitted, "value_", None)
    return policy == "auto" and plain and isinstance(value, NeighborValue) and value.schema.tabular


def informed(policy: Any, fitted: Policy, usual: UsualGains | None) -> Policy:
    """The fitted policy with what features usually tell, where that was learned."""
    if usual is None or not learns_gains(policy, fitted):
        return fitted
    assert isinstance(fitted, Greedy)
    return fitted.with_usual(usual)


def defaults_of(schema: Any) -> Any:
    """The module that resolves the names of options if rows are not those of a table; named by the schema."""
    return schema.defaults()
