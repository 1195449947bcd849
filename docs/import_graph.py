"""Draw the import graph of the packages in docs/project/architecture.md; `python docs/import_graph.py` rewrites it.

An arrow goes from a package to one that it imports, at import time or in a function. An arrow implied by two others
is left out for readability.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "askwise"
COMPARISONS = ROOT / "research" / "src" / "askwise_bench"
PAGE = ROOT / "docs" / "project" / "architecture.md"
BEGIN, END = "<!-- import graph: begin -->\n", "<!-- import graph: end -->"
LEAVES = "leaves"
LEAF_MODULES = {"errors", "files", "locking", "metrics", "parameters", "progress", "randomness", "uncertainty"}
HANDED_OVER = {("acquirer", "persistence"), ("table", "persistence")}
"""`save` of everything that acquires, and `Desk.load`, hand over when they are called to the package on top of them."""


def packages() -> dict[str, set[str]]:
    """Package or module -> those that it imports. Modules that import no package count as one, the leaves.

    The second distribution counts as one package.
    """
    graph: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        package = package_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
        if package is not None:
            graph.setdefault(package, set()).update(package_of(name) for name in imports(path))
    used = {package_of(name) for path in COMPARISONS.rglob("*.py") for name in imports(path)}
    graph = {COMPARISONS.name: used, **graph}
    return {
        package: {other for other in others if other not in (None, package) and (package, other) not in HANDED_OVER}
        for package, others in graph.items()
    }


def package_of(module: str) -> str | None:
    """The package of a module named below `askwise`."""
    first = module.split(".")[0]
    if first in ("", "__init__", "__main__"):
        return None
    present = (PACKAGE / first).is_dir() or (PACKAGE / f"{first}.py").is_file()
    return first if present and first not in LEAF_MODULES else LEAVES


def imports(path: Path) -> Iterator[str]:
    """Names below `askwise` that a file imports anywhere, except under TYPE_CHECKING."""
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


def implied(graph: dict[str, set[str]], package: str, other: str) -> bool:
    """Whether `other` is reached from `package` through a third package."""
    reached, todo = set(), [third for third in graph[package] if third != other]
    while todo:
        third = todo.pop()
        if third not in reached:
            reached.add(third)
            todo += graph.get(third, ())
    return other in reached


def mermaid() -> str:
    """The graph in Mermaid syntax."""
    graph = packages()
    arrows = [
        f"    {package} --> {other}"
        for package in graph
        for other in sorted(graph[package])
        if not implied(graph, package, other)
    ]
    return "\n".join(["```mermaid", "graph TD", *arrows, "```", ""])


def page_with_graph(text: str) -> str:
    """`text` of the page with the graph between its marks replaced by the present one."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + mermaid() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with_graph(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
