"""Two policies compared along whole trajectories on rows that the model has not seen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector
from askwise.calibrate.crossfit import Fold
from askwise.calibrate.horizons import MOST_CASES, Comparison, compared
from askwise.policy import Policy
from askwise.table.prices import as_prices


class InTurn(Policy):
    """The first feature first, or the last."""

    def __init__(self, sign=1):
        self.sign = sign

    def scores(self, state):
        return np.where(state.mask, -np.inf, -self.sign * np.arange(state.mask.shape[1]))


@pytest.fixture(scope="module")
def owner():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = (X[:, 0] + 0.2 * rng.normal(size=300) > 0).astype(int)
    made = DynamicFeatureSelector(
        LogisticRegression(), epistemic=None, calibration=None, random_state=0, progress=False
    )
    return made.fit(X, y)


def found_by(owner, costs=None, available=None):
    rows, y = owner.predictor_.training_rows_, owner.predictor_.training_labels_
    if available is not None:
        rows = rows.masked(np.tile(available, (len(rows), 1)))
    folds = [Fold(np.arange(part, len(rows), 2), owner.beliefs_, InTurn()) for part in (0, 1)]
    prices = owner.prices_ if costs is None else as_prices(costs).resolve(owner.features_)
    return compared(rows, y, folds, [InTurn(-1)] * 2, np.random.default_rng(0), prices=prices, risk_weight=0.0)


def test_the_policy_that_takes_the_right_feature_first_has_less_loss(owner):
    found = found_by(owner)
    assert found.horizons == (2, 3, 5)
    assert found.less.shape == (MOST_CASES, 3)
    assert found.pays
    assert found.less.mean(axis=0)[0] > 0.2


def test_a_loss_is_that_of_the_trajectory_at_that_horizon(owner):
    rows, y = owner.predictor_.training_rows_.take(np.arange(20)), owner.predictor_.training_labels_[:20]
    folds = [Fold(np.arange(20), owner.beliefs_, InTurn())]
    found = compared(rows, y, folds, [InTurn(-1)], np.random.default_rng(0), prices=owner.prices_, risk_weight=0.0).less
    at = np.random.default_rng(0).permutation(20)
    first, last = (
        -np.log(owner.with_policy(InTurn(sign)).acquire(rows.values[at], budget=3).proba[np.arange(20), 3, y[at]])
        for sign in (1, -1)
    )
    assert_allclose(found[:, 1], last - first, atol=1e-6)


def test_prices_do_not_count_and_free_features_are_not_counted(owner):
    assert_allclose(found_by(owner, [5, 1, 1, 1, 1, 1]).less, found_by(owner).less)
    free = found_by(owner, [0, 1, 1, 1, 1, 1])
    assert abs(free.mean) < found_by(owner).mean / 3  # both know the right feature from the start


def test_cases_that_run_out_of_features_keep_what_they_have(owner):
    found = found_by(owner, available=np.array([True, True, False, False, False, False]))
    assert_allclose(found.less[:, 0], 0, atol=1e-9)
    assert_allclose(found.less[:, 2], found.less[:, 0])


def test_it_pays_only_by_more_than_a_standard_error():
    rng = np.random.default_rng(0)
    assert not Comparison((2,), rng.normal(size=(50, 1)) - 0.1).pays
    assert not Comparison((2,), np.ones((1, 1))).pays  # one case has no standard error
    noisy = Comparison((2, 3), rng.normal(0.2, 1.0, size=(400, 2)))
    assert noisy.pays
    assert noisy.error == pytest.approx(1 / np.sqrt(2 * 400), rel=0.15)
