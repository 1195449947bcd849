"""Shared by baselines with masked networks: masked rows as tensors, training with patience, pretraining."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from askwise.networks import CellCoder
from askwise.progress import track
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

DROPOUT_DRAWS = 2**20
SMALLEST_BATCH, LARGEST_BATCH, STEPS_PER_EPOCH = 32, 128, 4
"""Rows per step of training unless they are given: as many as allow so many steps per epoch."""

JUDGED_STATES = 512
"""Fewest states in a held-out loss: small held-out sets are evaluated several times with new draws."""


def sliced_dropout(share: float) -> Any:
    """Dropout by a random slice of precomputed draws: torch's own costs more than the matrix products."""
    import torch

    class SlicedDropout(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.draws = torch.empty(0)

        def forward(self, inputs: Any) -> Any:
            if not self.training or not share:
                return inputs
            size = inputs.numel()
            if len(self.draws) < DROPOUT_DRAWS + size:
                self.draws = (torch.rand(DROPOUT_DRAWS + size) >= share) / (1 - share)
            start = int(torch.randint(len(self.draws) - size, ()))
            return inputs * self.draws[start : start + size].view(inputs.shape)

    return SlicedDropout()


def held_out_rows(y: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and held-out rows: one of every ``1 / share`` rows, sorted by class, is held out."""
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    step = max(2, round(1 / share))
    judged = np.zeros(len(y), dtype=bool)
    judged[by_class[rng.integers(min(step, len(y))) :: step]] = True
    return np.flatnonzero(~judged), np.flatnonzero(judged)


class MaskedRows:
    """Rows as tensors in the encoding of `CellCoder`, masked per feature by one product.

    Parameters
    ----------
    rows, y
        (N, D) encoded cells with NaN where missing, and the position of each row's class, (N,).
    schema, coder
        Columns and features, and the encoding of the cells.

    Attributes
    ----------
    cells
        (N, P): the coded cells, then which columns are present.
    available
        (N, M) bool: available features.
    labels
        (N,) class positions.
    """

    def __init__(self, rows: EncodedRows, y: np.ndarray, schema: Schema, coder: CellCoder) -> None:
        import torch

        owner = schema.owner[coder.column]
        self.n_features = len(schema.features)
        self.cells = torch.as_tensor(coder(rows), dtype=torch.float32)
        self.available = torch.as_tensor(schema.any_column(rows.observed))
        self.labels = torch.as_tensor(y)
        self.owns = torch.as_tensor(owner == np.arange(self.n_features)[:, None], dtype=torch.float32)  # (M, P)

    @property
    def width(self) -> int:
        """P, the number of network inputs per row."""
        return int(self.cells.shape[1])

    def inputs(self, rows: Any, mask: Any) -> Any:
        """Network inputs (n, P) of `rows` (n,) under `mask` (n, M), whose entries may lie between 0 and 1."""
        return self.cells[rows] * (mask @ self.owns)

    def random_masks(self, rows: Any) -> Any:
        """(n, M) floats: size uniform on 0..M, then a uniform subset, without features missing in `rows`."""
        import torch

        draw = torch.rand(len(rows), self.n_features) > torch.rand(len(rows), 1)
        return (draw & self.available[rows]).float()

    def repeated(self, rows: Any, states_of_each: int = 1) -> Any:
        """`rows` repeated until they give `JUDGED_STATES` states."""
        return rows.repeat(-(-JUDGED_STATES // (len(rows) * states_of_each)))


class Best:
    """The weights of some networks at their lowest loss so far."""

    def __init__(self, networks: Sequence[Any]) -> None:
        self.networks = networks
        self.loss = np.inf
        self._states: list[Any] = [copy.deepcopy(network.state_dict()) for network in networks]

    def offer(self, loss: float) -> None:
        """Keep the current weights if `loss` is the lowest so far."""
        if loss < self.loss:
            self.loss = loss
            self._states = [copy.deepcopy(network.state_dict()) for network in self.networks]

    def restore(self) -> None:
        """Put the best weights back."""
        for network, state in zip(self.networks, self._states, strict=True):
            network.load_state_dict(state)


def train_with_patience(
    networks: Sequence[Any],
    rows: Any,
    loss: Callable[[Any], Any],
    held_out_loss: Callable[[], float],
    options: Any,
    *,
    epochs: int,
    rounds: int = 1,
    next_round: Callable[[], None] = lambda: None,
    description: str,
) -> None:
    """Adam until the held-out loss no longer falls; leaves the best weights.

    The learning rate is divided by 5 after more than `patience` epochs without a lower loss (by 0.01 %), and training
    ends one such epoch later: the schedule of Covert et al. (2023) and of Gadgil et al. (2024).

    Parameters
    ----------
    networks
        The networks to train.
    rows, loss
        Training rows, and the loss of a batch of them.
    held_out_loss
        Loss of the current networks, without dropout.
    options
        Has the `learning_rate`, `batch_size`, `patience` and `progress` of `TwoNetworkBaseline`.
    rounds, next_round
        Instead of ending, training calls `next_round` and continues at the initial rate, until the last round ends.
    """
    import torch

    weights = [weight for network in networks for weight in network.parameters()]
    optimizer = torch.optim.Adam(weights, lr=options.learning_rate, fused=True)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
    scheduler = plateau(optimizer, factor=0.2, patience=options.patience, min_lr=1e-5)
    best, stale = Best(networks), 0
    batch_size = options.batch_size or min(LARGEST_BATCH, max(SMALLEST_BATCH, len(rows) // STEPS_PER_EPOCH))
    for _ in track(range(epochs), description, epochs, options.progress):
        for network in networks:
            network.train()
        for batch in rows[torch.randperm(len(rows))].split(batch_size):
            optimizer.zero_grad()
            loss(batch).backward()
            optimizer.step()
        for network in networks:
            network.eval()
        with torch.no_grad():
            judged = held_out_loss()
        scheduler.step(judged)
        best.offer(judged)
        stale = 0 if judged == scheduler.best else stale + 1
        if stale > options.patience + 1:
            stale, rounds = 0, rounds - 1
            if not rounds:
                break
            next_round()
            for group in optimizer.param_groups:
                group["lr"] = options.learning_rate
    best.restore()


def pretrain(network: Any, data: MaskedRows, rows: Any, judged: Any, options: Any) -> None:
    r"""Train a classifier under random masks of `rows`, with early stopping by the loss on the `judged` rows.

    .. math:: \min_\theta E_S\, E_{x, y}\, l(f_\theta(x_S), y)
    """
    from torch.nn.functional import cross_entropy

    judged = data.repeated(judged)
    judged_inputs = data.inputs(judged, data.random_masks(judged))  # the same in every epoch
    train_with_patience(
        [network],
        rows,
        lambda batch: cross_entropy(network(data.inputs(batch, data.random_masks(batch))), data.labels[batch]),
        lambda: float(cross_entropy(network(judged_inputs), data.labels[judged])),
        options,
        epochs=options.pretrain_epochs,
        description="training under masks",
    )
