"""The command line: one module per command."""


def main() -> None:
    """Entry point of the command `askwise`."""
    from askwise.cli.app import main as run  # here, so that `python -m askwise.cli.app` loads the module once

    run()
