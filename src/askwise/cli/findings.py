"""What `askwise evaluate` measures: what is saved, accuracy by budget, what is asked, and which cases to hand over."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from askwise.cli.console import as_records
from askwise.errors import AskwiseWarning
from askwise.evaluation import default_budgets
from askwise.metrics import expected_calibration_error, rejection_curve, share_by_class
from askwise.policy import Random
from askwise.predict.base import class_positions
from askwise.records.estimators import MUCH_MISSING
from askwise.stopping.guarantee import exact_interval
from askwise.stopping.savings import N_RESAMPLES
from askwise.table.columns import plain
from askwise.table.desk import Desk
from askwise.table.prices import MONEY
from askwise.trajectory import Trajectory

N_RANDOM = 3
N_STEPS = N_RANDOM + 5
"""Steps that `find` announces."""
INTERVAL = 0.95
LEVEL = 0.95
"""Share of decisions kept that is reported where no stop was calibrated."""
COSTS_SOMETHING = 0.01
"""Share of the price of everything from which a feature is said to cost something."""
MOST_LISTED = 10
"""Cases that are listed where no rule says which to hand over."""


@dataclass(frozen=True)
class Summary:
    """The result in a few numbers: the average price of a case, with its 95 % interval, and the decisions.

    `guarantee` is that of the calibrated stop; None where the stop was chosen in hindsight on the same rows.
    """

    everything: float
    price: float
    low: float
    high: float
    kept: float
    accuracy: float | None
    full_accuracy: float
    guarantee: str | None

    @property
    def saved(self) -> float:
        """The share of the price that is saved."""
        return 1 - self.price / self.everything if self.everything else 0.0


@dataclass(frozen=True)
class Findings:
    """All that the page of `askwise evaluate` shows; see the functions below."""

    n_rows: int
    summary: Summary
    savings: pd.DataFrame
    curves: pd.DataFrame
    full_ece: float
    asked: list[dict[str, Any]]
    trajectory: Trajectory
    why: dict[str, Any]
    by_class: list[dict[str, Any]]
    handover: dict[str, Any] | None
    rejection: dict[str, tuple[np.ndarray, np.ndarray]]
    first_paid: list[dict[str, Any]] = field(default_factory=list)
    least_certain: list[dict[str, Any]] = field(default_factory=list)
    missing: float = 0.0
    records: list[dict[str, Any]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def cheaper(self) -> dict[str, list[tuple[float, float, float]]]:
        """Where a stop per case is not the cheapest: by way, (level, price of the stop per case, price of that way)."""
        prices = self.savings.pivot(index="level", columns="way", values="price")
        own, found = prices["stop per case"], {}
        for way, name in {"static order": "one fixed order", "fixed budget": "a fixed budget"}.items():
            if way not in prices:
                continue
            rows = [(float(k), float(own[k]), float(prices[way][k])) for k in prices.index if prices[way][k] < own[k]]
            if rows:
                found[name] = rows
        return found

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; the rejection curves at every tenth of the cases."""
        shares = np.arange(1, 11) / 10
        kept = {name: np.interp(shares, *curve).tolist() for name, curve in self.rejection.items()}
        return {
            "rows": self.n_rows,
            "summary": {**vars(self.summary), "saved": self.summary.saved},
            "savings": as_records(self.savings),
            "cheaper": self.cheaper,
            "curves": as_records(self.curves),
            "full": {"accuracy": self.summary.full_accuracy, "ece": self.full_ece},
            "asked": self.asked,
            "first_paid": self.first_paid,
            "least_certain": self.least_certain,
            "why": self.why,
            "by_class": self.by_class,
            "handover": self.handover,
            "missing": self.missing,
            "records": self.records,
            "doubts": self.doubts,
            "rejection": {"share_decided": shares.tolist(), **kept},
        }


def find(
    selector: Any,
    X: pd.DataFrame,
    y: np.ndarray,
    desk: Desk,
    seed: int,
    say: Callable[[str], None],
    missing: str = "auto",
) -> Findings:
    """Measure on rows `X` with labels `y` that the model has not seen; `say` names each step.

    `missing` is one of the ways of `evaluate`; by ``"auto"`` the four are compared where much is missing.
    """
    truth = class_positions(selector.classes_, y)
    curves = _curves(selector, X, y, seed, say)
    say("measuring what is saved")
    savings = selector.savings(X, sorted({0.9, LEVEL, 0.98, 0.99}))
    full = selector.predictor_.predict_full(X)
    decided = selector.beliefs_.decisions(full)
    say("following every case")
    stopped = selector.stop_ is not None
    limit = None if stopped else _within(selector, curves["budget"].iloc[-1])
    run = selector.acquire(X, budget=limit, stop="calibrated" if stopped else None)
    there = selector.schema_.any_column(selector.schema_.encode(X).observed)
    everything = float(np.mean(selector.prices_.total(there)))
    summary = (
        by_stop(selector.stop_.promise, run, decided, truth, everything)
        if stopped
        else _summary_in_hindsight(savings, everything, float(np.mean(decided == truth)))
    )
    right = run.decision[:, -1] == truth
    say("weighing what the records lack")
    lacking = float(1 - there.mean())
    records, doubts = _on_records(selector, X, y, missing, lacking, limit, desk.reasons)
    return Findings(
        n_rows=len(X),
        summary=summary,
        savings=savings,
        curves=curves,
        full_ece=float(expected_calibration_error(truth, full / full.sum(axis=1, keepdims=True))),
        asked=_asked(selector, run, desk),
        trajectory=run,
        why=selector.start().why(desk),
        by_class=by_class(selector.classes_, run.decision[:, -1], decided, truth) if stopped else [],
        handover=_handed_over(selector, run),
        first_paid=_first_paid(selector, run, desk),
        least_certain=_least_certain(run),
        missing=lacking,
        records=records,
        doubts=doubts,
        rejection={
            "askwise": rejection_curve(right, 1 - run.proba[:, -1].max(axis=1)),
            "everything known": rejection_curve(decided == truth, 1 - full.max(axis=1)),
        },
    )


def _within(selector: Any, money: float) -> Any:
    """A budget of money, within the limits of other resources that the selector has."""
    return {**selector.budget, MONEY: money} if isinstance(selector.budget, Mapping) else money


def _curves(selector: Any, X: pd.DataFrame, y: np.ndarray, seed: int, say: Callable[[str], None]) -> pd.DataFrame:
    """One row per budget: accuracy and calibration error of askwise, of a static order and of random orders."""
    prices, tenths = selector.prices_, range(1, 11)  # up to everything, where the curves meet
    budgets = default_budgets(prices) if prices.uniform else [round(prices.total() * k / 10, 10) for k in tenths]
    say(f"asking wisely, {len(X):,} cases under {len(budgets)} budgets")
    limits = [_within(selector, budget) for budget in budgets]
    own = selector.evaluate(X, y, limits, missing="blocked")
    say("asking in one fixed order")
    static = selector.with_policy("static").evaluate(X, y, limits, missing="blocked")
    drawn = []
    for k in range(N_RANDOM):
        say(f"asking at random, {k + 1} of {N_RANDOM}")
        drawn.append(selector.with_policy(Random(seed + k)).evaluate(X, y, limits, missing="blocked"))
    curves = own[["budget", "spent", "features", "kept"]].copy()
    for measure in ("accuracy", "ece"):
        curves[f"{measure}_askwise"] = own[measure]
        curves[f"{measure}_static"] = static[measure]
        curves[f"{measure}_random"] = np.mean([run[measure] for run in drawn], axis=0)
    return curves


def _on_records(
    selector: Any,
    X: pd.DataFrame,
    y: np.ndarray,
    missing: str,
    lacking: float,
    budget: Any,
    reasons: Mapping[str, str],
) -> tuple[list[dict[str, Any]], list[str]]:
    """The estimates that differ in what they make of missing tests, and why some are not to be trusted."""
    if not selector.schema_.tabular or (missing == "auto" and lacking < MUCH_MISSING):
        return [], []
    stop = "calibrated" if budget is None else None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", AskwiseWarning)
        plain = missing == "blocked" and stop is None  # the plain table has no intervals; the first of all has
        way = "all" if missing == "auto" or plain else missing
        table = selector.evaluate(X, y, None if stop else [budget], missing=way, stop=stop, reasons=reasons)
        table = table.iloc[:1] if plain else table
    doubts = list(dict.fromkeys(str(one.message) for one in said if issubclass(one.category, AskwiseWarning)))
    if stop:
        table["budget"] = None
    rows = as_records(table.drop(columns=["worst_class"], errors="ignore"))
    return [{**row, "way": row["missing"].replace("_", " ")} for row in rows], doubts


def in_words(entry: dict[str, Any], amount: Callable[[float], str]) -> str:
    """One line for an estimate from records."""
    parts = []
    for name, label, shown in (
        ("spent", "per case", amount),
        ("accuracy", "right", "{:.1%}".format),
        ("kept", "the same decision", "{:.1%}".format),
    ):
        mean, low, high = (entry[f"{name}{end}"] for end in ("", "_low", "_high"))
        told = "unknown" if mean is None else f"{shown(mean)} ({shown(low)} to {shown(high)})"
        parts.append(f"{told} {label}")
    return f"{entry['way'] + ':':<15} {', '.join(parts)}"


def by_stop(promise: str, run: Trajectory, decided: np.ndarray, truth: np.ndarray, everything: float) -> Summary:
    """What the calibrated stop does on these rows."""
    spent, end = run.spent_after(-1), run.decision[:, -1]
    draws = np.random.default_rng(0).choice(spent, (N_RESAMPLES, len(spent))).mean(axis=1)
    return Summary(
        everything=everything,
        price=float(spent.mean()),
        low=float(np.percentile(draws, 2.5)),
        high=float(np.percentile(draws, 97.5)),
        kept=float(np.mean(end == decided)),
        accuracy=float(np.mean(end == truth)),
        full_accuracy=float(np.mean(decided == truth)),
        guarantee=promise,
    )


def by_class(classes: np.ndarray, end: np.ndarray, decided: np.ndarray, truth: np.ndarray) -> list[dict[str, Any]]:
    """What the stop does to each class: decisions (n,) kept of those with everything known, and cases found."""
    kept, recall = share_by_class(end == decided, decided), share_by_class(end == truth, truth)
    of_everything = share_by_class(decided == truth, truth)
    found = []
    for c, label in enumerate(classes):
        same = decided == c
        low, high = exact_interval(int((end != c)[same].sum()), int(same.sum()), INTERVAL)
        found.append(
            {
                "class": plain(label),
                "decided": int(same.sum()),
                "kept": kept.get(c),
                "low": low,
                "high": high,
                "cases": int((truth == c).sum()),
                "recall": recall.get(c),
                "recall_of_everything": of_everything.get(c),
            }
        )
    return found


def _first_paid(selector: Any, run: Trajectory, desk: Desk) -> list[dict[str, Any]]:
    """The first feature that costs something, with the share of the cases in which it is that one."""
    paid = (run.order >= 0) & (run.costs >= COSTS_SOMETHING * selector.prices_.total())
    first = run.order[paid.any(axis=1), paid.argmax(axis=1)[paid.any(axis=1)]]
    counts = np.bincount(first, minlength=len(run.features))
    return [
        {
            "feature": run.features[i],
            "label": desk.label(run.features[i]),
            "price": float(selector.prices_.costs[i]),
            "share": float(counts[i] / len(run.order)),
        }
        for i in np.argsort(-counts, kind="stable")
        if counts[i]
    ]


def _least_certain(run: Trajectory) -> list[dict[str, Any]]:
    """The cases that end with the least probable decision, the least certain first."""
    at_end = run.proba[:, -1].max(axis=1)
    numbers = np.arange(len(at_end)) if run.index is None else run.index.to_numpy()
    return [
        {"case": int(numbers[i]) + 1, "decision": plain(run.predict(-1)[i]), "probability": float(at_end[i])}
        for i in np.argsort(at_end, kind="stable")[:MOST_LISTED]
    ]


def _handed_over(selector: Any, run: Trajectory) -> dict[str, Any] | None:
    """The rule for which cases to hand to a person, and these cases, the least certain first; None without a rule."""
    rule = selector.handover_
    if rule is None or run.handed_over is None:
        return None
    ends = run.ends
    scores = rule.scores(ends)
    over = np.flatnonzero(run.handed_over)
    over = over[np.argsort(-scores[over], kind="stable")]
    numbers = np.arange(len(scores)) if run.index is None else run.index.to_numpy()
    cases = [
        {
            "case": int(numbers[i]) + 1,  # the number that askwise explain takes
            "decision": plain(run.classes[ends.decision[i]]),
            "probability": float(ends.proba[i, ends.decision[i]]),
            "score": float(scores[i]),
        }
        for i in over
    ]
    rule_in_words = {"promise": rule.promise, "measure": rule.measure, "reason": rule.reason}
    return {**rule_in_words, "threshold": rule.threshold, "share": float(run.handed_over.mean()), "cases": cases}


def in_hindsight(savings: pd.DataFrame) -> pd.Series:
    """The row of the savings for a stop per case at `LEVEL`, as it had been chosen for these rows."""
    return savings[(savings["level"] == LEVEL) & (savings["way"] == "stop per case")].iloc[0]


def _summary_in_hindsight(savings: pd.DataFrame, everything: float, full_accuracy: float) -> Summary:
    """What a stop per case would do, had it been chosen for these rows."""
    row = in_hindsight(savings)
    price, low, high = (everything if np.isnan(row[name]) else float(row[name]) for name in ("price", "low", "high"))
    return Summary(everything, price, low, high, LEVEL, None, full_accuracy, None)


def _asked(selector: Any, run: Trajectory, desk: Desk) -> list[dict[str, Any]]:
    """The features that were asked for, by how often they were; with their usual place in the order and price."""
    n, found = len(run.order), []
    for i, feature in enumerate(run.features):
        case, step = np.nonzero(run.order == i)
        if len(case):
            entry = {"feature": feature, "label": desk.label(feature), "price": float(selector.prices_.costs[i])}
            place = float(np.median(step + 1))
            found.append({**entry, "asked": len(case) / n, "first": int((step == 0).sum()) / n, "place": place})
    return sorted(found, key=lambda entry: (-entry["asked"], entry["place"]))
