"""A torch module as a function of rows; it runs on a private copy, so that the user's own object is never changed."""

from __future__ import annotations

import copy
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from askwise.errors import AskwiseWarning, InvalidInput

OUTPUTS = ("auto", "logits", "probabilities")
SUMS_TO_ONE_WITHIN = 1e-3
"""Outputs whose rows sum to 1 this closely are probabilities; half precision loses about as much."""
ROWS_TO_JUDGE_ONE_OUTPUT = 20
"""Fewer outputs that all lie between 0 and 1 could be logits by chance."""
SMALLEST_DOUBLE = 1e-300
"""Keeps the logarithm of a probability of 0 finite without moving any other; near the smallest double."""

# (name of a layer, the layer, its input, its output) -> the output to continue with
Change = Callable[[str, Any, Any, Any], Any]

# All threads share one copy, so changes for a single pass are stored per thread and not on the copy.
_PASS = threading.local()
_DECIDING = threading.Lock()


class FrozenModule:
    """A torch module that always runs in evaluation mode, whatever the mode of the original.

    What runs is a copy of its structure. The copy's tensors share memory with the original's: further training of the
    original takes effect, and running the copy changes neither its mode, hooks, gradients nor running statistics.

    Parameters
    ----------
    module
        The `torch.nn.Module`.
    n_classes
        Number of classes. For two, the module may return a single number per row, for the second class.
    outputs
        ``"logits"``, ``"probabilities"``, or ``"auto"``: decided once, by the first rows predicted.
    """

    def __init__(self, module: Any, n_classes: int, outputs: str = "auto") -> None:
        self.module = module
        self.n_classes = n_classes
        self.outputs = outputs
        self.dropout: DropoutMasks | None = None
        self._copied: tuple[list[Any], Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_copied": None}

    def with_dropout(self, masks: DropoutMasks) -> FrozenModule:
        """The same module under fixed dropout masks."""
        self._current_copy()
        other = copy.copy(self)
        other.dropout, other._copied = masks, self._copied  # they share one private copy
        return other

    def logits(self, X: Any, change: Change | None = None) -> Any:
        """(n, C) logits as a tensor; `change` may replace the output of each linear and dropout layer in this pass."""
        output = self._run(X, change)
        n_rows, n_columns = len(X) * self._n_copies, 1 if output.ndim == 1 else output.shape[-1]
        if output.ndim not in (1, 2) or len(output) != n_rows or (n_columns == 1 and self.n_classes != 2):
            raise InvalidInput(
                "The wrapped module must return logits of shape (rows, classes), or one logit per row for two classes; "
                f"got {tuple(output.shape)} for {n_rows} rows and {self.n_classes} classes."
            )
        output = output.reshape(n_rows, n_columns)
        self._decide(output)
        if self.outputs == "logits":
            return _with_first_class(output, 0 * output)
        if not are_probabilities(output):
            raise InvalidInput(
                'The wrapped torch module must return probabilities >= 0 that sum to one (outputs="probabilities"); '
                "for some rows it does not."
            )
        return _with_first_class(output, 1 - output).double().clamp(min=SMALLEST_DOUBLE).log()

    def proba(self, X: Any) -> np.ndarray:
        """(n, C) class probabilities; with k dropout masks, all rows under the first mask come first: (k * n, C)."""
        import torch

        with torch.no_grad():
            return np.asarray(torch.softmax(self.logits(X).double(), dim=1).cpu().numpy())

    def layer_inputs(self, X: Any, name: str, change: Change | None = None) -> np.ndarray:
        """The inputs of the layer called `name`, (n, H); `change` as in `logits`."""
        import torch

        seen: dict[str, Any] = {}

        def remember(layer: str, part: Any, given: Any, output: Any) -> Any:
            seen[layer] = given
            return output if change is None else change(layer, part, given, output)

        with torch.no_grad():
            self._run(X, remember)
        if name not in seen:
            raise InvalidInput(f"The layer {name!r} of the wrapped module is not used in its predictions.")
        return np.asarray(seen[name].double().cpu().numpy())

    @property
    def _n_copies(self) -> int:
        return 1 if self.dropout is None else self.dropout.n_copies

    def _run(self, X: Any, change: Change | None) -> Any:
        copied = self._current_copy()
        rows = as_tensor(X, copied)
        if self._n_copies > 1:
            rows = rows.repeat(self._n_copies, *[1] * (rows.ndim - 1))
        thin = [] if self.dropout is None else [self.dropout.one_pass()]
        outside = getattr(_PASS, "changes", ())  # a module may itself call askwise
        _PASS.changes = thin + ([] if change is None else [change])
        try:
            return copied(rows)
        finally:
            _PASS.changes = outside

    def _current_copy(self) -> Any:
        """The private copy; renewed if the module's tensors have been replaced, as by ``module.double()``."""
        now = [(tensor.data_ptr(), tensor.dtype, tensor.shape) for tensor in _tensors(self.module)]
        if self._copied is None or self._copied[0] != now:
            self._copied = (now, _private_copy(self.module))
        return self._copied[1]

    def _decide(self, output: Any) -> None:
        if self.outputs != "auto":
            return
        with _DECIDING:
            if self.outputs == "auto":
                # Single logits of a few rows may lie in [0, 1] by chance.
                enough = output.shape[1] > 1 or len(output) >= ROWS_TO_JUDGE_ONE_OUTPUT
                self.outputs = "probabilities" if enough and are_probabilities(output) else "logits"
                if self.outputs == "probabilities":
                    warnings.warn(
                        "The wrapped torch module returns probabilities, not logits; they are used as they are. Say so "
                        'with askwise.wrap(module, classes, outputs="probabilities"), or outputs="logits" if they '
                        "are logits.",
                        AskwiseWarning,
                        stacklevel=2,
                    )


class DropoutMasks:
    """Fixed masks for the dropout layers of a module, which give `n_samples` networks.

    A mask belongs to a network, not to a row or a call: a row's answer does not depend on its batch, and each
    network stays the same at every step of an acquisition.
    """

    def __init__(self, n_samples: int, seed: int) -> None:
        self.n_samples = n_samples
        self.seed = seed
        self.which = slice(None)
        self.n_copies = n_samples
        self._masks: dict[Any, Any] = {}

    def only(self, member: int) -> DropoutMasks:
        """The masks of one of the networks."""
        other = copy.copy(self)
        other.which, other.n_copies = slice(member, member + 1), 1
        return other

    def one_pass(self) -> Change:
        """What dropout does in one pass over the rows, repeated for each network."""
        from torch.nn.modules.dropout import _DropoutNd

        calls: Counter[str] = Counter()

        def thin(name: str, part: Any, given: Any, output: Any) -> Any:
            if not isinstance(part, _DropoutNd):
                return output
            calls[name] += 1  # a layer that is used twice drops different units each time
            by_network = output.reshape(self.n_copies, -1, *output.shape[1:])
            kept = self._mask(name, calls[name], part, output.shape[1:])[self.which]
            scale = kept.to(output) / max(1 - part.p, 1e-9)
            return (by_network * scale).reshape(output.shape)

        return thin

    def _mask(self, name: str, call: int, part: Any, shape: Any) -> Any:
        import torch

        key = (name, call, part.p, tuple(shape))
        if key not in self._masks:
            per_channel = type(part).__name__ in ("Dropout1d", "Dropout2d", "Dropout3d") and len(shape) > 1
            size = (shape[0], *(1 for _ in shape[1:])) if per_channel else shape
            rng = np.random.default_rng([self.seed, call, *name.encode()])
            self._masks[key] = torch.as_tensor(rng.random((self.n_samples, 1, *size)) >= part.p)
        return self._masks[key]


def is_torch_module(thing: Any) -> bool:
    """Whether `thing` is a `torch.nn.Module`, without importing torch."""
    torch = sys.modules.get("torch")  # a module cannot exist before torch is imported
    return torch is not None and isinstance(thing, torch.nn.Module)


def as_tensor(X: Any, module: Any) -> Any:
    """Rows as a tensor of the type and on the device of the module's own numbers."""
    import torch

    parameter = next(module.parameters(), torch.zeros(1))
    if isinstance(X, torch.Tensor):
        return X.to(dtype=parameter.dtype, device=parameter.device)
    return torch.as_tensor(np.array(X, dtype=float), dtype=parameter.dtype, device=parameter.device)


def linear_layers(module: Any) -> dict[str, Any]:
    """The `torch.nn.Linear` layers of a module by name, in order."""
    import torch

    return {name: part for name, part in module.named_modules() if isinstance(part, torch.nn.Linear)}


def dropout_layers(module: Any) -> dict[str, Any]:
    """The dropout layers of a torch module with p > 0, by name."""
    from torch.nn.modules.dropout import _DropoutNd

    return {name: part for name, part in module.named_modules() if isinstance(part, _DropoutNd) and part.p > 0}


def _tensors(module: Any) -> list[Any]:
    return [*module.parameters(), *module.buffers()]


def _private_copy(module: Any) -> Any:
    """The structure copied, in evaluation mode; the tensors are detached from the original's but share their memory."""
    import torch

    shared = {id(tensor): tensor.detach() for tensor in _tensors(module)}
    for parameter in module.parameters():
        shared[id(parameter)] = torch.nn.Parameter(parameter.detach(), requires_grad=False)
    for part in module.modules():  # tensors that are plain attributes, as weight_norm leaves them
        shared |= {id(value): value.detach() for value in vars(part).values() if isinstance(value, torch.Tensor)}
    try:
        copied = copy.deepcopy(module, shared).eval()
    except Exception as error:
        raise InvalidInput(
            f"The torch module {type(module).__name__} cannot be copied ({error}), so it cannot be run without being "
            "changed. Give a function that returns probabilities instead: askwise.wrap(function, classes)."
        ) from error
    for mine, theirs in zip(_tensors(copied), _tensors(module), strict=True):
        if mine.data_ptr() != theirs.data_ptr():  # TorchScript always copies its tensors
            mine.data = theirs.detach()
    for name, part in {**linear_layers(copied), **dropout_layers(copied)}.items():
        part.register_forward_hook(partial(_after_layer, name))
    return copied


def _after_layer(name: str, part: Any, inputs: tuple[Any, ...], output: Any) -> Any:
    for change in getattr(_PASS, "changes", ()):
        output = change(name, part, inputs[0], output)
    return output


def are_probabilities(output: Any) -> bool:
    """Whether the outputs (n, C) of a module are probabilities and not logits; a single column is the second class."""
    sums = output.sum(dim=1)
    summed = sums <= 1 if output.shape[1] == 1 else (sums - 1).abs() < SUMS_TO_ONE_WITHIN
    return bool((output >= 0).all()) and bool(summed.all())


def _with_first_class(output: Any, first: Any) -> Any:
    """(n, C); a single column is the second of two classes, and `first` the column of the first."""
    import torch

    return torch.cat([first, output], dim=1) if output.shape[1] == 1 else output
