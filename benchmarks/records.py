"""Evaluation on records with missing tests: how far are the four estimates from the truth, and do intervals hold it?

A synthetic population, a model and a policy with a stop, all fixed; the truth is what the policy does on a large pool
in which nothing is missing. Each repeat draws records from the pool and deletes tests: completely at random, at random
given values that every record holds (tests are done for the clear cases), or by a severity that no record holds.

    python benchmarks/records.py --repeats 200 --rows 500
"""

from __future__ import annotations

import argparse
import itertools
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector
from askwise.predict import ConditionalPredictor
from askwise.records import MISSING
from askwise.stopping import Confidence

NAMES = ["age", "pressure", "enzyme", "scan", "culture", "biopsy"]
PRICES = {"age": 0, "pressure": 1, "enzyme": 2, "scan": 4, "culture": 3, "biopsy": 6}
ALWAYS = 2
"""The first features are in every record."""
MEASURES = ("accuracy", "spent", "kept")
MECHANISMS = ("completely at random", "given recorded values", "by an unrecorded cause")


def population(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Cases, their classes, and a severity that no record holds."""
    severity = rng.normal(size=n)
    load = np.array([0.5, 0.5, 0.6, 0.7, 0.5, 0.7])
    X = severity[:, None] * load + rng.normal(size=(n, len(NAMES))) * np.sqrt(1 - load**2)
    logit = X @ np.array([0.8, 0.6, 1.0, 1.8, 0.8, 2.2])
    return pd.DataFrame(X, columns=NAMES), (rng.random(n) < expit(1.5 * logit)).astype(int), severity


def recorded(
    X: pd.DataFrame, severity: np.ndarray, mechanism: str, missing: float, rng: np.random.Generator
) -> np.ndarray:
    """(n, M) which features the records hold; of the tests the share `missing` is not there."""
    clear = {
        "completely at random": np.zeros(len(X)),
        "given recorded values": 1.5 * np.abs(X["age"].to_numpy() + X["pressure"].to_numpy()),
        "by an unrecorded cause": 1.5 * np.abs(severity),
    }[mechanism]
    level = brentq(lambda level: expit(clear + level).mean() - (1 - missing), -20, 20)
    there = rng.random(X.shape) < expit(clear + level)[:, None]
    there[:, :ALWAYS] = True
    return there


def fitted(seed: int) -> DynamicFeatureSelector:
    X, y, _ = population(1500, np.random.default_rng(seed))
    model = LogisticRegression().fit(X, y)
    predictor = ConditionalPredictor(model, n_neighbors=30, max_rows=300, random_state=seed)
    selector = DynamicFeatureSelector(
        model,
        costs=PRICES,
        adaptation=predictor,
        epistemic=None,
        policy="greedy",
        calibration=None,
        random_state=seed,
        progress=False,
    )
    return selector.fit(X, y)


def measured(
    n_repeats: int, n_rows: int, n_pool: int, seed: int, mechanisms: list[str], shares: list[float], draws: int
) -> pd.DataFrame:
    selector, stop = fitted(seed), Confidence(0.9)
    X, y, severity = population(n_pool, np.random.default_rng(seed + 1))
    whole = selector.evaluate(X, y, missing="blocked", stop=stop)
    truth = {name: whole[name].iloc[0] for name in MEASURES}
    print("truth:", {name: round(float(value), 4) for name, value in truth.items()}, flush=True)
    found = []
    for mechanism, share in itertools.product(mechanisms, shares):
        for repeat in range(n_repeats):
            rng = np.random.default_rng([seed, repeat])
            at = rng.choice(n_pool, n_rows, replace=False)
            records = X.iloc[at].reset_index(drop=True)
            records = records.where(recorded(records, severity[at], mechanism, share, rng))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table = selector.evaluate(records, y[at], missing="all", stop=stop, draws=draws)
            for row in table.to_dict("records"):
                for name in MEASURES:
                    error = row[name] - truth[name]
                    holds = row[f"{name}_low"] <= truth[name] <= row[f"{name}_high"]
                    entry = {"mechanism": mechanism, "missing": share, "way": row["missing"], "measure": name}
                    found.append({**entry, "error": error, "holds": holds, "trusted": row["trusted"]})
    return pd.DataFrame(found)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Bias, spread of the errors and coverage, shares in points of 100."""
    rows = rows.assign(error=rows["error"] * np.where(rows["measure"] == "spent", 1, 100))
    by = rows.groupby(["mechanism", "missing", "measure", "way"], sort=False)
    table = by["error"].agg(bias="mean", spread="std")
    table = table.assign(coverage=100 * by["holds"].mean(), trusted=100 * by["trusted"].mean(), repeats=by.size())
    return table.reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--pool", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.6])
    given = parser.parse_args()
    rows = measured(given.repeats, given.rows, given.pool, given.seed, given.mechanisms, given.shares, given.draws)
    table = summary(rows)
    for name in ("bias", "spread", "coverage"):
        wide = table.pivot(index=["mechanism", "missing", "measure"], columns="way", values=name)[list(MISSING)]
        print(f"\n{name} ({'points of 100; price in its unit' if name != 'coverage' else 'of the 90 % interval, %'})")
        print(wide.round(2).to_string(), flush=True)


if __name__ == "__main__":
    main()
