"""What our classifiers must refuse in words instead of taking it for something else."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from askwise.errors import InvalidInput
from askwise.trees import FuzzyTreeClassifier, RuleListClassifier, SubsetCartClassifier


def patients():
    X = pd.DataFrame({"age": [30.0, 64, 71, 45, 52, 60], "smoker": ["no", "yes", "no", "yes", "no", "no"]})
    return X, np.array(["well", "ill", "ill", "ill", "well", "well"], dtype=object)


def test_a_row_without_a_label_is_named():
    cases: list[Any] = [None, np.nan, pd.NA]
    for missing in cases:
        models: list[Any] = [
            FuzzyTreeClassifier(),
            SubsetCartClassifier(),
            RuleListClassifier([({"age": (50, None)}, None)]),
        ]
        for model in models:
            X, y = patients()
            y[3] = missing
            with pytest.raises(InvalidInput, match=r"y contains NaN \(row 3\)"):
                model.fit(X[["age"]], y)
            with pytest.raises(InvalidInput, match=r"y contains NaN \(row 3\)"):
                model.fit(X[["age"]], pd.Series(y, dtype="string"))


def test_a_missing_number_is_no_class_of_a_rule_list():
    X, _ = patients()
    with pytest.raises(InvalidInput, match=r"y contains NaN \(row 1\)"):
        RuleListClassifier([({"age": (50, None)}, 1.0)]).fit(X, [0.0, np.nan, 1.0, 1.0, 0.0, 0.0])


def test_a_rule_list_refuses_what_are_no_class_labels():
    for y in [np.linspace(0, 1, 6), np.tile(["a", "b"], (6, 1)), None, 3]:
        X, _ = patients()
        with pytest.raises(ValueError, match=r"label type|1d array"):
            RuleListClassifier([]).fit(X, y)


def test_rules_that_mean_nothing_are_refused():
    cases: list[Any] = [
        (None, "rules must be a list of pairs"),
        ({"age": 3}, "rules must be a list of pairs"),
        (iter([({"age": 3}, "ill")]), "rules must be a list of pairs"),
        ([({"age": []}, "ill")], "rule 0: a condition must be"),
        ([({"age": range(3)}, "ill")], r"rule 0: a condition must be .* got range\(0, 3\)"),
        ([({"age": np.array([1, 2])}, "ill")], "rule 0: a condition must be"),
        ([({"age": {"low": 1}}, "ill")], "rule 0: a condition must be"),
        ([({"age": [[1]]}, "ill")], "rule 0: a condition must be"),
        ([({"age": 3}, ["ill"])], "outcome of rule 0 must be a class"),
        ([({"day": (0, None)}, "ill")], "rule 0 gives an interval for 'day', which does not hold numbers"),
        ([({"code": (0, None)}, "ill")], "rule 0 gives an interval for 'code', which does not hold numbers"),
    ]
    for rules, message in cases:
        X, y = patients()
        X = X.assign(day=pd.Timestamp("2020-01-01"), code=["1", "2", "3", "4", "5", "6"])
        with pytest.raises(InvalidInput, match=message):
            RuleListClassifier(rules).fit(X, y)


def test_the_bounds_of_an_interval_may_be_numpy_numbers():
    X, y = patients()
    model = RuleListClassifier([({"age": (np.int64(50), np.float32(64))}, "ill")], default="well").fit(X, y)
    assert np.flatnonzero(model.predict(X) == "ill").tolist() == [1, 4, 5]


def test_an_interval_takes_numbers_of_every_kind():
    for kind in ["category", "object", "Float64", "bool"]:
        X, y = patients()
        X["age"] = (X["age"] > 50).astype(int).astype(kind)
        model = RuleListClassifier([({"age": (0.5, None)}, "ill")], default="well").fit(X, y)
        assert np.flatnonzero(model.predict(X) == "ill").tolist() == [1, 2, 4, 5]


def test_text_in_the_place_of_a_number_is_named_in_predict_too():
    X, y = patients()
    model = RuleListClassifier([({"age": (50, None)}, "ill")]).fit(X, y)
    with pytest.raises(InvalidInput, match="Column 'age' must hold numbers, as in fit"):
        model.predict(X.assign(age="old"))


def test_two_columns_of_one_name_are_refused():
    X, y = patients()
    with pytest.raises(InvalidInput, match="two columns named 'age'"):
        RuleListClassifier([({"age": 3}, "ill")]).fit(X.set_axis(["age", "age"], axis=1), y)


def test_a_t_norm_that_is_no_word_is_refused():
    X, y = patients()
    with pytest.raises(InvalidInput, match="t_norm must be"):
        FuzzyTreeClassifier(t_norm=["product"]).fit(X[["age"]], y)  # type: ignore[arg-type]


def test_wrong_lengths_are_told_by_the_name_of_the_parameter():
    X, y = patients()
    for tree in (FuzzyTreeClassifier(), SubsetCartClassifier()):
        with pytest.raises(InvalidInput, match=f"y must hold one label per row of X: X has {len(X)} rows and y 2"):
            tree.fit(X[["age"]], y[:2])
        with pytest.raises(InvalidInput, match=f"sample_weight must hold one number per row of X, {len(X)} in all"):
            tree.fit(X[["age"]], y, sample_weight=np.ones(2))
