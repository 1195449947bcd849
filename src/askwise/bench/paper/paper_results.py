"""The figures that the paper prints, by our names of methods and data, so that measured ones can stand beside them.

Accuracies, risks and areas are in percent where the paper has percent. Nothing here is measured by us.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DATA = {"cirrhosis": "Cirrhosis", "diabetes130": "Diabetes", "heart": "Heart", "wine": "Wine", "yeast": "Yeast"}
"""The paper's tables by our names, in the order of its columns."""

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


@dataclass(frozen=True)
class Accuracies:
    """One method of a table of accuracy: (mean, spread over budgets) by data set, and the last column."""

    by_data: Mapping[str, tuple[float, float]]
    average: float
    rank: float


def _accuracies(cells: Sequence[tuple[float, float]], average: float, rank: float) -> Accuracies:
    return Accuracies(dict(zip(DATA, cells, strict=True)), average, rank)


VARIABLE = {
    "static-cmi": _accuracies([(72.62, 1.68), (62.63, 0.13), (65.58, 9.27), (79.17, 1.97), (31.65, 3.52)], 62.33, 6.0),
    "tabnet": _accuracies([(42.86, 7.01), (53.15, 4.02), (62.30, 8.75), (61.11, 10.67), (31.65, 4.13)], 50.21, 11.8),
    "rl-remlp": _accuracies([(70.12, 1.72), (60.35, 1.81), (75.08, 9.80), (90.28, 3.98), (37.24, 4.65)], 66.61, 2.8),
    "rl-mlp": _accuracies([(69.76, 3.23), (58.43, 0.90), (64.92, 11.12), (86.39, 3.06), (39.02, 6.44)], 63.71, 5.2),
    "cwcf": _accuracies([(49.64, 6.59), (55.56, 4.23), (70.66, 6.62), (82.50, 13.74), (32.52, 7.71)], 58.18, 8.4),
    "rl-cart": _accuracies([(63.33, 3.36), (55.17, 2.16), (61.47, 7.13), (60.00, 10.33), (29.19, 2.51)], 53.83, 11.6),
    "rl-ftree": _accuracies([(38.10, 0.10), (61.56, 2.15), (51.47, 17.52), (50.62, 9.19), (30.04, 5.02)], 46.36, 11.4),
    "vip": _accuracies([(71.43, 4.20), (61.88, 0.21), (70.49, 9.01), (86.94, 17.12), (33.53, 1.32)], 64.86, 3.8),
    "greedy-remlp": _accuracies(
        [(64.05, 6.66), (56.58, 1.70), (73.12, 9.38), (90.00, 9.73), (38.25, 6.29)], 64.40, 4.0
    ),
    "greedy-cart": _accuracies(
        [(62.86, 4.16), (58.73, 3.65), (70.00, 9.05), (83.33, 16.35), (37.07, 7.74)], 62.40, 6.4
    ),
    "invase": _accuracies([(67.03, 2.92), (49.71, 0.23), (83.11, 5.52), (81.94, 3.27), (31.62, 1.61)], 62.68, 8.0),
    "greedy-mlp": _accuracies([(60.24, 7.88), (51.85, 4.24), (65.25, 6.07), (84.45, 12.91), (37.34, 5.36)], 59.82, 8.4),
    "greedy-ftree": _accuracies(
        [(51.45, 5.79), (56.21, 0.54), (68.67, 8.69), (84.88, 8.90), (29.93, 2.78)], 58.23, 9.0
    ),
    "dime": _accuracies([(63.22, 3.34), (56.55, 0.25), (66.39, 7.96), (63.06, 3.22), (34.65, 4.83)], 56.77, 8.2),
}
"""Table 1: prices drawn at random, budgets of 5 % to 50 %."""

UNIFORM = {
    "static-cmi": _accuracies([(69.71, 2.07), (62.64, 0.26), (79.78, 3.07), (95.37, 4.17), (55.44, 5.49)], 72.59, 4.2),
    "tabnet": _accuracies([(66.80, 9.61), (53.61, 4.40), (83.97, 3.26), (86.73, 9.08), (56.08, 4.56)], 69.44, 7.0),
    "rl-remlp": _accuracies([(70.50, 3.08), (58.31, 1.01), (80.88, 2.96), (98.15, 3.67), (54.51, 1.85)], 72.47, 3.8),
    "rl-mlp": _accuracies([(72.49, 1.10), (55.01, 0.41), (82.88, 4.19), (97.84, 3.04), (54.51, 3.18)], 72.55, 4.2),
    "rl-cart": _accuracies([(67.59, 3.56), (52.60, 1.55), (78.14, 3.67), (91.36, 2.58), (57.32, 2.40)], 69.40, 7.0),
    "rl-ftree": _accuracies([(76.32, 0.93), (61.36, 0.14), (67.21, 3.29), (90.74, 3.10), (47.51, 0.59)], 68.63, 7.2),
    "cwcf": _accuracies([(74.60, 5.19), (53.66, 0.75), (76.14, 13.86), (83.33, 13.82), (51.37, 11.05)], 67.82, 8.0),
    "vip": _accuracies([(75.40, 1.33), (61.74, 0.24), (84.70, 4.41), (96.29, 4.17), (56.68, 2.50)], 74.96, 2.0),
    "greedy-remlp": _accuracies(
        [(69.58, 2.60), (54.83, 1.41), (70.86, 9.30), (84.57, 7.75), (52.41, 6.40)], 66.45, 8.6
    ),
    "dime": _accuracies([(65.87, 3.57), (55.87, 0.46), (72.50, 9.01), (79.01, 10.12), (46.35, 2.98)], 63.92, 10.2),
    "invase": _accuracies([(69.18, 1.83), (48.70, 0.28), (79.78, 2.59), (78.71, 5.55), (33.00, 2.23)], 61.87, 10.6),
    "greedy-mlp": _accuracies(
        [(67.06, 5.12), (52.56, 3.39), (79.05, 5.49), (76.54, 16.26), (49.98, 8.06)], 65.04, 10.6
    ),
    "greedy-cart": _accuracies(
        [(59.13, 5.16), (49.79, 0.61), (68.85, 8.56), (92.28, 13.01), (50.47, 7.70)], 64.10, 10.6
    ),
    "greedy-ftree": _accuracies(
        [(53.57, 7.74), (54.70, 0.73), (71.22, 0.86), (87.34, 11.12), (32.77, 4.12)], 59.92, 11.0
    ),
}
"""Appendix E: all prices equal, 1 to 10 features."""

ACCURACIES = {"variable": VARIABLE, "uniform": UNIFORM}

LAMBDA = {
    "negative": (66.60, 4.57, 0.025, 0.049),
    "zero": (66.61, 3.46, 0.009, 0.043),
    "positive": (66.60, 4.41, 0.001, 0.070),
}
"""Table 2, by the sign of lambda: accuracy and its spread, epistemic uncertainty and its spread."""

BIAS = {
    "rl-remlp": (0.883, 0.734, 1.11),
    "rl-mlp": (0.366, 0.377, 0.98),
    "vip": (0.393, 0.375, 1.04),
    "dime": (0.153, 0.208, 0.74),
    "cwcf": (0.795, 0.557, 1.21),
    "greedy-cart": (1.715, 1.453, 1.18),
}
"""Table 3, prediction bias: KL_Ref, KL_Full and their ratio, over all data."""

SELECTIVE = {
    "vip": (22.47, 15.61, 76.19, 26.18, 28.04),
    "rl-remlp": (23.81, 16.83, 74.59, 28.07, 29.76),
    "rl-mlp": (25.19, 17.09, 64.83, 30.75, 32.13),
    "dime": (27.16, 19.26, 71.50, 33.35, 34.54),
    "greedy-cart": (30.68, 23.08, 66.41, 34.10, 33.92),
}
"""Appendix E, selective prediction: AURC, E-AURC, AUROC, risk at 80 % and at 90 % coverage, in percent."""

SHIFT_SIGMAS = (0.0, 0.1, 0.2, 0.8, 2.0)
SHIFT: dict[tuple[str, int], tuple[tuple[float, float, float | None], ...]] = {
    ("greedy-cart", 30): (
        (0.72, 0.09, 0.044),
        (0.70, 0.09, 0.046),
        (0.70, 0.10, 0.047),
        (0.61, 0.15, 0.053),
        (0.55, 0.19, 0.057),
    ),
    ("greedy-cart", 70): (
        (0.77, 0.09, 0.045),
        (0.77, 0.08, 0.047),
        (0.74, 0.11, 0.051),
        (0.66, 0.17, 0.059),
        (0.57, 0.25, 0.068),
    ),
    ("rl-remlp", 30): (
        (0.74, 0.07, 0.004),
        (0.73, 0.08, 0.004),
        (0.73, 0.09, 0.005),
        (0.66, 0.12, 0.006),
        (0.59, 0.22, 0.013),
    ),
    ("rl-remlp", 70): (
        (0.78, 0.08, 0.013),
        (0.78, 0.09, 0.014),
        (0.76, 0.09, 0.015),
        (0.70, 0.18, 0.020),
        (0.60, 0.32, 0.038),
    ),
    ("dime", 30): ((0.72, 0.08, None), (0.70, 0.08, None), (0.70, 0.08, None), (0.66, 0.15, None), (0.61, 0.21, None)),
    ("dime", 70): ((0.78, 0.08, None), (0.78, 0.07, None), (0.77, 0.08, None), (0.74, 0.10, None), (0.64, 0.22, None)),
    ("vip", 30): ((0.68, 0.23, None), (0.69, 0.23, None), (0.68, 0.22, None), (0.68, 0.21, None), (0.61, 0.12, None)),
    ("vip", 70): ((0.75, 0.24, None), (0.75, 0.24, None), (0.75, 0.23, None), (0.73, 0.21, None), (0.68, 0.17, None)),
}
"""Appendix F, shift, by method and budget in percent: (accuracy, ECE, epistemic variance) for each of the sigmas."""

RISK_GAP = {
    ("greedy-cart", "wine"): (0.86, 0.86),
    ("greedy-cart", "heart"): (0.34, 0.34),
    ("greedy-cart", "cirrhosis"): (0.51, 0.55),
    ("greedy-cart", "yeast"): (-0.15, -0.18),
    ("rl-remlp", "wine"): (0.25, 0.27),
    ("rl-remlp", "heart"): (-0.26, -0.23),
    ("rl-remlp", "cirrhosis"): (0.20, 0.23),
    ("rl-remlp", "yeast"): (0.43, 0.40),
}
"""Appendix F, correlation of epistemic uncertainty with the risk gap: Pearson, Spearman."""

REPARAMETRIZATION = {
    "wine": (0.028, 0.004, 0.051, 0.040, 39.5, 0.008),
    "heart": (-0.040, -0.030, 0.053, 0.047, 47.0, 0.048),
    "cirrhosis": (-0.025, -0.023, 0.041, 0.042, 40.0, 0.706),
    "yeast": (0.012, -0.003, 0.019, 0.018, 39.5, 0.734),
    "all": (-0.006, -0.013, 0.041, 0.037, 41.5, 0.012),
}
"""Appendix F: mean gap of MLP and ReMLP, mean absolute gap of MLP and ReMLP, wins in percent, Wilcoxon p."""

REPARAMETRIZED_ERRORS = {"all": (0.66, 47.0, 38.0, 15.0, float("nan"))}
"""Appendix F: points of error saved by ReMLP; percent of subsets with a lower, a higher and the same error; no p."""

GAP_BY_BUDGET = {("wine", 30): (0.056, 0.009)}
"""Appendix F: mean gap of MLP and ReMLP by table and percent of the features."""

SUMMARY = {
    "diabetes130": (101_766, 47, 2, 0.61),
    "heart": (303, 13, 2, 0.86),
    "cirrhosis": (520, 17, 3, 0.72),
    "wine": (178, 13, 3, 0.98),
    "yeast": (1_484, 8, 10, 0.57),
}
"""Appendix G: rows, features, classes and the accuracy of logistic regression."""
