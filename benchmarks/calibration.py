"""Is p(y | x_S) calibrated? ECE, log loss and accuracy along the default policy, before and after calibration.

Frozen MLP and forest on five tables, 1 to 10 features, five splits; the test rows of all budgets and splits are put
together before they are binned. On few rows even a calibrated model shows an error: the bound is the 90 % quantile of
the ECE of labels drawn from the calibrated probabilities themselves. One uniform number per row of the table decides
its label in all states and splits, which share a label in truth as well. No choice is made on test rows.

    python benchmarks/calibration.py --splits 5
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.evaluation import default_budgets, final_states
from askwise.metrics import expected_calibration_error
from askwise.predict.base import class_positions
from askwise.reference_models import make_model

TABLES = ("wine", "heart", "cirrhosis", "yeast", "breast_cancer")
MODELS = ("mlp", "forest")
ALLOWED_ECE = 0.03
N_DRAWS = 200


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns as features of their own, and the labels."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        return X, np.asarray(y)
    data = load(name)
    return data.X, np.asarray(data.y)


class Run(NamedTuple):
    """Predictions (B, n, C) before and after calibration by number of features 1..B; labels and rows (n,)."""

    before: np.ndarray
    after: np.ndarray
    labels: np.ndarray
    rows: np.ndarray


def run(name: str, model: str, seed: int, most: int) -> Run:
    """One split: train the model, wrap it, and predict the test rows under every budget."""
    X, y = table(name)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    test = test[:most]
    estimator = make_model(model, seed).fit(X.iloc[train], y[train])
    selector = DynamicFeatureSelector(estimator, random_state=seed, progress=False).fit(X.iloc[train], y[train])
    budgets = default_budgets(selector.prices_)
    ends = final_states(selector, X.iloc[test], budgets)
    rows = selector.schema_.encode(X.iloc[test])
    available = selector.schema_.any_column(rows.observed)
    before = []
    for end in ends:
        # The policy reads completions, which are not calibrated: without calibration it visits the same states. Where
        # nothing more is available the wrapped model answers itself, calibrated or not.
        proba = selector.predictor_.proba(rows.masked(selector.schema_.expand(end.mask)))
        everything = (end.mask | ~available).all(axis=1)
        before.append(np.where(everything[:, None], end.proba, proba))
    after = np.stack([end.proba for end in ends])
    return Run(np.stack(before), after, class_positions(selector.classes_, y[test]), test)


def ece_of_its_own_labels(runs: list[Run], rng: np.random.Generator) -> float:
    """The 90 % quantile of the ECE where the labels are drawn from the calibrated probabilities."""
    proba, found = pooled([part.after for part in runs]), []
    rows = np.concatenate([np.tile(part.rows, len(part.after)) for part in runs])
    for _ in range(N_DRAWS):
        level = rng.random(rows.max() + 1)[rows]
        labels = (proba.cumsum(axis=1) < level[:, None]).sum(axis=1).clip(max=proba.shape[1] - 1)
        found.append(expected_calibration_error(labels, proba))
    return float(np.quantile(found, 0.9))


def pooled(parts: list[np.ndarray]) -> np.ndarray:
    """(B, n, C) of each split -> (N, C), rows that sum to one in double precision."""
    proba = np.concatenate([part.reshape(-1, part.shape[2]) for part in parts])
    return proba / proba.sum(axis=1, keepdims=True)


def measured(name: str, model: str, seeds: range, most: int) -> dict[str, Any]:
    """The measures of one table and model, all budgets and splits together."""
    runs = [run(name, model, seed, most) for seed in seeds]
    labels = np.concatenate([np.tile(part.labels, len(part.after)) for part in runs])
    row: dict[str, Any] = {"table": name, "model": model}
    for stage, parts in (("before", [part.before for part in runs]), ("after", [part.after for part in runs])):
        proba = pooled(parts)
        row[f"ece {stage}"] = float(expected_calibration_error(labels, proba))
        row[f"log loss {stage}"] = float(log_loss(labels, proba, labels=np.arange(proba.shape[1])))
        row[f"accuracy {stage}"] = float((proba.argmax(axis=1) == labels).mean())
    bound = ece_of_its_own_labels(runs, np.random.default_rng(0))
    calibrated = row["ece after"] <= max(ALLOWED_ECE, bound)
    return {**row, "by chance": bound, "holds": calibrated and row["log loss after"] < row["log loss before"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--most", type=int, default=300, help="test rows per split")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    seeds = range(options.first, options.first + options.splits)
    for name in options.tables:
        for model in options.models:
            rows.append(measured(name, model, seeds, options.most))
            print(pd.DataFrame(rows[-1:]).round(4).to_string(index=False, header=len(rows) == 1), flush=True)
    found = pd.DataFrame(rows)
    gained = (found["accuracy after"] - found["accuracy before"]).mean()
    lower = (found["log loss after"] < found["log loss before"]).sum()
    print(
        f"\nECE and log loss as required on {found['holds'].sum()} of {len(found)}; log loss lower on {lower}; ", end=""
    )
    print(f"accuracy {100 * gained:+.2f} points on average.")


if __name__ == "__main__":
    main()
