"""A grid of trials on a Dask cluster: how much faster two workers are than one, and whether the results differ.

    python benchmarks/cluster.py [--seeds 12] [--methods greedy-mlp] [--data breast_cancer]

Runs `askwise bench uniform --engine dask --address ...` on one worker and on two, then without Dask, each into a new
folder. Scheduler and workers are processes with sessions of their own, among which Linux shares out a busy machine; the
load is printed beside the times.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="12", help="trials, as there is one for each seed")
    parser.add_argument("--methods", default="greedy-mlp")
    parser.add_argument("--data", default="breast_cancer")
    options = parser.parse_args()
    grid = ["uniform", "--seeds", options.seeds, "--methods", options.methods, "--data", options.data]
    times, rows = {}, set()
    for n_workers in (1, 2):
        with cluster(n_workers) as address:
            times[n_workers], found = run([*grid, "--engine", "dask", "--address", address])
        rows.add(found)
        print(f"{n_workers} workers {times[n_workers]:6.1f} s   load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"two workers are {times[1] / times[2]:.2f} times as fast as one", flush=True)
    rows.add(run(grid)[1])
    print(f"rows.csv, also without Dask: {'identical' if len(rows) == 1 else 'DIFFERENT'}")


@contextlib.contextmanager
def cluster(n_workers: int) -> Iterator[str]:
    """The address of a scheduler with workers; all of them end with the block."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as started:
        file = Path(name) / "scheduler.json"
        commands = [["scheduler", "--port", "0", "--no-dashboard"]]
        commands += [["worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * n_workers
        for command in commands:
            given = ["dask", *command, "--scheduler-file", str(file)]
            process = subprocess.Popen(given, cwd=name, stderr=subprocess.DEVNULL, start_new_session=True)
            started.callback(process.wait)
            started.callback(process.kill)
            while not file.exists():
                time.sleep(0.1)
        yield json.loads(file.read_text())["address"]


def run(arguments: list[str]) -> tuple[float, bytes]:
    """Seconds of `askwise bench`, and the numbers that it writes."""
    with tempfile.TemporaryDirectory() as name:
        started = time.perf_counter()
        done = subprocess.run(["askwise", "bench", *arguments, "--out", name], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return time.perf_counter() - started, (Path(name) / "rows.csv").read_bytes()


if __name__ == "__main__":
    main()
