"""Rules written by a person: the first one that holds answers."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from askwise.errors import InvalidInput
from askwise.predict import RulePredictor
from askwise.trees.rule_list import RuleListClassifier


def patients():
    X = pd.DataFrame(
        {
            "age": [30, 64, 71, 45, 52, 60],
            "smoker": ["no", "yes", "no", "yes", None, "no"],
            "fever": [True, False, True, False, True, False],
            "dose": [0.5, 1.0, 1.5, np.nan, 2.0, 1.0],
        }
    )
    return X, np.array(["well", "ill", "ill", "ill", "well", "well"])


def fitted(rules, **options):
    X, y = patients()
    return RuleListClassifier(rules, **options).fit(X, y), X


def test_the_first_rule_that_holds_answers():
    model, X = fitted([({"age": (60, None)}, "ill"), ({"smoker": "no"}, "well")], default="ill")
    assert model.predict(X).tolist() == ["well", "ill", "ill", "ill", "ill", "well"]
    swapped, _ = fitted([({"smoker": "no"}, "well"), ({"age": (60, None)}, "ill")], default="ill")
    assert swapped.predict(X).tolist() == ["well", "ill", "well", "ill", "ill", "well"]
    assert_array_equal(model.classes_, ["ill", "well"])


def test_conditions():
    for conditions, holds in [
        ({"age": (45, 64)}, [1, 4, 5]),  # above the low bound, up to the high one
        ({"age": (None, 45)}, [0, 3]),
        ({"age": 45}, [3]),
        ({"age": [30, 71]}, [0, 2]),
        ({"smoker": {"yes", "no"}}, [0, 1, 2, 3, 5]),
        ({"fever": True}, [0, 2, 4]),
        ({"dose": (0.9, None)}, [1, 2, 4, 5]),  # a missing cell satisfies nothing
        ({"dose": 1}, [1, 5]),
        ({"age": (50, None), "smoker": "yes"}, [1]),
        ({"smoker": "sometimes"}, []),
    ]:
        model, X = fitted([(conditions, "ill")], default="well")
        assert np.flatnonzero(model.predict(X) == "ill").tolist() == holds


def test_outcomes_that_are_not_given_are_shares_of_the_rows_that_they_answer_for():
    model, X = fitted([({"fever": True}, None), ({"smoker": "yes"}, {"ill": 0.7, "well": 0.3})])
    assert_allclose(model.values_, [[1 / 3, 2 / 3], [0.7, 0.3]])
    assert_allclose(model.default_, [0, 1])  # the one row that no rule takes
    assert_allclose(model.predict_proba(X)[[0, 1, 5]], [[1 / 3, 2 / 3], [0.7, 0.3], [0.0, 1.0]])


def test_a_rule_that_answers_for_no_row_has_the_shares_of_all():
    model, _ = fitted([({"age": (99, None)}, None), ({"age": (None, 99)}, None)])
    assert_allclose(model.values_, [[0.5, 0.5], [0.5, 0.5]])
    assert_allclose(model.default_, [0.5, 0.5])


def test_columns_of_arrays_are_named_by_position():
    X = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    model = RuleListClassifier([({1: (5.5, None)}, 1)], default=0).fit(X, [0, 1, 1])
    assert model.predict(X).tolist() == [0, 1, 1]
    assert model.n_features_in_ == 2


def test_no_rules_at_all_is_the_default():
    model, X = fitted([])
    assert_allclose(model.predict_proba(X), np.full((6, 2), 0.5))
    predictor = RulePredictor(model).fit(*patients())
    assert_allclose(predictor.predict_proba(X), np.full((6, 2), 0.5))
    assert not predictor.candidates(X, np.zeros(4, bool)).any()


def test_it_is_an_ordinary_classifier():
    model, X = fitted([({"age": (60, None)}, "ill")])
    assert is_classifier(model)
    unfitted = clone(model)
    assert unfitted.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        unfitted.predict(X)
    assert 0 <= model.score(X, patients()[1]) <= 1
    assert_array_equal(model.feature_names_in_, X.columns)


def test_rules_that_are_refused():
    cases: list[Any] = [
        ([({"weight": (1, 2)}, "ill")], "rule 0 refers to 'weight'; the columns of X are .*'age'"),
        (
            [({"age": 3}, "ill"), ({"age": (1, 2)}, "dead")],
            r"rule 1 has the outcome 'dead'; the classes of y are \['ill",
        ),
        ([({"age": 3}, {"ill": 0.5, "well": 0.6})], "probabilities of rule 0 must be >= 0 and sum to one"),
        ([({"age": 3}, {"ill": -0.5, "well": 1.5})], "probabilities of rule 0 must be >= 0"),
        ([({"age": 3}, {"ill": "half", "well": 0.5})], "probabilities of rule 0 must be"),
        ([({"age": (5, 5)}, "ill")], r"rule 0: an interval must be \(low, high\) with low < high; got \(5, 5\)"),
        ([({"age": (5, 1)}, "ill")], "rule 0: an interval must be"),
        ([({"age": (1, 2, 3)}, "ill")], "rule 0: an interval must be"),
        ([({"age": ("a", "b")}, "ill")], "rule 0: an interval must be"),
        ([({"age": (np.nan, 2)}, "ill")], "rule 0: an interval must be"),
        ([({"smoker": (1, 2)}, "ill")], "rule 0 gives an interval for 'smoker', which does not hold numbers"),
        ([({"smoker": None}, "ill")], "rule 0 has a missing value as a condition on 'smoker'"),
        ([({"dose": [1.0, np.nan]}, "ill")], "rule 0 has a missing value as a condition on 'dose'"),
        ([({}, "ill")], "rule 0 has no conditions; give its outcome as `default`"),
        ([{"age": 3}], r"rule 0 must be a pair \(dict of conditions, outcome\)"),
        (["ab"], "rule 0 must be a pair"),
        ([({"age": 3},)], "rule 0 must be a pair"),
    ]
    for rules, message in cases:
        X, y = patients()
        with pytest.raises(InvalidInput, match=message):
            RuleListClassifier(rules).fit(X, y)


def test_a_default_that_is_no_class_is_refused():
    with pytest.raises(InvalidInput, match="default has the outcome 'dead'"):
        fitted([({"age": 3}, "ill")], default="dead")


def test_rows_and_labels_must_go_together():
    X, y = patients()
    with pytest.raises(InvalidInput, match="same number of rows, at least one; got 6, 5"):
        RuleListClassifier([]).fit(X, y[:5])
    with pytest.raises(InvalidInput, match="at least one; got 0, 0"):
        RuleListClassifier([]).fit(X[:0], y[:0])


def test_a_table_with_other_columns_is_refused():
    model, X = fitted([({"age": (60, None)}, "ill")], default="well")
    with pytest.raises(InvalidInput, match="4 columns"):
        model.predict(X[["age", "dose"]])
    with pytest.raises(InvalidInput, match="columns"):
        model.predict(X[["dose", "age", "smoker", "fever"]])


# In a rule predictor


def test_subsets_of_a_mixed_table():
    rules = [({"age": (60, None), "fever": True}, "ill"), ({"smoker": {"no"}}, "well"), ({"dose": (1, None)}, None)]
    model, X = fitted(rules, default="ill")
    predictor = RulePredictor(model).fit(*patients())
    complete = X.notna().all(axis=1)
    assert_allclose(predictor.predict_proba(X[complete]), model.predict_proba(X[complete]))
    assert_array_equal(predictor.predict_full(X), model.predict_proba(X))
    only_smoker = np.array([False, True, False, False])
    # The rule of non-smokers is whole and keeps its own value; for a smoker nothing is left but the prior.
    assert_allclose(predictor.predict_proba(X[:2], only_smoker), [[0.0, 1.0], [0.5, 0.5]])
    assert_array_equal(predictor.candidates(X[:1], only_smoker), [[True, False, True, False]])  # dose is never reached
    assert_array_equal(predictor.candidates(X[1:2], only_smoker), [[True, False, True, True]])


def test_conditions_that_the_rows_of_fit_contradict_are_refused_by_name():
    X, y = patients()
    interval = RuleListClassifier([({"fever": (0, 1)}, "ill")]).fit(X, y)
    with pytest.raises(InvalidInput, match="interval for 'fever', whose values are"):
        RulePredictor(interval).fit(X, y)
    text = RuleListClassifier([({"age": "old"}, "ill")]).fit(X, y)
    with pytest.raises(InvalidInput, match="gives the value 'old' for 'age'"):
        RulePredictor(text).fit(X, y)
