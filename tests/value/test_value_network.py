"""The paper's value estimator: it learns what a feature will bring from what is known, and is served by numpy."""

import functools
import sys
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import askwise
import askwise.value.network
from askwise.epistemic import AuxiliaryEnsemble, BeliefModel
from askwise.errors import AskwiseError, InvalidInput
from askwise.predict import ImputedPredictor, wrap
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.value import HeldOutStates, ValueEstimator, value_targets


def model(weights):
    """A classifier of known weights."""

    def proba(X):
        positive = 1 / (1 + np.exp(-np.asarray(X, dtype=float) @ np.asarray(weights)))
        return np.column_stack([1 - positive, positive])

    return wrap(proba, [0, 1])


def planted(n=150, seed=0):
    X = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, 4))
    return X, (X[:, 0] > 0).astype(int)


@functools.cache
def held_out(with_members=False, groups=None):
    """The first column decides, the second has a say, the others have none."""
    X, y = planted()
    predictor = ImputedPredictor(model([2.0, 1.2, 0.0, 0.0])).fit(X, y)
    around = None
    if with_members:  # which disagree about the third column alone
        members = [model([2.0, 1.2, sign, 0.0]) for sign in (-1.5, 1.5)]
        around = AuxiliaryEnsemble(estimators=members).fit(predictor)
    schema = Schema(predictor.schema_.columns, predictor.schema_.framed, dict(groups or ()))
    return HeldOutStates(predictor.training_rows_, y, schema, [BeliefModel(predictor, around)])


def estimator(**options):
    return ValueEstimator(**{"n_states": 300, "epochs": 25, "hidden": 32, "dropout": 0.1, **options})


@functools.cache
def fitted(with_members=False):
    return estimator().fit(held_out(with_members))


def known(X, mask) -> Any:
    """Cases of which the cells in `mask` are known: all that the network looks at."""
    return SimpleNamespace(rows=EncodedRows(np.where(mask, X, np.nan)))


def nothing(n=1) -> Any:
    return known(np.zeros((n, 4)), np.zeros((n, 4), dtype=bool))


def half_known():
    X, _ = planted()
    return known(X, np.random.default_rng(1).random(X.shape) < 0.5)


def test_what_informs_is_ranked_above_noise():
    found = fitted().reductions(nothing())[0][0]
    assert found.argmax() == 0
    expected = np.nanmean(value_targets(held_out(), np.arange(150), np.zeros((150, 4), dtype=bool))[0], axis=0)
    assert_allclose(found, expected, atol=0.06)
    assert expected[0] > 0.2


def test_what_a_feature_is_worth_depends_on_what_is_known():
    """Exclusive or: the second column is worth nothing until the first is known, and then everything."""
    X, _ = planted()

    def exclusive_or(X):
        cells = np.asarray(X, dtype=float)
        positive = 1 / (1 + np.exp(-3.0 * cells[:, 0] * cells[:, 1]))
        return np.column_stack([1 - positive, positive])

    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    predictor = ImputedPredictor(wrap(exclusive_or, [0, 1])).fit(X, y)
    value = estimator().fit(HeldOutStates(EncodedRows(X), y, predictor.schema_, [BeliefModel(predictor)]))
    before = value.reductions(nothing())[0][0]
    after = value.reductions(known(X[:1], [True, False, False, False]))[0][0]
    assert np.abs(before).max() < 0.15
    assert after[1] > 0.3
    assert np.abs(after[2:]).max() < 0.15


def test_features_that_set_the_members_at_odds_raise_the_epistemic_uncertainty():
    value = fitted(True)
    discrepancy, epistemic = value.reductions(nothing())
    assert discrepancy[0].argmax() == 0
    assert epistemic[0].argmin() == 2
    assert epistemic[0, 2] < -0.1
    assert abs(epistemic[0, 3]) < 0.1


def test_without_members_the_epistemic_head_learns_that_there_is_nothing():
    epistemic = fitted().reductions(nothing(150))[1]
    assert np.abs(epistemic).max() < 0.05


def test_shapes_and_that_nothing_is_changed():
    state = half_known()
    before = state.rows.values.copy()
    for part in fitted(True).reductions(state):
        assert part.shape == (150, 4)
        assert np.isfinite(part).all()
    assert_array_equal(state.rows.values, before)


def test_a_case_has_its_own_values_whoever_stands_beside_it():
    state = half_known()
    together = fitted().reductions(state)[0]
    for r in range(5):
        alone = SimpleNamespace(rows=state.rows.take([r]))
        assert_allclose(fitted().reductions(alone)[0][0], together[r], rtol=0, atol=1e-12)


def test_same_seed_same_values_and_torch_is_left_alone():
    before = torch.random.get_rng_state()
    numpy_before = joblib.hash(np.random.get_state())  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        again = estimator().fit(held_out())
    other = estimator(random_state=1).fit(held_out())
    expected = fitted().reductions(nothing())[0]
    assert_array_equal(again.reductions(nothing())[0], expected)
    assert np.abs(other.reductions(nothing())[0] - expected).max() > 1e-6
    assert torch.equal(torch.random.get_rng_state(), before)
    assert joblib.hash(np.random.get_state()) == numpy_before  # noqa: NPY002


def test_groups_are_one_feature():
    grouped = held_out(groups=(("pair", (0, 3)),))
    value = estimator().fit(grouped)
    found = value.reductions(nothing())[0]
    assert found.shape == (1, 3)
    assert found[0].argmax() == 0


def spied_targets(monkeypatch):
    """What is asked for, call by call."""
    asked = []

    def spy(held_out, rows, mask, candidates=None):
        found = value_targets(held_out, rows, mask, candidates)
        asked.append((rows, mask, candidates, found))
        return found

    monkeypatch.setattr(askwise.value.network, "value_targets", spy)
    return asked


def test_states_are_training_rows_with_random_masks(monkeypatch):
    asked = spied_targets(monkeypatch)
    estimator(n_states=400, epochs=1).fit(held_out())
    ((rows, mask, candidates, found),) = asked
    assert candidates is None
    assert mask.shape == (400, 4)
    counts = np.bincount(rows, minlength=150)
    assert counts.min() >= 2
    assert counts.max() <= 3
    sizes = np.bincount(mask.sum(axis=1), minlength=5)
    assert sizes[4] == 0  # nothing would be left to ask
    assert (sizes[:4] > 60).all()
    assert_array_equal(np.isnan(found[0]), mask)


def test_some_candidates_of_each_state_are_enough(monkeypatch):
    asked = spied_targets(monkeypatch)
    value = estimator(n_candidates=2).fit(held_out())
    ((_, mask, candidates, found),) = asked
    assert_array_equal(candidates.sum(axis=1), 2)
    assert (candidates.sum(axis=0) > 90).all()  # each feature as often as the others
    assert_array_equal(~np.isnan(found[0]), candidates & ~mask)
    # What was not asked about is not taken for worthless.
    everyone = fitted().reductions(nothing())[0][0]
    assert_allclose(value.reductions(nothing())[0][0], everyone, atol=0.07)


def test_missing_cells_and_categories():
    """What nobody has is no target; a category is seen by its name."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Ghent", "Lille", "Namur"], 120), "age": rng.normal(size=120)})
    y = (table["city"] == "Lille").astype(int).to_numpy()
    table.loc[::5, "age"] = np.nan

    def by_city(X):
        positive = np.where(X["city"] == "Lille", 0.95, 0.05)
        return np.column_stack([1 - positive, positive])

    predictor = ImputedPredictor(wrap(by_city, [0, 1])).fit(table, y)
    around = HeldOutStates(predictor.training_rows_, y, predictor.schema_, [BeliefModel(predictor)])
    value = estimator(epochs=10).fit(around)
    found = value.reductions(known(np.zeros((1, 2)), [False, False]))[0][0]
    assert np.isfinite(found).all()
    assert found[0] > found[1]


def test_the_penalty_is_the_sum_of_the_weights_without_the_biases():
    """A weight of 1 then leaves nothing of a network but its biases, which learn the mean of each target."""
    free, bound = (estimator(l1=l1).fit(held_out()) for l1 in (0.0, 1.0))
    size = [sum(np.abs(weight).mean() for weight in value.layers_.weights) for value in (free, bound)]
    assert size[1] < 0.2 * size[0]
    state = known(np.array([[1.0, 1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0]]), [False, True, False, True])
    gains, others = bound.reductions(state)[0]
    assert_allclose(gains, others, atol=0.05)
    assert gains[0] > gains[2] + 0.1


def test_without_torch_it_says_what_to_use(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(AskwiseError, match=r'value="network".*askwise\[torch\].*value="neighbors".*policy="greedy"'):
        estimator().fit(held_out())


def test_parameters_that_are_refused():
    for name, wrong in (
        ("hidden", 0),
        ("dropout", 1.0),
        ("epochs", -1),
        ("learning_rate", "fast"),
        ("batch_size", 2.5),
        ("l1", -0.1),
        ("n_states", "many"),
        ("n_candidates", 0),
    ):
        with pytest.raises(InvalidInput, match=f"ValueEstimator: {name} must be .*got {wrong!r}"):
            estimator(**{name: wrong}).fit(held_out())
