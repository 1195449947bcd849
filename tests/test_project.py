"""The face of the project: versions that match, and links that name one place."""

import re
import tomllib
from pathlib import Path

import askwise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_everywhere():
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert PROJECT["version"] == askwise.__version__ == sections[0] == cited[1]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", section) for section in sections)


def test_the_links_and_the_license_are_those_of_the_citation():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    home = PROJECT["urls"]["Homepage"]
    assert f'repository-code: "{home}"' in citation
    assert f"license: {PROJECT['license']}" in citation
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} == set(PROJECT["urls"])
    assert all(url.startswith(home) for url in PROJECT["urls"].values())


def test_the_classifiers_agree_with_the_python_that_is_required():
    lowest = PROJECT["requires-python"].removeprefix(">=")
    listed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert listed[0] == lowest
    assert PROJECT["classifiers"] == sorted(PROJECT["classifiers"])


def test_the_page_of_the_commands_names_every_option():
    """docs/reference/desk.md and the commands change together."""
    from typer.main import get_command

    from askwise.cli.app import app

    page = (ROOT / "docs" / "reference" / "desk.md").read_text(encoding="utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name in ("data", "prices", "fit", "evaluate", "explain", "acquire", "monitor", "recalibrate"):
        assert f"`askwise {name} " in page
        for parameter in commands[name].params:
            options = [option for option in parameter.opts if option.startswith("--")]
            assert not options or options[0] in page or "-o" in parameter.opts, (name, options)
