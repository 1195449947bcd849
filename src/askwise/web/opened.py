"""A case in memory: its session after so many events, and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from askwise.acquire.session import Session
from askwise.web.store import CaseRow, Event


class Opened:
    """A case in memory.

    Attributes
    ----------
    id, label, created, by, model
        Of the case: what its first event says.
    version, state, updated
        After the last event.
    """

    def __init__(self, label: str, start: Event, session: Session) -> None:
        self.id, self.label, self.created, self.by, self.model = start.case_id, label, start.at, start.by, start.model
        self.version, self.state, self.updated = start.version, "open", start.at
        self.session = session
        self._view: dict[str, Any] | None = None

    @property
    def view(self) -> dict[str, Any]:
        """The case, ready for JSON; computed once per version, and never changed afterwards."""
        if self._view is None:
            report = self.session.report()
            names = ("id", "label", "version", "state", "created", "updated", "by", "model")
            shown = {name: getattr(self, name) for name in names}
            self._view = {**shown, "report": report, "why": _why(self.session), "advice": _advice(self.session)}
        return self._view

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

    def apply(self, kind: str, feature: str | None, value: Any) -> None:
        """What an event does to the session; if that fails, nothing is changed."""
        if kind == "answer":
            self.session.answer(str(feature), value)
        elif kind == "unavailable":
            self.session.unavailable(str(feature))
        elif kind == "undo":
            self.session.undo()

    def advance(self, kind: str, at: str) -> None:
        """Count an event that was applied."""
        self.state = {"finish": "finished", "reopen": "open"}.get(kind, self.state)
        self.version, self.updated, self._view = self.version + 1, at, None

    def replay(self, events: Iterable[Event]) -> None:
        """Apply events from the database."""
        for event in events:
            self.apply(event.type, event.feature, event.value)
            self.advance(event.type, event.at)


def probability(report: dict[str, Any]) -> float:
    """The probability of the predicted class."""
    return float(report["probabilities"][str(report["prediction"])])


def _why(session: Session) -> dict[str, Any]:
    """Why the suggested feature, or why to stop."""
    if hasattr(session, "why"):
        found: dict[str, Any] = session.why()
        return found
    suggestion = session.suggest()
    if suggestion is None:
        return {"text": "Nothing more is worth its price, or nothing is left to ask."}
    return {"text": f"{suggestion.feature} is expected to tell the most for its price."}


def _advice(session: Session) -> str:
    if session.suggest() is not None:
        return "ask"
    return "stop" if session.can_continue() else "nothing left"
