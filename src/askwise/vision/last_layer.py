"""A torch image classifier as features and a last linear layer; the original object is never changed."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import log_softmax

from askwise.predict.black_box import BlackBox
from askwise.predict.final_layer import unfrozen
from askwise.predict.modules import as_tensor, is_torch_module
from askwise.predict.wrapped import FrozenModel
from askwise.rows import EncodedRows

SMALLEST = 1e-12
N_PROBES = 4


class LastLayer:
    """Completed images -> `features` (n, H), and the layer ``features @ weight + bias`` that gives the logits.

    What runs is a private copy of the network's structure that shares its tensors, in evaluation mode, without its
    last linear layer. If no such layer gives the answers, and for models that are not torch modules, the features are
    log probabilities and the layer is the identity.

    Parameters
    ----------
    model
        The wrapped model, which decodes rows and has the classes.
    module
        The network to split; None for a model that is not a torch module.
    probe
        A few completed images on which the answers are compared.
    """

    def __init__(self, model: FrozenModel, module: Any, probe: EncodedRows) -> None:
        self.model = model
        self.module = module
        self._is_wrapped = module is torch_module(model.estimator)
        self.probe = probe.take(slice(N_PROBES))
        self.backbone: Any = None
        self.weight, self.bias = np.eye(len(model.classes)), np.zeros(len(model.classes))
        if module is not None:
            self._take_apart()

    def features(self, completed: EncodedRows) -> np.ndarray:
        """(n, H), in blocks of bounded size."""
        if self.backbone is not None:
            return self._run(self.backbone, completed)
        if self._is_wrapped:
            return np.log(np.maximum(self.model(completed), SMALLEST))
        return self.as_features(self._run(self.module, completed))

    def as_features(self, outputs: np.ndarray) -> np.ndarray:
        """The features by another version of the network, (n, H)."""
        if self.backbone is not None:
            return outputs
        if are_probabilities(outputs):
            return np.log(np.maximum(outputs, SMALLEST))
        return np.asarray(log_softmax(outputs, axis=1))

    def _take_apart(self) -> None:
        from torch import nn

        linears = [name for name, part in self.module.named_modules() if isinstance(part, nn.Linear)]
        self.module = shared_copy(self.module)
        if not linears or linears[-1] == "":
            return
        linear, backbone = self.module.get_submodule(linears[-1]), shared_copy(self.module)
        replace_part(backbone, linears[-1], nn.Identity())
        weight = linear.weight.detach().double().cpu().numpy().T
        bias = 0.0 if linear.bias is None else linear.bias.detach().double().cpu().numpy()
        features, logits = self._run(backbone, self.probe), self._run(self.module, self.probe)
        same_width = features.shape[1:] == weight.shape[:1] and logits.shape[1:] == self.model.classes.shape
        if same_width and np.allclose(features @ weight + bias, logits, rtol=1e-3, atol=1e-3):
            self.backbone, self.weight, self.bias = backbone, weight, bias + np.zeros(weight.shape[1])

    def _run(self, network: Any, completed: EncodedRows) -> np.ndarray:
        return run(network, self.model, completed)


def torch_module(estimator: Any) -> Any:
    """The torch module of a wrapped classifier; None if there is none."""
    box = unfrozen(estimator)
    return box.function if isinstance(box, BlackBox) and is_torch_module(box.function) else None


def run(network: Any, model: FrozenModel, completed: EncodedRows) -> np.ndarray:
    """(n, outputs) of a torch network on completed images, in blocks of bounded size."""
    import torch

    step, found = model.schema.rows_per_call, []
    with torch.no_grad():
        for start in range(0, max(len(completed), 1), step):
            images = model.table(completed.take(slice(start, start + step)))
            found.append(network(as_tensor(images, network)).float().cpu().numpy())
    return np.concatenate(found)


def are_probabilities(outputs: np.ndarray) -> bool:
    """Whether the outputs of a network are probabilities and not logits."""
    return bool((outputs >= 0).all() and np.allclose(outputs.sum(axis=1), 1, atol=1e-3))


def shared_copy(module: Any) -> Any:
    """A copy of the structure of a network, in evaluation mode; the tensors are shared with the original."""
    tensors = [*module.parameters(), *module.buffers()]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in tensors}).eval()


def replace_part(module: Any, name: str, part: Any) -> None:
    """Put `part` in the place of the submodule called `name`."""
    parent, _, own = name.rpartition(".")
    setattr(module.get_submodule(parent), own, part)
