"""DIME: its values estimate the mutual information of a feature with the label given what is known."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from askwise.uncertainty import entropy
from askwise_bench.baselines.dime import DIME

pytest.importorskip("torch")

KIND, GAUSSIAN = DIME, {"n_samples": 800, "n_features": 6, "n_informative": 4}
FAST: dict[str, Any] = {
    "hidden": (32,),
    "pretrain_epochs": 20,
    "epochs": 60,
    "learning_rate": 4e-3,
    "patience": 3,
    "batch_size": 64,
}
BRIEF: dict[str, Any] = {"hidden": (16,), "pretrain_epochs": 2, "epochs": 2}  # where what is learned does not matter


def hidden_rows(X, n_known, seed=0):
    """The first rows with `n_known` random cells, and their mask."""
    mask = np.random.default_rng(seed).random(X.shape).argsort(axis=1).argsort(axis=1) < n_known
    return X.where(mask), mask


def test_ranks_features_like_the_exact_gain(gaussian, fitted):
    for n_known in [0, 1, 2]:
        X, _ = gaussian.sample(200, random_state=1)
        hidden, mask = hidden_rows(X, n_known)
        found, exact = fitted.ranking(hidden), gaussian.exact_gain(X, mask)
        ranks = [spearmanr(f[~m], e[~m])[0] for f, e, m in zip(found, exact, mask, strict=True)]
        assert np.mean(ranks) > 0.65


def test_values_are_nearer_to_the_exact_gain_than_its_mean(gaussian, fitted):
    X, _ = gaussian.sample(200, random_state=1)
    hidden, mask = hidden_rows(X, 1)
    found, exact = fitted.ranking(hidden)[~mask], gaussian.exact_gain(X, mask)[~mask]
    assert np.abs(found - exact).mean() < 0.85 * np.abs(exact.mean() - exact).mean()


def test_no_value_exceeds_the_entropy_of_the_prediction(gaussian, fitted):
    hidden, mask = hidden_rows(gaussian.X, 3)
    values = fitted.ranking(hidden)
    bound = np.broadcast_to(entropy(fitted.predict_proba(hidden))[:, None], values.shape)
    assert (values[~mask] > 0).all()
    assert (values[~mask] <= bound[~mask]).all()


def test_value_is_divided_by_the_price(gaussian):
    costs = np.array([1.0, 2.0, 4.0, 1.0, 1.0, 0.5])
    untrained = BRIEF | {"epochs": 0}
    plain, priced = (DIME(**untrained, costs=c, random_state=0).fit(gaussian.X, gaussian.y) for c in (None, costs))
    nothing = gaussian.X[:1] * np.nan
    np.testing.assert_allclose(priced.ranking(nothing), plain.ranking(nothing) / costs)


def test_a_prohibitive_price_postpones_a_feature(gaussian, fitted):
    first = int(fitted.suggest(gaussian.X[:1] * np.nan)[0])
    dear = DIME(**BRIEF, costs=np.where(np.arange(6) == first, 1e6, 1.0), random_state=0).fit(gaussian.X, gaussian.y)
    assert (dear.acquire(gaussian.X[:50]).order[:, -1] == first).all()


def test_beats_a_random_order(gaussian, fitted):
    X, y = gaussian.sample(3000, random_state=3)
    run = fitted.acquire(X)
    for n_known in (1, 2, 3):
        at_random = fitted.predict(hidden_rows(X, n_known)[0])
        assert (run.predict(n_known) == y).mean() > (at_random == y).mean() + 0.02


def test_missing_cells_and_categories(gaussian):
    X = gaussian.X.mask(np.random.default_rng(0).random(gaussian.X.shape) < 0.3)
    X["color"] = np.where(gaussian.y == 0, "red", "blue")
    baseline = DIME(**FAST | {"epochs": 15}, random_state=0).fit(X, gaussian.y)
    order = baseline.acquire(X[:100]).order
    rows, steps = np.nonzero(order >= 0)
    assert X.notna().to_numpy()[:100][rows, order[rows, steps]].all()
    assert (order == baseline.features_.index("color"))[:, :2].any(axis=1).mean() > 0.8


def test_same_seed_same_numbers(gaussian):
    hidden, _ = hidden_rows(gaussian.X, 2)
    one, again, other = (DIME(**BRIEF, random_state=s).fit(gaussian.X, gaussian.y).ranking(hidden) for s in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
