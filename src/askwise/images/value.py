"""The greedy value network of Appendix G for images: all patches are scored in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from askwise.images.predictors import PatchNetwork
from askwise.networks import Layers, adam, import_torch, relu_network, seeded, train
from askwise.parameters import DROPOUT, POSITIVE, Number, Whole, check_limits, within
from askwise.predict.belief import Belief
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise.table.subsets import extended, sample
from askwise.value import ValueEstimator
from askwise.value.base import State
from askwise.value.targets import HeldOutStates, value_targets

MOST_STATES = 200_000
"""Maximum number of states kept for further training: 400 MB with 512 features."""


@dataclass(kw_only=True, eq=False, repr=False)
class PatchValueNetwork(ValueEstimator):
    r"""Predicts what each patch will reduce u and e by, from the inputs of the last layer, the mask and the prediction.

    Two hidden layers, two heads of M outputs, squared error on :math:`u(S) - u(S + i)` and :math:`e(S) - e(S + i)` of
    sampled patches :math:`i`. Pass it as ``Greedy(PatchValueNetwork())``.

    Parameters
    ----------
    hidden, dropout, l1
        Units per hidden layer, dropout after each, and the weight of the sum of all absolute weights. The paper's 0.1
        (profile "paper") shrinks the weights to 0, so that the policy is one order for all images (MNIST: 78.6 %
        over 2 to 10 patches instead of 87.9; 1,500 images).
    rounds
        How often new states are drawn and their targets computed: the first time from random masks; then a share
        `on_policy` of them from masks that the network so far would choose.
    n_states, n_candidates
        States per round (None = one per training image), and candidate patches per state; None = all.
    epochs
        Passes per round over the states so far.
    keep
        Whether the states of earlier rounds are trained on again.
    learning_rate, batch_size, random_state, progress
        Of Adam; seed; progress bars.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Greedy
    >>> from askwise.vision import PatchGrid, PatchNetwork, PatchValueNetwork, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> value = PatchValueNetwork(rounds=1, epochs=1, n_states=100)
    >>> selector = DynamicFeatureSelector(
    ...     net, groups=PatchGrid(2, 2), adaptation=PatchNetwork(), policy=Greedy(value), epistemic=None, random_state=0
    ... )
    >>> selector.fit(images, y).acquire(images[:3], budget=2).order.shape
    (3, 2)
    """

    hidden: int = within(Whole(1), 256)
    dropout: float = within(DROPOUT, 0.3)
    l1: float = within(Number(0), 0.0)
    rounds: int = within(Whole(1), 4)
    on_policy: float = within(Number(0, 1), 0.5)
    n_states: int | None = within(Whole(1, optional=True), None)  # type: ignore[assignment]
    n_candidates: int | None = within(Whole(1, optional=True), 4)
    epochs: int = within(Whole(0), 10)
    keep: bool = True
    learning_rate: float = within(POSITIVE, 1e-3)
    batch_size: int = within(Whole(1), 64)
    random_state: int = 0
    progress: bool | str = False

    def fit(self, held_out: HeldOutStates) -> Self:
        """Draw states, compute their targets and train both heads on them, round by round."""
        import_torch("PatchValueNetwork", "Greedy(), which completes images from similar ones")
        check_limits(self)
        rng = np.random.default_rng(self.random_state)
        self.schema_ = held_out.schema
        self.backbone_ = _backbone(held_out)
        self._heads: Any = None
        kept: list[list[np.ndarray]] = []
        with seeded(seed_from(rng)):
            for _ in range(self.rounds):
                states = self._states(held_out, rng)
                kept = [*kept, states] if self.keep else [states]
                while sum(len(part[0]) for part in kept) > MOST_STATES and len(kept) > 1:
                    kept.pop(0)
                self._train_on([np.concatenate(parts) for parts in zip(*kept, strict=True)])
        del self._heads
        return self

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Predicted reductions of u and of e by each patch, (n, M) each."""
        belief = state.belief_of(np.ones(len(state.rows), dtype=bool))
        return self._reductions(self._inputs(belief, state.rows, state.mask))

    def _reductions(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        heads = self.layers_((inputs - self.center_) / self.spread_).reshape(len(inputs), 2, -1)
        return heads[:, 0] * self.scale_[0], heads[:, 1] * self.scale_[1]

    def _inputs(self, belief: Belief, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        """(n, H + M + C) inputs of the network for a state."""
        features = belief.features if self.backbone_ is None else self.backbone_.features(rows)
        assert features is not None
        return np.hstack([features, mask, belief.proba]).astype(np.float32)

    def _states(self, held_out: HeldOutStates, rng: np.random.Generator) -> list[np.ndarray]:
        """Inputs (n, P), targets (n, 2, M), and where there are targets, of newly drawn states."""
        n_states, n_patches = self.n_states or len(held_out.rows), held_out.available.shape[1]
        rows = rng.permutation(np.resize(rng.permutation(len(held_out.rows)), n_states))
        mask = sample(len(rows), n_patches, rng) & held_out.available[rows]
        if self._heads is not None:
            chosen = rng.random(len(rows)) < self.on_policy
            mask[chosen] = self._visited(held_out, rows[chosen], mask[chosen].sum(axis=1))
        asked = rng.random(mask.shape).argsort(axis=1).argsort(axis=1)
        asked = np.where(mask, n_patches, asked).argsort(axis=1).argsort(axis=1)  # known patches are not candidates
        candidates = None if self.n_candidates is None else asked < self.n_candidates
        targets = np.stack(value_targets(held_out, rows, mask, candidates), axis=1).astype(np.float32)
        return [self._believed(held_out, rows, mask), np.nan_to_num(targets), ~np.isnan(targets)]

    def _visited(self, held_out: HeldOutStates, rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """(n, M) the patches that the current network would acquire, `sizes` (n,) of each image."""
        mask = np.zeros((len(rows), held_out.available.shape[1]), dtype=bool)
        for step in range(int(sizes.max(initial=0))):
            open_rows = np.flatnonzero(step < sizes)
            gain, _ = self._reductions(self._believed(held_out, rows[open_rows], mask[open_rows]))
            buyable = held_out.available[rows[open_rows]] & ~mask[open_rows]
            best = np.where(buyable, gain, -np.inf).argmax(axis=1)
            mask[open_rows] = extended(mask[open_rows], np.where(buyable.any(axis=1), best, -1))
        return mask

    def _believed(self, held_out: HeldOutStates, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Inputs of training images `rows` under `mask`, in blocks of bounded size."""
        model, found = held_out.beliefs[0], []
        step = model.rows_at_once
        for start in range(0, max(len(rows), 1), step):
            part = slice(start, start + step)
            known = held_out.rows.take(rows[part]).masked(self.schema_.expand(mask[part]))
            belief = model.believe(known, members=False, leave_out=rows[part])
            found.append(self._inputs(belief, known, mask[part]))
        return np.concatenate(found)

    def _train_on(self, states: list[np.ndarray]) -> None:
        import torch

        inputs, targets, there = states
        if self._heads is None:  # the scales of the first round are used in all rounds
            self.center_, self.spread_ = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-3)
            self.scale_ = np.array([targets[:, head][there[:, head]].std() or 1.0 for head in (0, 1)])
            widths = [inputs.shape[1], self.hidden, self.hidden, 2 * targets.shape[2]]
            self._heads = relu_network(widths, torch.nn.Dropout(self.dropout))
        network = self._heads
        seen = torch.as_tensor((inputs - self.center_) / self.spread_, dtype=torch.float32)
        wanted = torch.as_tensor(targets / self.scale_[:, None], dtype=torch.float32)
        known = torch.as_tensor(there, dtype=torch.float32)

        def loss(seen: Any, wanted: Any, known: Any) -> Any:
            error = (network(seen).view(wanted.shape) - wanted) ** 2 * known
            penalty = sum(weight.abs().sum() for weight in network.parameters()) if self.l1 else 0.0
            return error.sum() / known.sum().clamp(min=1) + self.l1 * penalty

        tensors, said = (seen, wanted, known), "training the value network"
        train(network.parameters(), lambda: tensors, loss, epochs=self.epochs, description=said, **adam(self))
        self.layers_ = Layers.from_torch(network, "relu")


def _backbone(held_out: HeldOutStates) -> PatchNetwork | None:
    """A network that provides features if the predictor does not."""
    predictor = held_out.beliefs[0].predictor
    if isinstance(predictor, PatchNetwork):
        return None
    own = PatchNetwork(predictor.estimator_)
    return own.fit_encoded(predictor.model_, held_out.rows, predictor.training_labels_)
