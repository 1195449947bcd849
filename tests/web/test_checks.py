"""The promise that is checked while cases are served: drawn once, recorded once, the same from every process."""

import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi")

import sqlalchemy as sa
from sklearn.linear_model import LogisticRegression
from starlette.testclient import TestClient

import askwise
from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.persistence.saving import save
from askwise.table.desk import Desk, Shown
from askwise.web.app import create_app
from askwise.web.checks import EARLY, OPEN, Checks
from askwise.web.database import migrate
from askwise.web.description import version_of
from askwise.web.settings import Settings
from askwise.web.store import ENDED, Store, connect

COLUMNS = ["age", "lab", "culture", "scan"]


def patients(n, seed, changed=False):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=COLUMNS)
    if changed:
        X["scan"] = (X["scan"] - 0.9 * (X["age"] + X["lab"])).round(3)
    X["sex"] = rng.choice([0, 1], n)
    chance = 1 / (1 + np.exp(-2 * (X["age"] + X["lab"] + 2 * X["scan"])))
    return X, np.where(rng.random(n) < chance, "ill", "well")


def fitted(agreement=0.9, **options):
    X, y = patients(300, 0)
    prices = Prices({"age": 0, "sex": 0, "lab": 1, "culture": 1, "scan": 5})
    selector = DynamicFeatureSelector(
        LogisticRegression().fit(X, y), costs=prices, epistemic=None, random_state=0, progress=False
    ).fit(X, y)
    selector.calibrate_stop(patients(400, 1)[0], agreement=agreement, **options)
    return selector


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("checked") / "selector"
    fitted(subgroups="sex").save(path, desk=Desk("CAD", {"scan": Shown("Scan", "mm", low=-9, high=9)}))
    return path


@pytest.fixture
def url(tmp_path):
    found = f"sqlite:///{tmp_path}/cases.sqlite3"
    migrate(found)
    return found


def server(folder, url, check=1.0, **options):
    settings = Settings(str(folder), url, rate=0, check=check, **options)
    return TestClient(create_app(askwise.load(folder), settings), base_url="http://localhost")


def post(client, path, status=(200, 201), **body):
    response = client.post(path, json=body)
    assert response.status_code in status, response.text
    return response.json()


def send(client, case, **body):
    return post(client, f"/api/cases/{case['id']}/events", version=case["version"], **body)


def advised(client, row, **body):
    """A case at the advice to stop."""
    case = post(client, "/api/cases", **body)
    while case["report"]["suggestion"] is not None and case["report"]["check"] is None:
        feature = case["report"]["suggestion"]
        case = send(client, case, type="answer", feature=feature, value=row[feature], confirmed=True)
    return case


def worked(client, row, case=None):
    """A case with everything that is suggested, finished."""
    case = case or advised(client, row)
    while (feature := case["report"]["suggestion"]) is not None:
        case = send(client, case, type="answer", feature=feature, value=row[feature], confirmed=True)
    return send(client, case, type="finish")


def told(client):
    response = client.get("/api/monitor")
    assert response.status_code == 200, response.text
    return response.json()


def rows_of(n, seed, changed=False):
    return patients(n, seed, changed)[0].to_dict("records")


def stopping(selector, n, left=2):
    """Rows of cases that stop with some features left."""
    found = []
    for row in rows_of(200, 9):
        session = selector.start(stop="calibrated", check=True)
        while session.report()["check"] is None:
            feature = session.suggest().feature
            session.answer(feature, row[feature])
        if len(session.report()["check"]["to_ask"]) >= left:
            found.append(row)
        if len(found) == n:
            return found
    raise AssertionError


def test_served_cases_tell_the_monitor_what_a_batch_would(folder, url):
    selector, rows = askwise.load(folder), rows_of(30, 2)
    with server(folder, url) as client:
        for row in rows:
            worked(client, row)
        found = told(client)
    X = pd.DataFrame(rows)
    run, full = selector.acquire(X, stop="calibrated"), selector.predict(X)
    assert selector.stop_ is not None
    monitor = selector.stop_.monitor()
    monitor.update(run.predict() != full, decided=full, subgroup=X["sex"], novelty=selector.novelty_of_rows(X))
    expected = json.loads(json.dumps(monitor.report()))
    assert found["rows"] == expected["rows"]
    assert found["alarms"] == expected["alarms"]
    assert found["novelty"]["evidence"] == pytest.approx(expected["novelty"]["evidence"])
    assert found["stop_price"] == pytest.approx(run.spent_after(-1).mean())
    assert found["stop_price"] + found["check_price"] == pytest.approx(7)
    assert [row["name"] for row in found["rows"] if row["of"] == "subgroup"] == [0, 1]
    assert (found["checked"], found["unused"], found["share"], found["subgroup"]) == (30, [], 1.0, "sex")


def test_which_cases_are_checked_is_drawn_once_and_stays(folder, url):
    with server(folder, url, check=0.5) as client:
        cases = [post(client, "/api/cases") for _ in range(200)]
        trail = client.get("/api/trail").json()["trail"]
    flagged = {row["case"]: bool((row["value"] or {}).get("checked")) for row in trail}
    assert 70 < sum(flagged.values()) < 130
    selector = askwise.load(folder)
    again = Checks(selector, version_of(folder), Store(url), 0.5, version_of(folder).encode())
    assert {case: again.draws(case, {}, None, selector.stop_) for case in flagged} == flagged
    other = Checks(selector, version_of(folder), Store(url), 0.5, b"another key of the operator")
    assert {case: other.draws(case, {}, None, selector.stop_) for case in flagged} != flagged
    # The draw is in the first event: with another share, or none, a case stays what it is.
    row = stopping(selector, 1)[0]
    for share in (0.0, 1.0):
        with server(folder, url, check=share) as client:
            for checked in (True, False):
                at = next(i for i, case in enumerate(cases) if flagged[case["id"]] is checked)
                case = cases.pop(at)
                while case["report"]["suggestion"] is not None and case["report"]["check"] is None:
                    feature = case["report"]["suggestion"]
                    case = send(client, case, type="answer", feature=feature, value=row[feature], confirmed=True)
                assert (case["report"]["check"] is not None) is checked


def test_nothing_promised_is_not_checked(folder, url):
    with server(folder, url) as client:
        for body in ({"known": {"scan": 1.0}}, {"deadline": 5}, {"budget": 3}):
            case = post(client, "/api/cases", **body)
            start = client.get(f"/api/cases/{case['id']}/trail").json()["trail"][0]
            assert "checked" not in start["value"]
        case = post(client, "/api/cases", known={"age": 1.0, "sex": 1})
        start = client.get(f"/api/cases/{case['id']}/trail").json()["trail"][0]
        assert start["value"]["checked"] is True
        assert case["report"]["check"] is None  # it is not told before the advice


def test_why_a_checked_case_tells_nothing(folder, url):
    row = stopping(askwise.load(folder), 1)[0]
    with server(folder, url) as client:
        send(client, post(client, "/api/cases"), type="finish")
        send(client, advised(client, row), type="finish")
        case = advised(client, row)
        skipped = case["report"]["suggestion"]
        worked(client, row, send(client, case, type="unavailable", feature=skipped))
        case = post(client, "/api/cases")
        worked(client, row, send(client, case, type="answer", feature="scan", value=0.1))
        found = told(client)
    why = {one["why"]: one["cases"] for one in found["unused"]}
    assert why.pop(EARLY) == why.pop(OPEN) == why.pop(f"{skipped!r} was skipped") == 1
    assert len(why) == 1
    assert "was answered instead of" in next(iter(why))
    assert found["checked"] == 0
    assert found["state"] == "nothing known"


def test_a_reopened_case_counts_once_it_is_finished_again_and_a_deleted_one_no_more(folder, url):
    first, second, third = rows_of(3, 4)
    with server(folder, url) as client:
        case, other, _last = worked(client, first), worked(client, second), worked(client, third)
        assert told(client)["checked"] == 3
        case = send(client, case, type="reopen")
        assert told(client)["checked"] == 2
        case = send(client, case, type="undo")
        assert case["report"]["check"]["full"] is None
        case = worked(client, first, case)
        assert told(client)["checked"] == 3
        before = told(client)
        client.delete(f"/api/cases/{other['id']}")
        assert told(client)["checked"] == 2
        assert "changed" not in json.dumps(client.get(f"/api/cases/{other['id']}/trail").json())
    with server(folder, url) as fresh:  # from the database alone
        found = told(fresh)
        assert found["checked"] == 2
        assert found != before


def test_two_processes_and_a_restart_in_the_middle_tell_the_same(folder, url):
    rows = stopping(askwise.load(folder), 4)
    with server(folder, url) as one, server(folder, url) as two:
        cases = [advised(one, row) for row in rows]
        going = cases[0]["report"]
        seen = two.get(f"/api/cases/{cases[0]['id']}").json()["report"]
        assert seen == going
        assert seen["check"]["to_ask"]
        for case, row in zip(cases[:3], rows, strict=False):
            worked(two, row, case)
        assert told(one)["checked"] == 3
        assert told(one)["rows"] == told(two)["rows"]
    with server(folder, url, check=0.0) as later:  # the check goes on where it was, although none is drawn any more
        case = later.get(f"/api/cases/{cases[3]['id']}").json()
        assert case["report"]["check"] == cases[3]["report"]["check"]
        worked(later, rows[3], case)
        assert told(later)["checked"] == 4


def test_of_many_who_finish_at_once_one_does_and_repeats_count_once(folder, url):
    row = rows_of(1, 5)[0]
    with server(folder, url) as one, server(folder, url) as two:
        case = advised(one, row)
        while (feature := case["report"]["suggestion"]) is not None:
            case = send(one, case, type="answer", feature=feature, value=row[feature], confirmed=True)
        barrier = threading.Barrier(8)

        def finish(k):
            barrier.wait()
            client, key = (one, two)[k % 2], {"Idempotency-Key": f"key {k // 4}".replace(" ", "-")}
            body = {"type": "finish", "version": case["version"]}
            return client.post(f"/api/cases/{case['id']}/events", json=body, headers=key).status_code

        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(finish, range(8)))
        assert set(statuses) <= {200, 409}
        assert 1 <= statuses.count(200) <= 4
        assert told(one)["checked"] == told(two)["checked"] == 1
        trail = one.get(f"/api/cases/{case['id']}/trail").json()["trail"]
        assert [row["event"] for row in trail].count("finish") == 1


def test_a_selector_that_is_replaced_leaves_open_cases_unchecked(folder, url, tmp_path):
    row = stopping(askwise.load(folder), 1)[0]
    with server(folder, url) as client:
        case = advised(client, row)
        worked(client, row)
    other = tmp_path / "other"
    fitted(agreement=0.8, subgroups="sex").save(other)
    with server(other, url) as client:
        found = client.get(f"/api/cases/{case['id']}").json()
        assert found["report"]["check"] is None  # it would check a promise that was not made for it
        ended = send(client, found, type="finish")
        trail = client.get(f"/api/cases/{ended['id']}/trail").json()["trail"]
        assert trail[-1]["value"] is None
        assert told(client)["checked"] == 0  # of the new promise nothing is known
    with server(folder, url) as client:
        assert told(client)["checked"] == 1


def test_the_promise_is_among_the_metrics(folder, url):
    with server(folder, url) as client:
        for row in rows_of(5, 6):
            worked(client, row)
        text = client.get("/metrics").text
        rows = told(client)["rows"]
    found = dict(re.findall(r"^(askwise_.+) (\S+)$", text, re.MULTILINE))
    assert float(found['askwise_promise_cases{name="all cases",of="all"}']) == 5
    assert float(found['askwise_promise_promised{name="all cases",of="all"}']) == pytest.approx(0.9)
    assert float(found['askwise_promise_alarm{name="ill",of="class"}']) == 0
    assert float(found['askwise_promise_low{name="all cases",of="all"}']) == pytest.approx(rows[0]["low"])
    assert float(found["askwise_checks_unused"]) == 0
    assert float(found["askwise_novelty_needed"]) == pytest.approx(50)
    assert "askwise_requests_total" in text


def test_metrics_are_answered_without_the_database(folder, url, monkeypatch):
    with server(folder, url) as client:
        monkeypatch.setattr(Store, "checks", _away)
        text = client.get("/metrics").text
        assert "askwise_requests_total" in text
        assert "askwise_promise" not in text
        assert client.get("/api/monitor").status_code == 503


def _away(*_):
    raise sa.exc.OperationalError("SELECT", {}, Exception("away"))


def test_without_an_agreement_there_is_nothing_to_check(tmp_path, url):
    selector = fitted()
    selector.stop_ = None
    selector.save(tmp_path / "plain")
    with pytest.raises(InvalidInput, match="--check and --subgroup need a selector whose stop promises an agreement"):
        server(tmp_path / "plain", url)
    with server(tmp_path / "plain", url, check=0.0) as client:
        assert client.get("/api/monitor").status_code == 404
        assert "askwise_promise" not in client.get("/metrics").text
        assert client.get("/api/selector").json()["check"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"check": 1.5}, "--check must be a share"),
        ({"check": float("nan")}, "--check must be a share"),
        ({"subgroup": "sax"}, "Did you mean 'sex'"),
        ({"subgroup": "scan"}, "different values"),
    ],
)
def test_options_that_make_no_sense_are_refused(folder, url, options, said):
    with pytest.raises(InvalidInput, match=said):
        server(folder, url, **options)


def test_the_monitor_is_for_those_with_a_token(folder, url, tmp_path):
    (tmp_path / "tokens").write_text("ann:a-token-of-good-length\n")
    with server(folder, url, token_file=str(tmp_path / "tokens")) as client:
        assert client.get("/api/monitor").status_code == client.get("/metrics").status_code == 401
        given = {"Authorization": "Bearer a-token-of-good-length"}
        assert client.get("/api/monitor", headers=given).status_code == 200
        assert client.get("/api/monitor?share=1&model=x'--", headers=given).json()["checked"] == 0
        assert client.post("/api/monitor", headers=given, json={"rows": []}).status_code == 405


def test_what_a_check_tells_cannot_be_sent_by_a_client(folder, url):
    row = stopping(askwise.load(folder), 1)[0]
    forged = {"unused": None, "changed": False, "full": "ill", "stopped": "ill"}
    with server(folder, url) as client:
        case = advised(client, row)
        body = {"type": "finish", "version": case["version"], "value": forged}
        client.post(f"/api/cases/{case['id']}/events", json=body)
        assert told(client)["checked"] == 0
        for extra in ({"checked": False}, {"check": None}):
            assert client.post("/api/cases", json=extra).status_code == 422


def test_the_index_of_the_checks_is_used(url):
    engine = connect(url)
    query = f"EXPLAIN QUERY PLAN SELECT * FROM events WHERE {ENDED} AND at >= ''"
    with engine.connect() as connection:
        plan = " ".join(str(row) for row in connection.exec_driver_sql(query))
    assert "ix_events_checks" in plan


def run(*arguments, code=0):
    done = subprocess.run([sys.executable, "-m", "askwise", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stderr if code else done.stdout


def check_monitor_and_recalibrate(folder, url, tmp_path):
    with server(folder, url) as client:
        for row in rows_of(50, 7):
            worked(client, row)
        since = "2100-01-01"
        expected = told(client)
    assert json.loads(run("monitor", folder, "--from", url, "--json")) == {**expected, "share": 0.0}
    said = run("monitor", folder, "--from", url)
    assert "Nothing speaks against the promise" in said
    assert "subgroup 0" in said
    assert "0 checked cases since then are complete" in run(
        "recalibrate", folder, "--from", url, "--since", since, "-o", tmp_path / "no", code=2
    )
    found = json.loads(run("recalibrate", folder, "--from", url, "-o", tmp_path / "new", "--json"))
    assert (found["cases"], found["left_out"], found["lost"]) == (50, 0, found["lost"])
    old, new = askwise.load(folder), askwise.load(tmp_path / "new")
    assert new.stop_ is not None
    X = patients(40, 8)[0]
    np.testing.assert_array_equal(old.estimator_.predict_proba(X), new.estimator_.predict_proba(X))
    np.testing.assert_array_equal(old.predict_proba(X.mask(X > 0)), new.predict_proba(X.mask(X > 0)))
    assert new.stop_.n_rows == 50
    assert new.stop_.grouped_by == "sex"
    assert new.stop_.threshold == found["new"]["threshold"]
    assert Desk.load(tmp_path / "new", new).label("scan") == "Scan"
    # It is what calibrating on these very rows gives.
    again = old.calibrate_stop(pd.DataFrame(rows_of(50, 7)), agreement=0.9, subgroups="sex")
    assert again.threshold == new.stop_.threshold


def test_monitor_and_recalibrate_on_the_command_line(folder, url, tmp_path):
    check_monitor_and_recalibrate(folder, url, tmp_path)


def test_monitor_and_recalibrate_with_postgres(folder, postgres, tmp_path):
    url = postgres.another_database("checks")
    migrate(url)
    check_monitor_and_recalibrate(folder, url, tmp_path)


def test_recalibrate_in_place_is_a_new_version(folder, url, tmp_path):
    place = tmp_path / "selector"
    askwise.load(folder).save(place, rows="training")
    version = version_of(place)
    with server(place, url) as client:
        rows = rows_of(8, 3)
        for row in rows:
            worked(client, row)
        said = run("recalibrate", place, "--from", url, code=2)
        assert "8 checked cases are complete" in said
        assert "needs 22" in said
        assert version_of(place) == version
        for row in rows_of(52, 11):
            worked(client, row)
        run("recalibrate", place, "--from", url)
        assert version_of(place) != version
        assert told(client)["checked"] == 60  # the server goes on with what it has loaded
    assert "No case was checked yet" in run("monitor", place, "--from", url)


def test_databases_that_no_server_has_used(folder, tmp_path):
    assert "There is no database" in run("monitor", folder, "--from", f"sqlite:///{tmp_path}/none.sqlite3", code=2)
    assert not (tmp_path / "none.sqlite3").exists()
    (tmp_path / "empty.sqlite3").touch()
    assert "holds no cases" in run("monitor", folder, "--from", f"sqlite:///{tmp_path}/empty.sqlite3", code=2)
    assert "--since must be a date" in run("recalibrate", folder, "--since", "tomorrow", code=2)


def test_synthetic_rows_stay_declared_as_such(folder, url, tmp_path):
    place = tmp_path / "synthetic"
    askwise.load(folder).save(place, rows="synthetic")
    drawn = askwise.load(place)
    drawn.calibrate_stop(patients(400, 1)[0], agreement=0.9)
    save(drawn, place, like=json.loads((place / "manifest.json").read_text()))
    with server(place, url) as client:
        for row in rows_of(45, 12):
            worked(client, row)
    run("recalibrate", place, "--from", url, "-o", tmp_path / "new")
    before, after = (json.loads((path / "manifest.json").read_text()) for path in (place, tmp_path / "new"))
    for name in ("rows", "training_rows", "synthetic"):
        assert after[name] == before[name]
    assert after["rows"] == "synthetic"
