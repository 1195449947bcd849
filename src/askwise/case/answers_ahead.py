"""The answers that a feature may give for one case, in two or three groups, and where each group leads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from askwise.acquisition import Acquisition
from askwise.explain import (
    Answer,
    Grouping,
    group_categories,
    group_numbers,
    interval_in_words,
    listed_values,
    neat_cut,
    number,
)
from askwise.predict.similarity import Neighbors
from askwise.table.columns import Column, plain

N_DRAWS = 30
"""Answers for which the prediction is computed."""
FEWEST = 2
"""Drawn answers in a group of answers."""
MOST_ROWS, N_NEIGHBORS, BANDWIDTH = 2000, 100, 0.8
"""Training rows that are searched for similar ones, if the predictor has no completions, and how."""
MOST_COLUMNS = 30
MOST_CODES = 6
"""A number with at most so many values, all of them whole, is shown by them and not by ranges."""
STEPS = 5
"""Answers with the same decision are told apart by its probability in so many steps."""


@dataclass(frozen=True)
class AnswerGroup:
    """Some answers of a feature: in words, how likely they are, and the decision after them with its probability.

    `column` has the cells that the words are about; `low` <= cell < `high` of a number, `values` of a category.
    """

    answer: str
    chance: float
    decision: Any
    probability: float
    changes_decision: bool
    column: str | None = None
    low: float | None = None
    high: float | None = None
    values: list[Any] | None = None


class AnswersAhead(NamedTuple):
    """The groups of answers, and the probability that the answer changes the decision."""

    groups: list[AnswerGroup]
    change: float


class _Draws(NamedTuple):
    """Answers in similar training rows, those drawn among them, and the predictions after these."""

    cells: np.ndarray  # (K, c)
    weights: np.ndarray  # (K,)
    drawn: np.ndarray  # (n,) positions in `cells`
    proba: np.ndarray  # (n, C)
    decision: np.ndarray  # (n,)


def answers_ahead(state: Acquisition, feature: int) -> AnswersAhead | None:
    """What acquiring `feature` may show of the one case of `state`; None where there are no rows to tell from.

    Answers are those of similar training rows, and the predictions after them are those that would be shown: this
    works for every model and every policy.
    """
    found = _similar_cells(state, feature)
    if found is None:
        return None
    draws = _drawn(state, feature, *found)
    now = int(state.beliefs.decisions(state.belief.proba)[0])
    groups = [group for group in _groups(state, feature, draws, now) if group.chance > 0]
    return AnswersAhead(groups, float(np.mean(draws.decision != now)))


def _similar_cells(state: Acquisition, feature: int) -> tuple[np.ndarray, np.ndarray] | None:
    """(K, c) cells of the feature in training rows that resemble what is known, and (K,) their weights."""
    predictor, completions = state.beliefs.predictor, state.belief.completions
    if completions is not None and hasattr(predictor, "pool_"):
        pool, index, weights = predictor.pool_, completions.index[0], completions.weights[0]
    else:
        rows = getattr(predictor, "training_rows_", None)
        if rows is None or not state.schema.tabular:
            return None
        rows = rows.take(slice(None, None, 1 + len(rows) // MOST_ROWS))
        near = Neighbors(rows, state.schema.is_category, N_NEIGHBORS, BANDWIDTH)
        (index,), (weights,) = near.nearest(near.squared_distances(state.rows))
        pool = rows.values
    cells = pool[index][:, state.schema.feature_columns[feature]]
    there = ~np.isnan(cells).all(axis=1) & (weights > 0)
    return (cells[there], weights[there] / weights[there].sum()) if there.any() else None


def _drawn(state: Acquisition, feature: int, cells: np.ndarray, weights: np.ndarray) -> _Draws:
    """Quantiles of the answers, and the prediction after each."""
    order = np.lexsort(cells.T[::-1])
    at = np.searchsorted(weights[order].cumsum(), (np.arange(N_DRAWS) + 0.5) / N_DRAWS)
    drawn = order[np.minimum(at, len(order) - 1)]
    distinct, which = np.unique(cells[drawn], axis=0, return_inverse=True)
    values = np.repeat(state.rows.values, len(distinct), axis=0)
    values[:, state.schema.feature_columns[feature]] = distinct
    proba = state.beliefs.proba(state.rows.with_values(values))[which.reshape(-1)]
    return _Draws(cells, weights, drawn, proba, state.beliefs.decisions(proba))


def _groups(state: Acquisition, feature: int, draws: _Draws, now: int) -> Iterator[AnswerGroup]:
    columns = state.schema.feature_columns[feature]
    split = _best_split(state, columns, draws, now) if state.schema.tabular and len(columns) <= MOST_COLUMNS else None
    if split is None:
        yield from _by_decision(state, draws, now)
        return
    k, answers = split
    column, cells = state.schema.columns[columns[k]], draws.cells[:, k]
    for given in answers:
        inside = given.holds(cells)
        values = None if given.codes is None else [column.show(code) for code in given.codes]
        if inside[draws.drawn].any():
            leads = _leads(state, draws, inside[draws.drawn], now)
            words = _words(column, given, cells, inside)
            yield AnswerGroup(
                words, float(draws.weights[inside].sum()), *leads, column.name, given.low, given.high, values
            )


def _words(column: Column, given: Answer, cells: np.ndarray, inside: np.ndarray) -> str:
    """A group of answers in words; of numbers that are codes, the values themselves."""
    if given.codes is not None:
        return listed_values(column, given.codes)
    distinct = np.unique(cells[~np.isnan(cells)])
    if len(distinct) <= MOST_CODES and np.all(distinct == np.round(distinct)):
        return ", ".join(number(value) for value in np.unique(cells[inside]))
    return interval_in_words(given.low, given.high)


def _by_decision(state: Acquisition, draws: _Draws, now: int) -> Iterator[AnswerGroup]:
    """Answers that cannot be told apart by one column, such as pieces of an image: those that lead to a decision."""
    for decision in np.unique(draws.decision):
        inside = draws.decision == decision
        words = f"one that points to {plain(state.beliefs.predictor.classes_[decision])}"
        yield AnswerGroup(words, float(inside.mean()), *_leads(state, draws, inside, now))


def _leads(state: Acquisition, draws: _Draws, inside: np.ndarray, now: int) -> tuple[Any, float, bool]:
    """The decision after the drawn answers `inside`, its probability, and whether it is another one than now."""
    mean = draws.proba[inside].mean(axis=0)
    decision = int(state.beliefs.decisions(mean))
    return plain(state.beliefs.predictor.classes_[decision]), float(mean[decision]), decision != now


def _best_split(state: Acquisition, columns: np.ndarray, draws: _Draws, now: int) -> tuple[int, list[Answer]] | None:
    """The column by whose values the drawn answers are told apart best, and two or three groups of its values."""
    strength = np.round(draws.proba[:, now] * STEPS).astype(int)
    drawn, best = draws.cells[draws.drawn], None
    for k, j in enumerate(columns):
        cells = drawn[:, k]
        if np.isnan(cells).any():
            continue
        is_category = state.schema.columns[j].is_category
        grouped = (group_categories if is_category else group_numbers)(cells, [draws.decision, strength], FEWEST)
        grouped = grouped if grouped.n_groups > 1 else _halves(cells, is_category)
        if best is None or grouped.gain > best[1].gain:
            best = k, grouped
    if best is None:
        return None
    edges = [None, *best[1].cuts, None]
    ranges = [Answer(low, high) for low, high in pairwise(edges)]
    return best[0], [Answer(codes=tuple(codes)) for codes in best[1].codes] or ranges


def _halves(cells: np.ndarray, is_category: bool) -> Grouping:
    """Two groups of answers that hardly differ in where they lead: the commonest category, numbers at their median."""
    distinct, counts = np.unique(cells, return_counts=True)
    if is_category:
        order = distinct[np.argsort(-counts, kind="stable")].astype(int).tolist()
        return Grouping(0.0, [], [part for part in (order[:1], sorted(order[1:])) if part])
    if len(distinct) < 2:
        return Grouping(0.0, [], [])
    middle = int(np.clip(np.searchsorted(distinct, np.median(cells)), 1, len(distinct) - 1))
    return Grouping(0.0, [neat_cut(distinct[middle - 1], distinct[middle])], [])
