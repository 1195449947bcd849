"""Reference points: a random order, full information, and the exact greedy policy on synthetic data."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from askwise.assessments import Recorded
from askwise.datasets.synthetic import SyntheticDataset
from askwise.errors import InvalidInput
from askwise.evaluation import FinalState
from askwise.parameters import Whole, within
from askwise.policy.base import Policy
from askwise.policy.orders import Random
from askwise.predict.base import SubsetPredictor
from askwise.predict.local import LocalPredictor
from askwise.randomness import seed_from
from askwise.stopping.rules import Stopping
from askwise.table.rows import EncodedRows
from askwise.table.schema import as_table
from askwise.trajectory import Trajectory
from askwise_bench.baselines.aaco import AACO
from askwise_bench.baselines.base import Baseline, FullRowBaseline, FullRowPolicy, ScoredPolicy
from askwise_bench.baselines.static import DesignMatrix, strong_classifier, with_seed


class RandomOrder(AACO):
    """Features in a random order for each case, with the predictor of `AACO`: a lower bound.

    Parameters
    ----------
    estimator, adaptation, width, epochs, learning_rate, batch_size, weight_decay
        The predictor, as in `AACO`; its acquisition policy is not used.
    costs, groups, random_state, progress
        As in `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from askwise_bench.baselines import RandomOrder
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = RandomOrder(LogisticRegression(max_iter=1000), random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        predictor, _ = super()._train(rows, y, rng)
        return predictor, Random(seed_from(rng))


@dataclass(eq=False, repr=False)
class FullInformation(FullRowBaseline):
    """A classifier that sees the full row under every budget: an upper bound.

    `acquire` and `evaluate` buy the cheapest features that the budget allows, but predict from the full row from the
    start. `predict_proba` uses only the given cells, by a classifier trained on those columns alone.

    Parameters
    ----------
    classifier
        An unfitted classifier on numeric input (see `StaticCMI`); None uses a strong default.
    max_models
        Fitted classifiers to keep, one per subset.
    costs, groups, random_state, progress
        As in `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from askwise_bench.baselines import FullInformation
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = FullInformation(LogisticRegression(max_iter=1000)).fit(X, y)
    >>> rival.predict(X[:1])
    array([0])
    """

    classifier: Any = None
    _: KW_ONLY
    max_models: int = within(Whole(1), 256)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        classifier = strong_classifier() if self.classifier is None else self.classifier
        cells = DesignMatrix(rows, self.schema_)
        models = LocalPredictor(with_seed(classifier, rng), self.max_models).fit(cells(rows), self.classes_[y])
        return self._predictor(cells.asking(models)), FullRowPolicy(self._all_alike)

    def _all_alike(self, rows: EncodedRows) -> np.ndarray:
        return np.ones((len(rows), len(self.features_)))

    def acquire(
        self, X: Any, budget: Any = None, stop: Stopping | str | None = None, available: Any = None, known: Any = None
    ) -> Trajectory:
        """As that of `DynamicFeatureSelector`, with the prediction from the full row at every step."""
        run = super().acquire(X, budget, stop, available, known)
        return self._seeing(self.schema_.encode(as_table(X)), run)

    def _final_states(self, X: Any, budgets: Sequence[Any], policy: Policy | None = None) -> list[FinalState]:
        everything = self.predict_proba(X)
        return [end._replace(proba=everything) for end in super()._final_states(X, budgets, policy)]

    def _seeing(self, truth: EncodedRows, run: Trajectory) -> Trajectory:
        found = self.beliefs_.assess(self.beliefs_.believe(truth), truth)
        final = (np.arange(len(self.classes_)) == found.decision[:, None]).astype(float)
        found = dataclasses.replace(found, agreement=np.ones(len(truth)), final=final)
        return dataclasses.replace(run, said=Recorded([found] * (run.n_steps + 1)))


@dataclass(eq=False, repr=False)
class ExactOracle(Baseline):
    r"""The exact p(y | x_S) of synthetic data, and the feature of largest exact :math:`I(y; x_i \mid x_S)` next.

    Parameters
    ----------
    data
        The result of `make_gaussian` or `make_switch`; the rows given to `fit` must come from the same distribution.
    costs, groups, random_state, progress
        As in `Baseline`; each column must be its own feature.

    Examples
    --------
    >>> from askwise.datasets import make_gaussian
    >>> from askwise_bench.baselines import ExactOracle
    >>> data = make_gaussian(50, random_state=0)
    >>> rival = ExactOracle(data).fit(data.X, data.y)
    >>> rival.acquire(data.X[:2], budget=2).order.shape
    (2, 2)
    """

    data: SyntheticDataset

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        if not isinstance(self.data, SyntheticDataset):
            raise InvalidInput(f"ExactOracle: data must come from make_gaussian or make_switch; got {self.data!r}.")
        if len(self.features_) < len(self.schema_.columns):
            raise InvalidInput("ExactOracle knows the gain of single columns only; leave out groups.")
        if not np.array_equal(self.classes_, self.data.classes):
            raise InvalidInput(
                f"ExactOracle: y must hold the classes of the data, {self.data.classes.tolist()}; "
                f"got {self.classes_.tolist()}."
            )
        self._answer(rows.take([0]))  # refuses the columns of another table
        columns = [column.label for column in self.schema_.columns]
        if self.schema_.framed and columns != list(self.data.X.columns):
            raise InvalidInput(f"ExactOracle: X must have its columns in the order of the data set; got {columns}.")
        return self._predictor(self._answer), ScoredPolicy(self._gain)

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        return self.data.exact_proba(self.schema_.decode(rows))

    def _gain(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        return np.where(mask, 0.0, self.data.exact_gain(self.schema_.decode(rows), mask))
