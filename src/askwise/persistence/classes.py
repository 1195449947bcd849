"""Which classes and functions a saved folder may name; nothing else is ever imported because a file says so."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from askwise.errors import InvalidInput

OWN_PARTS = (
    "acquirer",
    "acquisition",
    "assessments",
    "baselines",
    "calibrate",
    "case",
    "datasets.dataset",
    "datasets.gaussian",
    "datasets.switch",
    "datasets.synthetic",
    "epistemic",
    "explain",
    "images",
    "locking",
    "model",
    "networks",
    "policy",
    "predict",
    "reference_models",
    "selector",
    "stopping",
    "table.columns",
    "table.prices",
    "table.rows",
    "table.schema",
    "trajectory",
    "trees",
    "value",
)
"""The parts of askwise whose classes are state; those that read or write files are not among them."""

MOVED = {
    "askwise.acquire.stopping.pays_off.ExpectedSaving": "askwise.policy.expected_saving.ExpectedSaving",
    "askwise.acquire.acquisition.": "askwise.acquisition.",
    "askwise.acquire.calibration.": "askwise.calibrate.",
    "askwise.acquire.case.": "askwise.case.",
    "askwise.acquire.flowchart.": "askwise.explain.",
    "askwise.acquire.policies.": "askwise.policy.",
    "askwise.acquire.stopping.": "askwise.stopping.",
    "askwise.columns.": "askwise.table.columns.",
    "askwise.predict.black_box.": "askwise.model.black_box.",
    "askwise.predict.boosting.": "askwise.model.fast.boosting.",
    "askwise.predict.file_models.": "askwise.model.file_models.",
    "askwise.predict.final_layer.": "askwise.model.final_layer.",
    "askwise.predict.modules.": "askwise.model.modules.",
    "askwise.predict.neighbors.": "askwise.predict.similarity.",
    "askwise.predict.pool_inputs.": "askwise.model.fast.pool_inputs.",
    "askwise.predict.pool_trees.": "askwise.model.fast.pool_trees.",
    "askwise.predict.stacked.": "askwise.model.stacked.",
    "askwise.predict.wrapped.": "askwise.model.wrapped.",
    "askwise.prices.": "askwise.table.prices.",
    "askwise.rows.": "askwise.table.rows.",
    "askwise.schema.": "askwise.table.schema.",
    "askwise.vision.": "askwise.images.",
}
"""Beginnings of full names in folders up to format 6, and what they are now; the first that fits is taken."""

METHODS = {
    "_all_alike",
    "_answer",
    "_gain",
    "_q",
    "_worth",
    "importance",
    "predict",
    "proba",
    "selection_probability",
}
"""Methods of askwise's own classes that another object may hold as a function, as policies of baselines do."""

FOREIGN = {
    "lightgbm.sklearn.LGBMClassifier",
    "sklearn.frozen._frozen.FrozenEstimator",
    "sklearn.pipeline.Pipeline",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRFClassifier",
}
"""Classes of other packages whose attributes are written as data, because what they hold has formats of its own."""


TABNET = ("pytorch_tabnet.sparsemax", "pytorch_tabnet.tab_network")


class Damaged(ValueError):  # noqa: N818 - it names the state of the folder
    """What a folder holds is not what askwise writes."""


def name_of(thing: Any) -> str:
    """The full name of a class or function."""
    return f"{thing.__module__}.{thing.__qualname__}"


def present_name(name: str) -> str:
    """The full name of a class now, of one that a folder names."""
    for old, new in MOVED.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


@cache
def own_modules() -> frozenset[str]:
    """The modules of askwise that a saved folder may name."""
    found = [module.name for module in pkgutil.walk_packages([str(Path(__file__).parents[1])], "askwise.")]
    parts = tuple(f"askwise.{part}." for part in OWN_PARTS)
    return frozenset(name for name in found if f"{name}.".startswith(parts))


class Allowed:
    """Finds classes by name: those of askwise, a few of other packages, and those that the user trusts.

    Parameters
    ----------
    trusted
        Further classes, or their full names such as ``"my_package.MyPolicy"``.
    """

    def __init__(self, trusted: Iterable[Any] = ()) -> None:
        if isinstance(trusted, str) or not isinstance(trusted, Iterable):
            raise InvalidInput(f"trusted must be a list of classes or of their full names; got {trusted!r}.")
        trusted = list(trusted)
        for given in trusted:
            if not isinstance(given, str) and not hasattr(given, "__qualname__"):
                raise InvalidInput(f"trusted must be a list of classes or of their full names; it holds {given!r}.")
        self._given: Mapping[str, Any] = {t if isinstance(t, str) else name_of(t): t for t in trusted}

    @property
    def names(self) -> list[str]:
        """The full names of the classes that the user trusts."""
        return sorted(self._given)

    def find_class(self, name: str) -> type:
        """The class of that full name; an error if it is not allowed."""
        found = self._find(name)
        if not isinstance(found, type):
            raise Damaged(f"{name} is not a class")
        return found

    def _find(self, name: str) -> Any:
        given = self._given.get(name)
        name = present_name(name)
        module, _, qualname = name.rpartition(".")
        if isinstance(given, type):
            return given
        if module not in own_modules() and name not in FOREIGN and given is None and not is_torch_layer(name):
            raise InvalidInput(
                f"The folder holds an object of {name}, which is not one of askwise's own classes. If you trust it, "
                f"name it: askwise.load(folder, trusted=[{name!r}])."
            )
        found = getattr(importlib.import_module(module), qualname, None)
        if isinstance(found, type) and name_of(found) != name:
            raise Damaged(f"{name} is another name of {name_of(found)}")
        return found


def is_saved_as_data(kind: type) -> bool:
    """Whether objects of a class are written by their attributes."""
    name = name_of(kind)
    return kind.__module__ in own_modules() or name in FOREIGN or is_torch_layer(name)


def is_torch_layer(name: str) -> bool:
    """Whether a name is that of one of the layers that `torch.nn` exports, or of one of TabNet's."""
    module, _, qualname = name.rpartition(".")
    if not module.startswith("torch.nn.modules.") and module not in TABNET:
        return False
    from torch import nn

    layer = getattr(nn if module not in TABNET else importlib.import_module(module), qualname, None)
    return isinstance(layer, type) and issubclass(layer, nn.Module) and name_of(layer) == name


def is_importable(kind: Any) -> bool:
    """Whether a class or function can be found again by its full name."""
    return "<locals>" not in kind.__qualname__ and "." not in kind.__qualname__
