"""The gain of a feature (higher is better), and the gain in proportion to its price."""

from __future__ import annotations

import numpy as np

PRICE_RULES = ("auto", "per price", "root")


def gain(discrepancy: np.ndarray, epistemic: np.ndarray, risk_weight: float) -> np.ndarray:
    r"""Eq. 9 with its signs turned: :math:`[u(S) - u(S + i)] + \lambda [e(S) - e(S + i)]`, whatever the price.

    Parameters
    ----------
    discrepancy, epistemic
        Expected reductions of u and of e by each feature, of the same shape.
    risk_weight
        The paper's lambda.

    Examples
    --------
    >>> gain(np.array([0.2, 0.1]), np.array([0.0, 0.5]), risk_weight=0.1).round(3).tolist()
    [0.2, 0.15]
    """
    return np.asarray(discrepancy + risk_weight * epistemic)


def per_cost(gain: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Gain per unit of cost: a positive gain is divided by its cost, a negative one multiplied.

    Dividing a loss by a high price would make it look smaller. A price of 0 leaves the gain as it is.

    >>> per_cost(np.array([1.0, -1.0, 1.0]), np.array([2.0, 2.0, 0.0])).tolist()
    [0.5, -2.0, 1.0]
    """
    priced = costs > 0
    safe = np.where(priced, costs, 1.0)
    return np.asarray(np.where(priced & (gain > 0), gain / safe, gain * safe))


def by_rule(gain: np.ndarray, costs: np.ndarray, rule: str, left: np.ndarray | float = np.inf) -> np.ndarray:
    r"""Gain per :math:`price^a`: the ranking of features by a price rule.

    Per unit of price (:math:`a = 1`) is right as long as money is left for many features. With money for one, the price
    no longer matters, because what is saved buys nothing. ``"per price"`` is 1 throughout, the rule of the paper, and
    ``"root"`` 1/2; ``"auto"`` is 1/2 under a budget and 1 without.

    Parameters
    ----------
    left
        The money left, infinite without a budget; broadcasts with `gain`.

    Examples
    --------
    >>> gain, costs = np.array([1.0, 3.0]), np.array([1.0, 4.0])
    >>> [by_rule(gain, costs, "auto", left).tolist() for left in (10, np.inf)]
    [[1.0, 1.5], [1.0, 0.75]]
    """
    return per_cost(gain, costs ** price_power(rule, left))


def price_power(rule: str, left: np.ndarray | float) -> np.ndarray:
    """The exponent `a` of `by_rule`.

    Examples
    --------
    >>> price_power("auto", np.array([3.0, np.inf])).tolist()
    [0.5, 1.0]
    """
    return np.asarray({"per price": 1.0, "root": 0.5, "auto": np.where(np.isinf(left), 1.0, 0.5)}[rule])
