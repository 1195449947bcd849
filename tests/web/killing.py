"""A server that is killed while clients write, and an account of what it has acknowledged."""

from __future__ import annotations

import http.client
import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

import askwise
from askwise.web.app import create_app
from askwise.web.settings import Settings

ROOT = Path(__file__).parents[2]
EVENTS_PER_CASE = 4
STEP = 0.001  # between values, so that each is entered once
ERRORS = (OSError, http.client.HTTPException, json.JSONDecodeError)


def listen_on_demand(settings: Settings) -> None:
    """Load everything once; then, for each line that is read, fork a server ("start") or end it ("kill")."""
    selector, server = askwise.load(settings.folder), 0
    for line in sys.stdin:
        if line.strip() == "start":
            server = os.fork()
            if not server:
                logging.disable(logging.CRITICAL)
                app = create_app(selector, settings)  # connects to the database here, not before the fork
                uvicorn.run(app, host=settings.host, port=settings.port, log_config=None, access_log=False)
                os._exit(1)
        else:
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)
        print("done", flush=True)


class Server:
    """A server process, forked from one that has loaded everything, so that it starts in a moment."""

    def __init__(self, settings: Settings) -> None:
        command = [sys.executable, "-m", __name__, json.dumps(asdict(settings))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment)
        self.start()

    def start(self) -> None:
        self._tell("start")

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._tell("kill")

    def close(self) -> None:
        """End it, and the process that it is forked from."""
        self.kill()
        self._process.communicate()

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


@dataclass
class Client:
    """Writes answers, each until it is acknowledged, and notes what was."""

    port: int
    number: int
    acknowledged: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)  # case: its events
    repeated: int = 0  # requests whose first acknowledgment was lost
    unexpected: list[str] = field(default_factory=list)

    def work(self, done: Callable[[], bool]) -> None:
        """Enter a value and take it back, over and over, in one case after the other."""
        value = 60.0 + self.number
        while not done():
            case = self.ask("/api/cases", {"label": f"client {self.number}"})
            self.acknowledged[case["id"]] = [("start", {"known": {}, "budget": None})]
            for i in range(EVENTS_PER_CASE):
                value += STEP
                body: dict[str, Any] = (
                    {"type": "undo"} if i % 2 else {"type": "answer", "feature": "pulse", "value": round(value, 3)}
                )
                case = self.ask(f"/api/cases/{case['id']}/events", {**body, "version": case["version"]})
                self.acknowledged[case["id"]].append((body["type"], body.get("value")))
                if done():
                    return

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post until there is an answer, with one idempotency key."""
        key, first = uuid.uuid4().hex, True
        while True:
            try:
                status, found, again = post(self.port, path, body, {"Idempotency-Key": key})
            except ERRORS:
                time.sleep(0.02)
                first = False
                continue
            if status == 503:
                time.sleep(0.05)
                continue
            if status >= 300:
                self.unexpected.append(f"{status} {found}")
            self.repeated += again and not first
            return found


def post(port: int, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, Any], bool]:
    """One request; whether its key had been used before comes last."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read()), "Idempotency-Replayed" in response.headers
    finally:
        connection.close()


def get(port: int, path: str) -> Any:
    """One request, repeated until the server listens."""
    for _ in range(2400):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            content = response.read()
            if response.status != 503:
                return json.loads(content)
        except ERRORS:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise TimeoutError(path)


def kill_while_writing(
    settings: Settings,
    n_kills: int,
    n_clients: int = 3,
    on_kill: Callable[[int], None] = lambda number: None,
) -> dict[str, int]:
    """Kill the server `n_kills` times while clients write; raise if anything that was acknowledged is missing.

    Returns the number of kills, acknowledged events, and requests whose acknowledgment was lost with a server.
    """
    rng = random.Random(0)
    server, killed = Server(settings), threading.Event()
    clients = [Client(settings.port, number) for number in range(n_clients)]
    threads = [threading.Thread(target=client.work, args=(killed.is_set,), daemon=True) for client in clients]
    get(settings.port, "/ready")
    for thread in threads:
        thread.start()
    for number in range(n_kills):
        before = _count(clients)
        while _count(clients) < before + n_clients:  # it is writing again
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.05))
        server.kill()
        on_kill(number)
        server.start()
    killed.set()
    for thread in threads:
        thread.join(60)
    try:
        compare(settings.port, clients)
    finally:
        server.close()
    return {"kills": n_kills, "acknowledged": _count(clients), "repeated": sum(client.repeated for client in clients)}


def compare(port: int, clients: list[Client]) -> None:
    """Every acknowledged event is there, in its place, once; and nothing else."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for row in get(port, "/api/trail")["trail"]:
        found.setdefault(row["case"], []).append((row["event"], row["value"]))
    for client in clients:
        assert not client.unexpected, client.unexpected[0]
        for case, events in client.acknowledged.items():
            assert found.pop(case) == events, case
    assert not found, "there are cases that nobody knows of"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _count(clients: list[Client]) -> int:
    return sum(len(events) for client in clients for events in list(client.acknowledged.values()))


if __name__ == "__main__":
    listen_on_demand(Settings(**json.loads(sys.argv[1])))
