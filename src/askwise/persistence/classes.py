"""Which classes and functions a saved folder may name; nothing else is ever imported because a file says so."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from askwise.errors import InvalidInput

OWN_PARTS = (
    "acquirer",
    "acquisition",
    "assessments",
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
    "table.constraints",
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

FOREIGN = {
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "sklearn.frozen._frozen.FrozenEstimator",
    "sklearn.pipeline.Pipeline",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
    "xgboost.sklearn.XGBRFClassifier",
}
"""Classes of other packages whose attributes are written as data, because what they hold has formats of its own."""


@dataclass(frozen=True)
class Registered:
    """What a package of others adds; see `register_classes`."""

    methods: frozenset[str]
    functions: frozenset[str]
    layers: frozenset[str]


REGISTERED: dict[str, Registered] = {}
"""By the name of the package."""


class Damaged(ValueError):  # noqa: N818 - it names the state of the folder
    """What a folder holds is not what askwise writes."""


def register_classes(
    package: str, *, methods: Iterable[str] = (), functions: Iterable[str] = (), layers: Iterable[str] = ()
) -> None:
    """Let saved folders hold objects of another package, as they hold those of askwise.

    The package calls this when it is imported. From then on `save` writes its objects by their attributes, and `load`
    makes them; a folder cannot bring the package in by naming it.

    Parameters
    ----------
    package
        The full name of the package; its modules are included.
    methods
        Names of methods of its classes that another object may hold as a function.
    functions
        Full names of functions that scikit-learn estimators of the package hold.
    layers
        Full names of modules whose torch layers are treated as those of `torch.nn`.

    Examples
    --------
    >>> register_classes("my_package.policies")
    """
    REGISTERED[package] = Registered(frozenset(methods), frozenset(functions), frozenset(layers))


def registered_functions() -> set[str]:
    """Full names of the functions of registered packages."""
    return {name for found in REGISTERED.values() for name in found.functions}


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


def is_known(module: str) -> bool:
    """Whether a saved folder may name what is in a module: one of askwise, or of a package that is registered."""
    return module in own_modules() or any(f"{module}.".startswith(f"{package}.") for package in REGISTERED)


def may_be_held(kind: type, method: str) -> bool:
    """Whether a saved object may hold this method of an object of that class."""
    known = (found for package, found in REGISTERED.items() if f"{kind.__module__}.".startswith(f"{package}."))
    return any(method in found.methods for found in known)


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
        if not is_known(module) and name not in FOREIGN and given is None and not is_torch_layer(name):
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
    return is_known(kind.__module__) or name in FOREIGN or is_torch_layer(name)


def is_torch_layer(name: str) -> bool:
    """Whether a name is that of one of the layers that `torch.nn` exports, or that a registered package uses."""
    module, _, qualname = name.rpartition(".")
    registered = any(module in found.layers for found in REGISTERED.values())
    if not module.startswith("torch.nn.modules.") and not registered:
        return False
    from torch import nn

    layer = getattr(importlib.import_module(module) if registered else nn, qualname, None)
    return isinstance(layer, type) and issubclass(layer, nn.Module) and name_of(layer) == name


def is_importable(kind: Any) -> bool:
    """Whether a class or function can be found again by its full name."""
    return "<locals>" not in kind.__qualname__ and "." not in kind.__qualname__
