"""People at work at the same time: how long until the next suggestion, as a multiple of the model's own time?

python benchmarks/serve.py [--sessions 50] [--every 5] [--seconds 60] [--workers 2]

A forest of 100 trees on the heart table. Each session answers what is suggested every few seconds; at the end the audit
trail must hold every answer of every session, in order.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector, datasets

DATA = "heart"


class Person(threading.Thread):
    """Works through one case after the other, at a steady pace."""

    def __init__(self, port: int, number: int, rows: list[dict[str, Any]], every: float, end: float) -> None:
        super().__init__(daemon=True)
        self._random = random.Random(number)
        self._rows, self._every, self._end = rows, every, end
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.seconds: list[float] = []
        self.sent: dict[str, list[Any]] = {}

    def run(self) -> None:
        time.sleep(self._random.uniform(0, self._every))
        while time.monotonic() < self._end:
            row = self._random.choice(self._rows)
            case = ask(self._connection, "POST", "/api/cases", {"label": "benchmark"})
            self.sent[case["id"]] = []
            while case["report"]["suggestion"] is not None and time.monotonic() < self._end:
                start = time.perf_counter()
                feature = case["report"]["suggestion"]
                body = {"type": "answer", "feature": feature, "value": row[feature], "version": case["version"]}
                case = ask(self._connection, "POST", f"/api/cases/{case['id']}/events", {**body, "confirmed": True})
                self.seconds.append(time.perf_counter() - start)
                self.sent[case["id"]].append([feature, row[feature]])
                time.sleep(max(0.0, self._every - self.seconds[-1]))


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> Any:
    """One request; anything but success is an error."""
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    if response.status >= 300:
        raise RuntimeError(f"{response.status} {text.decode()}")
    return json.loads(text)


def predict_seconds(model: RandomForestClassifier, row: Any) -> float:
    """Median time in which the wrapped model predicts one complete row."""
    found = []
    for _ in range(40):
        start = time.perf_counter()
        model.predict_proba(row)
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def fitted(folder: Path) -> tuple[RandomForestClassifier, Any]:
    """The model, and rows to answer with; the selector is saved."""
    data = datasets.load(DATA)
    X, y = data.X, data.y
    model = RandomForestClassifier(100, random_state=0, n_jobs=1).fit(X[::2], y[::2])
    selector = DynamicFeatureSelector(model, costs=data.prices, groups=data.groups, random_state=0, progress=False)
    selector.fit(X[::2], y[::2]).save(folder)
    return model, X[1::2].dropna()


def wait_for_server(server: subprocess.Popen[bytes], port: int) -> None:
    """Until it answers; an error if it has ended."""
    while server.poll() is None:
        try:
            ask(http.client.HTTPConnection("127.0.0.1", port, timeout=60), "GET", "/ready")
            return
        except (OSError, http.client.HTTPException):
            time.sleep(0.2)
    raise RuntimeError("the server has not started")


def free_port() -> int:
    """A port that nobody else listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def check_nothing_is_lost(port: int, people: list[Person]) -> int:
    """The trail holds what every session has sent; the number of answers."""
    trail: dict[str, list[Any]] = {}
    for row in ask(http.client.HTTPConnection("127.0.0.1", port), "GET", "/api/trail")["trail"]:
        answers = trail.setdefault(row["case"], [])
        if row["event"] == "answer":
            answers.append([row["feature"], row["value"]])
    sent = {case: answers for person in people for case, answers in person.sent.items()}
    assert trail == sent, "answers were lost"
    return sum(map(len, sent.values()))


def main() -> None:
    """Print the latency of answer -> next suggestion."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        model, rows = fitted(Path(place) / "selector")
        port = free_port()
        before = predict_seconds(model, rows[:1])
        command = ["-m", "askwise", "serve", f"{place}/selector", "--port", str(port), "--rate", "0"]
        with (Path(place) / "log").open("w") as log:
            server = subprocess.Popen([sys.executable, *command, "--workers", str(options.workers)], stderr=log)
        try:
            wait_for_server(server, port)
            end = time.monotonic() + options.seconds
            answers = rows.astype(object).to_dict("records")
            people = [Person(port, number, answers, options.every, end) for number in range(options.sessions)]
            for person in people:
                person.start()
            during = predict_seconds(model, rows[:1])
            for person in people:
                person.join()
            n_answers = check_nothing_is_lost(port, people)
        finally:
            server.terminate()
            server.wait()
    seconds = np.array([second for person in people for second in person.seconds])
    p50, p95, most = (1000 * float(np.quantile(seconds, level)) for level in (0.5, 0.95, 1.0))
    print(
        f"{options.sessions} sessions, {options.workers} workers: {n_answers} answers, none lost; answer -> next "
        f"suggestion p50 {p50:.0f} ms, p95 {p95:.0f} ms, max {most:.0f} ms; predict of one row {1000 * before:.1f} ms "
        f"alone, {1000 * during:.1f} ms beside the server; p95 = {p95 / 1000 / before:.1f} x predict alone"
    )


if __name__ == "__main__":
    main()
