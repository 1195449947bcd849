"""GDFS: a greedy policy learned through a continuous relaxation (Covert et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.baselines.masked_network import Best, MaskedRows, train_with_patience
from askwise.baselines.two_networks import TwoNetworkBaseline, rollout
from askwise.networks import seeded
from askwise.randomness import LARGEST_SEED
from askwise.rows import EncodedRows

SHARPNESS = 5.0
"""Factor of the logits before the relaxation, as in the authors' code."""
TEMPERATURES = tuple(np.geomspace(1.0, 0.1, 5).tolist())
"""One round of training at each, from soft to nearly hard choices."""


@dataclass(kw_only=True, eq=False, repr=False)
class GDFS(TwoNetworkBaseline):
    r"""Greedy dynamic feature selection: a policy trained to lower the loss of a predictor by its next choice.

    .. math:: \min_{\theta, \phi} E_{x, y}\, \sum_k E_{i \sim \pi_\phi(x_{S_k})}\, l(f_\theta(x_{S_k \cup i}), y)

    Covert, Qiu, Lu, Kim, White, Lee (2023), "Learning to maximize mutual information for dynamic feature
    selection", Eq. 5 and Algorithm 1. The choice is relaxed by the Concrete distribution, so that the loss has a
    gradient in :math:`\phi`; at its optimum the policy picks the feature with the largest mutual information with the
    label given what is known. At inference it picks the feature of the largest logit.

    Parameters
    ----------
    hidden, dropout
        Widths of the hidden layers of both networks, and the dropout after each.
    max_features
        Purchases per training episode; None = 10, or all if there are fewer. Every mask is answered nevertheless.
    pretrain_epochs, epochs
        Maximum epochs of the predictor under random masks, and of both networks at each temperature.
    learning_rate, batch_size, patience
        Adam's rate, rows per step, and epochs without a lower held-out loss after which the rate is cut.
    holdout
        Share of the rows held out for early stopping and for choosing the weights.
    costs, groups, random_state, progress
        As in `Baseline`.

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
    """

    hidden: Sequence[int] = (128, 128)
    dropout: float = 0.3
    max_features: int | None = None
    pretrain_epochs: int = 100
    epochs: int = 250
    learning_rate: float = 1e-3
    batch_size: int = 128
    patience: int = 5
    holdout: float = 0.2

    def _train_jointly(self, predictor: Any, chooser: Any, data: MaskedRows, rows: Any, judged: Any) -> None:
        import torch

        best = Best([predictor, chooser])
        episodes = _Episodes(predictor, chooser, data, self._free(), self._n_steps())
        seed, judged_often = int(torch.randint(LARGEST_SEED, ())), data.repeated(judged, self._n_steps())

        def epoch(optimizer: Any) -> None:
            for batch in data.batches(rows, self.batch_size):
                optimizer.zero_grad()
                episodes.relaxed_loss(batch, temperature).backward()
                optimizer.step()

        def held_out_loss() -> float:
            best.offer(episodes.hard_loss(judged))
            with seeded(seed):  # the same draws in every epoch
                return float(episodes.relaxed_loss(judged_often, temperature))

        for temperature in TEMPERATURES:
            train_with_patience(
                [predictor, chooser],
                epoch,
                held_out_loss,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                patience=self.patience,
                description=f"learning to choose, temperature {temperature:.2f}",
                progress=self.progress,
            )
        best.restore()

    def _worth(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        """Probability of each feature that is not known, up to a factor per row."""
        logits = SHARPNESS * np.where(mask, -np.inf, self.chooser_layers_(self.coder_(rows)))
        largest = logits.max(axis=1, keepdims=True)
        return np.exp(logits - np.where(np.isfinite(largest), largest, 0.0))


class _Episodes:
    """Losses of the two networks on the states that the policy visits."""

    def __init__(self, predictor: Any, chooser: Any, data: MaskedRows, free: Any, n_steps: int) -> None:
        self.predictor, self.chooser, self.data = predictor, chooser, data
        self.free, self.n_steps = free, n_steps

    def relaxed_loss(self, rows: Any, temperature: float) -> Any:
        """Mean loss after a relaxed choice in each state; the states follow from separately drawn hard choices."""
        import torch

        masks, bought = rollout(self.data, rows, self.free, self.n_steps, self._drawn)
        reached = bought >= 0
        mask, of_row = masks[:-1][reached], rows.expand(self.n_steps, -1)[reached]
        logits = self._drawn(self.data.inputs(of_row, mask.float()))
        taken = mask | ~self.data.available[of_row]
        soft = torch.softmax(logits.masked_fill(taken, -torch.inf) / temperature, dim=1)
        return self._loss(of_row, torch.maximum(mask.float(), soft))

    def hard_loss(self, rows: Any) -> float:
        """Mean loss after each choice of the largest logit."""
        masks, bought = rollout(self.data, rows, self.free, self.n_steps, lambda seen, mask: self.chooser(seen))
        reached = bought >= 0
        return float(self._loss(rows.expand(self.n_steps, -1)[reached], masks[1:][reached].float()))

    def _drawn(self, seen: Any, mask: Any = None) -> Any:
        """Logits with Gumbel noise: the largest is a draw from the policy."""
        import torch

        logits = SHARPNESS * self.chooser(seen)
        return logits - torch.empty_like(logits).exponential_().log()

    def _loss(self, rows: Any, mask: Any) -> Any:
        from torch.nn.functional import cross_entropy

        return cross_entropy(self.predictor(self.data.inputs(rows, mask)), self.data.labels[rows])
