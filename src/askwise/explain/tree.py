"""The parts of a flowchart: questions, the answers that lead to their branches, and leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Answer:
    """A set of answers to a question: numbers from `low` to below `high`, or categories (`codes`), or no value.

    Examples
    --------
    >>> Answer(low=1.0, high=2.0).holds(np.array([0.5, 1.0, 2.0])).tolist()
    [False, True, False]
    """

    low: float | None = None
    high: float | None = None
    codes: tuple[int, ...] | None = None
    unavailable: bool = False

    def holds(self, cells: np.ndarray) -> np.ndarray:
        """(n,) bool: the cells that are among the answers."""
        if self.unavailable:
            return np.isnan(cells)
        if self.codes is not None:
            return np.isin(cells, self.codes)
        low = -np.inf if self.low is None else self.low
        return (cells >= low) & (cells < (np.inf if self.high is None else self.high))

    def joined(self, other: Answer) -> Answer:
        """This set and the `other`, which for numbers must be the next range."""
        if self.codes is not None:
            return Answer(codes=tuple(sorted({*self.codes, *(other.codes or ())})))
        return Answer(self.low, other.high)


@dataclass(frozen=True)
class Leaf:
    """The end of a path: position of the class decided for, mean probabilities, number of rows, their mean price."""

    decision: int
    proba: tuple[float, ...]
    n_rows: int
    price: float


@dataclass(frozen=True)
class Question:
    """A feature to ask for, the column that decides which branch to follow, and the branches.

    `price` is what the feature costs there. `usual` is the branch to follow where no answer holds: that of most rows.
    """

    feature: int
    column: int
    price: float
    n_rows: int
    branches: tuple[tuple[Answer, Node], ...]
    usual: int

    def branch_of(self, cells: np.ndarray) -> np.ndarray:
        """(n,) position of the branch that each cell of the column belongs to."""
        chosen = np.full(len(cells), self.usual)
        for k, (answer, _) in enumerate(self.branches):
            chosen[answer.holds(cells)] = k
        return chosen


Node = Leaf | Question


def leaves_of(node: Node) -> Iterator[Leaf]:
    """The leaves below a node from top to bottom."""
    if isinstance(node, Leaf):
        yield node
    else:
        for _, child in node.branches:
            yield from leaves_of(child)


def depth_of(node: Node) -> int:
    """Number of questions on the longest path from a node to a leaf."""
    return 0 if isinstance(node, Leaf) else 1 + max(depth_of(child) for _, child in node.branches)
