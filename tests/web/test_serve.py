"""`askwise serve` as it is run: what it refuses, and several workers at work."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from tests.web.killing import free_port, get, post

COMMAND = [sys.executable, "-m", "askwise", "serve"]


def test_what_cannot_be_served_is_refused_in_a_line(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    short = tmp_path / "tokens"
    short.write_text("ann:short\n")
    taken = socket.create_server(("127.0.0.1", 0))
    for options, message, code in [
        ([tmp_path / "empty"], "holds no manifest.json", 3),
        ([folder, "--host", "0.0.0.0"], "needs --token-file", 2),
        ([folder, "--token-file", short], "at least 16", 2),
        ([folder, "--workers", "0"], "--workers", 2),
        ([folder, "--port", taken.getsockname()[1]], "Address already in use. Choose another with --port", 2),
    ]:
        done = subprocess.run([*COMMAND, *map(str, options)], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    taken.close()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")
def test_several_workers_share_the_cases(folder, tmp_path):
    port = free_port()
    options = ["--db", f"sqlite:///{tmp_path}/cases.sqlite3", "--port", str(port), "--workers", "2", "--rate", "0"]
    options += ["--worker-seconds", "120", "--request-seconds", "60", "--per-address", "50", "--database-seconds", "9"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([*COMMAND, str(folder), *options], stdout=log, stderr=log)
    try:
        get(port, "/ready")
        check_no_update_is_lost(port)
        check_counts_are_those_of_all_workers(port)
        check_a_killed_worker_is_replaced(port, server.pid)
        workers = workers_of(server.pid)
        server.kill()
        server.wait()
        wait_until(lambda: not any(is_running(pid) for pid in workers))  # they do not keep the port
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))
    finally:
        for pid in [server.pid, *workers_of(server.pid)]:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
    for line in (tmp_path / "log").read_text().splitlines():
        assert {"time", "level", "event"} <= set(json.loads(line)), line


def check_no_update_is_lost(port):
    """Four people answer and undo in one case; who is told of a conflict tries again with what is there then."""
    case = post(port, "/api/cases", {"label": "shared"}, {})[1]
    n_conflicts = 0

    def work(number):
        conflicts, view = 0, case
        for _ in range(6):
            while True:
                known = "pulse" in view["report"]["known"]
                body = {"type": "undo"} if known else {"type": "answer", "feature": "pulse", "value": 60 + number}
                path = f"/api/cases/{case['id']}/events"
                status, found, _ = post(port, path, {**body, "version": view["version"]}, {})
                view = found["case"] if status == 409 else found
                if status == 200:
                    break
                assert status == 409, found
                conflicts += 1
        return conflicts

    with ThreadPoolExecutor(4) as pool:
        n_conflicts = sum(pool.map(work, range(4)))
    trail = get(port, f"/api/cases/{case['id']}/trail")["trail"]
    assert [row["version"] for row in trail] == list(range(1, 26))
    assert n_conflicts > 0


def check_counts_are_those_of_all_workers(port):
    for _ in range(30):
        get(port, "/api/selector")
    wait_until(lambda: _selector_requests(port) == 30)  # a request is counted just after it is answered


def _selector_requests(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.search(r'askwise_requests_total\{method="GET",route="/api/selector",status="200"\} (\d+)', text)
    return int(found[1]) if found else 0


def check_a_killed_worker_is_replaced(port, supervisor):
    total = get(port, "/api/cases")["total"]
    before = workers_of(supervisor)
    os.kill(before[0], signal.SIGSTOP)
    time.sleep(2)  # the supervisor asks every half second, and now waits for an answer, for up to --worker-seconds
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(set(workers_of(supervisor)) - set(before)) == 1)
    assert get(port, "/api/cases")["total"] == total


def workers_of(pid):
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
