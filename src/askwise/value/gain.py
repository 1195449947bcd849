"""The gain of a feature (higher is better) in proportion to its price."""

from __future__ import annotations

import numpy as np

PRICE_RULES = ("per price", "root")


def per_cost(gain: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Gain per unit of cost: a positive gain is divided by its cost, a negative one multiplied.

    Dividing a loss by a high price would make it look smaller. A cost of 0 leaves the gain as it is.

    >>> per_cost(np.array([1.0, -1.0, 1.0]), np.array([2.0, 2.0, 0.0])).tolist()
    [0.5, -2.0, 1.0]
    """
    priced = costs > 0
    safe = np.where(priced, costs, 1.0)
    return np.asarray(np.where(priced & (gain > 0), gain / safe, gain * safe))


def by_rule(gain: np.ndarray, costs: np.ndarray, rule: str) -> np.ndarray:
    """Gain per unit of cost ("per price"), or per root of the cost ("root").

    A small feature that is cheap for what it tells leaves less money for one that tells much. Per unit of price the
    small one comes first; the root of the price is between that and the largest gain that can be paid.

    >>> by_rule(np.array([1.0, 3.0]), np.array([1.0, 4.0]), "root").tolist()
    [1.0, 1.5]
    """
    return per_cost(gain, np.sqrt(costs) if rule == "root" else costs)
