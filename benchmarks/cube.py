"""CUBE and CUBE-NM beside GDFS, DIME and AACO: accuracy at given numbers of features, and who chooses how well.

    python benchmarks/cube.py                            # both, 1,000 and 5,000 rows, 3 models, 3 seeds: hours
    python benchmarks/cube.py --quick                    # one seed, 1,000 rows, a forest: some minutes
    python benchmarks/cube.py --data cube_nm --rivals    # no rivals

`default` is the selector with `policy="auto"`, `greedy` the same without looking ahead; `best choices` are those of a
policy that knows the distribution (see `CubeDataset.best_accuracy`), with our predictor, and "GDFS choices" those of
GDFS with our predictor: the ceiling of the choice, and the rival's choice without its network's answers. The last
columns are the share of the cases in which the context is among the first two purchases, and the seconds of CPU of a
fit. Seeds from 100 on are for the final figures; others are for choosing.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

from askwise import DynamicFeatureSelector
from askwise.acquisition import Acquisition
from askwise.datasets import make_cube, make_cube_nm
from askwise.datasets.cube import CONTEXT, CubeDataset
from askwise.policy import Policy
from askwise.reference_models import make_model
from askwise_bench.baselines import AACO, DIME, GDFS

MAKERS: dict[str, Any] = {"cube": make_cube, "cube_nm": make_cube_nm}
RIVALS: dict[str, Any] = {"GDFS": GDFS, "DIME": DIME, "AACO": AACO}
MODELS = ("mlp", "forest", "xgboost")
BUDGETS = (3, 5, 7, 10, 14)
N_NEW, FIRST = 1000, 2


class BestKnown(Policy):
    """The context first, then the feature with the highest exact gain."""

    def __init__(self, data: CubeDataset) -> None:
        self.data = data

    def scores(self, state: Acquisition) -> np.ndarray:
        rows, features = state.rows, state.schema.features
        gain = self.data.exact_gain(pd.DataFrame(rows.values, columns=self.data.X.columns))
        scores = np.stack([gain[:, columns[0]] for columns in state.schema.feature_columns], axis=1)
        if CONTEXT in features:
            scores[:, features.index(CONTEXT)] = np.inf
        return np.where(state.mask, -np.inf, np.minimum(scores, 1e9))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(MAKERS), choices=MAKERS)
    parser.add_argument("--rows", nargs="*", type=int, default=[1000, 5000])
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=RIVALS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[100, 101, 102])
    parser.add_argument("--quick", action="store_true", help="one seed, 1,000 rows, a forest, 300 new rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n_new = N_NEW
    if options.quick:
        options.rows, options.models, options.seeds, n_new = [1000], ["forest"], options.seeds[:1], 300
    for name in options.data:
        for n_rows in options.rows:
            found: list[pd.DataFrame] = []
            for seed in options.seeds:
                found.append(one_run(name, n_rows, seed, options.models, options.rivals, n_new))
                print(table(found, f"{name}, {n_rows:,} rows, {len(found)} seeds, percent right"), flush=True)


def one_run(name: str, n_rows: int, seed: int, models: list[str], rivals: list[str], n_new: int) -> pd.DataFrame:
    """One row per way to choose and predict: percent right by budget, share with the context early, seconds."""
    data = MAKERS[name](n_rows, random_state=seed)
    new = data.sample(n_new, random_state=10_000 + seed)
    found, chosen = {}, {}
    for rival in rivals:
        started = time.process_time()
        fitted = RIVALS[rival](groups=data.groups, random_state=seed).fit(data.X, data.y)
        run = fitted.acquire(new[0], budget=max(BUDGETS))
        spent = time.process_time() - started
        chosen[rival] = run
        proba = [run.proba[:, min(b, run.order.shape[1])] for b in BUDGETS]
        found[rival, "its network"] = [*right(proba, fitted.classes_, new[1]), early(run, fitted.features_), spent]
    for model in models:
        wrapped = make_model(model, seed).fit(data.X, data.y)
        started = time.process_time()
        selector = DynamicFeatureSelector(
            wrapped, groups=data.groups, epistemic=None, random_state=seed, progress=False
        ).fit(data.X, data.y)
        spent = time.process_time() - started
        ways: dict[str, Any] = {"default": None, "greedy": "greedy", "best choices": BestKnown(data)}
        for way, policy in ways.items():
            run = (selector if policy is None else selector.with_policy(policy)).acquire(new[0], budget=max(BUDGETS))
            proba = [run.proba[:, b] for b in BUDGETS]
            row = [*right(proba, selector.classes_, new[1]), early(run, selector.features_)]
            found[way, model] = [*row, spent if policy is None else np.nan]
        for rival, run in chosen.items():
            proba = [selector.predict_proba(seen(new[0], run.mask_after(b), selector)) for b in BUDGETS]
            found[f"{rival} choices", model] = [*right(proba, selector.classes_, new[1]), np.nan, np.nan]
        found["model with everything", model] = [100 * np.mean(wrapped.predict(new[0]) == new[1])] + 6 * [np.nan]
    columns = [*map(str, BUDGETS), "context early", "seconds"]
    return pd.DataFrame.from_dict(found, orient="index", columns=columns)


def right(proba: list[np.ndarray], classes: np.ndarray, y: np.ndarray) -> list[float]:
    return [100 * float(np.mean(classes[p.argmax(axis=1)] == y)) for p in proba]


def early(run: Any, features: list[str]) -> float:
    if CONTEXT not in features:
        return float("nan")
    return float((run.order[:, :FIRST] == features.index(CONTEXT)).any(axis=1).mean())


def seen(X: pd.DataFrame, mask: np.ndarray, selector: Any) -> pd.DataFrame:
    """The rows with NaN in what is not acquired."""
    return X.where(selector.schema_.expand(mask))


def table(runs: list[pd.DataFrame], title: str) -> str:
    """Mean over the seeds, and the spread of the budgets' columns."""
    stacked = np.stack([run.to_numpy() for run in runs])
    mean = pd.DataFrame(stacked.mean(axis=0), index=runs[0].index, columns=runs[0].columns).round(2)
    if len(runs) > 1:
        mean["spread"] = stacked[:, :, : len(BUDGETS)].std(axis=0, ddof=1).mean(axis=1).round(1)
    mean.index = [" / ".join(index) for index in mean.index]
    return f"\n{title}\n{mean.to_string(na_rep='')}"


if __name__ == "__main__":
    main()
