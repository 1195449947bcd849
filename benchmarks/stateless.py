"""The stateless call: does it equal a session, and how long does it take, as a multiple of the model's own time?

    python benchmarks/stateless.py [--cases 200]

A forest of 100 trees on heart with published prices and a calibrated stop. Each drawn case has some values known, some
acquired, some unavailable; half have a budget. Choices and words must be identical, numbers equal up to rounding. Times
are those of `selector.next` and of `POST /api/next` (through the application, in this process), with and without the
likely answers, over the median time in which the forest predicts one complete row, measured in turn with them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from starlette.testclient import TestClient

import askwise
from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.web.app import create_app
from askwise.web.database import migrate
from askwise.web.settings import Settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    n_cases = parser.parse_args().cases
    warnings.simplefilter("ignore")
    heart = load("heart")
    X, X_new, y, _ = train_test_split(heart.X, heart.y, test_size=0.5, random_state=0)
    model = RandomForestClassifier(random_state=0).fit(X, y)
    options: dict[str, Any] = {"epistemic": None, "random_state": 0, "progress": False}
    selector = DynamicFeatureSelector(model, costs=heart.prices, **options).fit(X, y)
    selector.calibrate_stop(X_new, agreement=0.9)
    rng = np.random.default_rng(0)
    cases = [drawn(selector, X_new.iloc[rng.integers(len(X_new))], rng) for _ in range(n_cases)]
    equal = sum(alike(call(selector, case), session(selector, case)) for case in cases)
    print(f"equal to a session: {equal} of {n_cases}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        selector.save(Path(place) / "selector")
        settings = Settings(f"{place}/selector", f"sqlite:///{place}/cases.sqlite3", rate=0)
        migrate(settings.url)
        app = create_app(askwise.load(settings.folder), settings)
        with TestClient(app, base_url="http://localhost") as client:
            same = sum(alike(call(selector, case), over_http(client, case)) for case in cases)
            print(f"over HTTP equal to Python: {same} of {n_cases}", flush=True)
            report(selector, client, model, X_new, cases)


def report(
    selector: DynamicFeatureSelector, client: TestClient, model: Any, rows: pd.DataFrame, cases: list[dict[str, Any]]
) -> None:
    predict: list[float] = []
    taken: dict[tuple[str, bool], list[float]] = {}
    for k, case in enumerate(cases):
        predict.append(seconds(model.predict_proba, rows.iloc[[k % len(rows)]]))
        for outcomes in (True, False):
            taken.setdefault(("selector.next", outcomes), []).append(seconds(call, selector, case, outcomes))
            taken.setdefault(("POST /api/next", outcomes), []).append(seconds(over_http, client, case, outcomes))
    unit = float(np.median(predict))
    for (name, outcomes), times in taken.items():
        half, p95 = np.quantile(np.array(times) / unit, [0.5, 0.95])
        print(f"{name:15} {'with' if outcomes else 'without':7} outcomes: median {half:.2f}, p95 {p95:.2f} predictions")


def seconds(act: Callable[..., Any], *given: Any) -> float:
    """CPU time, so that it does not matter what else the machine does."""
    start = time.process_time()
    act(*given)
    return time.process_time() - start


def drawn(selector: DynamicFeatureSelector, row: pd.Series, rng: np.random.Generator) -> dict[str, Any]:
    names = [str(name) for name in rng.permutation(selector.features_)]
    first, second, third = np.sort(rng.integers(0, len(names), size=3))
    given = {name: float(row[name]) for name in names}
    return {
        "known": {name: given[name] for name in names[: first // 2]},
        "answers": {name: given[name] for name in names[first // 2 : second]},
        "unavailable": names[second:third][:2],
        "budget": 1000.0 if rng.random() < 0.5 else None,
    }


def how(case: dict[str, Any]) -> dict[str, Any]:
    return {"budget": case["budget"], "stop": None if case["budget"] else "calibrated"}


def call(selector: DynamicFeatureSelector, case: dict[str, Any], outcomes: bool = True) -> Any:
    gone = case["unavailable"]
    return selector.next(case["known"], case["answers"], unavailable=gone, outcomes=outcomes, **how(case))


def session(selector: DynamicFeatureSelector, case: dict[str, Any]) -> Any:
    found = selector.start(case["known"], **how(case))
    for name, value in case["answers"].items():
        found.answer(name, value)
    for name in case["unavailable"]:
        found.unavailable(name)
    return found.next()


def over_http(client: TestClient, case: dict[str, Any], outcomes: bool = True) -> Any:
    response = client.post("/api/next", json={**case, "outcomes": outcomes, "confirmed": True})
    response.raise_for_status()
    found = response.json()
    del found["model"]
    return found


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return bool(np.isclose(one, other, rtol=1e-9, atol=1e-12))
    return bool(one == other)


if __name__ == "__main__":
    main()
