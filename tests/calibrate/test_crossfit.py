"""Cross-fitting: what a fold was fitted on, and where there are no folds."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from askwise import DynamicFeatureSelector, wrap
from askwise.policy import Greedy, Random


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


def selector(estimator, **options):
    return DynamicFeatureSelector(estimator, epistemic=None, random_state=0, progress=False, **options)


def test_each_fold_is_fitted_on_the_other_rows_only():
    X, y = data()
    owner = selector(LogisticRegression().fit(X, y)).fit(X, y)
    folds = owner._cross_fit()
    assert len(folds) == 5
    assert_array_equal(np.sort(np.concatenate([fold.held for fold in folds])), np.arange(len(X)))
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(X)), fold.held)
        assert_array_equal(fold.beliefs.predictor.training_rows_.values, X[rest])
        assert_array_equal(fold.beliefs.predictor.training_labels_, y[rest])
        own = LogisticRegression().fit(X[rest], y[rest])
        assert_allclose(fold.beliefs.predictor.estimator_.coef_, own.coef_)
        assert fold.beliefs.epistemic is None
        assert fold.policy.value_.predictor is fold.beliefs.predictor  # not the pool that holds the rows
    assert len(owner._cross_fit(n_rows=30)) == 2  # 24 rows each
    again = owner._cross_fit()
    for fold, other in zip(folds, again, strict=True):
        assert_array_equal(fold.held, other.held)


def test_the_user_s_model_and_the_policy_in_use_are_not_changed():
    X, y = data()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    frozen = FrozenEstimator(model)
    owner = selector(frozen).fit(X, y)
    before, policy = model.predict_proba(X), owner.policy_
    folds = owner._cross_fit()
    assert_array_equal(model.predict_proba(X), before)
    assert owner.policy_ is policy
    for fold in folds:
        assert not np.allclose(fold.beliefs.predictor.estimator_[-1].coef_, model[-1].coef_)


def test_a_frozen_last_step_is_fitted_again():
    X, y = data()
    model = make_pipeline(StandardScaler().fit(X), FrozenEstimator(LogisticRegression().fit(X, y))).fit(X, y)
    fold = selector(model).fit(X, y)._cross_fit(n_rows=1)[0]
    assert not np.allclose(fold.beliefs.predictor.estimator_[-1].coef_, model[-1].estimator.coef_)


def test_a_policy_that_is_slow_to_fit_is_used_as_it_is():
    X, y = data()

    class Slow(Random):
        refits = False

    for policy, same in ((Slow(0), True), (Random(0), False), (Greedy(), False)):
        owner = selector(LogisticRegression(), policy=policy).fit(X, y)
        assert (owner._cross_fit(n_rows=1)[0].policy is owner.policy_) == same


def test_models_that_cannot_be_fitted_again_have_no_folds():
    X, y = data()
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    models = {
        "callable": lambda table: np.tile([0.4, 0.6], (len(table), 1)),
        "wrapped": wrap(forest.predict_proba, [0, 1]),
        "frozen inside": CalibratedClassifierCV(FrozenEstimator(forest), ensemble=False).fit(X, y),
        "too few rows": KNeighborsClassifier(110).fit(X, y),
    }
    for name, model in models.items():
        assert selector(model).fit(X, y)._cross_fit() is None, name
    rare = (np.arange(len(y)) < 3).astype(int)
    assert selector(LogisticRegression()).fit(X, rare)._cross_fit() is None
    sparse = np.column_stack([X, np.where(np.arange(len(y)) == 7, 1.0, np.nan)])
    tree = selector(RandomForestClassifier(5, random_state=0))
    assert tree.fit(sparse, y)._cross_fit() is None


def test_rows_of_a_class_with_fewer_rows_than_folds_are_not_held_out():
    X, y = data()
    rare = np.where(np.arange(len(y)) < 3, 2, y)
    folds = selector(LogisticRegression()).fit(X, rare)._cross_fit()
    held = np.sort(np.concatenate([fold.held for fold in folds]))
    np.testing.assert_array_equal(held, np.arange(3, len(y)))


def test_a_row_with_a_category_of_its_own_is_not_held_out():
    X, y = data()
    table = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(np.arange(len(y)) % 2, "odd", "even"))
    table.loc[5, "kind"] = "singular"
    model = make_pipeline(OneHotEncoder(), LogisticRegression())
    folds = selector(model).fit(table[["kind"]], y)._cross_fit()
    assert 5 not in np.concatenate([fold.held for fold in folds])
    assert sum(len(fold.held) for fold in folds) == len(y) - 1


def test_rows_of_rare_classes_are_never_held_out():
    X, y = data()
    rare = np.where(np.arange(len(y)) < 3, 2, y)
    folds = selector(LogisticRegression()).fit(X, rare)._cross_fit()
    assert_array_equal(np.sort(np.concatenate([fold.held for fold in folds])), np.arange(3, len(y)))
    for fold in folds:
        assert fold.beliefs.predictor.classes_.tolist() == [0, 1, 2]
