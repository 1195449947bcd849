"""The real tables: shapes, labels, types and missing cells as published."""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain

import numpy as np
import pandas as pd
import pytest

from askwise.datasets import Dataset, load, names, sources, uci
from askwise.datasets.home import data_home
from askwise.datasets.tables import table_digest
from askwise.errors import AskwiseError, InvalidInput

FILES_OF = {
    "heart": [sources.HEART, *sources.HEART_PRICES, sources.HEART_DELAYS],
    "hepatitis": [sources.HEPATITIS, *sources.HEPATITIS_PRICES],
    "bupa": [sources.BUPA, *sources.BUPA_PRICES],
    "yeast": [sources.YEAST],
    "cirrhosis": [sources.CIRRHOSIS],
    "diabetes130": [sources.DIABETES],
}


def load_or_skip(name: str, **options: object) -> Dataset:
    """Skip where a file is neither here nor to be had; a file that is here must load."""
    here = all((data_home() / file.path).exists() for file in FILES_OF.get(name, []))
    try:
        return load(name, **options)
    except AskwiseError as error:
        if here:
            raise
        pytest.skip(f"no data for {name}: {error}")


def holds_strings(column: pd.Series) -> bool:
    return all(isinstance(cell, str) for cell in column)


def prices_now(data: Dataset, *acquired: str) -> dict[str, float]:
    """Price of each feature once the features `acquired` are had."""
    assert data.prices is not None
    columns = list(data.X.columns)
    mask = np.array([[name in acquired for name in columns]])
    return dict(zip(columns, data.prices.resolve(columns).now(mask)[0].round(2).tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "shape", "labels", "missing"),
    [
        ("wine", (178, 13), {0: 59, 1: 71, 2: 48}, 0),
        ("breast_cancer", (569, 30), {"malignant": 212, "benign": 357}, 0),
        ("heart", (303, 13), {0: 164, 1: 139}, 6),
        ("hepatitis", (155, 19), {"die": 32, "live": 123}, 167),
        ("bupa", (345, 5), {0: 169, 1: 176}, 0),
        ("cirrhosis", (418, 17), {"C": 232, "D": 161, "CL": 25}, 1033),
        (
            "yeast",
            (1484, 8),
            {
                **{"CYT": 463, "NUC": 429, "MIT": 244, "ME3": 163, "ME2": 51},
                **{"ME1": 44, "EXC": 35, "VAC": 30, "POX": 20, "ERL": 5},
            },
            0,
        ),
    ],
)
def test_facts(name, shape, labels, missing):
    data = load_or_skip(name)
    assert data.name == name
    assert data.X.shape == shape
    assert Counter(data.y.tolist()) == labels
    assert data.X.isna().to_numpy().sum() == missing
    assert isinstance(data.X.index, pd.RangeIndex)
    assert data.row_groups is None
    assert data.description


def test_digits_are_64_pixels():
    data = load("digits")
    assert data.X.shape == (1797, 64)
    assert list(data.X.columns[:2]) == ["pixel_0_0", "pixel_0_1"]
    assert set(data.y.tolist()) == set(range(10))


def test_breast_cancer_groups_cover_every_column_once():
    data = load("breast_cancer")
    assert data.groups is not None
    assert len(data.groups) == 10
    assert data.groups["concave points"] == ["mean concave points", "concave points error", "worst concave points"]
    assert sorted(chain.from_iterable(data.groups.values())) == sorted(data.X.columns)


@pytest.mark.parametrize("name", ["heart", "hepatitis", "bupa", "yeast", "wine", "breast_cancer", "digits"])
def test_numeric_tables_hold_only_floats(name):
    assert set(load_or_skip(name).X.dtypes.astype(str)) == {"float64"}


def test_heart_misses_only_ca_and_thal():
    data = load_or_skip("heart")
    assert data.X.isna().sum()[lambda count: count > 0].to_dict() == {"ca": 4, "thal": 2}


def test_cirrhosis_has_strings_and_floats_and_no_leak():
    X = load_or_skip("cirrhosis").X
    text = ["Drug", "Sex", "Ascites", "Hepatomegaly", "Spiders", "Edema"]
    assert not {"ID", "N_Days", "Status"} & set(X.columns)
    assert all(holds_strings(X[name].dropna()) for name in text)
    assert set(X.drop(columns=text).dtypes.astype(str)) == {"float64"}
    assert X.notna().all(axis=1).sum() == 276


def test_diabetes():
    data = load_or_skip("diabetes130")
    X = data.X
    assert X.shape == (101_766, 47)
    assert data.y.sum() == 46_902
    assert data.row_groups is not None
    assert len(np.unique(data.row_groups)) == 71_518
    assert "None" in set(X["max_glu_serum"])
    assert not X["A1Cresult"].isna().any()
    assert X["weight"].isna().mean() > 0.96
    assert holds_strings(X["admission_type_id"])
    assert X["num_medications"].dtype == float
    assert X.notna().all(axis=1).sum() == 1043
    start = time.process_time()
    table_digest(X)
    assert time.process_time() - start < 2  # every load verifies it


def test_the_label_of_diabetes_can_be_an_early_return():
    """On a few rows, since reading the table takes seconds."""
    outcome = pd.Series(["NO", "<30", ">30", "NO"])
    assert uci._readmitted(outcome, "readmitted").tolist() == [0, 1, 1, 0]
    assert uci._readmitted(outcome, "within_30_days").tolist() == [0, 1, 0, 0]


def test_heart_prices_and_discounts():
    data = load_or_skip("heart")
    alone = prices_now(data)
    assert [alone[name] for name in ("age", "chol", "thal", "ca")] == [1.00, 7.27, 102.90, 100.90]
    assert prices_now(data, "chol")["fbs"] == 3.10
    assert prices_now(data, "fbs")["chol"] == 5.17
    assert prices_now(data, "thalach")["thal"] == 1.00
    after_exercise = prices_now(data, "oldpeak")
    assert after_exercise["exang"] == after_exercise["slope"] == 1.00
    assert after_exercise["thalach"] == 102.90


@pytest.mark.parametrize(
    ("name", "first", "second", "price"),
    [("hepatitis", "sgot", "protime", 6.20), ("bupa", "mcv", "gammagt", 7.76), ("bupa", "gammagt", "mcv", 5.17)],
)
def test_blood_is_drawn_once(name, first, second, price):
    data = load_or_skip(name)
    assert prices_now(data, first)[second] == price
    assert prices_now(data)[second] == round(price + 2.10, 2)


def test_repr_says_what_is_in_it():
    assert repr(load_or_skip("heart")) == (
        "Dataset('heart': 303 rows, 13 features, 2 classes, 6 missing cells, with prices)"
    )


def test_names_are_sorted_and_all_known():
    assert names() == sorted(names())
    assert {*FILES_OF, "wine", "breast_cancer", "digits"} == set(names())


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("iris", {}, "no data set 'iris'.*wine"),
        (["wine"], {}, r"name must be a string, .*; got \['wine'\]"),
        ("diabetes130", {"target": ["readmitted"]}, r"target must be .*; got \['readmitted'\]"),
        ("wine", {"target": "x"}, "'wine' has no option 'target'; it has no options"),
        ("diabetes130", {"goal": 1}, "no option 'goal'; its options are: target"),
        ("diabetes130", {"target": "ever"}, "target must be 'readmitted' or 'within_30_days'; got 'ever'"),
    ],
)
def test_wrong_names_and_options_are_refused(name, options, said):
    with pytest.raises(InvalidInput, match=said):
        load(name, **options)


def test_every_file_has_its_own_digest():
    files = [file for files in FILES_OF.values() for file in files]
    assert len({file.digest for file in files}) == len(sources.DIGESTS) == 13
    assert all(len(file.digest) == 64 for file in files)
