"""A promise that is checked by a real server while cases are served: is a change seen, and is none seen without one?

A selector is fitted, its stop calibrated, and served with two workers, which check a share of the cases. People work
through simulated cases over HTTP; after the change the scan contradicts age and laboratory. Then /metrics and
`askwise monitor` are read, and after the change `askwise recalibrate` makes a new stop from the cases since then.

    python -m benchmarks.deployment --cases 400 --check 0.5
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.serve import ask, free_port, wait_for_server
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from askwise import DynamicFeatureSelector

PRICES = {"age": 0, "lab": 1, "culture": 1, "scan": 5}
PEOPLE = 4


def patients(n: int, seed: int, changed: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=["age", "lab", "culture", "scan"])
    if changed:
        X["scan"] = (X["scan"] - X["age"] - X["lab"]).round(3)
    chance = 1 / (1 + np.exp(-2 * (X["age"] + X["lab"] + 2 * X["scan"])))
    X.insert(0, "site", rng.choice(["north", "south"], n))
    return X, np.where(rng.random(n) < chance, "ill", "well")


def fitted(folder: Path, agreement: float) -> None:
    X, y = patients(400, 0)
    columns = make_column_transformer((OneHotEncoder(), ["site"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    selector = DynamicFeatureSelector(
        model, costs={**PRICES, "site": 0}, epistemic=None, random_state=0, progress=False
    ).fit(X, y)
    selector.calibrate_stop(patients(600, 1)[0], agreement=agreement, subgroups="site")
    selector.save(folder)


class Person(threading.Thread):
    """Works through the cases of a queue, in the order of the suggestions, and finishes each."""

    def __init__(self, port: int, waiting: Queue[dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._waiting = waiting
        self.checked = 0

    def run(self) -> None:
        while True:
            try:
                row = self._waiting.get_nowait()
            except Empty:
                return
            case = ask(self._connection, "POST", "/api/cases", {"label": "simulated", "confirmed": True})
            while (feature := case["report"]["suggestion"]) is not None:
                body = {"type": "answer", "feature": feature, "value": row[feature], "version": case["version"]}
                case = ask(self._connection, "POST", f"/api/cases/{case['id']}/events", {**body, "confirmed": True})
            self.checked += case["report"]["check"] is not None
            ask(
                self._connection,
                "POST",
                f"/api/cases/{case['id']}/events",
                {"type": "finish", "version": case["version"]},
            )


def served(port: int, rows: pd.DataFrame) -> int:
    """Serve the cases; how many were checked."""
    waiting: Queue[dict[str, Any]] = Queue()
    for row in rows.to_dict("records"):
        waiting.put({str(name): value for name, value in row.items()})
    people = [Person(port, waiting) for _ in range(PEOPLE)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    assert waiting.empty()
    return sum(one.checked for one in people)


def metrics(port: int) -> dict[str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return dict(re.findall(r"^(askwise_(?:promise|novelty|checks).*) (\S+)$", text, re.MULTILINE))


def command(*parts: str) -> str:
    found = subprocess.run([sys.executable, "-m", "askwise", *parts], capture_output=True, text=True)
    return found.stdout + found.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400, help="before and after the change, each")
    parser.add_argument("--check", type=float, default=0.5)
    parser.add_argument("--agreement", type=float, default=0.9)
    parser.add_argument("--db", help="URL of a database that is empty (default: SQLite)")
    parser.add_argument("--keep", help="folder to leave everything in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        place = Path(options.keep or temporary)
        place.mkdir(exist_ok=True)
        fitted(place / "selector", options.agreement)
        port = free_port()
        given = [str(place / "selector"), "--port", str(port), "--rate", "0", "--workers", "2"]
        given += ["--check", str(options.check), *(["--db", options.db] if options.db else [])]
        with (place / "log").open("w") as log:
            server = subprocess.Popen([sys.executable, "-m", "askwise", "serve", *given], stderr=log)
        try:
            wait_for_server(server, port)
            source = ["--from", options.db] if options.db else []
            for changed in (False, True):
                since = datetime.now(UTC).isoformat()
                checked = served(port, patients(options.cases, 2 + changed, changed)[0])
                print(f"\n{'After' if changed else 'Before'} the change: {options.cases} cases, {checked} checked")
                for name, value in metrics(port).items():
                    if "alarm" in name or '{name="all cases",of="all"}' in name or "novelty" in name:
                        print(f"  {name} {value}")
                print(command("monitor", str(place / "selector"), *source))
                told = ask(http.client.HTTPConnection("127.0.0.1", port), "GET", "/api/monitor")
                assert told == json.loads(command("monitor", str(place / "selector"), *source, "--json")) | {
                    "share": options.check
                }
        finally:
            server.terminate()
            server.wait()
        print(command("recalibrate", str(place / "selector"), *source, "-o", str(place / "new"), "--since", since))


if __name__ == "__main__":
    main()
