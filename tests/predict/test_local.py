"""One model per subset: the reference."""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from askwise.errors import InvalidInput
from askwise.predict import LocalPredictor, wrap


def data(n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.array(["no", "yes"])[(X[:, 0] + 0.5 * X[:, 1] > 0.4).astype(int)]


def masks(*names):
    return np.array([[letter in name for letter in "abc"] for name in names])


def test_each_subset_has_the_model_that_is_trained_on_it_alone():
    X, y = data()
    predictor = LocalPredictor(LogisticRegression()).fit(X, y)
    for columns in ([0], [1, 2], [0, 1, 2]):
        mask = np.isin(np.arange(3), columns)
        alone = LogisticRegression().fit(X[:, columns], y)
        assert_allclose(predictor.predict_proba(X, mask), alone.predict_proba(X[:, columns]), atol=1e-12)


def test_rows_with_different_subsets_are_answered_in_one_call():
    X, y = data()
    predictor = LocalPredictor(LogisticRegression()).fit(X, y)
    mask = masks("a", "bc", "a", "", "abc")
    together = predictor.predict_proba(X[:5], mask)
    for r in range(5):
        assert_allclose(together[r], predictor.predict_proba(X[[r]], mask[[r]])[0], atol=1e-12)


def test_the_empty_subset_is_the_class_frequencies():
    X, y = data()
    proba = LocalPredictor(LogisticRegression()).fit(X, y).predict_proba(X, np.zeros(3, bool))
    assert_allclose(proba, np.tile([(y == "no").mean(), (y == "yes").mean()], (len(X), 1)))


def test_the_full_prediction_is_still_the_wrapped_model():
    X, y = data()
    half = LogisticRegression(C=0.01).fit(X[::2], y[::2])
    predictor = LocalPredictor(half).fit(X, y)
    assert_array_equal(predictor.predict_full(X), half.predict_proba(X))
    assert not np.allclose(predictor.predict_proba(X), half.predict_proba(X))
    # The parameters of the wrapped model are those of its clones.
    alone = LogisticRegression(C=0.01).fit(X[:, [0]], y)
    assert_allclose(predictor.predict_proba(X, np.array([True, False, False])), alone.predict_proba(X[:, [0]]))


def counting(monkeypatch):
    """The sizes of the tables that are trained on, in order."""
    trained = []
    fit = LogisticRegression.fit

    def watched(self, X, y):
        trained.append(np.shape(X)[1])
        return fit(self, X, y)

    monkeypatch.setattr(LogisticRegression, "fit", watched)
    return trained


def test_models_are_trained_on_first_use_and_kept(monkeypatch):
    X, y = data()
    predictor = LocalPredictor(LogisticRegression().fit(X, y)).fit(X, y)
    trained = counting(monkeypatch)
    for _ in range(3):
        predictor.predict_proba(X, masks("a")[0])
        predictor.predict_proba(X, masks("ab")[0])
    assert trained == [1, 2]


def test_the_cache_is_bounded_and_drops_what_is_longest_unused(monkeypatch):
    X, y = data()
    predictor = LocalPredictor(LogisticRegression().fit(X, y), max_models=2).fit(X, y)
    trained = counting(monkeypatch)
    for name in ("a", "ab", "a", "abc", "a"):  # at "abc" the pair ab is dropped, not a
        predictor.predict_proba(X[:2], masks(name)[0])
    assert trained == [1, 2, 3]
    predictor.predict_proba(X[:2], masks("ab")[0])
    assert trained == [1, 2, 3, 2]
    assert len(predictor._models) == 2


def test_the_bound_does_not_change_the_answers():
    X, y = data()
    mask = np.random.default_rng(0).random(X.shape) < 0.5
    free = LocalPredictor(LogisticRegression()).fit(X, y).predict_proba(X, mask)
    assert_array_equal(LocalPredictor(LogisticRegression(), max_models=1).fit(X, y).predict_proba(X, mask), free)


def test_a_cache_of_nothing_is_refused():
    X, y = data()
    sizes: list[Any] = [0, -1, "many", None]
    for max_models in sizes:
        with pytest.raises(InvalidInput, match="LocalPredictor: max_models must be a whole number of at least 1"):
            LocalPredictor(LogisticRegression(), max_models=max_models).fit(X, y)


def test_rows_that_lack_a_cell_of_the_subset_are_left_out_where_the_model_refuses_them():
    X, y = data()
    holes = X.copy()
    holes[::3, 0] = np.nan
    predictor = LocalPredictor(LogisticRegression().fit(X, y)).fit(holes, y)
    there = ~np.isnan(holes[:, 0])
    alone = LogisticRegression().fit(X[there][:, [0]], y[there])
    assert_allclose(predictor.predict_proba(X, masks("a")[0]), alone.predict_proba(X[:, [0]]), atol=1e-12)
    everyone = LogisticRegression().fit(X[:, [1]], y)
    assert_allclose(predictor.predict_proba(X, masks("b")[0]), everyone.predict_proba(X[:, [1]]), atol=1e-12)


def test_rows_that_lack_a_cell_are_used_where_the_model_takes_them():
    X, y = data()
    holes = X.copy()
    holes[::3, 0] = np.nan
    make = HistGradientBoostingClassifier(max_iter=3)
    predictor = LocalPredictor(make).fit(holes, y)
    alone = HistGradientBoostingClassifier(max_iter=3).fit(holes[:, [0]], y)
    rows = ~np.isnan(holes[:, 0])
    assert_array_equal(predictor.predict_proba(holes[rows], masks("a")[0]), alone.predict_proba(holes[rows][:, [0]]))


def test_a_subset_that_no_row_or_one_class_only_has_is_answered_by_the_class_frequencies():
    X, y = data()
    holes = X.copy()
    holes[y == "no", 0] = np.nan
    predictor = LocalPredictor(LogisticRegression().fit(X, y)).fit(holes, y)
    proba = predictor.predict_proba(X, masks("a")[0])
    assert_allclose(proba[:, 1], (y == "yes").mean())


def test_a_frozen_model_is_cloned_unfrozen():
    X, y = data()
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    predictor = LocalPredictor(frozen).fit(X, y)
    alone = LogisticRegression().fit(X[:, [0]], y)
    assert_allclose(predictor.predict_proba(X, masks("a")[0]), alone.predict_proba(X[:, [0]]), atol=1e-12)


def test_what_cannot_be_trained_again_is_refused():
    X, y = data()
    black_box = wrap(lambda X: np.full((len(X), 2), 0.5), ["no", "yes"])
    for model in (black_box, FrozenEstimator(black_box), torch.nn.Linear(3, 2)):
        with pytest.raises(InvalidInput, match=r"callable or a torch module does not allow.*ConditionalPredictor"):
            LocalPredictor(model).fit(X, y)


class ReadsTypes(LogisticRegression):
    """A model that looks at the type of a column, as one that reads text would."""

    def predict_proba(self, X):
        sure = np.array([0.9 if "." in str(cell) else 0.5 for cell in X["a"]])
        return np.column_stack([1 - sure, sure])


def test_a_row_does_not_depend_on_the_types_of_its_batch():
    X = pd.DataFrame({"a": np.arange(40), "b": np.arange(40) % 3})
    predictor = LocalPredictor(ReadsTypes()).fit(X, np.arange(40) % 2)
    later = pd.DataFrame({"a": [1.0, 2.5, 3.0], "b": [1, 1, 1]})
    together = predictor.predict_proba(later)
    assert together[:, 1].tolist() == [0.5, 0.9, 0.5]
    for r in range(3):
        assert_array_equal(predictor.predict_proba(later.iloc[[r]])[0], together[r])


def test_a_model_that_needs_all_its_columns_is_refused_by_name():
    X, y = data()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(ColumnTransformer([("all", StandardScaler(), ["a", "b", "c"])]), LogisticRegression())
    predictor = LocalPredictor(model).fit(table, y)
    with pytest.raises(InvalidInput, match=r"could not be trained on the columns \['a', 'b'\] alone"):
        predictor.predict_proba(table, masks("ab")[0])


def test_threads_share_a_small_cache(monkeypatch):
    X, y = data()
    subsets = masks("a", "b", "c", "ab", "ac", "bc")
    predictor = LocalPredictor(DecisionTreeClassifier(max_depth=2), max_models=2).fit(X, y)
    # Quick training, so that the threads meet in the cache.
    monkeypatch.setattr(predictor, "_trained", lambda columns: columns.tolist())

    def ask(start):
        for k in range(start, start + 3000):
            assert predictor._local_model(subsets[k % 6]) == np.flatnonzero(subsets[k % 6]).tolist()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(ask, range(4)))  # raises what a thread raised
    finally:
        sys.setswitchinterval(interval)
    assert len(predictor._models) == 2


def test_frames_stay_frames():
    X, y = data()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    predictor = LocalPredictor(LogisticRegression()).fit(table, y)
    predictor.predict_proba(table, masks("ac")[0])
    model = predictor._local_model(masks("ac")[0])
    assert model.feature_names_in_.tolist() == ["a", "c"]
