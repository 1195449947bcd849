"""Answers on random subsets: log loss on held-out rows of a frozen MLP(100), by adaptation.

Every held-out row is seen under several random masks; all adaptations see the same ones.

    python benchmarks/subsets.py [--data wine heart cirrhosis yeast] [--seeds 5]
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from askwise.datasets import load
from askwise.predict import (
    ConditionalPredictor,
    ImputedPredictor,
    MaskTrainedPredictor,
    ReparametrizedPredictor,
    SubsetPredictor,
)
from askwise.reference_models import train_reference_model
from askwise.table.subsets import sample

MASKS_PER_ROW = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["wine", "heart", "cirrhosis", "yeast"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    rows = [
        {"data": name, "seed": seed, **log_losses(name, seed)} for name in options.data for seed in range(options.seeds)
    ]
    table = pd.DataFrame(rows).drop(columns="seed").groupby("data", sort=False)
    print(f"Log loss on random masks of held-out rows, frozen MLP(100), mean over {options.seeds} seeds")
    print(table.mean().round(4).to_string())
    print("\nSpread over seeds (standard deviation)")
    print(table.std().round(4).to_string())
    print("\nChange against mean imputation, mean over seeds (negative is better)")
    change = table.mean()
    print(change.sub(change["mean"], axis=0).round(4).to_string())


def log_losses(name: str, seed: int) -> dict[str, float]:
    """Log loss of each adaptation on one split."""
    reference = train_reference_model(load(name), "mlp", seed, limited=False)
    model = reference.estimator
    predictors: dict[str, SubsetPredictor] = {
        "mean": ImputedPredictor(model),
        "marginal": ImputedPredictor(model, "marginal", random_state=seed),
        "conditional": ConditionalPredictor(model, random_state=seed),
        "output": ReparametrizedPredictor(model, "output", random_state=seed),
        "last-layer": ReparametrizedPredictor(model, "last-layer", random_state=seed),
        "mask-trained": MaskTrainedPredictor(model, random_state=seed),
    }
    X = reference.X_test.iloc[np.repeat(np.arange(len(reference.y_test)), MASKS_PER_ROW)]
    labels = np.repeat(np.searchsorted(model.classes_, reference.y_test), MASKS_PER_ROW)
    mask = sample(len(X), X.shape[1], np.random.default_rng(seed))
    losses = {}
    for kind, predictor in predictors.items():
        proba = predictor.fit(reference.X_train, reference.y_train).predict_proba(X, mask)
        losses[kind] = float(-np.log(np.maximum(proba[np.arange(len(X)), labels], 1e-12)).mean())
    return losses


if __name__ == "__main__":
    main()
