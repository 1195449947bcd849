"""Files that are there whole or not at all, whoever is killed or runs out of room."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(target: Path, content: str | bytes) -> None:
    """Write under another name in the same folder, then rename; what goes wrong (an OSError) leaves nothing behind."""
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        if isinstance(content, str):
            part.write_text(content, encoding="utf-8")
        else:
            part.write_bytes(content)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
