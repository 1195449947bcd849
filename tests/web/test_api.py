"""The endpoints, each as the page and other clients use it."""

import csv
import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

import askwise
from askwise.table.desk import Desk
from askwise.web.app import create_app
from askwise.web.database import migrate
from askwise.web.settings import Settings


@pytest.fixture(scope="module")
def client(folder, tmp_path_factory):
    settings = Settings(str(folder), f"sqlite:///{tmp_path_factory.mktemp('api')}/cases.sqlite3", rate=0)
    migrate(settings.url)
    with TestClient(create_app(askwise.load(folder), settings), base_url="http://localhost") as client:
        yield client


def start(client, **body):
    response = client.post("/api/cases", json=body)
    assert response.status_code == 201, response.text
    return response.json()


def send(client, case, status=200, key=None, **body):
    body = {"version": case["version"], **body}
    headers = {} if key is None else {"Idempotency-Key": key}
    response = client.post(f"/api/cases/{case['id']}/events", json=body, headers=headers)
    assert response.status_code == status, response.text
    return response.json()


def test_the_selector_is_described_in_the_words_of_the_desk(client):
    found = client.get("/api/selector").json()
    features = {feature["name"]: feature for feature in found["features"]}
    assert list(features) == ["age", "pulse", "city", "smoker", "blood"]
    age = {"name": "age", "label": "Age", "unit": "years", "price": 0.0, "kind": "number", "low": 0, "high": 110}
    assert features["age"] == {**age, "values": None, "seen": False}
    assert (features["city"]["kind"], features["city"]["values"]) == ("category", ["Ghent", "Lille", "Namur"])
    assert features["smoker"]["kind"] == "boolean"
    assert features["blood"]["kind"] == "group"
    assert [column["name"] for column in features["blood"]["columns"]] == ["iron", "zinc"]
    assert found["classes"] == ["ill", "well"]
    assert found["currency"] == "CAD"
    assert found["versions"]["askwise"] == askwise.__version__


def test_a_case_from_start_to_finish(client, folder):
    case = start(client, label="bed 3", known={"pulse": 71}, budget=10)
    session = askwise.load(folder).start({"pulse": 71}, budget=10)
    for kind, feature, value in [
        ("answer", "age", 61),
        ("unavailable", "city", None),
        ("answer", "blood", {"iron": 0.5, "zinc": None}),
        ("undo", None, None),
        ("answer", "smoker", True),
    ]:
        case = send(client, case, type=kind, feature=feature, value=value)
        getattr(session, kind)(*[given for given in (feature, value) if given is not None])
    assert case["version"] == 6
    assert case["report"] == session.report()
    assert case["why"]["text"]
    assert case["advice"] == "ask"
    assert case["report"]["known"] == {"age": 61, "pulse": 71.0, "smoker": True}
    assert send(client, case, 422, type="reopen")["error"]["field"] == "type"
    case = send(client, case, type="finish")
    assert case["state"] == "finished"
    assert send(client, case, 422, type="answer", feature="blood", value={"iron": 1})["error"]["field"] == "type"
    assert [row["id"] for row in client.get("/api/cases?state=finished").json()["cases"]] == [case["id"]]
    case = send(client, case, type="reopen")
    assert client.get(f"/api/cases/{case['id']}").json() == {**case, "same_name": []}
    assert case["why"] == session.why(Desk.load(folder, askwise.load(folder)), outcomes=False)
    whole = client.get(f"/api/cases/{case['id']}/why").json()
    assert whole == {"version": case["version"], **session.why(Desk.load(folder, askwise.load(folder)))}
    assert whole["outcomes"]
    assert client.get(f"/api/cases/{'0' * 32}/why").status_code == 404


def test_the_case_can_be_found(client):
    ids = [start(client, label=label)["id"] for label in ("Ward 7, 100%", "ward 8", "WARD_7")]
    found = client.get("/api/cases", params={"search": "ward 7"}).json()
    assert (found["total"], found["cases"][0]["id"]) == (1, ids[0])
    assert client.get("/api/cases", params={"search": "100%"}).json()["total"] == 1
    assert client.get("/api/cases", params={"search": "_"}).json()["total"] == 1  # not a wildcard
    some = client.get("/api/cases", params={"search": "ward", "limit": 1, "offset": 1}).json()
    assert (some["total"], [row["id"] for row in some["cases"]]) == (3, [ids[1]])
    assert client.get("/api/cases", params={"search": ids[2][:9]}).json()["cases"][0]["label"] == "WARD_7"
    row = some["cases"][0]
    assert set(row) == {"id", "label", "created", "updated", "state", "prediction", "probability", "spent"}


def test_a_case_is_found_in_any_case_of_letters(client):
    """Also beyond ASCII, and if its letters are composed in another way, as some keyboards do."""
    case = start(client, label="Müller, Straße 7")["id"]
    for search in ("mÜLLER", "STRASSE", "Mu\u0308ller", "müller"):
        assert [row["id"] for row in client.get("/api/cases", params={"search": search}).json()["cases"]] == [case], (
            search
        )
    assert client.get("/api/cases", params={"search": "Muller"}).json()["total"] == 0


def test_a_second_case_of_a_name_is_told_of(client):
    first = start(client, label="Müller")
    second = start(client, label="MÜLLER")
    assert (first["same_name"], second["same_name"]) == ([], [first["id"]])
    assert client.get(f"/api/cases/{first['id']}").json()["same_name"] == [second["id"]]
    assert start(client)["same_name"] == start(client)["same_name"] == []  # cases without a name have none in common
    client.delete(f"/api/cases/{second['id']}")
    assert client.get(f"/api/cases/{first['id']}").json()["same_name"] == []


def test_names_given_twice_and_invisible_characters_are_refused(client):
    case, total = start(client), client.get("/api/cases").json()["total"]
    path, headers = f"/api/cases/{case['id']}/events", {"Content-Type": "application/json"}
    for url, text, name in (
        ("/api/cases", '{"label": "a", "label": "b"}', "label"),
        ("/api/cases", '{"known": {"pulse": 60, "pulse": 90}}', "pulse"),
        (path, '{"type": "answer", "feature": "pulse", "value": 60, "value": 90, "version": 1}', "value"),
    ):
        response = client.post(url, content=text, headers=headers)
        assert response.status_code == 400
        assert f"'{name}' more than once" in response.json()["error"]["message"]
    for character in "\u202e\u2066\u200b\ufeff\u00ad\u2028":
        response = client.post("/api/cases", json={"label": f"Mrs {character}Miller"})
        assert response.status_code == 422
        assert response.json()["error"]["field"] == "label"
        assert f"U+{ord(character):04X}" in response.json()["error"]["message"]
    assert client.get("/api/cases").json()["total"] == total


def test_what_is_wrong_is_named(client):
    case = start(client)
    answer = {"type": "answer", "feature": "pulse"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"type": "answr"}, "type"),
        ({"type": "undo"}, "type"),
        ({"type": "undo", "version": "1"}, "version"),
        ({"type": "undo", "version": 0}, "version"),
        ({"type": "undo", "colour": "red"}, "colour"),
        ({"type": "answer"}, "feature"),
        ({"type": "unavailable", "feature": "pulze"}, "feature"),
        ({**answer}, "value"),
        ({**answer, "value": "high"}, "value"),
        ({**answer, "value": True}, "value"),
        ({**answer, "value": {"pulse": [1]}}, "value"),
        ({**answer, "value": {"iron": 1}}, "value"),
        ({**answer, "value": 2**60}, "value"),
        ({**answer, "value": 70, "confirmed": 1}, "confirmed"),
        ({"type": "answer", "feature": "city", "value": "Oslo"}, "value"),
        ({"type": "answer", "feature": "city", "value": "\x00"}, "value"),
    ]
    for body, field in wrong:
        error = send(client, case, 422, **body)["error"]
        assert error["field"] == field, (body, error)
        assert error["message"]
    for value, reason in (
        (2**60, "9007199254740991"),
        ("\x00", "must not hold control"),
        ([1], "must be a number, true"),
    ):
        assert reason in send(client, case, 422, **answer, value=value)["error"]["message"]
    for given, field in [
        ({"label": "x" * 201}, "label"),
        ({"label": "bell \x07"}, "label"),
        ({"budget": -1}, "budget"),
        ({"budget": "1"}, "budget"),
        ({"known": {"pulse": "high"}}, "known"),
        ({"known": {"pulze": 70}}, "known.pulze"),
        ({"known": [1]}, "known"),
    ]:
        response = client.post("/api/cases", json=given)
        assert response.status_code == 422
        assert response.json()["error"]["field"].startswith(field), response.text
    for text in (
        '{"budget": NaN}',
        '{"budget": 1e999}',
        "{",
        '"\\ud800"',
        "[" * 5000,
        '{"budget": 1' + "0" * 5000 + "}",
    ):
        response = client.post("/api/cases", content=text, headers={"Content-Type": "application/json"})
        assert response.status_code in (400, 422), text
        assert set(response.json()["error"]) == {"field", "message"}
    assert client.post("/api/cases", content="{}", headers={"Content-Type": "text/plain"}).status_code == 422
    assert client.get(f"/api/cases/{'0' * 32}").status_code == 404
    assert client.get("/api/cases/..%2fx").status_code in (404, 422)
    assert client.get(f"/api/cases/{case['id']}").json() == case  # nothing of all that was stored


def test_an_unusual_value_is_stored_once_it_is_confirmed(client):
    case = start(client)
    answer = {"type": "answer", "feature": "age", "value": 190}
    error = send(client, case, 428, **answer)["error"]
    assert error == {
        "field": "value",
        "message": "Age is 190; 0 to 110 years expected. Confirm it if it is right.",
        "needs": "confirmation",
    }
    group = {"type": "answer", "feature": "blood", "value": {"iron": 1e6}}
    assert "iron is 1000000; " in send(client, case, 428, **group)["error"]["message"]
    assert client.get(f"/api/cases/{case['id']}").json()["version"] == 1
    assert send(client, case, confirmed=True, **answer)["report"]["known"]["age"] == 190
    known = {"known": {"age": 190}}
    assert client.post("/api/cases", json=known).json()["error"]["field"] == "known.age"
    assert start(client, **known, confirmed=True)["report"]["known"] == {"age": 190}


def test_of_two_answers_to_one_version_the_second_is_told_what_is_there_now(client):
    case = start(client)
    changed = send(client, case, type="answer", feature="age", value=61)
    refused = send(client, case, 409, type="answer", feature="age", value=62)
    assert refused["case"] == changed
    assert refused["error"]["field"] == "version"


def test_the_same_request_with_the_same_key_is_carried_out_once(client):
    body = {"label": "twice"}
    first, second = (client.post("/api/cases", json=body, headers={"Idempotency-Key": "k-start"}) for _ in range(2))
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert second.headers["Idempotency-Replayed"] == "true"
    case = first.json()
    assert client.get("/api/cases?search=twice").json()["total"] == 1
    answer = {"type": "answer", "feature": "age", "value": 61}
    changed = send(client, case, key="k-answer", **answer)
    later = send(client, changed, type="answer", feature="pulse", value=70.5)
    assert send(client, case, key="k-answer", **answer) == changed  # as it was answered then, although it has gone on
    assert client.get(f"/api/cases/{case['id']}").json() == {**later, "same_name": []}
    error = send(client, later, 422, key="k-answer", type="undo")["error"]
    assert error["field"] == "Idempotency-Key"
    assert send(client, later, 422, key="a b", type="undo")["error"]["field"].lower() == "idempotency-key"
    client.delete(f"/api/cases/{case['id']}")
    assert client.post("/api/cases", json=body, headers={"Idempotency-Key": "k-start"}).status_code == 404


def test_the_trail_tells_who_did_what_with_which_model(client, monkeypatch):
    case = start(client, label="=2+3", known={"pulse": 71})
    case = send(client, case, type="answer", feature="city", value="Lille")
    send(client, case, type="undo")
    path = f"/api/cases/{case['id']}/trail"
    rows = client.get(path).json()["trail"]
    assert [row["event"] for row in rows] == ["start", "answer", "undo"]
    assert rows[0]["value"] == {"known": {"pulse": 71}, "budget": None}
    answered = rows[1]
    assert (answered["suggested"], answered["feature"], answered["value"]) == ("age", "city", "Lille")
    assert (answered["by"], answered["cost"], answered["version"]) == ("local", 1.0, 2)
    assert answered["prediction"] in ("ill", "well")
    assert 0 < answered["probability"] < 1
    assert answered["model"] == client.get("/api/selector").json()["versions"]["model"]
    assert answered["askwise"] == askwise.__version__
    response = client.get(path, params={"format": "csv"})
    assert response.headers["content-type"].startswith("text/csv")
    table = list(csv.DictReader(io.StringIO(response.text)))
    assert table[0]["label"] == "'=2+3"  # a spreadsheet shows it instead of running it
    assert json.loads(table[0]["value"])["known"] == {"pulse": 71}
    monkeypatch.setattr("askwise.web.store.TRAIL_PART", 2)
    everything = client.get("/api/trail").json()["trail"]
    assert len({(row["case"], row["version"]) for row in everything}) == len(everything) >= len(rows)
    assert rows[1] in everything
    assert [row["at"] for row in everything] == sorted(row["at"] for row in everything)
    assert client.get(path, params={"format": "xml"}).json()["error"]["field"] == "format"


def test_a_deleted_case_is_gone_and_the_trail_says_so(client):
    case = start(client, label="Mrs Secret")
    assert client.delete(f"/api/cases/{case['id']}").status_code == 204
    for response in (
        client.get(f"/api/cases/{case['id']}"),
        client.delete(f"/api/cases/{case['id']}"),
        client.post(f"/api/cases/{case['id']}/events", json={"type": "finish", "version": 1}),
    ):
        assert response.status_code == 404
    assert client.get("/api/cases?search=Secret").json()["total"] == 0
    (row,) = client.get(f"/api/cases/{case['id']}/trail").json()["trail"]
    assert (row["event"], row["by"], row["label"], row["value"]) == ("deleted", "local", "", None)


def test_operators_get_what_they_ask_for(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ok"}
    start(client)
    text = client.get("/metrics").text
    assert 'askwise_requests_total{method="POST",route="/api/cases",status="201"}' in text
    assert "askwise_request_seconds_bucket" in text
    assert 'askwise_events_total{type="start"}' in text
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {"/api/selector", "/api/cases", "/api/cases/{case}/events", "/api/trail", "/health"} <= set(paths)


def test_the_stateless_call_equals_a_session_and_stores_nothing(client, folder):
    before = client.get("/api/cases").json()["total"]
    given = {"known": {"age": 61}, "answers": {"pulse": 71, "smoker": True}, "unavailable": ["city"], "budget": 20}
    response = client.post("/api/next", json=given)
    assert response.status_code == 200, response.text
    selector = askwise.load(folder)
    session = selector.start({"age": 61}, budget=20)
    session.answer("pulse", 71)
    session.answer("smoker", True)
    session.unavailable("city")
    found = response.json()
    assert found.pop("model") == client.get("/api/selector").json()["versions"]["model"]
    expected = session.next(Desk.load(folder, selector))
    assert found["probabilities"] == pytest.approx(expected["probabilities"])
    assert (found["suggestion"], found["advice"], found["spent"]) == ("blood", "ask", 2.5)
    assert found["why"]["text"] == expected["why"]["text"]
    assert found.keys() == expected.keys()
    assert client.get("/api/cases").json()["total"] == before
    for body, status, field in [
        ({"known": {"nose": 1}}, 422, "known.nose"),
        ({"answers": {"age": 1000}}, 428, "answers.age"),
        ({"answers": {"pulse": "fast"}}, 422, "answers"),
        ({"answers": {"pulse": []}}, 422, "answers.pulse"),
        ({"unavailable": ["nose"]}, 422, "unavailable.0"),
        ({"patient": "Ann"}, 422, "patient"),
    ]:
        refused = client.post("/api/next", json=body)
        assert (refused.status_code, refused.json()["error"]["field"]) == (status, field)
    assert client.post("/api/next", json={"answers": {"age": 1000}, "confirmed": True}).status_code == 200


def test_every_message_has_an_example_that_can_be_sent(client):
    sent, case = 0, None
    for path, methods in client.get("/api/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            if "requestBody" not in operation:
                continue
            content = operation["requestBody"]["content"]["application/json"]
            assert content["examples"], (method, path)
            for title, example in content["examples"].items():
                case = start(client)
                body = dict(example["value"])
                if body.get("type") in ("undo", "reopen"):  # there must be something to take back, or to open again
                    kind = {"undo": {"type": "unavailable", "feature": "age"}, "reopen": {"type": "finish"}}
                    send(client, case, **kind[body["type"]])
                response = client.request(method, path.replace("{case}", case["id"]), json=body)
                assert response.status_code in (200, 201), (title, response.text)
                if path == "/api/next":
                    answers = operation["responses"]["200"]["content"]["application/json"]["examples"]
                    assert response.json() == answers[title]["value"]
                sent += 1
    assert sent >= 10


def test_results_come_back_later_and_the_trail_says_when(client):
    """The times are those of the events, so that a case that is replayed says the same."""
    case = start(client, known={"age": 61}, budget=10, deadline=30)
    case = send(client, case, type="order", feature="blood", value=2.5)
    (out,) = case["report"]["pending"]
    assert out["feature"] == "blood"
    assert out["expected"] - out["ordered"] == pytest.approx(2.5)
    assert out["ordered_at"][:19] == case["updated"][:19]
    assert out["expected_at"] > out["ordered_at"]
    assert case["report"]["spent"] == 7.27
    assert case["report"]["suggestion"] not in (None, "blood")
    assert "blood" not in case["prices"]
    case = send(client, case, type="order", feature="pulse")
    assert [one["expected"] for one in case["report"]["pending"]][1] is None  # these prices have no times
    assert send(client, case, 422, type="order", feature="pulse")["error"]["field"] == "value"
    for wrong in (-1, "soon", True, 1e9):
        assert send(client, case, 422, type="order", feature="city", value=wrong)["error"]["field"] == "value"
    again = client.get(f"/api/cases/{case['id']}").json()
    cases = client.app.state.service.cases
    cases._drop(case["id"])  # not in memory any more: it is replayed
    assert client.get(f"/api/cases/{case['id']}").json() == again
    case = send(client, case, type="answer", feature="blood", value={"iron": 0.5, "zinc": 0.1})
    assert [one["feature"] for one in case["report"]["pending"]] == ["pulse"]
    assert case["report"]["spent"] == 7.27 + 1.5
    case = send(client, case, type="undo")
    assert len(case["report"]["pending"]) == 2
    trail = client.get(f"/api/cases/{case['id']}/trail").json()["trail"]
    assert [row["event"] for row in trail] == ["start", "order", "order", "answer", "undo"]
    assert (trail[1]["feature"], trail[1]["value"], trail[1]["cost"]) == ("blood", 2.5, 7.27)


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """A server whose prices have time and harm."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=["pulse", "blood", "scan"])
    y = np.where(X.sum(axis=1) > 0, "ill", "well")
    prices = askwise.Prices({"pulse": 1, "blood": 5, "scan": 20}, time={"blood": 24, "scan": 4}, harm={"scan": 1})
    selector = askwise.DynamicFeatureSelector(
        LogisticRegression(), costs=prices, budget={"money": 24, "time": 30}, epistemic=None, random_state=0
    )
    place = tmp_path_factory.mktemp("timed")
    selector.fit(X, y).save(place / "selector")
    settings = Settings(str(place / "selector"), f"sqlite:///{place}/cases.sqlite3", rate=0)
    migrate(settings.url)
    with TestClient(create_app(askwise.load(place / "selector"), settings), base_url="http://localhost") as found:
        yield found


def test_budgets_by_resource_are_kept_shown_and_replayed(timed):
    described = timed.get("/api/selector").json()
    assert described["resources"] == ["money", "time", "harm"]
    assert described["budget"] == {"money": 24, "time": 30}
    assert {one["name"]: one["amounts"] for one in described["features"]}["scan"] == {"time": 4, "harm": 1}
    case = start(timed, budget={"money": 26, "time": 20})
    assert "blood" not in [entry["feature"] for entry in case["report"]["ranking"]]  # it takes 24 hours
    case = send(timed, case, type="order", feature="scan")
    assert case["report"]["resources"]["time"] == {"spent": 0, "left": 20}
    assert case["report"]["resources"]["money"] == {"spent": 20, "left": 6}
    case = send(timed, case, type="answer", feature="scan", value=0.5)
    assert case["report"]["resources"] == {
        "money": {"spent": 20, "left": 6},
        "time": {"spent": 4, "left": 16},
        "harm": {"spent": 1, "left": None},
    }
    assert case["report"]["trace"][-1]["amounts"] == {"time": 4, "harm": 0}  # its harm was done when it was ordered
    assert case["amounts"]["blood"] == {"money": 5, "time": 24, "harm": 0}
    assert "takes time: 24" in send(timed, case, 422, type="order", feature="blood")["error"]["message"]
    timed.app.state.service.cases._drop(case["id"])  # it is replayed
    assert {**timed.get(f"/api/cases/{case['id']}").json(), "same_name": None} == {**case, "same_name": None}
    (first, *_) = timed.get(f"/api/cases/{case['id']}/trail").json()["trail"]
    assert first["event"] == "start"
    stateless = {"answers": {"scan": 0.5}, "budget": {"money": 26, "time": 20}, "outcomes": False}
    found = timed.post("/api/next", json=stateless).json()
    names = ("resources", "suggestion", "ranking", "probabilities")
    assert {name: found[name] for name in names} == {name: case["report"][name] for name in names}
    assert start(timed)["report"]["resources"]["time"]["left"] == 30  # the selector's own
    for wrong in ({"hours": 3}, {"time": -1}, {"time": "3"}, {"time": True}, {"time": None}, [3]):
        for path in ("/api/cases", "/api/next"):
            refused = timed.post(path, json={"budget": wrong})
            assert refused.status_code == 422, (path, wrong)
            assert refused.json()["error"]["field"].startswith("budget"), refused.json()
    assert "no resource 'hours'" in timed.post("/api/cases", json={"budget": {"hours": 3}}).json()["error"]["message"]
