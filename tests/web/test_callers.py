"""Who is asking: persons whom a reverse proxy names, programs with tokens, and what their roles allow."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

import askwise
from askwise.errors import InvalidInput
from askwise.web.app import create_app
from askwise.web.callers import TrustedProxy, read_tokens, trusted_proxy
from askwise.web.database import migrate
from askwise.web.failures import Refused
from askwise.web.settings import VARIABLE, Settings

PROXY = "10.0.0.7"
OPTIONS: dict[str, Any] = {
    "trusted_header": "X-Forwarded-User",
    "trusted_proxy": (f"{PROXY}/32",),
    "roles_header": "X-Forwarded-Groups",
    "roles": ("admin=clinic-admins", "clerk=ward", "reader=*"),
}
TOKEN = "robot-has-this-token"
COMMAND = [sys.executable, "-m", "askwise", "serve"]


@pytest.fixture
def serve(folder, tmp_path):
    """A function that makes a client of a server, connecting from an address of its own."""
    selector = askwise.load(folder)

    def make(peer=PROXY, **options):
        settings = Settings(str(folder), f"sqlite:///{tmp_path}/cases.sqlite3", rate=0, **{**OPTIONS, **options})
        migrate(settings.url)
        app = create_app(selector, settings)
        return TestClient(app, base_url="http://desk.example", raise_server_exceptions=False, client=(peer, 5000))

    return make


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"robot:{TOKEN} clerk\nviewer:viewer-has-this-token reader\nchief:chief-has-this-token\n")
    return str(path)


def ann(groups="ward", **more):
    return {"X-Forwarded-User": "ann", "X-Forwarded-Groups": groups, **more}


def test_roles_from_the_least_to_the_most(serve, token_file):
    """What each role may do, for groups of the proxy and for tokens alike."""
    client = serve(token_file=token_file)
    case = client.post("/api/cases", json={}, headers=ann()).json()["id"]
    attempts = [
        ("reader", "GET", "/api/selector", None),
        ("reader", "GET", f"/api/cases/{case}", None),
        ("reader", "GET", f"/api/cases/{case}/trail", None),
        ("reader", "POST", "/api/next", {"known": {"age": 50}}),
        ("clerk", "POST", "/api/cases", {"label": "bed 3"}),
        ("clerk", "POST", f"/api/cases/{case}/events", {"type": "finish", "version": 1}),
        ("admin", "GET", "/api/trail", None),
        ("admin", "GET", "/metrics", None),
        ("admin", "DELETE", f"/api/cases/{case}", None),
    ]
    ladder = ("reader", "clerk", "admin")
    who = {
        "reader": (ann("visitors"), {"Authorization": "Bearer viewer-has-this-token"}),
        "clerk": (ann("ward"), {"Authorization": f"Bearer {TOKEN}"}),
        "admin": (ann("ward, clinic-admins"), {"Authorization": "Bearer chief-has-this-token"}),
    }
    for needed, method, path, body in attempts:
        for role in ladder[: ladder.index(needed)]:
            for headers in who[role]:
                refused = client.request(method, path, json=body, headers=headers)
                assert refused.status_code == 403, (role, method, path, refused.text)
                assert refused.json()["error"]["message"] == f"This takes the role {needed}; yours is {role}."
    for role in ladder:  # from the least, so that each attempt is allowed for the first time
        for needed, method, path, body in attempts:
            if needed == role:
                assert client.request(method, path, json=body, headers=who[role][0]).is_success, (role, method, path)
    assert client.get("/api/selector", headers=who["admin"][0]).json()["you"] == {"name": "ann", "role": "admin"}


def test_the_trail_names_the_person(serve, token_file):
    client = serve(token_file=token_file)
    headers = {"X-Forwarded-User": "Zoë Ω".encode(), "X-Forwarded-Groups": b"ward"}
    case = client.post("/api/cases", json={}, headers=headers).json()
    event = {"type": "answer", "feature": "pulse", "value": 70.0, "version": 1}
    robot = {"Authorization": f"Bearer {TOKEN}"}
    assert client.post(f"/api/cases/{case['id']}/events", json=event, headers=robot).status_code == 200
    trail = client.get(f"/api/cases/{case['id']}/trail", headers=headers).json()["trail"]
    assert [row["by"] for row in trail] == ["Zoë Ω", "robot"]


def test_nobody_but_the_proxy_says_who_asks(serve, token_file):
    for peer in ("10.0.0.8", "127.0.0.1", "::1", "testclient", "::ffff:10.0.0.8"):
        client = serve(peer, token_file=token_file)
        for headers in (
            ann("clinic-admins"),
            {"x-forwarded-user": "ann"},
            {"X-Forwarded-Groups": "clinic-admins"},
            ann(Authorization="Bearer chief-has-this-token"),  # a valid token does not make the header right
            ann(**{"X-Forwarded-For": PROXY, "Forwarded": f"for={PROXY}", "X-Real-IP": PROXY}),
        ):
            refused = client.get("/api/cases", headers=headers)
            assert refused.status_code == 403, (peer, headers)
            assert "from the trusted proxy only" in refused.json()["error"]["message"]
        assert client.get("/api/cases", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert serve(f"::ffff:{PROXY}").get("/api/cases", headers=ann()).status_code == 200  # the proxy, seen by IPv6


def test_without_a_name_there_is_no_way_in(serve, token_file):
    """The proxy itself is nobody, also on the machine of the server."""
    for peer, network in ((PROXY, PROXY), ("127.0.0.1", "127.0.0.1")):
        client = serve(peer, trusted_proxy=(network,))
        for headers in (
            {},
            {"X-Forwarded-Groups": "clinic-admins"},
            {"X_Forwarded_User": "ann"},
            {"X-Forwarded-Users": "ann"},
        ):
            for path in ("/api/cases", "/metrics", "/api/selector"):
                assert client.get(path, headers=headers).status_code == 401, headers
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (b"", 400),
        (b"   ", 400),
        (b"ann, clinic-admin", 400),  # what proxies make of two headers
        ("ann\u200b".encode(), 400),  # reads like ann
        ("\u202enna".encode(), 400),  # written from right to left
        ("zoe\u0308".encode(), 400),  # decomposed: another text that reads like a name in use
        (b"a" * 201, 400),
        (b"robot", 403),  # the name of a token
        (b"Ann", 200),  # names are told apart by case
        (b"ann@clinic.example", 200),
    ],
)
def test_names_that_are_not_plain_are_refused(serve, token_file, value, status):
    found = serve(token_file=token_file).get(
        "/api/selector", headers={"X-Forwarded-User": value, "X-Forwarded-Groups": b"ward"}
    )
    assert found.status_code == status, found.text
    if status == 200:
        assert found.json()["you"] == {"name": value.decode(), "role": "clerk"}


def test_headers_that_come_twice_or_with_a_token_are_refused(serve, token_file):
    client = serve(token_file=token_file)
    for twice in ("X-Forwarded-User", "x-forwarded-user"):
        headers = [("X-Forwarded-User", "ann"), (twice, "ann"), ("X-Forwarded-Groups", "ward")]
        assert client.get("/api/cases", headers=headers).status_code == 400
    groups = [("X-Forwarded-User", "ann"), ("X-Forwarded-Groups", "ward"), ("X-Forwarded-Groups", "clinic-admins")]
    assert client.get("/api/cases", headers=groups).status_code == 400
    for token in (TOKEN, "a-token-that-nobody-has"):
        both = client.get("/api/cases", headers=ann(Authorization=f"bearer {token}"))
        assert both.status_code == 400
        assert "both name who asks" in both.json()["error"]["message"]
    tokens = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer chief-has-this-token")]
    assert client.get("/api/cases", headers=tokens).status_code == 401
    basic = ann(Authorization="Basic YW5uOg==")  # which oauth2-proxy adds; it is no token
    assert client.get("/api/cases", headers=basic).status_code == 200


def test_groups_are_compared_whole(serve):
    client = serve(roles=("admin=clinic-admins", "clerk=ward"))
    for groups in ("Ward", "wards", "ward 2", "clinic-admins-of-old", "", "*"):
        refused = client.get("/api/cases", headers=ann(groups))
        assert refused.status_code == 403, groups
        assert refused.json()["error"]["field"] == "x-forwarded-groups"
    assert client.get("/api/cases", headers={"X-Forwarded-User": "ann"}).status_code == 403
    assert client.get("/api/selector", headers=ann("x,  ward ,y")).json()["you"]["role"] == "clerk"
    everybody = serve(roles_header=None, roles=())
    assert everybody.get("/api/selector", headers={"X-Forwarded-User": "ann"}).json()["you"]["role"] == "clerk"


def test_a_page_of_another_site_cannot_act_with_the_cookie_of_the_proxy(serve):
    client = serve()
    for site in ("cross-site", "same-site"):
        headers = ann(**{"Sec-Fetch-Site": site})
        assert client.post("/api/cases", json={}, headers=headers).status_code == 403
        assert client.delete(f"/api/cases/{'0' * 32}", headers=headers).status_code == 403
    for site in ("same-origin", "none"):
        assert client.post("/api/cases", json={}, headers=ann(**{"Sec-Fetch-Site": site})).status_code == 201


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trusted_proxy": ()}, "needs --trusted-proxy"),
        ({"trusted_proxy": ("0.0.0.0/0",)}, "would trust everybody"),
        ({"trusted_proxy": ("10.0.0.7", "::/0")}, "would trust everybody"),
        ({"trusted_proxy": ("proxy.example",)}, "must be an address or a network"),
        ({"trusted_proxy": ("10.0.0.7/8",)}, "has host bits set"),
        ({"trusted_header": None}, "--trusted-proxy needs --trusted-header"),
        ({"trusted_header": None, "trusted_proxy": ()}, "--roles-header needs --trusted-header"),
        ({"trusted_header": "Authorization"}, "must have a name such as"),
        ({"trusted_header": "X Forwarded"}, "must have a name such as"),
        ({"trusted_header": ""}, "must have a name such as"),
        ({"roles_header": "x-forwarded-user"}, "must be another header"),
        ({"roles_header": None}, "--role with a group needs --roles-header"),
        ({"roles": ("chief=ward",)}, "a role out of reader, clerk, admin"),
        ({"roles": ("admin",)}, "must be ROLE=GROUP"),
        ({"roles": ("admin=a,b",)}, "a group without commas"),
        ({"roles": ("admin=a", "clerk=a")}, "gives 'a' two roles"),
    ],
)
def test_options_that_would_let_anybody_be_anybody_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        trusted_proxy(Settings("selector", **{**OPTIONS, **change}))


def test_the_workers_are_told(monkeypatch):
    settings = Settings("selector", **OPTIONS)
    monkeypatch.setenv(VARIABLE, json.dumps(asdict(settings)))
    assert Settings.imported() == settings


def test_a_token_may_have_a_role(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"robot:{TOKEN}   reader\n")
    assert read_tokens(path).caller(TOKEN) == ("robot", "reader")
    for role in ("chief", "reader clerk", "Reader"):
        path.write_text(f"robot:{TOKEN} {role}\n")
        with pytest.raises(InvalidInput, match="one of the roles reader, clerk, admin"):
            read_tokens(path)


def test_only_whole_addresses_are_trusted():
    proxy = trusted_proxy(Settings("s", trusted_header="X-User", trusted_proxy=("10.0.0.0/30", "fd00::7")))
    assert isinstance(proxy, TrustedProxy)
    inside = ("10.0.0.3", "fd00::7", "fd00:0::0007", "fd00::7%eth0")
    assert all(map(proxy.connects_from, inside))
    assert not any(map(proxy.connects_from, ("10.0.0.4", "fd00::8", "", "10.0.0", "localhost", "10.0.0.3.evil")))
    with pytest.raises(Refused, match="must be text in UTF-8"):
        proxy.caller([(b"x-user", b"ann\xff")], "10.0.0.3")
    with pytest.raises(Refused, match=r"not from 10\.0\.0\.4"):
        proxy.caller([(b"x-user", b"ann")], "10.0.0.4")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def reply(port, method, path, body=None, headers=None, source="127.0.0.1"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(source, 0))
    connection.request(method, path, None if body is None else json.dumps(body), headers or {})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read() or "null")


@pytest.fixture
def desk(folder, tmp_path):
    """The server, and in front of it a proxy that asks for a password: two processes on addresses of their own."""
    inner, outer = free_port(), free_port()
    options = ["--trusted-header", "X-Forwarded-User", "--trusted-proxy", "127.0.0.2/32", "--workers", "1"]
    options += ["--roles-header", "X-Forwarded-Groups", "--role", "admin=clinic-admins", "--role", "clerk=ward"]
    command = [*COMMAND, folder, "--db", f"sqlite:///{tmp_path}/cases.sqlite3", "--port", inner, *options]
    proxy = [sys.executable, Path(__file__).with_name("proxy.py"), outer, inner]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen([str(part) for part in given], env=environment, stderr=subprocess.DEVNULL)
        for given in (command, proxy)
    ]
    try:
        deadline = time.monotonic() + 300  # a busy machine starts them slowly
        while True:
            try:
                if reply(inner, "GET", "/health")[0] == 200 and reply(outer, "GET", "/health")[0] == 401:
                    break
            except OSError:
                assert time.monotonic() < deadline, "the server and its proxy have not started"
                assert all(process.poll() is None for process in processes)
                time.sleep(0.1)
        yield inner, outer
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)


def test_a_real_proxy_in_front(desk):
    """It strips what a client says of itself, asks for a password, and says who it was."""
    inner, outer = desk
    json_body = {"Content-Type": "application/json"}
    known = {"Authorization": "Basic YW5uOmFubnMtcGFzc3dvcmQ=", **json_body}  # ann:anns-password
    assert reply(outer, "GET", "/api/cases")[0] == 401
    status, case = reply(outer, "POST", "/api/cases", {"label": "bed 3"}, known)
    assert (status, case["by"]) == (201, "ann")
    spoofed = {**known, "X-Forwarded-User": "chief", "X-Forwarded-Groups": "clinic-admins"}
    assert reply(outer, "GET", "/api/selector", None, spoofed)[1]["you"] == {"name": "ann", "role": "clerk"}
    assert reply(outer, "GET", "/api/trail", None, spoofed)[0] == 403
    for source in ("127.0.0.1", "127.0.0.3"):  # around the proxy
        direct = {"X-Forwarded-User": "chief", "X-Forwarded-Groups": "clinic-admins", **json_body}
        assert reply(inner, "GET", "/api/cases", None, direct, source)[0] == 403
        assert reply(inner, "GET", "/api/cases", None, {}, source)[0] == 401
    assert reply(inner, "GET", "/api/selector", None, direct, "127.0.0.2")[1]["you"]["role"] == "admin"


def test_the_command_refuses_an_open_header(folder, tmp_path):
    for options, words in (
        (["--host", "0.0.0.0", "--trusted-header", "X-Forwarded-User"], "needs --trusted-proxy"),
        (["--trusted-header", "X-Forwarded-User"], "needs --trusted-proxy"),
        (["--host", "0.0.0.0"], "needs --token-file"),
        (["--host", "0.0.0.0", "--trusted-proxy", "10.0.0.7"], "needs --trusted-header"),
    ):
        done = subprocess.run([*COMMAND, str(folder), *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert words in " ".join(done.stderr.split())
