"""Progress bars on standard error, and reliable interruption by Ctrl-C."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from askwise.errors import InvalidInput

T = TypeVar("T")


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
    """Yield `items`, with a progress bar; ``"auto"`` shows one only on a terminal."""
    if show not in (True, False, "auto"):
        raise InvalidInput(f'progress must be True, False or "auto"; got {show!r}.')
    if show is False or (show == "auto" and not sys.stderr.isatty()):
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        for item in items:
            yield item
            bar.advance(task)
