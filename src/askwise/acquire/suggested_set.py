"""A set of features to order together, whose results come back together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.acquire.acquisition import Acquisition
from askwise.acquire.policies.base import Policy
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.parameters import Number
from askwise.predict.conditional import ConditionalPredictor
from askwise.prices import affordable
from askwise.value import NeighborValue, by_rule
from askwise.value.joint import JointGain
from askwise.value.sets import Set, SetSearch

COMPLETIONS = 300
MOST_CANDIDATES = 30
"""Features that are combined: of more, those with the highest gains for their price on their own."""


@dataclass(frozen=True)
class SuggestedSet:
    """Features to order together, the price of all, and their expected gain in nats; `dataclasses.asdict` for JSON."""

    features: list[str]
    price: float
    gain: float


def check_price(price: Any) -> None:
    """Refuse a price that is no number, or negative."""
    if not Number().allows(price):
        raise InvalidInput(f"suggest_set: price must be a finite number >= 0; got {price!r}.")


def suggested_set(state: Acquisition, policy: Policy, r: int, price: float) -> SuggestedSet:
    """The set for case `r`."""
    check_price(price)
    case = state.take([r])
    most = min(float(price), float(case.left[0]))
    candidates = np.flatnonzero(case.buyable()[0] & affordable(case.prices.now(case.mask)[0], most)).tolist()
    if not candidates:
        return SuggestedSet([], 0.0, 0.0)
    together = _Together(case, _completing(case, policy), candidates)
    search = SetSearch(together.gain, together.price, together.candidates)
    found = search.best(most)
    names = [state.schema.features[i] for i in sorted(found)]
    return SuggestedSet(names, search.price(found), search.gain(found))


class _Together:
    """What sets of features of one case tell, and what they cost."""

    def __init__(self, state: Acquisition, predictor: ConditionalPredictor, candidates: list[int]) -> None:
        self.state = state
        found = BeliefModel(predictor.with_neighbors(COMPLETIONS)).believe(state.rows).completions
        assert found is not None
        cells = predictor.neighbors_.scores[found.index[0]]
        answers, bandwidth = found.answers[0, :, 0], predictor.neighbors_.bandwidth
        self.joint = JointGain(cells, found.weights[0], answers, state.schema, bandwidth)
        alone = np.array([self.joint.gain(self.joint.distances(i)) for i in candidates])
        worth = by_rule(alone, state.prices.now(state.mask)[0, candidates], "root")
        best = np.argsort(-worth, kind="stable")[:MOST_CANDIDATES]
        self.candidates = [candidates[k] for k in best]
        self._distances = {i: self.joint.distances(i) for i in self.candidates}

    def price(self, chosen: Set) -> float:
        """The price of a set, each set-up cost counted once."""
        after = self.state.mask.copy()
        after[0, list(chosen)] = True
        return max(0.0, float((self.state.prices.total(after) - self.state.prices.total(self.state.mask))[0]))

    def gain(self, chosen: Set) -> float:
        return self.joint.gain(sum(self._distances[i] for i in sorted(chosen))) if chosen else 0.0


def _completing(state: Acquisition, policy: Policy) -> ConditionalPredictor:
    """The predictor that completes the case: its own, or that of the policy's value."""
    value = getattr(policy, "value_", None)
    for predictor in (state.beliefs.predictor, value.predictor if isinstance(value, NeighborValue) else None):
        if isinstance(predictor, ConditionalPredictor) and state.schema.tabular:
            return predictor
    raise InvalidInput(
        "suggest_set needs completions of the case, which this predictor and policy do not have; use a table with "
        'adaptation="conditional" or policy="greedy".'
    )
