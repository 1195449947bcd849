"""Dockerfile and compose.yaml say what the project and the command line say."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import typer

from askwise.cli.app import app
from askwise.web.callers import read_tokens
from askwise.web.guard import check_bind
from askwise.web.store import connect

ROOT = Path(__file__).parents[2]
TOKENS = "/run/secrets/askwise_tokens"


def instructions():
    """Pairs (instruction, argument) of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def given(arguments):
    """The options of `askwise serve` that arguments stand for, as the command line itself reads them."""
    commands: Any = typer.main.get_command(app)
    return commands.commands["serve"].make_context("serve", list(arguments)).params


def dockerfile():
    found: dict[str, list[str]] = {}
    for name, argument in instructions():
        found.setdefault(name, []).append(argument)
    return found


def test_the_image_is_built_from_what_is_there():
    found = dockerfile()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for copied in found["COPY"]:
        for name in copied.split()[:-1]:
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignored, name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extra,) = re.findall(r'"\.\[(\w+)\]"', found["RUN"][0])
    assert extra in project["optional-dependencies"]
    assert "--constraint constraints.txt" in found["RUN"][0]
    version = tuple(map(int, re.findall(r"python:(\d+)\.(\d+)", found["FROM"][0])[0]))
    assert version >= tuple(map(int, re.findall(r">=(\d+)\.(\d+)", project["requires-python"])[0]))
    for file in (project["readme"], *project["license-files"]):
        assert any(file in copied for copied in found["COPY"]), f"the build needs {file}"


def test_the_image_runs_the_command_as_it_is(tmp_path):
    found = dockerfile()
    assert json.loads(found["ENTRYPOINT"][0]) == ["askwise", "serve"]
    options = given(json.loads(found["CMD"][0]))
    assert found["EXPOSE"] == [str(options["port"])]
    assert str(options["token_file"]) == TOKENS
    with pytest.raises(ValueError, match="needs --token-file"):
        check_bind(options["host"], bool(read_tokens(None)))  # so the tokens are what makes it acceptable
    assert f":{options['port']}/ready" in found["HEALTHCHECK"][0]
    names = [name for name, _ in instructions()]
    assert found["USER"] == ["askwise"]
    assert names.index("USER") < names.index("ENTRYPOINT")
    (url,) = re.findall(r"ASKWISE_DB=(\S+)", found["ENV"][0])
    assert str(connect(url).url.database).startswith(f"{found['VOLUME'][0]}/")


def test_compose_starts_that_image_with_postgresql():
    found = pytest.importorskip("yaml").safe_load((ROOT / "compose.yaml").read_text())
    server, database = found["services"]["server"], found["services"]["database"]
    assert (ROOT / server["build"] / "Dockerfile").is_file()
    options = given(server["command"])
    assert options["workers"] == 2
    assert server["ports"] == [f"127.0.0.1:8000:{options['port']}"]  # reached from this machine only
    assert str(options["token_file"]) == f"/run/secrets/{server['secrets'][0]}"
    assert server["secrets"][0] in found["secrets"]
    assert server["volumes"] == [f"./selector:{options['folder']}:ro"]
    assert server["depends_on"]["database"]["condition"] == "service_healthy"
    assert server["read_only"] is True
    url = connect(re.sub(r"\$\{.*?\}", "secret", server["environment"]["ASKWISE_DB"])).url
    variables = database["environment"]
    assert (url.get_backend_name(), url.host) == ("postgresql", "database")
    assert (url.username, url.database) == (variables["POSTGRES_USER"], variables["POSTGRES_DB"])
    assert database["volumes"][0].split(":")[0] in found["volumes"]
    assert "ports" not in database


def test_the_variable_of_the_database_is_that_of_the_option(monkeypatch):
    monkeypatch.setenv("ASKWISE_DB", "postgresql://askwise@database/askwise")
    assert given(["selector"])["database"] == "postgresql://askwise@database/askwise"
