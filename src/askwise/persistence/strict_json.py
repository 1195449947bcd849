"""JSON that was written by somebody else: no repeated keys, no NaN, no deep nesting, nothing too large."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from askwise.errors import InvalidInput

DEEPEST = 100
_OUTSIDE_OF_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)


def read_json(content: bytes, name: str, deepest: int = DEEPEST) -> Any:
    """The value of a JSON file; an error that names the file if it is not plain JSON."""
    depth = 0
    for found in _OUTSIDE_OF_TEXT.finditer(content):
        depth += (found.group(1) is not None) - (found.group(2) is not None)
        if depth > deepest:
            raise InvalidInput(f"{name} is nested more than {deepest} levels deep; it was not written by askwise.")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is not valid JSON ({error}); it is truncated or not from askwise.") from None


def write_json(value: Any, indent: int | None = None) -> bytes:
    """JSON that `read_json` reads."""
    return json.dumps(value, allow_nan=False, indent=indent, ensure_ascii=False).encode("utf-8")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is repeated")
    return found
