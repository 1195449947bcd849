"""Look-ahead where one feature says which others matter, and on tables where features add up.

    python benchmarks/lookahead.py                      # 5 seeds, about 10 minutes
    python benchmarks/lookahead.py --seeds 1 --tables   # switch tasks only

First part: `make_switch` with 30 features at price 1, the switch included; accuracy of new rows at 4 features above
chance, as a share of the optimum's. With 1,000 new rows a share has a standard error of 0.014, so it can exceed 1.
Second part: accuracy at 1 to 5 features on validation rows of public tables, less that of the greedy policy.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector
from askwise.datasets import load, make_switch
from askwise.reference_models import make_model

MODELS = ("mlp", "forest")
SWITCHES = {
    "3 blocks of 3, 20 noise": (3, 3, 20),
    "3 blocks of 9, 2 noise": (3, 9, 2),
    "5 blocks of 5, 4 noise": (5, 5, 4),
}
TABLES = ("wine", "heart", "breast_cancer")
N_ROWS, N_NEW, N_FEATURES = 2000, 1000, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"switch, {N_FEATURES} of 30 features: share of the optimum's accuracy above chance, mean and worst seed")
    for name, shape in SWITCHES.items():
        for model in MODELS:
            runs = [switch_run(shape, model, seed) for seed in range(options.seeds)]
            print(f"  {name:24} {model:7}{described(runs)}", flush=True)
    if options.tables:
        print("tables: points of accuracy over the greedy policy at 1 to 5 features, validation rows")
    for name in options.tables:
        for model in MODELS:
            runs = [table_run(name, model, seed) for seed in range(options.seeds)]
            print(f"  {name:24} {model:7}{gained(runs)}", flush=True)


def switch_run(shape: tuple[int, int, int], model: str, seed: int) -> dict[str, float]:
    """Shares of the optimum by policy; `model` is what the wrapped model has with all features."""
    made = make_switch(N_ROWS, *shape, random_state=seed)
    X, y = made.sample(N_NEW, random_state=1000 + seed)
    best = made.best_accuracy(N_FEATURES) - 0.5
    wrapped = make_model(model, seed).fit(made.X, made.y)
    started = time.perf_counter()
    selector = fitted(wrapped, made.X, made.y, seed)
    found = {"seconds of fit": time.perf_counter() - started}
    for policy in ("auto", "greedy"):
        owner = selector if policy == "auto" else selector.with_policy(policy)
        right = owner.acquire(X, budget=N_FEATURES).predict() == y
        found[policy] = (right.mean() - 0.5) / best
    return {**found, "model": (np.mean(wrapped.predict(X) == y) - 0.5) / best}


def table_run(name: str, model: str, seed: int) -> dict[str, float]:
    """Mean accuracy at 1 to 5 features by policy on rows that neither model nor test uses; 1 if auto looks ahead."""
    X, y = table(name)
    train, _ = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    fit, held = train_test_split(train, test_size=0.25, stratify=y[train], random_state=seed)
    selector = fitted(make_model(model, seed).fit(X.iloc[fit], y[fit]), X.iloc[fit], y[fit], seed)
    found = {"pays": float(selector.policy_.lookahead_["pays"])}
    for policy in ("auto", "lookahead", "greedy"):
        owner = selector if policy == "auto" else selector.with_policy(policy)
        found[policy] = float(owner.evaluate(X.iloc[held], y[held], budgets=[1, 2, 3, 4, 5])["accuracy"].mean())
    return found


def fitted(model: Any, X: Any, y: Any, seed: int) -> Any:
    quick: dict[str, Any] = {"epistemic": None, "calibration": None, "progress": False}
    return DynamicFeatureSelector(model, random_state=seed, **quick).fit(X, y)


def table(name: str) -> tuple[Any, np.ndarray]:
    if name in ("wine", "breast_cancer"):
        X, y = (load_wine if name == "wine" else load_breast_cancer)(return_X_y=True, as_frame=True)
        return X, np.asarray(y)
    data = load(name)
    return data.X, np.asarray(data.y)


def described(runs: list[dict[str, float]]) -> str:
    mean = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
    worst = min(run["auto"] for run in runs)
    return (
        f"auto {mean['auto']:.3f} (worst {worst:.3f})  greedy {mean['greedy']:.3f}  "
        f"model with everything {mean['model']:.3f}  fit {mean['seconds of fit']:.1f} s"
    )


def gained(runs: list[dict[str, float]]) -> str:
    parts = []
    for policy in ("auto", "lookahead"):
        lead = 100 * np.array([run[policy] - run["greedy"] for run in runs])
        parts.append(f"{policy} {lead.mean():+.2f} +- {lead.std() / np.sqrt(len(lead)):.2f}")
    return f"{'  '.join(parts)}  looks ahead in {sum(run['pays'] for run in runs):.0f} of {len(runs)}"


if __name__ == "__main__":
    main()
