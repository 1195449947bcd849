"""A network of images trained further on the patches that its own policy chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.acquisition import nothing_known, purchases
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.images.predictors import PatchNetwork
from askwise.parameters import SHARE, Whole, check_limits
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows

if TYPE_CHECKING:
    from askwise.selector import DynamicFeatureSelector

EPISODES_AT_ONCE = 2000


class OnPolicyTraining:
    """Trains the network of a fitted selector on the states that its policy visits, and fits the policy again.

    A network trained with random patches hidden is at its best where patches are random, and a policy's patches are
    not. In each round the policy buys patches of every training image, one by one; the network is trained for some
    epochs with the first k of them visible, k drawn anew for each image and epoch; then members and policy are fitted
    to the new network. The wrapped network itself is never changed, only the copy that a `PatchNetwork` trains.

    Parameters
    ----------
    rounds, epochs
        How often the policy is followed, and epochs of training after each time.
    most_patches
        Up to how many patches are bought, and so visible; None = all.
    random_share
        Share of the images of an epoch that show k random patches instead, so that other states stay known.
    random_state
        Seed.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.vision import OnPolicyTraining, PatchGrid, PatchNetwork, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> adaptation = PatchNetwork(pretrain_epochs=1, visible=(0.0, 0.65))
    >>> selector = DynamicFeatureSelector(
    ...     net, groups=PatchGrid(2, 2), adaptation=adaptation, policy="static", epistemic=None, random_state=0
    ... )
    >>> further = OnPolicyTraining(rounds=1, epochs=1).applied(selector.fit(images, y))
    >>> further.acquire(images[:3], budget=2).proba.shape
    (3, 3, 10)
    """

    def __init__(
        self,
        rounds: int = 2,
        epochs: int = 3,
        *,
        most_patches: int | None = None,
        random_share: float = 0.2,
        random_state: int | None = None,
    ) -> None:
        self.rounds = rounds
        self.epochs = epochs
        self.most_patches = most_patches
        self.random_share = random_share
        self.random_state = random_state

    def applied(self, selector: DynamicFeatureSelector) -> DynamicFeatureSelector:
        """A selector with the further trained network and its policy; the given one is not changed."""
        check_limits(
            self,
            {
                "rounds": Whole(1),
                "epochs": Whole(1),
                "most_patches": Whole(1, optional=True),
                "random_share": SHARE,
            },
        )
        check_network(self, selector)
        rng = generator(self.random_state)
        for _ in range(self.rounds):
            given = selector.predictor_
            assert isinstance(given, PatchNetwork)
            order = self._orders(selector)
            further = given.further(Visited(order, self.random_share), self.epochs, seed_from(rng))
            selector = selector.around(further)
        return selector

    def _orders(self, selector: DynamicFeatureSelector) -> np.ndarray:
        """(N, T) the patches that the policy buys of each training image, -1 = none."""
        beliefs, rows = BeliefModel(selector.predictor_, None), selector.predictor_.training_rows_
        parts = [rows.take(slice(start, start + EPISODES_AT_ONCE)) for start in range(0, len(rows), EPISODES_AT_ONCE)]
        return np.concatenate([self._orders_of(selector, beliefs, part) for part in parts])

    def _orders_of(self, selector: DynamicFeatureSelector, beliefs: BeliefModel, rows: EncodedRows) -> np.ndarray:
        most = self.most_patches or len(selector.features_)
        order = np.full((len(rows), most), -1)
        weight = selector.risk_weight
        state = nothing_known(selector.schema_, selector.prices_, beliefs, rows, risk_weight=weight)
        for step, (choice, _) in enumerate(purchases(state, rows.values, selector.policy_)):
            order[:, step] = choice
            if step + 1 == most:
                break
        return order


def check_network(training: Any, selector: DynamicFeatureSelector) -> PatchNetwork:
    """The network of a fitted selector of images that `training` is to train further."""
    given = getattr(selector, "predictor_", None)
    if not isinstance(given, PatchNetwork):
        raise InvalidInput(
            f"{type(training).__name__} needs a fitted selector of images whose adaptation is a PatchNetwork; got "
            f"{selector!r}."
        )
    return given


class Visited:
    """Draws masks: of each image the first k patches of its order, or as many at random.

    Parameters
    ----------
    order
        (N, T) patches of each training image, -1 = none.
    random_share
        Share of the images with random patches.
    """

    def __init__(self, order: np.ndarray, random_share: float) -> None:
        self.order = order
        self.random_share = random_share

    def __call__(self, rows: np.ndarray, n_patches: int, rng: np.random.Generator) -> np.ndarray:
        """(n, M) bool masks of training images `rows` (n,)."""
        order = self.order[rows]
        sizes = rng.integers(0, order.shape[1] + 1, size=len(rows))
        position = np.full((len(rows), n_patches), n_patches)
        at, step = np.nonzero(order >= 0)
        position[at, order[at, step]] = step
        ranks = rng.random(position.shape).argsort(axis=1).argsort(axis=1)
        by_chance = rng.random(len(rows)) < self.random_share
        return np.asarray(np.where(by_chance[:, None], ranks, position) < sizes[:, None])
