"""The command `askwise report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.console import failures

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `askwise bench --out` wrote.")]


def report(folder: Folder) -> None:
    """Write the results of `askwise bench` as one HTML page and one Markdown file."""
    with failures():
        from askwise.bench.report.report import write_page

        for path in write_page(folder):
            typer.echo(path)
