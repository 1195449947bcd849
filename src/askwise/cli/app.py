"""The command line, each command in a module of its own.

Results go to standard output, progress and notes to standard error. Heavy imports are inside the commands, so that
``askwise --help`` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Annotated

import typer

from askwise.cli.acquire import acquire
from askwise.cli.ask import ask
from askwise.cli.data import data
from askwise.cli.demo import demo
from askwise.cli.elsewhere import add_commands
from askwise.cli.evaluate import evaluate
from askwise.cli.explain import explain
from askwise.cli.fit import fit
from askwise.cli.monitor import monitor
from askwise.cli.prices import prices
from askwise.cli.recalibrate import recalibrate
from askwise.cli.serve import serve

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Version = Annotated[bool, typer.Option("--version", metavar="", help="Print the version and exit.")]


def main() -> None:
    """Entry point of the command `askwise`."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows "?" in its place
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C, so that worker processes are ended too
    try:
        try:
            app(prog_name="askwise")
        finally:
            sys.stdout.flush()  # here, where a full disk can still be told
    except OSError as error:
        if error.filename is not None:  # some file, not the output
            raise
        # What could not be written must not be tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # whoever closes a pipe has read enough
            with suppress(OSError):
                typer.echo(f"askwise: the output cannot be written: {error.strerror}.", err=True)
        sys.exit(1)


@app.callback(invoke_without_command=True)
def version_option(version: Version = False) -> None:
    """Which feature to acquire next, for any trained classifier, and how far to trust its prediction so far."""
    if version:
        from askwise import __version__

        typer.echo(__version__)
        raise typer.Exit


for command in (demo, data, prices, fit, evaluate, ask, explain, acquire, serve, monitor, recalibrate):
    app.command()(command)
add_commands(app)
