"""The command `askwise prices`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.options import Reading, check_place, with_options
from askwise.errors import InvalidInput
from askwise.table.reading import check_path

TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help="The training rows: CSV, Parquet or Feather.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the price list.")]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that holds the class.")]
GroupsFile = Annotated[
    Path | None,
    typer.Option("--groups", metavar="FILE", help='Columns acquired together: TOML, "lab panel" = ["iron", "zinc"].'),
]
Currency = Annotated[str | None, typer.Option(metavar="TEXT", help="The currency of the prices, such as EUR.")]


@with_options(Reading)
def prices(
    reading: Reading,
    table: TableFile,
    output: Output = Path("prices.csv"),
    target: Target = None,
    groups: GroupsFile = None,
    currency: Currency = None,
) -> None:
    """Write a price list to fill in: a line per feature, with a price of 1, a label and the range of its values.

    Features with the same text under "setup" share the part of their price under "setup_cost": it is paid once.
    """
    check_path(table)
    if groups is not None:
        check_path(groups)
    if check_place(output).exists():
        raise InvalidInput(f"{output} exists already, and may hold prices. Choose another name with --output.")
    from askwise.cli.own_files import read_groups, template_of
    from askwise.cli.user_table import read_noted
    from askwise.files import write_whole, writing
    from askwise.table.reading import garbled

    frame = read_noted(table, reading.table).frame
    left_out = [*(reading.drop or []), *([target] if target else [])]
    absent = [name for name in left_out if name not in frame.columns]
    if absent:
        hint = garbled(absent, list(frame.columns))
        raise InvalidInput(f"{table} has no column {absent[0]!r}. Its columns are: {', '.join(frame.columns)}.{hint}")
    content = template_of(frame.drop(columns=left_out), read_groups(groups), currency)
    with writing(output):
        write_whole(output, content)
    fit = ["askwise", "fit", str(table), "--target", target or "COLUMN", "--prices", str(output)]
    fit += [*(["--groups", str(groups)] if groups else [])]
    fit += [part for name in reading.drop or [] for part in ("--drop", name)]
    fit += [*(["--encoding", reading.encoding] if reading.encoding else []), "-o", "selector"]
    typer.echo(f"{output}: fill in the prices, then run: {shlex.join(fit)}")
