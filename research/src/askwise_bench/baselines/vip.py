"""Variational Information Pursuit: a querier picks the feature that helps a classifier most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from askwise.networks import CellCoder, Layers, adam, import_torch, relu_network, seeded, train
from askwise.parameters import DROPOUT, POSITIVE, Number, Several, Whole, within
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample
from askwise_bench.baselines.base import Baseline, ScoredPolicy
from askwise_bench.baselines.masked_network import MaskedRows, sliced_dropout

FEWEST_HISTORIES = 1024
HIDDEN = -1e9


@dataclass(kw_only=True, eq=False, repr=False)
class VIP(Baseline):
    r"""Variational Information Pursuit (Chattopadhyay et al., ICLR 2023).

    A querier g and a classifier f are trained together to minimize the loss of f after the query that g adds to S:

    .. math:: \min_{f, g} E_{x, y} E_S\, l(f(x_{S + g(x_S)}), y)

    The optimal g asks for the most informative feature, :math:`\arg\max_i I(y; x_i \mid x_S)` (their Proposition 1).
    A query is one-hot: the argmax forwards, the softmax with temperature tau backwards (straight-through). Histories
    are first random subsets (initial random sampling), then those that the querier itself builds (biased sampling).

    Deviations from the original, numbered:

    1. Two hidden layers each for querier and classifier, of `hidden` ReLU units with dropout, in place of (2000, 1000,
       500) with layer normalization for word counts: the tables here have tens of columns and hundreds of rows. Width,
       dropout and epochs were chosen on validation rows of three of them.
    2. The networks see the mask beside the cells, so that a hidden cell differs from one whose value is the mean.
    3. Histories are drawn once per epoch, not once per batch; an epoch has at least 1,024 of them, so that small
       tables are seen several times per epoch. The learning rate is constant, not annealed by a cosine.
    4. The original never trains on an empty history; here its prediction is the class frequencies.
    5. The original has no prices: here the querier's probability of a feature is divided by its price now.

    Parameters
    ----------
    hidden, dropout
        Units per hidden layer, and the share of them dropped in training.
    random_epochs, biased_epochs
        Epochs of training on random histories, then on the querier's own.
    temperature
        Temperature tau of the straight-through softmax: first and last value, linear over each of the two stages.
    learning_rate, weight_decay, batch_size
        Of Adam.
    costs, groups, random_state, progress
        See `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import VIP
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = VIP(random_epochs=1, biased_epochs=1, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    hidden: int = within(Whole(1), 64)
    dropout: float = within(DROPOUT, 0.5)
    random_epochs: int = within(Whole(0), 60)
    biased_epochs: int = within(Whole(0), 40)
    temperature: tuple[float, float] = within(Several(POSITIVE, count=2), (1.0, 0.2))
    learning_rate: float = within(POSITIVE, 1e-3)
    weight_decay: float = within(Number(0), 1e-4)
    batch_size: int = within(Whole(1), 128)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        import_torch("VIP", "StaticCMI")
        self.coder_ = CellCoder(rows, self.schema_)
        self.prior_ = np.bincount(y, minlength=len(self.classes_)) / len(y)
        with seeded(seed_from(rng)):
            pursuit = _Pursuit(MaskedRows(rows, y, self.schema_, self.coder_), len(self.classes_), self)
            pursuit.train(rng)
        self.querier_ = Layers.from_torch(pursuit.querier, "relu")
        self.classifier_ = Layers.from_torch(pursuit.classifier, "relu")
        return self._predictor(self._answer), ScoredPolicy(self._worth)

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        proba = softmax(self.classifier_(self.coder_(rows)), axis=1)
        return np.where(rows.observed.any(axis=1, keepdims=True), proba, self.prior_)

    def _worth(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        logits = self.querier_(self.coder_(rows))
        return np.asarray(softmax(np.where(mask, HIDDEN, logits), axis=1))


class _Pursuit:
    """Training of querier and classifier."""

    def __init__(self, data: MaskedRows, n_classes: int, options: VIP) -> None:
        import torch

        self.data, self.options = data, options
        self.free = data.available & torch.as_tensor(options.costs_ == 0)  # (N, M): known from the start
        widths = [data.width, options.hidden, options.hidden]
        self.querier = relu_network([*widths, data.n_features], sliced_dropout(options.dropout))
        self.classifier = relu_network([*widths, n_classes], sliced_dropout(options.dropout))
        self.tau = options.temperature[0]

    def train(self, rng: np.random.Generator) -> None:
        """Both stages, one after the other."""
        self._stage(self.options.random_epochs, self._random_histories, "asking at random", rng)
        self._stage(self.options.biased_epochs, self._own_histories, "asking by itself", rng)

    def _stage(self, epochs: int, histories: Any, description: str, rng: np.random.Generator) -> None:
        temperatures = iter(np.linspace(*self.options.temperature, max(epochs, 1)))

        def draw() -> tuple[Any, ...]:
            import torch

            self.tau = float(next(temperatures))
            n = len(self.data.labels)
            rows = torch.arange(max(n, FEWEST_HISTORIES)) % n
            return rows, histories(rows, rng)

        parameters = [*self.querier.parameters(), *self.classifier.parameters()]
        train(parameters, draw, self._loss, epochs=epochs, description=description, **adam(self.options))

    def _random_histories(self, rows: Any, rng: np.random.Generator) -> Any:
        """Masks (n, M): a random number of random features that each row has."""
        import torch

        drawn = torch.as_tensor(sample(len(rows), self.data.n_features, rng))
        return drawn & self.data.available[rows] | self.free[rows]

    def _own_histories(self, rows: Any, rng: np.random.Generator) -> Any:
        """Masks (n, M): a random number of queries by the current querier."""
        import torch

        lengths = torch.as_tensor(rng.integers(0, self.data.n_features, size=len(rows)))
        mask = self.free[rows]
        with torch.no_grad():
            for step in range(int(lengths.max())):
                asked = (self._query(rows, mask) > 0.5) & self.data.available[rows]
                mask = mask | (asked & (lengths > step)[:, None])
        return mask

    def _query(self, rows: Any, mask: Any) -> Any:
        """The next feature of each row as a one-hot vector (n, M), with the gradient of a softmax."""
        import torch

        askable = self.data.available[rows] & ~mask
        logits = self.querier(self.data.inputs(rows, mask.float())).masked_fill(~askable, HIDDEN)
        soft = torch.softmax(logits / self.tau, dim=1)
        hard = torch.nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).float()
        return (hard - soft).detach() + soft

    def _loss(self, rows: Any, mask: Any) -> Any:
        """Cross-entropy of the classifier after one more query."""
        import torch

        # If no feature is left, the query falls on one that is known or missing, which has no effect.
        extended = mask + self._query(rows, mask) * ~mask
        logits = self.classifier(self.data.inputs(rows, extended))
        return torch.nn.functional.cross_entropy(logits, self.data.labels[rows])
