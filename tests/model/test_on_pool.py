"""Forests, boosted trees, and classifiers at the end of a Pipeline, on completions that are never transformed."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
)
from tests.made import correlated_numbers, patients

from askwise.epistemic import AuxiliaryEnsemble, BeliefModel
from askwise.errors import InvalidInput
from askwise.model.fast import pool_forests, pool_inputs, pool_trees
from askwise.model.fast.pool_forests import PoolForests
from askwise.model.fast.pool_inputs import PoolClassifiers, PoolLayers
from askwise.predict import ConditionalPredictor

CUTS = (-0.7, 0.7)


def boosting(**options):
    return HistGradientBoostingClassifier(max_iter=12, random_state=0, **options)


def ordinal(model):
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(
        make_column_transformer((codes, make_column_selector(dtype_exclude="number")), remainder="passthrough"), model
    )


def beliefs(model, X, y):
    predictor = ConditionalPredictor(model, n_neighbors=20, random_state=0).fit(X, y)
    return BeliefModel(predictor, AuxiliaryEnsemble(2, random_state=0).fit(predictor))


def asked_one_by_one(found, monkeypatch):
    """The same beliefs from a predictor that asks the model about every completion."""
    with monkeypatch.context() as patched:
        for module in (pool_forests, pool_trees, pool_inputs):
            patched.setattr(module, "MOST_BYTES", 0)
        plain = found.predictor.with_model(found.predictor.model_)
        other = BeliefModel(plain, found.epistemic)
    assert other._joined._on_pool is None
    return other


def tables():
    numbers, labels = correlated_numbers(120, 5, CUTS)
    yield numbers, labels, boosting()
    holed = np.where(np.random.default_rng(1).random(numbers.shape) < 0.2, np.nan, numbers)
    yield holed, (numbers[:, 0] > 0).astype(int), boosting(max_leaf_nodes=60, min_samples_leaf=1)
    yield numbers, labels, make_pipeline(StandardScaler(), boosting())
    mixed, classes = patients(120, 0)
    yield mixed, classes, ordinal(boosting())


def test_answers_are_those_of_the_model_on_each_completion(monkeypatch):
    rng = np.random.default_rng(0)
    for X, y, model in tables():
        found = beliefs(model.fit(X, y), X, y)
        assert found._joined._on_pool is not None
        rows = found.predictor._encode(X[:40])
        rows = rows.masked(rng.random(rows.values.shape) < 0.5)
        plain = asked_one_by_one(found, monkeypatch).believe(rows)
        quick = found.believe(rows)
        assert_allclose(quick.answers, plain.answers, atol=1e-12)
        assert_allclose(quick.completions.answers, plain.completions.answers, atol=1e-12)


def forest_tables():
    numbers, labels = correlated_numbers(120, 5, CUTS)
    holed = np.where(np.random.default_rng(1).random(numbers.shape) < 0.2, np.nan, numbers)
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        for X in (numbers, holed):
            yield X, labels, kind(7, random_state=0, max_leaf_nodes=60)
    yield numbers, labels, RandomForestClassifier(3, random_state=0, max_leaf_nodes=2, max_features=1)
    noise = np.random.default_rng(2).normal(size=(120, 5))
    yield noise, labels, RandomForestClassifier(3, random_state=0, min_impurity_decrease=0.1)  # trees of one leaf


def test_forests_give_their_own_numbers(monkeypatch):
    rng = np.random.default_rng(0)
    for X, y, model in forest_tables():
        found = beliefs(model.fit(X, y), X, y)
        assert isinstance(found._joined._on_pool, PoolForests)
        rows = found.predictor._encode(X[:40])
        rows = rows.masked(rng.random(rows.values.shape) < 0.5)
        plain, quick = asked_one_by_one(found, monkeypatch).believe(rows), found.believe(rows)
        assert np.array_equal(quick.answers, plain.answers)
        assert np.array_equal(quick.completions.answers, plain.completions.answers)


def test_forests_refuse_what_single_precision_cannot_hold():
    X, y = correlated_numbers(120, 5, CUTS)
    found = beliefs(RandomForestClassifier(3, random_state=0).fit(X, y), X, y)
    rows = found.predictor._encode(np.array([[1e39, np.nan, np.nan, np.nan, np.nan]]))
    with pytest.raises(InvalidInput, match=r"RandomForestClassifier cannot take these rows .*too large"):
        found.believe(rows)


def test_forests_with_large_trees_or_without_missing_cells_are_asked_as_before():
    X, y = correlated_numbers(400, 5, CUTS)
    large = ConditionalPredictor(RandomForestClassifier(3, random_state=0).fit(X, y[::-1]), random_state=0)
    assert large.fit(X, y)._on_pool is None
    increasing = RandomForestClassifier(3, random_state=0, max_leaf_nodes=8, monotonic_cst=[1, 0, 0, 0, 0])
    positive = X[:, 0] > 0
    found = ConditionalPredictor(increasing.fit(X, positive), random_state=0).fit(X, positive)
    assert isinstance(found._on_pool, PoolForests)
    holed = found._encode(np.where(X < -1, np.nan, X))
    assert pool_forests.pool_forests(found.model_, [found.model_], holed) is None


def one_hot(model, sparse_threshold=1.0):
    """Sparse columns of categories, and of numbers in bins, with an indicator of missing cells."""
    bins = KBinsDiscretizer(4, encode="onehot", quantile_method="averaged_inverted_cdf", subsample=None)
    numbers = make_union(make_pipeline(SimpleImputer(), bins), MissingIndicator(features="all"))
    text = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(
        make_column_transformer(
            (text, make_column_selector(dtype_exclude="number")), remainder=numbers, sparse_threshold=sparse_threshold
        ),
        model,
    )


def test_classifiers_behind_a_pipeline_see_what_its_steps_would_make_of_completions(monkeypatch):
    X, y = patients(150, 0)
    X["city"] = X["city"].astype(object)
    X.loc[X.index[7], "city"] = "Rare"  # a column of its own that only one row fills
    X.loc[X.index[3::9], "age"] = np.nan
    scaled = make_column_transformer((StandardScaler(), make_column_selector(dtype_include="number")))
    rng = np.random.default_rng(0)
    for model in (
        one_hot(MLPClassifier((8,), max_iter=30, random_state=0)),
        one_hot(RandomForestClassifier(5, random_state=0)),
        one_hot(LogisticRegression(solver="liblinear")),
        make_pipeline(scaled, GaussianNB()),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            table = X if "onehot" in str(model) else X.fillna({"age": 40.0})
            found = beliefs(model.fit(table, y), table, y)
        sparse_only = isinstance(model[-1], LogisticRegression)  # liblinear is asked as a black box is
        assert isinstance(found._joined._on_pool, PoolClassifiers | PoolLayers) is not sparse_only
        rows = found.predictor._encode(table[:40])
        rows = rows.masked(rng.random(rows.values.shape) < 0.5)
        quick, plain = found.believe(rows), asked_one_by_one(found, monkeypatch).believe(rows)
        assert_allclose(quick.completions.answers, plain.completions.answers, atol=1e-12)


def test_a_pool_row_with_a_huge_value_does_not_drown_the_others(monkeypatch):
    X, y = correlated_numbers(120, 5, CUTS)
    X[3, 0] = 1e20
    model = make_pipeline(FunctionTransformer(), LogisticRegression()).fit(X[4:], y[4:])
    found = beliefs(model, X, y)
    assert isinstance(found._joined._on_pool, PoolClassifiers)
    rows = found.predictor._encode(X[:20]).masked([True, True, False, False, False])
    plain = asked_one_by_one(found, monkeypatch).believe(rows)
    assert_allclose(found.believe(rows).completions.answers, plain.completions.answers, atol=1e-9)


def test_trees_behind_columns_that_few_rows_fill(monkeypatch):
    X, y = patients(2000, 0)
    X["city"] = np.where(np.arange(2000) == 7, "Rare", X["city"].astype(object))
    y = np.where(np.arange(2000) == 7, 1 - y, y)
    dense_columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["city"]), ("passthrough", ["age"]), sparse_threshold=0
    )
    found = beliefs(make_pipeline(dense_columns, boosting(min_samples_leaf=1)).fit(X, y), X, y)
    assert isinstance(found._joined._on_pool, pool_trees.PoolTrees)
    rows = found.predictor._encode(X.iloc[[7, 7]]).masked(np.array([X.columns == "city", X.columns == "age"]))
    plain = asked_one_by_one(found, monkeypatch).believe(rows)
    assert_allclose(found.believe(rows).completions.answers, plain.completions.answers, atol=1e-12)


def test_values_that_only_the_model_has_seen(monkeypatch):
    """The rows of `fit` need not be those that the model was trained on."""
    X, y = patients(300, 0)
    X["city"] = np.where(np.arange(300) >= 200, "Rare", X["city"].astype(object))
    X["visits"] = np.where(np.arange(300) >= 200, 90, X["visits"])
    for model in (boosting(), LogisticRegression(max_iter=500), RandomForestClassifier(5, random_state=0)):
        trained = one_hot(model, sparse_threshold=0.0).fit(X, y)
        found = beliefs(trained, X[:200], y[:200])
        assert found._joined._on_pool is not None
        rows = found.predictor._encode(X[200:240]).masked(X.columns.isin(["city", "visits"]))
        plain = asked_one_by_one(found, monkeypatch)
        assert_allclose(found.believe(rows).completions.answers, plain.believe(rows).completions.answers, atol=1e-12)


def product_where_both_are_large(table):
    table = np.asarray(table, dtype=float)
    return np.column_stack([table, np.where((table > 2.5).sum(axis=1) > 1, table.sum(axis=1), 0.0)])


def test_unseen_categories_are_those_of_the_case(monkeypatch):
    X, y = patients(120, 0)
    found = beliefs(ordinal(boosting()).fit(X, y), X, y)
    new = X[:3].assign(city="Paris", age=np.nan)
    rows = found.predictor._encode(new)
    plain = asked_one_by_one(found, monkeypatch)
    assert_allclose(found.believe(rows).answers, plain.believe(rows).answers, atol=1e-12)


def test_lightgbm(monkeypatch):
    lightgbm = pytest.importorskip("lightgbm")
    for n_classes, holes in ((2, 0.0), (3, 0.2)):
        X, y = correlated_numbers(150, 5, CUTS[: n_classes - 1])
        rng = np.random.default_rng(0)
        X[rng.random(X.shape) < holes] = np.nan
        model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1, min_child_samples=5).fit(X, y)
        found = beliefs(model, X, y)
        assert found._joined._on_pool is not None
        rows = found.predictor._encode(X[:30]).masked(rng.random((30, 5)) < 0.5)
        plain = asked_one_by_one(found, monkeypatch)
        assert_allclose(found.believe(rows).answers, plain.believe(rows).answers, atol=1e-9)


def test_models_that_do_not_fit_are_asked_as_before():
    X, y = correlated_numbers(120, 5, CUTS)
    categories = pd.DataFrame(X).assign(c=pd.Categorical(np.arange(120) % 3))
    categories.columns = [str(name) for name in categories]
    for table, model in (
        (X, make_pipeline(PCA(), boosting())),  # an input depends on several columns
        (X, make_pipeline(FunctionTransformer(product_where_both_are_large), boosting())),  # in rare rows only
        (X, make_pipeline(KNNImputer(), LogisticRegression())),
        (np.hstack([X] * 11), RandomForestClassifier(3, random_state=0)),  # many columns
        (categories, boosting(categorical_features="from_dtype")),
    ):
        found = ConditionalPredictor(model.fit(table, y), random_state=0).fit(table, y)
        assert found._on_pool is None
        assert_allclose(found.predict_proba(table[:5]).sum(axis=1), 1)


@pytest.mark.parametrize(("module", "made"), [(pool_trees, "PoolTrees"), (pool_inputs, "PoolClassifiers")])
def test_an_error_of_our_own_is_not_hidden(module, made, monkeypatch):
    numbers, labels = correlated_numbers(60, 5, CUTS)
    model = boosting() if module is pool_trees else make_pipeline(StandardScaler(), GaussianNB())

    def broken(*given):
        raise AssertionError("broken")

    monkeypatch.setattr(module, made, broken)
    with pytest.raises(AssertionError, match="broken"):
        ConditionalPredictor(model.fit(numbers, labels), random_state=0).fit(numbers, labels)


def test_steps_that_refuse_a_value_are_told_to_the_log(caplog):
    """Numbers are tried beyond their range, which a logarithm with checks refuses; the answers are the model's own."""
    numbers, labels = correlated_numbers(60, 5, CUTS)
    model = make_pipeline(PowerTransformer("box-cox"), GaussianNB()).fit(numbers - numbers.min() + 0.1, labels)
    with caplog.at_level("DEBUG", "askwise"):
        predictor = ConditionalPredictor(model, random_state=0).fit(numbers - numbers.min() + 0.1, labels)
    assert predictor._on_pool is None
    assert "Completions are predicted one by one: PowerTransformer" in caplog.text
    assert np.isfinite(predictor.predict_proba(np.full((1, 5), np.nan))).all()
