"""What `askwise serve` was asked for, and how it reaches the worker processes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "ASKWISE_SERVE"


@dataclass(frozen=True)
class Settings:
    """The options of the server.

    Attributes
    ----------
    folder
        The saved selector.
    database
        URL of the database; None = a SQLite file beside the folder.
    host, port, workers
        Where to listen, and how many processes do.
    token_file
        File with lines ``name:token`` or ``name:token role``; None = no tokens.
    trusted_header, trusted_proxy
        The header in which a reverse proxy says who asks, and the networks it connects from.
    roles_header, roles
        The header with the groups of who asks, and ``role=group`` for each group that has a role.
    key_file, trusted
        As in `askwise.load`.
    rate
        Requests per second and client; 0 = no limit.
    largest_body
        The most bytes that a request may have.
    request_seconds, per_address
        How long a request may take to arrive, and the most connections of one address in each process; 0 = no limit.
    database_seconds
        How long PostgreSQL may take for a statement, and half of it to wait for a lock; 0 = as long as it likes.
    worker_seconds
        How long a worker may be silent before it is replaced.
    log_values
        Whether error messages, which can hold values of cases, are logged.
    check
        Share of the cases that are asked on after the advice to stop, to check what was promised.
    subgroup
        Column by which they are told apart; None = that of the stop, if it has one.
    supervisor
        Process that started the workers, whose end is their end; 0 = there is none.
    """

    folder: str
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    token_file: str | None = None
    key_file: str | None = None
    trusted: tuple[str, ...] = ()
    rate: float = 20.0
    largest_body: int = 65_536
    request_seconds: float = 10.0
    per_address: int = 100
    database_seconds: float = 10.0
    worker_seconds: int = 60
    log_values: bool = False
    trusted_header: str | None = None
    trusted_proxy: tuple[str, ...] = ()
    roles_header: str | None = None
    roles: tuple[str, ...] = ()
    check: float = 0.0
    subgroup: str | None = None
    supervisor: int = 0

    @property
    def url(self) -> str:
        """URL of the database. The file is beside the folder, because files in it must be listed by its manifest."""
        if self.database is not None:
            return self.database
        folder = Path(self.folder).resolve()
        return f"sqlite:///{folder.with_name(f'{folder.name}.sqlite3')}"

    def export(self) -> None:
        """Leave the settings to the processes that are started from here."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    @staticmethod
    def imported() -> Settings:
        """The settings that the starting process has left."""
        given = json.loads(os.environ[VARIABLE])
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        return Settings(**{**given, **lists})
