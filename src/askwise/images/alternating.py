"""A network of images and the choice of its patches, trained in alternation on the states that the choice visits."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.acquisition import Acquisition, nothing_known, purchases
from askwise.epistemic import BeliefModel
from askwise.images.on_policy import EPISODES_AT_ONCE, Visited, check_network
from askwise.images.predictors import PatchNetwork
from askwise.networks import Layers, import_torch, relu_network, seeded, train
from askwise.parameters import SHARE, Whole, check_limits
from askwise.policy.base import Policy
from askwise.policy.greedy import Greedy
from askwise.predict.belief import Belief
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows
from askwise.value import per_cost
from askwise.value.base import State

if TYPE_CHECKING:
    from askwise.selector import DynamicFeatureSelector

HIDDEN, DROPOUT = (256, 256), 0.3
"""As in `PatchValueNetwork`."""
PASSES, STATES_AT_ONCE, LEARNING_RATE = 2, 256, 1e-3
"""Of the value network over the states of a round."""
LEAST_SPREAD = 1e-3
LEAST_PROBABILITY = 1e-12


class AlternatingTraining:
    r"""Trains the network of a fitted selector and a network of values in turns, each on what the other leads to.

    In each round the choice so far buys patches of every training image. From these purchases the value network learns
    what a patch saves of the log loss, :math:`\log p(y | x_{S + i}) - \log p(y | x_S)`, as in DIME (Gadgil et al.
    2024), on all states of all images; then the network is trained for some epochs with the first k patches visible, k
    drawn anew for each image and epoch. After the last round the value network learns once more, from the final
    network. The first round buys at random.

    With labels, and in states that the choice visits, the value is that of the prediction that is asked for; the
    paper's `PatchValueNetwork` learns the distance to the prediction for the complete image in random states.

    Parameters
    ----------
    rounds, epochs
        How often both are trained, and epochs of the network in each round. Its rate falls by one cosine over all.
    most_patches
        Up to how many patches are bought, and so visible; None = all.
    exploration
        Share of the purchases that are random at first, so that the worth of other patches is learned, too; it falls
        linearly to 0, so that the network ends with what the choice will show it.
    random_share
        Share of the images of an epoch that show k random patches instead, for more accuracy on patches that are not
        chosen, at the price of those that are.
    random_state
        Seed.

    Notes
    -----
    DIME trains both networks in every batch, and its value network on one state of each image per epoch. Here that is
    trained on all states of the episodes, once per round, and last on the final network; and the value is not bounded
    by the entropy of the prediction, which is among the inputs. The defaults were chosen on training images of MNIST
    that were held out; see `docs/project/images.md`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.vision import AlternatingTraining, PatchGrid, PatchNetwork, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> adaptation = PatchNetwork(pretrain_epochs=1, visible=(0.0, 0.65))
    >>> selector = DynamicFeatureSelector(
    ...     net, groups=PatchGrid(2, 2), adaptation=adaptation, policy="static", epistemic=None, random_state=0
    ... )
    >>> further = AlternatingTraining(rounds=1, epochs=1).applied(selector.fit(images, y))
    >>> further.acquire(images[:3], budget=2).proba.shape
    (3, 3, 10)
    """

    def __init__(
        self,
        rounds: int = 12,
        epochs: int = 1,
        *,
        most_patches: int | None = None,
        exploration: float = 0.3,
        random_share: float = 0.0,
        random_state: int | None = None,
    ) -> None:
        self.rounds = rounds
        self.epochs = epochs
        self.most_patches = most_patches
        self.exploration = exploration
        self.random_share = random_share
        self.random_state = random_state

    def applied(self, selector: DynamicFeatureSelector) -> DynamicFeatureSelector:
        """A selector with the further trained network and the greedy choice by the learned values.

        The given one is not changed. Its policy is not used, so that the cheapest to fit, ``"static"``, will do.
        """
        import_torch("AlternatingTraining", 'policy="static"')
        check_limits(
            self,
            {
                "rounds": Whole(1),
                "epochs": Whole(1),
                "most_patches": Whole(1, optional=True),
                "exploration": SHARE,
                "random_share": SHARE,
            },
        )
        given = check_network(self, selector)
        rng = generator(self.random_state)
        turns = _Turns(self, selector, np.random.default_rng(seed_from(rng)))
        further = given.further(turns, self.rounds * self.epochs, seed_from(rng), turns.after_epoch)
        return selector.with_policy("static").around(further).with_policy(Greedy(turns.value, risk_weight=0.0))


class SavedLoss:
    """The log loss that each patch is expected to save, by a network of the state: a `Value` that is already learned.

    Parameters
    ----------
    layers
        The network, (n, P) to (n, M), whose inputs are those of the predictor's last layer, the mask and the
        prediction.
    center, spread
        (P,) by which the inputs are scaled.
    """

    def __init__(self, layers: Layers, center: np.ndarray, spread: np.ndarray) -> None:
        self.layers = layers
        self.center = center
        self.spread = spread

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Expected savings (n, M), and 0: epistemic uncertainty is not learned."""
        belief = state.belief_of(np.ones(len(state.rows), dtype=bool))
        saved = self.layers((_inputs(belief, state.mask) - self.center) / self.spread)
        return saved, np.zeros_like(saved)


class _Turns:
    """The masks of one training: drawn from the purchases of the round, which are made anew between epochs."""

    def __init__(
        self, options: AlternatingTraining, selector: DynamicFeatureSelector, rng: np.random.Generator
    ) -> None:
        self.options, self.selector, self.rng = options, selector, rng
        self.epochs_done = 0
        self.value: Any = None  # none yet, so that the first purchases are random
        self._learner = _Learner()
        predictor = selector.predictor_
        assert isinstance(predictor, PatchNetwork)
        self._follow(predictor)

    def __call__(self, rows: np.ndarray, n_patches: int, rng: np.random.Generator) -> np.ndarray:
        return self.visited(rows, n_patches, rng)

    def after_epoch(self, predictor: PatchNetwork) -> None:
        """Follow the choice with the network as it is now, if a round has ended."""
        self.epochs_done += 1
        if self.epochs_done % self.options.epochs == 0:
            self._follow(predictor)

    def _follow(self, predictor: PatchNetwork) -> None:
        left = 1 - self.epochs_done / (self.options.rounds * self.options.epochs)
        choice = _Exploring(self.value, left * self.options.exploration, self.rng)
        rows, y = predictor.training_rows_, predictor.training_labels_
        parts = [slice(start, start + EPISODES_AT_ONCE) for start in range(0, len(rows), EPISODES_AT_ONCE)]
        episodes = [self._bought(predictor, choice, rows.take(part), y[part]) for part in parts]
        order = np.concatenate([part.order for part in episodes])
        self.visited = Visited(order, self.options.random_share)
        with seeded(seed_from(self.rng)):
            self.value = self._learner.learned(episodes, len(self.selector.features_))

    def _bought(self, predictor: PatchNetwork, choice: Policy, rows: EncodedRows, y: np.ndarray) -> _Episodes:
        """What the choice buys of each image, and what each purchase saves."""
        selector, beliefs = self.selector, BeliefModel(predictor, None)
        state = nothing_known(selector.schema_, selector.prices_, beliefs, rows)
        most = min(self.options.most_patches or len(selector.features_), len(selector.features_))
        found = _Episodes(np.full((len(rows), most), -1))
        before, loss = _inputs(state.belief, state.mask), _loss(state, y)
        for step, (bought, _) in enumerate(islice(purchases(state, rows.values, choice), most)):
            now = _loss(state, y)
            found.order[:, step] = bought
            there = bought >= 0
            found.add(before[there], bought[there], (loss - now)[there])
            before, loss = _inputs(state.belief, state.mask), now
        return found


@dataclass(eq=False)
class _Episodes:
    """Purchases of some images: their order (n, T), and state, patch and saving of each."""

    order: np.ndarray
    inputs: list[np.ndarray] = field(default_factory=list)
    bought: list[np.ndarray] = field(default_factory=list)
    saved: list[np.ndarray] = field(default_factory=list)

    def add(self, inputs: np.ndarray, bought: np.ndarray, saved: np.ndarray) -> None:
        """Purchases of one step."""
        self.inputs.append(inputs)
        self.bought.append(bought)
        self.saved.append(saved)


class _Learner:
    """Trains the network of values, which goes on from round to round."""

    def __init__(self) -> None:
        self._network: Any = None

    def learned(self, episodes: list[_Episodes], n_patches: int) -> SavedLoss:
        """What has been learned after the purchases of one more round."""
        import torch
        from torch import nn

        inputs = np.concatenate([part for each in episodes for part in each.inputs])
        bought = np.concatenate([part for each in episodes for part in each.bought])
        saved = np.concatenate([part for each in episodes for part in each.saved])
        if self._network is None:  # the scales of the first round are used in all rounds
            self.center, self.spread = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), LEAST_SPREAD)
            self._network = relu_network([inputs.shape[1], *HIDDEN, n_patches], nn.Dropout(DROPOUT))
        network = self._network.train()
        tensors = (
            torch.as_tensor((inputs - self.center) / self.spread, dtype=torch.float32),
            torch.as_tensor(bought)[:, None],
            torch.as_tensor(saved, dtype=torch.float32)[:, None],
        )
        train(
            network.parameters(),
            lambda: tensors,
            lambda seen, patch, target: ((network(seen).gather(1, patch) - target) ** 2).mean(),
            epochs=PASSES,
            batch_size=STATES_AT_ONCE,
            learning_rate=LEARNING_RATE,
            cosine=True,
            description="training the value network",
        )
        return SavedLoss(Layers.from_torch(network, "relu"), self.center, self.spread)


class _Exploring(Policy):
    """Buys what the value prefers per price, or at random where there is none yet, and in a share of the purchases."""

    def __init__(self, value: SavedLoss | None, share: float, rng: np.random.Generator) -> None:
        self.value = value
        self.share = share
        self.rng = rng

    def scores(self, state: Acquisition) -> np.ndarray:
        chance = self.rng.random(state.mask.shape)
        if self.value is None:
            return chance
        saved = per_cost(self.value.reductions(state)[0], state.weighed_now)
        return np.where(self.rng.random((len(saved), 1)) < self.share, chance, np.where(state.mask, -np.inf, saved))


def _inputs(belief: Belief, mask: np.ndarray) -> np.ndarray:
    """(n, P) what the value network reads of some states."""
    assert belief.features is not None
    return np.hstack([belief.features, mask, belief.proba]).astype(np.float32)


def _loss(state: Acquisition, y: np.ndarray) -> np.ndarray:
    """(n,) the log loss of the prediction."""
    return np.asarray(-np.log(np.maximum(state.belief.proba[np.arange(len(y)), y], LEAST_PROBABILITY)))
