"""Keep the rows of `askwise bench` in the repository: one compact Parquet file per study, with what made them.

Rows of trials that the files hold already are replaced, others are added. The schema of each file records the commit,
the profile, the limits and the versions of the run.

    python -m askwise_bench.keep_rows askwise-bench --commit 7c0e047 --into research/results
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from askwise_bench.grid.store import bring_up_to_date

KEY = ["data", "method", "prices", "seed"]


def kept(folder: Path, into: Path, commit: str) -> dict[str, int]:
    """Write the rows of a run; returns how many rows each study has now."""
    bring_up_to_date(folder)  # a run that was killed has not written its tables
    made = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    about = {name: made[name] for name in ("askwise", "profile", "limits", "versions")} | {"commit": commit}
    rows = pd.read_csv(folder / "rows.csv").assign(commit=commit)
    into.mkdir(parents=True, exist_ok=True)
    counts = {}
    for study, found in rows.groupby("study", sort=True):
        path = into / f"{study}.parquet"
        table = found.drop(columns="study").dropna(axis=1, how="all")
        if path.exists():
            before = pd.read_parquet(path)
            again = before.set_index(KEY).index.isin(table.set_index(KEY).index)
            table = pd.concat([before[~again], table], ignore_index=True)
        words = {name: "category" for name in table if table[name].dtype.kind not in "iuf"}
        table = table.astype(words).sort_values(KEY, kind="stable", ignore_index=True)
        arrow = pa.Table.from_pandas(table, preserve_index=False)
        arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), b"askwise": json.dumps(about).encode()})
        pq.write_table(arrow, path, compression="zstd")
        counts[str(study)] = len(table)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what `askwise bench --out` wrote")
    parser.add_argument("--commit", required=True, help="the commit that it was run at")
    parser.add_argument("--into", type=Path, default=Path("research/results"))
    given = parser.parse_args()
    for study, count in kept(given.folder, given.into, given.commit).items():
        print(f"{study}: {count:,} rows")


if __name__ == "__main__":
    main()
