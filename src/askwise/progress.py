"""A progress bar on standard error, for work that takes a while."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from askwise.errors import InvalidInput

T = TypeVar("T")


def track(items: Iterable[T], description: str, total: int | None, show: bool | str = "auto") -> Iterator[T]:
    """Yield `items`, with a bar while it lasts; ``"auto"`` shows one only on a terminal."""
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
