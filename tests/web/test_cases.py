"""Cases replayed and kept: one of two wins, nothing is computed twice, a deleted value is nowhere."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from tests.web.conftest import drawn_rows

import askwise
from askwise.errors import InvalidInput
from askwise.table.columns import plain
from askwise.web.cases import Cases
from askwise.web.database import migrate
from askwise.web.description import Description
from askwise.web.failures import Refused
from askwise.web.messages import NewCase, NewEvent
from askwise.web.store import METADATA, Key, Store, connect


@pytest.fixture(scope="module")
def selector(folder):
    return askwise.load(folder)


@pytest.fixture
def sqlite(tmp_path):
    url = f"sqlite:///{tmp_path}/cases.sqlite3"
    migrate(url)
    return url


def process(folder, selector, url, **options):
    """Cases as another process would hold them: with a store and a memory of its own."""
    return Cases(selector, Description(selector, folder), Store(url), **options)


def answer(version, feature="age", value=61, **given):
    return NewEvent(type="answer", feature=feature, value=value, version=version, **given)


def outcomes(calls):
    """What calls at the same moment lead to: a view, or the status of the refusal."""
    barrier = threading.Barrier(len(calls))

    def run(call):
        barrier.wait()
        try:
            return call()
        except Refused as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def check_that_one_wins(folder, selector, url):
    processes = [process(folder, selector, url), process(folder, selector, url)]
    case = processes[0].start(NewCase(), "ann")
    for version in range(1, 6):
        calls = [
            lambda p=processes[i % 2], i=i, v=version: p.add(
                case["id"], answer(v, value=20 + i) if v % 2 else NewEvent(type="undo", version=v), f"person {i}"
            )
            for i in range(4)
        ]
        found = outcomes(calls)
        won = [view for view in found if not isinstance(view, Refused)]
        lost = [error for error in found if isinstance(error, Refused)]
        assert (len(won), {error.status for error in lost}) == (1, {409})
        assert all(error.case == won[0] for error in lost)
        assert all(p.view(case["id"]) == won[0] for p in processes)


def test_of_answers_at_the_same_moment_one_wins(folder, selector, sqlite):
    check_that_one_wins(folder, selector, sqlite)


def test_one_wins_on_postgresql(folder, selector, postgres):
    migrate(postgres.url)
    check_that_one_wins(folder, selector, postgres.url)


def test_a_key_sent_at_the_same_moment_is_used_once(folder, selector, sqlite):
    processes = [process(folder, selector, sqlite), process(folder, selector, sqlite)]
    key = Key("ann", "k", "digest", "", 0)
    calls = [lambda p=p: p.once(key, lambda: p.start(NewCase(label="once"), "ann", key))[0] for p in processes * 3]
    found = outcomes(calls)
    assert len({view["id"] for view in found}) == 1
    case = found[0]
    key = Key("ann", "k2", "digest", "", 0)
    calls = [lambda p=p: p.once(key, lambda: p.add(case["id"], answer(1), "ann", key))[0] for p in processes * 3]
    assert [view["version"] for view in outcomes(calls)] == [2] * 6
    assert Store(sqlite).cases("", "all", 0, 10)[0] == 1


def test_a_case_in_memory_is_not_computed_again(folder, selector, sqlite):
    replayed = []
    here, there = (process(folder, selector, sqlite, replayed=lambda: replayed.append(1)) for _ in range(2))
    case = here.start(NewCase(), "ann")
    for version in range(1, 4):
        here.add(case["id"], answer(version) if version % 2 else NewEvent(type="undo", version=version), "ann")
    before = here.view(case["id"])
    assert here.view(case["id"]) is before  # the same object: nothing was computed
    assert not replayed
    assert there.view(case["id"]) == before
    assert len(replayed) == 1
    after = here.add(case["id"], answer(4, "pulse", 70), "ann")
    assert there.view(case["id"]) == after  # continued from what it had
    assert len(replayed) == 1


def test_a_case_that_another_process_deletes_meanwhile_is_not_found(folder, selector, sqlite, monkeypatch):
    here, there = process(folder, selector, sqlite), process(folder, selector, sqlite)
    find = here._store.case

    def deleted_after(case_id):
        row = find(case_id)
        there.delete(case_id, "bob")
        return row

    for steps in ("nothing in memory", "an older version in memory"):
        case = there.start(NewCase(), "ann")["id"]
        if steps == "an older version in memory":
            here.view(case)
            there.add(case, answer(1), "bob")
        with monkeypatch.context() as patch:
            patch.setattr(here._store, "case", deleted_after)
            with pytest.raises(Refused) as refused:
                here.view(case)
        assert refused.value.status == 404, steps


def test_a_refused_answer_leaves_the_case_as_it_was(folder, selector, sqlite):
    cases = process(folder, selector, sqlite)
    case = cases.start(NewCase(), "ann")
    with pytest.raises(Refused, match="must be a number"):
        cases.add(case["id"], answer(1, "pulse", "high"), "ann")
    assert cases.view(case["id"]) is case


def test_a_model_that_fails_on_a_value_is_not_the_servers_fault(folder, selector, sqlite, monkeypatch):
    cases = process(folder, selector, sqlite)
    case = cases.start(NewCase(), "ann")
    monkeypatch.setattr("askwise.case.session.Session.report", lambda self: 1 / 0)
    with pytest.raises(Refused, match="does not take this value") as refusal:
        cases.add(case["id"], answer(1), "ann")
    assert (refusal.value.status, refusal.value.field) == (422, "value")
    monkeypatch.undo()
    assert cases.view(case["id"]) == case
    assert cases.add(case["id"], answer(1), "ann")["report"]["known"] == {"age": 61}


def test_cases_survive_another_model(folder, selector, sqlite, tmp_path):
    case = process(folder, selector, sqlite).start(NewCase(known={"pulse": 70}), "ann")
    other = askwise.load(folder)
    other.schema_.features[other.schema_.features.index("pulse")] = "heart rate"
    with pytest.raises(Refused, match=r"recorded with another model.*no feature 'pulse'") as refusal:
        process(folder, other, sqlite).view(case["id"])
    assert refusal.value.status == 409
    assert [event.type for _, event in Store(sqlite).trail()] == ["start"]


def test_a_calibrated_stop_is_used_for_the_budget_it_was_calibrated_for(folder, sqlite):
    selector = askwise.load(folder)
    selector.calibrate_stop(drawn_rows(1), average_price=2.0)
    cases = process(folder, selector, sqlite)
    assert "cases cost" in cases.start(NewCase(), "ann")["report"]["guarantee"]
    assert cases.start(NewCase(budget=5), "ann")["report"]["guarantee"] is None
    assert "cases cost" in Description(selector, folder).as_dict()["guarantee"]["text"]


def test_a_deleted_value_is_in_no_file(folder, selector, tmp_path):
    """Also after the pages of the file were split, emptied and filled again."""
    url = f"sqlite:///{tmp_path}/cases.sqlite3"
    migrate(url)
    cases, other = process(folder, selector, url), process(folder, selector, url)
    kept = [cases.start(NewCase(label=f"kept {i} " + "x" * 150), "ann") for i in range(40)]
    secret = cases.start(NewCase(label="Mrs Secret", known={"pulse": 70.0815}), "ann")
    key = Key("ann", "key-of-mrs-secret", "feedfacefeedface", "", 0)
    secret = cases.add(secret["id"], answer(1, "age", 97.0815), "ann", key)
    for case in kept:
        cases.add(case["id"], answer(1), "ann")
    assert other.view(secret["id"]) == secret
    files = [Path(f"{tmp_path}/cases.sqlite3{end}") for end in ("", "-wal", "-shm", "-journal")]
    traces = [b"Mrs Secret", b"mrs secret", b"70.0815", b"97.0815", b"feedfacefeedface"]
    written = b"".join(file.read_bytes() for file in files if file.exists())
    assert all(trace in written for trace in traces)
    assert b"key-of-mrs-secret" not in written  # of keys there are digests only
    other.delete(secret["id"], "bob")
    left = b"".join(file.read_bytes() for file in files if file.exists())
    assert not [trace for trace in traces if trace in left]
    with pytest.raises(Refused, match="no case"):
        cases.view(secret["id"])
    assert cases._kept.get(secret["id"]) is None
    (event,) = [event for _, event in Store(url).trail(secret["id"])]
    assert (event.type, event.by, event.version, event.value) == ("deleted", "bob", 3, None)
    assert len(list(Store(url).trail())) == 2 * len(kept) + 1


def test_a_deleted_value_leaves_the_tables_of_postgresql(folder, selector, postgres):
    migrate(postgres.url)
    cases = process(folder, selector, postgres.url)
    case = cases.start(NewCase(label="Mr Gone", known={"pulse": 70.25}), "ann")
    cases.delete(case["id"], "bob")
    with connect(postgres.url).connect() as connection:
        dead = connection.execute(
            sa.text("SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE relname <> 'alembic_version'")
        ).scalar_one()
        rows = connection.execute(sa.text("SELECT label FROM cases WHERE label LIKE 'Mr Gone'")).all()
    assert (dead, rows) == (0, [])


def test_migrations_make_the_tables_that_the_store_uses(sqlite, postgres):
    migrate(postgres.url)
    for url in (sqlite, postgres.url):
        migrate(url)  # again: nothing to do
        with connect(url).connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_an_older_database_is_brought_up_to_date(folder, selector, tmp_path, postgres):
    """Its cases are found in any case of letters, its keys are recognized, and their text is gone."""
    for url in (f"sqlite:///{tmp_path}/old.sqlite3", postgres.another_database("old")):
        migrate(url, "0001")
        with connect(url).execution_options(writes=True).begin() as connection:
            for table, row in {
                "cases": {
                    "id": "c" * 32,
                    "label": "Müller",
                    "version": 1,
                    "state": "open",
                    "created": "",
                    "updated": "",
                },
                "idempotency_keys": {"by": "ann", "key": "plain", "digest": "d", "case_id": "c" * 32, "version": 1},
            }.items():
                connection.execute(sa.table(table, *map(sa.column, row)).insert().values(row))
        migrate(url)
        store = Store(url)
        assert [row.id for row in store.cases("mÜLLER", "all", 0, 10)[1]] == ["c" * 32]
        used = store.used("ann", "plain")
        assert used is not None
        assert used.case_id == "c" * 32
        with connect(url).connect() as connection:
            assert "plain" not in connection.execute(sa.text("SELECT key FROM idempotency_keys")).scalars().all()


def test_the_trail_is_read_in_parts(folder, selector, sqlite, monkeypatch):
    cases = process(folder, selector, sqlite)
    for i in range(3):
        case = cases.start(NewCase(label=f"case {i}"), "ann")
        cases.add(case["id"], answer(1), "ann")
    whole = list(Store(sqlite).trail())
    assert [(label, event.version) for label, event in whole] == [(f"case {i}", v) for i in range(3) for v in (1, 2)]
    for part in (1, 2, 3, 5, 6):
        monkeypatch.setattr("askwise.web.store.TRAIL_PART", part)
        assert list(Store(sqlite).trail()) == whole


def test_searches_and_the_trail_read_indexes(sqlite):
    """In time that grows with the cases, not with their square, and without reading their other columns."""
    search = "SELECT count(*) FROM cases WHERE state != 'deleted' AND (instr(search, 'x') > 0 OR id LIKE 'x%')"
    trail = "SELECT * FROM events WHERE (at, case_id, version) > ('2026', 'c', 1) ORDER BY at, case_id, version"
    plans = {search: "COVERING INDEX ix_cases_search", trail: "SEARCH events USING INDEX ix_events_order"}
    with connect(sqlite).connect() as connection:
        for query, plan in plans.items():
            found = " ".join(row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))
            assert plan in found
            assert "TEMP B-TREE" not in found


def test_the_guarantee_is_shown_on_cases_that_it_holds_for(folder, sqlite):
    selector = askwise.load(folder)
    rows = drawn_rows(1)
    selector.calibrate_stop(rows, average_price=3.0)
    cases = process(folder, selector, sqlite)
    row = rows.iloc[0].to_dict() | {"blood": {"iron": rows["iron"][0], "zinc": rows["zinc"][0]}}

    def promised(view):
        return view["report"]["guaranteed"], view["report"]["guarantee"]

    def answered(view, feature=None):
        feature = feature or view["report"]["suggestion"]
        value = {k: plain(v) for k, v in row["blood"].items()} if feature == "blood" else plain(row[feature])
        return cases.add(view["id"], answer(view["version"], feature, value), "ann")

    def finished(view):
        return cases.add(view["id"], NewEvent(type="finish", version=view["version"]), "ann")

    case = cases.start(NewCase(), "ann")
    assert promised(case)[0] is False
    assert promised(case)[1].startswith("No guarantee yet. Once the stopping rule has stopped the case: ")
    assert promised(finished(case)) == (
        False,
        "No guarantee: the case was finished before the stopping rule stopped it.",
    )
    overridden = answered(answered(cases.start(NewCase(), "ann")), "smoker")
    assert promised(finished(overridden))[0] is False
    assert "does not hold for this case" in promised(finished(cases.start(NewCase(known={"pulse": 70}), "ann")))[1]
    case = cases.start(NewCase(), "ann")
    while case["advice"] == "ask":
        case = answered(case)
    assert case["advice"] == "stop"
    assert selector.stop_ is not None
    assert promised(finished(case)) == (True, selector.stop_.promise)


def test_databases_that_cannot_be_used_are_refused(tmp_path, sqlite):
    with connect(sqlite).execution_options(writes=True).begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    for url, message in [
        (sqlite, "newer askwise"),
        (f"sqlite:///{tmp_path}/nowhere/cases.sqlite3", "unable to open"),
        ("sqlite://", "SQLite file or a PostgreSQL"),
        ("mysql://root@localhost/x", "got mysql"),
        ("cases.sqlite3", "must be a URL"),
        ("postgresql://nobody:hunter2@127.0.0.1:1/x", "cannot be used"),
    ]:
        with pytest.raises(InvalidInput, match=message) as refusal:
            migrate(url)
        assert "hunter2" not in str(refusal.value)
