"""Who may ask, how much, and what those who may not are told."""

import contextlib
import http.client
import json
import logging
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi")

import sqlalchemy as sa
import uvicorn
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

import askwise
from askwise.errors import InvalidInput
from askwise.web import logs
from askwise.web.app import create_app
from askwise.web.callers import read_tokens
from askwise.web.database import migrate
from askwise.web.guard import PromptProtocol, check_bind
from askwise.web.settings import Settings
from askwise.web.store import connect

TOKENS = {"ann": "ann-has-this-token", "bob from ward 3": "bob-has-that-token"}


@pytest.fixture(scope="module")
def selector(folder):
    return askwise.load(folder)


@pytest.fixture
def serve(folder, selector, tmp_path):
    """A function that makes a client of a server with settings of its own."""

    def make(host="localhost", **options):
        settings = Settings(str(folder), f"sqlite:///{tmp_path}/cases.sqlite3", **{"rate": 0, **options})
        migrate(settings.url)
        return TestClient(create_app(selector, settings), base_url=f"http://{host}", raise_server_exceptions=False)

    return make


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("# who may\n\n" + "\n".join(f"{name}: {token}" for name, token in TOKENS.items()) + "\n")
    return str(path)


@pytest.fixture
def lines():
    """The lines that are logged."""
    found = []

    class Kept(logging.Handler):
        def emit(self, record):
            found.append(json.loads(self.format(record)))

    handler = Kept()
    handler.setFormatter(logs.JsonLines())
    logs.LOGGER.addHandler(handler)
    logs.LOGGER.setLevel(logging.INFO)
    yield found
    logs.LOGGER.removeHandler(handler)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_with_tokens_everything_but_the_page_and_health_needs_one(serve, token_file):
    client = serve(host="example.org", token_file=token_file)
    paths = client.get("/api/openapi.json").json()["paths"]
    checked = 0
    for path, methods in paths.items():
        for method in methods:
            url = path.replace("{case}", "0" * 32)
            for headers in ({}, bearer("ann-has-this-tokeN"), bearer(""), {"Authorization": TOKENS["ann"]}):
                response = client.request(method, url, headers=headers, json={} if method == "post" else None)
                if path in ("/health", "/ready"):
                    assert response.status_code == 200
                    continue
                checked += 1
                assert response.status_code == 401, (method, path, response.text)
                assert response.headers["WWW-Authenticate"] == "Bearer"
                assert response.json()["error"]["field"] == "Authorization"
    assert checked >= 4 * 9
    case = client.post("/api/cases", json={}, headers=bearer(TOKENS["bob from ward 3"])).json()
    assert case["by"] == "bob from ward 3"
    assert client.get("/metrics", headers=bearer(TOKENS["ann"])).status_code == 200


def test_a_server_that_others_can_reach_needs_tokens(token_file):
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        check_bind(host, False)
    for host in ("0.0.0.0", "::", "192.168.1.4", "example.org", "localhost.example.org", ""):
        with pytest.raises(InvalidInput, match="needs --token-file"):
            check_bind(host, False)
        check_bind(host, bool(read_tokens(token_file)))


def test_token_files_that_would_not_protect_are_refused(tmp_path):
    path = tmp_path / "tokens"
    for text, message in [
        ("", "holds no token"),
        ("# ann:ann-has-this-token", "holds no token"),
        ("ann:short", "Line 1 .* at least 16"),
        ("ann-has-this-token", "Line 1 .* at least 16"),
        (":ann-has-this-token", "must be name:token"),
        ("ann:ann has this token", "no spaces"),
        ("ann:ann-has-this\0token", "visible"),
        ("ann:ann-has-this-token\nann:ann-has-that-token", "Line 2 .* repeats"),
        ("ann:ann-has-this-token\nbob:ann-has-this-token", "Line 2 .* repeats"),
    ]:
        path.write_text(text)
        with pytest.raises(InvalidInput, match=message) as refusal:
            read_tokens(path)
        assert "this-token" not in str(refusal.value)
    path.write_bytes(b"\xef\xbb\xbfann:ann-has-this-token")  # as Windows writes it
    assert read_tokens(path).caller("ann-has-this-token") == ("ann", "admin")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_tokens(tmp_path / "nowhere")


def test_without_tokens_only_this_machine_is_answered(serve):
    """A page of another site whose name was made to point to 127.0.0.1 must not read cases."""
    for host in ("localhost", "127.0.0.1", "localhost:8000", "[::1]:8000"):
        assert serve(host=host).get("/api/cases").status_code == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000"):
        response = serve(host=host).get("/api/cases")
        assert response.status_code == 421
        assert response.json()["error"]["field"] == "Host"


def test_every_response_has_the_headers(serve):
    client = serve()
    for response in (
        client.get("/health"),
        client.get("/api/cases"),
        client.get("/nowhere"),
        client.post("/api/cases"),
    ):
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["Referrer-Policy"] == "no-referrer"
    assert client.get("/api/cases").headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in client.get("/api/cases", headers={"Origin": "http://evil"}).headers
    assert client.post("/api/cases", data={"label": "x"}).status_code == 422  # what a form of another site could send


def test_requests_are_limited_in_size_and_number(serve, token_file):
    client = serve(largest_body=2000)
    headers = {"Content-Type": "application/json"}
    for content in (b"{" + b" " * 2000 + b"}", iter([b"{", b" " * 1500, b" " * 1500, b"}"])):  # with and without length
        response = client.post("/api/cases", content=content, headers=headers)
        assert response.status_code == 413
        assert "message" in response.json()["error"]
    assert client.post("/api/cases", content=b"{" + b" " * 1000 + b"}", headers=headers).status_code == 201
    client = serve(host="example.org", rate=1, token_file=token_file)
    found = [client.get("/api/cases", headers=bearer(TOKENS["ann"])) for _ in range(6)]
    assert [response.status_code for response in found] == [200] * 5 + [429]
    assert int(found[-1].headers["Retry-After"]) >= 1
    assert client.get("/api/cases", headers=bearer(TOKENS["bob from ward 3"])).status_code == 200
    guesses = [client.get("/api/cases", headers=bearer(f"guess-number-{i:09}")).status_code for i in range(6)]
    assert guesses == [401] * 5 + [429]


@contextmanager
def listening(app, monkeypatch, **limits):
    """A server on loopback that limits connections and time; (host, port)."""
    for name, value in limits.items():
        monkeypatch.setattr(PromptProtocol, name, value)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, http=PromptProtocol))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has not started"
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()
    server.should_exit = True
    thread.join(60)


def slow(address, token=None, source="127.0.0.1"):
    """A connection that has sent the head of a request and one byte of its body."""
    connection = socket.create_connection(address, 60, source_address=(source, 0))
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST /api/cases HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    return connection


def everything_from(connection):
    """What is received until the server closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(10_000):
            received += part
    connection.close()
    return received


def test_a_stranger_is_refused_before_the_body_arrives(serve, token_file, monkeypatch):
    with listening(serve(token_file=token_file).app, monkeypatch) as address:
        for token in (None, "a-token-that-is-wrong"):
            assert everything_from(slow(address, token)).startswith(b"HTTP/1.1 401 ")


def test_a_body_is_given_up_however_slowly_it_arrives(serve, token_file, monkeypatch):
    """Byte by byte: the time is that of the whole request, and does not begin again with every byte."""
    with listening(serve(token_file=token_file, request_seconds=0.5).app, monkeypatch) as address:
        connection = slow(address, TOKENS["ann"])
        connection.setblocking(False)
        received, end = b"", time.monotonic() + 60
        while not received:
            assert time.monotonic() < end, "the server waits for ever"
            time.sleep(0.05)
            with contextlib.suppress(BlockingIOError):
                received = connection.recv(10_000)
            with contextlib.suppress(ConnectionError):
                connection.send(b" ")
        assert received.startswith(b"HTTP/1.1 408 ")
        connection.close()


def test_slow_connections_keep_nobody_out(serve, token_file, monkeypatch):
    """Neither those of one address, beside which others of it are served, nor those of many, nor silent ones."""

    def one_address(i):
        return slow(address, TOKENS["ann"])

    def many_addresses(i):
        return slow(address, TOKENS["ann"], f"127.0.1.{1 + i}")

    def strangers(i):
        return slow(address)

    def silent(i):
        return socket.create_connection(address, 60)

    application = serve(token_file=token_file, request_seconds=600).app
    limits = {"most": 30, "per_address": 10, "seconds": 600.0}  # only room is made, nothing times out
    with listening(application, monkeypatch, **limits) as address:
        for kind in (one_address, silent, strangers, *([many_addresses] if sys.platform == "linux" else [])):
            held = [kind(i) for i in range(40)]
            for token in (None, TOKENS["bob from ward 3"]):
                connection = http.client.HTTPConnection(address[0], address[1], timeout=60)
                connection.request("GET", "/api/cases" if token else "/health", headers=bearer(token) if token else {})
                assert connection.getresponse().status == 200, kind.__name__
                connection.close()
            for connection in held:
                connection.close()


def test_a_connection_without_a_complete_head_is_closed(serve, monkeypatch):
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening(serve().app, monkeypatch, seconds=0.3) as address:
        for sent in (b"", b"GET /health HT"):
            connection = socket.create_connection(address, 60)
            connection.sendall(sent)
            assert everything_from(connection) == b""
        connection = socket.create_connection(address, 60)
        connection.sendall(whole)
        assert connection.recv(10_000).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        assert b"HTTP/1.1" not in everything_from(connection)


def test_nothing_of_an_error_reaches_the_client_and_no_value_the_log(serve, monkeypatch, lines):
    client = serve()
    secret = "Mrs Secret has 97.0815"
    client.get("/api/cases", params={"search": secret})
    client.post("/api/cases", json={"label": secret, "known": {"age": 97.0815}})
    client.post("/api/cases", json={"label": secret, "known": {"city": secret}})

    def fail(*_):
        raise RuntimeError(secret)

    monkeypatch.setattr("askwise.web.store.Store.cases", fail)
    response = client.get("/api/cases", params={"search": secret})
    assert response.status_code == 500
    assert response.json() == {"error": {"field": None, "message": "The server has failed; its log says where."}}
    written = json.dumps(lines)
    assert "Secret" not in written
    assert "97.0815" not in written
    (error,) = [line for line in lines if line["level"] == "error"]
    assert error["error"] == "RuntimeError"
    assert any("api.py" in frame for frame in error["frames"])
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["method"], line["route"], line["status"], line["by"]) for line in requests] == [
        ("GET", "/api/cases", 200, "local"),
        ("POST", "/api/cases", 201, "local"),
        ("POST", "/api/cases", 422, "local"),
        ("GET", "/api/cases", 500, "local"),
    ]
    assert all(line["seconds"] >= 0 and line["time"].endswith("Z") for line in requests)


def test_messages_are_logged_if_asked_for():
    try:
        raise RuntimeError("about 97.0815")
    except RuntimeError as error:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "error", (), (RuntimeError, error, error.__traceback__))
    warning = logging.LogRecord(
        "py.warnings", logging.WARNING, "", 0, "%s", ("/x/y.py:7: UserWarning: got 97.0815\n  warn(",), None
    )
    for given in (record, warning):
        assert "97.0815" in logs.JsonLines(values=True).format(given)
        assert "97.0815" not in logs.JsonLines().format(given)
    assert json.loads(logs.JsonLines().format(warning))["event"] == "/x/y.py:7: UserWarning"


def test_a_database_that_does_not_answer_is_told_of(serve, monkeypatch):
    client = serve()

    def fail(*_):
        raise OperationalError("SELECT", {}, Exception("secret host"))

    monkeypatch.setattr("askwise.web.store.Store.ping", fail)
    response = client.get("/ready")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert "secret" not in response.text
    assert client.get("/health").status_code == 200


def test_a_table_that_somebody_else_has_locked_is_told_of(folder, selector, postgres):
    """Those who want to write or read it are told to try again, and the server itself goes on answering."""
    url = postgres.another_database("locked")
    migrate(url)
    settings = Settings(str(folder), url, rate=0, database_seconds=1.0)
    with TestClient(create_app(selector, settings), base_url="http://localhost") as client:
        case = client.post("/api/cases", json={"label": "before"}).json()
        with connect(url).connect() as other, ThreadPoolExecutor(50) as people:
            other.execute(sa.text("LOCK TABLE cases IN ACCESS EXCLUSIVE MODE"))
            writing = [people.submit(client.post, "/api/cases", json={}) for _ in range(50)]
            found = [client.get("/api/cases"), *(future.result(120) for future in writing)]
            assert {response.status_code for response in found} == {503}
            assert found[0].headers["Retry-After"] == "1"
            assert "locked by somebody else" in found[0].json()["error"]["message"]
            assert client.get("/ready").status_code == 200
            other.rollback()
        assert client.get(f"/api/cases/{case['id']}").json() == case
        assert client.get("/api/cases").json()["total"] == 1
        delete_while_locked(client, url, case["id"])


def delete_while_locked(client, url, case):
    """What is deleted is deleted, also if its table cannot be vacuumed yet."""
    with connect(url).connect() as other:
        other.execute(sa.text("LOCK TABLE idempotency_keys IN SHARE UPDATE EXCLUSIVE MODE"))
        assert client.delete(f"/api/cases/{case}").status_code == 204
    assert client.get(f"/api/cases/{case}").status_code == 404


def test_the_description_names_no_feature_where_tokens_are_needed(serve, token_file):
    client = serve(host="example.org", token_file=token_file)
    described = client.get("/api/openapi.json").json()
    content = described["paths"]["/api/next"]["post"]
    assert content["requestBody"]["content"]["application/json"]["examples"]
    assert "examples" not in content["responses"]["200"]["content"]["application/json"]
    assert "smoker" not in client.get("/api/openapi.json").text
