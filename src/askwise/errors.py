"""The exceptions of askwise: a base class, and a subclass for errors that the caller can fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class AskwiseError(Exception):
    """Base class of the errors that askwise raises."""


class InvalidInput(AskwiseError, ValueError):  # noqa: N818 - a name of the public contract
    """A value given by the caller cannot be used; the message says which, why, and what to do."""


def listed(names: Iterable[Any], most: int = 20, spell: Callable[[Any], str] = repr) -> str:
    """Names for a message, with a long list truncated."""
    names = list(names)
    shown = ", ".join(spell(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
