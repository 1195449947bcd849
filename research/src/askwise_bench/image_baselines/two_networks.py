"""Shared by the baselines on patches: training of predictor and chooser, episodes, and the methods of a selector."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from askwise.acquirer import FeatureAcquirer
from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.images.grid import ImageSchema
from askwise.images.predictors import PatchNetwork, fill_image, image_layer
from askwise.images.training import PatchBatches, train_under_patches
from askwise.model.black_box import wrap
from askwise.model.final_layer import LastLinear
from askwise.model.modules import is_torch_module
from askwise.model.wrapped import FrozenModel
from askwise.networks import Layers, adam, import_torch, relu_network, seeded, train
from askwise.parameters import DROPOUT, POSITIVE, WIDTHS, Whole, check_limits, within
from askwise.policy.base import Policy
from askwise.predict.base import check_labels, class_positions
from askwise.randomness import generator, seed_from
from askwise.table.prices import as_prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Groups, read_table
from askwise.uncertainty import entropy
from askwise.value import per_cost

HIDDEN_LOGIT = -1e9
MOST_STEPS = 10
"""Purchases in a training episode, which is the largest budget of the paper."""


@dataclass(eq=False, repr=False)
class PatchBaseline(FeatureAcquirer):
    """A baseline on patches; subclasses implement `_loss`.

    Deviations that all of them share: the inputs of the chooser are those of the predictor's last layer and the mask; a
    known patch is never chosen; hidden patches hold the mean image; an epoch is a pass over the images without early
    stopping; prices, which the originals do not have, divide the value of a patch.

    Parameters
    ----------
    network
        A trained torch module for images: the predictor is initialized as a copy of it.
    groups
        The `PatchGrid`.
    hidden, dropout
        Widths of the chooser, None for the paper's, and dropout after each.
    pretrain_epochs, epochs
        Epochs of the predictor under random masks, and of both networks; None for the paper's.
    learning_rate, policy_learning_rate, batch_size
        Adam's rates for the predictor and the chooser, and images per step.
    costs, random_state, progress
        As in `DynamicFeatureSelector`.
    """

    default_hidden: ClassVar[Sequence[int]] = (512, 256)
    default_pretrain_epochs: ClassVar[int] = 0
    default_epochs: ClassVar[int] = 100
    bounded_by_entropy: ClassVar[bool] = False
    """Whether a choice is a share of the entropy of the prediction; otherwise it is a probability."""

    network: Any
    _: KW_ONLY
    groups: Groups = None
    hidden: Sequence[int] | None = None
    dropout: float = within(DROPOUT, 0.3)
    pretrain_epochs: int | None = within(Whole(0, optional=True), None)
    epochs: int | None = within(Whole(0, optional=True), None)
    learning_rate: float = within(POSITIVE, 1e-3)
    policy_learning_rate: float = within(POSITIVE, 1e-4)
    batch_size: int = within(Whole(1), 64)
    costs: Any = None
    random_state: Any = None
    progress: bool | str = False

    def fit(self, X: Any, y: Any) -> Self:
        """Train on images (N, C, H, W) and their labels."""
        import_torch(type(self).__name__, 'policy="static"')
        check_limits(self)
        if self.hidden is not None and not WIDTHS.allows(self.hidden):
            raise InvalidInput(f"{type(self).__name__}: hidden must be {WIDTHS} or None; got {self.hidden!r}.")
        if not is_torch_module(self.network):
            raise InvalidInput(
                f"{type(self).__name__}: network must be a torch.nn.Module; got {type(self.network).__name__}."
            )
        schema, rows = read_table(X, self.groups)
        if not isinstance(schema, ImageSchema):
            raise InvalidInput(f"{type(self).__name__} is for images: groups must be a PatchGrid; got {self.groups!r}.")
        labels = check_labels(X, y)
        self.schema_, self.features_, self.classes_ = schema, schema.features, np.unique(labels)
        self.prices_ = as_prices(self.costs).resolve(self.features_)
        self.costs_, self.epistemic_ = self.prices_.costs, None
        network, chooser = self._trained(rows, class_positions(self.classes_, labels))
        model = FrozenModel(wrap(network, self.classes_.tolist()), schema)
        self.predictor_ = PatchNetwork(model.estimator).fit_encoded(model, rows, class_positions(self.classes_, labels))
        self.beliefs_ = BeliefModel(self.predictor_)
        self.policy_ = ChooserPolicy(chooser, self.bounded_by_entropy)
        return self

    def _loss(self, both: TwoNetworks, rows: Any, done: float) -> Any:
        """The joint loss of a batch of training rows, after a share `done` of the epochs."""
        raise NotImplementedError

    def _trained(self, rows: EncodedRows, y: np.ndarray) -> tuple[Any, Layers]:
        from torch import nn

        network, schema = copy.deepcopy(self.network), self.schema_
        assert isinstance(schema, ImageSchema)
        fill = fill_image(rows, schema, "mean")
        data = PatchBatches(rows, y, schema, fill, network)
        hidden = self.default_hidden if self.hidden is None else self.hidden
        pretrain = self.default_pretrain_epochs if self.pretrain_epochs is None else self.pretrain_epochs
        epochs = self.default_epochs if self.epochs is None else self.epochs
        with seeded(seed_from(generator(self.random_state))):
            train_under_patches(network, data, visible=(0.0, 1.0), epochs=pretrain, **adam(self))
            model = FrozenModel(wrap(network, self.classes_.tolist()), schema)
            layer = image_layer(model, rows, fill)
            widths = [len(layer.weight) + len(self.features_), *hidden, len(self.features_)]
            chooser = relu_network(widths, nn.Dropout(self.dropout))
            both = TwoNetworks(network, layer.name if isinstance(layer, LastLinear) else None, data, chooser)
            self._train_jointly(both, epochs)
        return both.trained(), Layers.from_torch(chooser.cpu(), "relu")

    def _train_jointly(self, both: TwoNetworks, epochs: int) -> None:
        n_steps, step = max(1, epochs * -(-len(both.data.values) // self.batch_size)), 0

        def loss(rows: Any) -> Any:
            nonlocal step
            step += 1
            return self._loss(both, rows, min(1.0, step / n_steps))

        groups = [
            {"params": [p for p in both.network.parameters() if p.requires_grad]},
            {"params": list(both.chooser.parameters()), "lr": self.policy_learning_rate},
        ]
        train(
            groups,
            both.data.row_numbers,
            loss,
            epochs=epochs,
            cosine=True,
            smallest_batch=2,
            description="learning to choose",
            **adam(self),
        )


class TwoNetworks:
    """Predictor and chooser in training: `predict` and `choose`, and episodes that follow a choice."""

    def __init__(self, network: Any, last: str | None, data: PatchBatches, chooser: Any) -> None:
        self.data, self.network, self.chooser = data, network, chooser.to(data.device)
        self._hook = None if last is None else network.get_submodule(last).register_forward_pre_hook(self._remember)

    def _remember(self, layer: Any, inputs: tuple[Any, ...]) -> None:
        self._features = inputs[0]

    def trained(self) -> Any:
        """The predictor after training, in evaluation mode."""
        if self._hook is not None:
            self._hook.remove()
        self.chooser.eval()
        return self.network.eval()

    def predict(self, rows: Any, mask: Any) -> tuple[Any, Any]:
        """The inputs of the last layer for masked images, and their logits."""
        logits = self.network(self.data.images(rows, mask)).float()
        return (logits if self._hook is None else self._features.float()), logits

    def choose(self, features: Any, mask: Any) -> Any:
        """(n, M) logits of the patches."""
        import torch

        return self.chooser(torch.cat([features, mask.to(features.dtype)], dim=1))

    def random_masks(self, rows: Any) -> Any:
        """(n, M) bool: a random number of random patches, fewer than all."""
        import torch

        n_patches = self.data.available.shape[1]
        ranks = torch.rand(len(rows), n_patches).argsort(dim=1).argsort(dim=1)
        drawn = ranks < torch.randint(n_patches, (len(rows), 1))
        return drawn.to(self.data.device) & self.data.available[rows]

    def transition(self, rows: Any, scores: Callable[[Any, Any], Any]) -> tuple[Any, Any, Any]:
        """One step of an episode per image, after a random number of purchases: mask, patch acquired, mask after."""
        import torch
        from torch.nn.functional import one_hot

        available = self.data.available[rows]
        n_patches = available.shape[1]
        steps = torch.randint(min(MOST_STEPS, n_patches), (len(rows),), device=self.data.device)
        mask = torch.zeros_like(available)
        bought = torch.zeros_like(steps)
        for part in (self.network, self.chooser):
            part.eval()
        with torch.no_grad():
            for step in range(int(steps.max()) + 1):
                going = torch.nonzero(step <= steps).squeeze(1)
                ask = rows[going.cpu()]
                chosen = scores(self.predict(ask, mask[going])[0], mask[going])
                best = chosen.masked_fill(~available[going] | mask[going], HIDDEN_LOGIT).argmax(dim=1)
                bought[going] = best
                further = going[step < steps[going]]
                mask[further] |= one_hot(bought[further], n_patches).bool() & available[further]
        for part in (self.network, self.chooser):
            part.train()
        return mask, bought, mask | (one_hot(bought, n_patches).bool() & available)


class ChooserPolicy(Policy):
    """The patch that a trained chooser prefers, per cost.

    Parameters
    ----------
    layers
        The chooser, as arrays.
    bounded_by_entropy
        As in `PatchBaseline`.
    """

    def __init__(self, layers: Layers, bounded_by_entropy: bool) -> None:
        self.layers = layers
        self.bounded_by_entropy = bounded_by_entropy

    def scores(self, state: Acquisition) -> np.ndarray:
        belief = state.belief
        assert belief.features is not None
        logits = self.layers(np.hstack([belief.features, state.mask]))
        if self.bounded_by_entropy:
            worth = expit(logits) * entropy(belief.proba)[:, None]
        else:
            logits = np.where(state.mask, -np.inf, logits)
            largest = logits.max(axis=1, keepdims=True)
            worth = np.exp(logits - np.where(np.isfinite(largest), largest, 0.0))
        return np.where(state.mask, -np.inf, per_cost(worth, state.prices.now(state.mask)))
