"""Logs as JSON, one object per line, without values of cases: no query strings, no messages of errors."""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("askwise.web")


class JsonLines(logging.Formatter):
    """One JSON object per record; of an error or a warning, its type and where it happened.

    Parameters
    ----------
    values
        Whether the messages of errors and warnings are logged too; they can hold values of cases.
    """

    def __init__(self, values: bool = False) -> None:
        super().__init__()
        self._values = values

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "event": self._event(record)}
        line.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[1] is not None:
            line.update(self._error(record.exc_info[1]))
        return json.dumps(line)

    def _event(self, record: logging.LogRecord) -> str:
        """What is logged; of a Python warning, its kind and where it was given."""
        text = record.getMessage()
        if record.name != "py.warnings" or self._values:
            return text
        found = re.match(r".*?:\d+: \w+", text)
        return found[0] if found else "warning"

    def _error(self, error: BaseException) -> dict[str, Any]:
        frames = traceback.extract_tb(error.__traceback__)
        found: dict[str, Any] = {
            "error": type(error).__name__,
            "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
        }
        return {**found, "message": str(error)} if self._values else found


def configure(values: bool = False) -> None:
    """Send the records of every library to standard error, as JSON lines; the access log is `askwise.web`'s own."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(values))
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "alembic", "sqlalchemy"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"
        logger.setLevel(logging.INFO if name.startswith("uvicorn") else logging.WARNING)


def log(event: str, level: int = logging.INFO, error: BaseException | None = None, **fields: Any) -> None:
    """One line."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)
