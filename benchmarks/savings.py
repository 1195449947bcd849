"""Whether a calibrated stop keeps its promise, and what it saves.

    python benchmarks/savings.py promise      # 200 draws of calibration rows of three tables
    python benchmarks/savings.py estimated    # the same promise, cross-fitted on training rows (X_cal=None)
    python benchmarks/savings.py savings      # average price as a share of everything, on real tables
    python benchmarks/savings.py rivals       # the same for CWCF and DIME, each with a stop of its own
    python benchmarks/savings.py figure       # the figure of the README, docs/savings.svg

Rows are split into those to fit on, those to calibrate on and those to measure on; nothing is chosen on the last. Cases
are run along the policy once per fitted model, without a stop, and every rule is read off these runs. Members, which
change neither decisions nor stops, are left out to keep this fast; each command takes about a quarter of an hour on one
core.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector
from askwise.datasets import load, make_gaussian, make_switch
from askwise.displays import SavingsDisplay
from askwise.displays.base import drawn
from askwise.errors import InvalidInput
from askwise.policy.orders import Static
from askwise.reference_models import make_model
from askwise.stopping.calibrated_stop import Goal, calibrated_threshold
from askwise.stopping.guarantee import FullRuns, last_passed, p_values, threshold_sequence
from askwise.stopping.prediction_sets import PredictionSets
from askwise.stopping.savings import candidate_budgets
from askwise_bench.baselines import CWCF, DIME

N_DRAWS, N_FRESH = 200, 20_000
LEVELS = (0.95, 0.98)
DIGIT_PATCHES = {
    f"{r}{c}": [f"pixel_{2 * r + i}_{2 * c + j}" for i in (0, 1) for j in (0, 1)] for r in range(4) for c in range(4)
}
TABLES: dict[str, dict[str, Any]] = {
    "wine": {},
    "breast_cancer": {"groups": None},
    "heart": {"costs": None},
    "cirrhosis": {},
    "yeast": {"most": 900},
    "digits": {"groups": DIGIT_PATCHES, "most": 900},
    "heart, published prices": {},
    "hepatitis, published prices": {},
}


def main() -> None:
    commands = (promise, estimated, savings, rivals, figure)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=[command.__name__ for command in commands])
    parser.add_argument("--splits", type=int, help="splits of each table (estimated: 40, savings: 10, rivals: 2)")
    parser.add_argument("--tables", nargs="*", help="only these tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    next(command for command in commands if command.__name__ == options.command)(options)


# ---------------------------------------------------------------------------------------------- the promise


def promise(options: argparse.Namespace) -> None:
    """Draw calibration rows 200 times; the risk is that of many fresh rows, or of all rows outside of fit."""
    goals = {
        "agreement 95%": Goal(agreement=0.95, per_class=False),
        "agreement 95%, conditional": Goal(agreement=0.95, conditional=True, per_class=False),
        "accuracy gap 2%": Goal(accuracy_gap=0.02, per_class=False),
        "accuracy gap 2%, conditional": Goal(accuracy_gap=0.02, conditional=True, per_class=False),
    }
    for n_cal, selector, pool, population in _populations():
        rng = np.random.default_rng(0)
        others = selector._runs_of_folds(selector.prices_.limits(None, 1)[0])
        assert others is not None
        share = others.early(others.stops_at(threshold_sequence())).mean(axis=0)
        draws = [pool.take(rng.integers(len(pool), size=n_cal)) for _ in range(N_DRAWS)]
        for title, goal in goals.items():
            thresholds = [_threshold(draw, goal, share) for draw in draws]
            found = np.array([_risks(threshold, goal, population) for threshold in thresholds])
            kept = (found[:, : 2 if goal.conditional else 1] <= goal.risk).all(axis=1).mean()
            print(
                f"  {title:30} kept in {kept:6.1%} of {N_DRAWS} draws of {n_cal} rows (asked: 86%)   "
                f"risk {found[:, 0].mean():.4f}, among early stops {found[:, 1].mean():.4f}, "
                f"price {found[:, 2].mean():.3f} +- {found[:, 2].std():.3f} of everything",
                flush=True,
            )
        _average_prices(draws, population)
        _coverage(draws, population)


def _populations() -> Iterator[tuple[int, DynamicFeatureSelector, FullRuns, FullRuns]]:
    """For each table: rows per draw, a fitted selector, runs to draw from, and runs on which the risk is measured."""
    for data, kind in ((make_gaussian(400, random_state=0), "gaussian"), (make_switch(400, random_state=0), "switch")):
        selector = _fitted(data.X, data.y, _fast_model(data.X), costs=data.prices, groups=data.groups)
        print(f"{kind}: 400 rows to fit on; risk on {N_FRESH:,} fresh rows", flush=True)
        X, y = data.sample(2 * N_FRESH, random_state=1)
        runs = _runs(selector, X, y)
        yield 150, selector, runs.take(np.arange(N_FRESH)), runs.take(np.arange(N_FRESH, 2 * N_FRESH))
    table = load("breast_cancer")
    order = np.random.default_rng(0).permutation(len(table.y))
    fit, rest = order[:200], order[200:]
    selector = _fitted(table.X.iloc[fit], table.y[fit], _fast_model(table.X))
    print(f"breast_cancer: 200 rows to fit on; rows drawn with replacement from the other {len(rest)}", flush=True)
    runs = _runs(selector, table.X.iloc[rest], table.y[rest])
    yield 150, selector, runs, runs


def _threshold(runs: FullRuns, goal: Goal, share: np.ndarray | None = None) -> float:
    return calibrated_threshold(runs, goal, goal.requirements(runs, np.unique(runs.full)), share)[0]


def _risks(threshold: float, goal: Goal, population: FullRuns) -> tuple[float, float, float]:
    """Risk of all cases, risk of those that stop early (0 if none does), and price as a share of everything."""
    steps = population.stops_at(np.array([threshold]))
    lost = np.take_along_axis(goal.losses(population), steps, axis=1)[:, 0]
    early = population.early(steps)[:, 0]
    price = _price(threshold, population) / population.spent[:, -1].mean()
    return lost.mean(), lost[early].mean() if early.any() else 0.0, price


def _price(threshold: float, population: FullRuns) -> float:
    steps = population.stops_at(np.array([threshold]))
    return float(np.take_along_axis(population.spent, steps, axis=1).mean())


def _average_prices(draws: list[FullRuns], population: FullRuns) -> None:
    everything = population.spent[:, -1].mean()
    for part in (0.2, 0.4):
        asked = part * everything
        paid = [_price(_threshold(draw, Goal(average_price=asked)), population) / asked for draw in draws]
        print(
            f"  average price {part:.0%} of everything: paid {np.mean(paid):.3f} +- {np.std(paid):.3f} of the asked one"
        )


def _coverage(draws: list[FullRuns], population: FullRuns) -> None:
    """Coverage of 90 % prediction sets where a rule for 95 % agreement stops, and of cases still open before that."""
    at_stop, while_open = [], []
    assert population.proba is not None
    assert population.labels is not None
    for draw in draws:
        assert draw.proba is not None
        assert draw.labels is not None
        threshold = np.array([_threshold(draw, Goal(agreement=0.95, per_class=False))])
        sets = PredictionSets(draw.proba, draw.labels, draw.stops_at(threshold)[:, 0], 0.9)
        stops = population.stops_at(threshold)
        truth = population.labels[:, None]
        last = np.take_along_axis(population.proba, stops[:, :, None], axis=1)[:, 0]
        at_stop.append(np.take_along_axis(sets.members(last, 0, stopped=True), truth, axis=1).mean())
        for k in range(1, 4):
            going = stops[:, 0] > k
            members = sets.members(population.proba[going, k], k, stopped=False)
            while_open.append(np.take_along_axis(members, truth[going], axis=1).mean() if going.any() else np.nan)
    shown = ", ".join(f"{share:.3f}" for share in np.nanmean(np.reshape(while_open, (-1, 3)), axis=0))
    print(
        f"  coverage of 90% sets at the stop {np.mean(at_stop):.3f}; while open after 1 to 3 purchases {shown}",
        flush=True,
    )


def estimated(options: argparse.Namespace) -> None:
    """How often the promise of X_cal=None is kept: a new fit for each split."""
    goal = Goal(agreement=0.95)
    models: dict[str, Callable[[pd.DataFrame], Any]] = {"logistic": _fast_model, "forest": _forest}
    for table in options.tables or ("gaussian", "breast_cancer", "wine"):
        for kind, make in models.items():
            found = []
            for split in range(options.splits or 40):
                X, y, fresh, labels = _training_and_fresh(table, split)
                selector = _fitted(X, y, make(X), seed=split)
                threshold = selector.calibrate_stop(agreement=0.95).threshold
                found.append(_risks(threshold, goal, _runs(selector, fresh, labels)))
            risk, _, price = np.array(found).T
            kept = (risk <= goal.risk).mean()
            print(
                f"{table:14} {kind:9} kept in {kept:.1%} of {len(found)} fits; risk {risk.mean():.4f} +- "
                f"{risk.std():.4f}, largest {risk.max():.4f}; price {price.mean():.3f} of everything",
                flush=True,
            )


def _training_and_fresh(table: str, split: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    if table == "gaussian":
        data = make_gaussian(250, random_state=split)
        return data.X, data.y, *data.sample(2000, random_state=1000 + split)
    whole = load(table)
    order = np.random.default_rng(split).permutation(len(whole.y))
    fit, rest = order[: len(order) // 2], order[len(order) // 2 :]
    return whole.X.iloc[fit], whole.y[fit], whole.X.iloc[rest], whole.y[rest]


# ---------------------------------------------------------------------------------------------- savings


def savings(options: argparse.Namespace) -> None:
    """Price of the guaranteed stop beside fixed budgets and a static order that pass the same test."""
    ratios: dict[float, list[float]] = {level: [] for level in LEVELS}
    for table in options.tables or TABLES:
        results: list[dict[str, Any]] = []
        started = time.perf_counter()
        for split in range(options.splits or 10):
            data, fit, cal, test = _split(table, split)
            selector = _fitted(data.X.iloc[fit], data.y[fit], make_model("mlp", split), split, **_options(table, data))
            greedy = [_runs(selector, data.X.iloc[rows], data.y[rows]) for rows in (cal, test)]
            order = selector.with_policy(Static())
            static = [_runs(order, data.X.iloc[rows], data.y[rows]) for rows in (cal, test)]
            ways = {
                "stop": (_by_agreement, greedy),
                "fixed budget": (_by_budget, greedy),
                "static order, stop": (_by_agreement, static),
                "static order, fixed budget": (_by_budget, static),
            }
            results += [row for name, (rule, runs) in ways.items() for row in _measured(name, rule, *runs)]
        means = _print_results(table, len(cal), results, time.perf_counter() - started)
        for level in sorted({level for level, _ in means}):
            ratios[level].append(means[level, "stop"] / means[level, "fixed budget"])
    for level, found in ratios.items():
        shown = ", ".join(f"{ratio:.2f}" for ratio in found)
        print(f"{level:.0%}: price of the stop / price of the fixed budget: {shown}; median {np.median(found):.2f}")


def rivals(options: argparse.Namespace) -> None:
    """CWCF and DIME with a stop calibrated in the same way on the same rows; decisions are those of their own model."""
    for table in options.tables or TABLES:
        results: list[dict[str, Any]] = []
        started = time.perf_counter()
        for split in range(options.splits or 2):
            data, fit, cal, test = _split(table, split)
            for rival in (CWCF, DIME):
                fitted = rival(random_state=split, **_options(table, data)).fit(data.X.iloc[fit], data.y[fit])
                runs = [_runs(fitted, data.X.iloc[rows], data.y[rows]) for rows in (cal, test)]
                results += _measured(f"{rival.__name__}, stop", _by_agreement, *runs)
        _print_results(table, len(cal), results, time.perf_counter() - started)


def figure(options: argparse.Namespace) -> None:
    """Savings on breast_cancer, column by column, as a picture."""
    data, fit, cal, test = _split("breast_cancer", 0)
    rest = np.r_[cal, test]
    selector = _fitted(data.X.iloc[fit], data.y[fit], make_model("mlp", 0))
    table = selector.savings(data.X.iloc[rest])
    print(table)
    picture = drawn("savings", SavingsDisplay(table, priced=False))
    (Path(__file__).parents[1] / "docs" / "savings.svg").write_text(picture, encoding="utf-8")


def _split(table: str, split: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """30 % of the rows to fit on, 50 % to calibrate on, so that small tables have some, 20 % to measure on."""
    data = load(table.split(",")[0])
    order = np.random.default_rng(split).permutation(len(data.y))[: TABLES[table].get("most")]
    first, second = int(0.3 * len(order)), int(0.8 * len(order))
    fit = order[:first]
    rest = order[first:]
    rest = rest[np.isin(data.y[rest], data.y[fit])]
    return data, fit, rest[: second - first], rest[second - first :]


def _options(table: str, data: Any) -> dict[str, Any]:
    given = TABLES[table]
    return {"costs": given.get("costs", data.prices), "groups": given.get("groups", data.groups)}


def _by_agreement(runs: FullRuns, goal: Goal) -> Callable[[FullRuns], np.ndarray]:
    threshold = _threshold(runs, goal)
    return lambda others: others.stops_at(np.array([threshold]))


def _by_budget(runs: FullRuns, goal: Goal) -> Callable[[FullRuns], np.ndarray]:
    """The smallest common budget that passes the same test, from the largest downwards."""
    budgets = candidate_budgets(runs)[::-1]
    lost = np.take_along_axis(runs.changed, runs.stops_within(budgets), axis=1).sum(axis=0)
    last = last_passed(p_values(lost, len(runs), goal.risk), goal.confidence)
    if last is None:
        raise InvalidInput("even everything does not pass")
    return lambda others: others.stops_within(budgets[[last]])


def _measured(
    name: str, rule: Callable[[FullRuns, Goal], Callable[[FullRuns], np.ndarray]], cal: FullRuns, test: FullRuns
) -> Iterator[dict[str, Any]]:
    for level in LEVELS:
        goal = Goal(agreement=level, per_class=False)
        try:
            goal.check_rows(len(cal))
            steps = rule(cal, goal)(test)
        except InvalidInput as error:
            yield {"way": name, "level": level, "note": str(error)}
            continue
        price = np.take_along_axis(test.spent, steps, axis=1).mean() / test.spent[:, -1].mean()
        yield {
            "way": name,
            "level": level,
            "share": price,
            "kept": 1 - np.take_along_axis(test.changed, steps, axis=1).mean(),
        }


def _print_results(table: str, n_cal: int, results: list[dict[str, Any]], seconds: float) -> dict[Any, float]:
    frame = pd.DataFrame(results)
    print(f"{table}: {n_cal} calibration rows ({seconds:.0f} s)", flush=True)
    for (level, way), group in frame.groupby(["level", "way"], sort=False):
        done = group.dropna(subset=["share"]) if "share" in group else group.iloc[:0]
        if done.empty:
            print(f"  {level:.0%}  {way:28} {group['note'].iloc[0]}")
            continue
        print(
            f"  {level:.0%}  {way:28} {done['share'].mean():6.3f} +- {done['share'].std():.3f} of everything; "
            f"decisions kept on other rows {done['kept'].mean():.3f} ({len(done)} splits)",
            flush=True,
        )
    found = frame.dropna(subset=["share"]) if "share" in frame else frame.iloc[:0]
    return dict(found.groupby(["level", "way"])["share"].mean()) if len(found) else {}


# ---------------------------------------------------------------------------------------------- models and runs


def _fitted(X: pd.DataFrame, y: np.ndarray, model: Any, seed: int = 0, **options: Any) -> DynamicFeatureSelector:
    selector = DynamicFeatureSelector(model.fit(X, y), epistemic=None, random_state=seed, progress=False, **options)
    return selector.fit(X, y)


def _runs(acquirer: Any, X: pd.DataFrame, y: np.ndarray, policy: Any = None) -> FullRuns:
    rows = acquirer._encode(X)
    labels = np.searchsorted(acquirer.classes_, y)
    followed = acquirer._policy_for(rows) if policy is None else policy
    return acquirer._full_runs(rows, followed, acquirer.prices_.limits(None, 1)[0], labels)


def _fast_model(X: pd.DataFrame) -> Any:
    if all(dtype.kind in "iuf" for dtype in X.dtypes):
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return make_model("logistic", 0)


def _forest(X: pd.DataFrame) -> Any:
    return RandomForestClassifier(50, min_samples_leaf=2, random_state=0)


if __name__ == "__main__":
    main()
