"""Cases as append-only events in SQLite or PostgreSQL.

An event and what follows from it (version and summary of the case, idempotency key) are written in one transaction. The
version of a case counts its events: of two events for the same version, one is written. `database` has the migrations.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, OperationalError

from askwise.errors import AskwiseError, InvalidInput
from askwise.web.logs import log

TRAIL_PART = 2000
BUSY_SECONDS = 30
METADATA = sa.MetaData()
CASES = sa.Table(
    "cases",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("created", sa.String(27), nullable=False),
    sa.Column("updated", sa.String(27), nullable=False, index=True),
    sa.Column("prediction", sa.Text),  # JSON
    sa.Column("probability", sa.Float),
    sa.Column("spent", sa.Float),
    sa.Column("search", sa.Text, nullable=False),  # `folded` label
    sa.Index("ix_cases_search", "search", "state", "updated", "id"),  # searching reads this index alone
)
SHOWN = [column for column in CASES.c if column.name != "search"]
MOST_NAMED = 100
ENDED = sa.text("events.type = 'finish' AND events.value IS NOT NULL")
"""Of events: those that finished a checked case. The index of them is used where they are asked for in these words."""
EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("case_id", sa.String(32), sa.ForeignKey("cases.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("type", sa.String(12), nullable=False),
    sa.Column("feature", sa.Text),
    sa.Column("value", sa.Text),  # JSON
    sa.Column("confirmed", sa.Boolean, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("at", sa.String(27), nullable=False),
    sa.Column("suggested", sa.Text),
    sa.Column("cost", sa.Float),
    sa.Column("prediction", sa.Text),  # JSON
    sa.Column("probability", sa.Float),
    sa.Column("model", sa.String(12), nullable=False),
    sa.Column("askwise", sa.String(40), nullable=False),
    sa.Index("ix_events_order", "at", "case_id", "version"),
    sa.Index("ix_events_checks", "at", "case_id", "version", sqlite_where=ENDED, postgresql_where=ENDED),
)
KEYS = sa.Table(
    "idempotency_keys",
    METADATA,
    sa.Column("by", sa.Text, primary_key=True),
    sa.Column("key", sa.String(200), primary_key=True),  # a digest: what a client chose may name a person
    sa.Column("digest", sa.String(64)),  # NULL once the case is deleted
    sa.Column("case_id", sa.String(32), nullable=False, index=True),
    sa.Column("version", sa.Integer, nullable=False),
)

# Made once: SQLAlchemy takes longer to put a statement together than SQLite to carry it out.
_OF_CASE = (CASES.c.id == sa.bindparam("case")) & (CASES.c.state != "deleted")
ONE_CASE = sa.select(*SHOWN).where(_OF_CASE)
NEW_EVENT = EVENTS.insert()
NEXT_VERSION = (
    CASES.update()
    .where(_OF_CASE, CASES.c.version == sa.bindparam("before"))
    .values({column: sa.bindparam(column.name) for column in SHOWN})
)


@dataclass(frozen=True)
class Event:
    """One step of a case: what was suggested before it, what was entered, and what is predicted after it."""

    case_id: str
    version: int
    type: str
    by: str
    at: str
    model: str
    askwise: str
    feature: str | None = None
    value: Any = None
    confirmed: bool = False
    suggested: str | None = None
    cost: float | None = None
    prediction: Any = None
    probability: float | None = None


@dataclass(frozen=True)
class Key:
    """An idempotency key: the request that used it, and the version of the case that it led to."""

    by: str
    key: str
    digest: str | None
    case_id: str
    version: int


@dataclass(frozen=True)
class CaseRow:
    """A case in the list."""

    id: str
    label: str
    version: int
    state: str
    created: str
    updated: str
    prediction: Any = None
    probability: float | None = None
    spent: float | None = None


class Conflict(Exception):  # noqa: N818 - an answer to a request, not a fault
    """The case has another version, or is gone."""


class KeyTaken(Exception):  # noqa: N818
    """Another request with the same idempotency key was faster."""


class Store:
    """The database of a server, which may take so many `seconds` for a statement (see `connect`)."""

    def __init__(self, url: str, seconds: float = 0.0) -> None:
        self._engine = connect(url, seconds)
        self._writing = self._engine.execution_options(writes=True)

    def close(self) -> None:
        self._engine.dispose()

    def ping(self) -> None:
        """Raise if the database does not answer."""
        self._read(sa.select(sa.literal(1)))

    def create(self, case: CaseRow, event: Event, key: Key | None) -> None:
        """Write a case with its first event."""
        with self._transaction(key) as connection:
            connection.execute(CASES.insert(), _encoded(case) | {"search": folded(case.label)})
            connection.execute(NEW_EVENT, _encoded(event))

    def append(self, case: CaseRow, event: Event, key: Key | None) -> None:
        """Write the next event of a case, whose row becomes `case`."""
        with self._transaction(key) as connection:
            changed = connection.execute(NEXT_VERSION, _encoded(case) | {"case": case.id, "before": event.version - 1})
            if changed.rowcount != 1:
                raise Conflict
            connection.execute(NEW_EVENT, _encoded(event))

    def delete(self, case_id: str, event: Event) -> bool:
        """Remove a case for good, except that `event` says so; False if there is no such case."""
        of_case = CASES.c.id == case_id
        with self._writing.begin() as connection:
            version = connection.execute(
                sa.select(CASES.c.version).where(of_case, CASES.c.state != "deleted").with_for_update()
            ).scalar_one_or_none()
            if version is None:
                return False
            gone = {
                "label": "",
                "search": "",
                "state": "deleted",
                "prediction": None,
                "probability": None,
                "spent": None,
            }
            connection.execute(CASES.update().where(of_case).values(**gone, version=version + 1, updated=event.at))
            connection.execute(KEYS.update().where(KEYS.c.case_id == case_id).values(digest=None))
            connection.execute(EVENTS.delete().where(EVENTS.c.case_id == case_id))
            connection.execute(NEW_EVENT, _encoded(replace(event, version=version + 1)))
        forget(self._engine)
        return True

    def case(self, case_id: str) -> CaseRow | None:
        """A case that is not deleted."""
        rows = self._read(ONE_CASE, {"case": case_id})
        return CaseRow(**_decoded(rows[0])) if rows else None

    def cases(self, search: str, state: str, offset: int, limit: int) -> tuple[int, list[CaseRow]]:
        """How many cases match, and some of them, the ones changed last first."""
        wanted = CASES.c.state != "deleted" if state == "all" else CASES.c.state == state
        if search:
            inside = sa.func.instr if self._engine.dialect.name == "sqlite" else sa.func.strpos  # faster than LIKE
            wanted &= (inside(CASES.c.search, folded(search)) > 0) | CASES.c.id.startswith(search, autoescape=True)
        some = sa.select(*SHOWN).where(wanted).order_by(CASES.c.updated.desc(), CASES.c.id).offset(offset).limit(limit)
        count = self._read(sa.select(sa.func.count().label("total")).select_from(CASES).where(wanted))
        total = count[0]["total"]
        return total, [CaseRow(**_decoded(row)) for row in self._read(some)] if total > offset else []

    def same_name(self, case: str, label: str) -> list[str]:
        """The other cases of that label, in any case of letters; none for an empty label."""
        of_label = (CASES.c.search == folded(label), CASES.c.state != "deleted", CASES.c.id != case)
        query = sa.select(CASES.c.id).where(*of_label).order_by(CASES.c.updated.desc(), CASES.c.id).limit(MOST_NAMED)
        return [row["id"] for row in self._read(query)] if label else []

    def events(self, case_id: str, after: int = 0) -> list[Event]:
        """The events of a case after a version, in order."""
        query = sa.select(EVENTS).where(EVENTS.c.case_id == case_id, EVENTS.c.version > after)
        return [Event(**_decoded(row)) for row in self._read(query.order_by(EVENTS.c.version))]

    def checks(self, model: str, since: str = "") -> list[Event]:
        """How the checked cases ended that were finished with a model, at a time or later, in that order.

        A case that was reopened counts once it is finished again, and a deleted one no more.
        """
        ended = (CASES.c.id == EVENTS.c.case_id) & (CASES.c.version == EVENTS.c.version) & (CASES.c.state == "finished")
        query = sa.select(EVENTS).join(CASES, ended).where(ENDED, EVENTS.c.model == model, EVENTS.c.at >= since)
        return [Event(**_decoded(row)) for row in self._read(query.order_by(EVENTS.c.at, EVENTS.c.case_id))]

    def trail(self, case_id: str | None = None) -> Iterator[tuple[str, Event]]:
        """Pairs (label of the case, event) of one case or of all, in the order of time.

        They are read in parts: a client that reads slowly must not hold a connection.
        """
        place = (EVENTS.c.at, EVENTS.c.case_id, EVENTS.c.version)
        query = sa.select(EVENTS).order_by(*place).limit(TRAIL_PART)
        if case_id is not None:
            query = query.where(EVENTS.c.case_id == case_id)
        part = query
        while True:
            found = part.subquery()
            labelled = sa.select(CASES.c.label, found).join(CASES, CASES.c.id == found.c.case_id)
            rows = self._read(labelled.order_by(found.c.at, found.c.case_id, found.c.version))
            for row in rows:
                event = _decoded(row)
                yield event.pop("label"), Event(**event)
            if len(rows) < TRAIL_PART:
                return
            part = query.where(sa.tuple_(*place) > tuple(rows[-1][column.name] for column in place))

    def used(self, by: str, key: str) -> Key | None:
        """What a key was used for."""
        query = sa.select(KEYS).where(KEYS.c.by == by, KEYS.c.key == _hashed(by, key))
        rows = self._read(query)
        return Key(**rows[0]) if rows else None

    def _read(self, query: Any, given: dict[str, Any] | None = None) -> Sequence[sa.RowMapping]:
        with self._engine.connect() as connection:
            return connection.execute(query, given).mappings().all()

    @contextmanager
    def _transaction(self, key: Key | None) -> Iterator[sa.Connection]:
        """One transaction, which also writes the key."""
        with self._writing.begin() as connection:
            if key is not None:
                try:
                    connection.execute(KEYS.insert().values(asdict(key) | {"key": _hashed(key.by, key.key)}))
                except IntegrityError:
                    raise KeyTaken from None
            yield connection


def now() -> str:
    """The time in UTC; as text it sorts and means the same in every database."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def folded(text: str) -> str:
    """Text without the case of letters and without what is written in two ways: "mÜLLER" is "Müller"."""
    return unicodedata.normalize("NFKC", text.casefold())


def _hashed(by: str, key: str) -> str:
    return hashlib.sha256(f"{by}\0{key}".encode()).hexdigest()


def _encoded(row: CaseRow | Event) -> dict[str, Any]:
    return {
        name: json.dumps(value) if name in ("value", "prediction") and value is not None else value
        for name, value in vars(row).items()
    }


def _decoded(row: Any) -> dict[str, Any]:
    found = dict(row)
    for name in ("value", "prediction"):
        if found.get(name) is not None:
            found[name] = json.loads(found[name])
    return found


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
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
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
