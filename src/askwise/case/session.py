"""A session for one case, with features given by name: suggest, answer, undo, report."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from askwise.acquisition import Acquisition
from askwise.case.checking import Advised, checked, to_ask, why_checked
from askwise.case.results import (
    Check,
    HandoverAdvice,
    JsonNumber,
    Next,
    Now,
    Pending,
    Purse,
    Reasons,
    Report,
    State,
    Step,
)
from askwise.case.suggested_set import SuggestedSet, gains_beyond, suggested_set
from askwise.case.why import why_finished, why_next, why_pilot
from askwise.epistemic import Assessment
from askwise.epistemic.novelty import unlike_training
from askwise.errors import InvalidInput
from askwise.parameters import Number
from askwise.policy.base import Policy
from askwise.predict.belief import Belief
from askwise.stopping.calibrated_stop import CalibratedStop
from askwise.stopping.handover import Handover
from askwise.stopping.rules import Stopping
from askwise.table.columns import plain
from askwise.table.desk import Desk
from askwise.table.prices import MONEY, TIME, affordable
from askwise.table.rows import EncodedRows
from askwise.value import by_rule, per_cost

ROUNDING_ERROR = 1e-12
"""A gain closer to 0 is shown as 0."""

T = TypeVar("T")


@dataclass(frozen=True)
class Suggestion:
    """The feature to acquire next, its current price, its expected gain per price, and all candidates.

    `ranking` lists (feature, current price, gain per price), best first. `amounts` has what the feature takes of every
    resource of the prices.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> suggestion = selector.start(budget=2).suggest()
    >>> suggestion.feature, suggestion.cost, len(suggestion.ranking)
    ('x3', 1.0, 4)
    """

    feature: str
    cost: float
    gain: float
    ranking: list[tuple[str, float, float]]
    amounts: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        others = len(self.ranking) - 1
        rest = f"; {others} other{'' if others == 1 else 's'} in .ranking" if others > 0 else ""
        return f"Suggestion({self.feature!r}, cost={self.cost:.6g}, gain={self.gain:.4g}{rest})"

    def _repr_html_(self) -> str:
        """A card, as notebooks show it."""
        from askwise.cards import suggestion_card

        return suggestion_card(self.ranking)


class Session:
    """The acquisition of features for one case; created by `DynamicFeatureSelector.start`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> session = selector.start(budget=2)
    >>> session.suggest().feature
    'x3'
    >>> session.answer("x2", 1.4)
    >>> session.report()["prediction"]
    0
    >>> session.undo()
    """

    def __init__(
        self,
        state: Acquisition,
        policy: Policy,
        known: Mapping[str, Any] | None = None,
        stop: Stopping | None = None,
        handover: Handover | None = None,
        quiet: bool = False,
        deadline: float | None = None,
        check: bool = False,
    ) -> None:
        self._state = state
        self._schema = state.schema
        self._policy = policy
        self._stop = stop
        self._handover = handover
        self._quiet = quiet  # what is said after each step is computed only if it is asked for
        self._check = check
        self._advised: Advised | None = None  # of a checked case: what it would have been stopped with
        self._past: list[tuple[Acquisition, list[dict[str, Any]], str, list[Pending], float, Advised | None]] = []
        self._trace: list[dict[str, Any]] = []
        self._suggestion: Suggestion | None = None
        self._thought = False  # whether `_suggestion` is up to date
        self._deadline = deadline
        self._time = 0.0  # hours since the start
        self._out: list[Pending] = []
        self._hold_back()
        self._departure = ""  # how the case left the path that its stop was calibrated for
        if known is not None and not isinstance(known, Mapping):
            raise InvalidInput(f"known must be a dict {{feature: value}}; got {known!r}.")
        self._pilots_known: dict[str, Any] = {}
        for name, value in (known or {}).items():
            if name in self._pilots:
                self._pilots_known[name] = _pilot_answer(name, value)
                continue
            i = self._unknown_feature(name)
            if state.prices.weighed.costs[i] > 0:
                self._departure = self._departure or f"{name!r} was known from the start"
            state.mask[0, i] = True
            state.rows.values[0, self._schema.feature_columns[i]] = self._schema.encode_feature(i, value)
        state.rows = EncodedRows(state.rows.values)
        self._record("start", None, None)
        self._note_advice()

    def __repr__(self) -> str:
        state = self._said(self._trace[-1])
        share = state["probabilities"][str(state["prediction"])]
        left = "no limit" if self.left is None else f"{self.left:g} left"
        return f"<Session: {state['prediction']} ({share:.0%}) from {self.known}; {left}>"

    def _repr_html_(self) -> str:
        """A card of the case as it stands, as notebooks show it."""
        from askwise.cards import case_card

        return case_card(self.report(), self.suggest())

    @property
    def left(self) -> float | None:
        """Money left; None = unlimited."""
        return _limited(self._state.left[0])

    @property
    def resources(self) -> dict[str, Purse]:
        """What is spent and left of each resource of the prices, "money" first; None = unlimited.

        Time is spent once a result is back: of results that are out together, the longest.
        """
        spent = np.sum([step["paid"] for step in self._trace], axis=0)
        found = zip(self._state.prices.resources, spent, self._state.remaining[0], strict=True)
        return {name: {"spent": float(amount), "left": _limited(left)} for name, amount, left in found}

    @property
    def known(self) -> dict[str, Any]:
        """The known values, by feature."""
        known = np.flatnonzero(self._state.mask[0]).tolist()
        return {self._schema.features[i]: self._schema.show_feature(i, self._state.rows.values[0]) for i in known}

    @property
    def time(self) -> float:
        """Hours since the case was started, as far as the session was told."""
        return self._time

    @property
    def pending(self) -> list[str]:
        """The features that are ordered and not back."""
        return [each["feature"] for each in self._out]

    @property
    def prices(self) -> dict[str, float]:
        """The current prices of the features that are neither known, ordered nor unavailable, affordable or not."""
        return {name: amounts[MONEY] for name, amounts in self.amounts.items()}

    @property
    def amounts(self) -> dict[str, dict[str, float]]:
        """What the same features as in `prices` take of each resource now."""
        open_ = ~self._state.mask[0] & self._state.available[0]
        left = np.flatnonzero(open_ if self._state.pending is None else open_ & ~self._state.pending[0]).tolist()
        now, resources = self._state.amounts_now[0].tolist(), self._state.prices.resources
        return {self._schema.features[i]: dict(zip(resources, now[i], strict=True)) for i in left}

    def suggest(self) -> Suggestion | None:
        """The feature to acquire next; None if nothing can be acquired or the stopping rule is met.

        Where a pilot item of the rules of the house is due, it is suggested first.
        """
        found, due = self._next(), self._pilot_due()
        if found is None or due is None:
            return found
        nothing = dict.fromkeys(self._state.prices.resources, 0.0)
        return Suggestion(due, 0.0, 0.0, [(due, 0.0, 0.0), *found.ranking], nothing)

    def _next(self) -> Suggestion | None:
        """What is suggested without pilot items."""
        if not self._thought:
            self._suggestion = self._suggest() if self._advised is None else self._suggest_rest()
            self._thought = True
        return self._suggestion

    @property
    def _pilots(self) -> list[str]:
        rules = self._schema.rules
        return [] if rules is None else [rule.features[0] for rule in rules.pilots]

    def _pilot_answers(self) -> dict[str, Any]:
        answers = {step["feature"]: step["value"] for step in self._trace if step["event"] == "answer"}
        return {**self._pilots_known, **{name: answers[name] for name in self._pilots if name in answers}}

    def _pilot_due(self) -> str | None:
        """The pilot item that is for this case now; None if there is none, or it was asked."""
        rules = self._schema.rules
        if rules is None or not rules.pilots:
            return None
        asked, row = {*self._pilots_known, *(step["feature"] for step in self._trace)}, self._state.rows.values[0]
        n_known = int(self._state.mask.sum())
        due = [p for p in rules.pilots if p.features[0] not in asked and p.n == n_known and rules.draws(p, row)]
        return due[0].features[0] if due else None

    def _suggest(self) -> Suggestion | None:
        state = self._state
        buyable = state.buyable()
        enough = self._stop is not None and bool(self._stop.stops(state)[0])
        if enough:  # what is free or mandatory is still acquired
            buyable = state.required(buyable)
        if not buyable.any():
            return None
        choice, scores = state.choose(self._policy, buyable)
        best = int(choice[0])
        if best < 0:
            return None
        now, weighed = state.prices_now[0], state.weighed_now[0]
        beyond = None if state.pending is None else gains_beyond(state, self._policy, np.flatnonzero(buyable[0]))
        if beyond is None:
            gains = self._policy.gains(scores, state)[0]
        else:
            if beyond.max() <= 0 and not state.required(buyable).any():
                return None  # waiting tells as much
            gains, scores = per_cost(beyond, weighed), scores.copy()
            rule = getattr(self._policy, "price_rule", "per price")
            scores[0] = np.where(buyable[0], by_rule(beyond, weighed, rule, state.left[0]), -np.inf)
            best = int(np.where(buyable[0] & (weighed == 0), np.inf, scores[0]).argmax())
        gains = np.where(np.abs(gains) < ROUNDING_ERROR, 0.0, gains)
        others = [i for i in np.argsort(-scores[0], kind="stable") if buyable[0, i] and i != best]
        ranking = [(self._schema.features[i], float(now[i]), float(gains[i])) for i in [best, *others]]
        name = self._schema.features[best]
        return Suggestion(name, float(now[best]), float(gains[best]), ranking, self.amounts[name])

    def _suggest_rest(self) -> Suggestion | None:
        """What comes next in a checked case after the advice: all that is left, the cheapest first."""
        now = self._state.prices_now[0]
        rest = sorted(np.flatnonzero(to_ask(self._state)).tolist(), key=lambda i: (now[i], i))
        ranking = [(self._schema.features[i], float(now[i]), 0.0) for i in rest]
        return Suggestion(*ranking[0], ranking, self.amounts[ranking[0][0]]) if ranking else None

    def _note_advice(self) -> None:
        """Keep what a checked case is advised to stop with; from then on everything else is asked."""
        if self._check and self._advised is None and not self._out and self._next() is None:
            decision = int(self._state.beliefs.decisions(self._state.belief.proba)[0])
            spent = float(sum(step["cost"] for step in self._trace))
            self._advised = Advised(decision, len(self._trace) - 1, spent, self._state.available[0].copy())
            self._thought = False

    def order(self, feature: str, hours: float | None = None, at: float | None = None) -> None:
        """Order a feature whose result comes later: it is charged now, and pending until `answer` has its value.

        Its time passes when the result is back; what is ordered meanwhile waits at the same time.

        Suggestions go on meanwhile, with the gains beyond what is pending. Results may come back in any order; a result
        that never comes is closed by `unavailable`, and stays paid.

        Parameters
        ----------
        hours
            How long the result takes; None = the `time` of the feature in the prices, and unknown if there is none.
        at
            Hours since the case was started; None = as before.
        """
        self.order_set([feature], hours, at)

    def order_set(
        self, features: SuggestedSet | Sequence[str], hours: float | None = None, at: float | None = None
    ) -> None:
        """Order several features together, such as those of `suggest_set`; shared set-up costs are paid once.

        It is one step for `undo`. See `order`.
        """
        names = features.features if isinstance(features, SuggestedSet) else features
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise InvalidInput(f"order_set: features must be a list of different features; got {names!r}.")
        if hours is not None and not Number().allows(hours):
            raise InvalidInput(f"order: hours must be {Number()} or None; got {hours!r}.")
        if at is not None and not Number(self._time).allows(at):
            raise InvalidInput(
                f"order: at must be {Number(self._time)} or None, because time goes forward; got {at!r}."
            )
        for name in names:
            if name in self._pilots:
                raise InvalidInput(f"{name!r} is a pilot item, which costs nothing and is not ordered; answer it.")
        positions = [self._unknown_feature(name) for name in names]
        if len(set(positions)) < len(positions):
            raise InvalidInput(f"order_set: features must be a list of different features; got {names!r}.")
        for name, i in zip(names, positions, strict=True):
            if not self._state.available[0, i]:
                raise InvalidInput(f"{name!r} was marked as unavailable; undo() that first.")
            if self._is_out(i):
                raise InvalidInput(f"{name!r} is ordered already; answer it when its result is back.")
        state = self._state.copy()
        paid = [state.order(i, None if hours is None else float(hours)) for i in positions]
        self._check_affordable(", ".join(names), np.array(paid))
        departure = self._departure or self._departs_by(names[0])
        follows = isinstance(self._stop, CalibratedStop) and self._advised is None
        if not departure and follows and (self._out or len(names) > 1):
            departure = f"{names[-1]!r} was ordered while another result was out"
        with self._all_or_nothing():
            self._departure, self._time = departure, self._time if at is None else float(at)
            resources = self._state.prices.resources
            time = resources.index(TIME) if TIME in resources else None
            for name, i in zip(names, positions, strict=True):
                amounts = self._state.order(i, None if hours is None else float(hours))
                takes = hours if time is None else float(amounts[time])
                back = None if takes is None else self._time + float(takes)
                self._out = [*self._out, {"feature": name, "ordered": self._time, "expected": back}]
                if time is not None:
                    amounts[time] = 0.0  # it passes once the result is back
                self._record("order", name, None, amounts)
            self._hold_back()

    def _check_affordable(self, names: str, paid: np.ndarray) -> None:
        """Refuse features of which `paid` (K, R) is more than is left of a resource; together they take the longest."""
        for k, name in enumerate(self._state.prices.resources):
            together, left = paid[:, k].max() if name == TIME else sum(paid[:, k].tolist()), self._state.remaining[0, k]
            own = self._advised is not None and name == MONEY  # a check is paid by whoever asks for it
            if not own and not affordable(together, left):
                what = "costs" if name == MONEY else f"takes {name}:"
                raise InvalidInput(
                    f"{names} {what} {together:g} and only {left:g} is left. Pass values that are known without paying "
                    "to start(known=...)."
                )

    def at(self, hours: float) -> None:
        """Say that so many hours have passed since the case was started; a deadline counts what can still be back."""
        if not Number(self._time).allows(hours):
            raise InvalidInput(f"at: hours must be {Number(self._time)}, because time goes forward; got {hours!r}.")
        self._time, self._thought = float(hours), False
        self._hold_back()

    def _hold_back(self) -> None:
        """Do not suggest what cannot be back by the deadline."""
        if self._deadline is not None:
            self._state.until = np.array([self._deadline - self._time])

    def _is_out(self, i: int) -> bool:
        return self._state.pending is not None and bool(self._state.pending[0, i])

    def suggest_set(self, price: float | Mapping[str, float]) -> SuggestedSet:
        """The features to order together, whose results come back together, within `price` and the budget left.

        A price may be given by resource, ``{"money": 50, "time": 24}``: the time of a set is that of its longest.

        They are chosen for what they tell together, so that none repeats what another one says. The set is empty
        where nothing is affordable, or nothing is expected to tell anything. Shared set-up costs count once.
        """
        return suggested_set(self._state, self._policy, 0, price)

    def why(self, desk: Desk | None = None, outcomes: bool = True) -> Reasons:
        """Why this feature comes next, or why none does, ready for JSON; works for every model and policy.

        `text` says it in words, with the labels, units and currency of `desk`. `advice` is "ask", "stop" (the stopping
        rule is met), "nothing left" or "hand over" (to a person, by `calibrate_handover`); `decision` and `probability`
        are the current ones. Of the suggested `feature`: its `price`, the `reason`, the probability that its answer
        will `change` the decision, its likely answers and where each leads (`outcomes`), and the `alternatives` with
        their prices. `hint` says that one could stop. Most of the time is that of `outcomes`: without them, nothing
        is said of likely answers, and `change` is None.
        """
        desk, suggestion, said = Desk.checked(desk), self.suggest(), self._said(self._trace[-1])
        if suggestion is not None and suggestion.feature in self._pilots:
            return why_pilot(said, suggestion, desk)
        if suggestion is not None and self._advised is not None:
            return why_checked(self._state, suggestion, self._advised, desk)
        if suggestion is None:
            found = why_finished(self._state, said, self._stop, self._guarantee(), desk)
            if self._out and found["advice"] == "nothing left":
                names = ", ".join(desk.label(each["feature"]) for each in self._out)
                why = f"Wait for {names}: nothing more is worth ordering meanwhile."
                found |= {"advice": "wait", "reason": why, "text": why}
            handed = self._handed_over()
            if found["advice"] != "wait" and handed is not None and handed["advice"] == "hand over":
                why = f"Hand this case to a person: {handed['reason']}."
                found |= {"advice": "hand over", "reason": why, "text": why}
            return found
        return why_next(self._state, said, self._policy, suggestion, desk, outcomes)

    def answer(self, feature: str, value: Any) -> None:
        """Enter a value: a scalar, or a dict of columns for a group. The feature is charged at its current price.

        Any feature can be answered: the rules of the house say what is suggested, and what is known is known.
        """
        if feature in self._pilots:
            self._check_pilot(feature)
            given = _pilot_answer(feature, value)
            with self._all_or_nothing():
                self._record("answer", feature, given)
            return
        i = self._unknown_feature(feature)
        if not self._state.available[0, i]:
            raise InvalidInput(f"{feature!r} was marked as unavailable; undo() that first.")
        self._check_affordable(repr(feature), self._state.amounts_now[:, i])
        cells = np.full((1, len(self._schema.columns)), np.nan)
        cells[0, self._schema.feature_columns[i]] = self._schema.encode_feature(i, value)
        departure = self._departure or ("" if self._is_out(i) else self._departs_by(feature))
        with self._all_or_nothing():
            self._departure = departure
            self._out = [each for each in self._out if each["feature"] != feature]
            paid = self._state.receive(np.array([i]), cells)
            self._record("answer", feature, self._schema.show_feature(i, self._state.rows.values[0]), paid[0])

    def unavailable(self, feature: str) -> None:
        """Mark a feature as unavailable for this case; it is not suggested again and not charged."""
        if feature in self._pilots:
            self._check_pilot(feature)
            with self._all_or_nothing():
                self._record("unavailable", feature, None)
            return
        i = self._unknown_feature(feature)
        if not self._state.available[0, i]:
            raise InvalidInput(f"{feature!r} is marked as unavailable already.")
        with self._all_or_nothing():
            stop = None if self._advised is not None else self._stop
            if isinstance(stop, CalibratedStop) and not stop.conditions.missing[i]:
                self._departure = self._departure or f"{feature!r}, never missing at calibration, is unavailable"
            self._state.available[0, i] = False
            self._out = [each for each in self._out if each["feature"] != feature]
            if self._state.pending is not None:
                still = self._state.pending & self._state.available
                self._state.pending = still if still.any() else None
            self._record("unavailable", feature, None)

    def undo(self) -> None:
        """Take back the last answer or `unavailable`, and refund its price."""
        if not self._past:
            raise InvalidInput("There is nothing to undo: no feature has been answered or marked as unavailable yet.")
        self._state, self._trace, self._departure, self._out, self._time, self._advised = self._past.pop()
        self._thought = False

    def report(self) -> Report:
        """Everything about the case, ready for JSON.

        None means unknown (an uncertainty without members) or unlimited (the budget left); an infinite uncertainty is
        the string "infinite". With the rule of `calibrate_stop`, `guarantee` says what it promises, or why not for this
        case; it is `guaranteed` only once the rule has stopped the case, or nothing is left; `prediction_set` lists the
        classes that hold the true one with the coverage asked for (None where the guarantee is void). With that of
        `calibrate_handover`, `handover` holds the `advice` ("ask on", "decide" or "hand over") and its `reason`.
        """
        report: Report = {**self._now(), "trace": [self._step(step) for step in self._trace]}
        return _copied(report)

    def next(self, desk: Desk | None = None, outcomes: bool = True) -> Next:
        """What is said of the case as it stands, with `why` and `advice`, ready for JSON: `report` without its trace.

        `DynamicFeatureSelector.next` says the same of values, without a session.
        """
        why = self.why(desk, outcomes)
        found: Next = {**self._now(), "why": why, "advice": why["advice"]}
        return _copied(found)

    def _now(self) -> Now:
        suggestion, weighed = self.suggest(), self._state.weighed_now[0]
        free = dict.fromkeys(self._pilots, 0.0)
        priced = {**dict(zip(self._schema.features, weighed.tolist(), strict=True)), **free}
        stopped = suggestion is None or self._advised is not None
        return {
            **self._said(self._trace[-1]),
            "known": self.known,
            "unavailable": [self._schema.features[i] for i in np.flatnonzero(~self._state.available[0])],
            "spent": float(sum(step["cost"] for step in self._trace)),
            "budget_left": self.left,
            "resources": self.resources,
            "guarantee": self._guarantee(),
            "guaranteed": isinstance(self._stop, CalibratedStop) and stopped and not self._void(),
            "handover": self._handed_over(),
            "check": self._checked(),
            "pending": self._out,
            "pilot": self._pilot_answers(),
            "suggestion": None if suggestion is None else suggestion.feature,
            "ranking": [
                {"feature": name, "cost": cost, "weighed": priced[name], "gain": as_json(gain)}
                for name, cost, gain in (suggestion.ranking if suggestion else [])
            ],
        }

    def _record(self, event: str, feature: str | None, value: Any, paid: np.ndarray | None = None) -> None:
        amounts = np.zeros(len(self._state.prices.resources)) if paid is None else paid
        step = {"event": event, "feature": feature, "value": value, "cost": float(amounts[0]), "paid": amounts}
        step |= {"rows": self._state.rows, "complete": self._state.complete}
        if not self._quiet and (self._policy.reads_belief or self._stop is not None):
            step["state"] = self._described(self._state.belief, self._state.rows)
        self._trace.append(step)

    def _said(self, step: dict[str, Any]) -> State:
        """What is said about the case after a step; computed when it is read if choosing does not need it."""
        if "state" not in step:
            current = step is self._trace[-1]
            beliefs, rows = self._state.beliefs, step["rows"]
            past = None if current else beliefs.completed(beliefs.believe(rows), rows, step["complete"])
            step["state"] = self._described(past or self._state.belief, rows)
        found: State = step["state"]
        return found

    def _step(self, step: dict[str, Any]) -> Step:
        """An entry of the trace as a report has it."""
        return {
            "event": step["event"],
            "feature": step["feature"],
            "value": step["value"],
            "cost": step["cost"],
            "amounts": dict(zip(self._state.prices.resources[1:], step["paid"][1:].tolist(), strict=True)),
            **self._said(step),
        }

    def _described(self, belief: Belief, rows: EncodedRows) -> State:
        beliefs = self._state.beliefs
        found = beliefs.assess(belief, rows)
        state = described(beliefs.predictor.classes_, found)
        explained = beliefs.predictor.explain_encoded(rows)
        if explained is not None:  # what the rules say together, before it is calibrated, is among them
            state["rules"] = explained[0].as_dict(beliefs.predictor.classes_, beliefs.predictor.proba(rows)[0])
        if beliefs.novelty is not None and state["novelty"] != 0:
            state["outside"] = beliefs.novelty.describe(rows)[0]
        if beliefs.error_costs is not None:
            state["expected_error_cost"] = float((found.proba[0] @ beliefs.error_costs).min())
        unlike = unlike_training(state["outside"], state["novelty"])
        state["prediction_set"] = None if unlike else self._prediction_set(found.proba)
        return state

    def _departs_by(self, feature: str) -> str:
        """How answering `feature` leaves the path that the stop was calibrated for; empty if it does not."""
        if not isinstance(self._stop, CalibratedStop) or self._advised is not None:
            return ""
        suggestion = self._next()
        if suggestion is None:
            return f"{feature!r} was answered after the stop"
        now, names = self._state.weighed_now[0], (feature, suggestion.feature)
        free = all(now[self._schema.position(name)] == 0 for name in names)
        if feature == suggestion.feature or free:  # free features come first, in any order
            return ""
        return f"{feature!r} was answered instead of {suggestion.feature!r}"

    def _guarantee(self) -> str | None:
        if not isinstance(self._stop, CalibratedStop):
            return None
        void = self._void()
        return f"The guarantee does not hold for this case: {void}." if void else self._stop.promise

    def _void(self) -> str:
        """Why no promise holds for this case: how it left the calibrated path, or how it is unlike all of training."""
        said = self._said(self._trace[-1])
        return self._departure or unlike_training(said["outside"], said["novelty"])

    def _checked(self) -> Check | None:
        """What the check of the promise has found so far; None before the advice to stop, and in other cases."""
        return None if self._advised is None else checked(self._state, self._advised, self._departure)

    def _handed_over(self) -> HandoverAdvice | None:
        """Whether to ask on, decide, or hand the case to a person, and why; None without a rule for it."""
        if self._handover is None:
            return None
        if self.suggest() is not None:
            return {"advice": "ask on", "reason": "The case is still open."}
        beliefs, outside = self._state.beliefs, self._said(self._trace[-1])["outside"]
        void = self._departure or unlike_training(outside, None)  # how novel the whole is, the rule has weighed
        found = beliefs.assess(self._state.belief, self._state.rows)
        if void or self._handover.hands_over(found)[0]:
            return {"advice": "hand over", "reason": void or self._handover.reason}
        return {"advice": "decide", "reason": self._handover.promise}

    def _prediction_set(self, proba: np.ndarray) -> list[Any] | None:
        sets = self._stop.prediction_sets if isinstance(self._stop, CalibratedStop) else None
        if sets is None or self._departure:
            return None
        members = sets.members(proba, int(self._state.mask.sum()), stopped=self.suggest() is None)[0]
        return [plain(label) for label in self._state.beliefs.predictor.classes_[members]]

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """One step that can be undone; if it fails, the session is unchanged."""
        past = (self._state.copy(), list(self._trace), self._departure, self._out, self._time, self._advised)
        self._past.append(past)
        self._thought = False
        try:
            yield
            self._note_advice()
        except BaseException:
            self.undo()
            raise

    def _check_pilot(self, feature: str) -> None:
        if feature in self._pilots_known or feature in [step["feature"] for step in self._trace]:
            raise InvalidInput(f"{feature!r}, a pilot item, was asked already; undo() that first.")

    def _unknown_feature(self, feature: str) -> int:
        i = self._schema.position(feature)
        if self._state.mask[0, i]:
            value = self._schema.show_feature(i, self._state.rows.values[0])
            raise InvalidInput(f"{feature!r} is known already ({value!r}); undo() until it is unknown to change it.")
        return i


def _pilot_answer(name: str, value: Any) -> str | bool | int | float:
    """The answer to a pilot item, which no schema describes, as it was given."""
    usable = isinstance(value, str | bool | np.bool_) or (isinstance(value, Real) and np.isfinite(float(value)))
    if not usable:
        raise InvalidInput(
            f"The answer for {name!r} must be text, a finite number or a boolean; got {value!r}. "
            f"If there is none, call unavailable({name!r}) or leave it out."
        )
    found: str | bool | int | float = plain(value)
    return found


def _copied(found: T) -> T:
    """A copy as deep as `copy.deepcopy` makes, in a tenth of the time."""
    same: T = pickle.loads(pickle.dumps(found))
    return same


def described(classes: np.ndarray, found: Assessment) -> State:
    """The assessment of one case, ready for JSON (see `Session.report`)."""
    uncertainty = {name: as_json(float(values[0])) for name, values in found.uncertainty.as_dict().items()}
    novelty = uncertainty.pop("novelty")
    return {
        "prediction": plain(classes[found.decision[0]]),
        "probabilities": {str(label): float(p) for label, p in zip(classes, found.proba[0], strict=True)},
        "decision_is_final": float(found.decision_is_final[0]),
        "uncertainty": uncertainty,
        "novelty": novelty,
        "outside": [],
        "prediction_set": None,
    }


def _limited(left: float) -> float | None:
    return None if np.isinf(left) else float(left)


def as_json(number: float) -> JsonNumber:
    """A number for JSON: None where unknown, "infinite" where infinite."""
    if np.isnan(number):
        return None
    return number if np.isfinite(number) else "infinite"
