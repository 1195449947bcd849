"""Baselines on Gaussian classes, where the truth is known: rankings, random orders, and the curve of CWCF.

Rank correlation of each value with the exact mutual information, on states of random features and on those that the
method itself visits; accuracy at every budget beside random orders with the same predictor; and what CWCF buys and
scores when it stops by itself, for several weights of the price.

    python benchmarks/baselines_gaussian.py [--seeds 2] [--rows 4000] [--baselines DIME GDFS VIP EDDI]
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from askwise.datasets import make_gaussian
from askwise.datasets.gaussian import GaussianDataset
from askwise.evaluation import final_states
from askwise.policy import Random
from askwise_bench import baselines
from askwise_bench.baselines import CWCF, Baseline

N_TRAINING_ROWS = 4000
N_RANKED_ROWS = 500
COST_WEIGHTS = (0.005, 0.02, 0.05, 0.1, 0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--baselines", nargs="+", default=["DIME", "GDFS", "VIP", "EDDI"])
    options = parser.parse_args()
    for seed in range(options.seeds):
        data = make_gaussian(N_TRAINING_ROWS, random_state=seed)
        X, y = data.sample(options.rows, random_state=seed + 1)
        for name in options.baselines:
            baseline = getattr(baselines, name)(random_state=seed).fit(data.X, data.y)
            print(f"\n{name}, seed {seed}")
            print_accuracies(baseline, X, y)
            print_rankings(baseline, data, X)
        print_curve(data, X, y, seed)


def print_accuracies(baseline: Baseline, X: pd.DataFrame, y: np.ndarray) -> None:
    budgets = [float(k) for k in range(1, X.shape[1])]  # with everything bought, the order is all the same
    labels = np.searchsorted(baseline.classes_, y)
    found = {
        name: [float(np.mean(end.proba.argmax(axis=1) == labels)) for end in final_states(baseline, X, budgets, policy)]
        for name, policy in (("itself", None), ("random order", Random(0)))
    }
    table = pd.DataFrame(found, index=pd.Index(budgets, name="features")).T
    print(table.round(3).to_string())
    print(f"smallest gain over random orders: {100 * (table.iloc[0] - table.iloc[1]).min():.1f} points")


def print_rankings(baseline: Baseline, data: GaussianDataset, X: pd.DataFrame) -> None:
    """Mean rank correlation of the policy's scores with the exact gains, by features known."""
    rows = X.iloc[:N_RANKED_ROWS]
    n, n_features = rows.shape
    order = np.random.default_rng(0).permuted(np.tile(np.arange(n_features), (n, 1)), axis=1)
    visited = baseline.acquire(rows)
    found: dict[str, list[float]] = {"random states": [], "own states": []}
    for t in range(n_features - 1):
        random_mask = np.zeros(rows.shape, dtype=bool)
        np.put_along_axis(random_mask, order[:, :t], True, axis=1)
        found["random states"].append(rank_correlation(baseline, data, rows, random_mask))
        found["own states"].append(rank_correlation(baseline, data, rows, visited.mask_after(t)))
    table = pd.DataFrame(found, index=pd.Index(range(n_features - 1), name="features known")).T
    table["mean"] = table.mean(axis=1)
    print("Spearman correlation of its scores with the exact information")
    print(table.round(3).to_string())


def rank_correlation(baseline: Baseline, data: GaussianDataset, rows: pd.DataFrame, mask: np.ndarray) -> float:
    seen = rows.where(mask)
    scores = baseline.ranking(seen)
    exact = data.exact_gain(seen.fillna(0.0).to_numpy(), mask)
    return float(np.mean([spearmanr(s[~m], g[~m])[0] for s, g, m in zip(scores, exact, mask, strict=True)]))


def print_curve(data: GaussianDataset, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
    print(f"\nCWCF left to stop by itself, seed {seed}")
    for weight in COST_WEIGHTS:
        baseline = CWCF(cost_weight=weight, random_state=seed).fit(data.X, data.y)
        run = baseline.acquire(X, stop=baseline.stopping_)
        bought = float((run.order >= 0).sum(axis=1).mean())
        print(f"  weight {weight:<5}: {bought:.2f} features, accuracy {np.mean(run.predict() == y):.3f}")


if __name__ == "__main__":
    main()
