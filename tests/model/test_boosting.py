"""Histogram gradient boosting as arrays: the model's own answers, for several models at once."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier

from askwise.model.fast.boosting import BoostedTrees, takes_part

X, y = load_wine(return_X_y=True)


def boosted(labels, rows=slice(None), **options):
    return HistGradientBoostingClassifier(max_iter=20, random_state=0, **options).fit(X[rows], labels[rows])


def test_answers_are_those_of_the_models_with_missing_and_extreme_cells():
    cells = X.copy()
    cells[::5, 3] = np.nan
    cells[1::5, 7] = 1e30
    for labels in (y, (y == 1).astype(int)):
        trained_with_missing = HistGradientBoostingClassifier(max_iter=20).fit(cells, labels)
        models = [boosted(labels), boosted(labels, slice(None, None, 2)), trained_with_missing]
        assert all(takes_part(model) for model in models)
        expected = np.hstack([model.predict_proba(cells) for model in models])
        assert_allclose(BoostedTrees(models)(cells), expected, atol=1e-12)


def test_a_model_that_learned_nothing_is_one_leaf():
    model = boosted(y, min_samples_leaf=len(y))
    assert_allclose(BoostedTrees([model])(X[:3]), model.predict_proba(X[:3]), atol=1e-12)


def test_models_that_are_asked_by_themselves():
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(
        kind=pd.Categorical(np.where(X[:, 0] > 13, "strong", "light"))
    )
    categorical = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(table, y)
    large = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=200, min_samples_leaf=1)
    many = np.random.default_rng(0).normal(size=(3000, 2))
    large.fit(many, (many.sum(axis=1) * 50 % 2).astype(int))
    assert not takes_part(categorical)
    assert not takes_part(large)
    assert not takes_part(object())
