"""The frozen model averaged over completions of a case, and over similar rows: Eq. 5 of the paper."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from askwise.errors import InvalidInput
from askwise.model.fast.pool_forests import PoolForests, pool_forests
from askwise.model.fast.pool_inputs import AnswerOnPool, pool_classifiers, prepared_alike
from askwise.model.fast.pool_trees import pool_trees
from askwise.model.wrapped import FrozenModel
from askwise.parameters import POSITIVE, SHARE, Whole, check_limits, within
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief, Completions
from askwise.predict.column_weights import learned_weights
from askwise.predict.similarity import Neighbors, kernel, rounded, squared_distances, without
from askwise.randomness import generator
from askwise.table.rows import CELLS_AT_ONCE, EncodedRows

TRAINING_NEIGHBORS = 20
CELLS_KEPT = 16_000_000
"""Maximum number of floats in the belief about a block of cases: 128 MB."""
FACTORS = (1.4, 1.0, 0.7)
"""Of Scott's rule for the width of the answer's kernel: what a selector chooses from, the usual one first."""


@dataclass(eq=False, repr=False)
class ConditionalPredictor(SubsetPredictor):
    r"""The wrapped model averaged over completions from training rows that resemble what is observed.

    .. math:: p(y \mid x_S) = \int p(y \mid x_S, x_{\bar S}) \, p(x_{\bar S} \mid x_S) \, dx_{\bar S}

    with the inner distribution represented by the hidden cells of the `n_neighbors` nearest training rows. Equals
    the wrapped model on complete rows. Nothing is trained, except weights of the columns if `similar_rows` is above 0.
    The selector's ``"conditional"`` is this with ``answer_bandwidth="auto"`` and ``similar_rows=0.5``.

    Parameters
    ----------
    estimator
        The classifier to wrap; see `SubsetPredictor`.
    n_neighbors
        Completions per row, and so the number of rows that the wrapped model predicts for each case.
    bandwidth
        Width of the kernel that weights the neighbors, in standard deviations of a column.
    max_rows
        Maximum number of training rows in the pool; if there are more, a random sample in which every column occurs.
    random_state
        Seed of that sample.
    answer_bandwidth
        Width of the kernel of the answer from completions; completions themselves keep weights of width `bandwidth`, by
        which gains and agreement are computed. None: `bandwidth`. ``"auto"``: Scott's rule, :math:`c N^{-1/(d + 4)}`
        with d known columns and N rows in the pool, but at most `bandwidth`. The fewer columns are known, the more rows
        are close in all of them, and the narrower the kernel may be. A selector chooses c on unseen rows (`FACTORS`).
    similar_rows
        From 0 to 1: how much of the prediction is the model's average over similar rows of the pool as they are, rather
        than over completions. A completion is a new row, on which a model that overfits can be far off; a training row
        is not. Both estimate the mean of f(x) given what is known, with different errors. Rows are similar by the known
        columns, whose weights are learned (see `predict.column_weights`). Never more than the share of columns that are
        unknown, so that the prediction tends to the model's own. Images are answered by completions alone.

    Attributes
    ----------
    answer_factor_ : c, if `answer_bandwidth` is ``"auto"``
    similar_ : the pool with learned column weights; None where completions answer alone

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import numpy as np
    >>> from askwise.predict import ConditionalPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ConditionalPredictor(model).fit(X, y)
    >>> only_first = np.array([[True, False, False, False]])
    >>> proba = predictor.predict_proba(X[[120]], only_first)
    >>> proba.round(1).tolist()
    [[0.0, 0.3, 0.7]]
    """

    averages_the_model = True
    chosen_on_unseen_rows: ClassVar[tuple[str, ...]] = ("answer_factor_",)

    estimator: Any
    n_neighbors: int = within(Whole(1), 100)
    bandwidth: float = within(POSITIVE, 0.8)
    max_rows: int = within(Whole(1), 5000)
    random_state: Any = None
    answer_bandwidth: float | str | None = None
    similar_rows: float = within(SHARE, 0.0)

    def fit_encoded(self, model: FrozenModel, rows: EncodedRows, y: np.ndarray) -> Self:
        check_limits(self)
        given = self.answer_bandwidth
        if given not in (None, "auto") and not POSITIVE.allows(given):
            name = type(self).__name__
            raise InvalidInput(f'{name}: answer_bandwidth must be {POSITIVE}, "auto" or None; got {given!r}.')
        self.answer_factor_ = FACTORS[0]
        return super().fit_encoded(model, rows, y)

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        # Shuffled, so that neighbors at equal distance are a fair sample even of a sorted table.
        order = generator(self.random_state).permutation(len(rows))
        pooled = order[: self.max_rows]
        # A column that is missing from the sample could not be completed: add the first row that has it.
        lacking = np.flatnonzero(~rows.observed[pooled].any(axis=0))
        pooled = np.append(pooled, np.unique(order[rows.observed[order][:, lacking].argmax(axis=0)]))
        pool = rows.take(pooled)
        self.pool_position_ = np.full(len(rows), -1)
        self.pool_position_[pooled] = np.arange(len(pooled))
        self.neighbors_ = self._search(pool, self.schema_)
        self.pool_ = self.neighbors_.filled(pool, ~self.takes_missing_)
        self._prepare()
        self.similar_: Neighbors | None = None
        if self.similar_rows > 0 and self._pool_answers is not None and len(pool) > 1:
            answers, rng = self._pool_answers[:, : len(self.classes_)], generator(self.random_state)
            weights = learned_weights(self.neighbors_, answers, self.schema_, self._by_scott, rng)
            self.similar_ = self.neighbors_.weighted(weights)

    def _prepare(self) -> None:
        """Make what depends on model and pool now, so that no question changes a fitted object; it is not saved."""
        for name in ("_on_pool", "_pool_answers", "_rounded_answers"):
            self.__dict__.pop(name, None)
            getattr(self, name)

    def pool_labels(self) -> np.ndarray:
        """(N,) labels of the pool rows, as positions of classes."""
        pooled = np.flatnonzero(self.pool_position_ >= 0)
        labels = np.empty(len(self.pool_), dtype=int)
        labels[self.pool_position_[pooled]] = self.training_labels_[pooled]
        return labels

    def _search(self, pool: EncodedRows, schema: Any) -> Neighbors:
        if schema.tabular:
            return Neighbors(pool, schema.is_category, self.n_neighbors, self.bandwidth)
        found: Neighbors = schema.neighbors(pool, self.n_neighbors, self.bandwidth)
        return found

    def for_training(self) -> Self:
        return self.with_neighbors(min(TRAINING_NEIGHBORS, self.neighbors_.n_neighbors))

    def with_neighbors(self, n_neighbors: int) -> Self:
        """The same pool with another number of completions per row."""
        other = copy.copy(self)
        other.neighbors_ = copy.copy(self.neighbors_)
        other.neighbors_.n_neighbors = min(n_neighbors, len(self.pool_))
        return other

    @property
    def rows_at_once(self) -> int:
        n_distances = len(self.pool_) * (1 if self.similar_ is None else 2)
        kept = max(n_distances, self.neighbors_.n_neighbors * self.model_.n_outputs)
        return max(1, CELLS_KEPT // kept)

    def believe(
        self,
        rows: EncodedRows,
        *,
        previous: Belief | None = None,
        leave_out: np.ndarray | None = None,
    ) -> Belief:
        """The completions of encoded rows, with the answers on them and their mean."""
        before, weighted_before, covered = None, None, None
        if previous is not None:
            before, weighted_before, covered = previous.distances, previous.weighted_distances, previous.observed
        weighted: np.ndarray | None = None
        if self.similar_ is None:
            distances = self.neighbors_.squared_distances(rows, before, covered)
        else:
            both = [self.neighbors_, self.similar_]
            distances, weighted = squared_distances(both, rows, [before, weighted_before], covered)
        similar = None if weighted is None else self._on_similar_rows(weighted, rows, leave_out)
        completions = self._complete(rows, distances, leave_out)
        answers = self._answers(completions, similar, rows, leave_out)
        complete, nothing = rows.observed.all(axis=1), ~rows.observed.any(axis=1)
        answers[complete] = completions.answers[complete, 0]
        if self._pool_answers is not None and nothing.any():
            at = None if leave_out is None else self.pool_position_[leave_out[nothing]]
            answers[nothing] = self._knowing_nothing(at).reshape(-1, *answers.shape[1:])
        return Belief(answers, completions, distances, weighted, rows.observed, similar)

    @property
    def factors(self) -> Sequence[float]:
        """What a selector may choose `answer_factor_` from; nothing where the width is given."""
        return FACTORS if self.answer_bandwidth == "auto" else ()

    def answer_widths(self, n_known: np.ndarray) -> np.ndarray:
        """(n,) width of the answer's kernel for cases with `n_known` (n,) columns."""
        if self.answer_bandwidth != "auto":
            given = self.bandwidth if self.answer_bandwidth is None else self.answer_bandwidth
            return np.full(len(n_known), float(given))
        return self._by_scott(n_known, self.answer_factor_)

    def answers_by_factor(self, belief: Belief, rows: EncodedRows) -> np.ndarray:
        """(n, F, C) the answer around the wrapped model alone by each of the `factors`, or by the given width (F = 1).

        Parameters
        ----------
        belief, rows
            What `believe` says about incomplete rows.
        """
        assert belief.completions is not None
        own = replace(belief.completions, answers=belief.completions.answers[:, :, :1])
        if self.factors:
            widths = self._by_scott(rows.observed.sum(axis=1)[:, None], np.array(self.factors))
            means = own.mean(self.bandwidth / widths)[:, :, 0]
        else:
            widths = self.answer_widths(rows.observed.sum(axis=1))
            means = own.mean(None if self.answer_bandwidth is None else self.bandwidth / widths)
        return self._mixed(means, None if belief.similar is None else belief.similar[:, :1], rows)

    def _by_scott(self, n_known: np.ndarray, factor: float | np.ndarray = FACTORS[0]) -> np.ndarray:
        """(n,) width for cases with `n_known` (n,) columns by Scott's rule, but at most `bandwidth`; both broadcast."""
        return np.minimum(self.bandwidth, factor * len(self.pool_) ** (-1 / (n_known + 4)))

    def _answers(
        self, completions: Completions, similar: np.ndarray | None, rows: EncodedRows, leave_out: np.ndarray | None
    ) -> np.ndarray:
        """(n, 1 + k, C) p(y | x_S) of incomplete rows, from completions and from `similar` rows."""
        narrowing = None
        if self.answer_bandwidth is not None:
            narrowing = self.bandwidth / self.answer_widths(rows.observed.sum(axis=1))
        return self._mixed(completions.mean(narrowing), similar, rows)

    def _mixed(self, answers: np.ndarray, similar: np.ndarray | None, rows: EncodedRows) -> np.ndarray:
        """Answers (n, several, C) on completions, mixed with those on similar rows themselves."""
        if similar is None:
            return answers
        share = np.minimum(self.similar_rows, np.mean(~rows.observed, axis=1))[:, None, None]
        return (1 - share) * answers + share * similar

    def _on_similar_rows(self, weighted: np.ndarray, rows: EncodedRows, leave_out: np.ndarray | None) -> np.ndarray:
        """(n, 1 + k, C) mean answers on the rows of the pool as they are, at `weighted` distances (n, N).

        The products of a matrix product are summed in an order that depends on the number of rows; rounded, they make
        no difference by it, so that a case has the same answer in any batch.
        """
        assert self._rounded_answers is not None
        if leave_out is not None:
            weighted = without(weighted, self.pool_position_[leave_out])
        weights = kernel(weighted, self._by_scott(rows.observed.sum(axis=1))[:, None])
        total = rounded(weights, len(self.pool_)) @ self._rounded_answers
        total = total.reshape(len(weights), -1, len(self.classes_))
        return np.asarray(total / total.sum(axis=2, keepdims=True))

    def whole_pool(self) -> Completions | None:
        """All rows of the pool, alike, as the completions of a case of which nothing is known; None for images."""
        if self._pool_answers is None:
            return None
        n = len(self.pool_)
        answers = self._pool_answers.reshape(1, n, -1, len(self.classes_))
        return Completions(np.arange(n)[None], np.full((1, n), 1 / n), answers)

    def _knowing_nothing(self, left_out: np.ndarray | None) -> np.ndarray:
        """(1 or n, outputs) the mean answer over the whole pool: nothing makes some rows more alike than others.

        `left_out` (n,) is a pool row that does not count, -1 for none.
        """
        found = self._pool_answers
        assert found is not None
        total, n = found.sum(axis=0, keepdims=True), len(found)
        if left_out is None or n == 1:
            return np.asarray(total / n)
        counts = (left_out >= 0)[:, None]
        return np.asarray((total - counts * found[left_out]) / (n - counts))

    def _complete(self, rows: EncodedRows, distances: np.ndarray, leave_out: np.ndarray | None) -> Completions:
        """The model's answers on the completions of each row; a complete row is answered once."""
        positions = None if leave_out is None else self.pool_position_[leave_out]
        index, weights = self.neighbors_.nearest(distances, positions)
        n, k = index.shape
        complete = rows.observed.all(axis=1)
        if not complete.any():
            answers = self._answers_on(rows, index)
        else:
            answers = np.empty((n, k, self.model_.n_outputs))
            answers[complete] = self._answers_on_complete(rows.take(complete))[:, None]
            if not complete.all():
                answers[~complete] = self._answers_on(rows.take(~complete), index[~complete])
        return Completions(index, weights, answers.reshape(n, k, -1, len(self.classes_)))

    def _answers_on(self, rows: EncodedRows, index: np.ndarray) -> np.ndarray:
        """(n, K, outputs) the model's answers on the completions of incomplete rows from the pool rows `index`."""
        if self._on_pool is not None:
            return self._on_pool(rows, index)
        n, k = index.shape
        answers = np.empty((n, k, self.model_.n_outputs))
        step = max(1, CELLS_AT_ONCE // (k * rows.values.shape[1]))
        for start in range(0, n, step):
            part = slice(start, start + step)
            cells = self.pool_[index[part]]
            row, column = np.nonzero(rows.observed[part])
            cells[row, :, column] = rows.values[part][row, column, None]
            asked = self.model_(rows.with_values(cells.reshape(-1, cells.shape[-1])))
            answers[part] = asked.reshape(len(cells), k, -1)
        return answers

    def _answers_on_complete(self, rows: EncodedRows) -> np.ndarray:
        """(n, outputs) the model's answers on complete rows, which any pool row completes to themselves."""
        if isinstance(self._on_pool, PoolForests):  # whose numbers are the model's own
            return self._on_pool(rows, np.zeros((len(rows), 1), dtype=int))[:, 0]
        return np.asarray(self.model_(rows))

    @cached_property
    def _on_pool(self) -> AnswerOnPool | None:
        """The wrapped model prepared for the pool, where that is possible."""
        if not self.schema_.tabular:
            return None
        pool, models = EncodedRows(self.pool_), prepared_alike(self.model_)
        if models is None or len(pool) < 2:
            return None
        ways = (pool_forests, pool_trees, pool_classifiers)
        return next((found for way in ways if (found := way(self.model_, models, pool)) is not None), None)

    @cached_property
    def _pool_answers(self) -> np.ndarray | None:
        """(N, outputs) the answers on the pool rows themselves; None for images, of which that would take long."""
        return self.model_(EncodedRows(self.pool_)) if self.schema_.tabular else None

    @cached_property
    def _rounded_answers(self) -> np.ndarray | None:
        """`_pool_answers` as they are averaged over similar rows."""
        return None if self._pool_answers is None else rounded(self._pool_answers, len(self.pool_))

    def with_model(self, model: Any) -> Self:
        other = super().with_model(model)
        other._prepare()
        return other

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        return self._predict_new(rows, None)

    def _predict_new(self, rows: EncodedRows, leave_out: np.ndarray | None) -> np.ndarray:
        """(n, outputs): the answers alone, with the completions of only a few rows in memory at a time."""
        proba = np.empty((len(rows), self.model_.n_outputs))
        for start in range(0, len(rows), self.rows_at_once):
            part = slice(start, start + self.rows_at_once)
            own = None if leave_out is None else leave_out[part]
            proba[part] = self.believe(rows.take(part), leave_out=own).answers.reshape(-1, proba.shape[1])
        return proba
