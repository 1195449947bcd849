"""Progress bars on standard error, and reliable interruption by Ctrl-C."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from askwise.errors import InvalidInput

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
_shown: ContextVar[Progress | None] = ContextVar("bars", default=None)


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C end the block, even where scikit-learn's MLP would only stop its own training and continue."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Training interrupted by user", UserWarning)
        try:
            yield
        except UserWarning as warning:
            if isinstance(warning.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise


def track(items: Iterable[T], description: str, total: int | None, show: bool | str = "auto") -> Iterator[T]:
    """Yield `items`, with a progress bar and the time that is probably left; ``"auto"`` shows one only on a terminal.

    Inside of another one, it is a further line of that.
    """
    if show not in (True, False, "auto"):
        raise InvalidInput(f'progress must be True, False or "auto"; got {show!r}.')
    if total == 1 or show is False or (show == "auto" and not sys.stderr.isatty()):  # of one, there is no part to show
        yield from items
        return
    with _bars() as bars:
        task = bars.add_task(description, total=total)
        try:
            for item in items:
                yield item
                bars.advance(task)
        finally:
            bars.remove_task(task)


@contextmanager
def showing(bars: Progress) -> Iterator[None]:
    """Let `track` add its lines to `bars`, of which a terminal can show one at a time."""
    _shown.set(bars)
    try:
        yield
    finally:
        _shown.set(None)


@contextmanager
def _bars() -> Iterator[Progress]:
    """The bars that are shown already, or new ones."""
    shown = _shown.get()
    if shown is not None:
        yield shown
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars, showing(bars):
        yield bars
