"""Baselines on patches, and every method of the paper's image experiments with its stages of training."""

from askwise.persistence import register_classes
from askwise_bench.image_baselines.baselines import PatchDIME, PatchGDFS, PatchVIP
from askwise_bench.image_baselines.stages import METHODS, method

__all__ = ["METHODS", "PatchDIME", "PatchGDFS", "PatchVIP", "method"]

register_classes("askwise_bench.image_baselines")
