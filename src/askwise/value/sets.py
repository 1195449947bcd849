"""The search for sets of features that tell most together within a price."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from askwise.prices import affordable
from askwise.value.gain import by_rule

RULES = ("per price", "root", "gain")
"""How the next feature of a set is chosen: gain for the price, for its root, or the gain alone."""
MOST_SWAPS = 10
LEAST_BETTER = 1e-4
"""Nats by which a swap must improve a set."""

Set = frozenset[int]


class SetSearch:
    """Forward selection by each of the `RULES`, improved by swapping one feature for another.

    Parameters
    ----------
    gain, price
        Functions of a set of positions of features: what it tells (in nats), and what it costs.
    candidates
        Positions of the features that can be added.
    start
        What is in every set.
    least_gain
        A feature that adds less to a set is left out.
    n_tried
        Features that are tried at each step: those that added most when they were last tried; None = all.

    Attributes
    ----------
    gains : every set that was tried, with its gain
    """

    def __init__(
        self,
        gain: Callable[[Set], float],
        price: Callable[[Set], float],
        candidates: Sequence[int],
        *,
        start: Set = frozenset(),
        least_gain: float = LEAST_BETTER,
        n_tried: int | None = None,
    ) -> None:
        self.price, self.candidates, self.start = price, list(candidates), start
        self.least_gain = least_gain
        self.n_tried = len(self.candidates) if n_tried is None else n_tried
        self.gains: dict[Set, float] = {}
        self._gain = gain
        self._alone = {i: self.gain(start | {i}) - self.gain(start) for i in self.candidates}

    def gain(self, chosen: Set) -> float:
        if chosen not in self.gains:
            self.gains[chosen] = self._gain(chosen)
        return self.gains[chosen]

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
            paid = self.price(chosen)
            price = {i: self.price(chosen | {i}) for i in self.candidates if i not in chosen}
            within = [i for i in price if affordable(price[i], most)]
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
        swaps = [new for new in swaps if affordable(self.price(new), most)]
        best = max(swaps, key=self.gain, default=None)
        return best if best is not None and self.gain(best) > self.gain(chosen) + LEAST_BETTER else None


def _ranked(features: list[int], added: dict[int, float], cost: np.ndarray, rule: str) -> list[int]:
    """Features by what they add for their `cost`, the best first."""
    gains = np.array([added[i] for i in features])
    order = np.argsort(-(gains if rule == "gain" else by_rule(gains, cost, rule)), kind="stable")
    return [features[k] for k in order]
