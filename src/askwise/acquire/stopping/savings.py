"""Savings: the average price at which a share of the decisions is kept, by a stop per case and by fixed budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from askwise.acquire.stopping.guarantee import FullRuns, threshold_sequence
from askwise.errors import InvalidInput
from askwise.parameters import RATE

LEVELS = (0.9, 0.95, 0.98, 0.99)
N_RESAMPLES = 500
MOST_BUDGETS = 300


def savings_table(runs: FullRuns, static: FullRuns | None, levels: Sequence[float], random_state: int) -> pd.DataFrame:
    """The table of `FeatureAcquirer.savings` from runs along the policy and along a static order."""
    ways = {
        "stop per case": _outcomes(runs, runs.stops_at(threshold_sequence()[::-1])),
        "fixed budget": _outcomes(runs, runs.stops_within(candidate_budgets(runs))),
    }
    if static is not None:
        ways["static order"] = _outcomes(static, static.stops_within(candidate_budgets(static)))
    rng = np.random.default_rng(random_state)
    resamples = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=N_RESAMPLES) / len(runs)
    everything = float(runs.spent[:, -1].mean())
    rows: list[dict[str, Any]] = []
    for level in levels:
        for way, (kept, price) in ways.items():
            found = prices_at(kept.mean(axis=0)[None], price.mean(axis=0)[None], level)[0]
            spread = prices_at(resamples @ kept, resamples @ price, level)
            low, high = np.nanpercentile(spread, [2.5, 97.5]) if np.isfinite(spread).any() else (np.nan, np.nan)
            share = found / everything if everything else np.nan
            rows.append({"level": level, "way": way, "price": found, "low": low, "high": high, "share": share})
    return pd.DataFrame(rows)


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
