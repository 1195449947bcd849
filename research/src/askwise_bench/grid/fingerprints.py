"""A fingerprint of the code behind a number: what a method's fit, the study and the drawing of its task can reach.

Starting from the method's entry in the table of methods, names are followed through the imports within the sources. A
method of a class that is reached counts if its name is used anywhere in what is reached. That is more than what runs,
and never less but for names that are put together at run time. So a fingerprint that fits says that nothing behind the
number has changed; one that does not fit says that only computing the number again can tell. Docstrings, comments,
annotations of functions, the wording of errors and the module in which a definition stands do not count.
"""

from __future__ import annotations

import ast
import hashlib
import io
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

import askwise
import askwise_bench
from askwise.errors import InvalidInput

CALLED_FROM_OUTSIDE = {"forward", "fit", "predict", "predict_proba", "decision_function", "transform", "get_params"}
"""Names by which other packages call what they are given."""

TABLES = {"METHODS", "TABULAR", "IMAGE_METHODS", "IMAGE_VARIANTS", "SUITES"}
"""Of methods and suites by name: only the entry of the method in question counts."""

STARTS = {"grid.methods": "fit_method", "grid.tasks": "make_task"}
LENGTH = 12


@dataclass(frozen=True, eq=False)
class Unit:
    """A definition at the top of a module, a method of a class, or the rest of a class."""

    module: str
    name: str
    nodes: tuple[ast.AST, ...]

    @cached_property
    def names(self) -> set[str]:
        """Plain names that it uses."""
        return {node.id for node in self._all() if isinstance(node, ast.Name)}

    @cached_property
    def attributes(self) -> set[str]:
        """Names of attributes that it uses, and texts that may be such, as in `getattr`."""
        found = {node.attr for node in self._all() if isinstance(node, ast.Attribute)}
        texts = (node.value for node in self._all() if isinstance(node, ast.Constant))
        return found | {text for text in texts if isinstance(text, str) and text.isidentifier()}

    @cached_property
    def said(self) -> str:
        """What it says, without what cannot change a number."""
        return "\n".join([self.name, *(ast.dump(node) for node in self.nodes)])

    def _all(self) -> Iterator[ast.AST]:
        return (found for node in self.nodes for found in ast.walk(node))


@dataclass(eq=False)
class Module:
    """The definitions of a module by name, the methods of its classes, what its imports mean, and entries of tables."""

    definitions: dict[str, Unit] = field(default_factory=dict)
    methods: dict[str, dict[str, Unit]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    entries: dict[str, Unit] = field(default_factory=dict)


class Sources:
    """Python sources by the name of their module."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.modules = {name: _parsed(name, text) for name, text in texts.items()}
        self.entries = {name: unit for module in self.modules.values() for name, unit in module.entries.items()}
        self._known: dict[tuple[str, str], str | None] = {}

    @classmethod
    def in_folders(cls, folders: Mapping[str, Path]) -> Sources:
        """Those of packages by name, each in its folder."""
        texts = {}
        for package, folder in folders.items():
            for path in sorted(folder.rglob("*.py")):
                inside = path.relative_to(folder).parts[:-1]
                texts[_module_name((package, *inside), path.stem)] = path.read_text(encoding="utf-8")
        return cls(texts)

    @classmethod
    def at(cls, commit: str, repository: Path) -> Sources:
        """Those of a commit, wherever the benchmark stood in it."""
        git = ["git", "-C", str(repository), "archive", "--format=tar", commit]
        made = subprocess.run(git, capture_output=True, check=False)
        if made.returncode:
            raise InvalidInput(
                f"The sources of commit {commit!r} cannot be read from {repository}: {made.stderr.decode().strip()}. "
                "Run this in a clone of the repository that has the commit."
            )
        texts = {}
        with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                if path.suffix == ".py" and "src" in path.parts[:2]:
                    file = archive.extractfile(member)
                    assert file is not None
                    inside = path.parts[path.parts.index("src") + 1 :]
                    texts[_module_name(inside[:-1], path.stem)] = file.read().decode()
        return cls(texts)

    def fingerprint(self, method: str, study: str) -> str | None:
        """Of a method and a study by name; None where one of them is not there."""
        if (method, study) not in self._known:
            roots = [self.entries.get(method), self._defined("studies", study)]
            roots += [self._defined(module, name) for module, name in STARTS.items()]
            found = [unit for unit in roots if unit is not None]
            whole = "\n".join(sorted({unit.said for unit in self.reached(found)}))
            digest = hashlib.sha256(whole.encode()).hexdigest()[:LENGTH]
            self._known[method, study] = digest if len(found) == len(roots) else None
        return self._known[method, study]

    def reached(self, roots: list[Unit]) -> list[Unit]:
        """Every unit that the roots can come to."""
        live: dict[int, Unit] = {}
        names: set[str] = set(CALLED_FROM_OUTSIDE)
        methods: list[tuple[str, Unit]] = []
        waiting = list(roots)
        while waiting:
            while waiting:
                unit = waiting.pop()
                if id(unit) in live:
                    continue
                live[id(unit)] = unit
                names |= unit.attributes
                for at, name in self._meant(unit):
                    waiting.append(self.modules[at].definitions[name])
                    methods += self.modules[at].methods.get(name, {}).items()
            called = [(name, each) for name, each in methods if name in names or name.startswith("__")]
            waiting = [each for _, each in called if id(each) not in live]
        return list(live.values())

    def _meant(self, unit: Unit) -> Iterator[tuple[str, str]]:
        """Where the names that a unit uses are defined, as (module, name)."""
        for name in unit.names:
            yield from self._resolved(unit.module, name)
            source = ".".join(self.modules[unit.module].imports.get(name, ()))
            for attribute in unit.attributes if source in self.modules else ():  # the whole module was imported
                yield from self._resolved(source, attribute)

    def _resolved(self, module: str, name: str) -> list[tuple[str, str]]:
        """The definition behind a name, through any number of imports; none where it is not ours."""
        for _ in range(len(self.modules)):
            found = self.modules.get(module)
            if found is None:
                return []
            if name in found.definitions:
                return [(module, name)]
            if name not in found.imports:
                return []
            module, name = found.imports[name]
        return []

    def _defined(self, place: str, name: str) -> Unit | None:
        """The definition of this name in a module or package of the benchmark."""
        for module, found in self.modules.items():
            if f".{place}." in f"{module}." and name in found.definitions:
                return found.definitions[name]
        return None


def _module_name(packages: Sequence[str], name: str) -> str:
    return ".".join(packages if name == "__init__" else (*packages, name))


@cache
def running() -> Sources:
    """The sources of the packages that are running."""
    return Sources.in_folders({each.__name__: Path(each.__path__[0]) for each in (askwise, askwise_bench)})


class _WhatCounts(ast.NodeTransformer):
    """Leaves out what cannot change a number."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Raise(exc=node.exc.func if isinstance(node.exc, ast.Call) else node.exc)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(arg=node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _parsed(name: str, text: str) -> Module:
    tree, module = _WhatCounts().visit(ast.parse(text)), Module()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module.imports |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    parts: dict[str, list[ast.AST]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            parts.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            inside = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            module.methods[node.name] = {each.name: Unit(name, f"{node.name}.{each.name}", (each,)) for each in inside}
            rest = [each for each in node.body if not isinstance(each, ast.FunctionDef | ast.Pass)]
            parts.setdefault(node.name, []).extend([*node.bases, *node.keywords, *node.decorator_list, *rest])
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if bound & TABLES and ".grid." in name:
                module.entries |= _entries(name, node.value)
            for each in bound - TABLES:
                parts.setdefault(each, []).append(node.value)
    module.definitions = {each: Unit(name, each, tuple(nodes)) for each, nodes in parts.items()}
    return module


def _entries(module: str, value: ast.AST) -> dict[str, Unit]:
    """What stands behind each name in a table written out as a dict."""
    tables = [node for node in ast.walk(value) if isinstance(node, ast.Dict)]
    return {
        key.value: Unit(module, "the method", (entry,))
        for table in tables
        for key, entry in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
