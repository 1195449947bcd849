"""The flowchart of a policy: how to follow it, what was measured, and its forms as text, data and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.explain import drawing, words
from askwise.explain.tree import Answer, Leaf, Node, depth_of, leaves_of
from askwise.table.columns import plain
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema


@dataclass(frozen=True)
class Agreement:
    """What was measured on `n_rows` held-out rows.

    Attributes
    ----------
    policy, full
        Share of the rows on which the chart decides like the policy, and like the model with the full row.
    policy_full
        Share of the rows on which the policy decides like the model with the full row.
    price, policy_price, full_price
        Average price of the chart and of the policy, and the price of everything.
    by_class
        (class, rows, share on which the chart decides alike) for each class that the model decides for with the full
        row.
    """

    n_rows: int
    policy: float
    full: float
    policy_full: float
    price: float
    policy_price: float
    full_price: float
    by_class: Sequence[tuple[Any, int, float]] = ()


@dataclass(frozen=True, repr=False)
class Flowchart:
    """A policy as a tree of questions that can be printed; made by `FeatureAcquirer.flowchart`.

    Attributes
    ----------
    root
        The first `Question`, or the only `Leaf`.
    schema, prices, classes
        Columns and features, their prices, and the class labels.
    max_depth
        The most questions on a path that were allowed.
    n_grown
        Number of rows that the chart was grown on; the leaves count them.
    measured
        Its `Agreement` on the held-out rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> chart = selector.flowchart(X, max_depth=1)
    >>> print(chart.to_text().partition("Decides")[0])
    x3? (price 1)
    ├─•under 0.5 => 0 █████████░ 90%, 35 rows, price 1
    ├─ 0.5 to under 1.65 => 1 █████████░ 88%, 34 rows, price 1
    └─ 1.65 or more => 2 █████████░ 93%, 31 rows, price 1
    """

    root: Node
    schema: Schema
    prices: Prices
    classes: np.ndarray
    max_depth: int
    n_grown: int
    measured: Agreement

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_html_(self) -> str:
        return self.to_svg()

    def with_agreement(self, measured: Agreement) -> Flowchart:
        """The same chart with what was measured on other rows."""
        return replace(self, measured=measured)

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves from top to bottom, in the order of the numbers that `follow` returns."""
        return list(leaves_of(self.root))

    @property
    def depth(self) -> int:
        """Number of questions on the longest path."""
        return depth_of(self.root)

    def follow(self, X: Any) -> np.ndarray:
        """(n,) position in `leaves` of the leaf that each row of `X` reaches; NaN = the answer is unavailable."""
        return self.follow_encoded(self.schema.encode(X))[0]

    def decide(self, X: Any) -> np.ndarray:
        """(n,) class that the chart decides for on each row of `X`."""
        return np.asarray(self.classes[[self.leaves[i].decision for i in self.follow(X)]])

    def follow_encoded(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """Leaves (n,) that encoded rows reach, and the features acquired on the way (n, M)."""
        reached = np.full(len(rows), -1)
        asked = np.zeros((len(rows), len(self.schema.features)), dtype=bool)
        numbers = iter(range(len(self.leaves)))
        self._walk(self.root, rows, np.arange(len(rows)), reached, asked, numbers)
        return reached, asked & self.schema.any_column(rows.observed)

    def _walk(
        self,
        node: Node,
        rows: EncodedRows,
        at: np.ndarray,
        reached: np.ndarray,
        asked: np.ndarray,
        numbers: Iterator[int],
    ) -> None:
        """Write the leaves below `node` for the rows `at` into `reached`, and the questions into `asked`."""
        if isinstance(node, Leaf):
            reached[at] = next(numbers)
            return
        asked[at, node.feature] = True
        branch = node.branch_of(rows.values[at, node.column])
        for k, (_, child) in enumerate(node.branches):
            self._walk(child, rows, at[branch == k], reached, asked, numbers)

    def to_text(self) -> str:
        """The chart as plain text, for a terminal."""
        return words.text(self)

    def to_mermaid(self) -> str:
        """The chart in Mermaid syntax, for Markdown documents."""
        return words.mermaid(self)

    def to_svg(self) -> str:
        """The chart as a picture that needs nothing else, in the colors of a light or a dark page."""
        return drawing.svg(self)

    def to_html(self) -> str:
        """A page with the chart, self-contained, to be printed in landscape format."""
        return drawing.html(self)

    def to_dict(self) -> dict[str, Any]:
        """The chart as a JSON-ready dict."""
        return {
            "max_depth": self.max_depth,
            "rows_grown_on": self.n_grown,
            "held_out": {
                "rows": self.measured.n_rows,
                "agreement_with_policy": self.measured.policy,
                "agreement_with_full_row": self.measured.full,
                "policy_agreement_with_full_row": self.measured.policy_full,
                "average_price": self.measured.price,
                "policy_average_price": self.measured.policy_price,
                "price_of_everything": self.measured.full_price,
                "by_class": [
                    {"class": label, "rows": n_rows, "agreement_with_full_row": share}
                    for label, n_rows, share in self.measured.by_class
                ],
            },
            "classes": [plain(label) for label in self.classes],
            "tree": self._as_dict(self.root, iter(range(len(self.leaves)))),
        }

    def _as_dict(self, node: Node, numbers: Iterator[int]) -> dict[str, Any]:
        if isinstance(node, Leaf):
            return {
                "leaf": next(numbers),
                "decision": plain(self.classes[node.decision]),
                "probabilities": {str(label): p for label, p in zip(self.classes, node.proba, strict=True)},
                "rows": node.n_rows,
                "average_price": node.price,
            }
        return {
            "ask": self.schema.features[node.feature],
            "column": self.schema.columns[node.column].name,
            "price": node.price,
            "rows": node.n_rows,
            "answers": [
                {
                    **self._answer_as_dict(node.column, answer),
                    "usual": k == node.usual,
                    "then": self._as_dict(child, numbers),
                }
                for k, (answer, child) in enumerate(node.branches)
            ],
        }

    def _answer_as_dict(self, column: int, answer: Answer) -> dict[str, Any]:
        if answer.unavailable:
            return {"unavailable": True}
        if answer.codes is not None:
            return {"values": [self.schema.columns[column].show(code) for code in answer.codes]}
        return {"at_least": answer.low, "below": answer.high}
