"""Whether another version of askwise gives the same numbers: predictions, choices and uncertainties on fixed seeds.

    python benchmarks/unchanged.py write old.npz      # with the old version on PYTHONPATH
    python benchmarks/unchanged.py compare old.npz    # with the new one; prints the largest differences

Tables of numbers, with prices, with missing cells; a forest, networks, boosting; rules; a torch module; small images;
five seeds; stops calibrated on the folds and on new rows. Only names that both versions have are used. Every array is
compared bit by bit; what differs is printed with the largest difference and the share of rows beyond rounding.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.datasets import load

ROUNDING = 1e-12
N_TEST = 40
SEEDS = range(5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    before = np.load(options.file) if options.what == "compare" else {}
    found: dict[str, np.ndarray] = {}
    for case, selector, X in cases():
        for name, new in numbers(selector, X).items():
            found[f"{case}/{name}"] = new
            if options.what == "compare":
                print(f"{case + '/' + name:50} {difference(before[f'{case}/{name}'], new)}", flush=True)
    if options.what == "write":
        np.savez(options.file, allow_pickle=False, **found)
        return
    identical = sum(np.array_equal(before[name], new, equal_nan=True) for name, new in found.items())
    print(f"{identical} of {len(found)} arrays are identical bit by bit")


def cases() -> Iterator[tuple[str, Any, Any]]:
    """(name, fitted selector, held-out rows)."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0, stratify=y)
    network = make_pipeline(StandardScaler(), MLPClassifier(random_state=0, max_iter=500)).fit(X_train, y_train)
    for policy in ("greedy", "static", "random"):
        yield (
            f"wine, MLP, {policy}",
            DynamicFeatureSelector(network, policy=policy, random_state=0).fit(X_train, y_train),
            X_test[:N_TEST],
        )
    forest = RandomForestClassifier(50, random_state=0).fit(X_train, y_train)
    for adaptation in ("conditional", "mean", "rules"):
        fitted = DynamicFeatureSelector(forest, adaptation=adaptation, random_state=0).fit(X_train, y_train)
        yield f"wine, forest, {adaptation}", fitted, X_test[:N_TEST]
    for seed in SEEDS:
        fitted = DynamicFeatureSelector(forest, random_state=seed).fit(X_train, y_train)
        yield f"wine, forest, seed {seed}", fitted, X_test[:N_TEST]
    for name, seed in [("heart", 0), ("heart", 1), ("cirrhosis", 0)]:
        data = load(name)
        y = np.unique(data.y, return_inverse=True)[1]  # XGBoost takes positions only
        X_train, X_test, y_train, _ = train_test_split(data.X, y, random_state=0, stratify=y)
        numeric = make_pipeline(SimpleImputer(), StandardScaler())
        columns = make_column_transformer(
            (numeric, make_column_selector(dtype_include="number")),
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        )
        for classifier in (MLPClassifier(random_state=0, max_iter=500), XGBClassifier(n_jobs=1, random_state=0)):
            model = make_pipeline(columns, classifier).fit(X_train, y_train)
            selector = DynamicFeatureSelector(model, costs=data.prices, groups=data.groups, random_state=seed)
            kind = type(classifier).__name__
            yield f"{name}, {kind}, seed {seed}", selector.fit(X_train, y_train), X_test[:N_TEST]
    yield from image_cases()
    yield from torch_cases()


def image_cases() -> Iterator[tuple[str, Any, Any]]:
    """A small convolutional network on 8 x 8 digits, four patches."""
    import torch

    from askwise.vision import PatchGrid

    X, y = load_digits(return_X_y=True)
    X = (X / 16).reshape(-1, 1, 8, 8)[:400]
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(0.2), torch.nn.Linear(288, 10)
    )
    train(net, X[:300], y[:300])
    fitted = DynamicFeatureSelector(net, groups=PatchGrid(2, 2), random_state=0).fit(X[:300], y[:300])
    yield "digits, torch, patches", fitted, X[300:320]


def train(net: Any, X: np.ndarray, y: np.ndarray) -> None:
    """A hundred full steps of Adam."""
    import torch

    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        loss: Any = torch.nn.functional.cross_entropy(net(torch.tensor(X).float()), torch.tensor(y))
        loss.backward()
        optimizer.step()
    net.eval()


def torch_cases() -> Iterator[tuple[str, Any, Any]]:
    import torch

    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0, stratify=y)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 3))
    train(net, X_train, y_train)
    kinds: list[Any] = [("conditional", "dropout"), ("low-rank", "distance"), ("last-layer", "distance")]
    for adaptation, epistemic in kinds:
        selector = DynamicFeatureSelector(net, adaptation=adaptation, epistemic=epistemic, random_state=0)
        yield f"wine, torch, {adaptation}", selector.fit(X_train, y_train), X_test[:N_TEST]


def numbers(selector: Any, X: Any) -> dict[str, np.ndarray]:
    budgets = [share * selector.prices_.total() for share in (0.1, 0.2, 0.3, 0.5)]
    run = selector.acquire(X, budget=budgets[-1])
    found = {"order": run.order.astype(float), "proba": run.proba, "full": selector.predict_proba(X)}
    for name in ("total", "aleatoric", "mutual_information", "epistemic"):
        found[name] = getattr(run.uncertainty, name)
    evaluated = selector.evaluate(X, selector.predict(X), budgets=budgets)
    found |= {"spent": evaluated["spent"].to_numpy(), "log loss": evaluated["log_loss"].to_numpy()}
    return {**found, **stopped(selector, X)}


def stopped(selector: Any, X: Any) -> dict[str, np.ndarray]:
    """Runs under a stop that is calibrated on the folds of the training rows, where the model can be fitted again."""
    try:
        stop = selector.calibrate_stop(agreement=0.8, confidence=0.8)
    except InvalidInput:
        return {}
    run = selector.acquire(X, stop=stop)
    return {"stop: order": run.order.astype(float), "stop: proba": run.proba[:, -1]}


def difference(before: np.ndarray, after: np.ndarray) -> str:
    if before.shape != after.shape:
        return f"shape {before.shape} -> {after.shape}"
    if np.array_equal(before, after, equal_nan=True):
        return "identical"
    off = np.nan_to_num(np.abs(before - after), posinf=np.inf)
    unlike = (off > ROUNDING) | (np.isnan(before) != np.isnan(after))
    if not unlike.any():
        return f"same up to rounding (largest difference {off.max(initial=0.0):.1e})"
    rows = unlike.reshape(len(unlike), -1).any(axis=1)
    return f"differs in {rows.mean():.0%} of rows, at most by {off.max():.3g}"


if __name__ == "__main__":
    main()
