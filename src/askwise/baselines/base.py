"""What all baselines share: each trains its own predictor and policy for the same loop and the same prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.policies import Policy
from askwise.baselines.parameters import Limits, check_limits
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor, check_labels, class_positions
from askwise.prices import Prices, as_prices
from askwise.randomness import generator
from askwise.schema import Schema
from askwise.value.gain import per_cost

Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Baseline(FeatureAcquirer):
    """A published method for the same task; subclasses implement `_train`.

    Takes raw tables and does its own scaling. `predict_proba`, `suggest`, `acquire`, `evaluate` and `start` are those
    of `DynamicFeatureSelector`. NaN in a row means that the cell is not known.

    Parameters
    ----------
    costs, groups
        Prices and groups of columns, as in `DynamicFeatureSelector`.
    random_state, progress
        Seed, and whether to show a progress bar.
    """

    sees_everything = False
    """Whether the method reads the full row before it selects. In a session it ranks by what is known so far."""

    limits: ClassVar[Limits] = {}
    """The allowed values of each parameter."""

    def __init__(
        self,
        *,
        costs: Any = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        random_state: Any = None,
        progress: bool | str = False,
    ) -> None:
        self.costs = costs
        self.groups = groups
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows, complete or not (NaN = unavailable), and their labels."""
        check_limits(self, self.limits)
        schema = Schema.read(X)
        X = self._table(X, reset=True)
        y = check_labels(X, y)
        self.schema_ = schema.grouped(self.groups)
        self.features_ = self.schema_.features
        self.classes_ = np.unique(y)
        self.prices_ = as_prices(self.costs).resolve(self.features_)
        self.costs_ = self.prices_.costs
        self.epistemic_ = None
        rng = generator(self.random_state)
        values = self.schema_.encode(X).copy()
        self.predictor_, self.policy_ = self._train(values, class_positions(self.classes_, y), rng)
        return self

    def _train(self, values: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        """Predictor and policy from encoded rows (N, D) with NaN where missing, and labels as positions (N,)."""
        raise NotImplementedError

    def _predictor(self, answer: Answer) -> TrainedPredictor:
        """`answer(values, mask per column) -> (n, C)` as a predictor."""
        return TrainedPredictor(answer, self.schema_, self.classes_)


class FullRowBaseline(Baseline):
    """A baseline that reads the full row: its policy is a `FullRowPolicy`."""

    sees_everything = True

    policy_: FullRowPolicy

    def _policy_for(self, truth: np.ndarray) -> Policy:
        return self.policy_.reading(truth)


class TrainedPredictor(SubsetPredictor):
    """The predictor that a baseline has trained; there is no wrapped model, so `predict_full` is its own answer.

    Parameters
    ----------
    answer
        Function of encoded rows (n, D), NaN where hidden, and the mask per column (n, D) -> (n, C).
    schema, classes
        Columns and labels.
    """

    def __init__(self, answer: Answer, schema: Schema, classes: np.ndarray) -> None:
        self.answer = answer
        self.schema = schema
        self.classes = classes
        self.schema_ = schema
        self.classes_ = classes
        self.model_ = _OnFullRows(answer, len(classes))
        self.takes_missing_ = np.ones(len(schema.columns), dtype=bool)

    def fit(self, X: Any, y: Any, *, schema: Schema | None = None) -> Self:
        raise InvalidInput("The predictor of a baseline is trained together with it; call fit of the baseline.")

    def _predict(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return self.answer(values, mask)


class _OnFullRows:
    """The baseline's answer from all available cells of a row."""

    def __init__(self, answer: Answer, n_outputs: int) -> None:
        self.answer = answer
        self.n_outputs = n_outputs

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return self.answer(values, ~np.isnan(values))


class ScoredPolicy(Policy):
    """Ranks features by `score(values, mask per feature) -> (n, M)`, divided by the price.

    Parameters
    ----------
    score
        Function of encoded rows (n, D), NaN where hidden, and the acquired features (n, M); higher is better.
    prices
        Resolved prices; a worth is divided by the price now where it is positive, multiplied where it is not.
    """

    def __init__(self, score: Callable[[np.ndarray, np.ndarray], np.ndarray], prices: Prices) -> None:
        self.score = score
        self.prices = prices

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        return np.where(mask, -np.inf, per_cost(self.score(X, mask), self.prices.now(mask)))


class FullRowPolicy(Policy):
    """Ranks the features of a row by all of its available cells.

    Parameters
    ----------
    rank
        Function of encoded rows (n, D), NaN where a cell is missing, -> worth of each feature (n, M).
    prices
        Resolved prices, as in `ScoredPolicy`.
    """

    by_position = True

    def __init__(self, rank: Callable[[np.ndarray], np.ndarray], prices: Prices) -> None:
        self.rank = rank
        self.prices = prices
        self._worth: np.ndarray | None = None

    def reading(self, truth: np.ndarray) -> FullRowPolicy:
        """The same policy for the full rows of one batch."""
        other = FullRowPolicy(self.rank, self.prices)
        other._worth = self.rank(truth)
        return other

    def scores(self, X: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
        worth = self.rank(X) if self._worth is None else self._worth
        return np.where(mask, -np.inf, per_cost(worth, self.prices.now(mask)))
