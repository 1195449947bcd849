"""Every command and snippet of the README is run."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from askwise.cli.app import app
from askwise.cli.elsewhere import COMMANDS as COMMANDS_OF_RESEARCH
from askwise_bench.cli import app as research

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if kind == "bash" for line in block.splitlines() if line]


def dry_run(command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = [*shlex.split(command), "--dry-run"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_there_is_something_to_run():
    assert {kind for kind, _ in BLOCKS} == {"bash", "python"}
    assert COMMANDS[:2] == ["make demo", "make test"]


def test_it_is_short():
    assert len(README.encode()) < 10_000


def test_snippets(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, block in BLOCKS:
        if kind == "python":
            exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    spent, everything = re.findall(r"([\d.]+) instead of ([\d.]+) dollars", printed)[0]
    assert float(spent) < 0.7 * float(everything)
    assert "cp 1.0" in printed
    assert "accuracy" in printed


@pytest.fixture
def fewer_rows(monkeypatch):
    """The commands as they are, on fewer rows of their tables."""
    monkeypatch.setattr("askwise.reference_models.MOST_TRAINING_ROWS", 100)
    monkeypatch.setattr("askwise.reference_models.MOST_TEST_ROWS", 10)
    monkeypatch.setattr("askwise.cli.comparison.RANDOM_ORDERS", 1)


def askwise(*arguments):
    """Runs a command; those of askwise-bench in its own app, where this environment has the checkout only."""
    done = CliRunner().invoke(research if arguments[0] in COMMANDS_OF_RESEARCH else app, arguments, input="q\n")
    assert done.exit_code == 0, done.output
    assert done.stdout.strip()


def test_from_file_to_page(tmp_path, monkeypatch):
    """The commands one after the other in one folder; the server is tested elsewhere."""
    pytest.importorskip("skops")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line)[1:] for line in COMMANDS if line.startswith("askwise")]
    assert [command[0] for command in commands] == ["data", "fit", "evaluate", "serve"]
    for command in commands[:3]:
        askwise(*command)
    assert (tmp_path / "askwise-evaluation.html").stat().st_size > 10_000
    for inline in re.findall(r"`askwise ([^`]+)`", README):
        command = shlex.split(inline.replace("cases.csv", "heart/test.csv"))
        askwise(*command)
    assert len((tmp_path / "bought.csv").read_text().splitlines()) == 62


def test_make_targets(tmp_path, monkeypatch, fewer_rows):
    """What make would run; the tests themselves are only named."""
    last = {}
    for command in [line for line in COMMANDS if line.startswith("make")]:
        listed = dry_run(command)
        assert listed.returncode == 0, listed.stderr
        last[command] = listed.stdout.strip().splitlines()[-1]
    assert last.keys() == {"make demo", "make test"}
    assert "-m pytest" in last["make test"]
    assert last["make demo"] == ".venv/bin/askwise demo"
    monkeypatch.chdir(tmp_path)
    askwise("demo")
    assert (tmp_path / "askwise-report.html").stat().st_size > 10_000


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
