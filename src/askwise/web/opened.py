"""A case in memory: its session after so many events, and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from askwise.case import Reasons, Report
from askwise.case.session import Session
from askwise.table.desk import Desk
from askwise.web.store import CaseRow, Event


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
            probability(report),
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
        passed = (datetime.fromisoformat(at) - datetime.fromisoformat(self.created)).total_seconds() / 3600
        if kind == "answer":
            self._session.answer(str(feature), value)
        elif kind == "order":
            self._session.order(str(feature), value, max(passed, self._session.time))
        elif kind == "unavailable":
            self._session.unavailable(str(feature))
        elif kind == "undo":
            self._session.undo()
        self._session.at(max(passed, self._session.time))

    def advance(self, kind: str, at: str) -> None:
        """Count an event that was applied."""
        self.state = {"finish": "finished", "reopen": "open"}.get(kind, self.state)
        self.version, self.updated, self._view, self._why = self.version + 1, at, None, None

    def replay(self, events: Iterable[Event]) -> None:
        """Apply events from the database."""
        for event in events:
            self.apply(event.type, event.feature, event.value, event.at)
            self.advance(event.type, event.at)


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


def probability(report: Report) -> float:
    """The probability of the predicted class."""
    return float(report["probabilities"][str(report["prediction"])])
