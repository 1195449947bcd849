"""Training image networks under masks of patches: batches that hide patches, and one loop for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from askwise.errors import InvalidInput
from askwise.images.grid import ImageSchema, PatchGrid
from askwise.networks import import_torch, seeded, train
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows


class PatchBatches:
    """Training images as tensors, from which batches with hidden patches are made.

    Parameters
    ----------
    rows, y
        Encoded images and class positions.
    schema
        The patches.
    fill
        (D,) fill values of hidden pixels.
    like
        A torch module: batches have the dtype and device of its parameters.
    """

    def __init__(self, rows: EncodedRows, y: np.ndarray, schema: ImageSchema, fill: np.ndarray, like: Any) -> None:
        import torch

        parameter = next(like.parameters(), torch.zeros(1))
        self.device, self.number = parameter.device, parameter.dtype
        complete = np.where(rows.observed, rows.values, fill.astype(np.float32))
        whole = schema.dtype == np.uint8 and bool(rows.observed.all())
        # Images of one byte per pixel are kept that way, to save memory.
        self.values = torch.as_tensor(complete.astype(np.uint8) if whole else complete)
        self.fill = torch.as_tensor(fill, dtype=self.number, device=self.device)
        self.available = torch.as_tensor(schema.any_column(rows.observed), device=self.device)
        self.labels = torch.as_tensor(y, device=self.device)
        self.schema = schema

    def row_numbers(self) -> tuple[Any]:
        """(N,) all rows, to be drawn by `train`."""
        import torch

        return (torch.arange(len(self.values)),)

    def images(self, rows: Any, mask: Any) -> Any:
        """Images `rows` (n,) in which only the patches of `mask` (n, M) are visible, by weights from 0 to 1."""
        values = self.values[rows.cpu()].to(self.device, self.number)
        grid, blocks = self.schema.grid, self.schema.block_shape
        by_patch = mask.to(self.number).reshape(-1, 1, grid.rows, 1, grid.columns, 1)
        shown = by_patch.expand(-1, *blocks).reshape(len(values), -1)
        return (self.fill + shown * (values - self.fill)).reshape(-1, *self.schema.shape)

    def visible_masks(self, rows: Any, visible: tuple[float, float]) -> Any:
        """(n, M) bool: in each image a share of the patches, uniform within `visible`, is visible."""
        import torch

        n_patches = self.available.shape[1]
        share = visible[0] + (visible[1] - visible[0]) * torch.rand(len(rows), 1)
        sizes = (share * n_patches).round().clamp(min=1 if visible[0] > 0 else 0)
        ranks = torch.rand(len(rows), n_patches).argsort(dim=1).argsort(dim=1)
        return (ranks < sizes).to(self.device) & self.available[rows]


def train_under_patches(
    network: Any,
    data: PatchBatches,
    *,
    visible: tuple[float, float] | Callable[[Any], Any],
    cosine: bool = True,
    **options: Any,
) -> None:
    """Train `network` in place to classify images of which a random share of the patches is visible.

    `visible` may also be a function of rows that draws their masks. `options` are those of `askwise.networks.train`.
    """
    from torch.nn.functional import cross_entropy

    drawn = visible if callable(visible) else partial(data.visible_masks, visible=visible)
    whole = visible == (1.0, 1.0)
    network.train()
    train(
        [parameter for parameter in network.parameters() if parameter.requires_grad],
        data.row_numbers,
        lambda rows: cross_entropy(network(data.images(rows, drawn(rows))).float(), data.labels[rows]),
        cosine=cosine,
        smallest_batch=2,  # one image alone has no batch statistics
        description="training" if whole else "training under masks",
        **options,
    )
    network.eval()


def train_classifier(
    network: Any,
    images: Any,
    y: Any,
    *,
    epochs: int = 5,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    random_state: Any = None,
    progress: bool | str = False,
) -> Any:
    """Train a torch network on complete images, in place, and return it: the classifier to be wrapped.

    Its outputs are in the order of the sorted labels.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise.vision import small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    """
    import_torch("train_classifier", "a trained classifier of your own")
    schema, rows = PatchGrid(1, 1).read(images)
    labels = np.asarray(y)
    if labels.shape != (len(rows),):
        raise InvalidInput(f"y must hold one label per image, {len(rows)} in all; got shape {labels.shape}.")
    positions = np.unique(labels, return_inverse=True)[1]
    fill = np.zeros(len(schema.columns))
    with seeded(seed_from(generator(random_state))):
        train_under_patches(
            network,
            PatchBatches(rows, positions, schema, fill, network),
            visible=(1.0, 1.0),
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            progress=progress,
        )
    return network
