"""Images as patches: the grid of patches, and predictors, value networks and policies for them.

The names below are loaded when they are first used, so that `PatchGrid` does not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askwise.vision.baselines import PatchDIME, PatchGDFS, PatchVIP
    from askwise.vision.dropout import PatchDropout
    from askwise.vision.efficientnet import efficientnet_lite0
    from askwise.vision.grid import PatchGrid
    from askwise.vision.networks import resnet18, small_cnn
    from askwise.vision.pictures import filmstrip
    from askwise.vision.predictors import PatchNetwork
    from askwise.vision.similar_answers import SimilarImagePredictor, SimilarImageValue
    from askwise.vision.stages import METHODS, method
    from askwise.vision.training import train_classifier
    from askwise.vision.value import PatchValueNetwork

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
        return getattr(importlib.import_module(f"askwise.vision.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'askwise.vision' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
