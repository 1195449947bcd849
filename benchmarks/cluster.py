"""A grid of trials on Dask with one and with two local workers: how much faster two are, and whether results differ.

    python benchmarks/cluster.py [--seeds 12] [--methods greedy-mlp] [--data breast_cancer]

Runs `askwise bench uniform` in processes of its own: without Dask, then on one and on two Dask workers in turns, each
into a new folder. The times include starting the workers, and the fastest of the turns counts. One core per worker must
be free: the load of the machine is printed beside the times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

WAYS = {
    "local": ("--jobs", "1"),
    "dask, 1 worker": ("--engine", "dask", "--jobs", "1"),
    "dask, 2 workers": ("--engine", "dask", "--jobs", "2"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="uniform")
    parser.add_argument("--seeds", default="12", help="trials, as there is one for each seed")
    parser.add_argument("--methods", default="greedy-mlp")
    parser.add_argument("--data", default="breast_cancer")
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    grid = [options.suite, "--seeds", options.seeds, "--methods", options.methods, "--data", options.data]
    fastest: dict[str, float] = {}
    rows: set[bytes] = set()
    for turn in range(options.turns):
        for way, given in WAYS.items():
            if turn and way == "local":
                continue
            seconds, found = run([*grid, *given])
            rows.add(found)
            fastest[way] = min(seconds, fastest.get(way, seconds))
            print(f"{way:16} {seconds:6.1f} s   load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores", flush=True)
    print(f"rows.csv: {'identical' if len(rows) == 1 else 'DIFFERENT'}")
    print(f"two workers are {fastest['dask, 1 worker'] / fastest['dask, 2 workers']:.2f} times as fast as one")


def run(arguments: list[str]) -> tuple[float, bytes]:
    """Seconds of `askwise bench`, and the numbers that it writes."""
    with tempfile.TemporaryDirectory() as name:
        started = time.perf_counter()
        command = ["askwise", "bench", *arguments, "--out", name]
        done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return time.perf_counter() - started, (Path(name) / "rows.csv").read_bytes()


if __name__ == "__main__":
    main()
