"""Anything that gives probabilities can be wrapped, and comes out exactly as it went in."""

import copy
import itertools
import pickle
import warnings
from typing import Any

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector, InvalidInput, wrap
from askwise.epistemic import AuxiliaryEnsemble, FeatureDistance
from askwise.model.wrapped import fitted_classifier, warn_if_worse_than_prior
from askwise.predict import ImputedPredictor


def arrays(n=120, dtype=float):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(dtype)
    return X, np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.7])


def frames(n=120):
    X, y = arrays(n)
    return pd.DataFrame(X, columns=["age", "body mass", "pulse rate", "height"]), y


def text_frames(n=120):
    """Text, booleans, counts and numbers."""
    X, y = frames(n)
    rng = np.random.default_rng(1)
    return X.assign(city=rng.choice(["Ghent", "Lille"], n), smoker=rng.random(n) < 0.5, visits=rng.integers(0, 9, n)), y


def pipeline():
    encode = ColumnTransformer(
        [("others", OneHotEncoder(), ["city", "smoker"]), ("numbers", StandardScaler(), ["age", "visits"])]
    )
    return make_pipeline(encode, LogisticRegression())


FEW = AuxiliaryEnsemble(2, random_state=0)
SKLEARN_STYLE = {
    "forest": (lambda: RandomForestClassifier(10, random_state=0), arrays),
    "network": (lambda: MLPClassifier([8], max_iter=30, random_state=0), arrays),
    "boosting": (lambda: HistGradientBoostingClassifier(max_iter=5), frames),
    "pipeline": (pipeline, text_frames),
    "xgboost": (lambda: xgboost.XGBClassifier(n_estimators=5, n_jobs=1), arrays),
    "xgboost on a frame": (lambda: xgboost.XGBClassifier(n_estimators=5, n_jobs=1), frames),
    "lightgbm": (lambda: lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1), arrays),
    "lightgbm on a frame": (lambda: lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1), frames),
}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", SKLEARN_STYLE)
def test_fitted_models_are_used_as_they_are(name):
    make, data = SKLEARN_STYLE[name]
    X, y = data()
    model = make().fit(X, y)
    own, as_bytes, as_hash = model.predict_proba(X), pickle.dumps(model), joblib.hash(model)
    for wrapped in (model, FrozenEstimator(model)):
        selector = DynamicFeatureSelector(wrapped, epistemic=FEW, random_state=0).fit(X, y)
        assert selector.estimator_ is wrapped
        assert_array_equal(selector.predict_proba(X), own)
        selector.acquire(X[:5], budget=2)
        assert_array_equal(selector.predictor_.predict_full(X), own)
        assert pickle.dumps(model) == as_bytes
        assert joblib.hash(model) == as_hash
        assert_array_equal(model.predict_proba(X), own)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", SKLEARN_STYLE)
def test_unfitted_models_are_cloned_and_fitted(name):
    make, data = SKLEARN_STYLE[name]
    X, y = data()
    model = make()
    before = joblib.hash(model)
    selector = DynamicFeatureSelector(model, epistemic=None, random_state=0).fit(X, y)
    assert selector.estimator_ is not model
    assert joblib.hash(model) == before
    assert_array_equal(selector.predict_proba(X), make().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("name", SKLEARN_STYLE)
def test_evaluating_a_wrapped_model_warns_of_nothing(name):
    """Probabilities in single precision sum to one in single precision."""
    make, data = SKLEARN_STYLE[name]
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = DynamicFeatureSelector(model, epistemic=FEW, random_state=0).fit(X, y)
        selector.evaluate(X[:40], y[:40], budgets=[1, 4])


def test_no_warnings_of_feature_names():
    table, y = frames(60)
    tables = [table, table.to_numpy()]
    makers = [
        LogisticRegression,
        lambda: RandomForestClassifier(3),
        lambda: lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1),
    ]
    for make, trained_on, X in itertools.product(makers, tables, tables):
        model = make().fit(trained_on, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            selector = DynamicFeatureSelector(model, epistemic=FEW, random_state=0).fit(X, y)
            proba = selector.predict_proba(X)
            selector.acquire(X[:3], budget=2)
            selector.start(budget=2).suggest()
        assert_array_equal(proba, model.predict_proba(trained_on))


class Network(torch.nn.Module):
    def __init__(self, n_classes=3):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, n_classes)
        )

    def forward(self, x):
        return self.layers(x)


def network(n_classes=3, dtype=torch.float32):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Network(n_classes).to(dtype)
        module(torch.randn(64, 4, dtype=dtype))  # moves the running statistics of the batch norm
    return module


def softmax_of(module, X):
    quiet = copy.deepcopy(module).eval()
    with torch.no_grad():
        rows = torch.as_tensor(np.array(X), dtype=next(module.parameters()).dtype)
        return torch.softmax(quiet(rows), dim=1).numpy()


@pytest.mark.parametrize(("make_data", "dtype"), [(arrays, torch.float32), (frames, torch.float64)])
def test_a_torch_module_gives_the_softmax_of_its_logits_and_stays_as_it_was(make_data, dtype):
    X, y = make_data()
    module = network(dtype=dtype)
    module.train()
    module.layers[2].eval()  # a mode of its own
    modes = [part.training for part in module.modules()]
    state = copy.deepcopy(module.state_dict())
    torch_state = torch.random.get_rng_state()
    selector = DynamicFeatureSelector(module, random_state=0).fit(X, y)
    proba = selector.predict_proba(X)
    selector.acquire(X[:4], budget=2)
    assert_allclose(proba, softmax_of(module, X), rtol=0, atol=1e-6)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert [part.training for part in module.modules()] == modes
    assert state.keys() == module.state_dict().keys()
    assert all(torch.equal(state[name], now) for name, now in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert_array_equal(selector.classes_, [0, 1, 2])


def test_a_module_wrapped_with_its_classes():
    X, y = arrays()
    labels = np.array(["low", "middle", "high"])
    selector = DynamicFeatureSelector(wrap(network(), labels.tolist()), random_state=0).fit(X, labels[y])
    assert selector.classes_.tolist() == ["low", "middle", "high"]  # the order of the logits, not of the alphabet
    proba = softmax_of(network(), X)
    assert_array_equal(selector.predict(X), labels[proba.argmax(axis=1)])
    scores = selector.evaluate(X, labels[y], budgets=[4])
    assert scores["accuracy"][0] == (proba.argmax(axis=1) == y).mean()


def test_a_callable_gets_the_kind_of_table_that_was_given():
    seen = []

    def model(X):
        seen.append(type(X))
        positive = np.where(np.asarray(X)[:, 0] > 0, 0.75, 0.25)
        return np.column_stack([1 - positive, positive])

    for X, y in (arrays(), frames()):
        seen.clear()
        selector = DynamicFeatureSelector(model, random_state=0).fit(X, y > 0)
        assert_array_equal(selector.predict_proba(X), model(X))
        selector.acquire(X[:3], budget=1)
        assert set(seen) == {type(X)}


def test_a_callable_sees_text_as_text_and_whole_numbers_as_whole_numbers():
    X, y = text_frames()
    kinds = []

    def model(table):
        kinds.append(table.dtypes.to_dict())
        return np.tile([0.25, 0.75], (len(table), 1))

    # Completions are real cells; only the distance to the training data fills in means.
    selector = DynamicFeatureSelector(model, epistemic=None, random_state=0).fit(X, y > 0)
    kinds.clear()  # while fitting, the model is tried on missing cells
    selector.predict_proba(X)
    selector.acquire(X[:3], budget=2)
    assert all(kind == X.dtypes.to_dict() for kind in kinds)


class Foreign:
    """Not a scikit-learn estimator."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.tile([0.4, 0.6], (len(X), 1))


class ForeignWithFit(Foreign):
    def fit(self, X, y):
        raise AssertionError("it is fitted already")


def test_an_object_that_is_not_a_scikit_learn_estimator():
    X, y = arrays()
    for foreign in (Foreign(), ForeignWithFit()):
        selector = DynamicFeatureSelector(foreign, random_state=0).fit(X, y > 0)
        assert selector.estimator_ is foreign
        assert_array_equal(selector.predict_proba(X), foreign.predict_proba(X))
        assert isinstance(selector.epistemic_, FeatureDistance)


def test_a_callable_that_gives_one_probability_per_row_gives_that_of_the_second_class():
    X, y = arrays()
    second = 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))
    for shape in ((-1,), (-1, 1)):

        def model(X, shape=shape):
            return (1 / (1 + np.exp(-X[:, 0] - X[:, 1]))).reshape(shape)

        selector = DynamicFeatureSelector(model, random_state=0).fit(X, np.where(y > 0, "yes", "no"))
        assert_allclose(selector.predict_proba(X), np.column_stack([1 - second, second]), rtol=0, atol=1e-12)
        with pytest.raises(InvalidInput, match=r"probabilities >= 0 that sum to one; got \[-1.0, 2.0\]"):
            ImputedPredictor(lambda X, shape=shape: np.full(len(X), 2.0).reshape(shape)).fit(X, y > 0)


def test_a_model_that_is_worse_than_the_commonest_class_is_warned_of():
    labels, classes = np.array([0, 0, 0, 1]), np.array(["no", "yes"])
    right = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.6, 0.4]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_worse_than_prior(right, labels, classes)  # no better, but no worse
    swapped = right[:, ::-1]
    message = r"right for 25.0% .*always predicting 'no' is right for 75.0%.*order of classes, \['no', 'yes'\]"
    with pytest.warns(UserWarning, match=message):
        warn_if_worse_than_prior(swapped, labels, classes)


def test_an_unfitted_estimator_without_a_seed_is_seeded():
    X, y = arrays()
    models = {
        "forest": RandomForestClassifier(5),
        "pipeline": make_pipeline(StandardScaler(), MLPClassifier([4], max_iter=3)),
        "nested": CalibratedClassifierCV(RandomForestClassifier(3), cv=2),
    }
    before = joblib.hash(np.random.get_state())  # noqa: NPY002 - the very thing that must not be used
    for model in models.values():
        unfitted = joblib.hash(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            one, same, other = (fitted_classifier(model, X, y, random_state=seed) for seed in (0, 0, 1))
        assert_array_equal(one.predict_proba(X), same.predict_proba(X))
        assert np.abs(one.predict_proba(X) - other.predict_proba(X)).max() > 0
        assert joblib.hash(model) == unfitted
    assert joblib.hash(np.random.get_state()) == before  # noqa: NPY002
    kept = fitted_classifier(RandomForestClassifier(5, random_state=3), X, y, random_state=0)
    assert kept.random_state == 3


def test_a_black_box_is_a_classifier():
    black_box = wrap(lambda X: np.tile([0.2, 0.8], (len(X), 1)), classes=["no", "yes"])
    assert clone(black_box) is black_box
    assert black_box.predict(np.zeros((2, 3))).tolist() == ["yes", "yes"]
    with pytest.raises(InvalidInput, match="cannot be fitted"):
        black_box.fit(np.zeros((2, 3)), [0, 1])


def test_what_cannot_be_wrapped():
    things: list[Any] = [3, "model", None, [1]]
    for thing in things:
        with pytest.raises(InvalidInput, match=f"callable.*got {type(thing).__name__}"):
            wrap(thing, classes=[0, 1])
    for classes in ([0], [], [0, 0], ["a", "b", "a"]):
        with pytest.raises(InvalidInput, match="two or more different labels"):
            wrap(lambda X: X, classes=classes)
    with pytest.raises(InvalidInput, match=r"outputs must be one of .*got 'odds'"):
        wrap(lambda X: X, classes=[0, 1], outputs="odds")
    with pytest.raises(InvalidInput, match="is for torch modules"):
        wrap(lambda X: X, classes=[0, 1], outputs="logits")


def answering(proba):
    return lambda X: np.tile(proba, (len(X), 1))


def test_answers_that_are_no_probabilities_are_refused_when_fitting():
    """The earlier the better: not at the first prediction of the first patient."""
    X, y = arrays()
    for model in (answering([2.0, -1.0, 0.5]), answering([0.5, 0.5]), lambda X: np.zeros(len(X))):
        with pytest.raises(InvalidInput):
            DynamicFeatureSelector(model, epistemic=None).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (answering([0.5, 0.5]), r"shape \(\d+, 3\) .*classes \[0, 1, 2\].*got \(\d+, 2\).*askwise.wrap"),
        (lambda X: np.full(len(X), 1.0), r"shape \(\d+, 3\).*got \(\d+,\)"),
        (lambda X: np.full((3, 3), 1 / 3), r"shape \(\d+, 3\).*got \(3, 3\)"),
        (answering([2.0, -1.0, 0.5]), "sum to one; got .*logits, apply a softmax"),
        (answering([1.5, -0.5, 0.0]), r"probabilities >= 0 that sum to one; got \[1.5, -0.5, 0.0\]"),
        (answering([0.2, 0.2, 0.2]), r"sum to one; got \[0.2, 0.2, 0.2\]"),
        (answering([np.nan, 0.5, 0.5]), "sum to one; got"),
    ],
)
def test_answers_that_are_no_probabilities(model, message):
    X, y = arrays()
    predictor = ImputedPredictor(wrap(model, [0, 1, 2]))
    with pytest.raises(InvalidInput, match=message):
        predictor.fit(X, y).predict_proba(X)


def test_a_module_with_other_outputs_than_classes():
    X, y = arrays()
    for n_classes in (2, 4):
        with pytest.raises(InvalidInput, match=rf"classes \[0, 1, 2\].*got \(\d+, {n_classes}\)"):
            ImputedPredictor(network(n_classes)).fit(X, y).predict_proba(X)


def test_a_module_that_gives_no_row_per_case():
    X, _ = arrays()
    with pytest.raises(InvalidInput, match=r"logits of shape \(rows, classes\).*got \(480,\) for 120 rows"):
        wrap(torch.nn.Flatten(0), [0, 1, 2]).predict_proba(X)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LinearRegression(), "must be a classifier; LinearRegression is a regressor"),
        (LogisticRegression, r"not the class LogisticRegression; write LogisticRegression\(\)"),
        (torch.nn.Linear, r"not the class Linear"),
        (Perceptron(), "Perceptron gives no probabilities.*CalibratedClassifierCV"),
        (SVC(), r"SVC gives no probabilities.*CalibratedClassifierCV\.$"),
        ("model", "must be a classifier.*got str"),
        (None, "must be a classifier.*got NoneType"),
    ],
    ids=str,
)
def test_what_is_no_classifier_with_probabilities(estimator, message):
    X, y = arrays()
    with pytest.raises(InvalidInput, match=message):
        DynamicFeatureSelector(estimator).fit(X, y)
    if hasattr(estimator, "fit") and not isinstance(estimator, type):
        with pytest.raises(InvalidInput, match=message):
            DynamicFeatureSelector(clone(estimator).fit(X, y)).fit(X, y)


def test_a_model_trained_on_other_columns():
    table, y = frames()
    model = LogisticRegression().fit(table, y)
    with pytest.raises(InvalidInput, match=r"trained on 4 columns; X has 3"):
        DynamicFeatureSelector(model).fit(table.iloc[:, :3], y)
    with pytest.raises(InvalidInput, match=r"trained on the columns .*'age'.* X has .*'years'"):
        DynamicFeatureSelector(model).fit(table.rename(columns={"age": "years"}), y)
    with pytest.raises(InvalidInput, match=r"trained on the columns"):
        DynamicFeatureSelector(model).fit(table[table.columns[::-1]], y)
    with pytest.raises(InvalidInput, match=r"trained on 4 columns; X has 2"):
        DynamicFeatureSelector(model).fit(table.to_numpy()[:, :2], y)


def test_a_model_that_refuses_missing_cells_is_fitted_on_complete_rows_with_a_warning():
    X, y = arrays()
    holes = X.copy()
    holes[::4, 1] = np.nan
    with pytest.warns(UserWarning, match=r"fitted on the 90 of 120 rows .*imputer"):
        selector = DynamicFeatureSelector(LogisticRegression(), random_state=0).fit(holes, y)
    complete = ~np.isnan(holes).any(axis=1)
    expected = LogisticRegression().fit(X[complete], y[complete])
    assert_array_equal(selector.predict_proba(X), expected.predict_proba(X))


def test_a_model_that_cannot_be_fitted_on_text_says_what_to_do():
    X, y = arrays()
    for first in (1.0, np.nan):  # missing cells are not what is wrong
        table = pd.DataFrame({"size": X[:, 0], "color": np.where(X[:, 1] > 0, "red", "blue")})
        table.loc[0, "size"] = first
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(InvalidInput, match=r"Not numbers: color\. Use a Pipeline"):
                fitted_classifier(RandomForestClassifier(5), table, y)


def test_weights_follow_the_complete_rows():
    X, y = arrays()
    holes, weights = X.copy(), np.random.default_rng(0).random(120)
    holes[::4, 1] = np.nan
    with pytest.warns(UserWarning, match="90 of 120"):
        selector = DynamicFeatureSelector(LogisticRegression()).fit(holes, y, sample_weight=weights)
    complete = ~np.isnan(holes).any(axis=1)
    expected = LogisticRegression().fit(X[complete], y[complete], weights[complete])
    assert_array_equal(selector.predict_proba(X), expected.predict_proba(X))


def test_a_model_that_takes_missing_cells_is_fitted_on_all_rows_without_a_warning():
    X, y = arrays()
    X[::4, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = DynamicFeatureSelector(HistGradientBoostingClassifier(max_iter=3)).fit(X, y)
    expected = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    rows = ~np.isnan(X).any(axis=1)
    assert_array_equal(selector.predict_proba(X[rows]), expected.predict_proba(X[rows]))


def test_single_precision_arrays_reach_the_model_as_they_are():
    X, y = arrays(dtype=np.float32)
    model = MLPClassifier([4], max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert_array_equal(DynamicFeatureSelector(model, random_state=0).fit(X, y).predict_proba(X), model.predict_proba(X))


class Strict(StandardScaler):
    """A step that refuses what it cannot take."""

    def transform(self, X, copy=None):
        if np.asarray(X).max() > 1e100:
            raise ValueError("too large for me")
        return super().transform(X, copy)


class Failing(LogisticRegression):
    """One with a bug."""

    def predict_proba(self, X):
        if np.asarray(X).max() > 1e100:
            raise KeyError("a bug")
        return super().predict_proba(X)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
def test_rows_that_a_model_or_a_member_refuses_are_invalid_input_and_the_session_stays_as_it_was():
    """Trees work in single precision; LogisticRegression takes the value, and a bug of the model's stays visible."""
    X, y = frames()
    y = y > 0
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    forest = RandomForestClassifier(4, random_state=0)
    linear = LogisticRegression().fit(X, y)
    cases: list[Any] = [
        (forest.fit(X, y), "ensemble", "RandomForestClassifier"),
        (tree.fit(X, y), "ensemble", "DecisionTreeClassifier"),
        (tree, None, "DecisionTreeClassifier"),
        (linear, AuxiliaryEnsemble(estimators=[forest]), "RandomForestClassifier"),
        (make_pipeline(Strict(), LogisticRegression()).fit(X, y), None, "Strict, LogisticRegression"),
        (make_pipeline(Strict(), LogisticRegression()).fit(X, y), "ensemble", "Strict"),
    ]
    for model, epistemic, name in cases:
        selector = DynamicFeatureSelector(model, epistemic=epistemic, random_state=0).fit(X, y)
        session = selector.start()
        session.answer("age", 0.5)
        before = session.report()
        with pytest.raises(InvalidInput, match=rf"{name} cannot take these rows .*too large .*Check the values"):
            session.answer("height", 1e160)
        assert session.report() == before
        session.answer("height", 1.0)
    broken = DynamicFeatureSelector(Failing().fit(X, y), epistemic=None, random_state=0).fit(X, y).start()
    with pytest.raises(KeyError, match="a bug"):
        broken.answer("age", 1e160)
