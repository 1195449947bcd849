"""What rivals made of masked networks share: masked rows as tensors, training with patience, a pretrained predictor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from askwise.acquire.policies import Policy
from askwise.baselines.base import Rival, ScoredPolicy
from askwise.baselines.limits import ADAM, DROPOUT, WIDTHS, Limits, Number, Whole
from askwise.networks import CellCoder, Layers, import_torch, seeded
from askwise.predict.base import SubsetPredictor
from askwise.progress import track
from askwise.randomness import seed_from
from askwise.schema import Schema

DROPOUT_DRAWS = 2**20
MOST_FEATURES = 10
"""Purchases per training episode unless more are asked for."""

JUDGED_STATES = 512
"""Fewest states that a held-out loss is the mean of: few held-out rows are judged several times, drawn anew."""


def feed_forward(n_inputs: int, hidden: Sequence[int], n_outputs: int, dropout: float) -> Any:
    """A fully connected torch network: ReLU and dropout after each hidden layer."""
    from torch import nn

    parts: list[Any] = []
    dropped = _dropout(dropout)
    for width in hidden:
        parts += [nn.Linear(n_inputs, width), nn.ReLU(), dropped]
        n_inputs = width
    return nn.Sequential(*parts, nn.Linear(n_inputs, n_outputs))


def _dropout(share: float) -> Any:
    """Dropout by a slice, at a random place, of draws made once: torch's own costs more than the matrix products."""
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


def served(network: Any) -> Layers:
    """The arrays of a `feed_forward` network."""
    from torch import nn

    return Layers.from_torch([part for part in network if isinstance(part, nn.Linear)], "relu")


def held_out_rows(y: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to judge by: one row in every ``1 / share`` of the rows sorted by class."""
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    step = max(2, round(1 / share))
    judged = np.zeros(len(y), dtype=bool)
    judged[by_class[rng.integers(min(step, len(y))) :: step]] = True
    return np.flatnonzero(~judged), np.flatnonzero(judged)


class MaskedRows:
    """Rows as tensors, as `CellCoder` shows them to a network, to be masked per feature by one product.

    Parameters
    ----------
    values, y
        (N, D) encoded cells with NaN where missing, and the position of each row's class, (N,).
    schema, coder
        Columns and features, and how a network sees the cells.

    Attributes
    ----------
    cells
        (N, P): the coded cells, then which columns of the row are there.
    available
        (N, M) bool: features that can be had.
    labels
        (N,) class positions.
    """

    def __init__(self, values: np.ndarray, y: np.ndarray, schema: Schema, coder: CellCoder) -> None:
        import torch

        present = ~np.isnan(values)
        owner = schema.owner[coder.column]
        self.n_features = len(schema.features)
        self.cells = torch.as_tensor(coder(values, present), dtype=torch.float32)
        self.available = torch.as_tensor(schema.any_column(present))
        self.labels = torch.as_tensor(y)
        self.owns = torch.as_tensor(owner == np.arange(self.n_features)[:, None], dtype=torch.float32)  # (M, P)

    @property
    def width(self) -> int:
        """What a network sees of a row: P numbers."""
        return int(self.cells.shape[1])

    def inputs(self, rows: Any, mask: Any) -> Any:
        """What a network sees of `rows` (n,) under `mask` (n, M), whose entries may lie between 0 and 1: (n, P)."""
        return self.cells[rows] * (mask @ self.owns)

    def random_masks(self, rows: Any) -> Any:
        """(n, M) floats: size uniform on 0..M, then a uniform subset of that size, less what `rows` do not have."""
        import torch

        draw = torch.rand(len(rows), self.n_features) > torch.rand(len(rows), 1)
        return (draw & self.available[rows]).float()

    def batches(self, rows: Any, batch_size: int) -> Sequence[Any]:
        """`rows` in random order, in slices of `batch_size`."""
        import torch

        parts: Sequence[Any] = rows[torch.randperm(len(rows))].split(batch_size)
        return parts

    def repeated(self, rows: Any, states_of_each: int = 1) -> Any:
        """`rows` as often as it takes to judge `JUDGED_STATES` states."""
        return rows.repeat(-(-JUDGED_STATES // (len(rows) * states_of_each)))


class Best:
    """The weights of some networks at their lowest loss so far."""

    def __init__(self, networks: Sequence[Any]) -> None:
        self.networks = networks
        self.loss = np.inf
        self._states: list[Any] = [copy.deepcopy(network.state_dict()) for network in networks]

    def offer(self, loss: float) -> None:
        """Keep the weights as they are now if `loss` is the lowest so far."""
        if loss < self.loss:
            self.loss = loss
            self._states = [copy.deepcopy(network.state_dict()) for network in self.networks]

    def restore(self) -> None:
        """Put the best weights back."""
        for network, state in zip(self.networks, self._states, strict=True):
            network.load_state_dict(state)


def train_with_patience(
    networks: Sequence[Any],
    epoch: Callable[[Any], None],
    held_out_loss: Callable[[], float],
    *,
    epochs: int,
    learning_rate: float,
    patience: int,
    rounds: int = 1,
    next_round: Callable[[], None] | None = None,
    description: str = "training",
    progress: bool | str = False,
) -> None:
    """Adam until the held-out loss no longer falls; leaves the best weights.

    The rate is cut to a fifth once more than `patience` epochs have not lowered the loss (by 0.01 %), and one such
    epoch later training ends: the schedule of Covert et al. (2023) and of Gadgil et al. (2024).

    Parameters
    ----------
    networks
        What is trained.
    epoch
        Given the optimiser, makes the steps of one epoch.
    held_out_loss
        Loss of the networks as they are, without dropout.
    rounds, next_round
        Where training would end, it goes on at the first rate after a call of `next_round`, until the last round ends.
    """
    import torch

    weights = [weight for network in networks for weight in network.parameters()]
    optimiser = torch.optim.Adam(weights, lr=learning_rate, fused=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.2, patience=patience, min_lr=1e-5)
    best, stale = Best(networks), 0
    for _ in track(range(epochs), description, epochs, progress):
        for network in networks:
            network.train()
        epoch(optimiser)
        for network in networks:
            network.eval()
        with torch.no_grad():
            loss = held_out_loss()
        scheduler.step(loss)
        best.offer(loss)
        stale = 0 if loss == scheduler.best else stale + 1
        if stale > patience + 1:
            stale, rounds = 0, rounds - 1
            if not rounds:
                break
            if next_round is not None:
                next_round()
            for group in optimiser.param_groups:
                group["lr"] = learning_rate
    best.restore()


def pretrain(
    network: Any,
    data: MaskedRows,
    rows: Any,
    judged: Any,
    *,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    patience: int,
    progress: bool | str = False,
) -> None:
    r"""Train a classifier under random masks of the training `rows`, and stop by the loss on the `judged` ones.

    .. math:: \min_\theta E_S\, E_{x, y}\, l(f_\theta(x_S), y)
    """
    from torch.nn.functional import cross_entropy

    def epoch(optimiser: Any) -> None:
        for batch in data.batches(rows, batch_size):
            optimiser.zero_grad()
            seen = data.inputs(batch, data.random_masks(batch))
            loss: Any = cross_entropy(network(seen), data.labels[batch])
            loss.backward()
            optimiser.step()

    judged = data.repeated(judged)
    judged_inputs = data.inputs(judged, data.random_masks(judged))  # the same in every epoch

    def held_out_loss() -> float:
        return float(cross_entropy(network(judged_inputs), data.labels[judged]))

    train_with_patience(
        [network],
        epoch,
        held_out_loss,
        epochs=epochs,
        learning_rate=learning_rate,
        patience=patience,
        description="training under masks",
        progress=progress,
    )


def rollout(data: MaskedRows, rows: Any, free: Any, n_steps: int, scores: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Buy the best-scored feature of each row, again and again.

    Parameters
    ----------
    rows, free
        Rows (n,), and the features (M,) bool that are known from the start where a row has them.
    scores
        Function of what a network sees (n, P) and the features had (n, M) bool -> (n, M), higher is better.

    Returns
    -------
    masks, bought
        (n_steps + 1, n, M) bool before and after each purchase, and (n_steps, n) features; -1 = nothing was left.
    """
    import torch

    available = data.available[rows]
    masks, bought = [available & free], []
    with torch.no_grad():
        for _ in range(n_steps):
            mask = masks[-1]
            buyable = available & ~mask
            best = scores(data.inputs(rows, mask.float()), mask).masked_fill(~buyable, -torch.inf).argmax(dim=1)
            masks.append(mask | (torch.nn.functional.one_hot(best, data.n_features).bool() & buyable))
            bought.append(torch.where(buyable.any(dim=1), best, -1))
    return torch.stack(masks), torch.stack(bought)


class TwoNetworkRival(Rival):
    """A predictor pretrained under random masks, and a second network that chooses; subclasses train the two jointly.

    Subclasses store the parameters that are declared here, and write `_train_jointly` and `_worth`.
    """

    hidden: Sequence[int]
    dropout: float
    max_features: int | None
    pretrain_epochs: int
    epochs: int
    learning_rate: float
    batch_size: int
    patience: int
    holdout: float

    limits: ClassVar[Limits] = {
        **ADAM,
        **dict.fromkeys(("pretrain_epochs", "epochs", "patience"), Whole(0)),
        "hidden": WIDTHS,
        "dropout": DROPOUT,
        "max_features": Whole(1, optional=True),
        "holdout": Number(0, 0.5, above=True),
    }

    def _train_jointly(self, predictor: Any, chooser: Any, data: MaskedRows, rows: Any, judged: Any) -> None:
        """Train the pretrained `predictor` and the `chooser` on `rows`, and leave what is best on the `judged` ones."""
        raise NotImplementedError

    def _worth(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Worth of each feature, before its price: encoded rows (n, D) and the features had (n, M) -> (n, M)."""
        raise NotImplementedError

    def _train(self, values: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        torch = import_torch(type(self).__name__, "DynamicFeatureSelector with its defaults")
        self.coder_ = CellCoder(values, self.schema_)
        rows, judged = (torch.as_tensor(part) for part in held_out_rows(y, self.holdout, rng))
        with seeded(seed_from(rng)):
            data = MaskedRows(values, y, self.schema_, self.coder_)
            predictor = feed_forward(data.width, self.hidden, len(self.classes_), self.dropout)
            chooser = feed_forward(data.width, self.hidden, data.n_features, self.dropout)
            pretrain(
                predictor,
                data,
                rows,
                judged,
                epochs=self.pretrain_epochs,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                patience=self.patience,
                progress=self.progress,
            )
            if self._n_steps():
                self._train_jointly(predictor, chooser, data, rows, judged)
        self.predictor_layers_, self.chooser_layers_ = served(predictor), served(chooser)
        return self._predictor(self._answer), ScoredPolicy(self._worth, self.prices_)

    def _answer(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """p(y | x_S) of encoded rows under a mask per column, (n, C)."""
        return np.asarray(softmax(self.predictor_layers_(self.coder_(values, mask)), axis=1))

    def _seen(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """What a network sees of encoded rows when the features of `mask` (n, M) are had."""
        return self.coder_(values, self.schema_.expand(mask) & ~np.isnan(values))

    def _free(self) -> Any:
        """(M,) bool tensor: features that are known from the start."""
        import torch

        return torch.as_tensor(self.costs_ == 0)

    def _n_steps(self) -> int:
        """Purchases per training episode: `max_features` of the features that cost something."""
        n_paid = int((self.costs_ > 0).sum())
        return min(n_paid, MOST_FEATURES if self.max_features is None else self.max_features)
