"""The command `askwise monitor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.console import make_console, print_json
from askwise.cli.options import AsJson, Opening, check_saved, with_options
from askwise.errors import InvalidInput

if TYPE_CHECKING:
    from askwise.web.checks import Checks

Served = Annotated[Path, typer.Argument(metavar="SELECTOR", help="The folder that is served.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="URL",
        envvar="ASKWISE_DB",
        help="The database of the server (default: the SQLite file beside the folder).",
    ),
]
Subgroup = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column of --subgroup of the server, if it had one.")
]


def opened_checks(
    folder: Path, opening: Opening, database: str | None, subgroup: str | None = None
) -> tuple[Any, Checks, str]:
    """The selector of a folder, what was checked of it, and the URL of the database, which is only read."""
    from askwise.cli.own_files import open_saved
    from askwise.cli.serve import check_installed

    check_installed()
    from askwise.web.checks import Checks
    from askwise.web.database import check_there
    from askwise.web.description import version_of
    from askwise.web.settings import Settings
    from askwise.web.store import Store

    selector, _ = open_saved(folder, opening, framed=False)
    url = Settings(str(folder), database).url
    check_there(url)
    return selector, Checks(selector, version_of(folder), Store(url), subgroup=subgroup), url


@with_options(Opening)
def monitor(
    opening: Opening,
    folder: Served,
    database: Database = None,
    subgroup: Subgroup = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a served selector keeps its promise, by the cases that the server checked (askwise serve --check)."""
    check_saved(folder)
    _, checks, url = opened_checks(folder, opening, database, subgroup)
    report = checks.report()
    if as_json:
        print_json(report)
        return
    console = make_console()
    told = ", ".join(f"{one['cases']} {one['why']}" for one in report["unused"])
    console.print(f"Promise:  {report['guarantee']}", soft_wrap=True)
    console.print(
        f"Checked:  {report['checked']} cases tell something"
        f"{f'; others do not ({told})' if told else ''}. Model {report['model']}.",
        soft_wrap=True,
    )
    if report["checked"]:
        console.print(
            f"Price:    {report['stop_price']:.4g} until the advice to stop ({report['promised_price']:.4g} at the "
            f"calibration), {report['check_price']:.4g} more for going on.",
            soft_wrap=True,
        )
    _print_rows(console, report)
    if report["novelty"] is not None and report["novelty"]["cases"]:
        one = report["novelty"]
        said = "no longer" if one["alarm"] else "as far as can be told,"
        console.print(
            f"Cases:    {said} like those of the calibration (evidence {_brief(one['highest'])} of "
            f"{_brief(one['needed'])}).",
            soft_wrap=True,
        )
    for alarm in report["alarms"]:
        console.print(f"ALARM:    {alarm}", style="bold red", soft_wrap=True)
    console.print(f"Advice:   {report['advice']}", style="bold", soft_wrap=True)
    if report["state"] == "broken":
        where = "" if database is None else f" --from {url_shown(url)}"
        console.print(f"          askwise recalibrate {folder}{where} -o NEW_FOLDER", soft_wrap=True)


def _brief(number: float) -> str:
    """A number with two digits, or a whole one."""
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}" if number < 1e6 else "over a million"


def url_shown(url: str) -> str:
    """The URL of a database without its password."""
    from sqlalchemy import make_url

    return make_url(url).render_as_string(hide_password=True)


def _print_rows(console: Any, report: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("decisions kept")
    for name in ("cases", "changed", "kept", "interval", "evidence"):
        table.add_column(name, justify="right")
    for row in report["rows"]:
        who = row["name"] if row["of"] == "all" else f"{row['of']} {row['name']}"
        kept = f"{row['kept']:.1%}" if row["cases"] else "-"
        between = f"{row['low']:.1%}-{row['high']:.1%}" if row["cases"] else "-"
        evidence = "not promised"
        if row["promised"] is not None:
            evidence = f"{_brief(row['highest'] or 1)} of {_brief(row['needed'])}{' ALARM' if row['alarm'] else ''}"
        table.add_row(str(who), str(row["cases"]), str(row["lost"]), kept, between, evidence)
    console.print(table)
    sure = f"{1 - report['alpha']:.0%}"
    console.print(
        f"{report['promised']:.1%} are promised. The intervals hold whenever you look ({sure} sure); evidence: the "
        f"highest so far, of that at which an alarm is given.",
        soft_wrap=True,
        style="dim",
    )


def since_text(given: str | None) -> str:
    """A date or time, by default of this machine's zone, as the database has it; empty if none is given."""
    if given is None:
        return ""
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(given).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"--since must be a date such as 2026-11-01 or 2026-11-01T08:00; got {given!r}.") from None
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")
