"""The command `askwise serve`."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.console import RefusedFolder, failures
from askwise.cli.options import check_saved
from askwise.errors import AskwiseError, InvalidInput

if TYPE_CHECKING:
    from askwise.web.settings import Settings

Folder = Annotated[Path, typer.Argument(metavar="SELECTOR", help="The folder that `selector.save` has written.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="ASKWISE_DB",
        help="Where cases are kept: postgresql://user@host/name or sqlite:///file (default: a SQLite file beside the "
        "folder).",
    ),
]
Host = Annotated[
    str, typer.Option(help="Address to listen on; one that others can reach needs --token-file or --trusted-header.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 = any that is free.")]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Number of processes; each loads the selector.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File with a line name:token, or name:token role, for everybody who may use it."),
]
TrustedHeader = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Header in which a reverse proxy says who asks, such as X-Forwarded-User."),
]
TrustedProxy = Annotated[
    list[str] | None,
    typer.Option(metavar="NETWORK", help="Where that proxy connects from, such as 127.0.0.1/32; repeatable."),
]
RolesHeader = Annotated[
    str | None, typer.Option(metavar="NAME", help="Header with their groups, such as X-Forwarded-Groups.")
]
Role = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=GROUP", help="What a group may do: reader, clerk or admin; * is everybody; repeatable."),
]
KeyFile = Annotated[Path | None, typer.Option(metavar="FILE", help="The key that the folder was signed with.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(metavar="CLASS", help="A class of another package that may be loaded; repeatable."),
]
Trusted = Annotated[list[str] | None, typer.Option(hidden=True)]  # what --trust was called
Rate = Annotated[float, typer.Option(min=0, help="Requests per second and client, per process; 0 = no limit.")]
RequestSeconds = Annotated[float, typer.Option(min=0.1, help="How long a request may take to arrive.")]
PerAddress = Annotated[int, typer.Option(min=0, help="Connections of one address, per process; 0 = no limit.")]
DatabaseSeconds = Annotated[
    float, typer.Option(min=0, help="How long PostgreSQL may take for a statement, half of it for locks; 0 = no limit.")
]
WorkerSeconds = Annotated[int, typer.Option(min=5, help="How long a worker may be silent before it is replaced.")]
Check = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=1,
        help="Share of the cases that are asked on after the advice to stop, to check what was promised (see askwise "
        "monitor).",
    ),
]
Subgroup = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Tell the checked cases apart by this column (default: that of the stop)."),
]
LogValues = Annotated[bool, typer.Option("--log-values", help="Log error messages, which can hold values of cases.")]


def serve(
    folder: Folder,
    database: Database = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    token_file: TokenFile = None,
    trusted_header: TrustedHeader = None,
    trusted_proxy: TrustedProxy = None,
    roles_header: RolesHeader = None,
    role: Role = None,
    key_file: KeyFile = None,
    trust: Trust = None,
    trusted: Trusted = None,
    rate: Rate = 20.0,
    request_seconds: RequestSeconds = 10.0,
    per_address: PerAddress = 100,
    database_seconds: DatabaseSeconds = 10.0,
    worker_seconds: WorkerSeconds = 60,
    log_values: LogValues = False,
    check: Check = 0.0,
    subgroup: Subgroup = None,
) -> None:
    """Serve a saved selector as a web page and over HTTP, with its cases in a database."""
    with failures():
        check_saved(folder)
        check_installed()
        from askwise.web.settings import Settings

        settings = Settings(
            str(folder),
            database,
            host,
            port,
            workers,
            None if token_file is None else str(token_file),
            None if key_file is None else str(key_file),
            (*(trust or ()), *(trusted or ())),
            rate,
            request_seconds=request_seconds,
            per_address=per_address,
            database_seconds=database_seconds,
            worker_seconds=worker_seconds,
            log_values=log_values,
            trusted_header=trusted_header,
            trusted_proxy=tuple(trusted_proxy or ()),
            roles_header=roles_header,
            roles=tuple(role or ()),
            check=check,
            subgroup=subgroup,
        )
        _run(settings)


def check_installed() -> None:
    """Refuse to serve, or to read what was served, without what that needs."""
    for module in ("alembic", "fastapi", "prometheus_client", "sqlalchemy", "uvicorn"):
        if find_spec(module) is None:
            raise AskwiseError(f'askwise serve needs {module}: pip install "askwise[serve]".')


def _check_free(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on before anything is loaded."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]
        raise InvalidInput(f"--port {port} cannot be used on {host}: {reason}. Choose another with --port.") from None


def _tell(text: str) -> None:
    """A line for a person; elsewhere than on a terminal the output is the log alone."""
    if sys.stdout.isatty():
        typer.echo(text)


def _run(settings: Settings) -> None:
    """Check everything, bring the database up to date, then listen until the process is ended."""
    from askwise.web.callers import read_tokens, trusted_proxy
    from askwise.web.guard import check_bind

    named = bool(read_tokens(settings.token_file)) | (trusted_proxy(settings) is not None)
    check_bind(settings.host, named)
    _check_free(settings.host, settings.port)
    _tell(f"Loading {settings.folder} ...")
    import uvicorn

    from askwise import load
    from askwise.cli.own_files import advising_options
    from askwise.web import logs
    from askwise.web.app import create_app
    from askwise.web.database import migrate
    from askwise.web.guard import PromptProtocol
    from askwise.web.workers import Supervisor

    try:  # several workers load it once more, each its own
        selector = load(settings.folder, settings.key_file, settings.trusted)
    except InvalidInput as error:
        raise RefusedFolder(advising_options(error)) from None
    migrate(settings.url)
    logs.configure(settings.log_values)
    PromptProtocol.configure(settings)
    with tempfile.TemporaryDirectory(prefix="askwise-metrics-") as counts:
        app = create_app(selector, settings)
        options: dict[str, Any] = {
            "host": settings.host,
            "port": settings.port,
            "http": PromptProtocol,
            "ws": "none",
            "log_config": None,
            "access_log": False,  # it would hold query strings; `askwise.web` writes its own
            "server_header": False,
            "proxy_headers": False,
            "timeout_keep_alive": 30,
            "h11_max_incomplete_event_size": 32_768,
        }
        _tell(f"The page is at http://{settings.host}:{settings.port}. Stop with Ctrl-C.")
        if settings.workers == 1:
            uvicorn.run(app, **options)
            return
        app.state.service.store.close()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts
        replace(settings, supervisor=os.getpid()).export()
        options |= {"workers": settings.workers, "timeout_worker_healthcheck": settings.worker_seconds}
        config = uvicorn.Config("askwise.web.app:create_worker", factory=True, **options)
        Supervisor(config, sockets=[config.bind_socket()]).run()
