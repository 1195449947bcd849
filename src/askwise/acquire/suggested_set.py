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

COMPLETIONS = 300
MOST_CANDIDATES = 30
"""Features that are combined: of more, those with the highest gains for their price on their own."""
MOST_SWAPS = 10
LEAST_GAIN = 1e-4
"""Nats; a feature that adds less to a set is left out."""


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
    """The set for case `r`: forward selection by gain for the price, and by gain alone, each improved by swaps."""
    check_price(price)
    search = _Search(state.take([r]), policy, float(price))
    found = max((search.run(rule) for rule in ("per price", "root", "gain")), key=search.gain)
    names = [state.schema.features[i] for i in sorted(found)]
    return SuggestedSet(names, search.price(found), search.gain(found))


class _Search:
    """Sets of features of one case within a price."""

    def __init__(self, state: Acquisition, policy: Policy, most: float) -> None:
        self.state = state
        self.most = min(most, float(state.left[0]))
        self._gains: dict[frozenset[int], float] = {frozenset(): 0.0}
        buyable = state.buyable()[0]
        self.candidates = np.flatnonzero(buyable & affordable(state.prices.now(state.mask)[0], self.most)).tolist()
        if self.candidates:
            self._prepare(_completing(state, policy))

    def _prepare(self, predictor: ConditionalPredictor) -> None:
        found = BeliefModel(predictor.with_neighbors(COMPLETIONS)).believe(self.state.rows).completions
        assert found is not None
        cells = predictor.neighbors_.scores[found.index[0]]
        answers, bandwidth = found.answers[0, :, 0], predictor.neighbors_.bandwidth
        self.joint = JointGain(cells, found.weights[0], answers, self.state.schema, bandwidth)
        now = self.state.prices.now(self.state.mask)[0]
        alone = {i: self.joint.gain(self.joint.distances(i)) for i in self.candidates}
        worth = by_rule(np.array([alone[i] for i in self.candidates]), now[self.candidates], "root")
        best = np.argsort(-worth, kind="stable")[:MOST_CANDIDATES]
        self.candidates = [self.candidates[k] for k in best]
        self._distances = {i: self.joint.distances(i) for i in self.candidates}

    def price(self, chosen: frozenset[int]) -> float:
        """The price of a set, each set-up cost counted once."""
        after = self.state.mask.copy()
        after[0, list(chosen)] = True
        return max(0.0, float((self.state.prices.total(after) - self.state.prices.total(self.state.mask))[0]))

    def gain(self, chosen: frozenset[int]) -> float:
        if chosen not in self._gains:
            self._gains[chosen] = self.joint.gain(np.sum([self._distances[i] for i in sorted(chosen)], axis=0))
        return self._gains[chosen]

    def run(self, rule: str) -> frozenset[int]:
        """Add what is best by `rule`, swap one feature for another as long as that is better, and add again."""
        chosen = self._extended(frozenset(), rule)
        for _ in range(MOST_SWAPS):
            better = self._swapped(chosen)
            if better is None:
                break
            chosen = self._extended(better, rule)
        return chosen

    def _extended(self, chosen: frozenset[int], rule: str) -> frozenset[int]:
        while True:
            larger = [chosen | {i} for i in self.candidates if i not in chosen]
            larger = [new for new in larger if affordable(self.price(new), self.most)]
            added = {new: self.gain(new) - self.gain(chosen) for new in larger}
            larger = [new for new in larger if added[new] > LEAST_GAIN]
            if not larger:
                return chosen
            paid = np.array([self.price(new) - self.price(chosen) for new in larger])
            gains = np.array([added[new] for new in larger])
            chosen = larger[int((gains if rule == "gain" else by_rule(gains, paid, rule)).argmax())]

    def _swapped(self, chosen: frozenset[int]) -> frozenset[int] | None:
        """The best set with one feature replaced; None if no such set is better."""
        swaps = [chosen - {i} | {j} for i in chosen for j in self.candidates if j not in chosen]
        swaps = [new for new in swaps if affordable(self.price(new), self.most)]
        best = max(swaps, key=self.gain, default=None)
        return best if best is not None and self.gain(best) > self.gain(chosen) + LEAST_GAIN else None


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
