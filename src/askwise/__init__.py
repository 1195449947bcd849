"""askwise: which feature to acquire next, for any trained classifier, and how far to trust its prediction so far.

The names below are loaded when they are first used, so that ``askwise --help`` does not wait for scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askwise.errors import AskwiseError, InvalidInput
    from askwise.model.black_box import wrap
    from askwise.model.regressors import wrap_regressor
    from askwise.persistence.saving import load
    from askwise.selector import DynamicFeatureSelector
    from askwise.table.prices import Prices

__version__ = "0.1.0"

_HOMES = {
    "AskwiseError": "askwise.errors",
    "DynamicFeatureSelector": "askwise.selector",
    "InvalidInput": "askwise.errors",
    "Prices": "askwise.table.prices",
    "load": "askwise.persistence.saving",
    "wrap": "askwise.model.black_box",
    "wrap_regressor": "askwise.model.regressors",
}
_MODULES = {
    "acquisition",
    "constraints",
    "datasets",
    "displays",
    "epistemic",
    "metrics",
    "policy",
    "predict",
    "stopping",
    "trees",
    "uncertainty",
    "vision",
}

__all__ = ["AskwiseError", "DynamicFeatureSelector", "InvalidInput", "Prices", "load", "wrap", "wrap_regressor"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"askwise.{name}")
    raise AttributeError(f"module 'askwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
