"""GDFS: a greedy policy learned through a continuous relaxation (Covert et al. 2023)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from askwise.networks import seeded
from askwise.randomness import LARGEST_SEED
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.masked_network import Best, train_with_patience
from askwise_bench.baselines.two_networks import TwoNetworkBaseline, TwoNetworks

SHARPNESS = 5.0
"""Factor of the logits before the relaxation, as in the authors' code."""
TEMPERATURES = tuple(np.geomspace(1.0, 0.1, 5).tolist())
"""One round of training at each, from soft to nearly hard choices."""


class GDFS(TwoNetworkBaseline):
    r"""Greedy dynamic feature selection: a policy trained to lower the loss of a predictor by its next choice.

    .. math:: \min_{\theta, \phi} E_{x, y}\, \sum_k E_{i \sim \pi_\phi(x_{S_k})}\, l(f_\theta(x_{S_k \cup i}), y)

    Covert, Qiu, Lu, Kim, White, Lee (2023), "Learning to maximize mutual information for dynamic feature
    selection", Eq. 5 and Algorithm 1. The choice is relaxed by the Concrete distribution, so that the loss has a
    gradient in :math:`\phi`; at its optimum the policy picks the feature with the largest mutual information with the
    label given what is known. At inference it picks the feature of the largest logit.

    Parameters
    ----------
    epochs
        Maximum epochs of both networks at each temperature.
    others
        As in `TwoNetworkBaseline`.

    Notes
    -----
    Deviations from the original:

    1. A feature that is known or missing is never chosen in training; in the original a relaxed choice may fall on a
       known one.
    2. An episode is rolled out first by hard choices; then the losses of all its states form one batch, with new
       dropout. The original adds the same losses step by step.
    3. The held-out loss uses the same draws in every epoch, each row several times in small tables, and the final
       weights are those of the lowest loss under choices of the largest logit, as at inference.
    4. Cells are scaled (the original only centers them), categories are one-hot, and the mask is given per column.
    5. Prices are not in the original: the probability of a choice is divided by the price. A trained policy is so
       certain that only large price differences change its choice.
    6. Dropout is sliced from precomputed draws, and Adam's smallest rate in pretraining is 1e-5 (the original: 1e-6).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import GDFS
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = GDFS(pretrain_epochs=2, epochs=1, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    def _train_jointly(self, both: TwoNetworks, rows: Any, judged: Any) -> None:
        import torch

        best, episodes = Best(both.networks), _Episodes(both)
        seed, judged_often = int(torch.randint(LARGEST_SEED, ())), both.data.repeated(judged, both.n_steps)

        def held_out_loss() -> float:
            best.offer(episodes.hard_loss(judged))
            with seeded(seed):  # the same draws in every epoch
                return float(episodes.relaxed_loss(judged_often, temperature))

        for temperature in TEMPERATURES:
            train_with_patience(
                both.networks,
                rows,
                partial(episodes.relaxed_loss, temperature=temperature),
                held_out_loss,
                self,
                epochs=self.epochs,
                description=f"learning to choose, temperature {temperature:.2f}",
            )
        best.restore()

    def _worth(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        """Probability of each feature that is not known, up to a factor per row."""
        logits = SHARPNESS * np.where(mask, -np.inf, self.chooser_layers_(self.coder_(rows)))
        largest = logits.max(axis=1, keepdims=True)
        return np.exp(logits - np.where(np.isfinite(largest), largest, 0.0))


class _Episodes:
    """Losses of the two networks on the states that the policy visits."""

    def __init__(self, both: TwoNetworks) -> None:
        self.both, self.data, self.n_steps = both, both.data, both.n_steps

    def relaxed_loss(self, rows: Any, temperature: float) -> Any:
        """Mean loss after a relaxed choice in each state; the states follow from separately drawn hard choices."""
        import torch

        masks, bought = self.both.rollout(rows, self._drawn)
        reached = bought >= 0
        mask, of_row = masks[:-1][reached], rows.expand(self.n_steps, -1)[reached]
        logits = self._drawn(self.data.inputs(of_row, mask.float()))
        taken = mask | ~self.data.available[of_row]
        soft = torch.softmax(logits.masked_fill(taken, -torch.inf) / temperature, dim=1)
        return self._loss(of_row, torch.maximum(mask.float(), soft))

    def hard_loss(self, rows: Any) -> float:
        """Mean loss after each choice of the largest logit."""
        masks, bought = self.both.rollout(rows, lambda seen, mask: self.both.chooser(seen))
        reached = bought >= 0
        return float(self._loss(rows.expand(self.n_steps, -1)[reached], masks[1:][reached].float()))

    def _drawn(self, seen: Any, mask: Any = None) -> Any:
        """Logits with Gumbel noise: the largest is a draw from the policy."""
        import torch

        logits = SHARPNESS * self.both.chooser(seen)
        return logits - torch.empty_like(logits).exponential_().log()

    def _loss(self, rows: Any, mask: Any) -> Any:
        from torch.nn.functional import cross_entropy

        return cross_entropy(self.both.predictor(self.data.inputs(rows, mask)), self.data.labels[rows])
