"""From nodes back to objects: classes are found in a fixed list, and made without running their constructors."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from askwise.locking import Lock
from askwise.persistence import foreign, pandas_nodes
from askwise.persistence.classes import Allowed, Damaged, is_torch_layer, may_be_held

FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
BIT_GENERATORS = {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}
DTYPE = re.compile(r"[<>|=]?([biuf][1248]|O|U\d{1,6})")
LONGEST_RANGE = 100_000_000
LAST_LETTER = 0x10FFFF
FORMATS = {"csr", "csc", "coo", "bsr", "dia", "dok", "lil"}


class Rebuilder:
    """Makes the objects of a list of nodes, each once, when they are first referred to.

    Parameters
    ----------
    nodes, arrays, models
        What a `Recorder` wrote.
    allowed
        The classes that may be made.
    model
        What stands for a wrapped model that is not in the folder.
    """

    def __init__(
        self,
        nodes: Sequence[dict[str, Any]],
        arrays: Mapping[str, np.ndarray],
        models: Sequence[Any],
        allowed: Allowed,
        model: Any = None,
    ) -> None:
        self.nodes, self.arrays, self.models, self.allowed, self.model = nodes, arrays, models, allowed, model
        self.tensors: dict[str, Any] = {}
        self._made: dict[int, Any] = {}
        self._begun: set[int] = set()

    def value(self, given: Any) -> Any:
        """The value that a recorded one stands for."""
        if not isinstance(given, dict):
            if isinstance(given, list):
                raise Damaged("a list stands where a value was expected")
            return given
        if set(given) == {"float"}:
            return FLOATS[given["float"]]
        if set(given) != {"ref"} or type(given["ref"]) is not int or not 0 <= given["ref"] < len(self.nodes):
            raise Damaged(f"{str(given)[:60]} refers to nothing")
        return self._object(given["ref"])

    def array(self, stored: Any) -> np.ndarray:
        """A stored array of numbers, given by its name and the order of its axes."""
        name, axes = stored
        if name not in self.arrays or sorted(axes) != list(range(self.arrays[name].ndim)):
            raise Damaged(f"the array {str(name)[:60]!r} is missing")
        return self.arrays[name].transpose(np.argsort(axes).astype(int))

    def items(self, node: dict[str, Any]) -> list[Any]:
        """The values of the items of a node."""
        return [self.value(item) for item in node["items"]]

    def _object(self, number: int) -> Any:
        if number not in self._made:
            if number in self._begun:
                raise Damaged(f"object {number} holds itself")
            self._begun.add(number)
            node = self.nodes[number]
            if node["kind"] in _IN_TWO_STEPS:  # registered before it is filled: what it holds may refer to it
                make, fill = _IN_TWO_STEPS[node["kind"]]
                self._made[number] = made = make(self, node)
                fill(self, node, made)
            else:
                self._made[number] = _AT_ONCE[node["kind"]](self, node)
        return self._made[number]


def _empty_object(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    if is_torch_layer(node["class"]):
        raise Damaged(f"{node['class']} is not written as a plain object")
    return object.__new__(rebuilder.allowed.find_class(node["class"]))


def _fill_object(rebuilder: Rebuilder, node: dict[str, Any], made: Any) -> None:
    for name, part in node["state"]:
        made.__dict__[_plain_name(name)] = rebuilder.value(part)


def _fill_module(rebuilder: Rebuilder, node: dict[str, Any], made: Any) -> None:
    for name, part in node["state"]:
        value = rebuilder.value(part)
        if callable(value) or "hooks" in name:
            raise Damaged(f"a layer of torch.nn has the function {name!r} as an attribute")
        made.__dict__[_plain_name(name)] = value


def _plain_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("__"):
        raise Damaged(f"{str(name)[:60]!r} is not the name of an attribute")
    return name


def _fill_dict(rebuilder: Rebuilder, node: dict[str, Any], made: Any) -> None:
    for key, part in node["items"]:
        made[rebuilder.value(key)] = rebuilder.value(part)


def _named_tuple(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    kind = rebuilder.allowed.find_class(node["class"])
    items = rebuilder.items(node)
    if not issubclass(kind, tuple) or len(items) != len(getattr(kind, "_fields", ())):
        raise Damaged(f"{node['class']} is not a tuple of {len(items)} fields")
    return tuple.__new__(kind, items)


def _text(rebuilder: Rebuilder, node: dict[str, Any]) -> np.ndarray:
    letters = rebuilder.array(node["array"])
    if letters.dtype != np.uint32 or not letters.ndim or (letters > LAST_LETTER).any():
        raise Damaged("an array of text is damaged")
    return np.ascontiguousarray(letters).view(f"<U{letters.shape[-1]}").reshape(letters.shape[:-1])


def _objects(rebuilder: Rebuilder, node: dict[str, Any]) -> np.ndarray:
    items, shape = node["items"], [int(size) for size in node["shape"]]
    if math.prod(shape) != len(items) or min(shape, default=0) < 0:
        raise Damaged(f"an array of shape {shape} has {len(items)} items")
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = rebuilder.value(item)
    return array.reshape(shape)


def _scalar(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    return rebuilder.value(node["array"])[()]


def _dtype(rebuilder: Rebuilder, node: dict[str, Any]) -> np.dtype:
    if not isinstance(node["name"], str) or not DTYPE.fullmatch(node["name"]):
        raise Damaged(f"there is no type {str(node['name'])[:60]!r}")
    return np.dtype(node["name"])


def _sparse(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    make = sparse.csr_matrix if node["matrix"] else sparse.csr_array
    rows = make(tuple(rebuilder.value(part) for part in node["parts"]), shape=tuple(node["shape"]))
    rows.check_format(full_check=True)
    return rows.asformat(node["format"]) if node["format"] in FORMATS else rows


def _generator(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    state = rebuilder.value(node["state"])
    if state["bit_generator"] not in BIT_GENERATORS:
        raise Damaged(f"there is no generator {str(state['bit_generator'])[:60]!r}")
    if node["kind"] == "random state":
        legacy = np.random.RandomState()
        legacy.set_state(state)
        return legacy
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def _method(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    owner, name = rebuilder.value(node["of"]), node["name"]
    function = next((vars(kind)[name] for kind in type(owner).__mro__ if name in vars(kind)), None)
    if not may_be_held(type(owner), name) or not isinstance(function, FunctionType):
        raise Damaged(f"{str(name)[:60]!r} is not a method that askwise saves")
    return function.__get__(owner)


def _neighbors(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    from sklearn.neighbors import NearestNeighbors

    parameters = rebuilder.value(node["parameters"])
    if callable(parameters.get("metric")):
        raise Damaged("the metric of a search for neighbors is a function")
    return NearestNeighbors(**parameters).fit(rebuilder.value(node["points"]))


def _range(rebuilder: Rebuilder, node: dict[str, Any]) -> range:
    steps = range(*rebuilder.items(node))
    if len(steps) > LONGEST_RANGE:
        raise Damaged(f"a range of {len(steps)} numbers is too long")
    return steps


def _skops(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    if not 0 <= node["number"] < len(rebuilder.models):
        raise Damaged(f"there is no model {node['number']!r}")
    return rebuilder.models[node["number"]]


_AT_ONCE: dict[str, Callable[[Rebuilder, dict[str, Any]], Any]] = {
    "tuple": lambda rebuilder, node: tuple(rebuilder.items(node)),
    "set": lambda rebuilder, node: set(rebuilder.items(node)),
    "frozenset": lambda rebuilder, node: frozenset(rebuilder.items(node)),
    "slice": lambda rebuilder, node: slice(*rebuilder.items(node)),
    "range": _range,
    "bytes": lambda rebuilder, node: rebuilder.array(node["array"]).tobytes(),
    "lock": lambda rebuilder, node: Lock(),
    "named tuple": _named_tuple,
    "array": lambda rebuilder, node: rebuilder.array(node["array"]),
    "text": _text,
    "objects": _objects,
    "scalar": _scalar,
    "dtype": _dtype,
    "sparse": _sparse,
    "generator": _generator,
    "random state": _generator,
    "method": _method,
    "neighbors": _neighbors,
    "skops": _skops,
    "pandas": pandas_nodes.rebuild,
    "booster": foreign.rebuild_booster,
    "tensor": foreign.rebuild_tensor,
    "torch dtype": foreign.rebuild_dtype,
    "given": foreign.rebuild_given,
}
_IN_TWO_STEPS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "object": (_empty_object, _fill_object),
    "module": (foreign.empty_module, _fill_module),
    "list": (lambda rebuilder, node: [], lambda rebuilder, node, made: made.extend(rebuilder.items(node))),
    "dict": (lambda rebuilder, node: {}, _fill_dict),
    "ordered dict": (lambda rebuilder, node: OrderedDict(), _fill_dict),
}
