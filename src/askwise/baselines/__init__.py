"""Baselines: published methods, each with its own predictor and policy, run through the same acquisition loop."""

from askwise.baselines.aaco import AACO
from askwise.baselines.base import Baseline
from askwise.baselines.best_subset import StaticBest
from askwise.baselines.cwcf import CWCF
from askwise.baselines.dime import DIME
from askwise.baselines.eddi import EDDI
from askwise.baselines.gdfs import GDFS
from askwise.baselines.invase import INVASE
from askwise.baselines.opportunistic import Opportunistic
from askwise.baselines.reference import ExactOracle, FullInformation, RandomOrder
from askwise.baselines.static import StaticCMI
from askwise.baselines.tabnet import TabNet
from askwise.baselines.vip import VIP

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
