"""Small networks: trained with torch, evaluated with numpy so that inference does not import torch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit

from askwise.errors import AskwiseError
from askwise.progress import track
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

MOST_CATEGORIES = 32
CLIP = 5.0

# Each may overwrite its argument.
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.clip(x, 0.0, np.inf, out=x),  # twice as fast as np.maximum
    "tanh": np.tanh,
    "logistic": expit,
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0.0))),
}


def import_torch(what: str, instead: str) -> Any:
    """The torch package; if it is not installed, an error that names the extra and what works without it."""
    try:
        import torch
    except ImportError:
        raise AskwiseError(
            f'{what} trains a network and needs torch: pip install "askwise[torch]". Without torch: {instead}.'
        ) from None
    return torch


class CellCoder:
    """The inputs of a network for a partly observed row: scaled numbers, one-hot categories, and the mask.

    A hidden cell is 0 (the mean of a scaled number, no category) and its mask entry is 0.
    """

    def __init__(self, rows: EncodedRows, schema: Schema) -> None:
        values = rows.values
        self.is_category = schema.is_category
        self.mean = np.nanmean(values, axis=0)
        scale = np.nanstd(values, axis=0)
        self.scale = np.where(scale > 0, scale, 1.0)
        self.levels = [
            np.arange(min(len(column.known), MOST_CATEGORIES), dtype=float) if column.is_category else None
            for column in schema.columns
        ]
        self.widths = np.array([1 if levels is None else len(levels) for levels in self.levels])
        columns = np.arange(len(self.widths))
        self.column = np.concatenate([np.repeat(columns, self.widths), columns])  # (P,) of the cells, then of the mask

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        """Encoded rows -> (n, P)."""
        seen = rows.values
        numbers = np.clip(np.nan_to_num((seen - self.mean) / self.scale), -CLIP, CLIP)
        parts = [
            numbers[:, [j]] if levels is None else (seen[:, [j]] == levels).astype(float)
            for j, levels in enumerate(self.levels)
        ]
        return np.hstack([*parts, rows.observed.astype(float)])


@dataclass(frozen=True)
class Layers:
    """A fully connected network as arrays: ``weights[l]`` (in, out), ``biases[l]`` (out,)."""

    weights: Sequence[np.ndarray]
    biases: Sequence[np.ndarray]
    activation: str

    def hidden(self, inputs: np.ndarray) -> np.ndarray:
        """The inputs of the last layer, (n, H)."""
        act = ACTIVATIONS[self.activation]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inputs = act(inputs @ weight + bias)
        return inputs

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        return self.hidden(inputs) @ self.weights[-1] + self.biases[-1]

    @classmethod
    def from_torch(cls, network: Iterable[Any], activation: str) -> Layers:
        """The arrays of the `torch.nn.Linear` layers among the parts of a trained network."""
        from torch import nn

        linears = [part for part in network if isinstance(part, nn.Linear)]
        return cls(
            [linear.weight.detach().double().numpy().T.copy() for linear in linears],
            [linear.bias.detach().double().numpy().copy() for linear in linears],
            activation,
        )


# Torch has one generator for all threads: two concurrent fits would disturb each other's random numbers.
_SEEDING = threading.RLock()


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generator inside and restore it outside; only one thread can be inside at a time.

    Small networks train fastest on one core and in single precision; both settings are restored as well.
    """
    import torch

    threads, number = torch.get_num_threads(), torch.get_default_dtype()
    with _SEEDING, torch.random.fork_rng(devices=[]), contextlib.ExitStack() as restored:
        torch.manual_seed(seed)
        if threads != 1:
            restored.callback(torch.set_num_threads, threads)
            torch.set_num_threads(1)
        if number != torch.float32:
            restored.callback(torch.set_default_dtype, number)
            torch.set_default_dtype(torch.float32)
        yield


def train(
    parameters: Iterable[Any],
    draw: Callable[[], tuple[Any, ...]],
    loss: Callable[..., Any],
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    cosine: bool = False,
    smallest_batch: int = 1,
    after_epoch: Callable[[], None] | None = None,
    description: str = "training",
    progress: bool | str = False,
) -> None:
    """Adam on ``loss(*batch)``, in each epoch over shuffled batches of the tensors that `draw` returns.

    The learning rate falls to 0 by a `cosine` if set; a last batch below `smallest_batch` rows is skipped.
    """
    import torch

    optimizer = torch.optim.Adam(parameters, lr=learning_rate, weight_decay=weight_decay, fused=True)
    schedule = None
    for _ in track(range(epochs), description, epochs, progress):
        tensors = draw()
        order: Any = torch.randperm(len(tensors[0]))
        batches = order.split(batch_size)
        if cosine and schedule is None:
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(batches))
        for batch in batches:
            if len(batch) < smallest_batch:
                continue
            optimizer.zero_grad()
            loss(*[tensor[batch] for tensor in tensors]).backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()
        if after_epoch is not None:
            after_epoch()


def adam(options: Any) -> dict[str, Any]:
    """The options of `train` that an estimator has as parameters of its own."""
    names = ("batch_size", "learning_rate", "weight_decay", "progress")
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


def relu_network(widths: Sequence[int], dropout: Any = None) -> Any:
    """A fully connected torch network in single precision, `widths` from the inputs to the outputs.

    `dropout` is a module that follows each hidden layer.
    """
    import torch
    from torch import nn

    linears = [nn.Linear(*pair, dtype=torch.float32) for pair in pairwise(widths)]
    after = [nn.ReLU()] if dropout is None else [nn.ReLU(), dropout]
    return nn.Sequential(*[part for linear in linears[:-1] for part in (linear, *after)], linears[-1])


def follow(slow: Any, fast: Any, rate: float) -> None:
    """Move the parameters of a target network a share `rate` of the way to those of the online one."""
    import torch

    with torch.no_grad():
        for target, online in zip(slow.parameters(), fast.parameters(), strict=True):
            target.lerp_(online, rate)


def dueling(widths: Sequence[int], n_actions: int) -> Any:
    """A dueling torch network: ReLU layers, `widths` from the inputs on, with a value head and an advantage head."""
    import torch
    from torch import nn

    class Dueling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.ModuleList([nn.Linear(*pair, dtype=torch.float32) for pair in pairwise(widths)])
            self.value = nn.Linear(widths[-1], 1, dtype=torch.float32)
            self.advantage = nn.Linear(widths[-1], n_actions, dtype=torch.float32)

        def forward(self, seen: Any) -> Any:
            for layer in self.body:
                seen = torch.relu(layer(seen))
            advantage = self.advantage(seen)
            return self.value(seen) + advantage - advantage.mean(dim=-1, keepdim=True)

    return Dueling()


def folded(network: Any) -> Layers:
    """A `dueling` network as arrays: value + advantage - mean(advantage) is linear, so both heads become one."""
    body = Layers.from_torch(network.body, "relu")
    heads = Layers.from_torch([network.value, network.advantage], "relu")
    (value, advantage), (value_bias, advantage_bias) = heads.weights, heads.biases
    weight = value + advantage - advantage.mean(axis=1, keepdims=True)
    bias = value_bias + advantage_bias - advantage_bias.mean()
    return Layers([*body.weights, weight], [*body.biases, bias], "relu")


class ReplayBuffer:
    """A ring buffer of arrays, allocated when the first entries are added; numbers are in single precision."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.parts: list[np.ndarray] = []
        self.size = self.next = 0

    def add(self, *new: Any) -> None:
        """Add entries: arrays or tensors with one row each."""
        rows = [np.asarray(values) for values in new]
        if not self.parts:
            kinds = [np.dtype(np.float32) if values.dtype.kind == "f" else values.dtype for values in rows]
            self.parts = [np.empty((self.capacity, *v.shape[1:]), kind) for v, kind in zip(rows, kinds, strict=True)]
        at = (self.next + np.arange(len(rows[0]))) % self.capacity
        for part, values in zip(self.parts, rows, strict=True):
            part[at[-self.capacity :]] = values[-self.capacity :]
        self.next = int((self.next + len(at)) % self.capacity)
        self.size = min(self.capacity, self.size + len(at))

    def draw(self, n: int, rng: np.random.Generator) -> list[Any]:
        """`n` entries, with replacement, as tensors."""
        import torch

        at = rng.integers(self.size, size=n)
        return [torch.from_numpy(part[at]) for part in self.parts]
