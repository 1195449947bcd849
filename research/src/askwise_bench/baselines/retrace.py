"""Double Q-learning with Retrace over whole episodes: how `CWCF` trains its network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.networks import Layers, ReplayBuffer, dueling, folded, follow
from askwise.progress import track
from askwise_bench.baselines.masked_network import MaskedRows

if TYPE_CHECKING:
    from askwise_bench.baselines.cwcf import CWCF

LARGEST_GRADIENT = 1.0
SPARSER_MASKS = 3.0
"""In pretraining a feature is observed with probability u ** 3, u uniform: most masks have few features."""


class RetraceLearner:
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
        """Pretrain the classify actions, then train all actions."""
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
                follow(self.target, self.online, o.target_rate)
        return folded(self.target)

    def _pretraining_loss(self) -> Any:
        import torch

        rows = torch.as_tensor(self.rng.integers(len(self.known), size=self.options.batch_size))
        share = torch.rand(len(rows), 1) ** SPARSER_MASKS
        mask = (torch.rand(len(rows), self.data.n_features) < share) & self.data.available[rows]
        classify = self.online(self.data.inputs(rows, mask.float()))[:, : self.n_classes]
        return torch.nn.functional.mse_loss(classify, self.known[rows])

    def _play(self, exploration: float) -> None:
        """Buy all features of some rows, mostly in the order of Q, and store the episodes."""
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
            room = (0, mask.shape[1] - len(steps))  # pad to M purchases with steps that buy nothing
            parts = [torch.stack(part, dim=1) for part in zip(*steps, strict=True)]
            padded = [torch.nn.functional.pad(p, room, value=v) for p, v in zip(parts, (-1, 1.0, 0.0), strict=True)]
            self.memory.add(rows, *padded)

    def _prices_now(self, mask: Any) -> Any:
        """Current prices in units of the mean price, (n, M)."""
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
        """Features known before each purchase and at the end, (B, T + 1, M)."""
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
