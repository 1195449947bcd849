"""AACO: the subset to acquire, by the losses of similar training rows (Valancius et al. 2024)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from askwise.acquisition import Acquisition
from askwise.model.wrapped import FrozenModel, fitted_classifier
from askwise.networks import CellCoder, Layers, import_torch, seeded
from askwise.parameters import POSITIVE, Choice, Number, Whole, within
from askwise.policy.base import Policy
from askwise.predict import ConditionalPredictor, ImputedPredictor
from askwise.predict.base import SubsetPredictor, class_positions
from askwise.predict.masked import train_under_masks
from askwise.predict.similarity import Neighbors
from askwise.randomness import seed_from
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample, unique_masks
from askwise_bench.baselines.base import Baseline

SMALLEST = 1e-6
CELLS_AT_ONCE = 2_000_000

Losses = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Pool rows (n,) and subsets of the features (R, M) -> loss of each row on each subset, (n, R)."""


@dataclass(eq=False, repr=False)
class AACO(Baseline):
    r"""The approximate acquisition-conditioned oracle: no policy is trained, similar training rows are looked up.

    Valancius, Lennon, Oliva (2024), "Acquisition conditioned oracle for nongreedy active feature acquisition". With
    the features :math:`o` known, the set to acquire is

    .. math:: v^* = \arg\min_{v} \frac1k \sum_{l \in N_k(x_o)} \ell(f(x^{(l)}_{o \cup v}), y^{(l)})
              + \alpha \sum_{i \in v} c_i

    over random sets v, where :math:`N_k(x_o)` are the k training rows most like the case in what is known. The next
    feature is the one in v* that alone lowers the same mean loss most.

    Parameters
    ----------
    estimator
        The classifier f: used as it is if fitted, otherwise cloned and fitted. None trains a network
        under random masks (needs torch).
    adaptation
        How `estimator` predicts from what is known: ``"conditional"`` (averaged over completions from similar rows)
        or ``"mean"`` (hidden cells at their means). The losses of the training rows use means in either case.
    n_neighbors, n_subsets
        k, and the random sets that are tried.
    acquisition_cost
        :math:`\alpha`: the loss (in nats) that a feature of average price must save.
    max_rows
        Training rows that are searched; a random sample of them when there are more.
    width, epochs, learning_rate, batch_size, weight_decay
        The network of ``estimator=None``: one hidden ReLU layer, trained by Adam under new masks in each epoch.
    costs, groups, random_state, progress
        As in `Baseline`.

    Notes
    -----
    Deviations: 1. Acquisition continues until the budget is spent: stopping (v empty) is not an option. Where no
    feature of v* is available, the best other set follows. 2. While nothing is known all training rows are
    neighbors; the original fixes the first feature by hand. 3. The random sets are drawn once and joined with o, so
    that a case's choice does not depend on when it is asked; the single features are always among them. 4. Rows
    are compared by normal scores, categories by equality. 5. Prices count relative to their mean, so that
    `acquisition_cost` means the same in any currency.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from askwise_bench.baselines import AACO
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = AACO(LogisticRegression(max_iter=1000), random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    estimator: Any = None
    _: KW_ONLY
    adaptation: str = within(Choice(("conditional", "mean")), "conditional")
    n_neighbors: int = within(Whole(1), 20)
    n_subsets: int = within(Whole(1), 100)
    acquisition_cost: float = within(Number(0), 0.05)
    max_rows: int = within(Whole(1), 5000)
    width: int = within(Whole(1), 100)
    epochs: int = within(Whole(0), 200)
    learning_rate: float = within(POSITIVE, 1e-3)
    batch_size: int = within(Whole(1), 64)
    weight_decay: float = within(Number(0), 1e-4)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        pooled = np.sort(rng.permutation(len(rows))[: self.max_rows])
        pool = rows.take(pooled)
        prepare = self._network if self.estimator is None else self._frozen
        predictor, losses = prepare(rows, y, pooled, rng)
        neighbors = Neighbors(pool, self.schema_.is_category, self.n_neighbors, bandwidth=1.0)
        sets = sample(self.n_subsets, len(self.features_), rng)
        weight = self.acquisition_cost / max(float(np.mean(self.costs_)), np.finfo(float).tiny)
        return predictor, Oracle(self.prices_, neighbors, losses, sets, weight)

    def _network(
        self, rows: EncodedRows, y: np.ndarray, pooled: np.ndarray, rng: np.random.Generator
    ) -> tuple[SubsetPredictor, Losses]:
        import_torch("AACO(estimator=None)", "AACO(estimator=your classifier)")
        self.coder_ = CellCoder(rows, self.schema_)

        def draw_masks() -> np.ndarray:
            return self.schema_.expand(sample(len(rows), len(self.features_) + 1, rng)[:, :-1])

        with seeded(seed_from(rng)):
            self.layers_ = train_under_masks(self.coder_, rows, y, len(self.classes_), draw_masks, self)
        weights, biases = (
            [part.astype(np.float32) for part in parts] for parts in (self.layers_.weights, self.layers_.biases)
        )
        cells = self.coder_(rows.take(pooled)).astype(np.float32)
        owner = self.schema_.owner[self.coder_.column]  # (P,) feature of an input
        losses = _NetworkLosses(Layers(weights, biases, "relu"), cells, owner, y[pooled])
        return self._predictor(self._answer), losses

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        return np.asarray(softmax(self.layers_(self.coder_(rows)), axis=1))

    def _frozen(
        self, rows: EncodedRows, y: np.ndarray, pooled: np.ndarray, rng: np.random.Generator
    ) -> tuple[SubsetPredictor, Losses]:
        table, labels = self.schema_.decode(rows), self.classes_[y]
        model = FrozenModel(fitted_classifier(self.estimator, table, labels), self.schema_)
        self.classes_, y = model.classes, class_positions(model.classes, labels)
        imputed = ImputedPredictor(model.estimator, "mean").fit_encoded(model, rows, y)
        predictor: SubsetPredictor = imputed
        if self.adaptation == "conditional":
            predictor = ConditionalPredictor(imputed.estimator_, random_state=seed_from(rng))
            predictor.fit_encoded(model, rows, y)
        return predictor, _FrozenLosses(imputed, pooled)


@dataclass(eq=False, repr=False)
class Oracle(Policy):
    """Features of the best set first (scores above 1), ordered by their own mean loss; then those of the next best."""

    prices: Prices
    neighbors: Neighbors
    losses: Losses
    sets: np.ndarray  # (R, M)
    weight: float  # loss per unit of price

    def scores(self, state: Acquisition) -> np.ndarray:
        scores = np.full(state.mask.shape, -np.inf)
        index = self.neighbors.nearest(self.neighbors.squared_distances(state.rows))[0]
        subsets, which = unique_masks(state.mask)
        for s, had in enumerate(subsets):
            if not had.all():
                rows = np.flatnonzero(which == s)
                scores[rows] = self._given(had, index[rows])
        return np.where(state.mask, -np.inf, scores)

    def _given(self, had: np.ndarray, index: np.ndarray) -> np.ndarray:
        """(n, M) for cases that all have the features `had`, with the neighbors `index` (n, k)."""
        hidden = np.flatnonzero(~had)
        alone = had | (np.arange(len(had)) == hidden[:, None])  # (hidden, M)
        tried = np.vstack([alone, self._larger(had)])  # (R, M)
        loss = self._mean_losses(had, index, tried)  # (n, R)
        paid = self.prices.total(tried) - self.prices.total(had[None])
        worth = np.exp(-loss - self.weight * paid)
        best_with = np.where(tried.T, worth[:, None, :], 0.0).max(axis=2)  # (n, M) the best set that a feature is in
        own = np.full(best_with.shape, -np.inf)
        own[:, hidden] = 1 + np.exp(-loss[:, : len(hidden)])
        return np.where(tried[worth.argmax(axis=1)], own, best_with)

    def _larger(self, had: np.ndarray) -> np.ndarray:
        """The different sets, joined with `had`, that add two features or more."""
        joined = self.sets | had
        joined = joined[joined.sum(axis=1) > had.sum() + 1]
        packed = np.packbits(joined, axis=1)
        first = np.unique(packed.view(f"V{packed.shape[1]}").reshape(-1), return_index=True)[1]
        return joined[np.sort(first)]

    def _mean_losses(self, had: np.ndarray, index: np.ndarray, tried: np.ndarray) -> np.ndarray:
        """(n, R) mean loss of the neighbors of each case on each set."""
        if not had.any():
            everyone = np.arange(len(self.neighbors.scores))
            return np.repeat(self.losses(everyone, tried).mean(axis=0)[None], len(index), axis=0)
        used, place = np.unique(index, return_inverse=True)
        return self.losses(used, tried)[place.reshape(index.shape)].mean(axis=1)


@dataclass(frozen=True, eq=False)
class _NetworkLosses:
    """The loss of pool rows on subsets: what the network sees is their coded cells (N, P) times the subset.

    `owner` (P,) is the feature of each cell, `y` (N,) the class of each row.
    """

    layers: Layers
    cells: np.ndarray
    owner: np.ndarray
    y: np.ndarray

    def __call__(self, rows: np.ndarray, subsets: np.ndarray) -> np.ndarray:
        seen = subsets[:, self.owner].astype(np.float32)  # (R, P)
        found = np.empty((len(rows), len(subsets)))
        step = max(1, CELLS_AT_ONCE // (seen.size + 1))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            logits = self.layers((self.cells[part, None] * seen).reshape(-1, len(self.owner)))
            own = logits[np.arange(len(logits)), np.repeat(self.y[part], len(seen))]
            found[start : start + step] = (_log_sum_exp(logits) - own).reshape(len(part), len(seen))
        return np.minimum(found, -np.log(SMALLEST))


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """(n, C) -> (n,), in the precision of the logits."""
    largest = logits.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class _FrozenLosses:
    """The loss of a wrapped model on its training rows `pool`, by a predictor that answers on subsets."""

    predictor: SubsetPredictor
    pool: np.ndarray

    def __call__(self, picked: np.ndarray, subsets: np.ndarray) -> np.ndarray:
        rows, predictor = self.pool[picked], self.predictor
        mask = np.tile(predictor.schema_.expand(subsets), (len(rows), 1))
        repeated = np.repeat(rows, len(subsets))
        answers = predictor.proba(predictor.training_rows_.take(repeated).masked(mask))
        proba = answers[np.arange(len(repeated)), predictor.training_labels_[repeated]]
        return -np.log(np.maximum(proba, SMALLEST)).reshape(len(rows), len(subsets))
