"""A predictor pretrained under random masks and a network that selects features, then trained jointly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from askwise.networks import CellCoder, Layers, import_torch, relu_network, seeded
from askwise.parameters import DROPOUT, POSITIVE, WIDTHS, Number, Whole, within
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.base import Baseline, ScoredPolicy
from askwise_bench.baselines.masked_network import MaskedRows, held_out_rows, pretrain, sliced_dropout

MOST_FEATURES = 10
"""Default number of purchases per training episode."""


@dataclass(kw_only=True, eq=False, repr=False)
class TwoNetworkBaseline(Baseline):
    """A predictor pretrained under random masks, and a network that selects; subclasses train the two jointly.

    Subclasses implement `_train_jointly` and `_worth`.

    Parameters
    ----------
    hidden, dropout
        Widths of the hidden layers of both networks, and the dropout after each.
    max_features
        Purchases per training episode; None = 10, or all if there are fewer. Every mask is answered nevertheless.
    pretrain_epochs, epochs
        Maximum epochs of the predictor under random masks, and of both networks together.
    learning_rate, batch_size, patience
        Adam's rate, rows per step (None = 128, on small tables a quarter of the rows but at least 32), and epochs
        without a lower held-out loss after which the rate is cut. The authors' scripts have 128 and 5, which is
        one step per epoch on a table of a hundred rows.
    holdout
        Share of the rows held out for early stopping and for choosing the weights.
    costs, groups, random_state, progress
        As in `Baseline`.
    """

    hidden: Sequence[int] = within(WIDTHS, (128, 128))
    dropout: float = within(DROPOUT, 0.3)
    max_features: int | None = within(Whole(1, optional=True), None)
    pretrain_epochs: int = within(Whole(0), 100)
    epochs: int = within(Whole(0), 250)
    learning_rate: float = within(POSITIVE, 1e-3)
    batch_size: int | None = within(Whole(1, optional=True), None)
    patience: int = within(Whole(0), 20)
    holdout: float = within(Number(0, 0.5, above=True), 0.2)

    def _train_jointly(self, both: TwoNetworks, rows: Any, judged: Any) -> None:
        """Train the networks on `rows`, the predictor being pretrained; keep the weights that are best on `judged`."""
        raise NotImplementedError

    def _worth(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        """Worth of each feature, before its price: encoded rows (n, D) and the features known (n, M) -> (n, M)."""
        raise NotImplementedError

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        torch = import_torch(type(self).__name__, "DynamicFeatureSelector with its defaults")
        self.coder_ = CellCoder(rows, self.schema_)
        trained, judged = (torch.as_tensor(part) for part in held_out_rows(y, self.holdout, rng))
        with seeded(seed_from(rng)):
            data = MaskedRows(rows, y, self.schema_, self.coder_)
            both = TwoNetworks(self, data)
            pretrain(both.predictor, data, trained, judged, self)
            if both.n_steps:
                self._train_jointly(both, trained, judged)
        self.predictor_layers_, self.chooser_layers_ = (Layers.from_torch(network, "relu") for network in both.networks)
        return self._predictor(self._answer), ScoredPolicy(self._worth)

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        """p(y | x_S) of encoded rows under a mask per column, (n, C)."""
        return np.asarray(softmax(self.predictor_layers_(self.coder_(rows)), axis=1))


class TwoNetworks:
    """Both networks in training, and the states that a choice visits."""

    def __init__(self, baseline: TwoNetworkBaseline, data: MaskedRows) -> None:
        import torch

        widths = [data.width, *baseline.hidden]
        self.data = data
        self.predictor = relu_network([*widths, len(baseline.classes_)], sliced_dropout(baseline.dropout))
        self.chooser = relu_network([*widths, data.n_features], sliced_dropout(baseline.dropout))
        self.networks = [self.predictor, self.chooser]
        self.free = torch.as_tensor(baseline.costs_ == 0)  # (M,) known from the start where available
        most = MOST_FEATURES if baseline.max_features is None else baseline.max_features
        self.n_steps = min(most, int((baseline.costs_ > 0).sum()))

    def rollout(self, rows: Any, scores: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        """Buy the feature of highest score for each row (n,), `n_steps` times.

        Parameters
        ----------
        scores
            Function of network inputs (n, P) and acquired features (n, M) bool -> (n, M), higher is better.

        Returns
        -------
        masks, bought
            (n_steps + 1, n, M) bool before and after each purchase, and (n_steps, n) features; -1 = none left.
        """
        import torch

        available = self.data.available[rows]
        masks, bought = [available & self.free], []
        with torch.no_grad():
            for _ in range(self.n_steps):
                mask = masks[-1]
                buyable = available & ~mask
                wanted = scores(self.data.inputs(rows, mask.float()), mask)
                best = wanted.masked_fill(~buyable, -torch.inf).argmax(dim=1)
                masks.append(mask | (torch.nn.functional.one_hot(best, self.data.n_features).bool() & buyable))
                bought.append(torch.where(buyable.any(dim=1), best, -1))
        return torch.stack(masks), torch.stack(bought)
