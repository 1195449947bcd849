"""The schema of the database: its migrations, and whether there is one."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import SQLAlchemyError

from askwise.errors import InvalidInput
from askwise.web.store import connect, forget

MIGRATIONS = Path(__file__).parent / "migrations"
LOCK = 0x61736B77
"""Number of the lock in PostgreSQL that one migration at a time holds."""


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
