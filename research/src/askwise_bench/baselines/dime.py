"""DIME: conditional mutual information estimated by the loss that a feature saves (Gadgil et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from askwise.parameters import SHARE, within
from askwise.table.rows import EncodedRows
from askwise.uncertainty import entropy
from askwise.value.gain import per_cost
from askwise_bench.baselines.masked_network import train_with_patience
from askwise_bench.baselines.two_networks import TwoNetworkBaseline, TwoNetworks

EXPLORATION_ROUNDS = 10
"""How many times the held-out loss may stop falling, with less exploration each time, before training ends."""


@dataclass(kw_only=True, eq=False, repr=False)
class DIME(TwoNetworkBaseline):
    r"""Discriminative mutual information estimation: a value network that regresses the loss saved by a feature.

    .. math:: v_\phi(x_S)_i \approx E[l(f_\theta(x_S), y) - l(f_\theta(x_{S \cup i}), y)] = I(y; x_i \mid x_S)

    Gadgil, Covert, Lee (2024), "Estimating conditional mutual information for dynamic feature selection", Eqs. 2-3:
    the predictor minimizes its log loss on the states visited, the value network the squared error of the loss
    saved by the feature bought. No feature carries more information than the entropy of the prediction, so
    :math:`v_i = H(f_\theta(x_S))\, \sigma(g_\phi(x_S)_i)`. The feature of the largest value per price is bought.

    Parameters
    ----------
    exploration, exploration_decay
        Share of random purchases in training, and the factor it is cut by whenever the held-out loss no longer falls.
    others
        As in `TwoNetworkBaseline`.

    Notes
    -----
    Deviations from the original:

    1. A feature that is known or missing is never bought in training; in the original it may be, without lowering the
       loss.
    2. An episode is rolled out first; then the losses of all its states form one batch, with new dropout. The original
       adds the same losses step by step.
    3. Cells are scaled (the original only centers them), categories are one-hot, and the mask is given per column.
    4. Exploration starts at one half (the authors' scripts: 0.05 or none), so that the values of rarely
       bought features are learned too.
    5. Dropout is sliced from precomputed draws, and Adam's smallest rate is 1e-5 (the original: 1e-6).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import DIME
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = DIME(pretrain_epochs=2, epochs=2, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    exploration: float = within(SHARE, 0.5)
    exploration_decay: float = within(SHARE, 0.2)
    pretrain_epochs: int = 200

    def _train_jointly(self, both: TwoNetworks, rows: Any, judged: Any) -> None:
        episodes = _Episodes(both, self)

        def explore_less() -> None:
            episodes.exploration *= self.exploration_decay

        train_with_patience(
            both.networks,
            rows,
            episodes.loss,
            lambda: episodes.prediction_loss(judged),
            self,
            epochs=self.epochs,
            rounds=EXPLORATION_ROUNDS,
            next_round=explore_less,
            description="learning values",
        )

    def _worth(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        """The estimated mutual information of each feature with the label, in nats."""
        seen = self.coder_(rows)
        bound = entropy(self._answer(rows))
        return np.asarray(expit(self.chooser_layers_(seen)) * bound[:, None])


class _Episodes:
    """Losses of the two networks on the states that the policy visits."""

    def __init__(self, both: TwoNetworks, baseline: DIME) -> None:
        self.both, self.data, self.prices, self.exploration = both, both.data, baseline.prices_, baseline.exploration

    def loss(self, rows: Any) -> Any:
        """Mean over states, the empty one included, of the predictor's log loss and the squared error of the value."""
        import torch
        from torch.nn.functional import cross_entropy

        masks, bought = self._rollout(rows, self.exploration)
        reached = bought >= 0  # (K, n)
        seen = self.data.inputs(rows.repeat(len(masks)), masks.flatten(0, 1).float())
        logits = self.both.predictor(seen).unflatten(0, masks.shape[:2])  # (K + 1, n, C)
        labels = self.data.labels[rows].expand(len(masks), -1)
        log_loss = cross_entropy(logits.permute(0, 2, 1), labels, reduction="none")  # (K + 1, n)
        log_proba = torch.log_softmax(logits.detach()[:-1], dim=2)
        bound = -(log_proba.exp() * log_proba).sum(dim=2)  # (K, n)
        values = self.both.chooser(seen[: reached.numel()]).unflatten(0, reached.shape)  # (K, n, M)
        value = values.gather(2, bought.clamp(min=0)[:, :, None]).squeeze(2).sigmoid() * bound
        saved = (log_loss[:-1] - log_loss[1:]).detach()
        n_states = reached.sum() + len(rows)
        return (log_loss[0].sum() + (log_loss[1:] + (value - saved) ** 2)[reached].sum()) / n_states

    def prediction_loss(self, rows: Any) -> float:
        """Mean log loss along the episodes of the greedy policy, the empty state included."""
        from torch.nn.functional import cross_entropy

        masks = self._rollout(rows, 0.0)[0]
        of_row = rows.repeat(len(masks))
        logits = self.both.predictor(self.data.inputs(of_row, masks.flatten(0, 1).float()))
        return float(cross_entropy(logits, self.data.labels[of_row]))

    def _rollout(self, rows: Any, exploration: float) -> tuple[Any, Any]:
        """Episodes that buy the largest value per price, or at random in a share `exploration` of the steps."""
        import torch

        def scores(seen: Any, mask: Any) -> Any:
            value = self.both.chooser(seen).sigmoid()
            per_price = torch.as_tensor(per_cost(value.numpy(), self.prices.now(mask.numpy())), dtype=value.dtype)
            at_random = torch.rand(len(rows), 1) < exploration
            return torch.where(at_random, torch.rand_like(value), per_price)

        return self.both.rollout(rows, scores)
