"""The public names of `askwise.images`: the grid of patches, and predictors, value networks and policies for them.

The names below are loaded when they are first used, so that `PatchGrid` does not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askwise.images.baselines import PatchDIME, PatchGDFS, PatchVIP
    from askwise.images.dropout import PatchDropout
    from askwise.images.efficientnet import efficientnet_lite0
    from askwise.images.grid import PatchGrid
    from askwise.images.networks import resnet18, small_cnn
    from askwise.images.pictures import filmstrip
    from askwise.images.predictors import PatchNetwork
    from askwise.images.similar_answers import SimilarImagePredictor, SimilarImageValue
    from askwise.images.stages import METHODS, method
    from askwise.images.training import train_classifier
    from askwise.images.value import PatchValueNetwork

_HOMES = {
    "METHODS": "stages",
    "PatchDIME": "baselines",
    "PatchDropout": "dropout",
    "PatchGDFS": "baselines",
    "PatchGrid": "grid",
    "PatchNetwork": "predictors",
    "PatchVIP": "baselines",
    "PatchValueNetwork": "value",
    "SimilarImagePredictor": "similar_answers",
    "SimilarImageValue": "similar_answers",
    "efficientnet_lite0": "efficientnet",
    "filmstrip": "pictures",
    "method": "stages",
    "resnet18": "networks",
    "small_cnn": "networks",
    "train_classifier": "training",
}

__all__ = [
    "METHODS",
    "PatchDIME",
    "PatchDropout",
    "PatchGDFS",
    "PatchGrid",
    "PatchNetwork",
    "PatchVIP",
    "PatchValueNetwork",
    "SimilarImagePredictor",
    "SimilarImageValue",
    "efficientnet_lite0",
    "filmstrip",
    "method",
    "resnet18",
    "small_cnn",
    "train_classifier",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"askwise.images.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'askwise.vision' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
