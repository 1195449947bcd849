"""One case at a time: its session, what to acquire next, and why."""

from askwise.case.quick import QuickCase, QuickSelector
from askwise.case.results import Next, Reasons, Report
from askwise.case.session import Session, Suggestion
from askwise.case.suggested_set import SuggestedSet

__all__ = [
    "Next",
    "QuickCase",
    "QuickSelector",
    "Reasons",
    "Report",
    "Session",
    "SuggestedSet",
    "Suggestion",
]
