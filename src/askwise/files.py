"""Atomic file writes: a file is complete or absent, even if the process is killed or the disk is full."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from askwise.errors import AskwiseError


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
def writing(target: Path) -> Iterator[None]:
    """Tell a user of a failure to write `target` in one sentence."""
    try:
        yield
    except OSError as error:
        raise AskwiseError(f"{target} cannot be written: {error}. Choose another place.") from None
