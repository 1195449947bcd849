"""The search for sets of features that tell most together within a price."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from askwise.table.prices import Prices, affordable
from askwise.value.gain import by_rule
from askwise.value.joint import JointGain

RULES = ("per price", "root", "gain")
"""How the next feature of a set is chosen: gain for the price, for its root, or the gain alone."""
MOST_SWAPS = 10
"""After each forward selection."""
LEAST_BETTER = 1e-4
"""Nats by which a swap must improve a set."""

Set = frozenset[int]


class SetSearch:
    """Forward selection by each of the `RULES`, improved by swapping one feature for another.

    Parameters
    ----------
    joint
        Says what features tell together.
    prices, known
        The prices, and (M,) the features that are acquired already.
    left
        (R,) the limits of all sets besides their price, for features that are ordered together; None = the price alone.
    candidates, most_candidates
        Positions of the features that can be added; of more than so many, those with the highest gain for the root of
        their price on their own.
    start
        What is in every set.
    least_gain
        A feature that adds less to a set is left out.
    n_tried
        Features that are tried at each step: those that added most when they were last tried; None = all.
    possible
        Whether features (M,) bool may be had together, beyond those that are known; None = always.

    Attributes
    ----------
    tried : every set that was tried, at any price, with its gain
    """

    def __init__(
        self,
        joint: JointGain,
        prices: Prices,
        known: np.ndarray,
        candidates: np.ndarray,
        most_candidates: int,
        *,
        left: np.ndarray | None = None,
        start: Set = frozenset(),
        least_gain: float = LEAST_BETTER,
        n_tried: int | None = None,
        possible: Callable[[np.ndarray], bool] | None = None,
    ) -> None:
        self.joint, self.prices, self.known, self.start = joint, prices, known, start
        self.left = left
        self.least_gain = least_gain
        self.possible = possible
        alone = np.array([joint.gain(joint.distances(i)) for i in candidates])
        worth = by_rule(alone, prices.weighed.now(known[None])[0, candidates], "root")
        self.candidates = candidates[np.argsort(-worth, kind="stable")[:most_candidates]].tolist()
        self.n_tried = len(self.candidates) if n_tried is None else n_tried
        self._distances = {i: joint.distances(i).astype(np.float32) for i in {*self.candidates, *start}}
        self.tried: dict[Set, float] = {}
        self._prices: dict[Set, float] = {}
        self._amounts: dict[Set, np.ndarray] = {}
        self._alone = {i: self.gain(start | {i}) - self.gain(start) for i in self.candidates}

    def gain(self, chosen: Set) -> float:
        """The expected gain of a set."""
        if chosen not in self.tried:
            self.tried[chosen] = float(self.joint.weights @ self.gains(chosen))
        return self.tried[chosen]

    def gains(self, chosen: Set) -> np.ndarray:
        """(K,) the gain of a set if each completion in turn is the truth."""
        if not chosen:
            return np.zeros(len(self.joint.weights))
        return self.joint.gains(np.sum([self._distances[i] for i in sorted(chosen)], axis=0))

    def price(self, chosen: Set) -> float:
        """What a set adds to the price, each set-up cost counted once."""
        if chosen not in self._prices:
            self._prices[chosen] = float(self.prices.added(self.known[None], self.mask(chosen)[None])[0, 0])
        return self._prices[chosen]

    def amounts(self, chosen: Set) -> np.ndarray:
        """(R,) what a set takes of each resource if it is ordered together."""
        if chosen not in self._amounts:
            self._amounts[chosen] = self.prices.together(self.known, self.mask(chosen))
        return self._amounts[chosen]

    def _cost(self, chosen: Set) -> float:
        """What the gain of a set is divided by."""
        return float(self.prices.weigh(self.amounts(chosen))) if self.prices.weights else self.price(chosen)

    def mask(self, chosen: Set) -> np.ndarray:
        """(M,) the features of a set."""
        mask = np.zeros(len(self.known), dtype=bool)
        mask[list(chosen)] = True
        return mask

    def allowed(self, chosen: Set, most: float) -> bool:
        """Whether a set costs at most `most`, and its features may be had together."""
        within = bool(affordable(self.price(chosen), most))
        if self.left is not None:
            within = within and bool(np.all(affordable(self.amounts(chosen)[1:], self.left[1:])))
        return within and (self.possible is None or self.possible(self.mask(chosen)))

    def best(self, most: float) -> Set:
        """The best set found that costs at most `most`."""
        return max((self._run(rule, most) for rule in RULES), key=self.gain)

    def _run(self, rule: str, most: float) -> Set:
        """Add what is best by `rule`, swap as long as that is better, and add again."""
        added = dict(self._alone)  # by each feature, when it was last tried
        chosen = self._extended(self.start, rule, most, added)
        for _ in range(MOST_SWAPS):
            better = self._swapped(chosen, most, added)
            if better is None:
                break
            chosen = self._extended(better, rule, most, added)
        return chosen

    def _extended(self, chosen: Set, rule: str, most: float, added: dict[int, float]) -> Set:
        while True:
            paid = self._cost(chosen)
            price = {i: self._cost(chosen | {i}) for i in self.candidates if i not in chosen}
            within = [i for i in price if self.allowed(chosen | {i}, most)]
            cost = np.array([price[i] - paid for i in within])
            tried = _ranked(within, added, cost, rule)[: self.n_tried]
            added |= {i: self.gain(chosen | {i}) - self.gain(chosen) for i in tried}
            useful = [i for i in tried if added[i] > self.least_gain]
            if not useful:
                return chosen
            cost = np.array([price[i] - paid for i in useful])
            chosen = chosen | {_ranked(useful, added, cost, rule)[0]}

    def _swapped(self, chosen: Set, most: float, added: dict[int, float]) -> Set | None:
        """The best set with one feature replaced; None if no such set is better."""
        others = [i for i in self.candidates if i not in chosen]
        tried = sorted(others, key=lambda i: -added[i])[: self.n_tried]
        swaps = [chosen - {i} | {j} for i in sorted(chosen - self.start) for j in tried]
        swaps = [new for new in swaps if self.allowed(new, most)]
        best = max(swaps, key=self.gain, default=None)
        return best if best is not None and self.gain(best) > self.gain(chosen) + LEAST_BETTER else None


def _ranked(features: list[int], added: dict[int, float], cost: np.ndarray, rule: str) -> list[int]:
    """Features by what they add for their `cost`, the best first."""
    gains = np.array([added[i] for i in features])
    order = np.argsort(-(gains if rule == "gain" else by_rule(gains, cost, rule)), kind="stable")
    return [features[k] for k in order]
