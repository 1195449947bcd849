"""Classification with Costly Features: one Q-network that either buys a feature or names a class and stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from askwise.acquire.acquisition import Acquisition
from askwise.acquire.dqn import state_inputs
from askwise.acquire.policies import Policy
from askwise.acquire.stopping import Stopping
from askwise.baselines.base import Baseline
from askwise.baselines.masked_network import MaskedRows
from askwise.errors import InvalidInput
from askwise.networks import CellCoder, Layers, ReplayBuffer, dueling, folded, import_torch, seeded
from askwise.parameters import ADAM, RATE, SHARE, Limits, Number, Several, Whole
from askwise.predict.base import SubsetPredictor
from askwise.progress import track
from askwise.randomness import seed_from

LARGEST_GRADIENT = 1.0
LEAST_PROBABILITY = 1e-3
SPARSER_MASKS = 3.0
"""In pretraining a feature is observed with probability u ** 3, u uniform: most masks have few features."""


class CWCF(Baseline):
    r"""Classification with Costly Features by deep Q-learning (Janisch, Pevny and Lisy, AAAI 2019).

    An episode buys features and ends with a classify action, one per class. Buying feature f costs
    :math:`\lambda c(f)`, a wrong class costs 1, nothing is discounted, so that the return is

    .. math:: -E\bigl[\,1(\hat y \ne y) + \lambda \sum_{f \in S} c(f)\,\bigr]

    A dueling Q-network is trained by double Q-learning with Retrace over whole episodes from a replay memory, against
    a slowly following target network; the classify actions are trained first, on random masks.

    Since the value of a classify action is the probability of being wrong, :math:`Q(x_S, y) = p(y \mid x_S) - 1`, the
    network answers :math:`p(y \mid x_S) = 1 + Q(x_S, y)`, clipped at 0.001 and normalised.

    Deviations from the original, numbered:

    1. The loop runs to a budget: the feature with the highest Q is bought whether or not a classify action is better.
       Left to stop by itself, as in the original, it is ``rival.acquire(X, stop=rival.stopping_)``. One weight serves
       all budgets; the default was chosen on validation rows (a low one hardly cares in which order it buys).
    2. The reward of every classify action is known once the label is, so all of them are trained in every visited
       state, and none needs to be taken: training episodes go on until nothing is left to buy, which also
       teaches the states past the point where the agent would stop.
    3. Prices are divided by their mean, so that `cost_weight` means the same in any currency. A price that falls with
       what is had (shared set-up costs) enters as the price at the time of purchase.
    4. Smaller and fewer updates (64 episodes at once, `batch_size` states per update instead of 50,000), with a target
       network that follows faster in return, and a fixed number of updates instead of up to 100,000 epochs with early
       stopping. The averaged target network is the one that is served.
    5. No external "high-precision classifier" as a further action: the paper's option for a classifier on all features.

    Parameters
    ----------
    cost_weight
        :math:`\lambda`: what a feature of mean price costs, in units of a wrong answer.
    hidden
        Units in each of the three hidden layers.
    pretrain_updates, n_episodes, updates_per_round
        Updates on the classify actions alone, training episodes in all, and updates after every `episodes_at_once`.
    episodes_at_once, batch_size, memory
        Episodes played side by side, states per update, and episodes remembered.
    learning_rate, weight_decay, target_rate
        Of Adam, and the share of the online network that enters the target network after each update.
    exploration
        First and last share of random purchases; falls linearly over the first half of the episodes. The target
        policy explores half as much at first and not at all in the end.
    costs, groups, random_state, progress
        See `Baseline`.

    Attributes
    ----------
    stopping_
        Stops a row where a classify action has the highest Q: ``acquire(X, stop=stopping_)``.
    """

    limits: ClassVar[Limits] = {
        **ADAM,
        **dict.fromkeys(("hidden", "n_episodes", "episodes_at_once", "memory"), Whole(1)),
        **dict.fromkeys(("pretrain_updates", "updates_per_round"), Whole(0)),
        **dict.fromkeys(("cost_weight", "weight_decay"), Number(0)),
        "target_rate": RATE,
        "exploration": Several(SHARE, count=2),
    }

    def __init__(
        self,
        *,
        cost_weight: float = 0.1,
        hidden: int = 128,
        pretrain_updates: int = 500,
        n_episodes: int = 8_000,
        updates_per_round: int = 4,
        episodes_at_once: int = 64,
        batch_size: int = 512,
        memory: int = 4_000,
        learning_rate: float = 5e-4,
        weight_decay: float = 1e-4,
        target_rate: float = 0.02,
        exploration: tuple[float, float] = (1.0, 0.1),
        costs: Any = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        random_state: Any = None,
        progress: bool | str = False,
    ) -> None:
        super().__init__(costs=costs, groups=groups, random_state=random_state, progress=progress)
        self.cost_weight = cost_weight
        self.hidden = hidden
        self.pretrain_updates = pretrain_updates
        self.n_episodes = n_episodes
        self.updates_per_round = updates_per_round
        self.episodes_at_once = episodes_at_once
        self.batch_size = batch_size
        self.memory = memory
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.target_rate = target_rate
        self.exploration = exploration

    def _train(self, values: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        import_torch("CWCF", "StaticCMI")
        if self.memory < self.episodes_at_once:
            raise InvalidInput(
                f"CWCF: memory must hold the {self.episodes_at_once} episodes played at once; got {self.memory!r}."
            )
        self.coder_ = CellCoder(values, self.schema_)
        with seeded(seed_from(rng)):
            data = MaskedRows(values, y, self.schema_, self.coder_)
            self.layers_ = _Learner(self, data, len(self.classes_), rng).train()
        self.stopping_ = ClassifyNow(self._q)
        return self._predictor(self._answer), _HighestQ(self._q)

    def _q(self, values: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Q of the classify actions (n, C) and of the features (n, M)."""
        q = self.layers_(state_inputs(self.coder_, self.schema_, values, mask))
        return q[:, : len(self.classes_)], q[:, len(self.classes_) :]

    def _answer(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        classify = self.layers_(self.coder_(values, mask))[:, : len(self.classes_)]
        proba = np.maximum(1.0 + classify, LEAST_PROBABILITY)
        return proba / proba.sum(axis=1, keepdims=True)


QValues = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class _HighestQ(Policy):
    """Prices are part of Q already."""

    def __init__(self, q: QValues) -> None:
        self.q = q

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        return np.where(mask, -np.inf, self.q(X, mask)[1])


class ClassifyNow(Stopping):
    """Stop where naming a class is worth at least as much as buying any feature that can be had."""

    def __init__(self, q: QValues) -> None:
        self.q = q

    def stops(self, state: Acquisition, proba: np.ndarray) -> np.ndarray:
        classify, buy = self.q(state.values, state.mask)
        best = np.where(state.buyable(), buy, -np.inf).max(axis=1)
        return np.asarray(classify.max(axis=1) >= best)


class _Learner:
    """The online and the target network, the memory, and how they are trained."""

    def __init__(self, options: CWCF, data: MaskedRows, n_classes: int, rng: np.random.Generator) -> None:
        import torch

        self.options, self.data, self.n_classes, self.rng = options, data, n_classes, rng
        self.free = torch.as_tensor(options.costs_ == 0)
        self.mean_price = float(options.costs_.mean()) or 1.0
        self.known = torch.nn.functional.one_hot(data.labels, n_classes).float() - 1.0  # Q of each classify action
        n_actions = n_classes + data.n_features
        widths = [data.width, *3 * [options.hidden]]
        self.online, self.target = (dueling(widths, n_actions) for _ in range(2))
        self.optimizer = torch.optim.Adam(
            self.online.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=True
        )
        self.memory = ReplayBuffer(options.memory)

    def train(self) -> Layers:
        """Classify actions first, then everything."""
        o = self.options
        for _ in range(o.pretrain_updates):
            self._descend(self._pretraining_loss())
        self.target.load_state_dict(self.online.state_dict())
        n_rounds = -(-o.n_episodes // o.episodes_at_once)
        for played in track(range(n_rounds), "learning to buy and to classify", n_rounds, o.progress):
            remaining = max(0.0, 1.0 - 2.0 * played / n_rounds)
            first, last = o.exploration
            self._play(last + (first - last) * remaining)
            for _ in range(o.updates_per_round if self.memory.size else 0):
                self._descend(self._retrace_loss(0.5 * first * remaining))
                self._follow()
        return folded(self.target)

    def _pretraining_loss(self) -> Any:
        import torch

        rows = torch.as_tensor(self.rng.integers(len(self.known), size=self.options.batch_size))
        share = torch.rand(len(rows), 1) ** SPARSER_MASKS
        mask = (torch.rand(len(rows), self.data.n_features) < share) & self.data.available[rows]
        classify = self.online(self.data.inputs(rows, mask.float()))[:, : self.n_classes]
        return torch.nn.functional.mse_loss(classify, self.known[rows])

    def _play(self, exploration: float) -> None:
        """Buy everything for some rows, mostly in the order of Q, and remember how."""
        import torch

        rows = torch.as_tensor(self.rng.integers(len(self.known), size=self.options.episodes_at_once))
        available = self.data.available[rows]
        mask = available & self.free
        steps = []
        with torch.no_grad():
            while (buyable := available & ~mask).any():
                q = self.online(self.data.inputs(rows, mask.float()))[:, self.n_classes :]
                best = q.masked_fill(~buyable, -torch.inf).argmax(dim=1)
                any_one = torch.rand(buyable.shape).masked_fill(~buyable, -1.0).argmax(dim=1)
                bought = torch.where(torch.rand(len(rows)) < exploration, any_one, best)
                chance = exploration / buyable.sum(dim=1).clamp(min=1) + (1 - exploration) * (bought == best)
                paid = self._prices_now(mask).gather(1, bought[:, None]).squeeze(1)
                acting = buyable.any(dim=1)
                steps.append((torch.where(acting, bought, -1), chance, paid))
                mask = mask | (torch.nn.functional.one_hot(bought, mask.shape[1]).bool() & acting[:, None])
        if steps:
            room = (0, mask.shape[1] - len(steps))  # episodes of M purchases, the rest of which buy nothing
            parts = [torch.stack(part, dim=1) for part in zip(*steps, strict=True)]
            padded = [torch.nn.functional.pad(p, room, value=v) for p, v in zip(parts, (-1, 1.0, 0.0), strict=True)]
            self.memory.add(rows, *padded)

    def _prices_now(self, mask: Any) -> Any:
        """In units of the mean price, (n, M)."""
        import torch

        return torch.as_tensor(self.options.prices_.now(mask.numpy()) / self.mean_price, dtype=torch.float32)

    def _retrace_loss(self, exploration: float) -> Any:
        r"""Squared errors of bought features against Retrace targets, and of all classify actions against the truth.

        .. math:: G_t = r_t + E_\pi Q(s_{t+1}, \cdot) + c_{t+1} (G_{t+1} - Q(s_{t+1}, a_{t+1})),
                  \quad c = \min(1, \pi(a \mid s) / \mu(a \mid s))
        """
        import torch

        n_states = self.data.n_features + 1
        episodes = max(1, self.options.batch_size // n_states)
        rows, bought, chance, paid = self.memory.draw(episodes, self.rng)  # (B,), then (B, T) each
        acting = bought >= 0
        masks = self._masks(rows, bought)  # (B, T + 1, M)
        inputs = self.data.inputs(rows[:, None].expand(masks.shape[:2]), masks.float())
        q = self.online(inputs)
        action = (bought.clamp(min=0) + self.n_classes)[..., None]
        with torch.no_grad():
            followed = self.target(inputs)
            policy = self._policy(q, rows, masks, exploration)
            expected = (policy * followed).sum(dim=-1)
            performed = followed[:, :-1].gather(2, action).squeeze(2)
            trace = (policy[:, :-1].gather(2, action).squeeze(2) / chance).clamp(max=1.0) * acting
            goal = torch.zeros_like(paid)
            correction = torch.zeros(len(rows))
            for t in reversed(range(paid.shape[1])):
                goal[:, t] = (expected[:, t + 1] - self.options.cost_weight * paid[:, t] + correction).clamp(max=0.0)
                correction = trace[:, t] * (goal[:, t] - performed[:, t])
        bought_error = ((q[:, :-1].gather(2, action).squeeze(2) - goal) ** 2 * acting).sum() / acting.sum()
        reached = torch.cat([torch.ones(len(rows), 1, dtype=torch.bool), acting], dim=1)
        classify_error = (q[..., : self.n_classes] - self.known[rows][:, None]) ** 2
        return bought_error + classify_error[reached].mean()

    def _masks(self, rows: Any, bought: Any) -> Any:
        """Features had before each purchase and at the end, (B, T + 1, M)."""
        import torch

        new = torch.nn.functional.one_hot(bought.clamp(min=0), self.data.n_features) * (bought >= 0)[..., None]
        start = (self.data.available[rows] & self.free)[:, None].long()
        return torch.cat([start, new], dim=1).cumsum(dim=1) > 0

    def _policy(self, q: Any, rows: Any, masks: Any, exploration: float) -> Any:
        """Probability of every action under the target policy: the best by the online network, or any valid one."""
        import torch

        buyable = self.data.available[rows][:, None] & ~masks
        valid = torch.cat([torch.ones(*masks.shape[:2], self.n_classes, dtype=torch.bool), buyable], dim=2)
        best = q.masked_fill(~valid, -torch.inf).argmax(dim=2)
        greedy = torch.nn.functional.one_hot(best, valid.shape[2])
        return (1 - exploration) * greedy + exploration * valid / valid.sum(dim=2, keepdim=True)

    def _descend(self, loss: Any) -> None:
        import torch

        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), LARGEST_GRADIENT)
        self.optimizer.step()

    def _follow(self) -> None:
        import torch

        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
                slow.lerp_(fast, self.options.target_rate)
