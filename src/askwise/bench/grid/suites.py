"""The suites: one per table or figure of the paper, and some beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.bench.grid.methods import METHODS
from askwise.bench.grid.trials import Study
from askwise.bench.studies.accuracy import by_budget
from askwise.bench.studies.policies import l1_sweep, lambda_sweep, unavailable
from askwise.bench.studies.subsets import bias, reparam, risk_gap
from askwise.bench.studies.summary import describe
from askwise.bench.studies.uncertainty import scatter, selective, shift

LARGE = ("diabetes130",)
"""Where a model per subset, or seven value networks, would take hours."""

PRICED = ("hepatitis", "heart")
GREEDY = ["greedy-remlp", "greedy-mlp", "greedy-cart", "greedy-ftree"]
JUDGED = ["rl-remlp", "rl-mlp", "vip", "dime", "cwcf", "invase", "greedy-cart", "askwise"]
SELECTIVE = ["vip", "rl-remlp", "rl-mlp", "dime", "greedy-cart", "greedy-remlp", "askwise"]
SHIFTED = ["greedy-cart", "rl-cart", "rl-remlp", "rl-mlp", "admlp", "adremlp", "dime", "vip", "askwise"]
WITH_MEMBERS = ["greedy-cart", "rl-cart", "rl-mlp", "rl-remlp", "admlp", "adremlp", "askwise"]
GAPS = ["greedy-cart", "rl-remlp", "rl-mlp", "admlp", "askwise"]
REPARAMETRIZED = ["rl-remlp"]
WITHOUT_A_MODEL_PER_SUBSET = [name for name in METHODS if name != "static-best"]
"""Where each row has a subset of its own, a forest for each would take longer than all else together."""


@dataclass(frozen=True)
class Suite:
    """What is measured, of which methods, on which data.

    Attributes
    ----------
    title
        What the suite shows.
    paper
        The table or figure of the paper.
    study
        What is measured of a fitted method.
    methods
        Names of methods.
    prices
        Prices of the tasks.
    data
        Tables of its own; None = those of the profile.
    without
        Tables of the profile that are left out.
    """

    title: str
    paper: str
    study: Study
    methods: Sequence[str]
    prices: str = "uniform"
    data: Sequence[str] | None = None
    without: Sequence[str] = ()


SUITES: dict[str, Suite] = {
    "data": Suite("The tables", "Appendix G", describe, ["static-cmi"]),
    "variable": Suite("Accuracy under random prices", "Table 1", by_budget, list(METHODS), "variable"),
    "uniform": Suite("Accuracy under equal prices", "Appendix E", by_budget, list(METHODS)),
    "lambda": Suite("Weight of epistemic uncertainty", "Table 2", lambda_sweep, GREEDY),
    "bias": Suite("Bias against the model of the subset", "Table 3, Appendix E", bias, JUDGED),
    "selective": Suite("Selective prediction and rejection curves", "Appendix E", selective, SELECTIVE, "variable"),
    "shift": Suite("Noise on half of the numeric columns", "Appendix F", shift, SHIFTED),
    "risk-gap": Suite("Epistemic uncertainty and the risk gap", "Appendix F", risk_gap, GAPS, without=LARGE),
    "reparam": Suite("Reparametrization and the risk gap", "Appendix F", reparam, REPARAMETRIZED, without=LARGE),
    "scatter": Suite("Aleatoric against epistemic uncertainty", "Appendix F", scatter, WITH_MEMBERS),
    "l1": Suite("L1 weight of the value network", "Appendix G", l1_sweep, ["greedy-remlp"], without=LARGE),
    "unavailable": Suite("Features that cannot be had", "Section 2.1", unavailable, WITHOUT_A_MODEL_PER_SUBSET),
    "prices": Suite("Accuracy under published prices", "beyond", by_budget, list(METHODS), "published", PRICED),
    "switch": Suite("One feature says which others matter", "beyond", by_budget, list(METHODS), data=("switch",)),
}
