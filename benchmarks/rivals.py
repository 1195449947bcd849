"""Rivals on real tables: accuracy by budget, calibration, and training time as a multiple of one fit of an MLP(100).

Stratified splits of 80 % to train and 20 % to test, one per seed; equal prices, budgets of 1 to 10 features. "ours" is
`DynamicFeatureSelector` around a pipeline that ends in an MLP(100). Methods that read the full row before they select
are marked with a star.

    python benchmarks/rivals.py [--rivals StaticCMI AACO ...] [--data wine yeast] [--seeds 5]
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector
from askwise.datasets import Dataset, load
from askwise.metrics import expected_calibration_error
from askwise.reference_models import make_model

RIVALS = {
    "StaticCMI": "static",
    "StaticBest": "best_subset",
    "AACO": "aaco",
    "GDFS": "gdfs",
    "DIME": "dime",
    "VIP": "vip",
    "CWCF": "cwcf",
    "Opportunistic": "opportunistic",
    "EDDI": "eddi",
    "INVASE": "invase",
    "TabNet": "tabnet",
    "RandomOrder": "lines",
    "FullInformation": "lines",
}
FROZEN = {"AACO, forest": "forest", "AACO, logistic": "logistic", "AACO, mlp": "mlp"}
"""AACO around a model that is trained once on complete rows."""
OURS = "ours"
CHOICES = [OURS, *RIVALS, *FROZEN]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", nargs="+", choices=CHOICES, default=CHOICES, metavar="NAME")
    parser.add_argument("--data", nargs="+", default=["wine", "yeast"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names = [OURS, *(name for name in options.rivals if name != OURS)]
    _warm_up()
    rows = []
    for data in options.data:
        table = load(data)
        for seed in range(options.seeds):
            rows += [{"data": data, "seed": seed, **row} for row in measured(table, seed, names)]
            print(f"{data}, seed {seed} done", flush=True)
    print_tables(pd.DataFrame(rows), names, options.seeds)


def measured(table: Dataset, seed: int, names: list[str]) -> list[dict[str, Any]]:
    """One row per method and budget of one split; `proba` and `labels` are kept, to be pooled."""
    X, X_test, y, y_test = train_test_split(table.X, table.y, test_size=0.2, stratify=table.y, random_state=seed)
    one_fit = _seconds(lambda: make_model("mlp", seed).fit(X, y))[0]
    labels = np.searchsorted(np.unique(y), y_test)
    rows = []
    for name in names:
        training, method = _seconds(lambda name=name: made(name, seed).fit(X, y))
        budgets = method.default_budgets()
        choosing, ends = _seconds(lambda method=method, budgets=budgets: method.final_states(X_test, budgets))
        for budget, (proba, _, _) in zip(budgets, ends, strict=True):
            rows.append(
                {
                    "method": name + "*" * bool(getattr(method, "sees_everything", False)),
                    "budget": int(budget),
                    "percent": 100 * float(np.mean(proba.argmax(axis=1) == labels)),
                    "training": training / one_fit,
                    "milliseconds": 1000 * choosing / (len(labels) * len(budgets)),
                    "proba": proba,
                    "labels": labels,
                }
            )
    return rows


def made(name: str, seed: int) -> Any:
    """A method with its defaults, not yet fitted."""
    if name == OURS:
        return DynamicFeatureSelector(make_model("mlp", seed), random_state=seed, progress=False)
    if name in FROZEN:
        return _kind("AACO")(make_model(FROZEN[name], seed), random_state=seed)
    return _kind(name)(random_state=seed)


def print_tables(table: pd.DataFrame, names: list[str], n_seeds: int) -> None:
    order = [method for name in names for method in (name, name + "*") if method in set(table["method"])]
    per_seed = table.groupby(["data", "seed", "method"], sort=False)["percent"].mean().reset_index()

    def by_table(values: str, source: pd.DataFrame, aggregate: Literal["mean", "std"], digits: int) -> str:
        pivot = source.pivot_table(index="method", columns="data", values=values, aggfunc=aggregate, sort=False)
        pivot["mean"] = pivot.mean(axis=1)
        return str(pivot.loc[order].round(digits).to_string())

    print(f"\nAccuracy averaged over budgets (percent), mean of {n_seeds} splits; * reads the full row first")
    print(by_table("percent", per_seed, "mean", 2))
    if n_seeds > 1:
        print("\nThe same, standard deviation over splits")
        print(by_table("percent", per_seed, "std", 2))
    print("\nExpected calibration error, predictions of all budgets and splits pooled")
    print(by_table("ece", pooled_calibration(table), "mean", 3))
    print("\nTraining time, in fits of the MLP(100) pipeline on the same rows")
    print(by_table("training", table, "mean", 1))
    print("\nMilliseconds per case and budget to choose and to predict, in a batch of all test rows")
    print(by_table("milliseconds", table, "mean", 3))
    print("\nAccuracy by budget (percent), mean over tables and splits")
    by_budget = table.pivot_table(index="method", columns="budget", values="percent")
    print(by_budget.loc[order].round(1).to_string())


def pooled_calibration(table: pd.DataFrame) -> pd.DataFrame:
    """Expected calibration error by table and method."""
    rows = []
    for (data, method), part in table.groupby(["data", "method"], sort=False):
        labels, proba = np.concatenate(part["labels"].tolist()), np.vstack(part["proba"].tolist())
        rows.append({"data": data, "method": method, "ece": float(expected_calibration_error(labels, proba))})
    return pd.DataFrame(rows)


def _kind(name: str) -> Any:
    return getattr(importlib.import_module(f"askwise.baselines.{RIVALS[name]}"), name)


def _seconds(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _warm_up() -> None:
    """Import what is imported on first use, so that no method pays for it."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)))
    _kind("AACO")(epochs=1, random_state=0).fit(table, table[0] > 0)
    DynamicFeatureSelector(make_model("logistic", 0), random_state=0, progress=False).fit(table, table[0] > 0)


if __name__ == "__main__":
    main()
