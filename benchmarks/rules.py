"""Rules on subsets: speed against estimating confidences anew, memory of the cache, search space, and accuracy.

python benchmarks/rules.py speed                            # ratios of one run, and the cache on Digits
python benchmarks/rules.py space [--data wine ...]          # share of features that `candidates` saves
python benchmarks/rules.py accuracy [--seeds 5] [--data wine heart cirrhosis yeast]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, make_classification
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.predict import RulePredictor
from askwise.predict.rules.conditions import RuleSet
from askwise.reference_models import ReferenceModel, train_reference_model
from askwise.table.subsets import sample

TABLES = ["wine", "heart", "cirrhosis", "yeast", "diabetes130"]
MODELS = ["tree", "subset-tree", "fuzzy-tree"]
N_NAIVE_PAIRS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "space", "accuracy"])
    parser.add_argument("--data", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.what == "speed":
        speed()
        digits()
    elif options.what == "space":
        space(options.data or TABLES, options.seeds)
    else:
        accuracy(options.data or TABLES[:-1], options.seeds)


def speed() -> None:
    """1,000 rows x 100 masks on a tree of 50 leaves."""
    X, y = make_classification(2000, 13, n_informative=8, n_classes=3, random_state=0)
    tree = DecisionTreeClassifier(max_leaf_nodes=50, random_state=0).fit(X[:1000], y[:1000])
    rows, masks = X[1000:], sample(100, 13, np.random.default_rng(0))
    predictor = RulePredictor(tree).fit(X[:1000], y[:1000])
    start = time.perf_counter()
    cold_answers = predictor.predict_grid(rows, masks)
    cold = time.perf_counter() - start
    warm = min(_seconds(lambda: predictor.predict_grid(rows, masks)) for _ in range(5))
    info = predictor.cache_info_
    rules, prior = predictor.rule_sets_[0], np.bincount(y[:1000], minlength=3) / 1000
    pairs = np.random.default_rng(1).integers([1000, 100], size=(N_NAIVE_PAIRS, 2))
    start = time.perf_counter()
    naive = [estimated_anew(rules, X[:1000], y[:1000], rows[r], masks[m], prior) for r, m in pairs]
    per_pair = (time.perf_counter() - start) / N_NAIVE_PAIRS
    assert np.allclose(naive, cold_answers[pairs[:, 1], pairs[:, 0]])
    start = time.perf_counter()
    by_mask = np.stack([estimated_once_per_mask(rules, X[:1000], y[:1000], rows, mask, prior) for mask in masks])
    per_mask = time.perf_counter() - start
    assert np.allclose(by_mask, cold_answers)
    print(
        f"1,000 rows x 100 masks, {tree.get_n_leaves()} leaves; {info['entries']:,} sub-rules, {info['bytes']:,} bytes"
    )
    print(f"  against confidences estimated for each answer ({N_NAIVE_PAIRS} answers timed): ", end="")
    print(f"{per_pair * 1e5 / warm:,.0f} x as fast warm, {per_pair * 1e5 / cold:,.0f} x cold")
    print("  against confidences estimated once per mask, rows vectorized: ", end="")
    print(f"{per_mask / warm:,.1f} x as fast warm, {per_mask / cold:,.1f} x cold")


def estimated_anew(
    rules: RuleSet, X: np.ndarray, y: np.ndarray, row: np.ndarray, mask: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """One answer of Appendix C without memory: every rule is reduced and counted again."""
    return estimated_once_per_mask(rules, X, y, row[None], mask, prior)[0]


def estimated_once_per_mask(
    rules: RuleSet, X: np.ndarray, y: np.ndarray, rows: np.ndarray, mask: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    mass = np.zeros((len(rows), len(prior)))
    for rule in rules.rules:
        left = {column: c for column, c in rule.conditions.items() if mask[column]}
        if not left:
            continue
        holds, fires = np.ones(len(X), dtype=bool), np.ones(len(rows), dtype=bool)
        for column, condition in left.items():
            holds &= condition.membership(X[:, column]) > 0
            fires &= condition.membership(rows[:, column]) > 0
        counts = np.bincount(y[holds], minlength=len(prior)).astype(float)
        if len(left) == len(rule.conditions):
            assert rule.value is not None
            counts = rule.value * max(counts.sum(), 1.0)
        mass += fires[:, None] * counts
    silent = mass.sum(axis=1) == 0
    mass[silent] = prior
    return mass / mass.sum(axis=1, keepdims=True)


def digits() -> None:
    X, y = load_digits(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    print(f"\nDigits, a tree without a depth limit: {tree.get_n_leaves()} leaves, depth {tree.get_depth()}")
    masks = sample(10 * len(X), 64, np.random.default_rng(0)).reshape(10, *X.shape)
    for bound in (64_000_000, 1_000_000):
        predictor = RulePredictor(tree, cache_bytes=bound).fit(X, y)
        for mask in masks:
            predictor.predict_proba(X, mask)
        info, most = predictor.cache_info_, predictor.rule_sets_[0].n_subrules
        print(
            f"  cache of at most {bound:,} bytes after {10 * len(X):,} random masks: {info['entries']:,} of "
            f"{most:,} possible sub-rules in {info['bytes']:,} bytes"
        )
        assert info["bytes"] <= bound


def space(tables: list[str], n_seeds: int) -> None:
    """Share of the unobserved features that can no longer matter, along greedy acquisition and on random masks."""
    found = []
    for name in tables:
        for model in [*MODELS, "forest"]:
            for seed in range(n_seeds):
                reference = train_reference_model(load(name), model, seed)
                predictor = RulePredictor(reference.estimator).fit(reference.X_train, reference.y_train)
                observed = reference.X_test.notna().to_numpy()
                mask = sample(*observed.shape, np.random.default_rng(seed)) & observed
                hidden = ~mask & observed
                saved = hidden & ~predictor.candidates(reference.X_test, mask)
                found.append({"data": name, "model": model, "saved": saved.sum() / hidden.sum()})
    table = pd.DataFrame(found).pivot_table(index="data", columns="model", values="saved", sort=False)
    print(f"Share of unobserved features that cannot matter any more, random masks, {n_seeds} seeds")
    print(table.round(3).to_string())


def accuracy(tables: list[str], n_seeds: int) -> None:
    """Greedy, static and random orders on rule predictors, budgets of 1 to 10 features."""
    found = []
    for name in tables:
        for seed in range(n_seeds):
            for model in MODELS:
                found += [
                    {"data": name, "seed": seed, "model": model, **row}
                    for row in accuracy_rows(train_reference_model(load(name), model, seed, limited=False), seed)
                ]
            print(f"{name}, seed {seed} done", flush=True)
    table = pd.DataFrame(found)
    print(f"\nAccuracy averaged over budgets of 1 to 10 features, {n_seeds} seeds")
    means = table.groupby(["data", "model", "policy", "seed"], sort=False)["accuracy"].mean()
    by_policy = means.groupby(["data", "model", "policy"], sort=False).agg(["mean", "std"]).unstack("policy")
    print(by_policy.round(4).to_string())
    print("\nMean over tables")
    print(table.pivot_table(index="model", columns="policy", values="accuracy", sort=False).round(4).to_string())
    print("\nGreedy over random, by budget, mean over tables and seeds (points)")
    by_budget = table.pivot_table(index=["model", "budget"], columns="policy", values="accuracy", sort=False)
    gain = 100 * (by_budget["greedy"] - by_budget["random"])
    print(gain.unstack("budget").round(2).to_string())


def accuracy_rows(reference: ReferenceModel, seed: int) -> list[dict[str, Any]]:
    selector = DynamicFeatureSelector(reference.estimator, adaptation="rules", random_state=seed)
    selector.fit(reference.X_train, reference.y_train)
    rows = []
    for policy in ("random", "static", "greedy"):
        measured = selector.with_policy(policy).evaluate(reference.X_test, reference.y_test)
        for budget, found in measured[["budget", "accuracy"]].to_numpy():
            rows.append({"policy": policy, "budget": budget, "accuracy": found})
    return rows


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
