"""Commands that another distribution of askwise brings, and what stands for them where it is not installed."""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from askwise.cli.console import failures
from askwise.errors import InvalidInput

GROUP = "askwise.commands"
"""The group of entry points under which a distribution offers its commands."""

COMMANDS = {
    "bench": "Run the paper's comparisons of methods",
    "report": "Write the results of `askwise bench` as one page",
}
INSTALL = "pip install askwise-bench"
ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_commands(app: typer.Typer) -> None:
    """Add the commands of askwise-bench, or in their place ones that say how to install it."""
    offered = {point.name: point for point in entry_points(group=GROUP)}
    for name, about in COMMANDS.items():
        if name in offered:
            app.command(name)(offered[name].load())
        else:
            app.command(name, help=f"{about} (not installed: {INSTALL}).", context_settings=ANYTHING)(_not_installed)


def _not_installed(context: typer.Context) -> None:
    with failures():
        said = f"{context.info_name} is a command of askwise-bench, which is not installed."
        raise InvalidInput(f"{said} Install it with: {INSTALL}")
