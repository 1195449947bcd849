"""A variational autoencoder of partly observed rows: the set of observed cells in, all cells and the label out.

Trained with torch, evaluated with numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.special import softmax

from askwise.networks import CellCoder, Layers, adam, relu_network, seeded, train
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.table.subsets import sample

EMBEDDING = 10
LARGEST_LOG_VARIANCE = 10.0


class Cells:
    """Rows and labels as P cells: one per number, one per level of a category, and one per class at the end.

    A number is in the set of observed cells where it is observed; a level, where it is the one observed.
    """

    def __init__(self, rows: EncodedRows, schema: Schema, n_classes: int) -> None:
        self.coder = CellCoder(rows, schema)
        self.schema = schema
        self.n_classes = n_classes
        widths = np.append(self.coder.widths, n_classes)
        self.column = np.repeat(np.arange(len(widths)), widths)  # (P,), the label counts as the last column
        is_block = np.append(schema.is_category, True)
        self.is_number = ~is_block[self.column]
        starts, largest = np.cumsum(widths) - widths, widths[is_block].max()
        levels = np.arange(largest)
        self.is_level = levels < widths[is_block][:, None]  # (blocks, most levels)
        self.block = np.where(self.is_level, starts[is_block][:, None] + levels, 0)  # cells of each category

    @property
    def n_cells(self) -> int:
        return len(self.column)

    def __call__(self, rows: EncodedRows, y: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Cells (n, P) and which of them are in the set (n, P); labels `y` of -1, and None, are not observed."""
        coded = self.coder(rows)[:, : self.n_cells - self.n_classes]
        hidden = np.full(len(rows), -1) if y is None else y
        cells = np.hstack([coded, hidden[:, None] == np.arange(self.n_classes)])
        seen = np.column_stack([rows.observed, hidden >= 0])[:, self.column]
        return cells, np.where(self.is_number, seen, cells == 1)

    def draw(self, outputs: np.ndarray, noise: float, of_numbers: np.ndarray, of_levels: np.ndarray) -> np.ndarray:
        """Cells (..., P) sampled from the decoder's outputs by given normal and Gumbel draws."""
        cells = np.where(self.is_number, outputs + noise * of_numbers, 0.0)
        disturbed = np.where(self.is_level, (outputs + of_levels)[..., self.block], -np.inf)
        chosen = np.take_along_axis(
            np.broadcast_to(self.block, disturbed.shape), disturbed.argmax(axis=-1)[..., None], axis=-1
        )
        np.put_along_axis(cells, chosen[..., 0], 1.0, axis=-1)
        return cells


@dataclass(frozen=True)
class PartialVAE:
    r"""A trained partial autoencoder with a point-net encoder.

    .. math:: q(z \mid x_S) = N(\mu(c_S), \sigma^2(c_S)), \quad c_S = \sum_{p \in S} h([x_p, x_p e_p, b_p])

    `h` is one linear layer with ReLU, shared by all cells, so it folds into a slope and an offset per cell.

    Attributes
    ----------
    slope, offset
        (P, K): ``h(s_p) = relu(x_p * slope_p + offset_p)``.
    encoder, decoder
        Layers from the code (K,) to mean and log variance of z, (2 L,), and from z to the cells (P,).
    cells, noise
        The layout of the cells, and the standard deviation of a (scaled) number.
    """

    slope: np.ndarray
    offset: np.ndarray
    encoder: Layers
    decoder: Layers
    cells: Cells
    noise: float

    def elements(self, cells: np.ndarray) -> np.ndarray:
        """Contribution of each cell to the code of a set, (..., P) -> (..., P, K)."""
        out = cells[..., None] * self.slope
        out += self.offset
        return np.maximum(out, 0.0, out=out)

    def code(self, cells: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Code of a set of cells, (n, P) -> (n, K)."""
        return np.asarray((self.elements(cells) * seen[..., None]).sum(axis=-2))

    def posterior(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and log variance of z, (..., L) each."""
        flat = np.maximum(code.reshape(-1, code.shape[-1]), 0.0)
        both = self.encoder(flat).reshape(*code.shape[:-1], -1)
        half = both.shape[-1] // 2
        return both[..., :half], np.clip(both[..., half:], -LARGEST_LOG_VARIANCE, LARGEST_LOG_VARIANCE)

    def decode(self, z: np.ndarray) -> np.ndarray:
        """Decoder outputs, (..., L) -> (..., P): means of numbers, logits of levels."""
        return self.decoder(z.reshape(-1, z.shape[-1])).reshape(*z.shape[:-1], -1)

    @property
    def latent(self) -> int:
        """L, the dimension of z."""
        return int(self.decoder.weights[0].shape[0])

    def label_proba(self, outputs: np.ndarray) -> np.ndarray:
        """p(y | z), (..., C)."""
        return np.asarray(softmax(outputs[..., -self.cells.n_classes :], axis=-1))


def gaussian_divergence(p: tuple[np.ndarray, np.ndarray], q: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """KL(p || q) of diagonal Gaussians given as (mean, log variance), (..., L) each -> (...)."""
    (mean, log_variance), (other_mean, other_log_variance) = p, q
    ratio = log_variance - other_log_variance
    squares = (mean - other_mean) ** 2 * np.exp(-other_log_variance)
    return np.asarray(0.5 * (squares + np.exp(ratio) - 1.0 - ratio).sum(axis=-1))


def train_partial_vae(
    cells: Cells, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator, options: Any
) -> PartialVAE:
    """Maximize the evidence bound on random subsets of each row's cells, the label included."""
    import torch

    everything, in_row = (torch.as_tensor(part, dtype=torch.float32) for part in cells(rows, y))
    n_features = len(cells.schema.features)

    def draw() -> tuple[Any, ...]:
        mask = sample(len(rows), n_features + 2, rng)[:, : n_features + 1]
        kept = np.column_stack([cells.schema.expand(mask[:, :-1]), mask[:, -1]])[:, cells.column]
        return everything, in_row * torch.as_tensor(kept, dtype=torch.float32), in_row

    with seeded(seed_from(rng)):
        network = _network(cells, options)
        train(
            network.parameters(),
            draw,
            lambda x, seen, there: network(x, seen, there if options.reconstruct == "all" else seen),
            epochs=max(1, ceil(options.steps / ceil(len(rows) / options.batch_size))),
            description="training the partial autoencoder",
            **adam(options),
        )
        with torch.no_grad():
            slope, offset = (part.double().numpy() for part in network.folded())
    encoder, decoder = (Layers.from_torch(stack, "relu") for stack in (network.encoder, network.decoder))
    return PartialVAE(slope, offset, encoder, decoder, cells, options.noise)


def _network(cells: Cells, options: Any) -> Any:
    """The autoencoder as a torch module whose output is its loss: minus the evidence bound, mean over rows."""
    import torch
    from torch import nn

    is_number = torch.as_tensor(cells.is_number)
    block, is_level = torch.as_tensor(cells.block), torch.as_tensor(cells.is_level)
    weight = torch.ones(cells.n_cells)
    weight[-cells.n_classes :] = options.label_weight

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Parameter(nn.init.xavier_normal_(torch.empty(cells.n_cells, EMBEDDING)))
            self.bias = nn.Parameter(nn.init.xavier_normal_(torch.empty(cells.n_cells, 1)))
            self.shared = nn.Linear(EMBEDDING + 2, options.code)
            self.encoder = relu_network([options.code, *options.encoder, 2 * options.latent])
            self.decoder = relu_network([options.latent, *options.decoder, cells.n_cells])

        def folded(self) -> tuple[Any, Any]:
            """Slope and offset of h per cell, (P, K) each."""
            weight = self.shared.weight  # (K, 1 + E + 1) for [x, x e, b]
            slope = weight[:, 0] + self.embedding @ weight[:, 1:-1].T
            return slope, self.bias * weight[:, -1] + self.shared.bias

        def forward(self, x: Any, seen: Any, scored: Any) -> Any:
            slope, offset = self.folded()
            elements = torch.relu(x[..., None] * slope + offset)
            code = torch.relu((elements * seen[..., None]).sum(dim=1))
            mean, log_variance = self.encoder(code).chunk(2, dim=1)
            log_variance = log_variance.clamp(-LARGEST_LOG_VARIANCE, LARGEST_LOG_VARIANCE)
            outputs = self.decoder(mean + torch.exp(log_variance / 2) * torch.randn_like(mean))
            divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1)
            return (divergence + self.surprise(outputs, x, scored)).mean()

        def surprise(self, outputs: Any, x: Any, scored: Any) -> Any:
            """Minus the log likelihood of the scored cells, (n,), but for a constant."""
            squares = ((x - outputs) / options.noise) ** 2 / 2
            logits = outputs[:, block].masked_fill(~is_level, -torch.inf)
            logs = torch.zeros_like(outputs)
            logs[:, block[is_level]] = torch.log_softmax(logits, dim=-1)[:, is_level]
            return (torch.where(is_number, squares, -logs) * scored * weight).sum(dim=1)

    return Network()
