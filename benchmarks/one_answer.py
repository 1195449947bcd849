"""What does an answer cost the server, and how much of it is saved because likely answers are computed on request?

A selector around a forest of 100 trees on the heart data; CPU time per answer of twelve cases, split into choosing the
next feature, why it comes next (with its likely answers and without them, in turns), and the report. The likely answers
are those of `GET /api/cases/{id}/why`, which the page asks for when "why" is opened.

    python benchmarks/one_answer.py
"""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.table.desk import Desk

CASES, ROUNDS = 12, 3


def milliseconds(selector: Any, desk: Desk, rows: pd.DataFrame, outcomes: bool) -> dict[str, float]:
    """CPU milliseconds per answer of each part."""
    spent, n = {"choosing": 0.0, "why": 0.0, "report": 0.0}, 0
    for _, row in rows.iterrows():
        session = selector.start(budget=120.0)
        while (suggestion := session.suggest()) is not None:
            times = [time.process_time()]
            session.answer(suggestion.feature, row[suggestion.feature])
            session.suggest()
            times.append(time.process_time())
            session.why(desk, outcomes=outcomes)
            times.append(time.process_time())
            session.report()
            times.append(time.process_time())
            for part, start, end in zip(spent, times, times[1:], strict=False):
                spent[part] += end - start
            n += 1
    return {part: 1000 * seconds / n for part, seconds in spent.items()}


def main() -> None:
    """Print the parts with and without likely answers, and their ratio."""
    data = load("heart")
    rows = data.X.dropna()
    y = data.y[rows.index] if isinstance(data.y, pd.Series) else data.y[data.X.index.get_indexer(rows.index)]
    model = RandomForestClassifier(100, random_state=0).fit(rows[:200], y[:200])
    selector = DynamicFeatureSelector(model, costs=data.prices, random_state=0, progress=False)
    selector.fit(rows[:200], y[:200])
    desk, cases = Desk.of(selector), rows[200 : 200 + CASES]
    milliseconds(selector, desk, cases, outcomes=False)  # the first is slower
    for _ in range(ROUNDS):
        sums = []
        for outcomes in (True, False):
            parts = milliseconds(selector, desk, cases, outcomes)
            sums.append(sum(parts.values()))
            words = ", ".join(f"{part} {number:.1f}" for part, number in parts.items())
            print(f"{'with' if outcomes else 'without'} likely answers: {sums[-1]:.1f} ms ({words})")
        print(f"ratio {sums[1] / sums[0]:.2f}")


if __name__ == "__main__":
    main()
