"""Why a feature comes next, as data and in words; the same in the terminal, in JSON and on the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.acquisition import Acquisition
from askwise.case.answers_ahead import AnswersAhead, answers_ahead
from askwise.case.results import Alternative, Reasons, State
from askwise.policy.base import Policy
from askwise.stopping.calibrated_stop import CalibratedStop
from askwise.stopping.pays_off import PaysOff
from askwise.stopping.rules import Stopping
from askwise.table.desk import Desk, percent
from askwise.table.prices import MONEY, affordable
from askwise.value import by_rule

if TYPE_CHECKING:
    from askwise.case.session import Suggestion

MOST_ALTERNATIVES = 3
CONFIDENT = 0.95
LEAST_GAIN = 0.001
"""Nats; an answer that is expected to tell less than this hardly ever changes the decision."""


def why_next(
    state: Acquisition, said: State, policy: Policy, suggestion: Suggestion, desk: Desk, outcomes: bool = True
) -> Reasons:
    """Why `suggestion` comes next in the one case of `state`, of which this is `said`; see `Session.why`."""
    ahead = answers_ahead(state, state.schema.position(suggestion.feature)) if outcomes else None
    (decision, probability), novel = _decision_now(said), _is_novel(said)
    weighed = dict(zip(state.schema.features, state.weighed_now[0].tolist(), strict=True))  # 0 = free
    found: Reasons = {
        "advice": "ask",
        "decision": decision,
        "probability": probability,
        "feature": suggestion.feature,
        "price": suggestion.cost,
        "reason": "It is free." if weighed[suggestion.feature] == 0 else _reason(state, policy),
        "change": None if ahead is None else ahead.change,
        "outcomes": [] if ahead is None else [asdict(group) for group in ahead.groups],
        "alternatives": _alternatives(state, policy, suggestion, weighed),
        "hint": None if novel else _hint(policy, suggestion, weighed, decision, probability),
        "text": "",
    }
    found["text"] = _in_words(found, suggestion, ahead, desk, novel)
    return found


def why_finished(state: Acquisition, said: State, stop: Stopping | None, guarantee: str | None, desk: Desk) -> Reasons:
    """Why nothing more is suggested in the one case of `state`."""
    stopped = stop is not None and bool(stop.stops(state)[0]) and bool(state.buyable().any())
    novel = _is_novel(said)
    reason = _stopped(stop, novel) if stopped else _nothing_left(state, desk)
    promise = guarantee if stopped and isinstance(stop, CalibratedStop) else None
    decision, probability = _decision_now(said)
    found: Reasons = {
        "advice": "stop" if stopped else "nothing left",
        "decision": decision,
        "probability": probability,
        "feature": None,
        "price": None,
        "reason": " ".join(filter(None, [reason, promise])),
        "change": None,
        "outcomes": [],
        "alternatives": [],
        "hint": None,
        "text": "",
    }
    found["text"] = "\n".join(filter(None, [reason, _so_far(found, novel), promise]))
    return found


def _reason(state: Acquisition, policy: Policy) -> str:
    if state.pending is not None and policy.compares_gains:
        return "Beyond the results that are out, it is expected to tell most for its price."
    limited = bool(np.isfinite(state.left[0]))
    return (policy.reason_under_budget if limited else None) or policy.reason


def why_pilot(said: State, suggestion: Suggestion, desk: Desk) -> Reasons:
    """Why a pilot item comes next: because the rules of the house scatter it in."""
    decision, probability = _decision_now(said)
    then = suggestion.ranking[1:][:MOST_ALTERNATIVES]
    found: Reasons = {
        "advice": "ask",
        "decision": decision,
        "probability": probability,
        "feature": suggestion.feature,
        "price": 0.0,
        "reason": "It is a pilot item: its answer is kept, and does not change the prediction.",
        "change": 0.0,
        "outcomes": [],
        "alternatives": [{"feature": name, "price": price, "relative_gain": None} for name, price, _ in then],
        "hint": None,
        "text": "",
    }
    others = "; ".join(f"{desk.label(name)} ({desk.money(price)})" for name, price, _ in then)
    lines = [f"Next: {suggestion.feature}. {found['reason']}", _so_far(found, _is_novel(said)), f"Then: {others}."]
    found["text"] = "\n".join(lines)
    return found


def _decision_now(said: State) -> tuple[Any, float]:
    """The label of the current decision, and its probability."""
    return said["prediction"], said["probabilities"][str(said["prediction"])]


def _alternatives(
    state: Acquisition, policy: Policy, suggestion: Suggestion, weighed: Mapping[str, float]
) -> list[Alternative]:
    """The next best features with their prices and, where the policy compares gains, their share of the best gain.

    Gains are weighed against prices by the rule of the policy.
    """
    best = suggestion.gain
    comparable = policy.compares_gains and weighed[suggestion.feature] > 0 and np.isfinite(best) and best > 0
    compared = suggestion.ranking[: 1 + MOST_ALTERNATIVES]
    prices = np.array([weighed[name] for name, _, _ in compared])
    gains = np.array([max(gain, 0.0) for _, _, gain in compared]) * prices  # those of the ranking are per price
    ranked = by_rule(gains, prices, getattr(policy, "price_rule", "per price"), state.left[0])
    comparable &= bool(ranked[0] >= ranked.max())  # a plan can rank a feature of lower gain first
    return [
        {"feature": name, "price": price, "relative_gain": float(share / ranked[0]) if comparable and paid else None}
        for (name, price, _), share, paid in zip(compared[1:], ranked[1:], prices[1:], strict=True)
    ]


def _hint(
    policy: Policy, suggestion: Suggestion, weighed: Mapping[str, float], decision: Any, probability: float
) -> str | None:
    """Whether one could stop although the case goes on; not for a case that is unlike what was seen in training."""
    most = max(gain * (weighed[name] or 1.0) for name, _, gain in suggestion.ranking)
    if policy.compares_gains and most < LEAST_GAIN:
        return "You could stop: no further answer is expected to change the decision."
    if probability >= CONFIDENT:
        wrong = max(1, round(100 * (1 - probability)))
        return (
            f"You could stop: the model gives {decision} {percent(probability)}. If that is right, about "
            f"{wrong} in 100 such predictions are wrong."
        )
    return None


def _is_novel(said: State) -> bool:
    """Whether the case is unlike the training rows, as far as that was measured."""
    return bool(said["novelty"])


def _in_words(found: Reasons, suggestion: Suggestion, ahead: AnswersAhead | None, desk: Desk, novel: bool) -> str:
    feature = suggestion.feature
    takes = "".join(f", {name} {taken:g}" for name, taken in suggestion.amounts.items() if name != MONEY and taken)
    asked = f"Next: {desk.label(feature)} ({desk.money(suggestion.cost)}{takes}). {found['reason']}"
    lines = [asked, _so_far(found, novel)]
    if ahead is not None:
        lines.append(_change_in_words(found, ahead))
        lines += [f"- {_outcome_in_words(group, feature, desk)}" for group in found["outcomes"]]
    others = [_alternative_in_words(other, desk) for other in found["alternatives"]]
    shares = any(other["relative_gain"] is not None for other in found["alternatives"])
    instead = "Instead (and how good each is for its price, beside this one)" if shares else "Instead"
    lines.append(f"{instead}: {'; '.join(others)}." if others else "There is nothing else to suggest.")
    return "\n".join([*lines, *([found["hint"]] if found["hint"] else [])])


def _so_far(found: Reasons, novel: bool) -> str:
    """The decision with its probability, which says nothing where the model has seen no such case."""
    if novel:
        return f"So far: {found['decision']}. The case is unlike the training rows: do not rely on it."
    return f"So far: {found['decision']}, {percent(found['probability'])}."


def _change_in_words(found: Reasons, ahead: AnswersAhead) -> str:
    if ahead.change == 0:
        return f"The decision probably stays {found['decision']}; the answer makes it more or less certain:"
    return f"In about {percent(ahead.change)} of similar cases the answer changes the decision:"


def _outcome_in_words(group: dict[str, Any], feature: str, desk: Desk) -> str:
    column = group["column"]
    named = column is not None and column != feature
    words = group["answer"] if group["values"] is not None else desk.with_unit(column or feature, group["answer"])
    said = f"{desk.label(column)} {words}" if named else words
    leads = "changes to" if group["changes_decision"] else "stays"
    chance, probability = percent(group["chance"]), percent(group["probability"])
    return f"{said} ({chance} of similar cases): {leads} {group['decision']}, {probability}"


def _alternative_in_words(other: Alternative, desk: Desk) -> str:
    said = f"{desk.label(other['feature'])} ({desk.money(other['price'])}"
    if other["relative_gain"] is None:
        return f"{said})"
    return f"{said}, {percent(min(other['relative_gain'], 1.0))})"


def _stopped(stop: Stopping | None, novel: bool) -> str:
    if isinstance(stop, CalibratedStop) and novel:
        return "Stop: no further answer is asked for."
    if isinstance(stop, CalibratedStop):
        return "Stop: further answers are unlikely to change the decision."
    if isinstance(stop, PaysOff):
        return "Stop: nothing more is expected to save what it costs."
    return "Stop: the stopping rule is met."


def _nothing_left(state: Acquisition, desk: Desk) -> str:
    unknown = np.flatnonzero(~state.mask[0] & state.available[0])
    beyond = ~affordable(state.amounts_now[0], state.remaining[0])  # (M, R)
    costly = [i for i in unknown.tolist() if beyond[i].any()]
    if not len(unknown):
        return "Nothing is left to ask."
    if state.until is not None and not costly and not state.within()[0, unknown].any():
        return "Nothing more can be back by the deadline."
    if not costly and state.barred()[0, unknown].any():
        return (
            "Nothing more is asked: the rules of the house bar what is left, or it can no longer change the prediction."
        )
    if not costly:
        return "Nothing more is asked: the features left can no longer change the prediction."
    rest = "" if len(costly) == len(unknown) else "; the others can no longer change the prediction"
    binding = next(k for k in range(beyond.shape[1]) if any(beyond[i, k] for i in costly))
    return f"Nothing more can be bought: {_beyond_budget(state, binding, costly, desk)}{rest}."


def _beyond_budget(state: Acquisition, k: int, costly: list[int], desk: Desk) -> str:
    """What is left of resource number `k`, and what of the features that are too `costly` takes the least of it."""
    resource, now, left = state.prices.resources[k], state.amounts_now[0, :, k], float(state.remaining[0, k])
    cheapest = min([i for i in costly if not affordable(now[i], left)], key=now.__getitem__)
    label = desk.label(state.schema.features[cheapest])
    if resource == MONEY:
        return (
            f"{desk.amount(left)} of the budget is left, and the cheapest feature that could be asked for, {label}, "
            f"costs {desk.amount(float(now[cheapest]))}"
        )
    return f"{left:g} of the budget of {resource} is left, and {label} takes {now[cheapest]:g}"
