"""Policies against the exact greedy one, on Gaussian classes whose p(y | x_S) and gains are known in closed form.

A frozen MLP(100) is trained on the training rows; 20,000 further rows are bought for. Accuracies are paired (same
rows), once as predicted by askwise and once by the exact p(y | x_S) of what each policy bought, which leaves the
policy alone. Then the rank correlation of the estimated gains with the exact ones, by step.

    python benchmarks/gaussian.py [--rows 20000] [--seed 0]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ConstantInputWarning, spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from askwise import DynamicFeatureSelector
from askwise.acquisition import Acquisition
from askwise.datasets import make_gaussian
from askwise.datasets.gaussian import GaussianDataset
from askwise.policy import Greedy, Policy

N_TRAINING_ROWS = 4000
N_RANKED_ROWS = 500


class ExactGreedy(Policy):
    """Buys the feature with the largest exact mutual information with the class."""

    def __init__(self, data: GaussianDataset) -> None:
        self.data = data

    def scores(self, state: Acquisition) -> np.ndarray:
        return self.data.exact_gain(np.nan_to_num(state.rows.values), state.mask)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ConstantInputWarning)
    data = make_gaussian(N_TRAINING_ROWS, random_state=options.seed)
    X, y = data.sample(options.rows, random_state=options.seed + 1)
    model = MLPClassifier((100,), max_iter=200, random_state=options.seed).fit(data.X, data.y)
    policies: dict[str, Any] = {
        "exact greedy": ExactGreedy(data),
        "greedy, network": Greedy("network"),
        "greedy, neighbors": Greedy("neighbors"),
        "random": "random",
    }
    by_askwise, by_truth, fitted = {}, {}, {}
    for name, policy in policies.items():
        selector = DynamicFeatureSelector(model, policy=policy, epistemic=None, random_state=options.seed)
        run = selector.fit(data.X, data.y).acquire(X)
        steps = range(1, run.n_steps)
        by_askwise[name] = [float(np.mean(run.predict(t) == y)) for t in steps]
        by_truth[name] = [float(np.mean(data.exact_proba(X, run.mask_after(t)).argmax(axis=1) == y)) for t in steps]
        fitted[name] = selector, run
    for title, found in (("predicted by askwise", by_askwise), ("predicted by the exact p(y | x_S)", by_truth)):
        table = pd.DataFrame(found, index=pd.Index(steps, name="features"))
        print(f"\nAccuracy, {title} ({options.rows:,} rows, everything: {np.mean(model.predict(X) == y):.4f})")
        print(table.round(4).to_string())
        worst = (table["exact greedy"] - table["greedy, network"]).max()
        print(f"Largest shortfall of the network against the exact policy: {100 * worst:.2f} points")
        worst = (table["exact greedy"] - table["greedy, neighbors"]).max()
        print(f"Largest shortfall of the neighbors against the exact policy: {100 * worst:.2f} points")
    print_rankings(data, X.iloc[:N_RANKED_ROWS], fitted)


def print_rankings(data: GaussianDataset, X: pd.DataFrame, fitted: dict[str, Any]) -> None:
    """Mean rank correlation of estimated and exact gains, on the states that the exact policy visits.

    It counts as 0 for a row of which all estimates are equal.
    """
    run = fitted["exact greedy"][1]
    table = []
    for t in range(run.n_steps - 2):
        mask = run.mask_after(t)[: len(X)]
        hidden = X.where(mask)
        exact = data.exact_gain(hidden.fillna(0.0).to_numpy(), mask)
        row: dict[str, float] = {"features": t}
        for name in ("greedy, network", "greedy, neighbors"):
            gain = fitted[name][0].gains(hidden)  # without members and at equal prices: the value itself
            found = [spearmanr(g[~m], x[~m])[0] for g, x, m in zip(gain, exact, mask, strict=True)]
            row[name] = float(np.nan_to_num(found).mean())
        table.append(row)
    print(f"\nSpearman correlation of estimated with exact gains, by features known ({len(X)} rows)")
    print(pd.DataFrame(table).set_index("features").round(3).to_string())


if __name__ == "__main__":
    main()
