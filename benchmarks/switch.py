"""A switch that says which other features matter, known from the start: greedy acquisition against the static order.

python benchmarks/switch.py [--seeds 5]
"""

from __future__ import annotations

import argparse

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector
from askwise.datasets import make_switch

N_TEST_ROWS = 500
BUDGETS = [1.0, 2.0, 3.0, 4.0, 5.0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    rows = []
    for seed in range(options.seeds):
        data = make_switch(random_state=seed)
        X, y = data.sample(N_TEST_ROWS, random_state=seed + 100)
        model = RandomForestClassifier(random_state=seed).fit(data.X, data.y)
        for policy in ("greedy", "static", "random"):
            selector = DynamicFeatureSelector(
                model, policy=policy, costs={"switch": 0.0}, epistemic=None, random_state=seed
            )
            found = selector.fit(data.X, data.y).evaluate(X, y, BUDGETS)
            rows += [
                {"policy": policy, "seed": seed, "features": b, "accuracy": a}
                for b, a in zip(found["budget"], found["accuracy"], strict=True)
            ]
        best = [data.best_accuracy(budget, switch_known=True) for budget in BUDGETS]
        rows += [
            {"policy": "best possible", "seed": seed, "features": b, "accuracy": a}
            for b, a in zip(BUDGETS, best, strict=True)
        ]
    table = pd.DataFrame(rows)
    print(f"Accuracy by features bought beside the free switch, mean and standard deviation over {options.seeds} seeds")
    print(table.pivot_table(index="features", columns="policy", values="accuracy").round(4).to_string())
    print(table.pivot_table(index="features", columns="policy", values="accuracy", aggfunc="std").round(4).to_string())


if __name__ == "__main__":
    main()
