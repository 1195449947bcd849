"""The paper's CNN, ReCNN, AdCNN and AdReCNN: one network of images under masks of patches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from askwise.errors import InvalidInput
from askwise.images.grid import ImageSchema
from askwise.images.training import PatchBatches, train_under_patches
from askwise.model.black_box import wrap
from askwise.model.final_layer import FinalLayer, any_final_layer, torch_module
from askwise.model.modules import are_probabilities, as_tensor
from askwise.model.wrapped import FrozenModel
from askwise.networks import Layers, adam, import_torch, seeded, train
from askwise.parameters import POSITIVE, SHARE, Flag, Several, Whole, check_limits, within
from askwise.predict.adapters import ScaleAndShift
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample

FILLS = ("mean", "gray")
FEATURES_KEPT = 16_000_000
N_PROBES = 4
Masks = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


@dataclass(eq=False, repr=False)
class PatchNetwork(SubsetPredictor):
    r"""p(y | known patches) by one network whose hidden patches are filled in.

    With no epochs it is the paper's CNN (the wrapped network, frozen). `adapter_epochs` add ReCNN: a network of the
    mask scales the inputs of the last layer and shifts its logits, :math:`((1 + s_S) \circ \phi)\, W + b + t_S`.
    `pretrain_epochs` make it AdCNN: a copy of the network is first trained with a random share of the patches visible.
    Both together are AdReCNN.

    Parameters
    ----------
    estimator
        A trained torch module for images (N, C, H, W) that returns logits. Without `pretrain_epochs`, any classifier.
    fill
        Fill value of hidden patches: ``"mean"``, the mean image of the training set; ``"gray"``, one mean value per
        channel.
    pretrain_epochs, adapter_epochs
        Epochs of each stage.
    visible
        Least and largest share of the patches that are visible in pretraining, uniform per image.
    refresh
        Epochs for which the adapter keeps the same masks, and with them the features of the frozen backbone.
    hidden
        Width of the network that reads the mask.
    learning_rate, batch_size, cosine
        Adam's rate (of both stages), images per step, and whether the rate falls by a cosine within each stage.
    random_state, progress
        Seed, and whether to show progress bars.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.vision import PatchGrid, PatchNetwork, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> selector = DynamicFeatureSelector(
    ...     net, groups=PatchGrid(2, 2), adaptation=PatchNetwork(), policy="static", epistemic=None, random_state=0
    ... )
    >>> selector.fit(images, y).acquire(images[:3], budget=2).proba.shape
    (3, 3, 10)
    """

    estimator: Any = None
    _: KW_ONLY
    fill: str = "mean"
    pretrain_epochs: int = within(Whole(0), 0)
    adapter_epochs: int = within(Whole(0), 0)
    visible: Sequence[float] = within(Several(SHARE, count=2), (0.2, 1.0))
    refresh: int = within(Whole(1), 1)
    hidden: int = within(Whole(1), 64)
    learning_rate: float = within(POSITIVE, 1e-3)
    batch_size: int = within(Whole(1), 64)
    cosine: bool = within(Flag(), True)
    random_state: Any = None
    progress: bool | str = False

    @property
    def rows_at_once(self) -> int:
        """How many images to process together."""
        return max(1, FEATURES_KEPT // max(len(self.schema_.columns), len(self.layer_.weight)))

    def believe(
        self, rows: EncodedRows, *, previous: Belief | None = None, leave_out: np.ndarray | None = None
    ) -> Belief:
        """The prediction, and the inputs of the last layer, which members and policies use as well."""
        features = self.features(rows)
        return Belief(self.answers(features, rows, self.layer_.weight)[:, None], features=features)

    def features(self, rows: EncodedRows) -> np.ndarray:
        """(n, H) inputs of the last layer for filled images, before scaling."""
        return self.layer_.features(rows.filled(self.fill_))

    def answers(self, features: np.ndarray, rows: EncodedRows, weight: np.ndarray) -> np.ndarray:
        """(n, C) from features, by the last layer with `weight` (H, C), scaled and shifted by the mask."""
        if self.psi_ is None:
            return np.asarray(softmax(features @ weight + self.layer_.bias, axis=1))
        scale, shift = self._change(rows)
        return np.asarray(softmax((features * scale) @ weight + self.layer_.bias + shift, axis=1))

    def full_proba(self, rows: EncodedRows) -> np.ndarray:
        """The reference p(y | x): the network itself, unscaled, on all available pixels of each image."""
        parts = [
            softmax(self.features(rows.take(part)) @ self.layer_.weight + self.layer_.bias, axis=1)
            for part in self._blocks(len(rows))
        ]
        return np.concatenate(parts)

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        return np.concatenate([self.believe(rows.take(part)).proba for part in self._blocks(len(rows))])

    def _blocks(self, n: int) -> list[slice]:
        step = self.rows_at_once
        return [slice(start, start + step) for start in range(0, max(n, 1), step)]

    def _change(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """Scale (n, H) and shift (n, C) by the patches known; a complete image is left as it is."""
        assert self.psi_ is not None
        mask = self.schema_.any_column(rows.observed)
        change = self.psi_(mask.astype(float)) * ~mask.all(axis=1, keepdims=True)
        width = len(self.layer_.weight)
        return 1 + change[:, :width], change[:, width:]

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        check_limits(self)
        if self.fill not in FILLS or self.visible[0] > self.visible[1]:
            raise InvalidInput(
                f"PatchNetwork: fill must be one of {FILLS} and visible a (least, largest) share; got {self.fill!r} "
                f"and {self.visible!r}."
            )
        if not isinstance(self.schema_, ImageSchema):
            raise InvalidInput(
                "PatchNetwork is for images: fit a selector with groups=PatchGrid(4, 4), or fit(..., groups=)."
            )
        self.fill_ = fill_image(rows, self.schema_, self.fill)
        rng = generator(self.random_state)
        least, most = self.visible
        model = self.model_
        if self.pretrain_epochs:
            model = self._trained(self.estimator_, (least, most), self.pretrain_epochs, seed_from(rng))
        self._finish(model, rng)

    def _finish(self, model: FrozenModel, rng: np.random.Generator) -> None:
        """The last layer of the network, and what its adapter makes of it."""
        rows, y = self.training_rows_, self.training_labels_
        self.layer_ = image_layer(model, rows, self.fill_)
        self.psi_: Layers | None = None
        if self.adapter_epochs:
            import_torch("PatchNetwork", "adapter_epochs=0")
            with seeded(seed_from(rng)):
                self.psi_ = self._adapted(rows, y, rng)

    def further(
        self, masks: Masks, epochs: int, seed: int, after_epoch: Callable[[PatchNetwork], None] | None = None
    ) -> Self:
        """The same with a copy of its network trained further, under `masks` of the training images.

        Parameters
        ----------
        masks
            Function of row numbers (n,), the number of patches and a generator that draws masks (n, M).
        epochs, seed
            Passes over the training images, and the seed of masks and training.
        after_epoch
            Is given the predictor with the network as it is after each epoch, without an adapter.
        """
        import torch

        rng, n_patches = np.random.default_rng(seed), len(self.schema_.features)

        def drawn(rows: Any) -> Any:
            return torch.as_tensor(masks(rows.cpu().numpy(), n_patches, rng), device=rows.device)

        other = copy.copy(self)
        other._finish(self._trained(self.layer_.model.estimator, drawn, epochs, seed, after_epoch), rng)
        return other

    def _without_adapter(self, model: FrozenModel) -> PatchNetwork:
        other = copy.copy(self)
        other.layer_, other.psi_ = image_layer(model, self.training_rows_, self.fill_), None
        return other

    def _trained(
        self,
        estimator: Any,
        visible: Any,
        epochs: int,
        seed: int,
        after_epoch: Callable[[PatchNetwork], None] | None = None,
    ) -> FrozenModel:
        """A copy of a network, trained for `epochs` with patches hidden."""
        import torch

        assert isinstance(self.schema_, ImageSchema)
        rows, y = self.training_rows_, self.training_labels_
        network = copy.deepcopy(torch_module(estimator))
        if network is None:
            raise InvalidInput(
                "pretrain_epochs need a torch.nn.Module, which is copied and trained; got "
                f"{type(self.estimator_).__name__}."
            )
        with torch.no_grad():
            images = self.model_.table(rows.take(slice(2)).filled(self.fill_))
            logits = network.eval()(as_tensor(images, network))
        if logits.shape[1:] != self.classes_.shape or are_probabilities(logits):
            raise InvalidInput(
                f"pretrain_epochs need a network that returns one logit for each of the {len(self.classes_)} classes; "
                "remove its final softmax, or give it one output per class."
            )
        model = FrozenModel(wrap(network, self.classes_.tolist(), "logits"), self.schema_)
        with seeded(seed):
            train_under_patches(
                network,
                PatchBatches(rows, y, self.schema_, self.fill_, network),
                visible=visible,
                epochs=epochs,
                cosine=self.cosine,
                after_epoch=None if after_epoch is None else lambda: after_epoch(self._without_adapter(model)),
                **adam(self),
            )
        return model

    def _adapted(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> Layers:
        """The network of the mask, trained on features that are computed once per draw of masks."""
        import torch

        labels, adapter = torch.as_tensor(y), ScaleAndShift(self.layer_)
        parameters = adapter.build(len(self.schema_.features), self.hidden)

        def loss(features: Any, mask: Any, label: Any) -> Any:
            return torch.nn.functional.cross_entropy(adapter.logits(features, mask), label)

        for start in range(0, self.adapter_epochs, self.refresh):
            drawn = sample(len(rows), len(self.schema_.features), rng) & self.schema_.any_column(rows.observed)
            seen = [torch.as_tensor(part, dtype=torch.float32) for part in (self._masked_features(rows, drawn), drawn)]
            epochs = min(self.refresh, self.adapter_epochs - start)
            draw = partial(tuple, [*seen, labels])
            train(parameters, draw, loss, epochs=epochs, description="adapting", **adam(self))
        adapter.freeze()
        return adapter.psi

    def _masked_features(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        parts = [
            self.features(rows.take(part).masked(self.schema_.expand(mask[part]))) for part in self._blocks(len(rows))
        ]
        return np.concatenate(parts)


def image_layer(model: FrozenModel, rows: EncodedRows, fill: np.ndarray) -> FinalLayer:
    """The last layer of a network of images; log probabilities of a model that has none."""
    return any_final_layer(model, rows.take(slice(N_PROBES)).filled(fill))


def fill_image(rows: EncodedRows, schema: ImageSchema, fill: str) -> np.ndarray:
    """(D,) the fill values of hidden pixels."""
    total, count = np.zeros(len(schema.columns)), np.zeros(len(schema.columns))
    for start in range(0, len(rows), schema.rows_per_call):  # a block at a time: a copy of all images may not fit
        part = rows.values[start : start + schema.rows_per_call]
        there = ~np.isnan(part)
        total += np.where(there, part, 0.0).sum(axis=0, dtype=float)
        count += there.sum(axis=0)
    channels = schema.shape[0]
    if fill == "gray":
        by_channel = total.reshape(channels, -1).sum(axis=1) / np.maximum(count.reshape(channels, -1).sum(axis=1), 1)
        return np.repeat(by_channel, len(total) // channels).astype(np.float32)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), total.sum() / count.sum())).astype(np.float32)
