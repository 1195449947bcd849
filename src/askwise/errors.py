"""The exceptions of askwise, those that the caller can fix among them, its warnings, and names as they show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

PAGES = (
    (r"calibrate_handover", "howto/handover.md"),
    (r"error_costs", "howto/error-costs.md"),
    (r"(calibrate_stop|stop|recall|subgroups|average_price|accuracy_gap|agreement)\b", "howto/stop.md"),
    (r"(costs|groups|Prices)\b", "howto/prices.md"),
    (r"(estimator|The wrapped|A wrapped function|wrap takes|wrap_regressor)\b", "howto/models.md"),
    (r"(adaptation|policy)=", "howto/tune.md"),
    (r"epistemic=", "howto/uncertainties.md"),
    (r"flowchart ", "howto/flowchart.md"),
    (r"For images|.*\bimages of (shape|\d)", "howto/images.md"),
    (r"The answer for|.*\bis unavailable\b", "howto/missing.md"),
    (r".*\b(damaged|signed|format \d|trust (it|them))\b", "reference/persistence.md"),
)
"""How messages begin, and the page of the guide, in docs, that explains what is behind them; the first one counts."""


def page_of(message: str) -> str:
    """The page of the guide that explains what a message is about; empty if none does.

    >>> page_of("costs: the price of 'iron' must be a finite number >= 0")
    'howto/prices.md'
    """
    return next((page for begins, page in PAGES if re.match(begins, message)), "")


class AskwiseError(Exception):
    """Base class of the errors that askwise raises.

    Below its message a traceback names the page of the guide that explains what is behind it, if there is one.

    Examples
    --------
    >>> from askwise import AskwiseError, Prices
    >>> try:
    ...     Prices([1.0, -2.0]).resolve(["age", "iron"])
    ... except AskwiseError as error:
    ...     print(str(error).partition(";")[0])
    costs: the price of 'iron' must be a finite number >= 0 (0 = free)
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        if page := page_of(str(self)):
            self.add_note(f"The guide explains it: docs/{page}")


class InvalidInput(AskwiseError, ValueError):  # noqa: N818 - a name of the public contract
    """A value given by the caller cannot be used; the message says which, why, and what to do.

    Examples
    --------
    >>> from askwise import InvalidInput, Prices
    >>> try:
    ...     Prices([1.0, -2.0]).resolve(["age", "iron"])
    ... except InvalidInput as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class AskwiseWarning(UserWarning):
    """Something that the caller should know about a result, such as a promise that does not cover it.

    Examples
    --------
    >>> import warnings
    >>> from askwise.errors import AskwiseWarning
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always", AskwiseWarning)
    ...     warnings.warn("the promise does not cover this case", AskwiseWarning)
    >>> str(said[0].message)
    'the promise does not cover this case'
    """


def did_you_mean(given: Any, known: Iterable[Any]) -> str:
    """A hint for a message, where `given` is a misspelt one of the names `known`; else empty.

    >>> did_you_mean("gredy", ["greedy", "rl", None])
    " Did you mean 'greedy'?"
    """
    names = [name for name in known if isinstance(name, str)]
    near = get_close_matches(given, names, 1) if isinstance(given, str) else []
    return f" Did you mean {near[0]!r}?" if near else ""


def listed(names: Iterable[Any], most: int = 20, spell: Callable[[Any], str] = repr) -> str:
    """Names for a message, with a long list truncated."""
    names = list(names)
    shown = ", ".join(spell(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


LONGEST_LABEL = 30

# Escape sequences and marks that turn the direction of writing: a name in a file must not command the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    """Text without control characters other than tabs and line ends: ESC becomes ``\\u001b``."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def short(text: Any, longest: int = LONGEST_LABEL) -> str:
    """A name on one line, cut where it is too long for a picture or a table."""
    line = escaped(" ".join(str(text).split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"
