"""The figures that the paper prints, by our names of methods and data, so that measured ones can stand beside them.

They are in ``published.csv``: table, what they are of, at which setting, figures. Accuracies, risks and areas are in
percent where the paper has percent. Nothing here is measured by us.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = {"cirrhosis": "Cirrhosis", "diabetes130": "Diabetes", "heart": "Heart", "wine": "Wine", "yeast": "Yeast"}
"""The paper's tables by our names, in the order of its columns."""

IMAGES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "imagenette": "Imagenette"}
METHODS = {
    "static-cmi": "Static CMI",
    "tabnet": "TabNet",
    "rl-remlp": "RL ReMLP*",
    "rl-mlp": "RL MLP*",
    "cwcf": "CWCF",
    "rl-cart": "RL CART*",
    "rl-ftree": "RL FTree*",
    "vip": "VIP",
    "greedy-remlp": "Greedy ReMLP*",
    "greedy-cart": "Greedy CART*",
    "invase": "INVASE",
    "greedy-mlp": "Greedy MLP*",
    "greedy-ftree": "Greedy FTree*",
    "dime": "DIME",
}
"""The methods of its two tables of accuracy, as they are printed there; * marks its proposals."""

STATIC = ("static-cmi", "tabnet")
GREEDY = ("vip", "greedy-remlp", "greedy-cart", "invase", "greedy-mlp", "greedy-ftree", "dime")
IN_FIGURES = ("greedy-cart", "rl-mlp", "rl-remlp", "vip", "dime", "cwcf")
"""The methods that its figures by data set show (Appendix E)."""

OURS_ON_IMAGES = {"cnn": "CNN*", "recnn": "ReCNN*", "adcnn": "AdCNN*", "adrecnn": "AdReCNN*"}
"""Its proposals for images."""

IMAGE_METHODS = {
    **OURS_ON_IMAGES,
    "adcnn-on-policy": "AdCNN, on its choices",
    "adcnn-alternating": "AdCNN, in turns with its choices",
    **{f"patch-{name}": f"{METHODS.get(name, name)} on images" for name in ("askwise", "dime", "vip")},
    "patch-gdfs": "GDFS on images",
    "adcnn-few": "AdCNN, few patches",
    "cnn-own-order": "CNN, its own order",
    "adcnn-own-order": "AdCNN, its own order",
    "adcnn-order": "AdCNN, trained along its order",
    "adcnn-longer": "AdCNN, longer training",
    "adcnn-resnet18": "AdCNN, ResNet-18",
}
"""Its names of the methods for images, and ours for those that it does not have."""


@dataclass(frozen=True)
class Accuracies:
    """One method of a table of accuracy: (mean, spread over budgets) by data set, and the last column."""

    by_data: Mapping[str, tuple[float, float]]
    average: float
    rank: float


def _published(name: str) -> dict[Any, tuple[float, ...]]:
    """The figures of a table by what they are of, and by the setting where there is one; NaN where none is printed."""
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.reader(file) if line[0] == name]
    return {
        ((of, int(at) if at.isdigit() else at) if at else of): tuple(float(figure or "nan") for figure in figures)
        for _, of, at, *figures in lines
    }


def _by_data(names: Iterable[str], figures: Sequence[float]) -> dict[str, tuple[float, float]]:
    return dict(zip(names, zip(figures[::2], figures[1::2], strict=True), strict=True))


def _accuracies(table: str) -> dict[str, Accuracies]:
    return {of: Accuracies(_by_data(DATA, row[:-2]), *row[-2:]) for of, row in _published(table).items()}


VARIABLE = _accuracies("variable")
"""Table 1: prices drawn at random, budgets of 5 % to 50 %."""

UNIFORM = _accuracies("uniform")
"""Appendix E: all prices equal, 1 to 10 features."""

ACCURACIES = {"variable": VARIABLE, "uniform": UNIFORM}

IMAGE_ACCURACIES = {of: _by_data(IMAGES, row) for of, row in _published("images").items()}
"""Table 4: mean accuracy and its spread over the numbers of patches: 1-10 by the caption, 2-10 by Appendix G."""

LAMBDA = _published("lambda")
"""Table 2, by the sign of lambda: accuracy and its spread, epistemic uncertainty and its spread."""

BIAS = _published("bias")
"""Table 3, prediction bias: KL_Ref, KL_Full and their ratio, over all data."""

SELECTIVE = _published("selective")
"""Appendix E, selective prediction: AURC, E-AURC, AUROC, risk at 80 % and at 90 % coverage, in percent."""

SHIFT_SIGMAS = (0.0, 0.1, 0.2, 0.8, 2.0)
SHIFT = {at: [figures[k : k + 3] for k in range(0, len(figures), 3)] for at, figures in _published("shift").items()}
"""Appendix F, shift, by method and budget in percent: (accuracy, ECE, epistemic variance) for each of the sigmas."""

RISK_GAP = _published("risk gap")
"""Appendix F, correlation of epistemic uncertainty with the risk gap, by method and data: Pearson, Spearman."""

REPARAMETRIZATION = _published("reparametrization")
"""Appendix F: mean gap of MLP and ReMLP, mean absolute gap of MLP and ReMLP, wins in percent, Wilcoxon p."""

REPARAMETRIZED_ERRORS = _published("reparametrized errors")
"""Appendix F: points of error saved by ReMLP; percent of subsets with a lower, a higher and the same error; no p."""

GAP_BY_BUDGET = _published("gap by budget")
"""Appendix F: mean gap of MLP and ReMLP by table and percent of the features."""

SUMMARY = _published("summary")
"""Appendix G: rows, features, classes and the accuracy of logistic regression."""
