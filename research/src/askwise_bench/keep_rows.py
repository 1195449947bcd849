"""Keep the rows of `askwise bench` in the repository, with what made them; the report reads them from there.

New cells (data, method, prices, seed, study) are added. One that is there already is replaced where the code behind it
has changed since and that of the run has not, or where the run is of the same commit; otherwise it stays, unless
--replace is given. No cell is ever taken away.

    python -m askwise_bench.keep_rows askwise-bench --commit 7c0e047
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from askwise_bench.grid import kept
from askwise_bench.grid.fingerprints import Sources
from askwise_bench.grid.kept import CELL, TIMES
from askwise_bench.grid.store import TRIAL, bring_up_to_date, read_manifest, read_timings
from askwise_bench.report.rows import read_rows

REPOSITORY = Path(__file__).parents[3]
RESULTS = REPOSITORY / "research" / "results"


@dataclass(frozen=True)
class Merged:
    """What became of the cells of a run, by study, and how many rows the file has now."""

    added: int
    replaced: int
    left: int
    rows: int

    def __str__(self) -> str:
        left = f", {self.left} left as they were (--replace takes those of the run)" if self.left else ""
        return f"{self.added} cells added, {self.replaced} replaced{left}; {self.rows:,} rows"


def keep(folder: Path, into: Path, commit: str, sources: Sources, replace: bool = False) -> Mapping[str, Merged]:
    """Write the rows and times of a run of `commit`, whose code is `sources`; returns what became of each study."""
    bring_up_to_date(folder)  # a run that was killed has not written its tables
    made = kept.about(read_manifest(folder))
    rows = read_rows(folder).astype({"study": str, "metric": str, "seed": int})
    marks = {key: sources.fingerprint(*key) or "" for key in set(zip(rows["method"], rows["study"], strict=True))}
    keys = zip(rows["method"], rows["study"], strict=True)
    rows = rows.assign(commit=commit, fingerprint=[marks[key] for key in keys], made=made)
    there = kept.read_kept(into) if kept.is_kept(into) else rows.iloc[:0]
    told = {}
    for study, found in rows.groupby("study", sort=True):
        before = there[there["study"] == study]
        told[str(study)], whole = _merged(before, found, replace)
        kept.write_kept(into, str(study), whole)
    _keep_times(folder, into, commit, made)
    return told


def _merged(before: pd.DataFrame, found: pd.DataFrame, replace: bool) -> tuple[Merged, pd.DataFrame]:
    """The rows of a study before and now, one set of values per cell."""
    ours, theirs = pd.MultiIndex.from_frame(before[CELL]), pd.MultiIndex.from_frame(found[CELL])
    again = ours.isin(theirs)
    old = before[again]
    better = pd.Series(True, index=old.index)
    if not replace:
        now = found.drop_duplicates(CELL).set_index(CELL)
        runs = now.loc[pd.MultiIndex.from_frame(old[CELL])]
        fresh = pd.Series(kept.fits(now.reset_index()).to_numpy(), index=now.index).loc[runs.index].to_numpy()
        better = (old["commit"].to_numpy() == runs["commit"].to_numpy()) | (~kept.fits(old) & fresh)
    gone, stays = old[better], old[~better]
    taken = found[~theirs.isin(pd.MultiIndex.from_frame(stays[CELL]))]
    parts = [part for part in (before[~again], stays, taken) if len(part)]
    whole = pd.concat(parts, ignore_index=True)
    n_gone = len(gone[CELL].drop_duplicates())
    added = len(taken[CELL].drop_duplicates()) - n_gone
    return Merged(added, n_gone, len(stays[CELL].drop_duplicates()), len(whole)), whole


def _keep_times(folder: Path, into: Path, commit: str, made: str) -> None:
    """The times of the run beside those of others: they say how long it took once, whatever has changed since."""
    found = read_timings(folder).assign(commit=commit, made=made, fingerprint="")
    before = kept.read_times(into)
    keys = [*TRIAL, "suite"]
    if len(before):
        new = ~pd.MultiIndex.from_frame(found[keys]).isin(pd.MultiIndex.from_frame(before[keys]))
        found = pd.concat([before, found[new]], ignore_index=True)
    kept.write_kept(into, TIMES, found)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what `askwise bench --out` wrote")
    parser.add_argument("--commit", required=True, help="the commit that it was run at")
    parser.add_argument("--into", type=Path, default=RESULTS)
    parser.add_argument("--replace", action="store_true", help="take the run's values for cells that are there already")
    given = parser.parse_args(arguments)
    sources = Sources.at(given.commit, REPOSITORY)
    for study, merged in keep(given.folder, given.into, given.commit, sources, given.replace).items():
        print(f"{study}: {merged}")


if __name__ == "__main__":
    main()
