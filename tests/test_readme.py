"""Every command and snippet of the README is run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if kind == "bash" for line in block.splitlines() if line]


def run(command, cwd, typed=""):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    return subprocess.run(
        command, cwd=cwd, env=environment, input=typed, capture_output=True, text=True, timeout=300, check=False
    )


def test_there_is_something_to_run():
    assert {kind for kind, _ in BLOCKS} == {"bash", "python"}
    assert COMMANDS[:2] == ["make demo", "make test"]


def test_snippets(capsys):
    names: dict[str, object] = {}
    for kind, block in BLOCKS:
        if kind == "python":
            exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "flavanoids" in printed
    assert "proline is high ->" in printed  # a rule, in words
    assert "accuracy" in printed


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "bash" and "\naskwise" in "\n" + block])
def test_commands(block, tmp_path):
    """The commands of one block, one after the other in one folder."""
    for line in block.splitlines():
        if line.startswith("askwise"):
            done = run([sys.executable, "-m", "askwise.cli.app", *shlex.split(line)[1:]], tmp_path, typed="q\n")
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip()


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("make")])
def test_make_targets(command, tmp_path):
    """What make would run, with this interpreter in place of the one in .venv; the tests themselves are only named."""
    listed = run([*shlex.split(command), "--dry-run"], ROOT)
    assert listed.returncode == 0, listed.stderr
    last = listed.stdout.strip().splitlines()[-1]
    if command == "make test":
        assert "-m pytest" in last
        return
    assert last == ".venv/bin/askwise demo"
    done = run([sys.executable, "-m", "askwise.cli.app", "demo"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "askwise-report.html").stat().st_size > 10_000


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
