"""When buying ends before the money does."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.acquire import Confidence, Stopping

NO_STATE: Any = None  # confidence looks at the prediction only


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(150, 4))
    y = (2 * X[:, 0] + X[:, 1] > 0).astype(int)
    return DynamicFeatureSelector(LogisticRegression(C=10), random_state=0, progress=False).fit(X, y), X


def test_confidence_stops_at_the_threshold_itself():
    proba = np.array([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9], [0.95, 0.05]])
    assert Confidence(0.75).stops(NO_STATE, proba).tolist() == [False, True, True, True]
    assert Confidence(1.0).stops(NO_STATE, proba).tolist() == [False] * 4


def test_rows_stop_as_soon_as_they_are_confident_and_not_before(fitted):
    selector, X = fitted
    run = selector.acquire(X, stop=Confidence(0.9))
    sure = run.proba.max(axis=2) >= 0.9
    bought = (run.order >= 0).sum(axis=1)
    assert len(set(bought)) > 1
    for r in range(len(X)):
        assert not sure[r, : bought[r]].any()
        assert sure[r, bought[r]] or bought[r] == 4


def test_confident_rows_are_a_beginning_of_the_unstopped_ones(fitted):
    selector, X = fitted
    run, full = selector.acquire(X, stop=Confidence(0.9)), selector.acquire(X)
    bought = run.order >= 0
    assert_array_equal(run.order[bought], full.order[:, : run.n_steps][bought])


def test_a_threshold_that_is_reached_at_once_buys_nothing(fitted):
    selector, X = fitted
    assert selector.acquire(X[:5], stop=Confidence(0.01)).n_steps == 0


def test_a_threshold_that_is_never_reached_spends_the_budget(fitted):
    selector, X = fitted
    assert_array_equal(selector.acquire(X[:5], budget=3, stop=Confidence(1.0)).spent_after(-1), [3.0] * 5)


def test_money_ends_it_too(fitted):
    selector, X = fitted
    run = selector.acquire(X, budget=1, stop=Confidence(0.9))
    assert (run.spent_after(-1) <= 1).all()


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, np.nan])
def test_thresholds_that_are_no_probabilities(threshold):
    with pytest.raises(InvalidInput, match=r"threshold must be a probability in \(0, 1\]"):
        Confidence(threshold)


@pytest.mark.parametrize("stop", [0.9, "confidence", Confidence])
def test_what_is_no_stopping_rule(fitted, stop):
    selector, X = fitted
    with pytest.raises(InvalidInput, match=r"stop must be .*Confidence\(0.95\)"):
        selector.acquire(X[:2], stop=stop)


def test_a_rule_must_say_when():
    with pytest.raises(NotImplementedError):
        Stopping().stops(NO_STATE, np.zeros((1, 2)))
