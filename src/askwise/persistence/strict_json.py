"""JSON that was written by somebody else: no repeated keys, no NaN, no deep nesting, nothing too large."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from askwise.errors import InvalidInput

DEEPEST = 100


def read_json(content: bytes, name: str, deepest: int = DEEPEST) -> Any:
    """The value of a JSON file; an error that names the file if it is not plain JSON.

    The work grows in proportion to the size: one pass of the json module, which stops at the interpreter's limit of
    recursion, and one over the values.
    """
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except RecursionError:
        raise _too_deep(name, deepest) from None
    except ValueError as error:
        raise InvalidInput(f"{name} is not valid JSON ({error}); it is truncated or not from askwise.") from None
    level, depth = [found], 0
    while level := [value for value in level if isinstance(value, dict | list)]:
        depth += 1
        if depth > deepest:
            raise _too_deep(name, deepest)
        level = [part for value in level for part in (value.values() if isinstance(value, dict) else value)]
    return found


def write_json(value: Any, indent: int | None = None) -> bytes:
    """JSON that `read_json` reads."""
    return json.dumps(value, allow_nan=False, indent=indent, ensure_ascii=False).encode("utf-8")


def _too_deep(name: str, deepest: int) -> InvalidInput:
    return InvalidInput(f"{name} is nested more than {deepest} levels deep; it was not written by askwise.")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is repeated")
    return found
