"""Adapters R_psi: mask-dependent changes of a frozen model, initialized to no change and trained with torch."""

from __future__ import annotations

import copy
from typing import Any, Protocol, Self

import numpy as np
from scipy.special import softmax

from askwise.errors import InvalidInput
from askwise.model.final_layer import torch_module
from askwise.model.modules import FrozenModule, linear_layers
from askwise.model.parts import unfrozen
from askwise.model.wrapped import FrozenModel
from askwise.networks import Layers, relu_network
from askwise.table.rows import EncodedRows


class LinearLayer(Protocol):
    """What `ScaleAndShift` changes: a linear layer, and its inputs for the given rows."""

    weight: np.ndarray  # (H, C)
    bias: np.ndarray  # (C,)

    def features(self, rows: Any, /) -> np.ndarray: ...

    def around(self, model: FrozenModel) -> Self: ...


class Adapter:
    """A change of the model that depends only on the mask; `inputs` is what can be computed before training."""

    network: Any

    def inputs(self, completed: Any) -> np.ndarray:
        """The output of the frozen part, (n, ...), for completed rows or other inputs of the layer."""
        raise NotImplementedError

    def build(self, n_columns: int, hidden: int) -> list[Any]:
        """Create the torch parameters, initialized to no change, and return them."""
        raise NotImplementedError

    def logits(self, inputs: Any, mask: Any) -> Any:
        """Torch logits of the changed model."""
        raise NotImplementedError

    def freeze(self) -> None:
        """Keep what inference needs after training."""

    def around(self, model: FrozenModel) -> Self:
        """The same change of another version of the model, such as one under a dropout mask."""
        raise NotImplementedError

    def proba(self, inputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """(n, C) answers of the changed model."""
        raise NotImplementedError


class ScaleAndShift(Adapter):
    r"""Scale the inputs of the last layer and shift its logits: :math:`((1 + s_S) \circ \phi)\, W + b + t_S`.

    With `Output` as the layer, :math:`\phi` are log probabilities and :math:`W` the identity, which works for every
    black box. Inference uses numpy only.
    """

    def __init__(self, layer: LinearLayer) -> None:
        self.layer = layer

    def inputs(self, completed: Any) -> np.ndarray:
        return self.layer.features(completed)

    def build(self, n_columns: int, hidden: int) -> list[Any]:
        import torch

        self._weight = torch.as_tensor(self.layer.weight, dtype=torch.float32)
        self._bias = torch.as_tensor(self.layer.bias, dtype=torch.float32)
        self.network = mask_network(n_columns, hidden, sum(self.layer.weight.shape))
        return list(self.network.parameters())

    def logits(self, inputs: Any, mask: Any) -> Any:
        change = self.network(mask)
        width = inputs.shape[1]
        return (inputs * (1 + change[:, :width])) @ self._weight + self._bias + change[:, width:]

    def freeze(self) -> None:
        self.psi = Layers.from_torch(self.network, "relu")
        del self.network, self._weight, self._bias

    def around(self, model: FrozenModel) -> Self:
        other = copy.copy(self)
        other.layer = self.layer.around(model)
        return other

    def proba(self, inputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
        change = self.psi(mask.astype(float))
        width = inputs.shape[1]
        scaled = inputs * (1 + change[:, :width])
        return np.asarray(softmax(scaled @ self.layer.weight + self.layer.bias + change[:, width:], axis=1))


class LowRank(Adapter):
    r"""Low-rank updates of every linear layer of a torch module: :math:`W_l + B_l\, \mathrm{diag}(g_l(S))\, A_l`.

    The coefficients :math:`g_l` come from the mask; :math:`B_l` starts at zero. The module runs on a private copy (see
    `FrozenModule`), so that the original is never changed.
    """

    def __init__(self, model: FrozenModel, rank: int) -> None:
        module = torch_module(model.estimator)
        if module is None or not linear_layers(module):
            given = type(unfrozen(model.estimator)).__name__
            raise InvalidInput(
                f'adaptation="low-rank" needs a torch.nn.Module with linear layers; got {given}. Use '
                '"last-layer" (also MLPClassifier, LogisticRegression), "output" or "conditional" (any model).'
            )
        self.model = model
        self.rank = rank

    @property
    def module(self) -> FrozenModule:
        """The wrapped module."""
        module: FrozenModule = unfrozen(self.model.estimator).frozen_module
        return module

    def around(self, model: FrozenModel) -> Self:
        other = copy.copy(self)
        other.model = model
        return other

    def inputs(self, completed: EncodedRows) -> np.ndarray:
        return np.array(self.model.table(completed), dtype=float)

    def build(self, n_columns: int, hidden: int) -> list[Any]:
        import torch

        self._down, self._up = {}, {}
        for name, part in linear_layers(self.module.module).items():
            down = torch.randn(self.rank, part.in_features, dtype=torch.float32) / part.in_features**0.5
            up = torch.zeros(part.out_features, self.rank, dtype=torch.float32)
            self._down[name], self._up[name] = down.requires_grad_(), up.requires_grad_()
        self.network = mask_network(n_columns, hidden, self.rank * len(self._up), start_at_zero=False)
        return [*self._down.values(), *self._up.values(), *self.network.parameters()]

    def logits(self, inputs: Any, mask: Any) -> Any:
        coefficients = dict(zip(self._down, self.network(mask).split(self.rank, dim=1), strict=True))

        def update(name: str, _: Any, given: Any, output: Any) -> Any:
            if name not in coefficients:
                return output
            change = ((given.float() @ self._down[name].T) * coefficients[name]) @ self._up[name].T
            return output + change.to(output.dtype)

        return self.module.logits(inputs, update).float()

    def proba(self, inputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            logits = self.logits(torch.as_tensor(inputs), torch.as_tensor(mask, dtype=torch.float32))
        return np.asarray(torch.softmax(logits.double(), dim=1).cpu().numpy())


def mask_network(n_columns: int, hidden: int, n_outputs: int, start_at_zero: bool = True) -> Any:
    """A two-layer torch network of the mask."""
    from torch import nn

    network = relu_network([n_columns, hidden, n_outputs])
    if start_at_zero:
        nn.init.zeros_(network[2].weight)
        nn.init.zeros_(network[2].bias)
    return network
