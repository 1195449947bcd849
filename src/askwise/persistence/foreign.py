"""Objects of other packages in formats of their own: torch layers, XGBoost, LightGBM and CatBoost."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.errors import AskwiseError, InvalidInput
from askwise.model.modules import is_torch_module
from askwise.persistence.classes import Damaged, is_torch_layer, name_of

if TYPE_CHECKING:
    from askwise.persistence.rebuild import Rebuilder
    from askwise.persistence.record import Recorder

BOOSTERS = {
    "xgboost.core.Booster": "xgboost",
    "lightgbm.basic.Booster": "lightgbm",
    "catboost.core.CatBoostClassifier": "catboost",
}
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks")


def is_estimator(value: Any) -> bool:
    """Whether skops is asked to write it: an object in the manner of scikit-learn."""
    return hasattr(value, "get_params") or type(value).__module__.split(".")[0] == "sklearn"


def is_data(function: Any) -> bool:
    """Whether what is wrapped can be written: askwise's own, an estimator, or a torch module made of known layers."""
    if is_torch_module(function):
        parts = list(function.modules())
        hooked = any(getattr(part, hooks, None) for part in parts for hooks in HOOKS)
        return not hooked and all(is_torch_layer(name_of(type(part))) for part in parts)
    return type(function).__module__.startswith("askwise.") or is_estimator(function)


def record(recorder: Recorder, value: Any, path: str) -> dict[str, Any] | None:
    """The node of a tensor, a torch layer or a booster; None for anything else."""
    if is_torch_module(value):
        return _record_module(recorder, value, path)
    if type(value).__module__.split(".")[0] == "torch":
        return _record_tensor(recorder, value, path)
    library = BOOSTERS.get(name_of(type(value)))
    if library is None:
        return None
    if library == "catboost" and not value.is_fitted():
        return {"kind": "booster", "library": library, "parameters": recorder.record(value.get_params(), path)}
    content = np.frombuffer(_WRITERS[library](value), dtype=np.uint8)
    return {"kind": "booster", "library": library, "content": recorder.record_array(content, path)}


def _record_tensor(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    import torch

    if isinstance(value, torch.Size):
        return {"kind": "tuple", "items": list(value)}
    if isinstance(value, torch.dtype):
        return {"kind": "torch dtype", "name": str(value).removeprefix("torch.")}
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.is_sparse or value.is_complex():
        recorder.refuse(value, path)
    plain = value.detach().cpu()
    half = plain.dtype == torch.bfloat16
    array = (plain.view(torch.int16) if half else plain).numpy()
    return {
        "kind": "tensor",
        "array": recorder.record_array(array, path),
        "parameter": isinstance(value, torch.nn.Parameter),
        "learns": bool(value.requires_grad),
        "bfloat16": half,
    }


def _record_module(recorder: Recorder, module: Any, path: str) -> dict[str, Any]:
    if not is_data(module):
        recorder.refuse(module, path)
    hidden = {name for name in vars(module) if name.endswith("_hooks") or "_hooks_" in name} | {
        "_is_full_backward_hook",
        "_backward_pre_hooks",
    }
    kept = {name: part for name, part in vars(module).items() if name not in hidden}
    state = [[name, recorder.record(part, f"{path}.{name}")] for name, part in kept.items()]
    return {"kind": "module", "class": name_of(type(module)), "state": state}


def record_given(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    """What is given again at loading; of a torch module the weights are kept."""
    if not is_torch_module(value):
        return {"kind": "given"}
    weights = dict(value.state_dict())
    return {
        "kind": "given",
        "weights": recorder.record(weights, path),
        "training": value.training,
    }


def rebuild_tensor(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    """The tensor of a node."""
    import torch

    name = str(node["array"])
    if name not in rebuilder.tensors:  # views of one memory stay views of one memory
        rebuilder.tensors[name] = torch.from_numpy(rebuilder.array(node["array"]).copy(order="K"))
    plain = rebuilder.tensors[name]
    tensor = plain.view(torch.bfloat16) if node["bfloat16"] else plain
    if node["parameter"]:
        return torch.nn.Parameter(tensor, requires_grad=bool(node["learns"]))
    return tensor.detach().requires_grad_(bool(node["learns"]))


def rebuild_dtype(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    """A torch dtype by its name."""
    import torch

    found = getattr(torch, node["name"], None)
    if not isinstance(found, torch.dtype):
        raise Damaged(f"there is no torch dtype {node['name']!r}")
    return found


def empty_module(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    """A torch layer without its state, made without its constructor."""
    from torch import nn

    if not is_torch_layer(node["class"]):
        raise Damaged(f"{node['class']} is not a layer of torch.nn")
    module: Any = object.__new__(rebuilder.allowed.find_class(node["class"]))
    nn.Module.__init__(module)
    return module


def rebuild_given(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    """The model that the user gives, with the saved weights if it is a torch module."""
    model = rebuilder.model
    if model is None:
        raise InvalidInput(
            "The folder does not hold the wrapped model, which is a function or a torch module of your own: give it "
            "with askwise.load(folder, model=...); for a torch module, one of the same structure or a function that "
            "makes one."
        )
    if "weights" not in node:
        if not callable(model):
            raise InvalidInput(f"model must be the function that was saved; got {model!r}.")
        return model
    return _with_weights(model, rebuilder.value(node["weights"]), bool(node["training"]))


def _with_weights(model: Any, weights: dict[str, Any], training: bool) -> Any:
    import copy

    made = copy.deepcopy(model) if is_torch_module(model) else model()
    if not is_torch_module(made):
        raise InvalidInput(f"model must be a torch.nn.Module, or a function that makes one; got {made!r}.")
    try:
        made.load_state_dict(weights)
    except RuntimeError as error:
        raise InvalidInput(f"model is not of the structure of the saved torch module: {error}") from None
    return made.train(training)


def rebuild_booster(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    """A booster from the format of its own library."""
    if "parameters" in node:
        import catboost

        return catboost.CatBoostClassifier(**rebuilder.value(node["parameters"]))
    return read_booster(node["library"], rebuilder.array(node["content"]).tobytes(), "The folder")


def read_booster(library: str, content: bytes, owner: str) -> Any:
    """A booster from the content of a file of its library."""
    try:
        return _READERS[library](content)
    except ImportError:
        raise AskwiseError(
            f'{owner} holds a model of {library}, which is not installed: pip install "askwise[boosting,catboost]".'
        ) from None
    except KeyError:
        raise Damaged(f"there is no library {library!r}") from None
    except Exception as error:  # each library has errors of its own
        raise InvalidInput(f"{owner} holds no model that {library} can read ({str(error)[:200]}).") from None


def _write_catboost(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        model.save_model(str(Path(folder) / "model.cbm"), format="cbm")
        return (Path(folder) / "model.cbm").read_bytes()


def _read_xgboost(content: bytes) -> Any:
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(bytearray(content))
    return booster


def _read_lightgbm(content: bytes) -> Any:
    import lightgbm

    return lightgbm.Booster(model_str=content.decode())


def _read_catboost(content: bytes) -> Any:
    import catboost

    model = catboost.CatBoostClassifier()
    model.load_model(blob=content)
    return model


_WRITERS = {
    "xgboost": lambda booster: bytes(booster.save_raw("ubj")),
    "lightgbm": lambda booster: booster.model_to_string(num_iteration=-1).encode(),
    "catboost": _write_catboost,
}
_READERS = {"xgboost": _read_xgboost, "lightgbm": _read_lightgbm, "catboost": _read_catboost}
