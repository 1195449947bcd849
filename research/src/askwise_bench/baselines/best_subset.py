"""StaticBest: the best fixed subset under every budget, found by cross-validation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from askwise.acquisition import Acquisition
from askwise.parameters import Whole, within
from askwise.policy.base import Policy
from askwise.policy.information import discretized, greedy_order
from askwise.predict.base import SubsetPredictor
from askwise.predict.local import LocalPredictor
from askwise.progress import track
from askwise.table.prices import Prices, affordable
from askwise.table.rows import EncodedRows
from askwise.value.gain import per_cost
from askwise_bench.baselines.base import Baseline
from askwise_bench.baselines.static import DesignMatrix, strong_classifier, with_seed

SMALLEST = 1e-6
LEVELS = np.arange(0.05, 0.55, 0.05)
"""Budgets within which subsets are searched, as shares of the price of everything."""

RANKING_BINS = 3


@dataclass(kw_only=True, eq=False, repr=False)
class StaticBest(Baseline):
    r"""The best fixed subset that the budget buys, chosen by held-out loss, with a strong classifier trained on it.

    .. math:: S_b = \arg\min_{S:\, c(S) \le b} \; \hat E_{x, y}\, l(f_S(x_S), y)

    by cross-validation. Subsets are searched forwards and backwards; with prices also forwards within each budget
    from 5 % to 50 % of the price of everything, by loss and by loss per price. The best of each budget, and what the
    ranking of `StaticCMI` buys with it, are compared again with the final classifier. Not a published method, but the
    bar that a dynamic method must clear to be worthwhile. Its policy depends on the budget: each budget has its own
    subset.

    Parameters
    ----------
    classifier
        An unfitted classifier on numeric input (see `StaticCMI`). None searches with logistic regression,
        and predicts with logistic regression on numbers and their squares and a random forest, averaged.
    n_folds, n_candidates, max_features
        Folds; candidates tried at each step, those of largest gain when last tried; largest subset searched.
    max_rows
        Rows that the search uses; a random sample of them when there are more. The predictions use all.
    max_models
        Fitted classifiers to keep, one per subset.
    costs, groups, random_state, progress
        As in `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import StaticBest
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = StaticBest(max_features=2, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    classifier: Any = None
    n_folds: int = within(Whole(2), 5)
    n_candidates: int = within(Whole(1), 8)
    max_features: int = within(Whole(1), 20)
    max_rows: int = within(Whole(2), 2000)
    max_models: int = within(Whole(1), 256)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        cells = DesignMatrix(rows, self.schema_)
        judged = rng.permutation(len(rows))[: self.max_rows]
        search = SubsetSearch(
            cells(rows.take(judged)),
            self.schema_.owner[cells.owner],
            y[judged],
            with_seed(LogisticRegression(max_iter=500) if self.classifier is None else self.classifier, rng),
            self.prices_,
            _folds(y[judged], self.n_folds, rng),
            self.n_candidates,
            self.max_features,
        )
        subsets, losses = search.run(self.progress)
        final = with_seed(strong_classifier() if self.classifier is None else self.classifier, rng)
        if self.classifier is None:
            ranked = greedy_order(discretized(rows, y, self.schema_, RANKING_BINS), y, self.prices_, "cmim")
            finalists = np.unique([*search.winners(subsets, losses), *search.prefixes(ranked)], axis=0)
            search.classifier = final
            subsets, losses = finalists, search.judged(finalists, self.progress)
        policy = BestSubset(subsets, losses, self.prices_)
        models = LocalPredictor(final, self.max_models).fit(cells(rows), self.classes_[y])
        return self._predictor(cells.asking(models)), policy


@dataclass
class SubsetSearch:
    """Cross-validated log loss of subsets of features, and the greedy searches that decide which ones are tried.

    Parameters
    ----------
    cells, owner
        (N, P) complete rows of numbers, and the feature that each of their columns belongs to, (P,).
    y
        (N,) class positions.
    classifier
        Unfitted; a clone is fitted for each subset and fold.
    prices
        Resolved prices; free features are in every subset.
    fold
        (N,) the fold of each row.
    n_candidates, max_features
        As in `StaticBest`.
    """

    cells: np.ndarray
    owner: np.ndarray
    y: np.ndarray
    classifier: Any
    prices: Prices
    fold: np.ndarray
    n_candidates: int
    max_features: int
    _found: dict[bytes, tuple[np.ndarray, float]] = field(default_factory=dict)

    @property
    def free(self) -> np.ndarray:
        """(M,) features that cost nothing."""
        return np.asarray(self.prices.costs) == 0

    def run(self, progress: bool | str = False) -> tuple[np.ndarray, np.ndarray]:
        """Subsets tried (Q, M) and their losses (Q,)."""
        self.loss(self.free)
        if self.prices.uniform:
            searches = [(np.inf, False)]
        else:
            levels = self.prices.total() * LEVELS
            searches = [(level, per_price) for level in (np.inf, *levels) for per_price in (True, False)]
        for budget, per_price in track(searches, "searching subsets", len(searches), progress):
            last = self._grown(budget, per_price)
            if np.isinf(budget):
                self._shrunk(last)
        subsets, losses = zip(*self._found.values(), strict=True)
        return np.array(subsets), np.array(losses)

    def levels(self) -> np.ndarray:
        """Budgets: 1, 2, ... features at equal prices, otherwise shares of the total price."""
        paid = np.asarray(self.prices.costs)[~self.free]
        if self.prices.uniform and len(paid):
            return paid[0] * np.arange(1, min(self.max_features, len(paid)) + 1)
        return self.prices.total() * np.append(LEVELS, 1.0)

    def winners(self, subsets: np.ndarray, losses: np.ndarray) -> list[np.ndarray]:
        """The best subset within each budget."""
        price = self.prices.total(subsets)
        within = [affordable(price, level) for level in self.levels()]
        return [subsets[np.where(fits, losses, np.inf).argmin()] for fits in within if fits.any()]

    def prefixes(self, order: np.ndarray) -> list[np.ndarray]:
        """What a ranking (M,) buys with each budget; features that exceed what is left of it are skipped."""
        bought = []
        for level in self.levels():
            had = self.free.copy()
            for i in order:
                larger = had | (np.arange(len(had)) == i)
                had = larger if affordable(self.prices.total(larger[None])[0], level) else had
            bought.append(had)
        return bought

    def judged(self, subsets: np.ndarray, progress: bool | str = False) -> np.ndarray:
        """(Q,) losses of `subsets` under the current classifier."""
        owned = subsets[:, self.owner]
        trials = track(owned, "judging subsets", len(owned), progress)
        return np.array([self._cross_validated(columns) for columns in trials])

    def loss(self, subset: np.ndarray) -> float:
        """Log loss (in nats) of a classifier trained on `subset` (M,), on the rows of the other folds."""
        key = subset.tobytes()
        if key not in self._found:
            self._found[key] = subset.copy(), self._cross_validated(subset[self.owner])
        return self._found[key][1]

    def _grown(self, budget: float, per_price: bool) -> np.ndarray:
        """Forward selection within `budget`; returns the largest subset."""
        had, promise = self.free.copy(), np.full(len(self.free), np.inf)
        while had.sum() - self.free.sum() < self.max_features:
            larger = had | np.eye(len(had), dtype=bool)
            possible = ~had & affordable(self.prices.total(larger), budget)
            if not possible.any():
                break
            tried = np.argsort(np.where(possible, -promise, np.inf), kind="stable")[: possible.sum()]
            tried = tried if np.isinf(promise[tried]).any() else tried[: self.n_candidates]
            promise[tried] = [self.loss(had) - self.loss(larger[i]) for i in tried]
            worth = per_cost(promise, self.prices.now(had[None])[0]) if per_price else promise
            had = larger[tried[worth[tried].argmax()]]
        return had

    def _shrunk(self, had: np.ndarray) -> None:
        """Backward elimination."""
        while (had & ~self.free).sum() > 1:
            smaller = [had & (np.arange(len(had)) != i) for i in np.flatnonzero(had & ~self.free)]
            had = smaller[int(np.argmin([self.loss(subset) for subset in smaller]))]

    def _cross_validated(self, columns: np.ndarray) -> float:
        chance = np.empty(len(self.y))
        for k in range(self.fold.max() + 1):
            judged = self.fold == k
            chance[judged] = self._own_class(np.flatnonzero(~judged), np.flatnonzero(judged), columns)
        return float(-np.log(np.maximum(chance, SMALLEST)).mean())

    def _own_class(self, rows: np.ndarray, judged: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Probability of the true class of each `judged` row under a classifier trained on `rows`."""
        y = self.y[rows]
        if not columns.any() or len(np.unique(y)) < 2:
            return np.bincount(y, minlength=self.y.max() + 1)[self.y[judged]] / len(y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = clone(self.classifier).fit(self.cells[np.ix_(rows, columns)], y)
        proba = np.zeros((len(judged), self.y.max() + 1))
        proba[:, model.classes_] = model.predict_proba(self.cells[np.ix_(judged, columns)])
        return proba[np.arange(len(judged)), self.y[judged]]


class BestSubset(Policy):
    """Buys the subset of lowest loss that the remaining budget can complete.

    Subsets that exhaust the budget (nothing else is affordable besides them) come before the others. Buying a part of
    the best subset leaves it the best, so the choice does not change before it is complete.

    Parameters
    ----------
    subsets, losses
        (Q, M) subsets and their held-out losses (Q,).
    prices
        Resolved prices.
    """

    reads_budget = True

    def __init__(self, subsets: np.ndarray, losses: np.ndarray, prices: Prices) -> None:
        self.subsets, self.losses, self.prices = subsets, losses, prices
        alone = np.where(subsets, losses[:, None], np.inf).min(axis=0)  # (M,) lowest loss of a subset with the feature
        self.wanted = np.empty(len(alone))
        self.wanted[np.argsort(alone, kind="stable")] = np.linspace(1, 0.5, len(alone))

    def scores(self, state: Acquisition) -> np.ndarray:
        states, which = np.unique(np.column_stack([state.mask, state.left]), axis=0, return_inverse=True)
        plans = np.array([self.plan(held[:-1].astype(bool), held[-1]) for held in states])
        return np.where(state.mask, -np.inf, self.wanted + plans[which.reshape(-1)])

    def plan(self, had: np.ndarray, left: float) -> np.ndarray:
        """(M,) the subset to complete."""
        joined = self.subsets | had
        spent = self.prices.total(joined) - self.prices.total(had[None])
        within = affordable(spent, left)
        rest = left - np.where(within, spent, 0.0)
        room = (~joined & affordable(self.prices.now(joined), rest[:, None])).any(axis=1)
        spending = within & ~room
        pool = spending if spending.any() else within
        return self.subsets[np.where(pool, self.losses, np.inf).argmin()]


def _folds(y: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """(N,) number of each row's fold; the rows of a class are dealt out evenly."""
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    fold = np.empty(len(y), dtype=int)
    fold[by_class] = np.arange(len(y)) % n_folds
    return fold
