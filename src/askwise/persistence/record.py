"""From a fitted object to data: a list of plain nodes, arrays by name, and the models that have formats of their own.

Every object becomes one node, however often it is referred to, so that what was shared stays shared.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from askwise.epistemic import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.locking import Lock
from askwise.model.black_box import BlackBox
from askwise.model.modules import is_torch_module
from askwise.persistence import foreign, pandas_nodes
from askwise.persistence.classes import is_importable, is_saved_as_data, may_be_held, name_of
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.stopping.rules import Stopping

EXTENDABLE = (SubsetPredictor, EpistemicEstimator, Policy, Stopping)
"""The families that users write classes of."""

PLAIN = "biuf"
"""Kinds of numbers that safetensors stores."""


class Recorder:
    """Writes down objects; `record` returns what stands for a value.

    Attributes
    ----------
    nodes
        One JSON-ready dict for each object.
    arrays
        Name -> numpy array.
    paths
        Name of an array -> where it was found.
    models
        Estimators for skops, in the order of their numbers.
    own_classes
        Full names of user-defined classes, which must be trusted to be loaded.
    asks_for
        What must be given as ``model=`` when loading, in words; None = nothing.
    """

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.paths: dict[str, str] = {}
        self._stored: dict[tuple[Any, ...], str] = {}
        self.models: list[Any] = []
        self.own_classes: set[str] = set()
        self._given: Any = None
        self._number: dict[int, int] = {}
        self._kept: list[Any] = []  # keeps ids from being used again

    @property
    def asks_for(self) -> str | None:
        if self._given is None:
            return None
        kind = "torch module" if is_torch_module(self._given) else "function"
        return f"the {kind} {getattr(self._given, '__name__', type(self._given).__name__)}"

    def record(self, value: Any, path: str) -> Any:
        """A JSON-ready value: itself, or a reference to its node."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        number = self._number.get(id(value))
        if number is None:
            number = self._number[id(value)] = len(self.nodes)
            self._kept.append(value)
            node: dict[str, Any] = {}
            self.nodes.append(node)
            node.update(self._node(value, path))
        return {"ref": number}

    def record_array(self, array: np.ndarray, path: str) -> list[Any]:
        """Store an array of numbers; returns its name and the order of its axes in memory, on which products depend.

        Several views of the same memory are stored once.
        """
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        memory = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str)
        if array.size and memory in self._stored:
            return [self._stored[memory], axes]
        name = self._stored[memory] = f"{len(self.arrays)}"
        self.paths[name] = path
        self._kept.append(array)
        self.arrays[name] = np.array(array.transpose(axes), dtype=array.dtype.newbyteorder("="), order="C")
        return [name, axes]

    def items(self, values: Any, path: str) -> list[Any]:
        """The recorded elements of a sequence."""
        return [self.record(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def attributes(self, value: Any, path: str) -> list[list[Any]]:
        """Pairs (name, recorded value) of an object's attributes, without what is computed again on demand."""
        state = value.__getstate__() or {}
        if not isinstance(state, dict):
            raise InvalidInput(f"{path} is a {type(value).__name__} with __slots__, which cannot be saved.")
        kind = type(value)
        kept = {k: v for k, v in state.items() if not isinstance(getattr(kind, k, None), cached_property)}
        return [[name, self.record(part, f"{path}.{name}")] for name, part in kept.items()]

    def _node(self, value: Any, path: str) -> dict[str, Any]:
        if value is self._given:
            return foreign.record_given(self, value, path)
        for kind, write in _BY_TYPE:
            if isinstance(value, kind) and (type(value) is kind or kind not in _EXACT):
                return write(self, value, path)
        special = foreign.record(self, value, path)
        if special is not None:
            return special
        if is_saved_as_data(type(value)):
            return self._object(value, path)
        if isinstance(value, EXTENDABLE) and is_importable(type(value)):
            self.own_classes.add(name_of(type(value)))
            return self._object(value, path)
        if not foreign.is_estimator(value):
            self.refuse(value, path)
        self.models.append(value)
        return {"kind": "skops", "number": len(self.models) - 1}

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        if isinstance(value, tuple):
            return {"kind": "named tuple", "class": name_of(type(value)), "items": self.items(value, path)}
        if isinstance(value, BlackBox) and not foreign.is_data(value.function):
            self.ask_for(value.function, path)
        return {"kind": "object", "class": name_of(type(value)), "state": self.attributes(value, path)}

    def refuse(self, value: Any, path: str) -> NoReturn:
        """The error for what cannot be written as data."""
        what = "a torch module" if is_torch_module(value) else "a function" if callable(value) else "an object"
        raise InvalidInput(
            f"{path} is {what} ({name_of(value) if isinstance(value, FunctionType) else name_of(type(value))}), which "
            "cannot be saved without pickle. Use classes of askwise, scikit-learn estimators, numbers, text and arrays "
            "instead. Only the wrapped model may be a function: it is given again with askwise.load(folder, model=...)."
        )

    def ask_for(self, function: Any, path: str) -> None:
        """Note that the wrapped function or module is not written, and must be given when the folder is loaded."""
        if self._given is not None and self._given is not function:
            raise InvalidInput(
                f"{path}.function is a second function or module beside the wrapped model, and only one can be given "
                "with askwise.load(folder, model=...). Use members that can be saved: scikit-learn estimators, "
                "XGBoost, LightGBM, CatBoost or layers of torch.nn."
            )
        self._given = function


def _array(recorder: Recorder, array: np.ndarray, path: str) -> dict[str, Any]:
    kind = array.dtype.kind
    if type(array) is not np.ndarray:
        raise InvalidInput(f"{path} is a {type(array).__name__}, which cannot be saved; use a plain numpy array.")
    if kind == "O":
        items = recorder.items(array.ravel().tolist(), path)
        return {"kind": "objects", "shape": list(array.shape), "items": items}
    if kind == "U" and array.dtype.itemsize:
        letters = np.array(array, dtype=array.dtype.newbyteorder("="), order="C").view(np.uint32)
        return {"kind": "text", "array": recorder.record_array(letters.reshape(*array.shape, -1), path)}
    if kind not in PLAIN or array.dtype.itemsize > 8:
        raise InvalidInput(f"{path} is an array of {array.dtype}, which cannot be saved; use numbers, text or objects.")
    return {"kind": "array", "array": recorder.record_array(array, path)}


def _scalar(recorder: Recorder, value: np.generic, path: str) -> dict[str, Any]:
    return {"kind": "scalar", "array": recorder.record(np.asarray(value), path)}


def _dict(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    pairs = [[recorder.record(k, f"{path} key"), recorder.record(v, f"{path}[{k!r}]")] for k, v in value.items()]
    return {"kind": "ordered dict" if isinstance(value, OrderedDict) else "dict", "items": pairs}


def _sequence(kind: str) -> Callable[[Recorder, Any, str], dict[str, Any]]:
    def write(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
        ordered = value if kind in ("list", "tuple") else sorted(value, key=repr)
        return {"kind": kind, "items": recorder.items(ordered, path)}

    return write


def _steps(recorder: Recorder, value: slice | range, path: str) -> dict[str, Any]:
    kind = "slice" if isinstance(value, slice) else "range"
    return {"kind": kind, "items": recorder.items((value.start, value.stop, value.step), path)}


def _bytes(recorder: Recorder, value: bytes, path: str) -> dict[str, Any]:
    return {"kind": "bytes", "array": recorder.record_array(np.frombuffer(value, dtype=np.uint8), path)}


def _sparse(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    rows = sparse.csr_array(value)
    parts = [recorder.record(part, path) for part in (rows.data, rows.indices, rows.indptr)]
    names = {"matrix": isinstance(value, sparse.spmatrix), "format": value.format}
    return {"kind": "sparse", **names, "shape": list(rows.shape), "parts": parts}


def _generator(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, np.random.RandomState):
        return {"kind": "random state", "state": recorder.record(value.get_state(legacy=False), path)}
    return {"kind": "generator", "state": recorder.record(value.bit_generator.state, path)}


def _method(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    if not may_be_held(type(value.__self__), value.__name__):
        recorder.refuse(value, path)
    return {"kind": "method", "name": value.__name__, "of": recorder.record(value.__self__, path)}


def _neighbors(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    """The search tree is built again from the points, which gives the same one."""
    return {
        "kind": "neighbors",
        "points": recorder.record(value._fit_X, path),
        "parameters": recorder.record(value.get_params(), path),
    }


_BY_TYPE: list[tuple[Any, Callable[[Recorder, Any, str], dict[str, Any]]]] = [
    (list, _sequence("list")),
    (tuple, _sequence("tuple")),
    (dict, _dict),
    (OrderedDict, _dict),
    (defaultdict, _dict),
    (set, _sequence("set")),
    (frozenset, _sequence("frozenset")),
    (bytes, _bytes),
    (slice, _steps),
    (range, _steps),
    (np.ndarray, _array),
    (np.generic, _scalar),
    (np.random.Generator, _generator),
    (np.random.RandomState, _generator),
    (sparse.spmatrix, _sparse),
    (sparse.sparray, _sparse),
    (MethodType, _method),
    (Lock, lambda recorder, value, path: {"kind": "lock"}),
    (NearestNeighbors, _neighbors),
    (np.dtype, lambda recorder, value, path: {"kind": "dtype", "name": _dtype_name(value, path)}),
    (pd.api.extensions.ExtensionDtype, pandas_nodes.record),
    (pd.Index, pandas_nodes.record),
    (pd.Series, pandas_nodes.record),
    (pd.DataFrame, pandas_nodes.record),
    (type(pd.NA), pandas_nodes.record),
]
_EXACT = (list, tuple, dict, OrderedDict, set, frozenset, bytes)


def _dtype_name(dtype: np.dtype, path: str) -> str:
    if dtype.kind not in "biufOU" or dtype.names is not None:
        raise InvalidInput(f"{path} is the type {dtype}, which cannot be saved.")
    return dtype.str
