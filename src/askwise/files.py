"""Atomic file writes: a file is complete or absent, even if the process is killed or the disk is full."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from askwise.errors import AskwiseError
from askwise.locking import LockHeldError, file_lock


def write_whole(target: Path, content: str | bytes) -> None:
    """Write under another name in the same folder, then rename; an error (OSError) leaves nothing behind."""
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        if isinstance(content, str):
            part.write_text(content, encoding="utf-8")
        else:
            part.write_bytes(content)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def only_writer(target: Path) -> Iterator[None]:
    """Keep other runs, which would share the unfinished parts of this one, from writing `target` at the same time."""
    path = target.with_name(f".{target.name}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(path, wait=False))
        except LockHeldError:
            raise AskwiseError(
                f"Another run is writing to {target}. Wait until it has ended, or choose another output."
            ) from None
        except OSError as error:
            raise AskwiseError(f"{target} cannot be written: {error}. Choose another place.") from None
        try:
            yield
        finally:
            with suppress(OSError):  # not every system removes what is open; the lock ends anyway
                path.unlink()


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Tell a user of a failure to write `target` in one sentence."""
    try:
        yield
    except OSError as error:
        raise AskwiseError(f"{target} cannot be written: {error}. Choose another place.") from None
