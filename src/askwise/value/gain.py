"""The gain of a feature (higher is better) per unit of cost."""

from __future__ import annotations

import numpy as np


def per_cost(gain: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Gain per unit of cost: a positive gain is divided by its cost, a negative one multiplied.

    Dividing a loss by a high price would make it look smaller. A cost of 0 leaves the gain as it is.

    >>> per_cost(np.array([1.0, -1.0, 1.0]), np.array([2.0, 2.0, 0.0])).tolist()
    [0.5, -2.0, 1.0]
    """
    priced = costs > 0
    safe = np.where(priced, costs, 1.0)
    return np.asarray(np.where(priced & (gain > 0), gain / safe, gain * safe))
