"""The public names of `askwise.images`: the grid of patches, and predictors, value networks and policies for them.

The names below are loaded when they are first used, so that `PatchGrid` does not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askwise.images.alternating import AlternatingTraining
    from askwise.images.dropout import PatchDropout
    from askwise.images.grid import PatchGrid
    from askwise.images.networks import small_cnn
    from askwise.images.on_policy import OnPolicyTraining
    from askwise.images.orders import BestOrder
    from askwise.images.pictures import filmstrip
    from askwise.images.predictors import PatchNetwork
    from askwise.images.similar_answers import SimilarImagePredictor, SimilarImageValue
    from askwise.images.training import train_classifier
    from askwise.images.value import PatchValueNetwork

_HOMES = {
    "AlternatingTraining": "alternating",
    "BestOrder": "orders",
    "OnPolicyTraining": "on_policy",
    "PatchDropout": "dropout",
    "PatchGrid": "grid",
    "PatchNetwork": "predictors",
    "PatchValueNetwork": "value",
    "SimilarImagePredictor": "similar_answers",
    "SimilarImageValue": "similar_answers",
    "filmstrip": "pictures",
    "small_cnn": "networks",
    "train_classifier": "training",
}

__all__ = [
    "AlternatingTraining",
    "BestOrder",
    "OnPolicyTraining",
    "PatchDropout",
    "PatchGrid",
    "PatchNetwork",
    "PatchValueNetwork",
    "SimilarImagePredictor",
    "SimilarImageValue",
    "filmstrip",
    "small_cnn",
    "train_classifier",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"askwise.images.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'askwise.vision' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
