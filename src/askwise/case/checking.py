"""A case that checks the promise of a stop: after the advice to stop it is asked everything, and decisions compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from askwise.acquisition import Acquisition
from askwise.case.results import Check, JsonNumber, Reasons
from askwise.table.columns import plain
from askwise.table.desk import Desk
from askwise.table.prices import MONEY, affordable

if TYPE_CHECKING:
    from askwise.case.session import Suggestion


@dataclass(frozen=True, eq=False)
class Advised:
    """A case at the advice to stop.

    Attributes
    ----------
    decision
        Position of the class decided for.
    after, spent
        The number of steps, and their price.
    available
        (M,) features that could be had.
    """

    decision: int
    after: int
    spent: float
    available: np.ndarray


def _unknown(state: Acquisition) -> np.ndarray:
    """(M,) features that could be had and are neither known nor ordered."""
    found = ~state.mask[0] & state.available[0]
    return found if state.pending is None else found & ~state.pending[0]


def to_ask(state: Acquisition) -> np.ndarray:
    """(M,) features that a check asks next, whatever they tell and cost.

    Only the rules of the house bar one, and budgets of other resources than money, such as harm.
    """
    unknown, rules = _unknown(state)[None], state.schema.rules
    for k, left in enumerate(state.remaining[0]):
        if state.prices.resources[k] != MONEY:
            unknown = unknown & affordable(state.amounts_now[..., k], left)
    return (unknown if rules is None else rules.allowed(unknown, state.mask, state.rows.values, state.pending))[0]


def checked(state: Acquisition, advised: Advised, departure: str) -> Check:
    """What the check has found so far; `departure` says how the case had left the calibrated path, if it had."""
    features, classes = state.schema.features, state.beliefs.predictor.classes_
    open_, rest = to_ask(state), _unknown(state)
    skipped = advised.available & ~state.available[0] & ~state.mask[0]
    unused = None
    if departure:
        unused = departure
    elif skipped.any():
        unused = f"{features[int(skipped.argmax())]!r} was skipped"
    elif rest.any() and not open_.any() and state.pending is None:
        unused = f"the rules of the house or a budget bar {features[int(rest.argmax())]!r}"
    full = changed = None
    novelty: JsonNumber = None
    if unused is None and not rest.any() and state.pending is None:
        # As in a calibration: the model itself, on all that there is.
        decision = int(state.beliefs.decisions(state.beliefs.predictor.full_proba(state.rows))[0])
        full, changed = plain(classes[decision]), decision != advised.decision
        if state.beliefs.novelty is not None:
            far = float(state.beliefs.novelty.relative(state.rows)[0])
            novelty = far if np.isfinite(far) else "infinite"
    return {
        "stopped": plain(classes[advised.decision]),
        "after": advised.after,
        "spent": advised.spent,
        "to_ask": [features[i] for i in np.flatnonzero(rest)],
        "full": full,
        "changed": changed,
        "novelty": novelty,
        "unused": unused,
    }


def why_checked(state: Acquisition, suggestion: Suggestion, advised: Advised, desk: Desk) -> Reasons:
    """Why the case goes on after the advice to stop."""
    proba, classes = state.belief.proba[0], state.beliefs.predictor.classes_
    decision = int(state.beliefs.decisions(proba[None])[0])
    stopped = plain(classes[advised.decision])
    others = [(name, price) for name, price, _ in suggestion.ranking[1:]]
    reason = f"Check of the promise: please go on. The advice was to stop here with {stopped}."
    lines = [f"Next: {desk.label(suggestion.feature)} ({desk.money(suggestion.cost)}). {reason}"]
    if others:
        lines.append(f"Then: {'; '.join(f'{desk.label(name)} ({desk.money(price)})' for name, price in others)}.")
    lines.append("What cannot be had may be marked as unavailable; the case then does not count as checked.")
    return {
        "advice": "ask",
        "decision": plain(classes[decision]),
        "probability": float(proba[decision]),
        "feature": suggestion.feature,
        "price": suggestion.cost,
        "reason": reason,
        "change": None,
        "outcomes": [],
        "alternatives": [{"feature": name, "price": price, "relative_gain": None} for name, price in others],
        "hint": None,
        "text": "\n".join(lines),
    }
