"""Lines to measure rivals against: a random order, everything at once, and the exact greedy policy on made data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr, expit

from askwise.acquire.acquisition import Trajectory
from askwise.acquire.policies import Policy, Random
from askwise.acquire.stopping import Stopping
from askwise.baselines.aaco import AACO
from askwise.baselines.base import Baseline, FullRowPolicy, FullRowRival, ScoredPolicy
from askwise.baselines.parameters import Limits, Whole
from askwise.baselines.static import DesignMatrix, strong_classifier, with_seed
from askwise.datasets.gaussian import GaussianDataset
from askwise.datasets.switch import SWITCH, SwitchDataset
from askwise.epistemic import assess
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.local import LocalPredictor
from askwise.randomness import seed_from
from askwise.uncertainty import Uncertainty

N_NODES = 20


class RandomOrder(AACO):
    """Features in a random order for each case, with the predictor of `AACO`: the lower line.

    Parameters
    ----------
    estimator, adaptation, width, epochs, learning_rate, batch_size, weight_decay
        The predictor, as in `AACO`; what chooses there is not used.
    costs, groups, random_state, progress
        As in `Baseline`.
    """

    def _train(self, values: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        predictor, _ = super()._train(values, y, rng)
        return predictor, Random(seed_from(rng))


class FullInformation(FullRowRival):
    """A classifier that sees the whole row under every budget: the upper line.

    `acquire` and `evaluate` buy features by price, as far as the money goes, but predict from everything from the
    start. `predict_proba` answers from what it is given, by a classifier trained on those columns alone.

    Parameters
    ----------
    classifier
        An unfitted classifier, which sees numbers only (see `StaticCMI`); None takes a strong one.
    max_models
        How many subsets keep their fitted classifier.
    costs, groups, random_state, progress
        As in `Baseline`.
    """

    limits: ClassVar[Limits] = {"max_models": Whole(1)}

    def __init__(
        self,
        classifier: Any = None,
        *,
        max_models: int = 256,
        costs: Any = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        random_state: Any = None,
        progress: bool | str = False,
    ) -> None:
        super().__init__(costs=costs, groups=groups, random_state=random_state, progress=progress)
        self.classifier = classifier
        self.max_models = max_models

    def _train(self, values: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        classifier = strong_classifier() if self.classifier is None else self.classifier
        cells = DesignMatrix(values, self.schema_)
        models = LocalPredictor(with_seed(classifier, rng), self.max_models).fit(cells(values), self.classes_[y])
        return self._predictor(cells.asking(models)), FullRowPolicy(self._all_alike, self.prices_)

    def _all_alike(self, rows: np.ndarray) -> np.ndarray:
        return np.ones((len(rows), len(self.features_)))

    def acquire(
        self, X: Any, budget: Any = None, stop: Stopping | None = None, available: Any = None, known: Any = None
    ) -> Trajectory:
        """As that of `DynamicFeatureSelector`, with the prediction from everything at every step."""
        return self._seeing(self._encode(X), super().acquire(X, budget, stop, available, known))

    def final_states(
        self, X: Any, budgets: Sequence[float], policy: Policy | None = None
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """As that of `DynamicFeatureSelector`, with the prediction from everything under every budget."""
        everything = self.predict_proba(X)
        return [(everything, spent, mask) for _, spent, mask in super().final_states(X, budgets, policy)]

    def _seeing(self, truth: np.ndarray, run: Trajectory) -> Trajectory:
        proba, found = assess(self.predictor_, None, truth, ~np.isnan(truth))
        uncertainty = {
            name: np.repeat(values[:, None], run.n_steps + 1, axis=1) for name, values in found.as_dict().items()
        }
        everywhere = np.repeat(proba[:, None], run.n_steps + 1, axis=1)
        return dataclasses.replace(run, proba=everywhere, uncertainty=Uncertainty(**uncertainty))


class ExactOracle(Baseline):
    r"""The exact p(y | x_S) of a made data set, and the feature of the largest exact :math:`I(y; x_i \mid x_S)` next.

    Parameters
    ----------
    data
        What `askwise.datasets.make_gaussian` or `make_switch` made; the rows given to `fit` must be its own kind.
    costs, groups, random_state, progress
        As in `Baseline`; each column must be a feature of its own.
    """

    def __init__(
        self,
        data: GaussianDataset | SwitchDataset,
        *,
        costs: Any = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        random_state: Any = None,
        progress: bool | str = False,
    ) -> None:
        super().__init__(costs=costs, groups=groups, random_state=random_state, progress=progress)
        self.data = data

    def _train(self, values: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        if not isinstance(self.data, GaussianDataset | SwitchDataset):
            raise InvalidInput(f"ExactOracle: data must come from make_gaussian or make_switch; got {self.data!r}.")
        if len(self.features_) < values.shape[1]:
            raise InvalidInput("ExactOracle knows the gain of single columns only; leave out groups.")
        if not np.array_equal(self.classes_, self.data.classes):
            raise InvalidInput(
                f"ExactOracle: y must hold the classes of the data, {self.data.classes.tolist()}; "
                f"got {self.classes_.tolist()}."
            )
        self._answer(values[:1], ~np.isnan(values[:1]))  # refuses the columns of another table
        columns = [column.label for column in self.schema_.columns]
        if self.schema_.framed and columns != list(self.data.X.columns):
            raise InvalidInput(f"ExactOracle: X must have its columns in the order of the data set; got {columns}.")
        return self._predictor(self._answer), ScoredPolicy(self._gain, self.prices_)

    def _answer(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return self.data.exact_proba(self.schema_.decode(np.where(mask, values, np.nan)))

    def _gain(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        rows = self.data._rows(self.schema_.decode(values))
        cells = self.data._numbers(rows)
        if isinstance(self.data, SwitchDataset):
            return switch_gain(self.data, cells, mask)
        return np.where(mask, 0.0, self.data.exact_gain(np.nan_to_num(cells), mask))


def switch_gain(data: SwitchDataset, cells: np.ndarray, mask: np.ndarray) -> np.ndarray:
    r"""Exact :math:`I(y; x_i \mid x_S)` on switch data, (n, D), 0 where known: how far entropy falls on average.

    A feature of a block is a mixture of two Gaussians around that block's vote, integrated by Gauss-Hermite
    quadrature; the switch is uniform.
    """
    known = np.where(mask, cells, np.nan)
    n, n_signals = len(cells), data.n_settings * data.block_size
    evidence = np.nan_to_num(known[:, :n_signals]).reshape(n, data.n_settings, data.block_size).sum(axis=2)
    votes = expit(2 * evidence / data.noise**2)  # (n, settings)
    nodes, weights = np.polynomial.hermite.hermgauss(N_NODES)
    readings = np.concatenate([side + np.sqrt(2) * data.noise * nodes for side in (-1.0, 1.0)])
    before = _entropy(data, known)
    gain = np.zeros(cells.shape)
    for i in range(n_signals):
        vote = votes[:, [i // data.block_size]]
        chance = np.hstack([(1 - vote) * weights, vote * weights]) / np.sqrt(np.pi)
        gain[:, i] = before - _expected_entropy(data, known, i, readings, chance)
    settings = np.arange(data.n_settings, dtype=float)
    even = np.full((n, data.n_settings), 1 / data.n_settings)
    gain[:, -1] = before - _expected_entropy(data, known, list(data.X.columns).index(SWITCH), settings, even)
    return np.where(mask, 0.0, np.maximum(gain, 0.0))


def _expected_entropy(
    data: SwitchDataset, known: np.ndarray, i: int, outcomes: np.ndarray, chance: np.ndarray
) -> np.ndarray:
    """(n,) mean entropy of the label once cell `i` turned out to be each of `outcomes` (B,) with `chance` (n, B)."""
    tried = np.repeat(known[:, None], len(outcomes), axis=1)  # (n, B, D)
    tried[:, :, i] = outcomes
    after = _entropy(data, tried.reshape(-1, known.shape[1])).reshape(chance.shape)
    return (chance * after).sum(axis=1)


def _entropy(data: SwitchDataset, cells: np.ndarray) -> np.ndarray:
    return np.asarray(entr(data._exact_proba(cells, ~np.isnan(cells))).sum(axis=1))
