"""The paper's value estimator: one network, two heads (Appendix G), trained with torch and evaluated with numpy."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from askwise.networks import CellCoder, Layers, import_torch, seeded, train
from askwise.parameters import ADAM, DROPOUT, Limits, Number, Whole, check_limits
from askwise.randomness import seed_from
from askwise.table.subsets import sample
from askwise.value.base import State
from askwise.value.targets import HeldOutStates, value_targets


class ValueEstimator(BaseEstimator):
    r"""Predicts the reductions of discrepancy and of epistemic uncertainty by each feature from :math:`x_S` alone.

    Parameters
    ----------
    hidden, dropout, epochs, learning_rate, batch_size, l1
        Two SELU layers of `hidden` units with dropout, two heads of M outputs, squared error over all features that
        are available, Adam, and `l1` times the sum of the absolute weights, biases left out. The paper trains for 100
        epochs where methods are compared, and for 10 "individually".
    n_states
        Partly observed training rows (row and random mask) whose targets are computed.
    n_candidates
        Features per state whose targets are computed, drawn at random; None = all.
    random_state, progress
        Seed, and whether to show progress bars.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.policy import Greedy
    >>> from askwise.value import ValueEstimator
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> policy = Greedy(ValueEstimator(epochs=5, n_states=100))
    >>> selector = DynamicFeatureSelector(model, policy=policy, random_state=0).fit(X, y)
    >>> selector.ranking(np.full((1, 4), np.nan)).shape
    (1, 4)
    """

    limits: ClassVar[Limits] = {
        **ADAM,
        **{name: Whole(1) for name in ("hidden", "epochs", "n_states")},
        "dropout": DROPOUT,
        "l1": Number(),
        "n_candidates": Whole(1, optional=True),
    }

    def __init__(
        self,
        *,
        hidden: int = 64,
        dropout: float = 0.5,
        epochs: int = 100,
        learning_rate: float = 0.01,
        batch_size: int = 256,
        l1: float = 0.0,
        n_states: int = 2000,
        n_candidates: int | None = None,
        random_state: int = 0,
        progress: bool | str = False,
    ) -> None:
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.l1 = l1
        self.n_states = n_states
        self.n_candidates = n_candidates
        self.random_state = random_state
        self.progress = progress

    def fit(self, held_out: HeldOutStates) -> Self:
        """Compute targets on random masks of the training rows and train both heads on them."""
        torch = import_torch('Greedy(value="network")', 'Greedy(value="neighbors"), the default of policy="greedy"')
        check_limits(self, self.limits)
        rng = np.random.default_rng(self.random_state)
        n_features = held_out.available.shape[1]
        rows = rng.permutation(np.resize(np.arange(len(held_out.rows)), self.n_states))
        mask = sample(len(rows), n_features, rng) & held_out.available[rows]
        asked = None
        if self.n_candidates is not None:
            asked = rng.random(mask.shape).argsort(axis=1).argsort(axis=1) < self.n_candidates
        targets = np.stack(value_targets(held_out, rows, mask, asked), axis=1)  # (n, 2, M)
        there = ~np.isnan(targets)
        self.scale_ = np.array([np.nanstd(targets[:, head]) or 1.0 for head in (0, 1)])
        self.schema_ = held_out.schema
        self.coder_ = CellCoder(held_out.rows, held_out.schema)
        inputs = self.coder_(held_out.rows.take(rows).masked(held_out.schema.expand(mask)))
        data = [inputs, np.nan_to_num(targets / self.scale_[:, None]), there]
        with seeded(seed_from(rng)):
            self.layers_ = self._train([torch.as_tensor(part, dtype=torch.float32) for part in data], n_features)
        return self

    def reductions(self, state: State, risk: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Predicted reductions of u and of e by each feature, (n, M) each."""
        heads = self.layers_(self.coder_(state.rows)).reshape(len(state.rows), 2, -1) * self.scale_[:, None]
        return heads[:, 0], heads[:, 1]

    def _train(self, data: list[Any], n_features: int) -> Layers:
        from torch import nn

        encoder = nn.Sequential(
            nn.Linear(data[0].shape[1], self.hidden),
            nn.SELU(),
            nn.Dropout(self.dropout),
            nn.Linear(self.hidden, self.hidden),
            nn.SELU(),
            nn.Dropout(self.dropout),
        )
        heads = nn.Linear(self.hidden, 2 * n_features)
        parameters = [*encoder.parameters(), *heads.parameters()]

        def loss(inputs: Any, targets: Any, there: Any) -> Any:
            error = (heads(encoder(inputs)).view(targets.shape) - targets) ** 2 * there
            penalty = sum(weight.abs().sum() for weight in parameters if weight.ndim > 1) if self.l1 else 0.0
            return error.sum() / there.sum().clamp(min=1) + self.l1 * penalty

        train(
            parameters,
            lambda: tuple(data),
            loss,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            description="training the value network",
            progress=self.progress,
        )
        return Layers.from_torch([encoder[0], encoder[3], heads], "selu")
