"""A network trained under masks: it sees the observed cells and the mask, and answers on every subset by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from askwise.errors import InvalidInput
from askwise.networks import CellCoder, Layers, import_torch, seeded, train
from askwise.predict.adapters import ScaleAndShift
from askwise.predict.base import SubsetPredictor
from askwise.predict.reparametrized import train_adapter
from askwise.randomness import generator, seed_from
from askwise.rows import EncodedRows
from askwise.subsets import check_mask, sample

DrawMasks = Callable[[np.ndarray, np.random.Generator], np.ndarray]


class MaskTrainedPredictor(SubsetPredictor):
    r"""A fresh classifier trained under masks, as most rivals do it: the paper's AdMLP, and AdReMLP.

    .. math:: \theta^* = \arg\min_\theta E_S\, E_{x, y}\, l(f_\theta(x_S), y)

    The wrapped model is used for `predict_full` only: this is the comparison with a model that was made for subsets.

    Parameters
    ----------
    estimator
        The classifier to wrap; see `SubsetPredictor`.
    masks
        ``"random"`` (Eq. 1: random size, then a random subset), or a function ``(values, generator) -> mask per
        column``, such as `askwise.acquire.PolicyMasks`, which draws the subsets that a policy visits (Eq. 4).
    reparametrized
        Train a subset-dependent scale and shift of the network's last layer afterwards (AdReMLP).
    width, epochs, learning_rate, batch_size, weight_decay
        One hidden ReLU layer of `width` units, trained by Adam with new masks in each epoch.
    hidden, holdout
        Width of the network that reads the mask, and share of rows that judge it, when `reparametrized`.
    random_state, progress
        Seed, and whether to show a progress bar.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        masks: str | DrawMasks = "random",
        reparametrized: bool = False,
        width: int = 100,
        epochs: int = 100,
        learning_rate: float = 1e-3,
        batch_size: int = 64,
        weight_decay: float = 1e-4,
        hidden: int = 64,
        holdout: float = 0.25,
        random_state: Any = None,
        progress: bool | str = False,
    ) -> None:
        super().__init__(estimator)
        self.masks = masks
        self.reparametrized = reparametrized
        self.width = width
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.hidden = hidden
        self.holdout = holdout
        self.random_state = random_state
        self.progress = progress

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        import_torch("MaskTrainedPredictor", "ConditionalPredictor")
        if not callable(self.masks) and not (isinstance(self.masks, str) and self.masks == "random"):
            raise InvalidInput(f'masks must be "random" or a function (values, generator) -> mask; got {self.masks!r}.')
        rng = generator(self.random_state)
        self.coder_ = CellCoder(rows, self.schema_)
        with seeded(seed_from(rng)):
            self.layers_ = self._train(rows, y, rng)
        if self.reparametrized:
            adapter = ScaleAndShift(_LastLayer(self.layers_))
            self.adapter_, self.adaptation_report_ = train_adapter(adapter, self.coder_, rows, y, self._unchanged, self)
            self.kept_ = self.adaptation_report_["kept"].to_numpy()

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> Layers:
        def draw_masks() -> np.ndarray:
            if callable(self.masks):
                return check_mask(self.masks(rows.values, rng), rows.values.shape, "masks")
            return sample(len(rows), rows.values.shape[1] + 1, rng)[:, :-1]

        return train_under_masks(self.coder_, rows, y, len(self.classes_), draw_masks, self)

    def _unchanged(self, rows: EncodedRows) -> np.ndarray:
        return np.asarray(softmax(self.layers_(self.coder_(rows)), axis=1))

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        proba = self._unchanged(rows)
        if self.reparametrized:
            adapted = self.kept_[rows.observed.sum(axis=1)]
            if adapted.any():
                seen = rows.take(adapted)
                proba[adapted] = self.adapter_.proba(self.adapter_.inputs(self.coder_(seen)), seen.observed)
        return proba


def train_under_masks(
    coder: CellCoder,
    rows: EncodedRows,
    y: np.ndarray,
    n_classes: int,
    draw_masks: Callable[[], np.ndarray],
    options: Any,
) -> Layers:
    """One hidden ReLU layer that classifies rows under masks per column (N, D), drawn anew for each epoch.

    `options` has the `width`, `epochs`, `batch_size`, `learning_rate`, `weight_decay` and `progress` of
    `MaskTrainedPredictor`.
    """
    import torch
    from torch import nn

    labels = torch.as_tensor(y)

    def draw() -> tuple[Any, ...]:
        return torch.as_tensor(coder(rows.masked(draw_masks())), dtype=torch.float32), labels

    network = nn.Sequential(
        nn.Linear(draw()[0].shape[1], options.width), nn.ReLU(), nn.Linear(options.width, n_classes)
    )
    train(
        network.parameters(),
        draw,
        lambda inputs, target: nn.functional.cross_entropy(network(inputs), target),
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        description="training under masks",
        progress=options.progress,
    )
    return Layers.from_torch([network[0], network[2]], "relu")


class _LastLayer:
    """The last layer of a network of our own."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.weight, self.bias = layers.weights[-1], layers.biases[-1]

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return self.layers.hidden(inputs)
