"""Images in the report: Table 4 beside the paper's, orders and uncertainties, Figures 2 and 3."""

from __future__ import annotations

from typing import Any

import pandas as pd

from askwise.plotting import COLORS
from askwise_bench.paper.paper_results import IMAGE_ACCURACIES, IMAGE_METHODS, IMAGES
from askwise_bench.report.figures import Panel, Panels, Picture, line_picture
from askwise_bench.report.rows import Quantity, curves, settings
from askwise_bench.report.tables import Entry, Table, accuracy_entry, by_method, over_budgets_and_seeds, table_of

RANGES = {"1-10": 1, "2-10": 2}
"""Numbers of patches that are averaged over, and the first of them."""

NOTE = (
    "Mean accuracy in percent over the numbers of patches and the seeds (± over the numbers / ± over seeds). The "
    "paper's figures, in brackets, are of 1-10 patches by its caption and of 2-10 by its Appendix G, so they stand in "
    "both columns. They come from a ResNet-18; docs/project/images.md says which network the profile of a run takes."
)
ORDERS = {"own choice": "accuracy", "random": "random_accuracy", "middle first": "middle_accuracy"}
PERCENTAGES = {**ORDERS, "all patches": "full_accuracy", "ECE": "ece"}
NATS = {"entropy": 3, "aleatoric": 3, "epistemic": 4}
"""Digits of the uncertainties."""

ORDERS_NOTE = (
    "Means over 1-10 patches ± over seeds; accuracies and ECE in percent, uncertainties in nats. The same predictor "
    "sees patches of its own choice, in random order, or those in the middle first; all patches: its network on "
    "complete images."
)
DRAWN = dict(zip(IMAGE_METHODS, COLORS, strict=False))
"""The same color for a method in every figure; as many methods as there are colors."""

BOTH = "Mean over seeds. Solid: patches chosen by the method; dotted: in random order."


def image_tables(rows: pd.DataFrame) -> list[Table]:
    """Table 4, and for each set of images accuracy by patches, and orders and uncertainties."""
    accuracy = 100 * curves(rows, Quantity("images", "accuracy"), "uniform")
    found = [name for name in IMAGES if name in accuracy.index.unique("data")]
    tables = [_table_4(accuracy, found)] if found else []
    columns = {head: (Quantity("images", metric), 100.0, 1) for head, metric in PERCENTAGES.items()}
    columns |= {head: (Quantity("images", head), 1.0, digits) for head, digits in NATS.items()}
    for name in found:
        part, title = rows[rows["data"] == name], f"{IMAGES[name]}: accuracy by number of patches"
        by_patches = {
            f"{k:g} patch{'es' * (k > 1)}": (Quantity("images", "accuracy", {"budget": k}), 100.0, 1)
            for k in settings(part, "images", "budget")
        }
        note = "Accuracy in percent ± over seeds, patches chosen by the method."
        tables.append(by_method(part, title, "beyond the paper", note, by_patches, over=""))
        title = f"{IMAGES[name]}: orders of the patches, and uncertainty"
        tables.append(by_method(part, title, "Figures 2 and 3", ORDERS_NOTE, columns, over=""))
    return [table for table in tables if table is not None]


def _methods(by_method: pd.DataFrame) -> list[str]:
    return [name for name in IMAGE_METHODS if name in by_method.index.unique("method")]


def _table_4(accuracy: pd.DataFrame, data: list[str]) -> Table | None:
    stats = {name: over_budgets_and_seeds(accuracy.loc[:, first:]) for name, first in RANGES.items()}
    means = {(d, r): stats[r]["mean"].xs(d) for d in data for r in RANGES}
    body = [
        [
            Entry(IMAGE_METHODS[method]),
            *(accuracy_entry(stats[r], d, method, column, IMAGE_ACCURACIES) for (d, r), column in means.items()),
        ]
        for method in _methods(accuracy)
    ]
    fewest, most = stats["1-10"]["seeds"].min(), stats["1-10"]["seeds"].max()
    note = f"{NOTE} Seeds: {most if fewest == most else f'{fewest} to {most}'}."
    head = ("method", *(f"{IMAGES[name]}, {over}" for name, over in means))
    return table_of("Images: accuracy over the numbers of patches", "Table 4", note, head, body)


def image_pictures(rows: pd.DataFrame) -> list[Picture]:
    """Figures 2 and 3, a panel per set of images; variants are in the tables only."""
    rows = rows[rows["method"].isin(DRAWN)]
    if Quantity("images", "accuracy").of(rows).empty:
        return []
    own, at_random, error, entropy = (
        curves(rows, Quantity("images", metric), "uniform").groupby(["data", "method"]).mean()
        for metric in ("accuracy", "random_accuracy", "ece", "entropy")
    )
    plain, patches = "Mean over seeds.", "by number of patches"
    difference = "Images: accuracy of the method's own choices minus that of random patches"
    same = "Mean over seeds, same predictor."
    accuracy = _panels(own, "accuracy", at_random, percent=True)
    gain = _panels(own - at_random, "difference in accuracy", percent=True, zero=True)
    return [
        line_picture("images-accuracy", f"Images: accuracy {patches}", "Figure 2, left", BOTH, accuracy),
        line_picture("images-difference", difference, "Figure 2, right", same, gain),
        line_picture(
            "images-ece",
            f"Images: calibration error {patches}",
            "Figure 3, left",
            plain,
            _panels(error, "calibration error"),
        ),
        line_picture(
            "images-entropy",
            f"Images: entropy of the prediction {patches}",
            "Figure 3, right",
            plain,
            _panels(entropy, "entropy of the prediction"),
        ),
    ]


def _panels(solid: Any, y: str, dotted: Any = None, **style: bool) -> Panels:
    methods = _methods(solid)
    solid = solid.reindex(methods, level="method")  # the order of the legend
    panels = [
        Panel(title, solid.xs(name), None if dotted is None else dotted.xs(name))
        for name, title in IMAGES.items()
        if name in solid.index.unique("data")
    ]
    return Panels(panels, "patches", y, {name: DRAWN[name] for name in methods}, **style)
