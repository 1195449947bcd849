"""What diagnoses cost in total, tests and errors, on heart and hepatitis with published prices of tests.

    python benchmarks/error_costs.py                  # both tables, 10 splits, about 5 minutes on one core
    python benchmarks/error_costs.py --missed 5       # a missed illness costs 5 times a false alarm

Over a range of error costs, from where buying nothing is best to where buying everything is: the selector with
`error_costs` (which stops where nothing pays for itself), the fixed budget of the greedy policy that was best on
validation rows, no test at all, and all tests. Costs are per case, on test rows. Differences are paired by split, with
95 % intervals over the splits; as splits share rows, these are somewhat too narrow.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector, datasets
from askwise.evaluation import final_states
from askwise.reference_models import make_model
from askwise.table.error_costs import decide

ILL = {"heart": 1, "hepatitis": "die"}
MULTIPLES = (0.02, 0.05, 0.2, 0.5, 1, 2, 4, 8, 16, 64)
"""Costs of an error, as multiples of the price of everything."""
N_BUDGETS = 24
RIVALS = ("nothing", "everything", "fixed budget")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(ILL), choices=list(ILL))
    parser.add_argument("--model", default="logistic", help="a reference model, such as logistic or forest")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--missed", type=float, default=1.0, help="cost of a missed illness in false alarms")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.tables:
        data = datasets.load(name)
        seeds = range(options.first, options.first + options.splits)
        runs = [_split(data, ILL[name], options.model, options.missed, seed) for seed in seeds]
        _show(name, options, np.array(runs))


def _split(data: Any, ill: Any, model: str, missed: float, seed: int) -> list[list[float]]:
    """[error cost, total cost of each rival, ours, our spending] for each error cost, on the test rows of one split."""
    rest, test = train_test_split(np.arange(len(data.y)), test_size=0.3, stratify=data.y, random_state=seed)
    train, held = train_test_split(rest, test_size=0.25, stratify=data.y[rest], random_state=seed)
    X, y = data.X.iloc[train], data.y[train]
    fitted = make_model(model, seed).fit(X, y)
    # Temperatures change no decision where all errors cost the same.
    options = {"costs": data.prices, "epistemic": None, "random_state": seed, "progress": False}
    options["calibration"] = None if missed == 1 else "auto"
    greedy = DynamicFeatureSelector(fitted, risk_weight=0.0, **options).fit(X, y)
    price = greedy.prices_.total()
    budgets = [0.0, *np.geomspace(greedy.costs_.min(), price, N_BUDGETS).tolist()]
    on_validation, on_test = (final_states(greedy, data.X.iloc[rows], budgets) for rows in (held, test))
    found = []
    for multiple in MULTIPLES:
        costs = multiple * price * (1 - np.eye(2)) * np.where(greedy.classes_ == ill, missed, 1.0)[:, None]
        best = int(np.argmin([_total(end, data.y[held], greedy.classes_, costs) for end in on_validation]))
        rivals = [_total(on_test[b], data.y[test], greedy.classes_, costs) for b in (0, -1, best)]
        ours = DynamicFeatureSelector(fitted, error_costs=costs, **options).fit(X, y)
        row = ours.evaluate(data.X.iloc[test], data.y[test], [price]).iloc[0]
        found.append([multiple * price, *rivals, row["total_cost"], row["spent"]])
    return found


def _total(end: Any, y: np.ndarray, classes: np.ndarray, costs: np.ndarray) -> float:
    """Mean price plus mean cost of errors of final states."""
    return float((end.spent + costs[np.searchsorted(classes, y), decide(end.proba, costs)]).mean())


def _show(name: str, options: argparse.Namespace, runs: np.ndarray) -> None:
    """Print the costs, the differences, and whether the claims hold; `runs` is (splits, error costs, columns)."""
    half = student.ppf(0.975, len(runs) - 1) / np.sqrt(len(runs)) if len(runs) > 1 else np.nan
    print(f"\n{name}, {options.model}, {len(runs)} splits: cost per case, tests and errors")
    print("error cost " + "".join(f"{label:>14}" for label in (*RIVALS, "ours", "ours: tests")))
    for row in runs.mean(axis=0):
        print(f"{row[0]:10.0f} " + "".join(f"{value:14.2f}" for value in row[1:]))
    print("ours minus " + "".join(f"{label:>22}" for label in RIVALS))
    difference = runs[:, :, 4:5] - runs[:, :, 1:4]
    mean, width = difference.mean(axis=0), half * difference.std(axis=0, ddof=1)
    for cost, values, widths in zip(runs[0, :, 0], mean, width, strict=True):
        print(f"{cost:10.0f} " + "".join(f"{v:12.2f} +- {w:6.2f}" for v, w in zip(values, widths, strict=True)))
    above, below = (mean > width + 1e-9).any(axis=1), (mean < 0).all(axis=1)
    print(f"above one of them by more than the interval: {_costs(runs, above)}; below all three: {_costs(runs, below)}")


def _costs(runs: np.ndarray, which: np.ndarray) -> str:
    return ", ".join(f"{cost:.0f}" for cost in runs[0, which, 0]) or "nowhere"


if __name__ == "__main__":
    main()
