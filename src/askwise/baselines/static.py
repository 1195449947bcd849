"""StaticCMI: one feature ranking for all cases, and a classifier trained on each subset alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from askwise.acquire.acquisition import Acquisition
from askwise.acquire.policies import Policy
from askwise.baselines.base import Baseline
from askwise.errors import InvalidInput
from askwise.networks import CellCoder
from askwise.parameters import Choice, Limits, Whole
from askwise.predict.base import SubsetPredictor
from askwise.predict.local import LocalPredictor
from askwise.prices import Prices
from askwise.randomness import seed_from
from askwise.rows import EncodedRows
from askwise.schema import Schema

CRITERIA = ("mi", "cmim", "jmi")


@dataclass(kw_only=True, eq=False, repr=False)
class StaticCMI(Baseline):
    r"""Features ranked once by conditional mutual information with the label; a decision tree per subset.

    The static baseline of the paper (Section 4.1; the tree of its Appendix G: 5 rows to split, 2 per leaf). The ranking
    is greedy: after the features :math:`S` the next one is

    .. math:: \arg\max_i \; I(x_i; y \mid x_S) / c_i

    Numbers are cut into `n_bins` bins of equal counts, a category is its own code and a group the leaf of a tree with
    `n_bins` leaves. With more than one feature in the condition the joint counts of a small table are mostly zero, so
    :math:`I(x_i; y \mid x_S)` is put together from conditions on one feature each (`criterion`). All information is
    estimated from counts over the rows that have the cells, less its bias by Miller and Madow.

    Parameters
    ----------
    criterion
        ``"cmim"``: the smallest :math:`I(x_i; y \mid x_s)` over s in S; ``"jmi"``: their mean; ``"mi"``: no condition,
        :math:`I(x_i; y)`.
    n_bins
        Bins of a number.
    classifier
        An unfitted classifier to use instead of the tree. Its input is numeric: scaled numbers, with the mean in place
        of missing cells, and one column per category.
    max_models
        Fitted classifiers to keep, one per subset.
    costs, groups, random_state, progress
        As in `Baseline`.

    Attributes
    ----------
    order_ : (M,) positions of the features, the most informative first

    Notes
    -----
    Deviations: 1. The paper does not say how conditional mutual information is estimated; bins, criterion and
    correction are ours. 2. Where a feature of the ranking is missing in a row, the next one is bought instead, and
    the tree is one trained on the features that the row has. 3. With prices the information is divided by the price at
    that point of the ranking.
    """

    limits: ClassVar[Limits] = {"criterion": Choice(CRITERIA), "n_bins": Whole(2), "max_models": Whole(1)}

    criterion: str = "cmim"
    n_bins: int = 3
    classifier: Any = None
    max_models: int = 1024

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        levels = discretized(rows, y, self.schema_, int(self.n_bins))
        self.order_ = greedy_order(levels, y, self.prices_, self.criterion)
        classifier = paper_tree() if self.classifier is None else self.classifier
        cells = DesignMatrix(rows, self.schema_)
        models = LocalPredictor(with_seed(classifier, rng), self.max_models).fit(cells(rows), self.classes_[y])
        return self._predictor(cells.asking(models)), FixedOrder(self.order_)


class FixedOrder(Policy):
    """The same order of purchase for all rows, whatever the prices: `order` (M,)."""

    def __init__(self, order: np.ndarray) -> None:
        self.order = order

    def scores(self, state: Acquisition) -> np.ndarray:
        wanted = np.empty(len(self.order))
        wanted[self.order] = np.arange(len(self.order), 0, -1)
        return np.where(state.mask, -np.inf, wanted)


class DesignMatrix:
    """Encoded rows as input of an ordinary classifier: scaled numbers, one column per category, nothing missing."""

    def __init__(self, rows: EncodedRows, schema: Schema) -> None:
        self._coder = CellCoder(rows, schema)
        n_columns = len(schema.columns)
        self.owner = self._coder.column[:-n_columns]  # (P,) column of the table that a cell comes from

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        """Encoded rows -> (n, P), missing cells at the mean of a number and without a category."""
        return self._coder(rows)[:, : len(self.owner)]

    def asking(self, models: SubsetPredictor) -> AskedModels:
        """The answers of a predictor that was trained on these matrices, from encoded rows."""
        return AskedModels(self, models)


@dataclass(frozen=True, eq=False)
class AskedModels:
    """The answers of `models`, trained on the cells of a `DesignMatrix`, for encoded rows."""

    cells: DesignMatrix
    models: SubsetPredictor

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        return self.models.predict_proba(self.cells(rows), rows.observed[:, self.cells.owner])


def paper_tree() -> DecisionTreeClassifier:
    """The decision tree of the paper's Appendix G."""
    return DecisionTreeClassifier(min_samples_split=5, min_samples_leaf=2)


def quadratic_logistic() -> Pipeline:
    """Logistic regression on numbers and their squares: fast, and bent enough for a few features."""
    return make_pipeline(FunctionTransformer(_with_squares), LogisticRegression(max_iter=500))


def strong_classifier() -> VotingClassifier:
    """`quadratic_logistic` and a random forest, averaged."""
    forest = RandomForestClassifier(100, min_samples_leaf=2)
    return VotingClassifier([("logistic", quadratic_logistic()), ("forest", forest)], voting="soft")


def _with_squares(cells: np.ndarray) -> np.ndarray:
    return np.hstack([cells, cells**2])


def with_seed(classifier: Any, rng: np.random.Generator) -> Any:
    """A clone whose unset random states, nested ones included, are drawn from `rng`."""
    if not hasattr(classifier, "fit") or isinstance(classifier, type):
        raise InvalidInput(f"classifier must be an unfitted scikit-learn classifier; got {classifier!r}.")
    own = clone(classifier)
    parameters = own.get_params()
    unset = [name for name in sorted(parameters) if name.endswith("random_state") and parameters[name] is None]
    return own.set_params(**{name: seed_from(rng) for name in unset})


def discretized(rows: EncodedRows, y: np.ndarray, schema: Schema, n_bins: int) -> np.ndarray:
    """(N, M) a whole number per feature and row, -1 where the row lacks the feature."""
    levels = np.full((len(rows), len(schema.features)), -1)
    for i, columns in enumerate(schema.feature_columns):
        there = np.flatnonzero(rows.observed[:, columns].any(axis=1))
        cells = rows.values[np.ix_(there, columns)]
        if len(columns) > 1:
            tree = DecisionTreeClassifier(max_leaf_nodes=n_bins, min_samples_leaf=2, random_state=0).fit(
                cells, y[there]
            )
            codes = tree.apply(cells)
        elif schema.is_category[columns[0]]:
            codes = cells[:, 0]
        else:
            codes = np.searchsorted(np.quantile(cells, np.linspace(0, 1, n_bins + 1)[1:-1]), cells[:, 0], side="right")
        levels[there, i] = np.unique(codes, return_inverse=True)[1].reshape(-1)
    return levels


def greedy_order(levels: np.ndarray, y: np.ndarray, prices: Prices, criterion: str) -> np.ndarray:
    """(M,) features by information per price, each given those before it."""
    n_features = levels.shape[1]
    alone = conditional_information(levels, y, np.zeros(len(y), dtype=int))
    had, order = np.zeros((1, n_features), dtype=bool), []
    given: list[np.ndarray] = []
    for _ in range(n_features):
        worth = alone if not given else np.min(given, axis=0) if criterion == "cmim" else np.mean(given, axis=0)
        price = np.maximum(prices.now(had)[0], np.finfo(float).tiny)
        # Features without information given the others are ranked by their information alone.
        ranked = np.where(had[0], -np.inf, np.where(worth > 0, worth, 1e-9 * alone) / price)
        chosen = int(ranked.argmax())
        order.append(chosen)
        had[0, chosen] = True
        if criterion != "mi":
            given.append(conditional_information(levels, y, levels[:, chosen]))
    return np.array(order)


def conditional_information(levels: np.ndarray, y: np.ndarray, given: np.ndarray) -> np.ndarray:
    r"""(M,) :math:`I(x_i; y \mid z)` in nats from counts, over the rows with both cells; at least 0.

    `levels` (N, M) and `given` (N,) are whole numbers, -1 = missing. Less the bias of counted entropies by Miller and
    Madow: half the number of occupied cells, signed as the entropies are, per row.
    """
    n_rows, n_features = levels.shape
    n_levels, n_classes = int(levels.max()) + 1, int(y.max()) + 1
    cells = (levels[:, :, None] == np.arange(n_levels)).reshape(n_rows, -1).astype(float)
    condition = (given[:, None] == np.arange(given.max() + 1)).astype(float)
    both = (condition[:, :, None] * (y[:, None, None] == np.arange(n_classes))).reshape(n_rows, -1)
    counts = (cells.T @ both).reshape(n_features, n_levels, -1, n_classes)  # (M, levels of x, of z, classes)
    total = np.maximum(counts.sum(axis=(1, 2, 3)), 1.0)

    def entropy(table: np.ndarray) -> np.ndarray:
        flat = table.reshape(n_features, -1)
        share = flat / total[:, None]
        occupied = (flat > 0).sum(axis=1)
        return -(share * np.log(np.where(flat > 0, share, 1.0))).sum(axis=1) + (occupied - 1) / (2 * total)

    found = entropy(counts.sum(axis=3)) + entropy(counts.sum(axis=1)) - entropy(counts) - entropy(counts.sum((1, 3)))
    return np.maximum(found, 0.0)
