"""Baselines: published methods, each with its own predictor and policy, run through the same acquisition loop."""

from askwise.persistence import register_classes
from askwise_bench.baselines.aaco import AACO
from askwise_bench.baselines.base import Baseline
from askwise_bench.baselines.best_subset import StaticBest
from askwise_bench.baselines.cwcf import CWCF
from askwise_bench.baselines.dime import DIME
from askwise_bench.baselines.eddi import EDDI
from askwise_bench.baselines.gdfs import GDFS
from askwise_bench.baselines.invase import INVASE
from askwise_bench.baselines.opportunistic import Opportunistic
from askwise_bench.baselines.reference import ExactOracle, FullInformation, RandomOrder
from askwise_bench.baselines.static import StaticCMI
from askwise_bench.baselines.tabnet import TabNet
from askwise_bench.baselines.vip import VIP

__all__ = [
    "AACO",
    "CWCF",
    "DIME",
    "EDDI",
    "GDFS",
    "INVASE",
    "VIP",
    "Baseline",
    "ExactOracle",
    "FullInformation",
    "Opportunistic",
    "RandomOrder",
    "StaticBest",
    "StaticCMI",
    "TabNet",
]

register_classes(
    "askwise_bench.baselines",
    methods=(
        "_all_alike",
        "_answer",
        "_gain",
        "_q",
        "_worth",
        "importance",
        "predict",
        "proba",
        "selection_probability",
    ),
    functions=("askwise_bench.baselines.static._with_squares",),
    layers=("pytorch_tabnet.sparsemax", "pytorch_tabnet.tab_network"),
)
