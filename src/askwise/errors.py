"""The exceptions of askwise: one root, and one child for what the caller can mend."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class AskwiseError(Exception):
    """Root of every error that askwise raises on purpose."""


class InvalidInput(AskwiseError, ValueError):  # noqa: N818 - a name of the public contract
    """A value given by the caller cannot be used; the message says whose, why, and what to do."""


def listed(names: Iterable[Any], most: int = 20, spell: Callable[[Any], str] = repr) -> str:
    """Names for a message, a long list cut short."""
    names = list(names)
    shown = ", ".join(spell(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
