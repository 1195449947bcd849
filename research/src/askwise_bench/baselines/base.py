"""What all baselines share: each trains its own predictor and policy for the same loop and the same prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from askwise.acquirer import FeatureAcquirer
from askwise.acquisition import Acquisition
from askwise.case.session import Session
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.parameters import check_limits
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor, check_labels, class_positions
from askwise.randomness import generator
from askwise.stopping.calibrated_stop import CalibratedStop
from askwise.stopping.rules import Stopping
from askwise.table.constraints import Rule, house_rules
from askwise.table.prices import as_prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema, read_table
from askwise.value.gain import per_cost

Answer = Callable[[EncodedRows], np.ndarray]


@dataclass(kw_only=True, eq=False, repr=False)
class Baseline(FeatureAcquirer):
    """A published method for the same task; subclasses implement `_train`.

    Takes raw tables and does its own scaling. `predict_proba`, `suggest`, `acquire`, `evaluate` and `start` are those
    of `DynamicFeatureSelector`. NaN in a row means that the cell is not known.

    Parameters
    ----------
    costs, groups, constraints
        Prices, groups of columns and rules of the house, as in `DynamicFeatureSelector`.
    random_state, progress
        Seed, and whether to show a progress bar.

    Examples
    --------
    >>> from askwise_bench.baselines import StaticCMI, StaticBest
    >>> from askwise_bench.baselines.base import Baseline
    >>> issubclass(StaticCMI, Baseline), issubclass(StaticBest, Baseline)
    (True, True)
    """

    sees_everything = False
    """Whether the method reads the full row before it selects. In a session it ranks by what is known so far."""

    costs: Any = None
    groups: Mapping[str, Sequence[Any]] | None = None
    constraints: Sequence[Rule] | None = None
    random_state: Any = None
    progress: bool | str = False

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows, complete or not (NaN = unavailable), and their labels."""
        check_limits(self)
        self.schema_, rows = read_table(X, self.groups)
        self.schema_.rules = house_rules(self.constraints, self.schema_)
        X = self._table(X, reset=True)
        y = check_labels(X, y)
        self.features_ = self.schema_.features
        self.classes_ = np.unique(y)
        self.prices_ = as_prices(self.costs).resolve(self.features_)
        self.costs_ = self.prices_.costs
        self.epistemic_ = None
        rng = generator(self.random_state)
        labels = class_positions(self.classes_, y)
        self.predictor_, self.policy_ = self._train(rows, labels, rng)
        self.predictor_.training_rows_, self.predictor_.training_labels_ = rows, labels
        self.stop_ = None
        self.beliefs_ = BeliefModel(self.predictor_)
        return self

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        """Predictor and policy from encoded rows with NaN where missing, and labels as positions (N,)."""
        raise NotImplementedError

    def _predictor(self, answer: Answer) -> TrainedPredictor:
        """`answer(rows) -> (n, C)` as a predictor."""
        return TrainedPredictor(answer, self.schema_, self.classes_)


class FullRowBaseline(Baseline):
    """A baseline that reads the full row: its policy is a `FullRowPolicy`."""

    sees_everything = True

    policy_: FullRowPolicy

    def start(
        self,
        known: Mapping[str, Any] | None = None,
        budget: float | Mapping[str, float] | None = None,
        stop: Stopping | str | None = None,
        deadline: float | None = None,
        check: bool = False,
    ) -> Session:
        """As that of `DynamicFeatureSelector`, without a calibrated stop."""
        if isinstance(self.stop_ if stop == "calibrated" else stop, CalibratedStop):
            raise InvalidInput(
                f"{type(self).__name__} reads the full row, which a session does not have; its calibrated stop is "
                "valid in acquire only."
            )
        return super().start(known, budget, stop, deadline, check)

    def _policy_for(self, truth: EncodedRows) -> Policy:
        return self.policy_.reading(truth)


class TrainedPredictor(SubsetPredictor):
    """The predictor that a baseline has trained; there is no wrapped model, so `predict_full` is its own answer.

    Parameters
    ----------
    answer
        Function of encoded rows -> (n, C).
    schema, classes
        Columns and labels.
    """

    def __init__(self, answer: Answer, schema: Schema, classes: np.ndarray) -> None:
        self.answer = answer
        self.schema = schema
        self.classes = classes
        self.schema_ = schema
        self.classes_ = classes
        self.model_ = _Answering(answer, len(classes))
        self.takes_missing_ = np.ones(len(schema.columns), dtype=bool)

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        raise InvalidInput("The predictor of a baseline is trained together with it; call fit of the baseline.")

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        return self.answer(rows)


class _Answering:
    """The baseline's answers in the place of a wrapped model."""

    def __init__(self, answer: Answer, n_outputs: int) -> None:
        self.answer = answer
        self.n_outputs = n_outputs

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        return self.answer(rows)


class ScoredPolicy(Policy):
    """`score(rows, mask per feature) -> (n, M)`, the worth of each feature, per price.

    Parameters
    ----------
    score
        Function of encoded rows and the features known (n, M); higher is better. A positive worth is divided by the
        current price, a negative one multiplied.
    """

    def __init__(self, score: Callable[[EncodedRows, np.ndarray], np.ndarray]) -> None:
        self.score = score

    def scores(self, state: Acquisition) -> np.ndarray:
        worth = per_cost(self.score(state.rows, state.mask), state.prices.now(state.mask))
        return np.where(state.mask, -np.inf, worth)


class FullRowPolicy(Policy):
    """Ranks the features of a row by all of its available cells.

    Parameters
    ----------
    rank
        Function of encoded rows -> worth of each feature (n, M).
    """

    def __init__(self, rank: Callable[[EncodedRows], np.ndarray]) -> None:
        self.rank = rank
        self._worth: np.ndarray | None = None

    def reading(self, truth: EncodedRows) -> FullRowPolicy:
        """The same policy with the full rows of one batch to read."""
        other = FullRowPolicy(self.rank)
        other._worth = self.rank(truth)
        return other

    def scores(self, state: Acquisition) -> np.ndarray:
        worth = self.rank(state.rows) if self._worth is None else self._worth[state.ids]
        return np.where(state.mask, -np.inf, per_cost(worth, state.prices.now(state.mask)))
