"""Classification with Costly Features: one Q-network that either buys a feature or predicts a class and stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from askwise.acquisition import Acquisition
from askwise.errors import InvalidInput
from askwise.networks import CellCoder, import_torch, seeded
from askwise.parameters import POSITIVE, RATE, SHARE, Number, Several, Whole, within
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.randomness import seed_from
from askwise.stopping.rules import Stopping
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.base import Baseline
from askwise_bench.baselines.masked_network import MaskedRows
from askwise_bench.baselines.retrace import RetraceLearner

LEAST_PROBABILITY = 1e-3


@dataclass(kw_only=True, eq=False, repr=False)
class CWCF(Baseline):
    r"""Classification with Costly Features by deep Q-learning (Janisch, Pevny and Lisy, AAAI 2019).

    An episode buys features and ends with a classify action, one per class. Buying feature f costs
    :math:`\lambda c(f)`, a wrong class costs 1, without discounting, so the return is

    .. math:: -E\bigl[\,1(\hat y \ne y) + \lambda \sum_{f \in S} c(f)\,\bigr]

    A dueling Q-network is trained by double Q-learning with Retrace over whole episodes from a replay memory, with
    a slowly updated target network; the classify actions are pretrained on random masks.

    Since the value of a classify action is the probability of being wrong, :math:`Q(x_S, y) = p(y \mid x_S) - 1`, the
    network answers :math:`p(y \mid x_S) = 1 + Q(x_S, y)`, clipped at 0.001 and normalized.

    Deviations from the original, numbered:

    1. Acquisition runs to a budget: the feature with the highest Q is bought whether or not a classify action is
       better. ``acquire(X, stop=stopping_)`` stops by itself, as the original does. One weight serves all budgets; the
       default was chosen on validation rows (with a low one the order of purchase hardly matters).
    2. The label gives the reward of every classify action, so all of them are trained in every visited state, and none
       needs to be taken: training episodes continue until nothing is left to buy, which also covers the states beyond
       the point where the agent would stop.
    3. Prices are divided by their mean, so that `cost_weight` means the same in any currency. A price that depends on
       earlier purchases (shared set-up costs) enters as the price at the time of purchase.
    4. Smaller and fewer updates (64 episodes at once, `batch_size` states per update instead of 50,000), with a target
       network updated faster, and a fixed number of updates instead of up to 100,000 epochs with early stopping.
       The averaged target network is used at inference.
    5. No external "high-precision classifier" as a further action: the paper's option for a classifier on all features.

    Parameters
    ----------
    cost_weight
        :math:`\lambda`: what a feature of mean price costs, in units of a wrong answer.
    hidden
        Units in each of the three hidden layers.
    pretrain_updates, n_episodes, updates_per_round
        Updates on the classify actions alone, training episodes in all, and updates after every `episodes_at_once`.
    episodes_at_once, batch_size, memory
        Episodes played in parallel, states per update, and size of the replay memory in episodes.
    learning_rate, weight_decay, target_rate
        Of Adam, and the share of the online network that enters the target network after each update.
    exploration
        First and last share of random purchases; falls linearly over the first half of the episodes. The target
        policy explores half as much at first and not at all in the end.
    costs, groups, random_state, progress
        See `Baseline`.

    Attributes
    ----------
    stopping_
        Stops a row where a classify action has the highest Q: ``acquire(X, stop=stopping_)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import CWCF
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = CWCF(pretrain_updates=20, n_episodes=128, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    cost_weight: float = within(Number(0), 0.1)
    hidden: int = within(Whole(1), 128)
    pretrain_updates: int = within(Whole(0), 500)
    n_episodes: int = within(Whole(1), 8_000)
    updates_per_round: int = within(Whole(0), 4)
    episodes_at_once: int = within(Whole(1), 64)
    batch_size: int = within(Whole(1), 512)
    memory: int = within(Whole(1), 4_000)
    learning_rate: float = within(POSITIVE, 5e-4)
    weight_decay: float = within(Number(0), 1e-4)
    target_rate: float = within(RATE, 0.02)
    exploration: tuple[float, float] = within(Several(SHARE, count=2), (1.0, 0.1))

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        import_torch("CWCF", "StaticCMI")
        if self.memory < self.episodes_at_once:
            raise InvalidInput(
                f"CWCF: memory must hold the {self.episodes_at_once} episodes played at once; got {self.memory!r}."
            )
        self.coder_ = CellCoder(rows, self.schema_)
        with seeded(seed_from(rng)):
            data = MaskedRows(rows, y, self.schema_, self.coder_)
            self.layers_ = RetraceLearner(self, data, len(self.classes_), rng).train()
        self.stopping_ = ClassifyNow(self._q)
        return self._predictor(self._answer), _HighestQ(self._q)

    def _q(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """Q of the classify actions (n, C) and of the features (n, M)."""
        q = self.layers_(self.coder_(rows))
        return q[:, : len(self.classes_)], q[:, len(self.classes_) :]

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        classify = self.layers_(self.coder_(rows))[:, : len(self.classes_)]
        proba = np.maximum(1.0 + classify, LEAST_PROBABILITY)
        return proba / proba.sum(axis=1, keepdims=True)


QValues = Callable[[EncodedRows], tuple[np.ndarray, np.ndarray]]


class _HighestQ(Policy):
    """Buys the feature of highest Q, which includes the price."""

    def __init__(self, q: QValues) -> None:
        self.q = q

    def scores(self, state: Acquisition) -> np.ndarray:
        return np.where(state.mask, -np.inf, self.q(state.rows)[1])


class ClassifyNow(Stopping):
    """Stop where a classify action has at least the Q of every feature that can be bought."""

    def __init__(self, q: QValues) -> None:
        self.q = q

    def stops(self, state: Acquisition) -> np.ndarray:
        classify, buy = self.q(state.rows)
        best = np.where(state.buyable(), buy, -np.inf).max(axis=1)
        return np.asarray(classify.max(axis=1) >= best)
