"""DIME, VIP and GDFS on patches: a network that predicts and one that chooses, trained together."""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise_bench.image_baselines.two_networks import HIDDEN_LOGIT, PatchBaseline, TwoNetworks

SHARPNESS = 5.0
"""Logits of GDFS are multiplied by this before they are relaxed, as in its authors' code."""
COOLEST = 0.1


class PatchDIME(PatchBaseline):
    r"""DIME (Gadgil et al. 2024) on patches: the value network predicts the reduction of the loss by a patch.

    The value of a patch is :math:`H(f(x_S))\, \sigma(g(x_S)_i)`; selector of 512 and 256 units, dropout 0.3; some
    epochs of the predictor under random masks, then both together.

    Notes
    -----
    Deviations from the original, in addition to those of `PatchBaseline`:

    1. One transition of each episode, at a random step, is learned from; the original learns from all of them.
    2. Exploration falls linearly from `exploration` to 0; the original cuts it by the held-out loss.
    """

    default_hidden = (512, 256)
    default_pretrain_epochs = 25
    default_epochs = 75
    bounded_by_entropy = True
    exploration = 0.3

    def _loss(self, both: TwoNetworks, rows: Any, done: float) -> Any:
        import torch
        from torch.nn.functional import cross_entropy

        explore = self.exploration * (1 - done)

        def scores(features: Any, mask: Any) -> Any:
            value = both.choose(features, mask).sigmoid()
            at_random = torch.rand(len(mask), 1, device=value.device) < explore
            return torch.where(at_random, torch.rand_like(value), value)

        mask, bought, after = both.transition(rows, scores)
        labels = both.data.labels[rows]
        features, logits = both.predict(rows.repeat(2), torch.cat([mask, after]))
        losses = cross_entropy(logits, labels.repeat(2), reduction="none").view(2, -1)
        log_proba = torch.log_softmax(logits[: len(rows)].detach(), dim=1)
        bound = -(log_proba.exp() * log_proba).sum(dim=1)
        value = both.choose(features[: len(rows)], mask).gather(1, bought[:, None]).squeeze(1).sigmoid() * bound
        saved = (losses[0] - losses[1]).detach()
        return losses.mean() + ((value - saved) ** 2).mean()


class PatchVIP(PatchBaseline):
    r"""Variational Information Pursuit (Chattopadhyay et al. 2023) on patches: :math:`\min l(f(x_{S + g(x_S)}), y)`.

    A query is one-hot, with the gradient of a softmax whose temperature falls from 1 to 0.2; querier of 1000 and 500
    units, dropout 0.3; all epochs are joint.

    Notes
    -----
    Deviations from the original, in addition to those of `PatchBaseline`:

    1. Histories are random in the first half of the epochs, the querier's own in the second.
    2. The inputs of the querier are those of the classifier's last layer, without a gradient into it; in the original
       it is a separate network of the masked image.
    """

    default_hidden = (1000, 500)
    default_pretrain_epochs = 0
    default_epochs = 100

    def _loss(self, both: TwoNetworks, rows: Any, done: float) -> Any:
        import torch
        from torch.nn.functional import cross_entropy, one_hot

        mask = both.random_masks(rows) if done < 0.5 else both.transition(rows, both.choose)[0]
        temperature = 1.0 + (0.2 - 1.0) * (2 * done % 1)
        buyable = both.data.available[rows] & ~mask
        with torch.no_grad():
            features = both.predict(rows, mask)[0]
        logits = both.choose(features, mask).masked_fill(~buyable, HIDDEN_LOGIT)
        soft = torch.softmax(logits / temperature, dim=1)
        query = (one_hot(logits.argmax(dim=1), logits.shape[1]) - soft).detach() + soft
        return cross_entropy(both.predict(rows, mask + query * buyable)[1], both.data.labels[rows])


class PatchGDFS(PatchBaseline):
    r"""Greedy dynamic feature selection (Covert et al. 2023) on patches, by the Concrete relaxation of a choice.

    Selector of 512 and 256 units, dropout 0.3; some epochs of the predictor under random masks, then both together
    while the temperature falls from 1 to 0.1.

    Notes
    -----
    Deviations from the original, in addition to those of `PatchBaseline`:

    1. One state of each episode, at a random step, is learned from; the original learns from all of them.
    2. The temperature falls with every batch; the original trains to convergence at five temperatures.
    3. The inputs of the selector are those of the predictor's last layer, without a gradient into it.
    """

    default_hidden = (512, 256)
    default_pretrain_epochs = 25
    default_epochs = 75

    def _loss(self, both: TwoNetworks, rows: Any, done: float) -> Any:
        import torch
        from torch.nn.functional import cross_entropy

        def drawn(features: Any, mask: Any) -> Any:
            logits = SHARPNESS * both.choose(features, mask)
            return logits - torch.empty_like(logits).exponential_().log()

        mask = both.transition(rows, drawn)[0]
        with torch.no_grad():
            features = both.predict(rows, mask)[0]
        taken = mask | ~both.data.available[rows]
        logits = drawn(features, mask).masked_fill(taken, HIDDEN_LOGIT)
        soft = torch.softmax(logits / float(np.geomspace(1, COOLEST, 101)[int(100 * done)]), dim=1)
        relaxed = torch.maximum(mask.to(soft.dtype), soft * ~taken)
        return cross_entropy(both.predict(rows, relaxed)[1], both.data.labels[rows])
