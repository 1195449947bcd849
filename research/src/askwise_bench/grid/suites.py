"""The suites: one per table or figure of the paper, and some beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from askwise_bench.grid.images import IMAGE_METHODS, IMAGE_VARIANTS, IMAGES
from askwise_bench.grid.methods import TABULAR
from askwise_bench.grid.trials import Study
from askwise_bench.studies.accuracy import accuracy, images, summary
from askwise_bench.studies.policies import l1_weights, risk_weights, unavailable
from askwise_bench.studies.rivals import rivals
from askwise_bench.studies.subsets import bias, reparametrization, risk_gap
from askwise_bench.studies.uncertainty import scatter, selective, shift

LARGE = ("diabetes130",)
"""Tables on which a model per subset, or seven value networks, would take hours."""

PRICED = ("hepatitis", "heart")
GREEDY = ["greedy-remlp", "greedy-mlp", "greedy-cart", "greedy-ftree", "greedy-remlp-individual"]
JUDGED = ["rl-remlp", "rl-mlp", "vip", "dime", "cwcf", "invase", "greedy-cart", "askwise"]
SELECTIVE = ["vip", "rl-remlp", "rl-remlp-ungated", "rl-mlp", "dime", "greedy-cart", "greedy-remlp", "askwise"]
WITH_MEMBERS = ["greedy-cart", "rl-cart", "rl-mlp", "rl-remlp", "admlp", "adremlp", "askwise"]
GAPS = ["greedy-cart", "rl-cart", "rl-remlp", "rl-remlp-ungated", "rl-mlp", "admlp", "adremlp", "askwise"]
SHIFTED = [*GAPS[:-1], "dime", "vip", "askwise"]
REPARAMETRIZED = ["rl-remlp", "rl-remlp-ungated"]
VARIANTS = ["rl-remlp-ungated", "greedy-remlp-ungated", "greedy-remlp-individual", "rl-cart-best", "greedy-cart-best"]
VARIANTS += ["greedy-ftree-best", "greedy-subset-cart", "greedy-subset-ftree", "greedy-ferl"]
"""Other settings of a method, which are compared under random and equal prices only."""

COMPARED = [name for name in TABULAR if name not in VARIANTS]
WITHOUT_A_MODEL_PER_SUBSET = [name for name in COMPARED if name != "static-best"]
"""Each row has a subset of its own there, and `StaticBest` would train a forest for every one of them."""

BESIDE_RIVALS = ("wine", "heart", "cirrhosis", "breast_cancer", "yeast", "digits", "diabetes130")
OURS = ["askwise", "askwise-forest", "askwise-boosting", "pooled", "pooled-forest", "pooled-boosting"]
RIVALS = ["gdfs", "dime", "vip", "aaco", "aaco-forest", "static-quick"]
"""Each is fitted once per split whichever model ours wraps; AACO around a forest was better than with its network."""


@dataclass(frozen=True)
class Suite:
    """What is measured (`study`) of which methods, under which prices, and where the paper has it.

    `data` are its own tables, None = those of the profile; `without` are tables of the profile that it leaves out;
    methods `on_request` are run only if they are named.
    """

    title: str
    paper: str
    study: Study
    methods: Sequence[str]
    prices: str = "uniform"
    data: Sequence[str] | None = None
    without: Sequence[str] = ()
    on_request: Sequence[str] = ()

    def chosen(self, methods: Sequence[str] | None) -> list[str]:
        """Its methods among the named ones; None = all but those on request."""
        wanted = self.methods if methods is None else methods
        return [name for name in (*self.methods, *self.on_request) if name in wanted]


SUITES: dict[str, Suite] = {
    "data": Suite("The tables", "Appendix G", summary, ["static-cmi"]),
    "variable": Suite("Accuracy under random prices", "Table 1", accuracy, TABULAR, "variable"),
    "uniform": Suite("Accuracy under equal prices", "Appendix E", accuracy, TABULAR),
    "lambda": Suite("Weight of epistemic uncertainty", "Table 2", risk_weights, GREEDY),
    "bias": Suite("Bias against the model of the subset", "Table 3, Appendix E", bias, JUDGED),
    "selective": Suite(
        "Selective prediction by and over the measures, rejection curves",
        "Appendix E",
        selective,
        SELECTIVE,
        "variable",
    ),
    "shift": Suite(
        "Noise on half of the numeric columns: accuracy, ECE, entropy, AUROC, variance", "Appendix F", shift, SHIFTED
    ),
    "risk-gap": Suite(
        "Epistemic uncertainty and the risk gap, with averages and p values",
        "Appendix F",
        risk_gap,
        GAPS,
        without=LARGE,
    ),
    "reparam": Suite(
        "Reparametrization: risk gap by data and budget, shares of better and worse subsets, p values",
        "Appendix F",
        reparametrization,
        REPARAMETRIZED,
        without=LARGE,
    ),
    "scatter": Suite("Aleatoric against epistemic uncertainty", "Appendix F", scatter, WITH_MEMBERS),
    "l1": Suite("L1 weight of the value network", "Appendix G", l1_weights, ["greedy-remlp"], without=LARGE),
    "unavailable": Suite("Unavailable features", "Section 2.1", unavailable, WITHOUT_A_MODEL_PER_SUBSET),
    "prices": Suite("Accuracy under published prices", "beyond", accuracy, COMPARED, "published", PRICED),
    "switch": Suite("One feature tells which others matter", "beyond", accuracy, COMPARED, data=("switch",)),
    "rivals": Suite(
        "Defaults and pooled answers beside rivals, equal prices",
        "beyond",
        rivals,
        [*OURS, *RIVALS],
        data=BESIDE_RIVALS,
    ),
    "rivals-priced": Suite(
        "Defaults and pooled answers beside rivals, random prices",
        "beyond",
        rivals,
        [*OURS, *RIVALS],
        "variable",
        BESIDE_RIVALS,
    ),
    "images": Suite(
        "Images patch by patch",
        "Table 4, Figures 2 and 3",
        images,
        list(IMAGE_METHODS),
        data=IMAGES,
        on_request=list(IMAGE_VARIANTS),
    ),
}
