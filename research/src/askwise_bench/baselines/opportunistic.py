"""Opportunistic Learning: buy the feature expected to change the predictor's certainty most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from askwise.errors import InvalidInput
from askwise.networks import CellCoder, Layers, ReplayBuffer, follow, import_torch, seeded
from askwise.parameters import DROPOUT, POSITIVE, RATE, SHARE, Several, Whole, within
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.progress import track
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.base import Baseline, ScoredPolicy
from askwise_bench.baselines.masked_network import MaskedRows

LEAST_EXPLORATION = 0.1
ROWS_AT_ONCE = 4096
"""Rows per batch when certainty is computed: the dropout masks of all their units are in memory at once."""


@dataclass(kw_only=True, eq=False, repr=False)
class Opportunistic(Baseline):
    r"""Opportunistic Learning (Kachuee et al., ICLR 2019): certainty by MC dropout, its change as reward.

    The certainty in each class is the mean softmax of a predictor P whose dropout stays on; a feature is rewarded by
    how far it moves that distribution, in either direction, per unit of cost:

    .. math:: r_i = \lVert Cert(x_S) - Cert(x_{S + i}) \rVert_1 / c_i

    A second network Q estimates the reward. It has its own layers and also reads the activations of P at every layer,
    without passing gradients to P. P and Q are trained together from a replay memory of purchases.

    Deviations from the original, numbered:

    1. `episodes_at_once` samples of the stream are processed in parallel, and the training rows are repeated.
    2. Q estimates the change of certainty, and is divided by the price now when features are compared, as in
       the authors' code; their paper divides the reward.
    3. Dropout masks are drawn once, at the end of training, and are the same for all rows: an answer is the mean over
       `n_samples` of them, is the same in every call, and needs no torch. Q reads P without dropout.
    4. The networks see the mask beside the cells. All labels are used: there is no active learning.
    5. No action "predict": the original takes it only when no feature is left.

    Parameters
    ----------
    hidden
        Units of P's hidden layers; Q has as many of its own.
    dropout, n_samples
        Share of P's units dropped, and dropout masks per certainty.
    n_episodes, episodes_at_once, updates_per_step
        Samples in total, samples in parallel, and updates after every purchase.
    gamma
        Discount of later rewards; the authors' published experiment has 0.
    memory, batch_size, learning_rate, target_rate
        Size of the replay memory, purchases per update, rate of Adam, and update rate of the target network.
    costs, groups, random_state, progress
        See `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import Opportunistic
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = Opportunistic(n_episodes=128, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    hidden: Sequence[int] = within(Several(Whole(1), fewest=1), (64, 32))
    dropout: float = within(DROPOUT, 0.5)
    n_samples: int = within(Whole(1), 30)
    n_episodes: int = within(Whole(1), 3_000)
    episodes_at_once: int = within(Whole(1), 64)
    updates_per_step: int = within(Whole(0), 2)
    gamma: float = within(SHARE, 0.0)
    memory: int = within(Whole(1), 20_000)
    batch_size: int = within(Whole(1), 128)
    learning_rate: float = within(POSITIVE, 1e-3)
    target_rate: float = within(RATE, 0.01)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        import_torch("Opportunistic", "StaticCMI")
        if self.memory < self.episodes_at_once:
            raise InvalidInput(
                f"Opportunistic: memory must hold the {self.episodes_at_once} purchases made in parallel; got "
                f"{self.memory!r}."
            )
        self.coder_ = CellCoder(rows, self.schema_)
        with seeded(seed_from(rng)):
            data = MaskedRows(rows, y, self.schema_, self.coder_)
            network = _Stream(self, data, len(self.classes_), rng).learn()
        self.dropped_ = _DroppedOut.draw(network.p, self.dropout, self.n_samples, rng)
        self.q_layers_ = Layers.from_torch(network.q, "relu")
        return self._predictor(self._answer), ScoredPolicy(self._worth)

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        return self.dropped_.certainty(self.coder_(rows))

    def _worth(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        """Expected change of certainty by each feature, (n, M)."""
        inputs = self.coder_(rows)
        *bodies, head = zip(self.q_layers_.weights, self.q_layers_.biases, strict=True)
        own = inputs
        for (weight, bias), shared in zip(bodies, self.dropped_.activations(inputs), strict=True):
            own = np.hstack([np.maximum(own @ weight + bias, 0.0), shared])
        return np.asarray(own @ head[0] + head[1])


@dataclass(frozen=True)
class _DroppedOut:
    """P as arrays, with fixed dropout masks: `kept[l]` is (K, H_l), 0 or 1 / (1 - dropout)."""

    layers: Layers
    kept: list[np.ndarray]

    @classmethod
    def draw(cls, p: Any, dropout: float, n_samples: int, rng: np.random.Generator) -> _DroppedOut:
        layers = Layers.from_torch(p, "relu")
        shapes = [(n_samples, len(bias)) for bias in layers.biases[:-1]]
        return cls(layers, [(rng.random(shape) >= dropout) / (1.0 - dropout) for shape in shapes])

    def certainty(self, inputs: np.ndarray) -> np.ndarray:
        """Mean softmax over the dropout masks, (n, C)."""
        blocks = np.split(inputs, range(ROWS_AT_ONCE, len(inputs), ROWS_AT_ONCE))
        return np.concatenate([self._certainty(block) for block in blocks])

    def _certainty(self, active: np.ndarray) -> np.ndarray:
        """(n, P), then (K, n, H) in each hidden layer."""
        parts = zip(self.layers.weights, self.layers.biases, self.kept, strict=False)
        for weight, bias, kept in parts:
            active = np.maximum(active @ weight + bias, 0.0) * kept[:, None, :]
        return np.asarray(softmax(active @ self.layers.weights[-1] + self.layers.biases[-1], axis=-1).mean(axis=0))

    def activations(self, inputs: np.ndarray) -> list[np.ndarray]:
        """Each hidden layer without dropout, (n, H_l)."""
        found = []
        for weight, bias in zip(self.layers.weights[:-1], self.layers.biases[:-1], strict=True):
            inputs = np.maximum(inputs @ weight + bias, 0.0)
            found.append(inputs)
        return found


class _Stream:
    """A stream of training rows: Q buys, P gives the reward, and both learn from the memory."""

    def __init__(self, options: Opportunistic, data: MaskedRows, n_classes: int, rng: np.random.Generator) -> None:
        import torch

        self.options, self.data, self.rng = options, data, rng
        self.network, self.target = (
            _network(data.width, options.hidden, n_classes, data.n_features, options.dropout) for _ in range(2)
        )
        self.target.load_state_dict(self.network.state_dict())
        self.free = torch.as_tensor(options.costs_ == 0)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=options.learning_rate, fused=True)
        self.memory = ReplayBuffer(options.memory)

    def learn(self) -> Any:
        """Play all episodes; returns the trained network."""
        o = self.options
        n_rounds = -(-o.n_episodes // o.episodes_at_once)
        for played in track(range(n_rounds), "opportunistic learning", n_rounds, o.progress):
            self._episode(max(LEAST_EXPLORATION, 1.0 - 2.0 * played / n_rounds))
        return self.network

    def _episode(self, exploration: float) -> None:
        import torch

        rows = torch.as_tensor(self.rng.integers(len(self.data.labels), size=self.options.episodes_at_once))
        available = self.data.available[rows]
        mask = available & self.free
        certainty = self._certainty(rows, mask)
        while (buyable := available & ~mask).any():
            acting = buyable.any(dim=1)
            bought = self._choose(rows, mask, buyable, exploration)
            after = mask | (torch.nn.functional.one_hot(bought, mask.shape[1]).bool() & acting[:, None])
            certainty_after = self._certainty(rows, after)
            reward = (certainty_after - certainty).abs().sum(dim=1)
            self.memory.add(*(part[acting] for part in (rows, mask, bought, reward)))
            mask, certainty = after, certainty_after
            for _ in range(self.options.updates_per_step):
                self._update(*self.memory.draw(self.options.batch_size, self.rng))

    def _certainty(self, rows: Any, mask: Any) -> Any:
        """(n, C): mean softmax of P over dropout masks drawn now."""
        import torch

        seen = self.data.inputs(rows, mask.float())
        with torch.no_grad():
            logits = self.network.predict(seen, self.options.n_samples)  # (K, n, C)
        return torch.softmax(logits, dim=-1).mean(dim=0)

    def _choose(self, rows: Any, mask: Any, buyable: Any, exploration: float) -> Any:
        import torch

        price = torch.as_tensor(self.options.prices_.now(mask.numpy()), dtype=torch.float32)
        with torch.no_grad():
            q = self.network.value(self.data.inputs(rows, mask.float()))
        worth = torch.where(q > 0, q / price.clamp(min=1e-6), q * price)
        best = worth.masked_fill(~buyable, -torch.inf).argmax(dim=1)
        any_one = torch.rand(buyable.shape).masked_fill(~buyable, -1.0).argmax(dim=1)
        return torch.where(torch.rand(len(rows)) < exploration, any_one, best)

    def _update(self, rows: Any, mask: Any, bought: Any, reward: Any) -> None:
        """One step for P (cross-entropy after the purchase) and Q (squared Bellman error)."""
        import torch
        from torch.nn import functional

        after = mask | functional.one_hot(bought, mask.shape[1]).bool()
        seen, seen_after = (self.data.inputs(rows, part.float()) for part in (mask, after))
        goal = reward
        if self.options.gamma:
            with torch.no_grad():
                left = self.data.available[rows] & ~after
                later = self.target.value(seen_after).masked_fill(~left, -torch.inf).max(dim=1).values
                goal = reward + self.options.gamma * torch.where(left.any(dim=1), later, 0.0)
        estimate = self.network.value(seen).gather(1, bought[:, None]).squeeze(1)
        both = torch.cat([seen, seen_after])  # P also learns the state before a purchase
        predicting = functional.cross_entropy(self.network.predict(both)[0], self.data.labels[rows].repeat(2))
        loss: Any = predicting + functional.mse_loss(estimate, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        follow(self.target, self.network, self.options.target_rate)


def _network(width: int, hidden: Sequence[int], n_classes: int, n_features: int, dropout: float) -> Any:
    """P, and Q that reads P's activations: ``p`` and ``q`` list their layers, the last ones being the heads."""
    import torch
    from torch import nn

    class Joint(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            own = [width, *hidden]
            read = [width, *(2 * units for units in hidden)]
            self.p = nn.ModuleList([nn.Linear(a, b) for a, b in zip(own, [*hidden, n_classes], strict=True)])
            self.q = nn.ModuleList([nn.Linear(a, b) for a, b in zip(read, [*hidden, n_features], strict=True)])

        def predict(self, seen: Any, n_samples: int = 1) -> Any:
            """Logits of P with dropout on, (K, n, C): the first layer is the same for all K samples."""
            seen = torch.relu(self.p[0](seen)).expand(n_samples, -1, -1)
            for layer in self.p[1:-1]:
                seen = torch.relu(layer(nn.functional.dropout(seen, dropout)))
            return self.p[-1](nn.functional.dropout(seen, dropout))

        def value(self, seen: Any) -> Any:
            """Q of each feature; P is read without dropout and without gradient."""
            shared = own = seen
            for p, q in zip(self.p[:-1], self.q[:-1], strict=True):
                with torch.no_grad():
                    shared = torch.relu(p(shared))
                own = torch.cat([torch.relu(q(own)), shared], dim=1)
            return self.q[-1](own)

    return Joint()
