"""Which rule buys more under a budget? Accuracy and log loss of greedy policies and of plans, less "per price".

Frozen MLP, forest and XGBoost, prices drawn as in `askwise bench`, budgets of 5 % to 50 % of the price of everything.
Only validation rows are used: the training rows of a benchmark split are split again, so that no test row decides.

    python benchmarks/price_rules.py --splits 3                 # about 10 minutes
    python benchmarks/price_rules.py --first 10 --splits 5      # fresh splits
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.datasets.dataset import split_rows
from askwise.policy import Greedy, Planned
from askwise.reference_models import make_model

TABLES = ("wine", "heart", "cirrhosis", "yeast", "breast_cancer")
MODELS = ("mlp", "forest", "xgboost")
POLICIES = {"per price": Greedy(price_rule="per price"), "root": Greedy(price_rule="root"), "planned": Planned()}
N_DRAWS, MOST_HELD = 3, 120


def measured(name: str, model: str, seed: int) -> list[dict[str, object]]:
    """One row per rule and draw of prices: accuracy in percent and log loss, mean over budgets."""
    data, found = load(name), []
    y = np.asarray(data.y)
    train, _ = split_rows(data, seed, test_share=0.2)
    fit, held = train_test_split(train, test_size=0.3, stratify=y[train], random_state=seed)
    X, new, labels = data.X.iloc[fit], data.X.iloc[held[:MOST_HELD]], y[held[:MOST_HELD]]
    estimator = make_model(model, seed).fit(X, y[fit])
    for draw in range(N_DRAWS):
        seeds = [seed, data.n_features, *([draw] if draw else [])]  # the first draw is that of `askwise bench`
        selector = DynamicFeatureSelector(
            estimator,
            costs=np.random.default_rng(seeds).uniform(1, 10, data.n_features),
            groups=data.groups,
            epistemic=None,
            calibration=None,
            policy="greedy",
            random_state=seed,
            progress=False,
        ).fit(X, y[fit])
        for rule, policy in POLICIES.items():
            curve = selector.with_policy(policy).evaluate(new, labels).mean()
            row = {"table": name, "model": model, "seed": seed, "rule": rule}
            found.append({**row, "accuracy": 100 * curve["accuracy"], "log loss": curve["log_loss"]})
    return found


def differences(found: pd.DataFrame, by: str) -> pd.DataFrame:
    """Mean and standard error over fits of what each rule gains over the rule of the paper."""
    fits = found.groupby(["table", "model", "seed", "rule"]).mean(numeric_only=True).unstack("rule")
    columns = {}
    for measure in ("accuracy", "log loss"):
        gained = fits[measure].sub(fits[measure]["per price"], axis=0).drop(columns="per price")
        for rule in gained:
            groups = gained[rule].groupby(level=by)
            columns[f"{rule}: {measure}"] = groups.mean().map("{:+.3f}".format) + groups.sem().map(" +- {:.3f}".format)
    return pd.DataFrame(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.first, options.first + options.splits)
    rows = [row for t in options.tables for m in options.models for seed in seeds for row in measured(t, m, seed)]
    found = pd.DataFrame(rows)
    for by in ("model", "table"):
        print(differences(found, by).to_string())


if __name__ == "__main__":
    main()
