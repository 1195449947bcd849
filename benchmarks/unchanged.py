"""Whether another version of askwise gives the same numbers: predictions, choices and uncertainties on fixed seeds.

    python benchmarks/unchanged.py write old.npz      # with the old version on PYTHONPATH
    python benchmarks/unchanged.py compare old.npz    # with the new one; prints the largest differences

Only names that both versions have are used. Differences beyond rounding are printed with the share of rows affected.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.evaluation import default_budgets

ROUNDING = 1e-6
N_TEST = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {f"{case}/{name}": values for case, selector, X in cases() for name, values in numbers(selector, X).items()}
    if options.what == "write":
        np.savez(options.file, allow_pickle=False, **found)
        return
    before = np.load(options.file)
    for name, new in found.items():
        print(f"{name:45} {difference(before[name], new)}")


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
    for name in ("heart", "cirrhosis"):
        data = load(name)
        X_train, X_test, y_train, _ = train_test_split(data.X, data.y, random_state=0, stratify=data.y)
        numeric = make_pipeline(SimpleImputer(), StandardScaler())
        columns = make_column_transformer(
            (numeric, make_column_selector(dtype_include="number")),
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        )
        model = make_pipeline(columns, MLPClassifier(random_state=0, max_iter=500)).fit(X_train, y_train)
        selector = DynamicFeatureSelector(model, costs=data.prices, groups=data.groups, random_state=0)
        yield f"{name}, MLP", selector.fit(X_train, y_train), X_test[:N_TEST]
    yield from torch_cases()


def torch_cases() -> Iterator[tuple[str, Any, Any]]:
    import torch

    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0, stratify=y)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        loss: Any = torch.nn.functional.cross_entropy(net(torch.tensor(X_train).float()), torch.tensor(y_train))
        loss.backward()
        optimizer.step()
    kinds: list[Any] = [("conditional", "dropout"), ("low-rank", "distance"), ("last-layer", "distance")]
    for adaptation, epistemic in kinds:
        selector = DynamicFeatureSelector(net, adaptation=adaptation, epistemic=epistemic, random_state=0)
        yield f"wine, torch, {adaptation}", selector.fit(X_train, y_train), X_test[:N_TEST]


def numbers(selector: Any, X: Any) -> dict[str, np.ndarray]:
    run = selector.acquire(X, budget=default_budgets(selector.prices_)[-1])
    found = {"order": run.order.astype(float), "proba": run.proba, "full": selector.predict_proba(X)}
    for name in ("total", "aleatoric", "mutual_information", "epistemic"):
        found[name] = getattr(run.uncertainty, name)
    evaluated = selector.evaluate(X, selector.predict(X), budgets=default_budgets(selector.prices_)[:3])
    return {**found, "spent": evaluated["spent"].to_numpy()}


def difference(before: np.ndarray, after: np.ndarray) -> str:
    if before.shape != after.shape:
        return f"shape {before.shape} -> {after.shape}"
    off = np.nan_to_num(np.abs(before - after), posinf=np.inf)
    unlike = (off > ROUNDING) | (np.isnan(before) != np.isnan(after))
    if not unlike.any():
        return f"same (largest difference {off.max(initial=0.0):.1e})"
    rows = unlike.reshape(len(unlike), -1).any(axis=1)
    return f"differs in {rows.mean():.0%} of rows, at most by {off.max():.3g}"


if __name__ == "__main__":
    main()
