"""The named options of the selector: what "conditional", "ensemble" or "greedy" stand for."""

from __future__ import annotations

import copy
from typing import Any, Literal, get_args

import numpy as np
from sklearn.base import clone

from askwise import defaults
from askwise.calibrate.horizons import Comparison
from askwise.epistemic import EpistemicEstimator
from askwise.errors import InvalidInput, did_you_mean
from askwise.model.wrapped import warn_if_worse_than_prior
from askwise.parameters import Whole
from askwise.policy.base import Policy, PolicyContext
from askwise.policy.distilled import Distilled
from askwise.policy.greedy import Greedy
from askwise.policy.lookahead import Lookahead
from askwise.policy.planned import Planned
from askwise.predict import SubsetPredictor
from askwise.table.error_costs import as_matrix
from askwise.value import NeighborValue, UsualGains
from askwise.value.gated import OWN_SHARE

AdaptationName = Literal["auto", "conditional", "pooled", "mean", "output", "last-layer", "low-rank", "rules"]
EpistemicName = Literal["auto", "ensemble", "dropout", "distance"]
PolicyName = Literal["auto", "greedy", "planned", "lookahead", "distilled", "rl", "static", "random"]
ADAPTATIONS: tuple[str, ...] = get_args(AdaptationName)
EPISTEMICS: tuple[str | None, ...] = (*get_args(EpistemicName), None)
POLICIES: tuple[str, ...] = get_args(PolicyName)
ROWS_TO_CHECK = 1000
"""Enough to see that classes are in another order; a slow model is not asked about all rows for that."""


def check_options(adaptation: Any, epistemic: Any, policy: Any) -> None:
    """An error where an option is neither one of the names nor an object of the right family."""
    _check("adaptation", adaptation, ADAPTATIONS, SubsetPredictor)
    _check("policy", policy, POLICIES, Policy)
    _check("epistemic", epistemic, EPISTEMICS, EpistemicEstimator)


def _check(option: str, given: Any, known: tuple[str | None, ...], family: type) -> None:
    named = given is None or isinstance(given, str)
    if not isinstance(given, family) and not (named and given in known):
        hint = did_you_mean(given, known)
        raise InvalidInput(f"{option} must be one of {known} or a {family.__name__}; got {given!r}.{hint}")


def check_calibration(given: Any) -> None:
    """An error where `calibration` is neither "auto", None, nor a number of folds."""
    if not (given is None or (isinstance(given, str) and given == "auto") or Whole(2).allows(given)):
        hint = did_you_mean(given, ["auto"])
        raise InvalidInput(f'calibration must be "auto", None (off) or a number of folds >= 2; got {given!r}.{hint}')


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


def defaults_of(schema: Any) -> Any:
    """The module that says what the names stand for: `askwise.defaults`, or that of rows that are not of a table."""
    return defaults if schema.tabular else schema.defaults()


def make_predictor(adaptation: Any, estimator: Any, schema: Any, seed: int, progress: bool | str) -> SubsetPredictor:
    """An unfitted predictor around `estimator`."""
    if isinstance(adaptation, SubsetPredictor):
        return _seeded(clone(adaptation).set_params(estimator=estimator), seed)
    _check("adaptation", adaptation, ADAPTATIONS, SubsetPredictor)
    made: SubsetPredictor = defaults_of(schema).make_predictor(adaptation, estimator, seed, progress)
    return made


def make_epistemic(
    epistemic: Any, predictor: SubsetPredictor, seed: int, n_jobs: int | None, progress: bool | str
) -> EpistemicEstimator | None:
    """An unfitted estimator of epistemic uncertainty around a fitted predictor; None for none."""
    if epistemic is None:
        return None
    if isinstance(epistemic, EpistemicEstimator):
        return _seeded(copy.copy(epistemic), seed)  # a clone would drop the fit of given members
    _check("epistemic", epistemic, EPISTEMICS, EpistemicEstimator)
    made: EpistemicEstimator = defaults_of(predictor.schema_).make_epistemic(
        epistemic, predictor, seed, n_jobs, progress
    )
    return made


def _seeded(given: Any, seed: int) -> Any:
    """A part that the user made, with the selector's seed unless it has one of its own: one seed, the same numbers."""
    if getattr(given, "random_state", seed) is None:
        given.random_state = seed
    return given


def make_policy(policy: Any, predictor: SubsetPredictor) -> Policy:
    """An unfitted policy; for ``"auto"`` one that looks ahead where that may pay, which is `settled` once fitted."""
    if isinstance(policy, Policy):
        return clone(policy)
    _check("policy", policy, POLICIES, Policy)
    made: Policy = defaults_of(predictor.schema_).make_policy(policy, predictor)
    return made


def policy_choice(policy: Any, fitted: Policy, features: list[str]) -> dict[str, Any]:
    """Which policy is in use, if by default, in words and as a table, and what its `fit` reports; JSON-ready.

    The table has a row for each part of what features are ranked by, with its weight; and, where looking ahead was
    compared on unseen cases, by how much it lowered their log loss, and the standard error.
    """
    found: dict[str, Any] = {"name": type(fitted).__name__, "by": "default" if policy == "auto" else "given"}
    exact = fitted.exact_ if isinstance(fitted, Distilled) else fitted
    if isinstance(exact, Greedy):
        found |= _in_words(exact)
    if isinstance(fitted, Distilled):
        found |= {"exact": type(exact).__name__, "distilled": fitted.report_}
    reports = {"lookahead": getattr(exact, "lookahead_", None), "plans": getattr(exact, "planned_", None)}
    reports["compared"] = getattr(exact, "compared_", None)
    usual = getattr(exact, "usual_", None)
    reports["usual_gains"] = None if usual is None else usual.described(features)
    return found | {name: report for name, report in reports.items() if report is not None}


def _in_words(policy: Greedy) -> dict[str, Any]:
    """What a policy ranks by, `in_words` and as a table (`ranks_by`)."""
    report: dict[str, Any] = getattr(policy, "lookahead_", {})
    ahead, tried = isinstance(policy, Lookahead) and policy.pays, report.get("on_unseen_cases")
    own = 1.0 if policy.usual_ is None else policy.usual_.own_share
    if isinstance(policy, Lookahead) and policy.gated_ is not None:
        own = OWN_SHARE
    if ahead:
        words = f"It looks ahead from {', '.join(report['gates'])}, and once that is known, a gain"
    else:
        words = "It does not look ahead: a gain"
    words += f" is {own:.0%} what similar rows promise for the case and {1 - own:.0%} what the feature usually tells."
    if tried is not None:
        less, better = tried["less_log_loss"], "lower" if tried["less_log_loss"] > 0 else "higher"
        words += (
            f" Looking ahead, the log loss of {tried['cases']} unseen cases is {abs(less):.3f} {better} "
            f"(standard error {tried['standard_error']:.3f})."
        )
    table: list[dict[str, Any]] = [
        {"part": "what similar rows promise for the case", "weight": own},
        {"part": "what the feature usually tells", "weight": 1 - own},
        {"part": "looking ahead", "weight": float(ahead), **(tried or {})},
    ]
    return {"in_words": words, "ranks_by": table}


def settled(policy: Any, fitted: Policy, context: PolicyContext, tried: Comparison | None = None) -> Policy:
    """The fitted policy; for ``"auto"`` a greedy one where it does not pay to look ahead, with plans at unequal prices.

    `tried` is what looking ahead was worth on unseen cases, where that was compared. For images it is the order that is
    best on held-out ones (`askwise.vision.BestOrder`). At equal prices every set of so many features costs the same;
    plans have been compared at unequal prices only.
    """
    settle = getattr(fitted, "settled", None)
    if policy != "auto" or settle is None:
        return fitted
    if tried is not None and isinstance(fitted, Lookahead):
        fitted.lookahead_ |= {"pays": fitted.pays and tried.pays, "on_unseen_cases": tried.described()}
    found: Policy = settle()
    plans = isinstance(fitted, Lookahead) and found is not fitted and not context.prices.uniform
    return Planned.around(found, context) if plans and isinstance(found, Greedy) else found


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
