"""Growing a flowchart: each node asks what the policy would ask for most of the rows that arrive there.

The answers are grouped where what comes next changes: the next question, or the decision that the policy reaches in
the end. What is known already, because it is free or came with a group, can be branched on later. A question is left
out where the policy decides alike on all rows that arrive, or where no grouping of its answers matters, so the chart
can be cheaper than the policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from askwise.acquisition import Acquisition, purchases
from askwise.explain.cuts import Grouping, group_categories, group_numbers
from askwise.explain.tree import Answer, Leaf, Node, Question
from askwise.policy.base import Policy
from askwise.stopping.rules import Stopping

FEWEST_IN_A_BRANCH = 5
SHARE_IN_A_BRANCH = 0.02
"""A branch has at least so many of the rows that the chart is grown on."""

MOST_TRIED = 4
"""Features whose answers may turn out not to matter before a node becomes a leaf."""


class AtMost(Stopping):
    """Stop after `most` features that are not free, or as soon as the rule `stop` is met."""

    def __init__(self, most: int, stop: Stopping | None = None) -> None:
        self.most = most
        self.stop = stop

    def stops(self, state: Acquisition) -> np.ndarray:
        bought = (state.mask & (state.prices.weighed.costs > 0)).sum(axis=1)
        full = np.asarray(bought >= self.most)
        return full if self.stop is None or full.all() else full | self.stop.stops(state)


@dataclass(frozen=True)
class Ends:
    """Where the policy itself ends on n rows: probabilities (n, C), decisions (n,), and prices paid (n,)."""

    proba: np.ndarray
    decision: np.ndarray
    spent: np.ndarray

    @classmethod
    def of(cls, state: Acquisition, truth: np.ndarray, policy: Policy, stop: Stopping) -> Ends:
        """Run the policy on all rows of `state`, whose true cells are `truth` (n, D)."""
        parts = []
        for part in _blocks(state):
            episode, cells = state.take(part), truth[part]
            spent = np.sum([paid[:, 0] for _, paid in purchases(episode, cells, policy, stop)], axis=0) + np.zeros(
                len(cells)
            )
            parts.append((episode.belief.proba, episode.beliefs.decisions(episode.belief.proba), spent))
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


@dataclass(frozen=True)
class Arrived:
    """The rows that arrive at a node: their positions, what is known of them, and what the policy would do next."""

    rows: np.ndarray
    state: Acquisition
    scores: np.ndarray  # (n, M), -inf for what cannot be bought, inf for what is free
    stopped: np.ndarray  # (n,) bool
    used: frozenset[int] = frozenset()  # columns that the path has branched on

    @property
    def choice(self) -> np.ndarray:
        """(n,) the feature that the policy would acquire next; -1 = it stops."""
        none = self.stopped | np.isneginf(self.scores.max(axis=1))
        return np.where(none, -1, self.scores.argmax(axis=1))

    def take(self, which: np.ndarray) -> Arrived:
        """Some of the rows, by a boolean mask, with the smallest budget left among them: a path has one price."""
        state = self.state.take(which)
        state.remaining = np.tile(state.remaining.min(axis=0, initial=np.inf), (len(state.mask), 1))
        scores = np.where(state.within(), self.scores[which], -np.inf)
        return replace(self, rows=self.rows[which], state=state, scores=scores, stopped=self.stopped[which])

    def without(self, feature: int) -> Arrived:
        """The same rows with `feature` not to be asked."""
        state, scores = self.state.copy(), self.scores.copy()
        state.available[:, feature] = False
        scores[:, feature] = -np.inf
        return replace(self, state=state, scores=scores)

    def unused(self) -> list[int]:
        """Known columns that the path has not branched on: of free features, and of groups."""
        return [j for j in np.flatnonzero(self.state.rows.observed.any(axis=0)).tolist() if j not in self.used]


@dataclass(frozen=True)
class Split:
    """A way to go on: the rows after the answer, the column to branch on, its groups, and the price of the feature."""

    after: Arrived
    column: int
    grouping: Grouping
    price: float


class Grower:
    """Grows the chart of a policy.

    Parameters
    ----------
    start
        The state of the rows with nothing known.
    truth
        (n, D) their true cells.
    policy, stop
        The policy, and the rule by which it stops.
    """

    def __init__(self, start: Acquisition, truth: np.ndarray, policy: Policy, stop: Stopping) -> None:
        self.start = start
        self.truth = truth
        self.policy = policy
        self.stop = stop
        self.ends = Ends.of(start, truth, policy, stop)
        self.fewest = max(FEWEST_IN_A_BRANCH, math.ceil(SHARE_IN_A_BRANCH * len(truth)))

    def grow(self, max_depth: int) -> Node:
        """The chart with at most `max_depth` questions on a path."""
        state = self.start.take(slice(None))
        for feature in np.flatnonzero(state.prices.weighed.costs == 0):
            asked = state.available[:, feature] & ~state.barred()[:, feature]
            state.receive(np.where(asked, feature, -1), self.truth)
        return self._node(self._arrive(np.arange(len(self.truth)), state), max_depth)

    def _arrive(self, rows: np.ndarray, state: Acquisition, used: frozenset[int] = frozenset()) -> Arrived:
        """What the policy would do next with rows in `state`."""
        scores, stopped = [], []
        for block in _blocks(state):
            part = state.take(block)
            buyable = part.buyable()
            free = buyable & (part.weighed_now == 0)
            scores.append(np.where(free, np.inf, part.choose(self.policy, buyable)[1]))
            stopped.append(self.stop.stops(part) & ~part.required(buyable).any(axis=1))
        scored = np.where(state.barred().any(axis=0), -np.inf, np.concatenate(scores))  # all are asked, or none is
        return Arrived(rows, state, scored, np.concatenate(stopped), used)

    def _node(self, here: Arrived, depth: int) -> Node:
        for _ in range(MOST_TRIED):
            if depth == 0 or len(np.unique(self.ends.decision[here.rows])) == 1 or (here.choice < 0).mean() >= 0.5:
                break
            feature = int(np.bincount(here.choice[here.choice >= 0]).argmax())
            after = self._ask(here, feature)
            price = float(np.median(here.state.prices.now(here.state.mask)[:, feature]))
            columns = here.state.schema.feature_columns[feature].tolist()
            splits = [*self._splits(here, here.unused(), 0.0, depth), *self._splits(after, columns, price, depth)]
            best = max(splits, key=lambda split: split.grouping.gain)  # what is known already comes first in a tie
            if best.grouping.n_groups > 1:
                return self._question(here, best, depth)
            here = after if price == 0 else here.without(feature)
        return self._leaf(here)

    def _ask(self, here: Arrived, feature: int) -> Arrived:
        """The same rows after `feature` is acquired wherever it is available."""
        state = here.state.take(slice(None))
        state.receive(np.where(state.available[:, feature], feature, -1), self.truth[here.rows])
        partly_known = len(state.schema.feature_columns[feature]) > 1  # then the branch without a value has paid, too
        asked = state.mask[:, [feature]] | partly_known
        state.remaining = np.where(asked, state.remaining.min(axis=0), state.remaining)
        return self._arrive(here.rows, state, here.used)

    def _splits(self, after: Arrived, columns: list[int], price: float, depth: int) -> list[Split]:
        """For each of the `columns` the grouping of its values that separates best what comes next."""
        next_feature = after.choice if depth > 1 else np.full(len(after.rows), -1)
        labels = [next_feature, self.ends.decision[after.rows]]
        found = []
        for column in columns:
            cells = after.state.rows.values[:, column]
            there = ~np.isnan(cells)
            group = group_categories if after.state.schema.is_category[column] else group_numbers
            grouping = group(cells[there], [label[there] for label in labels], self.fewest)
            found.append(Split(after, column, grouping, price))
        return found

    def _question(self, here: Arrived, split: Split, depth: int) -> Node:
        after, column = replace(split.after, used=here.used | {split.column}), split.column
        cells = after.state.rows.values[:, column]
        answers = _answers(split.grouping)
        if np.isnan(cells).sum() >= self.fewest:
            answers.append(Answer(unavailable=True))
        rows_of, usual = _routed(answers, cells)
        branches = [
            (answer, self._node(after.take(rows), depth - 1)) for answer, rows in zip(answers, rows_of, strict=True)
        ]
        merged, usual = _merged(branches, usual)
        if len(merged) == 1:  # no answer changes the decision
            return self._leaf(here)
        feature = int(here.state.schema.owner[column])
        return Question(feature, column, split.price, len(here.rows), tuple(merged), usual)

    def _leaf(self, here: Arrived) -> Leaf:
        """The end of a path: the average of the probabilities that the policy reaches on its rows."""
        proba = self.ends.proba[here.rows].mean(axis=0)
        decision = int(here.state.beliefs.decisions(proba[None])[0])
        price = float(here.state.prices.total(here.state.mask).mean())
        return Leaf(decision, tuple(proba.tolist()), len(here.rows), price)


def _answers(grouping: Grouping) -> list[Answer]:
    if grouping.codes:
        return [Answer(codes=tuple(group)) for group in grouping.codes]
    ends = [None, *grouping.cuts, None]
    return [Answer(low, high) for low, high in pairwise(ends)]


def _routed(answers: list[Answer], cells: np.ndarray) -> tuple[np.ndarray, int]:
    """(answers, n) bool: the rows of each answer; and the answer of most rows, where those without any go, too."""
    held = np.array([answer.holds(cells) for answer in answers])
    n_rows = np.where([answer.unavailable for answer in answers], -1, held.sum(axis=1))
    usual = int(n_rows.argmax())
    held[usual] |= ~held.any(axis=0)
    return held, usual


def _merged(branches: list[tuple[Answer, Node]], usual: int) -> tuple[list[tuple[Answer, Node]], int]:
    """Leaves with the same decision as one, of ranges only neighbors; and where the `usual` branch then is."""
    merged: list[tuple[Answer, Node]] = []
    place = []
    for answer, node in branches:
        first = 0 if answer.codes is not None else max(len(merged) - 1, 0)
        same = [k for k in range(first, len(merged)) if _alike(merged[k][1], node) and not answer.unavailable]
        if same:
            before, leaf = merged[same[0]]
            merged[same[0]] = (before.joined(answer), _joined(leaf, node))
        else:
            merged.append((answer, node))
        place.append(same[0] if same else len(merged) - 1)
    if len(merged) == 2 and merged[1][0].unavailable and _alike(merged[0][1], merged[1][1]):
        return merged[:1], 0
    return merged, place[usual]


def _alike(one: Node, other: Node) -> bool:
    return isinstance(one, Leaf) and isinstance(other, Leaf) and one.decision == other.decision


def _joined(one: Node, other: Node) -> Leaf:
    assert isinstance(one, Leaf)
    assert isinstance(other, Leaf)
    n = one.n_rows + other.n_rows
    share = one.n_rows / n
    proba = tuple(share * p + (1 - share) * q for p, q in zip(one.proba, other.proba, strict=True))
    return Leaf(one.decision, proba, n, share * one.price + (1 - share) * other.price)


def _blocks(state: Acquisition) -> Iterator[slice]:
    """Blocks of rows to process together, so that their beliefs fit into memory."""
    step = state.beliefs.rows_at_once
    yield from (slice(start, start + step) for start in range(0, len(state.rows), step))
