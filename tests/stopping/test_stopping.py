"""When buying ends before the money does."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.stopping import Confidence, Stopping


def believing(proba) -> Any:
    """A state of which only the prediction is known, which is all that confidence looks at."""
    return SimpleNamespace(belief=SimpleNamespace(proba=np.array(proba)))


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(150, 4))
    y = (2 * X[:, 0] + X[:, 1] > 0).astype(int)
    return DynamicFeatureSelector(LogisticRegression(C=10), random_state=0, progress=False).fit(X, y), X


def test_confidence_stops_at_the_threshold_itself():
    state = believing([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9], [0.95, 0.05]])
    assert Confidence(0.75).stops(state).tolist() == [False, True, True, True]
    assert Confidence(1.0).stops(state).tolist() == [False] * 4


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


def test_a_session_stops_where_its_row_of_a_batch_does(fitted):
    selector, X = fitted
    run = selector.acquire(X[:6], stop=Confidence(0.9))
    for r in range(6):
        session = selector.start(stop=Confidence(0.9))
        bought = []
        while (suggestion := session.suggest()) is not None:
            bought.append(selector.features_.index(suggestion.feature))
            session.answer(suggestion.feature, X[r, bought[-1]])
        assert bought == [i for i in run.order[r] if i >= 0]
        # The case may go on all the same; what stops is the advice.
        if session.suggest() is None and len(bought) < 4:
            session.answer(next(name for name in selector.features_ if name not in session.known), 0.0)


def test_thresholds_that_are_no_probabilities():
    thresholds: list[Any] = [0, -0.1, 1.1, np.nan, "high"]
    for threshold in thresholds:
        with pytest.raises(InvalidInput, match=r"threshold must be a probability in \(0, 1\]"):
            Confidence(threshold)


def test_what_is_no_stopping_rule(fitted):
    selector, X = fitted
    for stop in (0.9, "confidence", Confidence):
        for ask in (lambda stop=stop: selector.acquire(X[:2], stop=stop), lambda stop=stop: selector.start(stop=stop)):
            with pytest.raises(InvalidInput, match=r"stop must be .*Confidence\(0.95\)"):
                ask()


def test_a_rule_must_say_when():
    with pytest.raises(NotImplementedError):
        Stopping().stops(believing([[0.5, 0.5]]))
