"""Connections to SQLite and PostgreSQL that lose nothing, the migrations of their schema, and how to forget."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError

from askwise.errors import AskwiseError, InvalidInput
from askwise.web.logs import log

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_SECONDS = 30
LOCK = 0x61736B77
"""Number of the lock in PostgreSQL that one migration at a time holds."""


def connect(url: str, seconds: float = 0.0) -> sa.Engine:
    """An engine for a URL of SQLite or PostgreSQL.

    In PostgreSQL a statement may take `seconds` (0 = as long as it likes), and half of that for a lock or a connection.
    """
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        raise InvalidInput(
            "--db must be a URL such as sqlite:///cases.sqlite3 or postgresql://user@host/name; got something else."
        ) from None
    kind = parsed.get_backend_name()
    options: dict[str, Any] = {}
    if kind == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
        options["pool_pre_ping"] = True
        if seconds:
            most = math.ceil(1000 * seconds)
            limits = f"-c statement_timeout={most} -c lock_timeout={math.ceil(most / 2)}"
            options["pool_timeout"] = seconds / 2
            options["connect_args"] = {"options": limits, "connect_timeout": max(2, math.ceil(seconds / 2))}
    elif kind != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise InvalidInput(f"--db must be a SQLite file or a PostgreSQL database; got {kind}.")
    try:
        engine = sa.create_engine(parsed, hide_parameters=True, **options)
    except (NoSuchModuleError, ImportError):
        raise AskwiseError('PostgreSQL needs psycopg: pip install "askwise[serve]".') from None
    if kind == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Durable commits, readers beside a writer, deleted cells overwritten; `_begin_sqlite` begins transactions."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"PRAGMA busy_timeout={1000 * BUSY_SECONDS}")


def _begin_sqlite(connection: sa.Connection) -> None:
    """A writer locks at once: a reader that wanted to write later could find that another one has written."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def migrate(url: str, revision: str = "head") -> None:
    """Create the tables, or bring those of an older version up to date."""
    engine = connect(url)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    try:
        with engine.execution_options(writes=True).begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
            _check_revision(connection, config)
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
        if engine.dialect.name == "sqlite":
            forget(engine)  # the process may have been killed between deleting and forgetting
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        raise InvalidInput(f"The database {engine.url!r} cannot be used: {reason}.") from None
    finally:
        engine.dispose()


def check_there(url: str) -> None:
    """Refuse a database that no server has written; nothing is made."""
    engine = connect(url)
    try:
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        if file is not None and not Path(file).is_file():
            raise InvalidInput(f"There is no database {file}: name that of the server, as its --db had it.")
        with engine.connect() as connection:
            if not sa.inspect(connection).has_table("events"):
                raise InvalidInput(f"The database {engine.url!r} holds no cases: no server of askwise has used it.")
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        raise InvalidInput(f"The database {engine.url!r} cannot be read: {reason}.") from None
    finally:
        engine.dispose()


def _check_revision(connection: sa.Connection, config: Config) -> None:
    """Refuse a database that a newer askwise has changed."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars().all()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if not set(found) <= known:
        raise InvalidInput(
            f"The database {connection.engine.url!r} was changed by a newer askwise ({found[0]}): update askwise."
        )


def forget(engine: sa.Engine) -> None:
    """Remove deleted rows from the files of the database as well.

    SQLite: its log is emptied; deleted cells were overwritten before (secure_delete). PostgreSQL: dead rows are removed
    from the tables; its log and backups of it keep them until they are recycled.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if engine.dialect.name == "postgresql":
            _vacuum(connection)
        else:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
            if busy:
                log("the log of the database is in use and holds deleted rows until it is free", logging.WARNING)


def _vacuum(connection: sa.Connection) -> None:
    """Large tables may take their time; a table that somebody else has locked is left to the next time."""
    connection.exec_driver_sql("SET statement_timeout = 0")
    try:
        for table in ("events", "cases", "idempotency_keys"):
            connection.exec_driver_sql(f"VACUUM {table}")
    except OperationalError as error:
        log("a table is locked and holds deleted rows until it is free", logging.WARNING, error)
    finally:
        connection.exec_driver_sql("RESET statement_timeout")
