"""Runs a command of askwise as its users do, within this process."""

from typing import Any

from typer.testing import CliRunner, Result

from askwise.cli.app import app


def run(*arguments: Any, text: str | None = None, code: int | None = 0) -> Result:
    """What the command printed with `text` typed into it; it must exit with `code`, None = with any."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    assert code is None or result.exit_code == code, result.output
    return result
