"""The leads over rivals from docs/rivals.csv, which has accuracy and log loss of every trial, mean over its budgets.

Rivals take hours. With their figures in a file, another version of ours is compared with them on the same splits and
prices without running them again: trials in folders of `askwise bench` replace those of the same name in the file.

    python benchmarks/leads.py                        # the tables of docs/project/benchmarks.md
    python benchmarks/leads.py DIR                    # with the trials that `askwise bench rivals --out DIR` ran
    python benchmarks/leads.py DIR --write            # and keep these in docs/rivals.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from askwise_bench.grid.suites import BESIDE_RIVALS, OURS, RIVALS
from askwise_bench.report.rival_tables import KINDS, lead

FILE = Path(__file__).parents[1] / "docs" / "rivals.csv"
TRIAL = ["data", "prices", "method", "seed"]
MEASURES = {"accuracy": (100, 2), "log_loss": (-1, 3)}
"""Factor (higher is better) and digits."""


def trials_of(folder: Path) -> pd.DataFrame:
    """Accuracy and log loss of the trials in a folder of `askwise bench`, mean over the budgets."""
    rows = pd.read_csv(folder / "rows.csv")
    rows = rows[(rows["study"] == "rivals") & rows["metric"].isin(list(MEASURES))]
    return rows.groupby([*TRIAL, "metric"])["value"].mean().unstack("metric").round(5)


def leads(trials: pd.DataFrame, prices: str, measure: str, data: list[str]) -> pd.DataFrame:
    """One row per rival, one column per kind and model of ours; the tables that both have are averaged."""
    factor, digits = MEASURES[measure]
    part = factor * trials[measure].xs(prices, level="prices").unstack("method")
    part = part[part.index.get_level_values("data").isin(data)]
    columns = {f"{kind}: all": methods for kind, methods in KINDS.items()} | {method: [method] for method in OURS}
    found: dict[str, dict[str, str]] = {}
    for name, ours in columns.items():
        found[name] = {}
        for rival in [rival for rival in RIVALS if rival in part]:
            mean, half, n = lead(part[ours], part[rival])
            found[name][rival] = f"{mean:+.{digits}f} +- {half:.{digits}f} ({n})"
    return pd.DataFrame(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--data", nargs="+", default=list(BESIDE_RIVALS), help="only these tables")
    parser.add_argument("--write", action="store_true", help="keep the trials of DIR in docs/rivals.csv")
    options = parser.parse_args()
    trials = pd.read_csv(FILE, index_col=TRIAL)
    for folder in options.folders:
        trials = trials_of(folder).combine_first(trials)
    pd.set_option("display.width", 250)
    for prices in ("uniform", "variable"):
        accuracy = 100 * trials["accuracy"].xs(prices, level="prices").unstack("data").reindex(columns=options.data)
        by_method = accuracy.groupby("method")
        shown = by_method.mean().round(1).astype(str) + " (" + by_method.count().astype(str) + ")"
        print(f"\n{prices} prices: accuracy in percent (splits)\n{shown.to_string()}")
        for measure in MEASURES:
            table = leads(trials, prices, measure, options.data)
            print(f"\n{prices} prices: lead in {measure}, half of the 95 % interval, tables\n{table.T.to_string()}")
    if options.write:
        trials.sort_index()[list(MEASURES)].to_csv(FILE)


if __name__ == "__main__":
    main()
