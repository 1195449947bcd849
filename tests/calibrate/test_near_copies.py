"""Copies with noise of training rows, or of each other, are no calibration rows; new rows of any table are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector
from askwise.calibrate.unseen import check_new_rows
from askwise.errors import InvalidInput
from askwise.table.schema import read_table

RNG = np.random.default_rng(0)
TABLES = {
    "wine": load_wine().data,
    "iris": load_iris().data,  # few columns, rounded, with duplicates
    "digits": load_digits().data,
    "cancer": load_breast_cancer().data,
    "one feature": RNG.normal(size=(300, 1)),
    "one rounded feature": RNG.normal(size=(300, 1)).round(1),
    "few rows": RNG.normal(size=(12, 3)),
    "discrete": RNG.integers(0, 3, size=(500, 4)).astype(float),
    "repeated rows": np.repeat(RNG.normal(size=(60, 5)), 4, axis=0),
    "long tails": np.exp(3 * RNG.normal(size=(400, 2))),
    "missing cells": np.where(RNG.random((300, 6)) < 0.4, np.nan, RNG.normal(size=(300, 6))),
    "mostly zero": np.where(RNG.random((400, 5)) < 0.8, 0.0, RNG.normal(size=(400, 5))),
}


@pytest.mark.parametrize("name", list(TABLES))
def test_new_rows_are_not_refused(name):
    schema, rows = read_table(TABLES[name], None)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order, n = rng.permutation(len(rows)), int(len(rows) * rng.choice([0.5, 0.6, 0.7, 0.8]))
        check_new_rows(rows.take(order[n:]), rows.take(order[:n]), schema, "X_cal", distinct=True)


@pytest.mark.parametrize("name", ["wine", "digits", "cancer", "long tails", "missing cells"])
@pytest.mark.parametrize("noise", [1e-4, 1e-6])
def test_near_copies_are_refused(name, noise):
    schema, rows = read_table(TABLES[name], None)
    rng = np.random.default_rng(0)
    training, fresh = rows.take(slice(0, None, 2)), rows.take(slice(1, None, 2)).take(slice(60))

    def noisy(values):
        return fresh.with_values(values + noise * rng.normal(size=values.shape))

    copies = training.values[:30]
    for given in (copies, np.concatenate([fresh.values, copies[:15]])):
        with pytest.raises(InvalidInput, match=r"X_cal: \d+ of \d+ rows nearly, within .* equal rows given to fit"):
            check_new_rows(noisy(given), training, schema, "X_cal")
    with pytest.raises(InvalidInput, match=r"X_cal: \d+ of \d+ rows nearly, within .* repeat another one"):
        check_new_rows(noisy(np.concatenate([fresh.values] * 2)), training, schema, "X_cal", distinct=True)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 5, 10, 30])
def test_new_rows_of_a_narrower_population_are_not_refused(n_columns):
    rng = np.random.default_rng(n_columns)
    schema, training = read_table(rng.normal(size=(1000, n_columns)), None)
    narrow = training.with_values(rng.normal(scale=0.4, size=(1000, n_columns))).take(slice(300))
    check_new_rows(narrow, training, schema, "X_cal", distinct=True)


def test_categories_must_be_equal():
    n = 200
    table = pd.DataFrame({"a": RNG.normal(size=n), "b": RNG.normal(size=n), "kind": RNG.choice(list("xyz"), n)})
    schema, rows = read_table(table, None)
    near = rows.values[:50] + np.where(schema.is_category, 0.0, 1e-5)
    with pytest.raises(InvalidInput, match="equal rows given to fit"):
        check_new_rows(rows.with_values(near), rows, schema, "X_cal")
    near[:, schema.is_category] = (near[:, schema.is_category] + 1) % 3
    check_new_rows(rows.with_values(near), rows, schema, "X_cal")


def test_both_ways_to_give_calibration_rows_refuse_them():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], y[::2])
    owner = DynamicFeatureSelector(model, epistemic=None, random_state=0, progress=False)
    noisy = X[::2] + 1e-4 * np.random.default_rng(0).normal(size=X[::2].shape)
    with pytest.raises(InvalidInput, match=r"X_unseen: \d+ of 89 rows nearly"):
        owner.fit(X[::2], y[::2], X_unseen=noisy, y_unseen=y[::2])
    owner.fit(X[::2], y[::2])
    with pytest.raises(InvalidInput, match=r"X_cal: \d+ of 89 rows nearly"):
        owner.calibrate_stop(noisy, agreement=0.8)
    owner.calibrate_stop(X[1::2], agreement=0.8)
