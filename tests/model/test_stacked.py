"""Several models asked at once answer as one after the other, on rows that are decoded and prepared once."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.made import few_numbers as data
from tests.made import fitted, network

from askwise.epistemic import AuxiliaryEnsemble, MCDropout
from askwise.errors import InvalidInput
from askwise.model.stacked import StackedModels, stack
from askwise.model.wrapped import FrozenModel
from askwise.predict import ConditionalPredictor, wrap
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema, read_table

VALUES = np.random.default_rng(3).normal(size=(150, 4)) * 3  # more rows than are handled at once
ROWS = EncodedRows(VALUES)


def several(make, k=3, n_classes=3):
    X, y = data(n_classes=n_classes)
    rng = np.random.default_rng(1)
    models = []
    for seed in range(k):
        rows = rng.integers(len(X), size=len(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(make(seed).fit(X[rows], y[rows]))
    return models


def as_models(estimators):
    schema, _ = read_table(data()[0])
    return [FrozenModel(estimator, schema) for estimator in estimators]


def side_by_side(estimators, table):
    return np.hstack([estimator.predict_proba(table) for estimator in estimators])


class FrozenLater:
    """Fit, then freeze."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        return FrozenEstimator(self.estimator.fit(X, y))


class Shy(LogisticRegression):
    """A subclass may answer as it likes."""

    def predict_proba(self, X):
        return 0.5 * super().predict_proba(X) + 0.25


ACTIVATIONS = ("relu", "tanh", "logistic", "identity")
ALIKE: dict[str, Any] = {
    **{name: lambda seed, name=name: network(seed, activation=name) for name in ACTIVATIONS},
    "two hidden layers": lambda seed: network(seed, (5, 4)),
    "regression": lambda seed: LogisticRegression(),
    "frozen": lambda seed: FrozenLater(LogisticRegression()),
    "forest": lambda seed: RandomForestClassifier(7, random_state=seed),
    "extra trees": lambda seed: ExtraTreesClassifier(7, max_depth=4, random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(max_iter=3),
    "two preparations": lambda seed: make_pipeline(StandardScaler(), LogisticRegression()),
}


def test_models_of_one_kind_answer_as_one_after_the_other():
    for n_classes in (2, 3):
        for name, make in ALIKE.items():
            estimators = several(make, n_classes=n_classes)
            stacked = stack(as_models(estimators))
            found = stacked(ROWS)
            assert found.shape == (150, 3 * n_classes) == (150, stacked.n_outputs)
            assert_allclose(found, side_by_side(estimators, VALUES), rtol=0, atol=1e-12, err_msg=name)
            assert stacked(ROWS.take(slice(0))).shape == (0, 3 * n_classes)
            assert_allclose(pickle.loads(pickle.dumps(stacked))(ROWS), found, rtol=0, atol=1e-15)


def test_models_of_all_kinds_keep_their_order():
    """Those that can be asked together need not stand together."""
    model, net = fitted(make_pipeline(StandardScaler(), LogisticRegression())), network
    X, y = data()
    behind = make_pipeline(model[0], RandomForestClassifier(3, random_state=0).fit(model[0].transform(X), y))
    estimators = [
        model,
        *several(net, 2),
        *several(lambda seed: LogisticRegression(), 1),
        behind,
        wrap(lambda X: np.tile([0.2, 0.3, 0.5], (len(X), 1)), [0, 1, 2]),
        *several(lambda seed: net(seed, (9,)), 1),
        *several(lambda seed: net(seed, activation="tanh"), 1),
        *several(net, 1),
        *several(lambda seed: RandomForestClassifier(3, random_state=seed), 1),
    ]
    models = as_models(estimators)
    expected = side_by_side(estimators, VALUES)
    assert_allclose(stack(models)(ROWS), expected, rtol=0, atol=1e-12)
    nested = StackedModels([models[0], stack(models[1:4]), stack(models[4:5]), *models[5:]])
    assert_allclose(nested(ROWS), expected, rtol=0, atol=1e-12)


def test_a_model_alone_is_itself():
    model = as_models(several(lambda seed: LogisticRegression(), 1))[0]
    assert stack([model]) is model


def test_a_subclass_is_asked_itself():
    estimators = several(lambda seed: Shy(), n_classes=2)
    assert_allclose(stack(as_models(estimators))(ROWS), side_by_side(estimators, VALUES), rtol=0, atol=1e-12)


def test_forests_take_missing_cells_where_scikit_learn_does_and_refuse_what_it_refuses():
    X, y = data()
    holes = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)
    values = np.where(np.random.default_rng(4).random(VALUES.shape) < 0.2, np.nan, VALUES)
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        for table in (X, holes):
            forests = [kind(5, random_state=seed).fit(table, y) for seed in range(2)]
            stacked = stack(as_models(forests))
            assert_allclose(stacked(EncodedRows(values)), side_by_side(forests, values), rtol=0, atol=1e-12)
            far = VALUES.copy()
            far[3, 1] = 1e39  # too large for the trees' single precision
            with pytest.raises(InvalidInput, match=rf"{kind.__name__} cannot take these rows .*too large"):
                stacked(EncodedRows(far))


class Counting(StandardScaler):
    calls = 0

    def transform(self, X, copy=None):
        Counting.calls += 1
        return super().transform(X, copy)


def test_rows_are_decoded_and_prepared_once_for_the_model_and_its_members(monkeypatch):
    decoded, decode = [], Schema.decode

    def counted(*args, **options):
        decoded.append(1)
        return decode(*args, **options)

    monkeypatch.setattr(Schema, "decode", counted)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc")).assign(city=rng.choice(["x", "y"], 120))
    y = (table["a"] > 0).astype(int).to_numpy()
    prepare = ColumnTransformer([("numbers", Counting(), list("abc")), ("city", OneHotEncoder(), ["city"])])
    for last in (LogisticRegression(), RandomForestClassifier(5, random_state=0), DecisionTreeClassifier(max_depth=2)):
        model = make_pipeline(prepare, last).fit(table, y)
        predictor = ConditionalPredictor(model, random_state=0).fit(table, y)
        around = AuxiliaryEnsemble(3, random_state=0).fit(predictor)
        joint = around.joined(predictor).model_
        Counting.calls = 0
        decoded.clear()
        found = joint(predictor.training_rows_)
        assert Counting.calls == len(decoded) == 1
        assert_allclose(found, side_by_side([model, *around.estimators_], table), rtol=0, atol=1e-12)


def test_the_module_and_its_members_under_dropout_share_the_table():
    X, y = data()
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.4), torch.nn.Linear(8, 3))
    predictor = ConditionalPredictor(net, random_state=0).fit(X, y)
    around = MCDropout(3, random_state=0).fit(predictor)
    joint = around.joined(predictor).model_
    model, members = joint.models
    assert_allclose(joint(ROWS), np.hstack([model(ROWS), members(ROWS)]), rtol=0, atol=1e-6)
