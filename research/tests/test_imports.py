"""This package is a user of askwise: it needs its public names, and comes in by its entry points."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import askwise_bench
from askwise.cli.elsewhere import COMMANDS, GROUP

PACKAGE = Path(askwise_bench.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMITTED = sorted(PACKAGE.rglob("*.py"))


def private_imports(source):
    """Imports of askwise, and full names of it in text, with a part that begins with an underscore."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found += [name for name in names if name.split(".")[0] == "askwise" and "._" in name.replace("__version__", "")]
    return found


@pytest.mark.parametrize(
    "source", ["from askwise.x import _y", "import askwise._x", "def f():\n    from askwise._x import y"]
)
def test_a_private_import_is_found(source):
    assert private_imports(source)


def test_only_public_names_of_askwise_are_imported():
    assert len(COMMITTED) > 50
    for path in COMMITTED:
        assert not private_imports(path.read_text(encoding="utf-8")), path


def test_both_distributions_have_one_version():
    library = tomllib.loads((PACKAGE.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for entry in ("version", "requires-python", "license", "authors"):
        assert PROJECT[entry] == library[entry], entry


@pytest.fixture
def installed(tmp_path):
    """An environment in which the entry points of pyproject.toml are found, whether they are installed here or not."""
    about = tmp_path / f"askwise_bench-{PROJECT['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: askwise-bench\nVersion: {PROJECT['version']}\n")
    entries = [f"{name} = {where}" for name, where in PROJECT["entry-points"][GROUP].items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *entries, ""]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}


def run(environment, *arguments):
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_askwise_offers_the_commands(installed):
    assert list(PROJECT["entry-points"]) == [GROUP]
    assert set(PROJECT["entry-points"][GROUP]) == set(COMMANDS)
    listed = run(installed, "-m", "askwise", "--help")
    assert "Run the paper's comparisons" in listed.stdout
    assert "not installed" not in listed.stdout
    known = run(installed, "-m", "askwise", "bench", "--list")
    assert known.returncode == 0, known.stderr
    assert "static-cmi" in known.stdout
    wrong = run(installed, "-m", "askwise", "report", "/nowhere")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "rows.csv" in wrong.stderr or "/nowhere" in wrong.stderr


def test_they_cost_the_other_commands_nothing(installed):
    loaded = run(installed, "-c", "import sys, askwise.cli.app; print('\\n'.join(sys.modules))").stdout.split()
    assert "askwise_bench.cli" in loaded
    assert not {"sklearn", "pandas", "torch", "matplotlib", "askwise_bench.grid.run"} & set(loaded)


def test_the_package_runs_where_it_is_not_installed():
    done = run(os.environ, "-m", "askwise_bench", "bench", "--list")
    assert done.returncode == 0, done.stderr
    assert "static-cmi" in done.stdout
