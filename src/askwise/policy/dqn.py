r"""Feature acquisition as reinforcement learning: a dueling Q-network (Section 3.2 and Appendix G), in one file.

State: the observed cells and their mask. Action: a feature that can be acquired. Reward: the gain per price of the
value actually observed. Deviations from the paper, numbered:

1. Many episodes run at once, in the same loop as at inference; the ``"batched"`` preset makes fewer, larger updates
   with a higher learning rate and a discount of 0.4 (chosen on validation rows of four tables from 0.99 to 0.4).
   ``"paper"`` keeps the paper's: a batch of 32 after every environment step, rate 1e-4, discount 0.99.
2. The reward is a *reduction*, u(S) - u(S + i) + lambda (e(S) - e(S + i)), so that higher is better.
3. The maximum over next actions runs over the features that can still be acquired; the online network selects the
   action and the target network evaluates it (double Q-learning).
4. A training row is not used for its own prediction (`HeldOutStates`).
5. ``reward="area"`` pays for the reduction reached so far at every step, which rewards an early gain; with the paper's
   reward and a discount near 1 the order of purchases hardly matters to the return.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from askwise.acquisition import Acquisition, nothing_known
from askwise.errors import InvalidInput
from askwise.networks import CellCoder, Layers, ReplayBuffer, dueling, folded, import_torch, seeded
from askwise.parameters import SHARE, Whole, check_limits
from askwise.policy.base import Policy, PolicyContext, WithoutRows
from askwise.progress import track
from askwise.value import HeldOutStates, per_cost


@dataclass(frozen=True)
class Schedule:
    """How environment steps and updates are interleaved."""

    rows_at_once: int
    batch_size: int
    updates_per_round: int
    learning_rate: float
    target_every: int
    gamma: float


PRESETS = {
    "batched": Schedule(
        rows_at_once=64, batch_size=256, updates_per_round=2, learning_rate=1e-3, target_every=25, gamma=0.4
    ),
    "paper": Schedule(
        rows_at_once=32, batch_size=32, updates_per_round=32, learning_rate=1e-4, target_every=100, gamma=0.99
    ),
}


class DQN(WithoutRows, Policy):
    """A policy that optimizes the whole episode, not only the next step; torch is needed for training only.

    Parameters
    ----------
    preset
        ``"batched"`` or ``"paper"``.
    n_episodes, gamma, hidden, buffer_size
        Number of episodes (each acquires all features of one training row), discount (None = the preset's),
        width of the network, size of the replay buffer.
    reward
        ``"gain"`` (the paper's) or ``"area"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import DQN
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, costs=[1, 1, 2, 2], policy=DQN(n_episodes=20), random_state=0)
    >>> selector = selector.fit(X, y)
    >>> selector.acquire(X[:2], budget=3).spent_after(-1).tolist()
    [3.0, 3.0]
    """

    reason = "The policy, trained on whole cases, ranks it first."

    def __init__(
        self,
        preset: str = "batched",
        *,
        n_episodes: int = 1000,
        gamma: float | None = None,
        hidden: int = 128,
        buffer_size: int = 10_000,
        reward: str = "gain",
    ) -> None:
        self.preset = preset
        self.n_episodes = n_episodes
        self.gamma = gamma
        self.hidden = hidden
        self.buffer_size = buffer_size
        self.reward = reward

    def fit(self, context: PolicyContext) -> Self:
        import_torch('policy="rl"', 'policy="greedy"')
        if self.preset not in tuple(PRESETS) or self.reward not in ("gain", "area"):
            raise InvalidInput(
                f'DQN: preset must be one of {tuple(PRESETS)} and reward "gain" or "area"; got {self.preset!r}, '
                f"{self.reward!r}."
            )
        check_limits(self, {name: Whole(1) for name in ("n_episodes", "buffer_size", "hidden")})
        if self.gamma is not None:
            check_limits(self, {"gamma": SHARE})
        self.coder_ = CellCoder(context.rows, context.schema)
        rng = np.random.default_rng(context.random_state)
        with seeded(context.random_state):
            self.layers_, self.returns_ = _train(self, context, PRESETS[self.preset], rng)
        return self

    def scores(self, state: Acquisition) -> np.ndarray:
        """Q(x_S, i): the gain per price expected from acquiring i now and the best features afterwards."""
        return np.where(state.mask, -np.inf, self.layers_(self.coder_(state.rows)))

    coder_: CellCoder
    layers_: Layers
    returns_: np.ndarray  # undiscounted return of each training episode, in order


def _train(dqn: DQN, context: PolicyContext, schedule: Schedule, rng: np.random.Generator) -> tuple[Layers, np.ndarray]:
    import torch

    gamma = schedule.gamma if dqn.gamma is None else dqn.gamma
    held_out = context.held_out()
    n_features = len(context.schema.features)
    width = dqn.coder_(context.rows.take([0])).shape[1]
    online, target = (dueling([width, dqn.hidden, dqn.hidden], n_features) for _ in range(2))
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=schedule.learning_rate, fused=True)
    buffer = ReplayBuffer(dqn.buffer_size)
    returns: list[float] = []
    n_updates = n_rounds = 0
    waves = -(-dqn.n_episodes // schedule.rows_at_once)
    for wave in track(range(waves), "training the Q-network", waves, context.progress):
        n = min(schedule.rows_at_once, dqn.n_episodes - wave * schedule.rows_at_once)
        episode = _Episode(context, held_out, rng.integers(len(context.rows), size=n), dqn)
        while episode.buyable.any():
            n_rounds += 1
            exploration = max(0.01, 1.0 - n_rounds / (0.7 * waves * n_features))
            buffer.add(*episode.step(online, exploration, rng))
            for _ in range(schedule.updates_per_round):
                _update(online, target, optimizer, buffer.draw(schedule.batch_size, rng), gamma)
                n_updates += 1
                if n_updates % schedule.target_every == 0:
                    target.load_state_dict(online.state_dict())
        returns.extend(episode.returns.tolist())
    return folded(online), np.array(returns)


class _Episode:
    """Training rows acquired in parallel, in the same acquisition loop as at inference."""

    def __init__(self, context: PolicyContext, held_out: HeldOutStates, rows: np.ndarray, dqn: DQN) -> None:
        self.context, self.held_out, self.rows, self.dqn = context, held_out, rows, dqn
        self.truth = context.rows.take(rows)
        self.state = nothing_known(context.schema, context.prices, context.beliefs, self.truth)
        self.objective = self.start = self._objective()
        self.buyable = self.state.buyable()
        self.inputs = self._inputs()
        self.returns = np.zeros(len(rows))

    def step(self, online: Any, exploration: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Acquire one feature for each unfinished row; returns the transitions of these rows."""
        import torch

        with torch.no_grad():
            values = online(torch.as_tensor(self.inputs, dtype=torch.float32)).numpy()
        noise = rng.random(self.buyable.shape)
        exploring = rng.random(len(values))[:, None] < exploration
        ranked = np.where(self.buyable, np.where(exploring, noise, values), -np.inf)
        acting = self.buyable.any(axis=1)
        action = np.where(acting, ranked.argmax(axis=1), -1)
        before, inputs = self.objective, self.inputs
        paid = self.state.receive(action, self.truth.values)
        self.objective = self._objective()
        gain = (self.start if self.dqn.reward == "area" else before) - self.objective
        reward = per_cost(gain, self.state.prices.weigh(paid))
        self.returns += np.where(acting, reward, 0.0)
        self.buyable = self.state.buyable()
        self.inputs = self._inputs()
        return tuple(part[acting] for part in (inputs, action, reward, self.inputs, self.buyable))

    def _objective(self) -> np.ndarray:
        """u + lambda e of the current state, (n,)."""
        discrepancy, epistemic = self.held_out.state(self.rows, self.state.mask, risk=self.context.risk_weight != 0)
        return np.asarray(discrepancy + self.context.risk_weight * epistemic)

    def _inputs(self) -> np.ndarray:
        return self.dqn.coder_(self.state.rows)


def _update(online: Any, target: Any, optimizer: Any, batch: list[Any], gamma: float) -> None:
    """One gradient step on the Bellman error of Eq. 10, by the smooth L1 loss; the maximum is over buyable features."""
    import torch

    inputs, action, reward, later, buyable = batch
    with torch.no_grad():
        best = online(later).masked_fill(~buyable, -torch.inf).argmax(dim=1, keepdim=True)
        value = target(later).gather(1, best).squeeze(1) * buyable.any(dim=1)
    predicted = online(inputs).gather(1, action[:, None]).squeeze(1)
    loss: Any = torch.nn.functional.smooth_l1_loss(predicted, reward + gamma * value)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
