"""Whole cases by the networks of a distilled policy, beside the selector that they learned from.

    python benchmarks/quick.py [--splits 3] [--first 0] [--tables heart,wine] [--models forest,mlp]

For each table and model: what a case costs in time, as a multiple of one `predict_proba` of a logistic regression on
one row, measured in turn with it in this run; how often the selector itself is asked; and on rows that neither has
seen how often the decision is that of the wrapped model with everything known, the accuracy, and the price, for quick
cases and for the selector, each with a stop of its own that promises 95 %. Then rows per second of whole tables.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from askwise import DynamicFeatureSelector
from askwise.datasets import load

AGREEMENT = 0.95
TIMED_CASES = 30
REPEATS = 3
MODELS: dict[str, Callable[[int], Any]] = {
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "mlp": lambda seed: MLPClassifier((64,), max_iter=500, random_state=seed),
}


def pipeline(model: Any) -> Any:
    """The model behind imputation, scaling and one-hot encoding."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return make_pipeline(make_column_transformer(numbers, (words, make_column_selector(dtype_exclude="number"))), model)


def seconds(run: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def fastest(run: Callable[[], Any], often: int) -> float:
    """CPU seconds of a call, of the fastest of several bundles of calls."""
    return min(seconds(lambda: [run() for _ in range(often)]) for _ in range(REPEATS)) / often


def case_of(start: Callable[[], Any], row: dict[str, Any]) -> Any:
    """One case from its start to its probabilities."""
    case = start()
    while (feature := case.suggest()) is not None:
        case.answer(feature, row[feature])
    return case, case.predict_proba()


def measured(name: str, kind: str, seed: int) -> dict[str, float]:
    """One table, model and split: half to fit, a quarter to calibrate the stops, a quarter to look at."""
    data = load(name)
    X, y = data.X, np.asarray(data.y)
    fit, rest = train_test_split(np.arange(len(X)), test_size=0.5, random_state=seed, stratify=y)
    cal, new = train_test_split(rest, test_size=0.5, random_state=seed, stratify=y[rest])
    model = pipeline(MODELS[kind](seed)).fit(X.iloc[fit], y[fit])
    options: dict[str, Any] = {"epistemic": None, "random_state": seed, "progress": False, "costs": data.prices}
    spent = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selectors = {}
        for policy in ("auto", "distilled"):
            selectors[policy] = DynamicFeatureSelector(model, policy=policy, groups=data.groups, **options)
            spent[policy] = seconds(lambda policy=policy: selectors[policy].fit(X.iloc[fit], y[fit]))  # type: ignore[misc]
        auto, distilled = selectors["auto"], selectors["distilled"]
        auto.calibrate_stop(X.iloc[cal], agreement=AGREEMENT, per_class=False)
        distilled.calibrate_stop(X.iloc[cal], agreement=AGREEMENT, per_class=False, quick=True)
        quick, seen, full = distilled.quick(), X.iloc[new], model.predict(X.iloc[new])
        run, found = auto.acquire(seen, stop="calibrated"), quick.acquire(seen)
        rates = {
            "rows/s auto": len(new) / seconds(lambda: auto.acquire(seen, stop="calibrated")),
            "rows/s distilled": len(new)
            / seconds(lambda: distilled.acquire(seen, budget=run.costs.sum(axis=1).mean())),
            "rows/s quick": len(new) / seconds(lambda: quick.acquire(seen)),
        }
    everything = float(auto.prices_.total())
    regression = LogisticRegression(max_iter=5000)
    numbers = np.random.default_rng(seed).normal(size=(len(fit), len(auto.features_)))
    regression.fit(numbers, y[fit])
    one, ratios, asked = numbers[:1], [], []
    for row in answers(auto, seen)[:TIMED_CASES]:
        case, _ = case_of(quick.start, row)
        unit = fastest(lambda: regression.predict_proba(one), 20)
        ratios.append(fastest(lambda row=row: case_of(quick.start, row), 3) / unit)  # type: ignore[misc]
        asked.append(sum(case.asked) > 0)
    alone = [ratio for ratio, other in zip(ratios, asked, strict=True) if not other]
    learned = distilled.choices_["policy"]["distilled"]["belief"]
    return {
        "case alone": statistics.median(alone) if alone else np.nan,
        "case mean": statistics.mean(ratios),
        "asked": float((found["asked_policy"] + found["asked_belief"] > 0).mean()),
        "last word": float(found["asked_belief"].mean()),
        "kept": float((found["prediction"].to_numpy() == full).mean()),
        "kept auto": float((run.predict() == full).mean()),
        "right": float((found["prediction"].to_numpy() == y[new]).mean()),
        "right auto": float((run.predict() == y[new]).mean()),
        "price": float(found["spent"].mean()) / everything,
        "price auto": float(run.costs.sum(axis=1).mean()) / everything,
        "regret": learned["regret"],
        "same": learned["same_decision"],
        "fit": spent["distilled"] / spent["auto"],
        **rates,
    }


def answers(selector: Any, X: pd.DataFrame) -> list[dict[str, Any]]:
    """Feature -> value of each complete row, a dict of columns for a group."""
    columns = [[X.columns[j] for j in at] for at in selector.schema_.feature_columns]
    rows = []
    for _, row in X.dropna().iterrows():
        cells = {
            name: row[part[0]] if len(part) == 1 else {label: row[label] for label in part}
            for name, part in zip(selector.features_, columns, strict=True)
        }
        rows.append(cells)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tables", default="heart,breast_cancer,yeast")
    parser.add_argument("--models", default="forest,mlp")
    given = parser.parse_args()
    found = []
    for table in given.tables.split(","):
        for model in given.models.split(","):
            for seed in range(given.first, given.first + given.splits):
                found.append({"table": table, "model": model, **measured(table, model, seed)})
                print(
                    {name: value if isinstance(value, str) else round(value, 3) for name, value in found[-1].items()},
                    flush=True,
                )
    means = pd.DataFrame(found).groupby(["table", "model"]).mean()
    print(means.round(3).to_string())
    print(means.mean().round(3).to_string())


if __name__ == "__main__":
    main()
