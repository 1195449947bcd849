"""Reference models: the classifiers that demo, ask and bench train in place of a user's validated model.

The result is like a user's own: a fitted scikit-learn `Pipeline` that takes the raw DataFrame, and rows that
it has never seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from askwise.datasets import Dataset
from askwise.datasets.dataset import split_rows
from askwise.errors import AskwiseError, InvalidInput
from askwise.progress import interruptible
from askwise.table.schema import read_table
from askwise.trees import FuzzyTreeClassifier, SubsetCartClassifier
from askwise.trees.growth import ProbableClassifier

MODELS = ("mlp", "forest", "logistic", "tree", "subset-tree", "fuzzy-tree", "xgboost")
TEST_SHARE = 0.3
SMALL_TABLE_ROWS = 2000
SMALL_TABLE_CELLS = 40_000
"""All rows of a table of at most this size are used."""

MOST_TRAINING_ROWS = 1500
MOST_TEST_ROWS = 150
MOST_TEST_CELLS = 5500
N_SUBSETS = 10
"""Subsets per node of a tree that is grown for them."""

DENSE_ONLY = ("boosting", "subset-tree", "fuzzy-tree", "subset-fuzzy-tree", "ferl")
MOST_CATEGORIES = 30
"""Maximum number of one-hot columns of a category; rarer categories share the last one."""


@dataclass(frozen=True)
class ReferenceModel:
    """A fitted pipeline, the rows it was trained on, and rows held out."""

    dataset: Dataset
    model: str
    estimator: Pipeline
    X_train: pd.DataFrame
    y_train: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    split: str


def train_reference_model(dataset: Dataset, model: str, seed: int, *, limited: bool = True) -> ReferenceModel:
    """Split the rows of `dataset` and train `model` (one of `MODELS`) on one part.

    `limited` caps the size of both parts to keep a demo quick; False uses all rows.
    """
    most = _most_rows(dataset) if limited else {}
    train, test = map(np.sort, split_rows(dataset, seed, test_share=TEST_SHARE, **most))
    estimator = make_model(model, seed)
    X_train, y_train = dataset.X.iloc[train], dataset.y[train]
    read_table(dataset.X)  # so that errors name the row of the whole table
    read_table(X_train)[0].encode(dataset.X.iloc[test])  # raise the selector's errors before training
    with warnings.catch_warnings(), interruptible():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X_train, y_train)
    said = _split_in_words(dataset, len(train), len(test), seed)
    return ReferenceModel(dataset, model, estimator, X_train, y_train, dataset.X.iloc[test], dataset.y[test], said)


def make_model(name: str, seed: int) -> Pipeline:
    """An unfitted pipeline for a raw DataFrame with categories and NaN.

    By name: one of `MODELS`, boosting (of `askwise fit` alone), subset-fuzzy-tree or ferl (of the benchmarks alone).
    """
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    categories = make_pipeline(
        FunctionTransformer(_as_objects),
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", max_categories=MOST_CATEGORIES),
    )
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0 if name in DENSE_ONLY else 0.3,
    )
    return make_pipeline(columns, _classifier(name, seed))


class IntegerLabels(ProbableClassifier):
    """Adapts a classifier that needs labels 0, 1, ... (XGBoost) to labels of any kind."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.classifier_ = clone(self.classifier).fit(X, codes)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self.classifier_.predict_proba(X))


def _classifier(name: str, seed: int) -> Any:
    if name == "mlp":
        return MLPClassifier((100,), max_iter=200, random_state=seed)
    if name == "forest":
        return RandomForestClassifier(100, min_samples_split=5, min_samples_leaf=2, random_state=seed)
    if name == "boosting":
        return HistGradientBoostingClassifier(max_iter=100, min_samples_leaf=5, random_state=seed)
    if name == "logistic":
        return LogisticRegression(max_iter=1000)
    if name == "tree":
        return DecisionTreeClassifier(min_samples_split=5, min_samples_leaf=2, random_state=seed)
    if name == "subset-tree":
        return SubsetCartClassifier(random_state=seed)
    if name in ("fuzzy-tree", "subset-fuzzy-tree"):
        return FuzzyTreeClassifier(n_subsets=N_SUBSETS if name == "subset-fuzzy-tree" else 0, random_state=seed)
    if name == "ferl":
        return _imported("ex_fuzzy", "FERL", "ferl", "ex-fuzzy")()
    if name == "xgboost":
        boosted = _imported("xgboost", "XGBClassifier", "xgboost", '"askwise[boosting]"')
        return IntegerLabels(boosted(n_estimators=50, random_state=seed, n_jobs=1))
    raise InvalidInput(f"model must be one of {', '.join(MODELS)}; got {name!r}.")


def _imported(module: str, name: str, model: str, package: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except ImportError:
        raise AskwiseError(
            f"The model {model} needs a package that is not installed. Install it with: pip install {package}"
        ) from None


def _as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Text, booleans and categories alike as Python objects, missing as NaN, which every imputer accepts."""
    objects = frame.astype(object)
    return objects.where(frame.notna(), np.nan)


def _most_rows(dataset: Dataset) -> dict[str, int]:
    """The number of rows that a demo can process without a long wait."""
    width = dataset.X.shape[1] + dataset.X.select_dtypes(exclude="number").shape[1]  # text takes twice as long
    if len(dataset.y) <= SMALL_TABLE_ROWS and len(dataset.y) * width <= SMALL_TABLE_CELLS:
        return {}
    return {"most_training": MOST_TRAINING_ROWS, "most_test": min(MOST_TEST_ROWS, MOST_TEST_CELLS // width + 1)}


def _split_in_words(dataset: Dataset, n_train: int, n_test: int, seed: int) -> str:
    how = "by class" if dataset.row_groups is None else "by row group, so that rows that belong together stay together"
    said = f"{n_train:,} rows to train, {n_test:,} held out ({how}, seed {seed})"
    left = len(dataset.y) - n_train - n_test
    return f"{said}; {left:,} of {len(dataset.y):,} rows are not used, to keep this quick" if left else said
