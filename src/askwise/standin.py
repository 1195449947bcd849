"""A stand-in for "your validated model": a table, a split of its rows, a classifier trained on one part.

The demonstration starts here where nobody has brought a model. What comes out is what a user would bring: a fitted
scikit-learn `Pipeline` that takes the raw DataFrame, and rows that it has never seen, on which ways of asking are
compared and one case is followed.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from askwise.acquire import Policy, Random, Static, Trajectory
from askwise.acquire.policies import mutual_information_ranking
from askwise.datasets import Dataset
from askwise.errors import AskwiseError, InvalidInput
from askwise.schema import Schema
from askwise.selector import DynamicFeatureSelector

MODELS = ("mlp", "forest", "logistic", "tree", "xgboost")
TEST_SHARE = 0.3
MOST_TRAINING_ROWS = 1500
MOST_TEST_ROWS = 150
MOST_TEST_CELLS = 5500
FEWEST_ROWS = 20
RANDOM_ORDERS = 5
MOST_CLASSES = 50
MOST_NUMERIC_CLASSES = 20
MOST_CATEGORIES = 30
"""Columns that one category column may become; rarer categories share the last of them."""


@dataclass(frozen=True)
class StandIn:
    """A fitted pipeline, the rows it was trained on, and rows held out."""

    dataset: Dataset
    model: str
    estimator: Pipeline
    X_train: pd.DataFrame
    y_train: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    split: str


def train_stand_in(dataset: Dataset, model: str, seed: int) -> StandIn:
    """Split the rows of `dataset` and train `model` (one of `MODELS`) on one part."""
    train, test = split_rows(dataset, seed)
    estimator = make_model(model, seed)
    X_train, y_train = dataset.X.iloc[train], dataset.y[train]
    Schema.read(X_train).encode(dataset.X.iloc[test])  # what the selector would refuse is refused before training
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X_train, y_train)
    said = _split_in_words(dataset, len(train), len(test), seed)
    return StandIn(dataset, model, estimator, X_train, y_train, dataset.X.iloc[test], dataset.y[test], said)


@dataclass(frozen=True)
class Comparison:
    """How ways of asking do on held-out rows.

    Attributes
    ----------
    curves
        One row per budget: `budget`; the accuracy of `askwise`, of the `static` order and of `random` orders (mean
        over seeds, `random_low`, `random_high`); and the other measures of `evaluate` for askwise.
    full
        Accuracy of the model with everything known.
    priced
        Whether budgets are money; otherwise they count features.
    trajectory
        What askwise bought under the largest budget.
    """

    curves: pd.DataFrame
    full: float
    priced: bool
    trajectory: Trajectory


@dataclass(frozen=True)
class Story:
    """One case: `trace` as in ``Session.report()["trace"]``, and the true label where it is known."""

    title: str
    trace: list[dict[str, Any]]
    truth: Any = None


def compare(
    selector: DynamicFeatureSelector, rows: StandIn, budgets: Sequence[float], seed: int, say: Callable[[str], None]
) -> Comparison:
    """Accuracy by budget of askwise, of one static order and of random orders, all with the same predictions."""
    say("asking wisely")
    curves = selector.evaluate(rows.X_test, rows.y_test, budgets).rename(columns={"accuracy": "askwise"})
    say("asking in one static order")
    encoded = selector.schema_.encode(rows.X_train)
    relevance = mutual_information_ranking(encoded, rows.y_train, selector.schema_, seed)
    curves.insert(2, "static", _accuracy(selector, Static(relevance, selector.prices_), rows, budgets))
    runs = []
    for k in range(RANDOM_ORDERS):
        say(f"asking at random, {k + 1} of {RANDOM_ORDERS}")
        runs.append(_accuracy(selector, Random(seed + k), rows, budgets))
    curves.insert(3, "random", np.mean(runs, axis=0))
    curves.insert(4, "random_low", np.min(runs, axis=0))
    curves.insert(5, "random_high", np.max(runs, axis=0))
    say("following every case")
    full = selector.classes_[selector.predictor_.predict_full(rows.X_test).argmax(axis=1)]
    trajectory = selector.acquire(rows.X_test, budget=max(budgets))
    return Comparison(curves, float(np.mean(full == rows.y_test)), not selector.prices_.uniform, trajectory)


def tell_story(selector: DynamicFeatureSelector, rows: StandIn, trajectory: Trajectory) -> Story:
    """The held-out case whose prediction turned most towards the truth, step by step; the first where none did."""
    case = _turning_case(trajectory, np.searchsorted(selector.classes_, rows.y_test))
    cells = selector.schema_.encode(rows.X_test.iloc[[case]])[0]
    labels = [str(label) for label in selector.classes_]
    uncertainty = trajectory.uncertainty.as_dict()
    trace: list[dict[str, Any]] = []
    for t, feature in enumerate([-1, *trajectory.order[case]]):
        if t > 0 and feature < 0:
            break
        proba = trajectory.proba[case, t]
        trace.append(
            {
                "event": "answer" if t else "start",
                "feature": trajectory.features[feature] if t else None,
                "value": selector.schema_.show_feature(feature, cells) if t else None,
                "cost": float(trajectory.costs[case, t - 1]) if t else 0.0,
                "prediction": _plain(selector.classes_[proba.argmax()]),
                "probabilities": dict(zip(labels, map(float, proba), strict=True)),
                "uncertainty": {name: _finite(values[case, t]) for name, values in uncertainty.items()},
            }
        )
    return Story(f"Held-out case {rows.X_test.index[case]}", trace, _plain(rows.y_test[case]))


def make_model(name: str, seed: int) -> Pipeline:
    """An unfitted pipeline for a raw DataFrame with numbers, categories and missing cells."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    categories = make_pipeline(
        FunctionTransformer(_as_objects),
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", max_categories=MOST_CATEGORIES),
    )
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, _classifier(name, seed))


def split_rows(dataset: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers for training and for testing: by class, or by `row_groups` where rows belong together."""
    rng = np.random.default_rng(seed)
    if dataset.row_groups is None:
        train, test = _split_by_class(dataset.y, rng)
    else:
        train, test = _split_by_group(dataset.row_groups, rng)
    width = dataset.X.shape[1] + dataset.X.select_dtypes(exclude="number").shape[1]  # text takes twice as long
    most = min(MOST_TEST_ROWS, MOST_TEST_CELLS // width + 1)
    return np.sort(train[:MOST_TRAINING_ROWS]), np.sort(test[:most])


def read_csv(path: Path, target: str, drop: Sequence[str] = ()) -> Dataset:
    """One's own table as a `Dataset`; whatever cannot be used is refused by name, nothing is left out unasked."""
    table = _read_file(path)
    for column in (target, *drop):
        if column not in table.columns:
            raise InvalidInput(f"{path} has no column {column!r}. Its columns are: {_listed(table.columns)}.")
    if target in drop:
        raise InvalidInput(f"--drop names {target!r}, which is the target; leave it out of --drop.")
    X = table.drop(columns=[target, *drop])
    if not X.shape[1]:
        raise InvalidInput(f"{path} has no columns besides the target {target!r}; features to ask for are needed.")
    labels = _checked_target(table[target], path)
    for column in X.columns:
        _check_feature(X[column], path)
    text = f"{path.name}: {len(X):,} rows, {X.shape[1]} features. Label: {target}."
    return Dataset(path.stem, X, labels, None, None, text)


def row_counters(X: pd.DataFrame) -> list[str]:
    """Columns that number the rows (1, 2, 3, ...): most often an id, which tells the label of a sorted table."""
    whole = X.select_dtypes("integer")
    return [str(name) for name in whole.columns if len(X) > 1 and (whole[name].diff().iloc[1:] == 1).all()]


class IntegerLabels(ClassifierMixin, BaseEstimator):
    """A classifier that wants labels 0, 1, ... (XGBoost), for labels of any kind."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.classifier_ = clone(self.classifier).fit(X, codes)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self.classifier_.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _accuracy(selector: DynamicFeatureSelector, policy: Policy, rows: StandIn, budgets: Sequence[float]) -> np.ndarray:
    other = copy.copy(selector)  # the same fitted predictor, another policy
    other.policy_ = policy
    return other.evaluate(rows.X_test, rows.y_test, budgets)["accuracy"].to_numpy()


def _turning_case(trajectory: Trajectory, truth: np.ndarray) -> int:
    """Among cases that end right after having been wrong: the one with the largest rise in the true class."""
    predicted = trajectory.proba.argmax(axis=2)
    chance = np.take_along_axis(trajectory.proba, truth[:, None, None], axis=2)[:, :, 0]  # (n, T + 1)
    turned = (predicted[:, -1] == truth) & (predicted[:, 1:] != truth[:, None]).any(axis=1)
    return int(np.where(turned, chance[:, -1] - chance.min(axis=1), 0.0).argmax())


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _classifier(name: str, seed: int) -> Any:
    if name == "mlp":
        return MLPClassifier((100,), max_iter=200, random_state=seed)
    if name == "forest":
        return RandomForestClassifier(100, random_state=seed)
    if name == "logistic":
        return LogisticRegression(max_iter=1000)
    if name == "tree":
        return DecisionTreeClassifier(min_samples_split=5, min_samples_leaf=2, random_state=seed)
    if name == "xgboost":
        return IntegerLabels(_xgboost()(n_estimators=50, random_state=seed, n_jobs=1))
    raise InvalidInput(f"model must be one of {', '.join(MODELS)}; got {name!r}.")


def _xgboost() -> Any:
    try:
        from xgboost import XGBClassifier
    except ImportError:
        raise AskwiseError(
            'The model xgboost needs a package that is not installed. Install it with: pip install "askwise[boosting]"'
        ) from None
    return XGBClassifier


def _as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Text, booleans and categories alike as Python objects, missing as NaN: the one form every imputer takes."""
    objects = frame.astype(object)
    return objects.where(frame.notna(), np.nan)


def _split_by_class(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A share of each class for testing; a class of one row is trained on."""
    test = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        test[rows[: round(len(rows) * TEST_SHARE)]] = True
    order = rng.permutation(len(y))
    # The first row of each class leads, so that a cut to the most training rows keeps every class.
    train = order[~test[order]]
    first = np.unique(y[train], return_index=True)[1]
    return np.concatenate([train[first], np.delete(train, first)]), order[test[order]]


def _split_by_group(groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    distinct = rng.permutation(np.unique(groups))
    testing = np.isin(groups, distinct[: round(len(distinct) * TEST_SHARE)])
    order = rng.permutation(len(groups))
    return order[~testing[order]], order[testing[order]]


def _split_in_words(dataset: Dataset, n_train: int, n_test: int, seed: int) -> str:
    how = "by class" if dataset.row_groups is None else "by row group, so that rows that belong together stay together"
    said = f"{n_train:,} rows to train, {n_test:,} held out ({how}, seed {seed})"
    left = len(dataset.y) - n_train - n_test
    return f"{said}; {left:,} of {len(dataset.y):,} rows are not used, to keep this quick" if left else said


def _read_file(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, low_memory=False)
    except FileNotFoundError:
        raise InvalidInput(f"--csv: there is no file {path}. Give the path of a comma-separated table.") from None
    except pd.errors.EmptyDataError:
        raise InvalidInput(f"{path} is empty; a line of column names and one line per case are needed.") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"{path} cannot be read as a comma-separated table in UTF-8: {reason}. Save it as one."
        ) from None
    for separator in (";", "\t"):
        if table.shape[1] == 1 and separator in str(table.columns[0]):
            raise InvalidInput(
                f"{path} seems to be separated by {separator!r}; save it with commas between its columns."
            )
    if len(table) < FEWEST_ROWS:
        raise InvalidInput(
            f"{path} has {len(table)} rows; at least {FEWEST_ROWS} are needed to train a model and to test it."
        )
    return table


def _checked_target(labels: pd.Series, path: Path) -> np.ndarray:
    name = labels.name
    missing = int(labels.isna().sum())
    if missing:
        raise InvalidInput(
            f"The target {name!r} is missing in {missing} of {len(labels)} rows of {path} (the first is row "
            f"{int(labels.isna().to_numpy().argmax()) + 1}). Fill in the label, or remove those rows from the file."
        )
    distinct = labels.nunique()
    if distinct == 1:
        raise InvalidInput(
            f"The target {name!r} of {path} is {labels.iloc[0]!r} in every row; two or more classes are needed."
        )
    numeric = pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels)
    if distinct > min(MOST_NUMERIC_CLASSES if numeric else MOST_CLASSES, len(labels) // 2):
        what = "a number to predict (regression), which is not supported" if numeric else "a name or an id, not a class"
        raise InvalidInput(
            f"The target {name!r} of {path} has {distinct} different values in {len(labels)} rows: {what}. Choose "
            "another column, or turn it into a few classes such as low, medium and high."
        )
    return labels.to_numpy() if numeric else labels.astype(str).to_numpy(dtype=str)


def _check_feature(column: pd.Series, path: Path) -> None:
    present = column.dropna()
    if present.empty:
        raise InvalidInput(f"Column {column.name!r} of {path} is empty; leave it out with --drop {column.name!r}.")
    text = not pd.api.types.is_numeric_dtype(column)
    if text and present.nunique() > max(10, len(present) // 2):
        raise InvalidInput(
            f"Column {column.name!r} of {path} is text with {present.nunique()} different values in {len(present)} "
            f"rows (such as {str(present.iloc[0])[:40]!r}): an id, a name or a date, of which nothing can be learnt. "
            f"Leave it out with --drop {column.name!r}, or turn a date into a number such as days."
        )


def _listed(names: Sequence[Any] | pd.Index, most: int = 20) -> str:
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
