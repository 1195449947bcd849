"""How well a flowchart of at most four questions stands for the policy: breast cancer, frozen MLP and forest.

    python benchmarks/flowchart.py            # 10 splits
    python benchmarks/flowchart.py --splits 3 --picture breast-cancer.svg

The model is trained and wrapped on half of the rows. Of the other half two thirds grow the chart, and the rest
measures it: the share of rows on which it decides like the policy (at most four features) and like the model with all
30 features, and the average number of features that it asks for, which is the average price where each costs 1.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector
from askwise.stopping import Confidence

DEPTH = 4
STOPS = {"four features": None, "95% sure": Confidence(0.95)}
COLUMNS = ("policy", "full", "policy_full", "price", "policy_price")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--picture", type=Path, help="where to write the chart of the first split (MLP), as SVG")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("model   policy stops at  like policy  like full row  policy like full  price  policy's  leaves")
    for model in ("mlp", "forest"):
        charts = [_charts(model, seed) for seed in range(options.splits)]
        if options.picture and model == "mlp":
            options.picture.write_text(charts[0]["four features"].to_svg(), encoding="utf-8")
        for stop in STOPS:
            found = [chart[stop] for chart in charts]
            means = np.mean([[getattr(chart.measured, name) for name in COLUMNS] for chart in found], axis=0)
            error = np.std([chart.measured.policy for chart in found], ddof=1) / np.sqrt(len(found))
            leaves = np.mean([len(chart.leaves) for chart in found])
            like, full, policy_full, price, policy_price = means
            print(
                f"{model:7} {stop:15}  {like:.3f} ±{error:.3f}  {full:13.3f}  {policy_full:16.3f}  {price:5.2f}  "
                f"{policy_price:8.2f}  {leaves:6.1f}"
            )


def _charts(model: str, seed: int) -> dict[str, Any]:
    """The chart of one split for each stopping rule."""
    data = load_breast_cancer(as_frame=True)
    y = data.target_names[data.target]
    X_fit, X_rest, y_fit, _ = train_test_split(data.data, y, test_size=0.5, random_state=seed, stratify=y)
    wrapped = {
        "mlp": make_pipeline(StandardScaler(), MLPClassifier(random_state=seed, max_iter=300)),
        "forest": RandomForestClassifier(100, random_state=seed),
    }[model].fit(X_fit, y_fit)
    selector = DynamicFeatureSelector(wrapped, random_state=seed, progress=False).fit(X_fit, y_fit)
    return {name: selector.flowchart(X_rest, DEPTH, stop) for name, stop in STOPS.items()}


if __name__ == "__main__":
    main()
