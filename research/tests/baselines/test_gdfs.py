"""GDFS: learns which feature to ask next, under the Concrete relaxation, with prices and missing cells."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from askwise.datasets import make_switch
from askwise_bench.baselines.gdfs import GDFS
from askwise_bench.baselines.masked_network import held_out_rows, train_with_patience

pytest.importorskip("torch")

KIND, GAUSSIAN = GDFS, {"n_samples": 600, "n_features": 6, "n_informative": 3}
FAST: dict[str, Any] = {"hidden": (32,), "pretrain_epochs": 15, "epochs": 12, "patience": 3, "batch_size": 64}
BRIEF: dict[str, Any] = {"hidden": (16,), "pretrain_epochs": 2, "epochs": 1}  # where what is learned does not matter


def random_order_accuracy(baseline, X, y, n_known, rng):
    mask = rng.random(X.shape).argsort(axis=1).argsort(axis=1) < n_known
    return float((baseline.predict(X.where(mask)) == y).mean())


def test_beats_a_random_order_at_every_budget(gaussian, fitted):
    X, y = gaussian.sample(1500, random_state=1)
    run, rng = fitted.acquire(X), np.random.default_rng(0)
    for n_known in range(1, 5):
        accuracy = float((run.predict(n_known) == y).mean())
        assert accuracy > random_order_accuracy(fitted, X, y, n_known, rng) + 0.02
    assert float((run.predict(6) == y).mean()) >= random_order_accuracy(fitted, X, y, 6, rng)


def test_an_epoch_of_a_small_table_has_several_steps():
    torch = pytest.importorskip("torch")
    network, sizes = torch.nn.Linear(1, 1), []

    def loss(batch):
        sizes.append(len(batch))
        return network(batch[:, None].float()).mean()

    for n_rows, given, used in ((20, None, 20), (114, None, 32), (200, None, 50), (2000, None, 128), (114, 60, 60)):
        sizes.clear()
        options = SimpleNamespace(learning_rate=0.1, batch_size=given, patience=0, progress=False)
        train_with_patience([network], torch.arange(n_rows), loss, lambda: 0.0, options, epochs=1, description="")
        assert max(sizes) == used


def test_informative_features_come_first(gaussian, fitted):
    X, _ = gaussian.sample(500, random_state=2)
    order = fitted.acquire(X).order
    signal = [name.startswith("signal") for name in fitted.features_]
    assert np.array(signal)[order[:, 0]].all()
    assert np.array(signal)[order[:, :3]].mean() > 0.9


def test_choice_depends_on_what_is_known():
    data = make_switch(800, n_settings=2, block_size=1, n_noise=0, random_state=0)
    baseline = GDFS(**FAST, max_features=3, random_state=0).fit(data.X, data.y)
    order = baseline.acquire(data.X, budget=2).order
    assert len(np.unique(order[:, 1])) > 1


def test_answers_every_mask_beyond_the_trained_number(gaussian):
    baseline = GDFS(**BRIEF, max_features=2, random_state=0).fit(gaussian.X, gaussian.y)
    run = baseline.acquire(gaussian.X[:20])
    assert (np.sort(run.order, axis=1) == np.arange(6)).all()
    np.testing.assert_allclose(run.proba.sum(axis=2), 1.0)


def test_probability_is_divided_by_the_price(gaussian):
    costs = np.array([1.0, 2.0, 4.0, 1.0, 1.0, 0.5])
    plain, priced = (GDFS(**BRIEF, costs=c, random_state=0).fit(gaussian.X, gaussian.y) for c in (None, costs))
    nothing = gaussian.X[:1] * np.nan
    assert plain.ranking(nothing).max() == 1.0
    np.testing.assert_allclose(priced.ranking(nothing), plain.ranking(nothing) / costs)


def test_free_features_are_known_from_the_start(gaussian):
    baseline = GDFS(**BRIEF, costs=[0, 1, 1, 1, 1, 0], random_state=0).fit(gaussian.X, gaussian.y)
    assert set(baseline.acquire(gaussian.X[:5]).order[:, :2].ravel()) == {0, 5}
    assert GDFS(**BRIEF, costs=np.zeros(6), random_state=0).fit(gaussian.X, gaussian.y).predict(
        gaussian.X[:3]
    ).shape == (3,)


def test_missing_cells_are_trained_around_and_never_bought(gaussian):
    X = gaussian.X.mask(np.random.default_rng(0).random(gaussian.X.shape) < 0.3)
    X.iloc[0] = np.nan
    baseline = GDFS(**BRIEF, random_state=0).fit(X, gaussian.y)
    order = baseline.acquire(X[:100]).order
    rows, steps = np.nonzero(order >= 0)
    assert X.notna().to_numpy()[:100][rows, order[rows, steps]].all()
    assert ((order >= 0).sum(axis=1) == X.notna().to_numpy()[:100].sum(axis=1)).all()


def test_a_group_is_bought_at_once(gaussian):
    groups = {"panel": list(gaussian.X.columns[:2])}
    baseline = GDFS(**BRIEF, groups=groups, random_state=0).fit(gaussian.X, gaussian.y)
    assert baseline.acquire(gaussian.X[:10]).order.shape[1] == 5
    assert baseline.ranking(gaussian.X[:4] * np.nan).shape == (4, 5)


def test_same_seed_same_numbers_and_clone(gaussian):
    one = GDFS(**BRIEF, random_state=0).fit(gaussian.X, gaussian.y)
    again = clone(one).fit(gaussian.X, gaussian.y)
    np.testing.assert_array_equal(again.predict_proba(gaussian.X), one.predict_proba(gaussian.X))
    nothing = gaussian.X[:3] * np.nan
    np.testing.assert_array_equal(again.ranking(nothing), one.ranking(nothing))


def test_held_out_rows_are_stratified_and_disjoint():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    rows, judged = held_out_rows(y, 0.2, np.random.default_rng(0))
    assert sorted([*rows, *judged]) == list(range(100))
    assert np.bincount(y[judged]).tolist() == [10, 6, 4]
