"""The cube and CUBE-NM: the recipe, exact answers against Bayes' rule written out, and the best policy known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from askwise.datasets import make_cube, make_cube_nm
from askwise.errors import InvalidInput

DATA = {"cube": make_cube(200, n_noise=3, noise=0.2, random_state=0), "cube_nm": make_cube_nm(200, 3, random_state=0)}


def test_columns_and_classes():
    cube, nm = make_cube(50, random_state=0), make_cube_nm(50, random_state=0)
    assert list(cube.X.columns) == [f"a_{i}" for i in range(10)] + [f"noise_{i}" for i in range(10)]
    assert cube.groups is None
    assert nm.X.shape == (50, 55)
    assert nm.n_features == 51
    assert nm.groups == {"context": [f"context_{k}" for k in "abcde"]}
    assert set(make_cube(500, random_state=0).y) == set(range(8))


@pytest.mark.parametrize("label", range(8))
def test_each_class_shows_its_corner_in_features_of_its_own(label):
    data = make_cube(8000, random_state=0)
    means = data.X[data.y == label].mean().to_numpy()
    expected = np.full(20, 0.5)
    expected[label : label + 3] = [label % 2, label // 2 % 2, label // 4]
    np.testing.assert_allclose(means, expected, atol=0.06)


def test_only_the_block_that_the_context_names_has_to_do_with_the_class():
    data = make_cube_nm(6000, 2, random_state=0)
    first = data.X["context_a"] > 0.5
    np.testing.assert_allclose(data.X["context_b"].groupby(first).mean(), [1, 0], atol=0.01)
    zero = data.y == 0
    np.testing.assert_allclose(data.X.loc[zero & first, ["a_0", "a_1", "a_2"]].mean(), 0, atol=0.06)
    np.testing.assert_allclose(data.X.loc[zero & first, ["b_0", "b_1", "b_2"]].mean(), 0.5, atol=0.06)
    np.testing.assert_allclose(pd.Series(data.y).groupby(first.to_numpy()).mean(), 3.5, atol=0.15)


def by_hand(data, x, seen):
    """p(y | x_S) of one row, summed over the blocks."""
    joint, k = np.zeros(8), data.n_contexts
    for y in range(8):
        for block in range(k):
            means, widths = np.full(data.X.shape[1], 0.5), np.full(data.X.shape[1], 0.3)
            for bit in range(3):
                means[10 * block + y + bit], widths[10 * block + y + bit] = (y >> bit) & 1, data.noise
            if k > 1:
                means[-k:], widths[-k:] = np.eye(k)[block], data.context_noise
            joint[y] += norm.pdf(x[seen], means[seen], widths[seen]).prod()
    return joint / joint.sum()


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6, 1.0])
def test_exact_proba_is_bayes_rule(name, share):
    data = DATA[name]
    mask = np.random.default_rng(0).random(data.X.shape) < share
    proba = data.exact_proba(data.X, mask)
    for row in range(20):
        expected = by_hand(data, data.X.to_numpy()[row], mask[row])
        np.testing.assert_allclose(proba[row], expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", DATA)
def test_exact_gain_is_the_mean_fall_of_entropy(name):
    """Against draws of complete rows that agree in what is known: nothing, so all rows do."""
    data = DATA[name]
    X, _ = data.sample(20_000, random_state=1)
    gain = data.exact_gain(X[:1], np.zeros((1, X.shape[1]), dtype=bool))[0]
    for j in (0, 2, 9, X.shape[1] - 1):
        mask = np.tile(np.arange(X.shape[1]) == j, (len(X), 1))
        proba = data.exact_proba(X, mask)
        assert gain[j] == pytest.approx(np.log(8) + (proba * np.log(proba)).sum(axis=1).mean(), abs=0.01)


def test_the_context_tells_nothing_until_a_block_is_known():
    data = DATA["cube_nm"]
    nothing = np.zeros(data.X.shape, dtype=bool)
    np.testing.assert_allclose(data.exact_gain(data.X, nothing)[:, -3:], 0, atol=1e-9)
    known = nothing.copy()
    known[:, :4] = True
    assert data.exact_gain(data.X, known)[:, -3:].mean() > 0.01


def test_noise_tells_nothing_and_what_is_known_is_not_asked_for():
    data = DATA["cube"]
    mask = np.random.default_rng(0).random(data.X.shape) < 0.4
    gain = data.exact_gain(data.X, mask)
    assert np.isneginf(gain[mask]).all()
    assert (gain[:, :10][~mask[:, :10]] > 0).all()
    assert (gain[:, 10:][~mask[:, 10:]] == 0).all()


def test_best_accuracy_grows_to_that_of_bayes_rule():
    data = make_cube_nm(1, 2, random_state=0)
    found = [data.best_accuracy(budget) for budget in (0, 1, 3, 5)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(1 / 8, abs=0.02)
    X, y = data.sample(5000, random_state=5)
    assert data.best_accuracy() == pytest.approx(np.mean(data.exact_proba(X).argmax(axis=1) == y), abs=0.03)
    assert data.best_accuracy(11) == data.best_accuracy()


def test_the_context_first_is_better_than_three_features_of_any_block():
    data = make_cube_nm(1, random_state=0)
    X, y = data.sample(4000, random_state=5)
    mask = np.tile(X.columns.isin(["a_1", "a_3", "a_5"]), (len(X), 1))
    assert data.best_accuracy(3) > np.mean(data.exact_proba(X, mask).argmax(axis=1) == y) + 0.15


def test_same_seed_same_table():
    for make in (make_cube, make_cube_nm):
        first, again, other = (make(30, random_state=seed) for seed in (0, 0, 1))
        pd.testing.assert_frame_equal(first.X, again.X)
        assert not first.X.equals(other.X)


@pytest.mark.parametrize(
    ("make", "parameters", "said"),
    [
        (make_cube, {"n_samples": 0}, "n_samples must be a whole number of at least 1"),
        (make_cube, {"n_noise": -1}, "n_noise must be a whole number of at least 0"),
        (make_cube, {"noise": 0.0}, "noise must be a number > 0"),
        (make_cube_nm, {"n_contexts": 1}, "n_contexts must be a whole number from 2 to 26; got 1"),
        (make_cube_nm, {"context_noise": "loud"}, "context_noise must be a number > 0; got 'loud'"),
    ],
)
def test_wrong_parameters_are_refused(make, parameters, said):
    with pytest.raises(InvalidInput, match=said):
        make(**parameters)
