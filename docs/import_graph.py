"""Draw which room of askwise imports which into docs/architecture.md; `python docs/import_graph.py` rewrites the graph.

An arrow goes from a room to one that it imports when it is loaded or when it is called. What is implied by two other
arrows is left out, so that the picture can be read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "askwise"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- import graph: begin -->\n", "<!-- import graph: end -->"
LEAVES = "leaves"


def rooms() -> dict[str, set[str]]:
    """Room -> rooms that it imports. Top-level modules below the selector are one room, the leaves."""
    graph: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
        if room is not None:
            graph.setdefault(room, set()).update(room_of(name) for name in imports(path))
    return {room: {other for other in others if other not in (None, room)} for room, others in graph.items()}


def room_of(module: str) -> str | None:
    """The room of a module named below `askwise`."""
    first = module.split(".")[0]
    if first in ("", "__init__"):
        return None
    if (PACKAGE / first).is_dir() or first in ("selector", "tables", "plotting", "reference_models"):
        return first
    return LEAVES


def imports(path: Path) -> Iterator[str]:
    """Names below `askwise` that a file imports anywhere, except for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types:
            if node.module == "askwise":
                yield from (alias.name for alias in node.names if alias.name != "__version__")
            elif node.module.startswith("askwise."):
                yield node.module.removeprefix("askwise.")


def implied(graph: dict[str, set[str]], room: str, other: str) -> bool:
    """Whether `other` is reached from `room` through a third room."""
    reached, todo = set(), [third for third in graph[room] if third != other]
    while todo:
        third = todo.pop()
        if third not in reached:
            reached.add(third)
            todo += graph.get(third, ())
    return other in reached


def mermaid() -> str:
    """The graph as Mermaid draws it."""
    graph = rooms()
    arrows = [
        f"    {room} --> {other}" for room in graph for other in sorted(graph[room]) if not implied(graph, room, other)
    ]
    return "\n".join(["```mermaid", "graph TD", *arrows, "```", ""])


def page_with_graph(text: str) -> str:
    """`text` of the page with the graph between its marks replaced by the present one."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + mermaid() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with_graph(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
