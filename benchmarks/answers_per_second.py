"""Answers per second of one worker of the server, beside another version: by the processor time of the server.

    python benchmarks/answers_per_second.py ../older/src [--answers 400] [--rounds 3]

A forest of 100 trees on the heart table. A server of each version runs with one worker; the versions take turns, and in
each turn one client answers what is suggested, case after case. Processor time and not the clock is counted, so that
other work on the machine matters little: an answer that takes 10 ms of it is 100 answers per second on a free core.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from serve import DATA, ask, free_port, wait_for_server  # type: ignore[import-not-found]

FIT = f"""
import sys, warnings
warnings.simplefilter("ignore")
from sklearn.ensemble import RandomForestClassifier
from askwise import DynamicFeatureSelector, datasets
data = datasets.load({DATA!r})
model = RandomForestClassifier(100, random_state=0, n_jobs=1).fit(data.X[::2], data.y[::2])
selector = DynamicFeatureSelector(model, costs=data.prices, groups=data.groups, random_state=0, progress=False)
selector.fit(data.X[::2], data.y[::2]).save(sys.argv[1])
"""
FREE = {"PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


class Server:
    """A server of one version with one worker, and a client."""

    def __init__(self, src: Path, folder: Path) -> None:
        environment = {**os.environ, **FREE, "PYTHONPATH": str(src)}
        subprocess.run([sys.executable, "-c", FIT, str(folder / "selector")], env=environment, check=True)
        self.port = free_port()
        command = ["-m", "askwise", "serve", f"{folder}/selector", "--port", str(self.port), "--rate", "0"]
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command, "--workers", "1"], env=environment, cwd=folder, stderr=log, stdout=log
            )
        wait_for_server(self.process, self.port)

    def milliseconds(self, rows: list[dict[str, Any]], n_answers: int) -> float:
        """Processor time of the server per answer, the start of each case included."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        before, n = self._processor_time(), 0
        while n < n_answers:
            row = rows[n % len(rows)]
            case = ask(connection, "POST", "/api/cases", {"label": "benchmark"})
            while (feature := case["report"]["suggestion"]) is not None:
                body = {"type": "answer", "feature": feature, "value": row[feature], "version": case["version"]}
                case = ask(connection, "POST", f"/api/cases/{case['id']}/events", {**body, "confirmed": True})
                n += 1
        return 1000 * (self._processor_time() - before) / n

    def _processor_time(self) -> float:
        """Seconds of the server and its workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        total = 0
        for pid in [str(self.process.pid), *children]:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the processor time of an answer by both versions, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", type=Path, help="the src folder of the older version")
    parser.add_argument("--answers", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    from askwise import datasets

    cells: Any = datasets.load(DATA).X[1::2].dropna().astype(object)
    rows = cells.to_dict("records")
    versions = (options.older.resolve(), Path(__file__).resolve().parents[1] / "src")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        servers = []
        try:
            for k, src in enumerate(versions):
                (Path(place) / str(k)).mkdir()
                servers.append(Server(src, Path(place) / str(k)))
            for server in servers:  # the first answers import what they need
                server.milliseconds(rows, 20)
            found = [[server.milliseconds(rows, options.answers) for server in servers] for _ in range(options.rounds)]
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait()
    old, new = (median(spent) for spent in zip(*found, strict=True))
    print(f"older {old:.1f} ms of processor time per answer, newer {new:.1f} ms: {old / new:.2f} times as many answers")


if __name__ == "__main__":
    main()
