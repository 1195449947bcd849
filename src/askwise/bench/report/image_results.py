"""Images in the report: Table 4 beside the paper's, orders and uncertainties, Figures 2 and 3."""

from __future__ import annotations

from typing import Any

import pandas as pd

from askwise.bench.paper.paper_results import IMAGE_ACCURACIES as ACCURACIES
from askwise.bench.paper.paper_results import IMAGE_METHODS as METHODS
from askwise.bench.paper.paper_results import IMAGES as DATA
from askwise.bench.report.figures import Panel, Panels, Picture, line_picture
from askwise.bench.report.rows import Quantity, curves
from askwise.bench.report.tables import Entry, Table, entry_of, over_budgets_and_seeds, shown, table_of
from askwise.plotting import COLORS

RANGES = {"1-10": 1, "2-10": 2}
"""Numbers of patches that are averaged over, and the first of them."""

NOTE = (
    "Mean accuracy in percent over the numbers of patches and the seeds (± over the numbers / ± over seeds). The "
    "paper's figures, in brackets, are of 1-10 patches by its caption and of 2-10 by its Appendix G, so they stand in "
    "both columns. They come from a ResNet-18; docs/images.md says which network the profile of a run takes."
)
COLUMNS = {
    "own choice": ("accuracy", 100, 1),
    "random": ("random_accuracy", 100, 1),
    "middle first": ("middle_accuracy", 100, 1),
    "all patches": ("full_accuracy", 100, 1),
    "ECE": ("ece", 100, 1),
    "entropy": ("entropy", 1, 3),
    "aleatoric": ("aleatoric", 1, 3),
    "epistemic": ("epistemic", 1, 4),
}
"""Metric, scale and digits of each column."""

FIGURES = (
    ("images-accuracy", "Accuracy by number of patches", "Figure 2, left", "accuracy", "random_accuracy", True),
    ("images-ece", "Calibration error by number of patches", "Figure 3, left", "ece", None, False),
    ("images-entropy", "Entropy of the prediction by number of patches", "Figure 3, right", "entropy", None, False),
)


def _levels(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric by number of patches, one row per (data, method, seed)."""
    return curves(rows, Quantity("images", metric), "uniform")


def image_tables(rows: pd.DataFrame) -> list[Table]:
    """Table 4, and for each set of images accuracy by patches, and orders and uncertainties."""
    accuracy = 100 * _levels(rows, "accuracy")
    found = [name for name in DATA if name in accuracy.index.get_level_values("data")]
    tables = [_table_4(accuracy, found)] if found else []
    for name in found:
        tables += [_by_patches(_of(accuracy, name), name), _orders(rows[rows["data"] == name], name)]
    return [table for table in tables if table is not None]


def _of(by_data: pd.DataFrame, name: str) -> pd.DataFrame:
    return by_data[by_data.index.get_level_values("data") == name].droplevel("data")


def _methods(index: pd.Index) -> list[str]:
    return [name for name in METHODS if name in index]


def _table_4(accuracy: pd.DataFrame, data: list[str]) -> Table | None:
    stats = {name: over_budgets_and_seeds(accuracy.loc[:, first:]) for name, first in RANGES.items()}
    means = {(d, r): stats[r]["mean"].xs(d) for d in data for r in RANGES}
    body = []
    for method in _methods(accuracy.index.get_level_values("method")):
        line = [Entry(METHODS[method])]
        for (name, over), column in means.items():
            paper = "{:.2f} ± {:.2f}".format(*ACCURACIES[method][name]) if method in ACCURACIES else ""
            if method not in column.index:
                line.append(Entry("-", paper=paper))
                continue
            own: Any = stats[over].loc[(name, method)]
            spread = f"± {shown(own['over_budgets'], 2)} / {shown(own['over_seeds'], 2)}"
            line.append(Entry(shown(own["mean"], 2), spread, paper, bool(column[method] >= column.max() - 1e-9)))
        body.append(line)
    fewest, most = stats["1-10"]["seeds"].min(), stats["1-10"]["seeds"].max()
    note = f"{NOTE} Seeds: {most if fewest == most else f'{fewest} to {most}'}."
    head = ("method", *(f"{DATA[name]}, {over}" for name, over in means))
    return table_of("Images: accuracy over the numbers of patches", "Table 4", note, head, body)


def _by_patches(accuracy: pd.DataFrame, name: str) -> Table | None:
    means: Any = accuracy.groupby("method").mean()
    spreads: Any = accuracy.groupby("method").std()
    body = [
        [Entry(METHODS[m]), *(entry_of(means.loc[m, k], spreads.loc[m, k], 1) for k in means.columns)]
        for m in _methods(means.index)
    ]
    head = ("method", *(f"{k} patch{'es' * (k > 1)}" for k in means.columns))
    note = "Accuracy in percent ± over seeds, patches chosen by the method."
    return table_of(f"{DATA[name]}: accuracy by number of patches", "beyond the paper", note, head, body)


def _orders(rows: pd.DataFrame, name: str) -> Table | None:
    found = {
        head: scale * Quantity("images", metric).of(rows).groupby(["method", "seed"])["value"].mean()
        for head, (metric, scale, _) in COLUMNS.items()
    }
    body = []
    for method in _methods(found["own choice"].index.get_level_values("method")):
        line = [Entry(METHODS[method])]
        for head, (_, _, digits) in COLUMNS.items():
            values = found[head][found[head].index.get_level_values("method") == method]
            line.append(entry_of(values.mean(), values.std(), digits))
        body.append(line)
    note = (
        "Means over 1-10 patches ± over seeds; accuracies and ECE in percent, uncertainties in nats. The same "
        "predictor sees patches of its own choice, in random order, or those in the middle first; all patches: its "
        "network on complete images."
    )
    return table_of(
        f"{DATA[name]}: orders of the patches, and uncertainty", "Figures 2 and 3", note, ("method", *COLUMNS), body
    )


def image_pictures(rows: pd.DataFrame) -> list[Picture]:
    """Figures 2 and 3, a panel per set of images."""
    if Quantity("images", "accuracy").of(rows).empty:
        return []
    both = " Solid: patches chosen by the method; dotted: in random order."
    pictures = [
        line_picture(
            name,
            f"Images: {title.lower()}",
            label,
            f"Mean over seeds.{both if dotted else ''}",
            _panels(rows, metric, dotted, title, percent),
        )
        for name, title, label, metric, dotted, percent in FIGURES
    ]
    gain = _mean(_levels(rows, "accuracy") - _levels(rows, "random_accuracy"))
    content = Panels(_by_data(gain, None), "patches", "difference in accuracy", _colors(gain), percent=True, zero=True)
    title = "Images: accuracy of the method's own choices minus that of random patches"
    drawn = line_picture("images-difference", title, "Figure 2, right", "Mean over seeds, same predictor.", content)
    return [pictures[0], drawn, *pictures[1:]]


def _panels(rows: pd.DataFrame, metric: str, dotted: str | None, title: str, percent: bool) -> Panels:
    solid = _mean(_levels(rows, metric))
    panels = _by_data(solid, None if dotted is None else _mean(_levels(rows, dotted)))
    return Panels(panels, "patches", title.split(" by ")[0].lower(), _colors(solid), percent=percent)


def _mean(by_level: pd.DataFrame) -> pd.DataFrame:
    return by_level.groupby(["data", "method"]).mean()


def _by_data(solid: pd.DataFrame, dotted: pd.DataFrame | None) -> list[Panel]:
    found = [name for name in DATA if name in solid.index.get_level_values("data")]
    solid = solid.reindex(_methods(solid.index.get_level_values("method")), level="method")  # the order of the legend
    return [Panel(DATA[name], _of(solid, name), None if dotted is None else _of(dotted, name)) for name in found]


def _colors(lines: pd.DataFrame) -> dict[str, str]:
    """The same color for a method in every figure."""
    every = dict(zip(METHODS, COLORS, strict=False))
    return {name: every[name] for name in _methods(lines.index.get_level_values("method"))}
