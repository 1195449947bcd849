"""A network of images and the values of its patches, trained in turns."""

from typing import Any

import numpy as np
import pytest

from askwise import DynamicFeatureSelector, Prices
from askwise.acquisition import nothing_known
from askwise.errors import InvalidInput
from askwise.images.grid import PatchGrid

torch = pytest.importorskip("torch")

from askwise.images.alternating import AlternatingTraining, SavedLoss, _Exploring, _Turns  # noqa: E402
from askwise.networks import Layers  # noqa: E402
from askwise.vision import PatchNetwork, train_classifier  # noqa: E402

NOISE = 3
"""The patch of the 2 x 2 grid that tells nothing."""


@pytest.fixture
def given(images, untrained):
    """A selector around a network that has seen complete images once."""
    network = train_classifier(untrained(), *images, epochs=1, batch_size=8, learning_rate=5e-3, random_state=0)
    adaptation = PatchNetwork(batch_size=8, learning_rate=5e-3)
    options: dict[str, Any] = {"epistemic": None, "policy": "static", "random_state": 0, "progress": False}
    return DynamicFeatureSelector(network, groups=PatchGrid(2, 2), adaptation=adaptation, **options).fit(*images)


def training(rounds=3, epochs=3, **options):
    return AlternatingTraining(rounds, epochs, random_state=0, **options)


def log_loss(selector, images, y):
    proba = selector.acquire(images, 2).proba
    return -np.log(proba[np.arange(len(y)), :, y]).mean()


def test_it_learns_the_choice_and_the_answers_and_changes_copies_only(given, new_images):
    network = given.estimator
    before = {name: value.clone() for name, value in network.state_dict().items()}
    loss = log_loss(given, *new_images)
    further, again = training().applied(given), training().applied(given)
    assert log_loss(given, *new_images) == loss
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert log_loss(further, *new_images) == log_loss(again, *new_images) < loss - 0.05
    order = further.acquire(new_images[0], 2).order
    assert NOISE not in order


def test_what_purchases_save_adds_up(given):
    predictor = given.predictor_
    turns = _Turns(training(most_patches=3), given, np.random.default_rng(0))
    rows, y = predictor.training_rows_.take(slice(30)), predictor.training_labels_[:30]
    choice = _Exploring(None, 0.2, np.random.default_rng(0))
    found = turns._bought(predictor, choice, rows, y)
    assert found.order.shape == (30, 3)
    at = np.arange(30)
    empty = predictor.believe(rows.masked(np.zeros(rows.values.shape, dtype=bool))).proba[at, y]
    mask = np.zeros((30, 4), dtype=bool)
    mask[at[:, None], found.order] = True
    end = predictor.believe(rows.masked(predictor.schema_.expand(mask))).proba[at, y]
    np.testing.assert_allclose(np.sum(found.saved, axis=0), np.log(end / empty), atol=1e-6)


def test_known_patches_are_not_scored_and_prices_divide(given):
    value = SavedLoss(
        Layers([np.zeros((12 + 4 + 3, 4))], [np.array([1.0, 2, 3, 4])], "relu"), np.zeros(19), np.ones(19)
    )
    prices = Prices([1, 4, 1, 1]).resolve(given.features_)
    state = nothing_known(given.schema_, prices, given.beliefs_, given.predictor_.training_rows_.take(slice(2)))
    state.mask = np.array([[False] * 4, [True, False, False, False]])
    scores = _Exploring(value, 0.0, np.random.default_rng(0)).scores(state)
    np.testing.assert_array_equal(scores, [[1, 0.5, 3, 4], [-np.inf, 0.5, 3, 4]])


def test_the_first_round_and_a_share_of_the_others_buy_at_random(given):
    rows, y = given.predictor_.training_rows_, given.predictor_.training_labels_
    turns = _Turns(training(exploration=1.0), given, np.random.default_rng(0))
    orders = turns._bought(given.predictor_, _Exploring(turns.value, 1.0, turns.rng), rows, y).order
    assert len(np.unique(orders, axis=0)) == 24
    orders = turns._bought(given.predictor_, _Exploring(turns.value, 0.0, turns.rng), rows, y).order
    assert len(np.unique(orders[:, 0])) == 1  # nothing is known yet of any image


def test_it_refuses_what_it_cannot_train(given):
    from sklearn.datasets import load_iris
    from sklearn.naive_bayes import GaussianNB

    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidInput, match="AlternatingTraining needs a fitted selector of images"):
        AlternatingTraining().applied(DynamicFeatureSelector(GaussianNB().fit(X, y), random_state=0).fit(X, y))
    with pytest.raises(InvalidInput, match="exploration"):
        AlternatingTraining(exploration=2).applied(given)
