"""The command line: `askwise demo`, `ask`, `bench` and `report`."""

from askwise.cli.app import main

__all__ = ["main"]
