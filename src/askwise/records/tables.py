"""What estimates on records say, as tables and in words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from askwise.errors import AskwiseWarning
from askwise.records.estimators import ASSUMPTIONS, ENOUGH_CASES, RESOURCE, CaseValues, Overlap
from askwise.records.runs import RecordRuns
from askwise.table.columns import plain

WITH_INTERVAL = ("accuracy", "spent", "kept", "error_cost", "total_cost", "net_benefit")
ALL_CASES = "all cases"
"""The subgroup of the row that is about all of them."""
MOST_NAMED = 5
"""Cases and features that a message names; the table of `overlap` has them all."""


def table_of_records(
    runs: RecordRuns,
    ways: Sequence[str],
    confidence: float,
    names: np.ndarray,
    classes: np.ndarray,
    groups: np.ndarray | None = None,
) -> pd.DataFrame:
    """The table of `evaluate` from records, a row per budget, way and subgroup; warns of what is not to be trusted."""
    rows: list[dict[str, Any]] = []
    doubts: dict[str, None] = {}
    members: dict[Any, np.ndarray | None] = {None: None}
    if groups is not None:
        members |= {plain(one): groups == one for one in pd.unique(groups)}
    for budget, limits in zip(runs.budgets, runs.columns, strict=True):
        overlap = runs.overlap(budget) if set(ways) - {"blocked"} else None
        for way in ways:
            values = runs.values(way, budget)
            trusted = overlap is None or overlap.trusted(way)
            for group, of in members.items():
                row: dict[str, Any] = {**limits, "missing": way}
                if groups is not None:
                    row |= {
                        "subgroup": ALL_CASES if of is None else group,
                        "rows": len(names) if of is None else int(of.sum()),
                    }
                row |= measured(values, runs.labels, confidence, of)
                if groups is not None:
                    row |= recalls(values, runs.labels, classes, confidence, of)
                row |= {"effective": values.effective(of), "trusted": trusted}
                rows.append({**row, "assumes": ASSUMPTIONS[way]})
            if overlap is not None and not trusted:
                doubts.setdefault(doubt(overlap, way, runs.schema.features, names), None)
    for said in doubts:
        warnings.warn(said, AskwiseWarning, stacklevel=4)
    names_of = {f"{RESOURCE}{k}": name for k, name in enumerate(runs.resources)}
    return pd.DataFrame(rows).rename(columns=names_of)


def recalls(
    values: CaseValues, labels: np.ndarray, classes: np.ndarray, confidence: float, members: np.ndarray | None
) -> dict[str, float]:
    """Of the true cases of each class among the `members` (n,), the share decided rightly, with its interval."""
    found: dict[str, float] = {}
    for c, label in enumerate(classes):
        of_class = labels == c if members is None else members & (labels == c)
        ends = values.estimate("accuracy", confidence, of_class)
        found |= {f"recall_{label}{end}": value for end, value in zip(("", "_low", "_high"), ends, strict=True)}
    return found


def measured(
    values: CaseValues, labels: np.ndarray, confidence: float, members: np.ndarray | None = None
) -> dict[str, Any]:
    """Each measure over some of the cases (n,), those of `WITH_INTERVAL` with their interval."""
    found: dict[str, Any] = {}
    for name in values.values:
        mean, low, high = values.estimate(name, confidence, members)
        found[name] = mean
        if name in WITH_INTERVAL:
            found |= {f"{name}_low": low, f"{name}_high": high}
        if name == "accuracy":
            found["balanced_accuracy"] = values.balanced_accuracy(labels, members)
    right = found["accuracy"]
    found["price_per_correct"] = found["spent"] / right if right else np.nan
    return found


def overlap_table(overlap: Overlap, features: Sequence[str], names: np.ndarray) -> pd.DataFrame:
    """The table of `FeatureAcquirer.overlap`."""
    rows = []
    for j in np.argsort(-overlap.asked, kind="stable"):
        if overlap.asked[j]:
            asked, recorded = int(overlap.asked[j]), int(overlap.recorded[j])
            hardly = [plain(one) for one in names[overlap.hardly[j]]]
            row = {"feature": features[j], "asked": asked, "recorded": recorded, "share": recorded / asked}
            rows.append({**row, "hardly": hardly})
    return pd.DataFrame(rows, columns=["feature", "asked", "recorded", "share", "hardly"])


def doubt(overlap: Overlap, way: str, features: Sequence[str], names: np.ndarray) -> str:
    """Why an estimate is not to be trusted, naming tests and cases."""
    without = overlap.cases_without
    if overlap.trusted("doubly_robust"):
        return (
            f"The weighted estimate is worth no more than {overlap.effective:.0f} cases "
            f"({int(overlap.followed.sum())} of {len(names)} have all that was asked for); at least "
            f"{ENOUGH_CASES:.0f} are needed to trust it. "
            'missing="doubly_robust" uses the others as well.'
        )
    lacking = [j for j in np.argsort([-len(one) for one in overlap.hardly], kind="stable") if len(overlap.hardly[j])]
    tests = ", ".join(repr(features[j]) for j in lacking[:MOST_NAMED])
    cases = ", ".join(str(plain(one)) for one in names[without[:MOST_NAMED]])
    more = f" and {len(without) - MOST_NAMED} more" if len(without) > MOST_NAMED else ""
    return (
        f"What happens where every test can be had cannot be told from these records: {len(without)} of {len(names)} "
        f"cases ask for tests ({tests}) that are hardly ever recorded for cases like them (cases {cases}{more}). "
        "`overlap` lists them; records in which these tests were done for some such cases would help."
    )
