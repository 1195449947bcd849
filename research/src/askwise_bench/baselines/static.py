"""StaticCMI: one feature ranking for all cases, and a classifier trained on each subset alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from askwise.acquisition import Acquisition
from askwise.errors import InvalidInput
from askwise.networks import CellCoder
from askwise.parameters import Choice, Whole, within
from askwise.policy.base import Policy
from askwise.policy.information import CRITERIA, discretized, greedy_order, rank_scores
from askwise.predict.base import SubsetPredictor
from askwise.predict.local import LocalPredictor
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise_bench.baselines.base import Baseline


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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import StaticCMI
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = StaticCMI(random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    criterion: str = within(Choice(CRITERIA), "cmim")
    n_bins: int = within(Whole(2), 3)
    classifier: Any = None
    max_models: int = within(Whole(1), 1024)

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
        return np.where(state.mask, -np.inf, rank_scores(self.order))


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
