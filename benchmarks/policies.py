"""Policies on real tables: accuracy by budget of a frozen MLP(100), and what the risk weight does to e.

Random masks, the static order, greedy (by neighbors and by network) and the Q-network choose; the predictions are the
same conditional ones for all. Budgets count features; buying everything is left out.

    python benchmarks/policies.py [--data wine heart cirrhosis yeast] [--seeds 5] [--policies random greedy ...]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

from askwise import DynamicFeatureSelector
from askwise.acquire import DQN, Greedy
from askwise.datasets import load
from askwise.reference_models import ReferenceModel, train_reference_model

POLICIES: dict[str, Any] = {
    "random": "random",
    "static": "static",
    "greedy": "greedy",
    "greedy, network": Greedy("network"),
    "rl": "rl",
    "rl, area": DQN(reward="area"),
}
RISK_WEIGHTS = (-1.0, 0.0, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["wine", "heart", "cirrhosis", "yeast"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    options = parser.parse_args()
    accuracies, risks = [], []
    for name in options.data:
        for seed in range(options.seeds):
            stand_in = train_reference_model(load(name), "mlp", seed, limited=False)
            rows = accuracy_rows(stand_in, seed, options.policies)
            accuracies += [{"data": name, "seed": seed, **row} for row in rows]
            risks += [{"data": name, "seed": seed, **row} for row in risk_rows(stand_in, seed)]
            print(f"{name}, seed {seed} done", flush=True)
    print_accuracies(pd.DataFrame(accuracies), options.seeds)
    print_risks(pd.DataFrame(risks), options.seeds)


def accuracy_rows(stand_in: ReferenceModel, seed: int, policies: list[str]) -> list[dict[str, Any]]:
    rows = []
    n_features = stand_in.X_train.shape[1]
    known = np.isin(stand_in.y_test, stand_in.estimator.classes_)
    for name in policies:
        selector = DynamicFeatureSelector(stand_in.estimator, policy=POLICIES[name], random_state=seed)
        selector.fit(stand_in.X_train, stand_in.y_train)
        found = selector.evaluate(stand_in.X_test[known], stand_in.y_test[known])
        for budget, accuracy in found.loc[found["budget"] < n_features, ["budget", "accuracy"]].to_numpy():
            rows.append({"policy": name, "budget": int(budget), "accuracy": accuracy})
    return rows


def risk_rows(stand_in: ReferenceModel, seed: int) -> list[dict[str, Any]]:
    """Mean e along the trajectories of the greedy policy, by risk weight and way to estimate values."""
    rows = []
    for value in ("neighbors", "network"):
        selector = DynamicFeatureSelector(stand_in.estimator, policy=Greedy(value), random_state=seed)
        selector.fit(stand_in.X_train, stand_in.y_train)
        for weight in RISK_WEIGHTS:
            run = selector.set_params(risk_weight=weight).acquire(stand_in.X_test)
            mean = float(run.uncertainty.epistemic[:, 1:-1].mean())
            rows.append({"value": value, "risk_weight": weight, "e": mean})
    return rows


def print_accuracies(table: pd.DataFrame, n_seeds: int) -> None:
    order = [name for name in POLICIES if name in set(table["policy"])]
    print(f"\nAccuracy by budget, mean over tables and {n_seeds} seeds")
    print(table.pivot_table(index="budget", columns="policy", values="accuracy")[order].round(4).to_string())
    print("\nAccuracy averaged over budgets, by table")
    print(table.pivot_table(index="data", columns="policy", values="accuracy", sort=False)[order].round(4).to_string())
    print("\nThe same, standard deviation over seeds")
    per_seed = table.groupby(["data", "seed", "policy"], sort=False)["accuracy"].mean().reset_index()
    spread = per_seed.pivot_table(index="data", columns="policy", values="accuracy", aggfunc="std", sort=False)
    print(spread[order].round(4).to_string())
    by_budget = table.pivot_table(index=["data", "budget"], columns="policy", values="accuracy", sort=False)
    gain = by_budget.sub(by_budget["random"], axis=0).drop(columns="random")
    print("\nSmallest gain over random masks at any budget of any table (points)")
    print((100 * gain.min()).round(2).to_string())
    print("\nSmallest gain over random masks at any budget, mean over tables (points)")
    print((100 * gain.groupby("budget").mean().min()).round(2).to_string())


def print_risks(table: pd.DataFrame, n_seeds: int) -> None:
    print(f"\nMean e along greedy trajectories by risk weight, {n_seeds} seeds")
    pivot = table.pivot_table(index=["value", "data"], columns="risk_weight", values="e", sort=False)
    print(pivot.round(5).to_string())
    print("\nMean over tables")
    print(table.pivot_table(index="value", columns="risk_weight", values="e", sort=False).round(5).to_string())


if __name__ == "__main__":
    main()
