"""Savings: the average price at which a share of the decisions is kept, by a stop per case and by fixed budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from askwise.errors import InvalidInput
from askwise.parameters import RATE
from askwise.stopping.guarantee import FullRuns, threshold_sequence
from askwise.table.columns import plain

LEVELS = (0.9, 0.95, 0.98, 0.99)
N_RESAMPLES = 500
"""Bootstrap resamples of the cases: a dozen of them lie beyond each end of a 95 % interval."""
MOST_BUDGETS = 300
"""Budgets that are tried, spread over all that pay for something more: each of them is a column of (n, K) arrays."""


def savings_table(
    runs: FullRuns,
    static: FullRuns | None,
    levels: Sequence[float],
    classes: np.ndarray | None = None,
    shares: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    cases: np.ndarray | None = None,
    expected: np.ndarray | None = None,
    resources: Sequence[str] = (),
) -> pd.DataFrame:
    """The table of `FeatureAcquirer.savings` from runs along the policy and along a static order.

    `classes` (C,) are the labels of the classes, `shares` (C,) their usual shares for a stop that protects each class.
    Runs count by `weights` (n,); those of one case, by its number in `cases` (n,), are drawn together.
    `expected` (n, C) is what a decision for each class is expected to cost in errors, None where that is not known.
    `resources` are the names of those other than money, of which the runs say what was spent.
    """
    by_class = {int(c): runs.full == c for c in np.unique(runs.full)}
    thresholds, groups = threshold_sequence()[::-1], list(by_class.values())
    everyone = [np.ones(len(runs), dtype=bool)]
    steps = {
        "stop per case": (runs, runs.stops_at(thresholds), everyone),
        "fixed budget": (runs, runs.stops_within(candidate_budgets(runs)), everyone),
    }
    if static is not None:
        steps["static order"] = (static, static.stops_within(candidate_budgets(static)), everyone)
    if shares is not None:
        judged = runs.judged_by_class(shares)
        steps["stop per case, each class"] = (judged, judged.stops_at(thresholds), groups)
    ways = {way: (*_outcomes(along, at), among) for way, (along, at, among) in steps.items()}
    untested = runs.stops_within(np.zeros(1))
    case = np.arange(len(runs)) if cases is None else cases
    n_cases, counted = int(case.max()) + 1, np.ones(len(runs)) if weights is None else weights
    drawn = np.random.default_rng(0).multinomial(n_cases, np.full(n_cases, 1 / n_cases), size=N_RESAMPLES)
    resamples = drawn[:, case] * counted
    resamples = resamples / resamples.sum(axis=1, keepdims=True)
    own = counted / counted.sum()
    everything = float(own @ runs.spent[:, -1])
    rows: list[dict[str, Any]] = []
    for level in levels:
        for way, (kept, price, among) in ways.items():
            found = prices_at(_least(own[None], kept, among), (own @ price)[None], level)[0]
            spread = prices_at(_least(resamples, kept, among), resamples @ price, level)
            low, high = np.nanpercentile(spread, [2.5, 97.5]) if np.isfinite(spread).any() else (np.nan, np.nan)
            share = found / everything if everything else np.nan
            row = {"level": level, "way": way, "price": found, "low": low, "high": high, "share": share}
            row |= {"worst_class": None, "kept_of_worst": np.nan, **dict.fromkeys(resources, np.nan)}
            if np.isfinite(found):
                rule = int((_least(own[None], kept, among)[0] >= level - 1e-9).argmax())
                of_class = {c: float(np.average(kept[of, rule], weights=own[of])) for c, of in by_class.items()}
                worst = min(of_class, key=of_class.__getitem__)
                row |= {"worst_class": worst if classes is None else plain(classes[worst])}
                row |= {"kept_of_worst": of_class[worst]}
                along, at, _ = steps[way]
                if along.further is not None:
                    then = along.further[np.arange(len(along)), at[:, rule]]
                    row |= dict(zip(resources, (own @ then).tolist(), strict=True))
            if expected is not None:
                row["net_benefit"] = np.nan
                if np.isfinite(found):
                    along, at, _ = steps[way]
                    without, at_end = _errors(runs, untested, expected), _errors(along, at[:, [rule]], expected)
                    row["net_benefit"] = float(own @ (without - at_end)) - found
            rows.append(row)
    return pd.DataFrame(rows)


def _least(weights: np.ndarray, kept: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
    """(B, K) the share of decisions kept, by weights (B, n) of the cases, in the group that keeps the fewest."""
    shares = []
    for group in groups:
        total = weights[:, group].sum(axis=1, keepdims=True)
        # A resample without any case of a class says nothing about it.
        shares.append(np.where(total > 0, weights[:, group] @ kept[group] / np.where(total > 0, total, 1.0), 1.0))
    return np.min(shares, axis=0)


def check_levels(levels: Any) -> list[float]:
    """The levels as a list of shares."""
    if not np.iterable(levels) or isinstance(levels, str) or not all(RATE.allows(level) for level in levels):
        raise InvalidInput(f"levels must be a list of shares of decisions in (0, 1]; got {levels!r}.")
    return [float(level) for level in levels]


def candidate_budgets(runs: FullRuns) -> np.ndarray:
    """(K,) budgets to try, ascending: all that pay for something more, or as many of them as needed."""
    spent = np.unique(runs.spent.round(9))
    return spent[np.unique(np.linspace(0, len(spent) - 1, min(len(spent), MOST_BUDGETS)).round().astype(int))]


def prices_at(kept: np.ndarray, price: np.ndarray, level: float) -> np.ndarray:
    """(B,) the lowest price of each row at which at least `level` is kept, NaN where that is never so.

    `kept` and `price` are (B, K), by rules from the cheapest to the most expensive.
    """
    enough = kept >= level - 1e-9
    found = np.take_along_axis(price, enough.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(enough.any(axis=1), found, np.nan)


def _outcomes(runs: FullRuns, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) whether the decision is kept, and the price paid, where cases stop at `steps` (n, K)."""
    kept = ~np.take_along_axis(runs.changed, steps, axis=1)
    return kept.astype(float), np.take_along_axis(runs.spent, steps, axis=1)


def _errors(runs: FullRuns, step: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """(n,) what errors are expected to cost, by `expected` (n, C), where cases stop at `step` (n, 1)."""
    decided = np.take_along_axis(runs.decision, step, axis=1)
    return np.take_along_axis(expected, decided, axis=1)[:, 0]
