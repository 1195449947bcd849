"""Imports go down the layers only, and nobody pays for what is not used."""

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import askwise

PACKAGE = Path(askwise.__file__).parent

# From the bottom to the top. A module may import what stands below it, and its own package.
LAYERS = [
    [
        "errors",
        "uncertainty",
        "metrics",
        "progress",
        "randomness",
        "files",
        "parameters",
        "plotting",
        "cards",
        "locking",
    ],
    ["table"],
    ["networks", "datasets", "trees", "constraints"],
    ["model"],
    ["predict"],
    ["epistemic"],
    ["value"],
    ["assessments"],
    ["trajectory"],
    ["acquisition"],
    ["policy"],
    ["calibrate"],
    ["stopping"],
    ["evaluation", "explain", "displays", "records"],
    ["case"],
    ["defaults"],
    ["options"],
    ["acquirer"],
    ["selector"],
    ["persistence"],
    ["images", "scale"],
    ["vision", "integrations"],
    ["reference_models", "cli", "web", "__main__"],
]
LAYER_OF = {name: height for height, names in enumerate(LAYERS) for name in names}
TOP = len(LAYERS) - 1
# save() and Desk.load() hand over to the package that knows how, when they are called; the loop names the types of the
# policy and of the rule that are given to it.
ALLOWED_WHEN_CALLED = {
    ("acquirer", "persistence"),
    ("table", "persistence"),
    ("acquisition", "policy"),
    ("acquisition", "stopping"),
}

MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


class Imports(ast.NodeVisitor):
    """Every import of a module: what is imported, and whether it happens as soon as the module is loaded."""

    def __init__(self, path):
        self.found = []  # (name, at load time)
        self._at_load = True
        self.visit(ast.parse(path.read_text(encoding="utf-8")))

    def visit_Import(self, node):
        self.found += [(alias.name, self._at_load) for alias in node.names]

    def visit_ImportFrom(self, node):
        assert node.level == 0, "imports are written in full"
        for alias in node.names:
            if alias.name == "__version__":
                continue
            submodule = f"{node.module}.{alias.name}"
            self.found.append((submodule if submodule in MODULES else node.module, self._at_load))

    def visit_If(self, node):
        if "TYPE_CHECKING" in ast.unparse(node.test):
            self._later(node.body)
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self._later(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def _later(self, body):
        before, self._at_load = self._at_load, False
        for node in body:
            self.visit(node)
        self._at_load = before


IMPORTS = {name: Imports(path).found for name, path in MODULES.items()}


def own(name):
    """The part below `askwise` that a dotted name belongs to; None for what is not ours."""
    parts = name.split(".")
    return parts[1] if parts[0] == "askwise" and len(parts) > 1 else None


def test_every_part_has_a_place():
    parts = {own(name) for name in MODULES} - {None}
    assert not parts - set(LAYER_OF), "say in this test where the new part stands, and in the architecture why"
    assert {"errors", "table", "predict", "policy", "selector"} <= parts


@pytest.mark.parametrize("module", [name for name in MODULES if own(name)])
def test_imports_go_down(module):
    part = own(module)
    for name, at_load in IMPORTS[module]:
        target = own(name)
        if name == "askwise":
            assert LAYER_OF[part] == TOP, f"{module} imports the whole package"
        if target in (None, part) or target not in LAYER_OF:
            continue
        if (part, target) in ALLOWED_WHEN_CALLED and not at_load:
            continue
        leaves = LAYER_OF[part] == LAYER_OF[target] == 0
        both_on_top = LAYER_OF[part] == LAYER_OF[target] == TOP
        below = LAYER_OF[target] < LAYER_OF[part]
        assert below or leaves or both_on_top, f"{module} imports {name}, which does not stand below it"


def test_the_library_does_not_know_the_comparisons():
    """What `research/` holds is found through its entry points, and only there."""
    for module, imports in IMPORTS.items():
        assert not [name for name, _ in imports if name.split(".")[0] == "askwise_bench"], module


def test_data_sets_need_the_leaves_and_tables_only():
    for module, imports in IMPORTS.items():
        if own(module) == "datasets":
            parts = {own(name) for name, _ in imports} - {None, "datasets"}
            assert all(LAYER_OF.get(part, 0) <= LAYER_OF["table"] for part in parts), f"{module} imports {parts}"


def test_one_case_and_the_flowchart_share_public_names_only():
    for room, other in (("case", "explain"), ("explain", "case")):
        imported = {name for module in MODULES if own(module) == room for name, _ in IMPORTS[module]}
        assert {name for name in imported if own(name) == other} <= {f"askwise.{other}"}


def test_no_module_waits_for_itself():
    """No cycles among imports at load time, within packages either."""
    graph = {}
    for module, imports in IMPORTS.items():
        graph[module] = {name for name, at_load in imports if at_load and name in MODULES} - {"askwise"}
    tuple(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", MODULES)
def test_torch_is_imported_where_it_is_used(module):
    assert not [name for name, at_load in IMPORTS[module] if at_load and name.split(".")[0] == "torch"]


def loaded_after(*modules):
    """Names of all modules that are loaded in a fresh interpreter after importing `modules`."""
    code = f"import sys, {', '.join(modules)}; print('\\n'.join(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_the_library_does_not_load_torch():
    assert "torch" not in loaded_after(
        "askwise",
        "askwise.metrics",
        "askwise.selector",
        "askwise.predict",
        "askwise.policy",
        "askwise.stopping",
        "askwise.datasets",
    )


def test_the_package_and_the_command_line_do_not_load_scikit_learn():
    modules = ["askwise"] + (["askwise.cli.app"] if "askwise.cli.app" in MODULES else [])
    assert not {"sklearn", "torch", "matplotlib"} & loaded_after(*modules)


def test_public_names_are_found_when_they_are_asked_for():
    for name in askwise.__all__:
        assert getattr(askwise, name).__name__ == name
    assert set(askwise.__all__) <= set(dir(askwise))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = askwise.nothing


def test_no_learned_attribute_is_a_parameter():
    """An annotation in the body of a dataclass is a parameter; parameters have no trailing underscore."""
    pytest.importorskip("torch")
    found = 0
    for module in pkgutil.walk_packages([str(PACKAGE)], "askwise."):
        if not module.name.endswith("__main__"):
            for kind in vars(importlib.import_module(module.name)).values():
                if isinstance(kind, type) and issubclass(kind, BaseEstimator) and kind.__module__ == module.name:
                    found += 1
                    assert not [name for name in inspect.signature(kind).parameters if name.endswith("_")], kind
    assert found > 30
