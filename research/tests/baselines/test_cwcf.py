"""CWCF: it buys what is worth its price, stops by itself, and its Q of a class is that class's probability less one."""

from typing import Any

import numpy as np
import pytest
from tests.made import holed_numbers

from askwise.datasets import make_gaussian
from askwise.stopping import Stopping
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.cwcf import CWCF

torch = pytest.importorskip("torch")

FAST: dict[str, Any] = {
    "hidden": 32,
    "pretrain_updates": 150,
    "n_episodes": 2560,
    "updates_per_round": 5,
    "batch_size": 256,
    "learning_rate": 2e-3,
    "target_rate": 0.05,
}


def gaussian():
    return make_gaussian(1400, 6, 3, n_informative=4, random_state=1)


def fit(**options):
    data = gaussian()
    return CWCF(**{**FAST, **options}, random_state=0).fit(data.X[:1000], data.y[:1000])


def stopped(baseline, data):
    """Accuracy and features bought per case, when it stops by itself."""
    run = baseline.acquire(data.X[1000:], stop=baseline.stopping_)
    return float((run.predict() == data.y[1000:]).mean()), float((run.order >= 0).sum(axis=1).mean())


@pytest.fixture(scope="module")
def curve():
    """Baselines for cheap, expensive and very expensive features."""
    return [fit(cost_weight=weight) for weight in (0.01, 0.1, 2.0)]


def test_cost_against_accuracy_as_the_cost_weight_varies(curve):
    accuracy, bought = zip(*(stopped(baseline, gaussian()) for baseline in curve), strict=True)
    assert bought[0] > bought[1] + 0.5
    assert bought[1] > bought[2] == 0.0
    assert accuracy[0] > accuracy[1] > accuracy[2] + 0.2
    assert accuracy[0] > gaussian().best_accuracy() - 0.06


def test_the_number_of_features_differs_from_case_to_case(curve):
    run = curve[1].acquire(gaussian().X[1000:], stop=curve[1].stopping_)
    assert len(np.unique((run.order >= 0).sum(axis=1))) > 1
    assert isinstance(curve[1].stopping_, Stopping)


def test_without_its_own_stop_it_spends_the_budget(curve):
    run = curve[2].acquire(gaussian().X[1000:], budget=4)
    assert ((run.order >= 0).sum(axis=1) == 4).all()


def test_while_it_would_not_stop_it_buys_signal(curve):
    run = curve[1].acquire(gaussian().X[1000:], stop=curve[1].stopping_)
    names = np.array(curve[1].features_)[run.order[run.order >= 0]]
    assert np.char.startswith(names.astype(str), "signal").mean() > 0.95


def test_probabilities_are_one_plus_the_q_of_the_classes(curve):
    X = gaussian().X[1000:].to_numpy()
    mask = np.random.default_rng(0).random(X.shape) < 0.5
    classify, _ = curve[1]._q(EncodedRows(X).masked(mask))
    clipped = np.maximum(1 + classify, 1e-3)
    np.testing.assert_allclose(curve[1].predictor_.predict_proba(X, mask), clipped / clipped.sum(axis=1, keepdims=True))
    np.testing.assert_allclose((1 + classify).sum(axis=1).mean(), 1.0, atol=0.03)  # learned, not imposed


def test_probabilities_are_near_the_exact_ones_where_it_goes(curve):
    data = gaussian()
    run = curve[1].acquire(data.X[1000:], budget=4)
    for t in range(5):
        exact = data.exact_proba(data.X[1000:], run.mask_after(t))
        assert np.abs(run.proba[:, t] - exact).mean() < 0.06


def test_an_expensive_feature_is_bought_last():
    """Two copies of the same information: the cheap one is bought, at any scale of the prices."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    signal = y + 0.3 * rng.standard_normal(600)
    X = np.column_stack([signal, signal, rng.standard_normal(600)])
    short = {**FAST, "n_episodes": 1280}
    for scale in (1.0, 1000.0):
        baseline = CWCF(**short, cost_weight=0.1, costs=scale * np.array([8.0, 1.0, 1.0]), random_state=0).fit(X, y)
        run = baseline.acquire(X, stop=baseline.stopping_)
        assert (run.order[:, 0] == 1).all()
        assert (run.order[:, 1:] == -1).mean() > 0.9


def test_missing_cells_are_never_bought_in_training_or_after():
    X, y = holed_numbers(150)
    short = {**FAST, "n_episodes": 200}
    baseline = CWCF(**short, costs=[0, 1, 1, 1], random_state=0).fit(X, y)
    run = baseline.acquire(X)
    np.testing.assert_array_equal(run.mask_after(run.n_steps), ~np.isnan(X))


def test_where_all_features_are_free_only_the_classes_are_learned():
    data = gaussian()
    baseline = CWCF(**{**FAST, "n_episodes": 64}, costs=np.zeros(6), random_state=0).fit(data.X[:300], data.y[:300])
    assert (baseline.acquire(data.X[1000:], budget=0).predict() == data.y[1000:]).mean() > 0.6
