"""The switch: exact answers, a closed form for the best policy, and that the order of questions matters."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier

from askwise.datasets import make_switch
from askwise.datasets.switch import SwitchDataset
from askwise.errors import InvalidInput


@pytest.fixture(scope="module")
def data() -> SwitchDataset:
    return make_switch(2000, random_state=0)


@pytest.fixture(scope="module")
def test_rows(data: SwitchDataset) -> tuple[pd.DataFrame, np.ndarray]:
    return data.sample(40_000, random_state=1)


def accuracy(data: SwitchDataset, rows: tuple[pd.DataFrame, np.ndarray], mask: np.ndarray) -> float:
    X, y = rows
    return float((data.exact_proba(X, mask).argmax(axis=1) == y).mean())


def mask_of(X: pd.DataFrame, *names: str) -> np.ndarray:
    return np.tile(X.columns.isin(names), (len(X), 1))


def ideal_mask(data: SwitchDataset, X: pd.DataFrame, n_bought: int) -> np.ndarray:
    """The switch, and features of the block that it names."""
    mask = mask_of(X, "switch")
    first = data.block_size * X["switch"].to_numpy(dtype=int)
    for i in range(min(n_bought, data.block_size)):
        mask[np.arange(len(X)), first + i] = True
    return mask


def test_columns_and_values(data):
    blocks = [f"{letter}_{i}" for letter in "abc" for i in range(3)]
    assert list(data.X.columns) == [*blocks, "noise_0", "noise_1", "switch"]
    assert set(data.X["switch"]) == {0.0, 1.0, 2.0}
    assert set(data.X.dtypes.astype(str)) == {"float64"}
    assert set(data.y) == {0, 1}


def test_switch_alone_is_worthless(data, test_rows):
    X, y = test_rows
    np.testing.assert_array_equal(data.exact_proba(X, mask_of(X, "switch")), 0.5)
    shares = pd.Series(y).groupby(X["switch"].to_numpy()).mean()
    np.testing.assert_allclose(shares, 0.5, atol=0.02)


def test_features_alone_say_nothing_of_the_switch(test_rows):
    """The same feature has the same distribution whatever the switch says."""
    X, _ = test_rows
    by_setting = X.groupby("switch")["a_0"]
    np.testing.assert_allclose(by_setting.mean(), 0, atol=0.04)
    np.testing.assert_allclose(by_setting.std(), np.sqrt(2), atol=0.03)


def test_exact_proba_sums_over_all_votes():
    """Against Bayes' rule written out: sum over every vote of every block and every setting."""
    data = make_switch(30, n_settings=2, block_size=2, n_noise=1, noise=0.8, random_state=2)
    mask = np.random.default_rng(0).random(data.X.shape) < 0.6
    proba = data.exact_proba(data.X, mask)
    for row, (x, seen) in enumerate(zip(data.X.to_numpy(), mask, strict=True)):
        joint = np.zeros(2)
        for votes in [(-1, -1), (-1, 1), (1, -1), (1, 1)]:
            centers = np.repeat(votes, 2)
            likelihood = np.exp(-((x[:4] - centers) ** 2)[seen[:4]].sum() / (2 * 0.8**2))
            for setting in (0, 1):
                if not seen[-1] or x[-1] == setting:
                    joint[int(votes[setting] > 0)] += likelihood
        np.testing.assert_allclose(proba[row], joint / joint.sum(), rtol=1e-10)


def test_nothing_observed_gives_the_prior(data):
    np.testing.assert_array_equal(data.exact_proba(data.X[:3], np.zeros((3, 12), dtype=bool)), 0.5)
    np.testing.assert_array_equal(data.exact_proba(np.full((3, 12), np.nan)), 0.5)


def test_hidden_cells_and_other_rows_do_not_matter(data):
    X, mask = data.X[:50], np.random.default_rng(0).random((50, 12)) < 0.5
    proba = data.exact_proba(X, mask)
    np.testing.assert_array_equal(data.exact_proba(X.where(mask, 1e6), mask), proba)
    one_by_one = np.vstack([data.exact_proba(X[i : i + 1], mask[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(one_by_one, proba, rtol=1e-12)


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 4, 9])
def test_best_accuracy_with_the_switch_known_is_what_the_ideal_policy_gets(data, test_rows, budget):
    simulated = accuracy(data, test_rows, ideal_mask(data, test_rows[0], budget))
    assert data.best_accuracy(budget, switch_known=True) == pytest.approx(simulated, abs=0.008)


def test_best_accuracy_pays_for_the_switch(data, test_rows):
    X, _ = test_rows
    assert data.best_accuracy(0) == 0.5
    assert data.best_accuracy(1) == pytest.approx(accuracy(data, test_rows, mask_of(X, "b_0")), abs=0.008)
    for budget in (2, 3, 4):
        assert data.best_accuracy(budget) == data.best_accuracy(budget - 1, switch_known=True)
    assert data.best_accuracy() == data.best_accuracy(12) == data.best_accuracy(3, switch_known=True)


@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("n_settings", [2, 3])
def test_no_policy_that_buys_a_feature_first_beats_the_switch_first(n_settings, noise):
    """Budget 2, by integration: after one reading, the best of all second purchases, adapted to that reading."""
    data = make_switch(1, n_settings=n_settings, noise=noise)
    rng = np.random.default_rng(0)
    n = 1000
    reading = rng.choice([-1.0, 1.0], size=n) + noise * rng.standard_normal(n)

    def leaning(total: np.ndarray) -> np.ndarray:
        return 2 * expit(2 * total / noise**2) - 1

    same_block = expit(2 * reading / noise**2)[:, None] > rng.random((n, 200))
    again = np.where(same_block, 1.0, -1.0) + noise * rng.standard_normal((n, 200))
    other = rng.choice([-1.0, 1.0], size=(n, 200)) + noise * rng.standard_normal((n, 200))
    second = np.stack(
        [
            np.abs(leaning(reading[:, None] + again)).mean(axis=1),
            np.abs(leaning(reading)[:, None] + leaning(other)).mean(axis=1),
            np.abs(leaning(reading)),
        ]
    )
    feature_first = 0.5 + second.max(axis=0).mean() / (2 * n_settings)
    assert data.best_accuracy(2) >= feature_first - 0.01


def test_the_right_question_next_beats_every_fixed_set(data, test_rows):
    """With the switch free and three features to buy, by far: this is what dynamic selection is for."""
    X, _ = test_rows
    blocks = X.columns[:9]
    by_symmetry = {"".join(sorted(n[0] for n in names)): names for names in combinations(blocks, 3)}
    fixed = max(accuracy(data, test_rows, mask_of(X, "switch", *names)) for names in by_symmetry.values())
    dynamic = accuracy(data, test_rows, ideal_mask(data, X, 3))
    assert dynamic - fixed > 0.10


def test_a_forest_learns_it(data, test_rows):
    X, y = (part[:5000] for part in test_rows)
    forest = RandomForestClassifier(60, random_state=0).fit(data.X, data.y)
    assert data.best_accuracy() - 0.06 < forest.score(X, y) < data.best_accuracy() + 0.01


def test_categorical_switch_is_the_same_truth(data):
    named = make_switch(2000, categorical_switch=True, random_state=0)
    assert named.X["switch"].map({"a": 0.0, "b": 1.0, "c": 2.0}).tolist() == data.X["switch"].tolist()
    mask = np.random.default_rng(0).random(data.X.shape) < 0.5
    np.testing.assert_array_equal(named.exact_proba(named.X, mask), data.exact_proba(data.X, mask))
    np.testing.assert_array_equal(named.exact_proba(named.X.to_numpy(), mask), data.exact_proba(data.X, mask))


def test_same_seed_same_table(data):
    again = make_switch(2000, random_state=0)
    pd.testing.assert_frame_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)
    assert not np.array_equal(make_switch(2000, random_state=1).y, data.y)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_settings": 1}, "n_settings must be a whole number from 2 to 26; got 1"),
        ({"block_size": 0}, "block_size must be a whole number of at least 1"),
        ({"n_noise": -1}, "n_noise must be a whole number of at least 0"),
        ({"noise": 0.0}, "noise must be a number > 0"),
        ({"noise": "loud"}, "noise must be a number > 0; got 'loud'"),
        ({"categorical_switch": "no"}, "categorical_switch must be True or False; got 'no'"),
        ({"random_state": "seed"}, "random_state must be a seed"),
    ],
)
def test_wrong_parameters_are_refused(parameters, said):
    with pytest.raises(InvalidInput, match=said):
        make_switch(**parameters)


def test_unknown_setting_is_refused_where_it_is_observed(data):
    X = data.X[:2].assign(switch=[0.0, 7.0])
    with pytest.raises(InvalidInput, match=r"switch must be a whole number from 0 to 2.*got 7\.0"):
        data.exact_proba(X)
    with pytest.raises(InvalidInput, match="budget must be >= 0"):
        data.best_accuracy(-1)
