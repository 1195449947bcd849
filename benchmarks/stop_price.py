"""What a stop that keeps 95 or 98 % of the decisions costs, by who chooses and whose decisions are kept.

    python -m benchmarks.stop_price                      # ten tables, five splits: hours
    python -m benchmarks.stop_price --tables wine heart --splits 2
    python -m benchmarks.stop_price --show               # what has been measured so far

The same kind of stop for everybody, calibrated on the same rows: `ours`, `static order` (one order for all cases) and
`random order` around the wrapped model's decisions, `DIME` and `GDFS` each around the decisions of its own network, and
`DIME's order` and `GDFS's order` around the wrapped model's. Prices are shares of the price of everything, all features
costing the same. Of the rows 30 % are to fit on, 50 % to calibrate on, and 20 % to measure on; at most 900 are used.
Rows are appended to `--out`, so that a run can be stopped and started again.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.savings import _by_agreement, _measured, _runs
from benchmarks.suite import TABLES, packaged_table

from askwise import DynamicFeatureSelector
from askwise.datasets import Dataset, load
from askwise.policy.orders import Random, Static
from askwise.reference_models import make_model
from askwise.stopping.guarantee import FullRuns
from askwise_bench.baselines import DIME, GDFS
from askwise_bench.grid.suites import BESIDE_RIVALS

MOST_ROWS = 900
TEN = tuple(name for name in TABLES if name not in ("diabetes130", "movement_libras", "splice", "digits", "satimage"))
RIVALS: dict[str, Any] = {"DIME": DIME, "GDFS": GDFS}


def measured(name: str, model: str, split: int, rivals: list[str]) -> list[dict[str, Any]]:
    """One row per way and level: price as a share of that of everything, and decisions kept on other rows."""
    data: Dataset = load(name) if name in BESIDE_RIVALS else packaged_table(name)
    order = np.random.default_rng(split).permutation(len(data.y))[:MOST_ROWS]
    first, second = int(0.3 * len(order)), int(0.8 * len(order))
    fit, rest = order[:first], order[first:]
    rest = rest[np.isin(data.y[rest], data.y[fit])]
    parts = rest[: second - first], rest[second - first :]
    X, y = data.X.iloc[fit], data.y[fit]
    wrapped = make_model(model, split).fit(X, y)
    common: dict[str, Any] = {"groups": data.groups, "random_state": split, "progress": False}
    selector = DynamicFeatureSelector(wrapped, epistemic=None, **common).fit(X, y)
    ways: dict[str, Any] = {"ours": selector, "static order": selector.with_policy(Static())}
    ways["random order"] = selector.with_policy(Random(split))
    found = {way: [_runs(who, data.X.iloc[rows], data.y[rows]) for rows in parts] for way, who in ways.items()}
    for rival in rivals:
        fitted = RIVALS[rival](**common).fit(X, y)
        found[rival] = [_runs(fitted, data.X.iloc[rows], data.y[rows]) for rows in parts]
        found[f"{rival}'s order"] = [_by_order_of(fitted, selector, data.X.iloc[rows], data.y[rows]) for rows in parts]
    rows = [row for way, runs in found.items() for row in _measured(way, _by_agreement, *runs)]
    return [{"data": name, "model": model, "split": split, **row} for row in rows]


def _by_order_of(rival: Any, selector: DynamicFeatureSelector, X: pd.DataFrame, y: np.ndarray) -> FullRuns:
    """Cases of the selector that acquire what the rival chooses; both encode a table alike."""
    return _runs(selector, X, y, rival.policy_)


def show(rows: pd.DataFrame) -> None:
    for level, part in rows.dropna(subset=["share"]).groupby("level"):
        by_table = part.pivot_table(index="data", columns="way", values="share", sort=False)
        by_table.loc["median"] = by_table.median()
        by_table.loc["mean"] = by_table.iloc[:-1].mean()
        spread = part.groupby(["way", "data"])["share"].std(ddof=1).groupby("way").mean()
        kept = part.groupby("way")["kept"].mean()
        by_table.loc["spread over splits"] = spread
        by_table.loc["decisions kept"] = kept
        ours, cells = part[part["way"] == "ours"], ["data", "model", "split"]
        print(f"\n{level:.0%} kept, {len(ours)} splits of {ours['data'].nunique()} tables, price of everything = 1")
        print(by_table.round(3).to_string())
        wide = part.pivot_table(index=cells, columns="way", values="share")
        less = wide.sub(wide["ours"], axis=0).drop(columns="ours").groupby("data").mean()
        print("dearer than ours, mean over tables and its standard error:")
        print(less.agg(["mean", "sem"]).round(3).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("stop_price.csv"))
    parser.add_argument("--tables", nargs="*", default=list(TEN), choices=TABLES)
    parser.add_argument("--models", nargs="*", default=["mlp"])
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=RIVALS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for split in range(options.first, options.first + (0 if options.show else options.splits)):
        for name in options.tables:
            for model in options.models:
                done = (
                    pd.read_csv(options.out)
                    if options.out.exists()
                    else pd.DataFrame(columns=["data", "model", "split"])
                )
                if len(done[(done["data"] == name) & (done["model"] == model) & (done["split"] == split)]) == 0:
                    rows = pd.DataFrame(measured(name, model, split, options.rivals))
                    rows = rows.reindex(columns=["data", "model", "split", "way", "level", "share", "kept", "note"])
                    rows.to_csv(options.out, mode="a", header=not options.out.exists(), index=False)
    show(pd.read_csv(options.out))


if __name__ == "__main__":
    main()
