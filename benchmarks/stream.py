"""A million rows of Parquet through a saved selector with the distilled policy: memory, speed, and a kill in between.

    python benchmarks/stream.py [--rows 1000000] [--engine local] [--workers 1] [--write order]

The run is killed (SIGKILL) after some parts and started again; the peak memory is that of both processes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector
from askwise.scale import acquire_parquet

N_FEATURES, ROWS_PER_GROUP, BUDGET = 20, 50_000, 5
PARTS_BEFORE_THE_KILL = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engine", default="local")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--write", default="order")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        work(**json.loads(options.job))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, options.rows)
        job = {"folder": name, "engine": options.engine, "workers": options.workers, "write": options.write}
        print(f"killed after {killed(folder, job)} parts", flush=True)
        resumed, seconds, memory = finished(job)
        table = pd.read_parquet(folder / "out.parquet", columns=["case", "n_bought"])
        assert table["case"].tolist() == list(range(options.rows)), "rows were lost or doubled"
        steps = int(table["n_bought"].sum())
    print(
        f"resumed with {resumed} parts done: {options.rows:,} rows, {steps:,} row-steps; the second run {seconds:.0f} s"
    )
    print(f"peak memory of the run: {memory:.2f} GiB")


def prepare(folder: Path, n_rows: int) -> None:
    """Save a selector, and the cases row group by row group."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    weights = rng.normal(size=N_FEATURES)
    names = [f"x{j}" for j in range(N_FEATURES)]
    X = pd.DataFrame(rng.normal(size=(10_000, N_FEATURES)), columns=names)
    y = (X.to_numpy() @ weights + rng.normal(size=len(X)) > 0).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    DynamicFeatureSelector(model, policy="distilled", random_state=0, progress=False).fit(X, y).save(folder / "saved")
    writer = None
    for start in range(0, n_rows, ROWS_PER_GROUP):
        n = min(ROWS_PER_GROUP, n_rows - start)
        table = pa.table({name: rng.normal(size=n) for name in names})
        writer = writer or parquet.ParquetWriter(folder / "cases.parquet", table.schema)
        writer.write_table(table, row_group_size=ROWS_PER_GROUP)
    assert writer is not None
    writer.close()


def work(folder: str, engine: str, workers: int, write: str) -> None:
    """The run itself, in a process of its own; prints a line of JSON."""
    import resource

    started, place = time.perf_counter(), Path(folder)
    done = acquire_parquet(
        place / "saved",
        place / "cases.parquet",
        place / "out.parquet",
        budget=BUDGET,
        write=write,
        engine=engine,
        workers=workers,
        progress=False,
    )
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = time.perf_counter() - started
    print(json.dumps({"resumed": done.n_resumed, "seconds": seconds, "memory": max(peaks) / 2**20}))


def killed(folder: Path, job: dict[str, object]) -> int:
    """Start the run, and kill all its processes once a few parts are written."""
    process = subprocess.Popen([sys.executable, __file__, "--job", json.dumps(job)], start_new_session=True)
    parts = folder / ".out.parquet.parts"
    while process.poll() is None and len(list(parts.glob("part-*"))) < PARTS_BEFORE_THE_KILL:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return len(list(parts.glob("part-*")))


def finished(job: dict[str, object]) -> tuple[int, float, float]:
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found["resumed"], found["seconds"], found["memory"]


if __name__ == "__main__":
    main()
