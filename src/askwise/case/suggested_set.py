"""A set of features to order together, whose results come back together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.parameters import Number
from askwise.policy.base import Policy
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.prices import Prices
from askwise.value import NeighborValue
from askwise.value.joint import JointGain
from askwise.value.sets import SetSearch

COMPLETIONS = 300
MOST_CANDIDATES = 30
"""Features that are combined: of more, those with the highest gains for their price on their own."""


@dataclass(frozen=True)
class SuggestedSet:
    """Features to order together, the price of all, and their expected gain in nats; `dataclasses.asdict` for JSON.

    `amounts` has what they take of every resource: of time the longest, of others the sum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> found = selector.start().suggest_set(price=2)
    >>> len(found.features), found.price
    (2, 2.0)
    >>> found.amounts
    {'money': 2.0}
    """

    features: list[str]
    price: float
    gain: float
    amounts: dict[str, float] = field(default_factory=dict)


def check_price(price: Any, prices: Prices) -> None:
    """Refuse a price that is no number, or negative, alone or among those by resource."""
    given = price.values() if isinstance(price, Mapping) and price else [price]
    if not all(Number().allows(most) for most in given):
        by_name = ", or a dict of such by resource" if isinstance(price, Mapping) else ""
        raise InvalidInput(f"suggest_set: price must be a finite number >= 0{by_name}; got {price!r}.")
    prices.limits(price, 1, "suggest_set: price")


def suggested_set(state: Acquisition, policy: Policy, r: int, price: Any) -> SuggestedSet:
    """The set for case `r`."""
    check_price(price, state.prices)
    case = state.take([r])
    case.remaining = np.minimum(case.remaining, state.prices.limits(price, 1))
    candidates, resources = np.flatnonzero(case.buyable()[0]), state.prices.resources
    if not len(candidates):
        return SuggestedSet([], 0.0, 0.0, dict.fromkeys(resources, 0.0))
    joint = _joint_gain(case, _completing(case, policy))
    rules, known, pending = case.schema.rules, case.mask[0], _pending(case)
    out = frozenset(np.flatnonzero(pending).tolist())
    paid = known | pending

    def possible(features: np.ndarray) -> bool:
        return rules is None or rules.together(features & ~pending, paid)

    left = case.remaining[0]
    search = SetSearch(joint, case.prices, paid, candidates, MOST_CANDIDATES, left=left, start=out, possible=possible)
    found = search.best(float(left[0]))
    names = [state.schema.features[i] for i in sorted(found - out)]
    amounts = dict(zip(resources, search.amounts(found).tolist(), strict=True))
    return SuggestedSet(names, search.price(found), search.gain(found) - search.gain(out), amounts)


def gains_beyond(state: Acquisition, policy: Policy, candidates: np.ndarray) -> np.ndarray | None:
    """(M,) what each of the `candidates` tells beyond the results that are out, in nats; -inf for other features.

    None where the policy does not compare gains, or the case cannot be completed.
    """
    if not policy.compares_gains or not _completes(state, policy):
        return None
    joint, pending = _joint_gain(state, _completing(state, policy)), np.flatnonzero(_pending(state))
    out = np.sum([joint.distances(i) for i in pending.tolist()], axis=0)
    found, before = np.full(state.mask.shape[1], -np.inf), joint.gain(out)
    for i in candidates.tolist():
        found[i] = joint.gain(out + joint.distances(i)) - before
    return found


def _pending(case: Acquisition) -> np.ndarray:
    return np.zeros_like(case.mask[0]) if case.pending is None else case.pending[0]


def _completes(state: Acquisition, policy: Policy) -> bool:
    try:
        _completing(state, policy)
    except InvalidInput:
        return False
    return True


def _joint_gain(case: Acquisition, predictor: ConditionalPredictor) -> JointGain:
    found = BeliefModel(predictor.with_neighbors(COMPLETIONS)).believe(case.rows).completions
    assert found is not None
    cells, answers = predictor.neighbors_.scores[found.index[0]], found.answers[0, :, 0]
    return JointGain(cells, found.weights[0], answers, case.schema, predictor.neighbors_.bandwidth)


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
