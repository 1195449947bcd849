"""The meaning of the names of adaptations, epistemic estimators and policies for tables.

`askwise.images.defaults` has the same functions for images; `options.defaults_of` picks one by the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from askwise.epistemic import (
    AuxiliaryEnsemble,
    EpistemicEstimator,
    FeatureDistance,
    MCDropout,
    Novelty,
    suitable_epistemic,
)
from askwise.policy.base import Policy
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

SIMILAR_ROWS = 0.5
"""Share of the answers on similar rows themselves; see `ConditionalPredictor`. Half was best on validation rows."""
POLICIES: Mapping[str, type[Policy]] = {
    "auto": Lookahead,  # `options.settled` once it is fitted
    "greedy": Greedy,
    "planned": Planned,
    "lookahead": Lookahead,
    "distilled": Distilled,
    "rl": DQN,
    "static": Static,
    "random": Random,
}


def make_predictor(adaptation: str, estimator: Any, seed: int, progress: bool | str) -> SubsetPredictor:
    """The predictor that `adaptation` names, around `estimator`."""
    if adaptation in ("output", "last-layer", "low-rank"):
        return ReparametrizedPredictor(estimator, adaptation, random_state=seed, progress=progress)
    conditional: dict[str, Any] = {"random_state": seed, "answer_bandwidth": "auto"}
    kinds: dict[str, Callable[[], SubsetPredictor]] = {
        "auto": lambda: ConditionalPredictor(estimator, **conditional, similar_rows=SIMILAR_ROWS),
        "conditional": lambda: ConditionalPredictor(estimator, **conditional, similar_rows=SIMILAR_ROWS),
        "pooled": lambda: PooledPredictor(estimator, **conditional),
        "mean": lambda: ImputedPredictor(estimator, "mean"),
        "rules": lambda: RulePredictor(estimator),
    }
    return kinds[adaptation]()


def make_epistemic(
    epistemic: str, predictor: SubsetPredictor, seed: int, n_jobs: int | None, progress: bool | str
) -> EpistemicEstimator:
    """The estimator of epistemic uncertainty that `epistemic` names, around a fitted predictor."""
    kinds: dict[str, Callable[[], EpistemicEstimator]] = {
        "ensemble": lambda: AuxiliaryEnsemble(random_state=seed, n_jobs=n_jobs, progress=progress),
        "dropout": lambda: MCDropout(random_state=seed),
        "distance": lambda: FeatureDistance(random_state=seed),
    }
    return kinds[suitable_epistemic(predictor) if epistemic == "auto" else epistemic]()


def make_policy(policy: str, predictor: SubsetPredictor) -> Policy:
    """The policy that `policy` names; for ``"auto"`` one that looks ahead."""
    return POLICIES[policy]()


make_novelty = Novelty
