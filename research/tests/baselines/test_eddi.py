"""EDDI: the set encoder, the information reward and the predictions of the partial autoencoder."""

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from askwise.datasets import make_gaussian
from askwise.errors import InvalidInput
from askwise.table.schema import read_table
from askwise_bench.baselines.eddi import EDDI
from askwise_bench.baselines.partial_vae import Cells, gaussian_divergence

QUICK: dict[str, Any] = {
    "encoder": (40, 20),
    "decoder": (20,),
    "latent": 4,
    "steps": 300,
    "learning_rate": 3e-3,
    "samples": 20,
}


def mixed(n=240, seed=0):
    """`color` tells the label, `size` a little, `noise` nothing; some cells are missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    color = np.where(rng.random(n) < 0.95, np.array(["red", "blue"])[y], "green").astype(object)
    X = pd.DataFrame({"noise": rng.normal(size=n), "color": color, "size": 10 * y + rng.normal(0, 10, size=n)})
    X.loc[rng.random(n) < 0.1, "size"] = np.nan
    X.loc[rng.random(n) < 0.1, "color"] = None
    return X, np.array(["no", "yes"])[y]


@functools.cache
def fitted(**options):
    X, y = mixed()
    return EDDI(**{**QUICK, "random_state": 0, **options}).fit(X, y)


def random_order_accuracy(baseline, X, y, budgets, seed):
    """Accuracy of the baseline's own predictions on features in random order, by budget."""
    order = np.random.default_rng(seed).random(X.shape).argsort(axis=1).argsort(axis=1)
    return [float((baseline.predict(X.where(order < k)) == y).mean()) for k in budgets]


def test_the_divergence_is_that_of_gaussians():
    rng = np.random.default_rng(0)
    p, q = ((rng.normal(size=3), rng.normal(size=3)) for _ in range(2))
    draws = p[0] + np.exp(p[1] / 2) * rng.standard_normal((400_000, 3))

    def log_density(mean, log_variance):
        return -0.5 * ((draws - mean) ** 2 / np.exp(log_variance) + log_variance).sum(axis=1)

    assert_allclose(gaussian_divergence(p, q), (log_density(*p) - log_density(*q)).mean(), rtol=0.02)
    assert gaussian_divergence(p, p) == 0


def test_a_category_is_in_the_set_as_the_level_that_was_seen():
    X = pd.DataFrame({"a": [0.0, 2.0, 4.0], "b": ["x", "y", "z"]})
    schema, rows = read_table(X)
    cells = Cells(rows, schema, 2)
    observed = rows.masked(np.array([[True, True], [True, False], [False, True]]))
    coded, seen = cells(observed, np.array([1, -1, 0]))
    assert coded.shape == (3, 1 + 3 + 2)
    assert_array_equal(seen.astype(int), [[1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0]])
    assert_array_equal(coded[:, 1:], seen[:, 1:])


def test_draws_follow_the_decoder():
    X = pd.DataFrame({"a": [0.0, 2.0], "b": ["x", "y"]})
    schema, rows = read_table(X)
    cells = Cells(rows, schema, 3)
    rng = np.random.default_rng(1)
    outputs = np.log([1.0, 0.8, 0.2, 0.5, 0.25, 0.25]) + 1.0
    shape = (20_000, cells.n_cells)
    drawn = cells.draw(np.broadcast_to(outputs, shape), 0.5, rng.standard_normal(shape), rng.gumbel(size=shape))
    assert_allclose(drawn.mean(axis=0), [1.0, 0.8, 0.2, 0.5, 0.25, 0.25], atol=0.015)
    assert_allclose(drawn[:, 0].std(), 0.5, atol=0.01)
    assert_array_equal(drawn[:, 1:3].sum(axis=1), 1)
    assert_array_equal(drawn[:, 3:].sum(axis=1), 1)


def test_the_code_of_a_set_is_a_sum_over_its_cells():
    vae = fitted().vae_
    X, _ = mixed(20, seed=1)
    rows = fitted().schema_.encode(X)
    first = np.array([True, False, False])
    parts = [vae.code(*vae.cells(rows.masked(part))) for part in (first, ~first)]
    assert_allclose(vae.code(*vae.cells(rows)), parts[0] + parts[1], atol=1e-12)


def test_the_reward_is_the_mean_of_two_divergences_over_the_draws():
    """The batched reward against the definition, one row, one feature and one draw at a time."""
    baseline = fitted()
    reward, vae, cells = baseline.reward_, baseline.vae_, baseline.vae_.cells
    X, _ = mixed(3, seed=2)
    rows = baseline.schema_.encode(X).masked([False, False, True])
    mask = rows.observed
    got = reward(rows, mask)
    for r in range(3):
        row, seen = cells(rows.take([r]))
        mean, log_variance = vae.posterior(vae.code(row, seen))
        for i in np.flatnonzero(~mask[r]):
            total = 0.0
            for z, numbers, levels in zip(reward.of_z, reward.of_numbers, reward.of_levels, strict=True):
                outputs = vae.decode(mean + np.exp(log_variance / 2) * z)
                drawn = cells.draw(outputs, vae.noise, numbers, levels)
                is_in = np.where(cells.is_number, True, drawn == 1)
                with_i, with_y = ((cells.column == j) & is_in for j in (i, len(baseline.features_)))

                def q(*added, row=row, seen=seen, drawn=drawn):
                    extra = np.any(added, axis=0) if added else np.zeros_like(seen)
                    return vae.posterior(vae.code(np.where(extra, drawn, row), seen | extra))

                total += float(gaussian_divergence(q(with_i), q())[0])
                total -= float(gaussian_divergence(q(with_i, with_y), q(with_y))[0])
            assert_allclose(got[r, i], total / len(reward.of_z), rtol=1e-8, atol=1e-10)


def test_it_asks_first_for_what_tells_the_label():
    baseline, (X, y) = fitted(), mixed(300, seed=3)
    nothing = X.iloc[:1].assign(noise=np.nan, color=None, size=np.nan)
    assert baseline.features_[baseline.suggest(nothing)[0]] == "color"
    assert baseline.evaluate(X[X["color"].notna()], y[X["color"].notna()], [1]).accuracy[0] > 0.85


def test_a_high_price_puts_a_feature_last():
    X, y = mixed()
    baseline = EDDI(**QUICK, costs={"color": 1000.0}, random_state=0).fit(X, y)
    assert baseline.features_[baseline.acquire(X.dropna().iloc[:1]).order[0, -1]] == "color"


def test_it_beats_a_random_order_at_every_budget():
    data = make_gaussian(600, n_features=6, n_informative=3, random_state=0)
    baseline = EDDI(**{**QUICK, "steps": 500}, random_state=0).fit(data.X, data.y)
    later, truth = data.sample(600, random_state=1)
    mine = baseline.evaluate(later, truth, [1, 2, 3, 4]).accuracy.to_numpy()
    theirs = random_order_accuracy(baseline, later, np.asarray(truth), [1, 2, 3, 4], seed=2)
    assert (mine > np.array(theirs) + 0.01).all(), (mine, theirs)


def test_a_group_is_one_question():
    data = make_gaussian(200, n_features=4, random_state=0)
    names = list(data.X.columns)
    baseline = EDDI(**{**QUICK, "steps": 60}, groups={"panel": [names[0], names[2]]}, random_state=0).fit(
        data.X, data.y
    )
    assert baseline.ranking(data.X.iloc[:5] * np.nan).shape == (5, 3)
    assert baseline.acquire(data.X.iloc[:5]).order.shape == (5, 3)


def test_the_bound_of_the_paper_is_available():
    X, _ = mixed(50, seed=4)
    ours, theirs = fitted(), fitted(reconstruct="observed")
    assert not np.allclose(ours.predict_proba(X), theirs.predict_proba(X))
    assert_allclose(theirs.predict_proba(X).sum(axis=1), 1)


def test_options_are_checked():
    cases: list[Any] = [{"reconstruct": "some"}, {"noise": 0.0}, {"samples": 0}]
    for option in cases:
        X, y = mixed(20)
        with pytest.raises(InvalidInput, match=next(iter(option))):
            EDDI(**{**QUICK, **option}).fit(X, y)
