"""A predictor pretrained under random masks and a network that selects features, then trained jointly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from askwise.acquire.policies import Policy
from askwise.baselines.base import Baseline, ScoredPolicy
from askwise.baselines.masked_network import MaskedRows, feed_forward, held_out_rows, pretrain, served
from askwise.networks import CellCoder, import_torch, seeded
from askwise.parameters import ADAM, DROPOUT, WIDTHS, Limits, Number, Whole
from askwise.predict.base import SubsetPredictor
from askwise.randomness import seed_from
from askwise.rows import EncodedRows

MOST_FEATURES = 10
"""Default number of purchases per training episode."""


def rollout(data: MaskedRows, rows: Any, free: Any, n_steps: int, scores: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Buy the feature of highest score for each row, `n_steps` times.

    Parameters
    ----------
    rows, free
        Rows (n,), and the features (M,) bool that are known from the start where available.
    scores
        Function of network inputs (n, P) and acquired features (n, M) bool -> (n, M), higher is better.

    Returns
    -------
    masks, bought
        (n_steps + 1, n, M) bool before and after each purchase, and (n_steps, n) features; -1 = none left.
    """
    import torch

    available = data.available[rows]
    masks, bought = [available & free], []
    with torch.no_grad():
        for _ in range(n_steps):
            mask = masks[-1]
            buyable = available & ~mask
            best = scores(data.inputs(rows, mask.float()), mask).masked_fill(~buyable, -torch.inf).argmax(dim=1)
            masks.append(mask | (torch.nn.functional.one_hot(best, data.n_features).bool() & buyable))
            bought.append(torch.where(buyable.any(dim=1), best, -1))
    return torch.stack(masks), torch.stack(bought)


class TwoNetworkBaseline(Baseline):
    """A predictor pretrained under random masks, and a network that selects; subclasses train the two jointly.

    Subclasses store the parameters declared here and implement `_train_jointly` and `_worth`.
    """

    hidden: Sequence[int]
    dropout: float
    max_features: int | None
    pretrain_epochs: int
    epochs: int
    learning_rate: float
    batch_size: int
    patience: int
    holdout: float

    limits: ClassVar[Limits] = {
        **ADAM,
        **dict.fromkeys(("pretrain_epochs", "epochs", "patience"), Whole(0)),
        "hidden": WIDTHS,
        "dropout": DROPOUT,
        "max_features": Whole(1, optional=True),
        "holdout": Number(0, 0.5, above=True),
    }

    def _train_jointly(self, predictor: Any, chooser: Any, data: MaskedRows, rows: Any, judged: Any) -> None:
        """Train the pretrained `predictor` and the `chooser` on `rows`; keep the weights that are best on `judged`."""
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
            predictor = feed_forward(data.width, self.hidden, len(self.classes_), self.dropout)
            chooser = feed_forward(data.width, self.hidden, data.n_features, self.dropout)
            pretrain(
                predictor,
                data,
                trained,
                judged,
                epochs=self.pretrain_epochs,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                patience=self.patience,
                progress=self.progress,
            )
            if self._n_steps():
                self._train_jointly(predictor, chooser, data, trained, judged)
        self.predictor_layers_, self.chooser_layers_ = served(predictor), served(chooser)
        return self._predictor(self._answer), ScoredPolicy(self._worth)

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        """p(y | x_S) of encoded rows under a mask per column, (n, C)."""
        return np.asarray(softmax(self.predictor_layers_(self.coder_(rows)), axis=1))

    def _free(self) -> Any:
        """(M,) bool tensor: features that are known from the start."""
        import torch

        return torch.as_tensor(self.costs_ == 0)

    def _n_steps(self) -> int:
        """Purchases per training episode: `max_features` of the features that cost something."""
        n_paid = int((self.costs_ > 0).sum())
        return min(n_paid, MOST_FEATURES if self.max_features is None else self.max_features)
