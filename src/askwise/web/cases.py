"""Cases: their events replayed through a `Session`, kept in memory by version."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakValueDictionary

from askwise import __version__
from askwise.case import Reasons, Report
from askwise.case.session import Session
from askwise.errors import InvalidInput
from askwise.table.desk import Desk
from askwise.web.checks import Checks
from askwise.web.description import Description
from askwise.web.failures import Refused, no_case
from askwise.web.logs import log
from askwise.web.messages import NewCase, NewEvent, NextCase
from askwise.web.store import CaseRow, Conflict, Event, Key, KeyTaken, Store, now

MOST_HOURS = 100_000
MOST_KEPT = 500
"""Cases kept in memory by a process; others are replayed from their events."""


class Opened:
    """A case in memory.

    Parameters
    ----------
    label
        What the case is called.
    start, session
        The first event, and the session that it has started.
    desk
        The words for `Session.why`.

    Attributes
    ----------
    id, label, created, by, model
        Of the case: what its first event says.
    checked
        Whether it was drawn to check the promise.
    version, state, updated
        After the last event.
    """

    def __init__(self, label: str, start: Event, session: Session, desk: Desk) -> None:
        self.id, self.label, self.created, self.by, self.model = start.case_id, label, start.at, start.by, start.model
        self.version, self.state, self.updated = start.version, "open", start.at
        self.checked = bool(start.value.get("checked"))
        self._has_deadline = start.value.get("deadline") is not None
        self._session, self._desk = session, desk
        self._view: dict[str, Any] | None = None
        self._why: Reasons | None = None

    @property
    def view(self) -> dict[str, Any]:
        """The case, ready for JSON; computed once per version, and never changed afterwards."""
        if self._view is None:
            why = self._session.why(self._desk, outcomes=False)
            report = _promised(self._session.report(), self.state)
            report["pending"] = [self._at_the_clock(each) for each in report["pending"]]
            names = ("id", "label", "version", "state", "created", "updated", "by", "model")
            shown = {name: getattr(self, name) for name in names}
            shown |= {"prices": self._session.prices, "amounts": self._session.amounts}
            self._view = {**shown, "report": report, "why": why, "advice": why["advice"]}
        return self._view

    @property
    def why(self) -> Reasons:
        """Why this feature comes next, with its likely answers; computed once per version."""
        if self._why is None:
            self._why = self._session.why(self._desk)
        return self._why

    @property
    def row(self) -> CaseRow:
        """The case in the list."""
        report = self.view["report"]
        return CaseRow(
            self.id,
            self.label,
            self.version,
            self.state,
            self.created,
            self.updated,
            report["prediction"],
            _probability(report),
            report["spent"],
        )

    def _at_the_clock(self, pending: Any) -> Any:
        """A result that is out, with the times of the clock."""
        start = datetime.fromisoformat(self.created)
        clock = {
            f"{name}_at": None if pending[name] is None else (start + timedelta(hours=pending[name])).isoformat()
            for name in ("ordered", "expected")
        }
        return {**pending, **clock}

    def apply(self, kind: str, feature: str | None, value: Any, at: str) -> None:
        """What an event of a time does to the session; if that fails, nothing is changed."""
        if kind == "answer":
            self._session.answer(str(feature), value)
        elif kind == "order":
            self._session.order(str(feature), value, self._hours(at))
        elif kind == "unavailable":
            self._session.unavailable(str(feature))
        elif kind == "undo":
            self._session.undo()
        if self._has_deadline:  # nothing else depends on the time
            self._session.at(self._hours(at))

    def _hours(self, at: str) -> float:
        """Hours since the start; clocks may go back, a session does not."""
        passed = datetime.fromisoformat(at) - datetime.fromisoformat(self.created)
        return max(passed.total_seconds() / 3600, self._session.time)

    def advance(self, kind: str, at: str) -> None:
        """Count an event that was applied."""
        self.state = {"finish": "finished", "reopen": "open"}.get(kind, self.state)
        self.version, self.updated, self._view, self._why = self.version + 1, at, None, None

    def replay(self, events: Iterable[Event]) -> None:
        """Apply events from the database."""
        for event in events:
            self.apply(event.type, event.feature, event.value, event.at)
            self.advance(event.type, event.at)


class Cases:
    """The cases of one selector and one database.

    Parameters
    ----------
    selector, description
        The selector, and its words.
    store
        The database.
    at_once
        How many threads may compute at a time: more than there are cores only delay each other.
    replayed
        Called for every case that is computed from its first event.
    checks
        Which cases are checked; by default none is drawn.
    """

    def __init__(
        self,
        selector: Any,
        description: Description,
        store: Store,
        at_once: int = 1,
        replayed: Callable[[], None] = lambda: None,
        checks: Checks | None = None,
    ) -> None:
        self._selector = selector
        self._description = description
        self._features = frozenset([*selector.schema_.features, *description.pilots])
        self._store = store
        self._kept: OrderedDict[str, Opened] = OrderedDict()
        self._locks: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._guard = threading.Lock()
        self._computing = threading.Semaphore(at_once)
        self._replayed = replayed
        self._checks = checks or Checks(selector, description.model, store)

    def start(self, request: NewCase, by: str, key: Key | None = None) -> dict[str, Any]:
        """Start a case."""
        self._check_values(request.known, request.confirmed, "known")
        budget = self._budget(request)
        value = {"known": dict(request.known), "budget": budget}
        if request.deadline is not None:
            value["deadline"] = float(request.deadline)
        case_id = uuid.uuid4().hex
        if self._checks.draws(case_id, request.known, request.deadline, self._stop(budget)):
            value["checked"] = True
        start = self._event(case_id, 1, "start", by, value=value, confirmed=request.confirmed)
        with self._computing, _refusals("known"):
            opened = Opened(request.label, start, self._session(start), self._description.desk)
            _ = opened.view
        self._store.create(opened.row, _with_outcome(start, opened), _key_for(key, start))
        self._keep(opened)
        return opened.view

    def next(self, request: NextCase) -> dict[str, Any]:
        """What to do next in a case that is kept elsewhere; nothing is stored."""
        for field in ("known", "answers"):
            self._check_values(getattr(request, field), request.confirmed, field)
        for field in ("unavailable", "pending"):
            for k, feature in enumerate(getattr(request, field)):
                self._check_feature(feature, f"{field}.{k}")
        budget = self._budget(request)
        later = request.answers or request.unavailable or request.pending
        with self._computing, _refusals("answers" if later else "known"):
            found = self._selector.next(
                dict(request.known),
                dict(request.answers),
                unavailable=request.unavailable,
                pending=request.pending,
                budget=budget,
                deadline=request.deadline,
                stop=self._stop(budget),
                desk=self._description.desk,
                outcomes=request.outcomes,
            )
        return {**found, "model": self._description.model}

    def add(self, case_id: str, request: NewEvent, by: str, key: Key | None = None) -> dict[str, Any]:
        """Add an event to a case; of two for the same version, one is added and the other refused."""
        with self._lock(case_id):
            opened = self._seen(case_id, request.version)
            if request.version != opened.version:
                raise _conflict(opened)
            self._check(request, opened.state)
            event = self._carry_out(request, by, opened)
            try:
                self._store.append(opened.row, event, _key_for(key, event))
            except Conflict:  # another process was faster, or has deleted the case
                raise _conflict(self._open(self._row(case_id))) from None
            self._keep(opened)
            return opened.view

    def view(self, case_id: str, version: int | None = None) -> dict[str, Any]:
        """A case as it is now, or as it was at a version."""
        with self._lock(case_id):
            row = self._row(case_id)
            if version is None or version == row.version:
                return self._open(row).view
            return self._replay(row.label, self._events(case_id)[:version]).view

    def why(self, case_id: str) -> dict[str, Any]:
        """Why the next feature of a case comes next, with its likely answers."""
        with self._lock(case_id):
            opened = self._open(self._row(case_id))
            with self._computing:
                return {"version": opened.version, **opened.why}

    def delete(self, case_id: str, by: str) -> None:
        """Delete a case for good; the trail keeps that it was."""
        with self._lock(case_id):
            self._drop(case_id)
            if not self._store.delete(case_id, self._event(case_id, 0, "deleted", by)):
                raise no_case(case_id)

    def once(self, key: Key | None, act: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """What `act` returns, and whether it had been done before with the same idempotency key."""
        if key is None:
            return act(), False
        found = self._store.used(key.by, key.key)
        if found is None:
            try:
                return act(), False
            except (KeyTaken, Refused):  # the same request may have been carried out at the same moment
                found = self._store.used(key.by, key.key)
                if found is None:
                    raise
        if found.digest is None:
            raise no_case(found.case_id)
        if found.digest != key.digest:
            raise Refused(422, "The key was used for another request; choose a new one.", "Idempotency-Key")
        return self.view(found.case_id, found.version), True

    def _carry_out(self, request: NewEvent, by: str, opened: Opened) -> Event:
        """Change the case in memory, which is no longer kept until the event is written."""
        before = opened.view["report"]
        named = request.type in ("answer", "order", "unavailable")
        answered = request.type == "answer"
        value = request.value if answered or request.type == "order" else None
        if request.type == "finish" and self._is_checked(opened.checked, opened.model):
            value = self._checks.outcome(before)
        at = now()
        with self._computing, _refusals(_field(request, before)):
            opened.apply(request.type, request.feature, request.value, at)
            self._drop(opened.id)
            event = self._event(
                opened.id,
                opened.version + 1,
                request.type,
                by,
                feature=request.feature if named else None,
                value=value,
                confirmed=answered and request.confirmed,
                suggested=before["suggestion"],
                at=at,
            )
            opened.advance(event.type, event.at)
            return _with_outcome(event, opened, before["spent"])

    def _seen(self, case_id: str, version: int) -> Opened:
        """The case as it is in memory, if that is the version that was seen; whether it is the last, writing shows."""
        with self._guard:
            kept = self._kept.get(case_id)
        return kept if kept is not None and kept.version == version else self._open(self._row(case_id))

    def _row(self, case_id: str) -> CaseRow:
        row = self._store.case(case_id)
        if row is None:
            self._drop(case_id)
            raise no_case(case_id)
        return row

    def _open(self, row: CaseRow) -> Opened:
        """The case at the version of `row`: from memory, with events that other processes have added."""
        with self._guard:
            kept = self._kept.pop(row.id, None)
        if kept is None or kept.version > row.version:
            kept = self._replay(row.label, self._events(row.id))
        elif kept.version < row.version:
            events = self._events(row.id, after=kept.version)
            with self._computing, _replaying(kept.model):
                kept.replay(events)
                _ = kept.view
        self._keep(kept)
        return kept

    def _replay(self, label: str, events: list[Event]) -> Opened:
        self._replayed()
        with self._computing, _replaying(events[0].model):
            opened = Opened(label, events[0], self._session(events[0]), self._description.desk)
            opened.replay(events[1:])
            _ = opened.view
        return opened

    def _events(self, case_id: str, after: int = 0) -> list[Event]:
        """The events of a case; another process may have deleted it after its row was read."""
        events = self._store.events(case_id, after)
        if not events or events[-1].type == "deleted":
            raise no_case(case_id)
        return events

    def _session(self, start: Event) -> Session:
        """A session with what was known."""
        given, stop = start.value, self._stop(start.value["budget"])
        check = stop is not None and self._is_checked(start.value.get("checked"), start.model)
        session: Session = self._selector.start(given["known"], given["budget"], stop, given.get("deadline"), check)
        return session

    def _budget(self, request: NewCase | NextCase) -> Any:
        """The budget of a request as events keep it; refused if the prices have no such resource."""
        given = request.budget
        budget = {name: float(most) for name, most in given.items()} if isinstance(given, dict) else given
        with _refusals("budget"):
            self._selector.prices_.limits(budget, 1)
        return float(budget) if isinstance(budget, int | float) else budget

    def _is_checked(self, drawn: Any, model: str) -> bool:
        """Whether a case checks the promise: it was drawn, by the selector whose promise that is."""
        return bool(drawn) and model == self._description.model

    def _stop(self, budget: Any) -> Any:
        """The calibrated stop, if it was calibrated for this budget."""
        stop, prices = getattr(self._selector, "stop_", None), self._selector.prices_
        if stop is None:
            return None
        limits = prices.limits(self._selector.budget if budget is None else budget, 1)
        return stop if (limits == prices.limits(stop.conditions.budget, 1)).all() else None

    def _event(self, case_id: str, version: int, kind: str, by: str, **given: Any) -> Event:
        return Event(case_id, version, kind, by, given.pop("at", now()), self._description.model, __version__, **given)

    def _check_values(self, given: Mapping[str, Any], confirmed: bool, field: str) -> None:
        for feature, value in given.items():
            self._check_feature(feature, f"{field}.{feature}")
            if not confirmed:
                self._check_usual(feature, value, f"{field}.{feature}")

    def _check(self, request: NewEvent, state: str) -> None:
        if request.type == "reopen" and state == "open":
            raise Refused(422, "The case is open already.", "type")
        if request.type != "reopen" and state == "finished":
            raise Refused(422, "The case is finished; reopen it first.", "type")
        if request.type in ("answer", "order", "unavailable"):
            self._check_feature(request.feature, "feature")
        if request.type == "order" and request.value is not None:
            hours = request.value
            if not isinstance(hours, int | float) or isinstance(hours, bool) or not 0 <= hours <= MOST_HOURS:
                raise Refused(422, f"value must be hours, a number from 0 to {MOST_HOURS}, or null.", "value")
        if request.type == "answer":
            if request.value is None:
                raise Refused(422, "An answer needs a value. If there is none, send unavailable.", "value")
            if not request.confirmed:
                self._check_usual(str(request.feature), request.value, "value")

    def _check_feature(self, feature: str | None, field: str) -> None:
        if feature not in self._features:
            raise Refused(422, f"There is no feature {feature!r}; /api/selector lists them.", field)

    def _check_usual(self, feature: str, value: Any, field: str) -> None:
        message = self._description.unusual(feature, value)
        if message is not None:
            raise Refused(428, message, field, needs="confirmation")

    def _lock(self, case_id: str) -> Any:
        """The lock of a case; it is gone when nobody holds or awaits it."""
        with self._guard:
            return self._locks.setdefault(case_id, threading.Lock())

    def _keep(self, opened: Opened) -> None:
        with self._guard:
            self._kept[opened.id] = opened
            self._kept.move_to_end(opened.id)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def _drop(self, case_id: str) -> None:
        with self._guard:
            self._kept.pop(case_id, None)


def _promised(report: Report, state: str) -> Report:
    """The report with what is guaranteed for the case as it is, and if nothing, why not."""
    text = report["guarantee"]
    if text is None:
        return report
    if report["guaranteed"] or "does not hold" in text:
        return report
    early = "No guarantee: the case was finished before the stopping rule stopped it."
    yet = f"No guarantee yet. Once the stopping rule has stopped the case: {text}"
    return {**report, "guarantee": early if state == "finished" else yet}


def _probability(report: Report) -> float:
    """The probability of the predicted class."""
    return float(report["probabilities"][str(report["prediction"])])


@contextmanager
def _replaying(model: str) -> Iterator[None]:
    """Tell a client of a case that cannot be replayed, because the selector is another one now."""
    try:
        yield
    except InvalidInput as error:
        message = f"The case was recorded with another model ({model}), and this one refuses it"
        raise Refused(409, f"{message}: {error} Its trail can be exported.") from None


@contextmanager
def _refusals(field: str) -> Iterator[None]:
    """Tell a client what is wrong with a field, also where only the wrapped model finds it, such as a huge number."""
    try:
        yield
    except InvalidInput as error:
        raise Refused(422, str(error), field) from None
    except (ArithmeticError, TypeError, ValueError) as error:
        log("value refused by the model", logging.WARNING, error)
        raise Refused(422, "The model does not take this value.", field) from None


def _with_outcome(event: Event, opened: Opened, spent: float = 0.0) -> Event:
    """The event with what is predicted after it, and what it cost."""
    report = opened.view["report"]
    return replace(
        event, cost=report["spent"] - spent, prediction=report["prediction"], probability=_probability(report)
    )


def _key_for(key: Key | None, event: Event) -> Key | None:
    return None if key is None else Key(key.by, key.key, key.digest, event.case_id, event.version)


def _conflict(opened: Opened) -> Refused:
    message = f"The case has changed since: its version is {opened.version}. Look at it before you go on."
    return Refused(409, message, "version", case=opened.view)


def _field(request: NewEvent, report: Mapping[str, Any]) -> str:
    """The field of a request that a session has refused."""
    if request.type == "undo":
        return "type"
    unusable = request.feature in report["known"] or request.feature in report["unavailable"]
    return "feature" if unusable or request.type == "unavailable" else "value"
