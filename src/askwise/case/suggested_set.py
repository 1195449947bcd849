"""A set of features to order together, whose results come back together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.parameters import Number
from askwise.policy.base import Policy
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.prices import affordable
from askwise.value import NeighborValue
from askwise.value.joint import JointGain
from askwise.value.sets import SetSearch

COMPLETIONS = 300
MOST_CANDIDATES = 30
"""Features that are combined: of more, those with the highest gains for their price on their own."""


@dataclass(frozen=True)
class SuggestedSet:
    """Features to order together, the price of all, and their expected gain in nats; `dataclasses.asdict` for JSON.

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
    """

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
    candidates = np.flatnonzero(case.buyable()[0] & affordable(case.prices_now[0], most))
    if not len(candidates):
        return SuggestedSet([], 0.0, 0.0)
    joint = _joint_gain(case, _completing(case, policy))
    rules, known, pending = case.schema.rules, case.mask[0], _pending(case)
    out = frozenset(np.flatnonzero(pending).tolist())
    paid = known | pending

    def possible(features: np.ndarray) -> bool:
        return rules is None or rules.together(features & ~pending, paid)

    search = SetSearch(joint, case.prices, paid, candidates, MOST_CANDIDATES, start=out, possible=possible)
    found = search.best(most)
    names = [state.schema.features[i] for i in sorted(found - out)]
    return SuggestedSet(names, search.price(found), search.gain(found) - search.gain(out))


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
