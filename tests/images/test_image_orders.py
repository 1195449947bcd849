"""The default order of the patches, and training on the patches that a policy chooses."""

import json

import numpy as np
import pytest

from askwise import DynamicFeatureSelector
from askwise.errors import InvalidInput
from askwise.images import orders
from askwise.images.grid import PatchGrid

torch = pytest.importorskip("torch")

from askwise.images.on_policy import OnPolicyTraining, Visited  # noqa: E402
from askwise.images.orders import GREEDY, LEARNED, MIDDLE, BestOrder  # noqa: E402
from askwise.policy import Greedy, Static  # noqa: E402
from askwise.vision import PatchNetwork, PatchValueNetwork, SimilarImageValue, train_classifier  # noqa: E402

GRID = PatchGrid(2, 2)


def selector(network, **options):
    return DynamicFeatureSelector(network, groups=GRID, random_state=0, progress=False, epistemic=None, **options)


def taken(**more):
    """The order that is taken if the others keep so much `more` than the middle first, with a standard error of 1."""
    noise = np.where(np.arange(400) % 2, 20.0, -20.0) * np.sqrt(399 / 400)
    policy = BestOrder()
    policy.compared_ = {}
    kept = {MIDDLE: np.zeros(400), LEARNED: noise + more["learned"], GREEDY: 2 * noise + more["greedy"]}
    policy._take_best(dict.fromkeys(kept, Static()), kept)
    return policy.compared_["chosen"]


def test_an_order_replaces_a_plainer_one_only_beyond_a_standard_error():
    assert taken(learned=0.9, greedy=1.9) == MIDDLE  # the error of greedy is 2
    assert taken(learned=0.9, greedy=2.1) == GREEDY
    assert taken(learned=1.1, greedy=2.0) == LEARNED  # 0.9 above the learned order, with an error of 1
    assert taken(learned=1.1, greedy=2.2) == GREEDY
    assert taken(learned=-5.0, greedy=-5.0) == MIDDLE


def test_the_default_says_what_it_compared(images, network, new_images):
    fitted = selector(network).fit(*images)
    report = json.loads(json.dumps(fitted.choices_["policy"]))["compared"]
    assert (report["cases"], fitted.choices_["policy"]["by"]) == (30, "default")
    assert set(report["agreement"]) == {MIDDLE, LEARNED, GREEDY}
    assert report["agreement"][report["chosen"]] >= report["agreement"][MIDDLE]
    assert "30 held-out training images" in report["why"]
    assert isinstance(fitted.policy_, Greedy if report["chosen"] == GREEDY else Static)
    again = selector(network).fit(*images)
    assert again.choices_ == fitted.choices_
    run, same = fitted.acquire(new_images[0], 3), again.with_policy("auto").acquire(new_images[0], 3)
    np.testing.assert_array_equal(run.order, same.order)


def test_the_learned_order_leaves_noise_to_the_end(images, network):
    """The last patch is noise in every class."""
    fitted = selector(network, policy="static").fit(*images)
    context = fitted._policy_context(fitted.beliefs_)
    assert orders._learned(context, 60).relevance_.argmin() == 3


def test_with_few_images_the_middle_comes_first(images, network):
    few = images[0][:40], images[1][:40]
    report = selector(network).fit(*few).choices_["policy"]["compared"]
    assert report["chosen"] == MIDDLE
    assert "40 training images are too few" in report["why"]


def test_what_is_held_out_follows_from_counts(images, network, monkeypatch):
    monkeypatch.setattr(orders, "MOST_PIXELS", 25 * 3 * 4 * 10 * 64)
    assert selector(network).fit(*images).choices_["policy"]["compared"]["cases"] == 25


def test_a_network_of_patches_is_compared_by_its_own_value(images, network):
    fitted = selector(network, adaptation=PatchNetwork()).fit(*images)
    assert fitted.choices_["policy"]["compared"]["cases"] == 30
    assert isinstance(orders.value_for(fitted.predictor_), PatchValueNetwork)
    assert isinstance(orders.value_for(selector(network).fit(*images).predictor_), SimilarImageValue)


def test_without_the_greedy_choice_no_value_is_fitted(images, network, monkeypatch):
    monkeypatch.setattr(orders, "value_for", None)
    report = selector(network, policy=BestOrder(greedy=False)).fit(*images).policy_.compared_
    assert set(report["agreement"]) == {MIDDLE, LEARNED}


def test_tables_are_refused():
    from sklearn.datasets import load_iris
    from sklearn.naive_bayes import GaussianNB

    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidInput, match="BestOrder is for images"):
        DynamicFeatureSelector(GaussianNB().fit(X, y), policy=BestOrder()).fit(X, y)
    with pytest.raises(InvalidInput, match="whose adaptation is a PatchNetwork"):
        OnPolicyTraining().applied(DynamicFeatureSelector(GaussianNB().fit(X, y), random_state=0).fit(X, y))


def test_visited_states_are_beginnings_of_orders():
    order = np.array([[2, 0, 1], [1, 3, -1]])
    masks = Visited(order, 0.0)(np.repeat([0, 1], 200), 4, np.random.default_rng(0))
    first = {tuple(np.flatnonzero(mask)) for mask in masks[:200]}
    assert first == {(), (2,), (0, 2), (0, 1, 2)}
    assert {tuple(np.flatnonzero(mask)) for mask in masks[200:]} == {(), (1,), (1, 3)}
    at_random = Visited(order, 1.0)(np.zeros(400, dtype=int), 4, np.random.default_rng(0))
    assert len({mask.tobytes() for mask in at_random}) == 15  # every subset but the full one


def test_training_on_policy_changes_a_copy_and_helps_along_the_policy(images, untrained, new_images):
    network = train_classifier(untrained(), *images, epochs=1, random_state=0)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    first = Static(np.array([1.0, 4.0, 3.0, 2.0]))
    adaptation = PatchNetwork(batch_size=8, learning_rate=5e-3)
    given = selector(network, adaptation=adaptation, policy=first).fit(*images)
    proba = given.predict_proba(new_images[0])
    training = OnPolicyTraining(1, 6, most_patches=2, random_state=0)
    further, again = training.applied(given), training.applied(given)
    np.testing.assert_array_equal(given.predict_proba(new_images[0]), proba)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    run, other = (each.acquire(new_images[0], 2).proba for each in (further, again))
    np.testing.assert_array_equal(run, other)

    before_that = given.acquire(new_images[0], 2).proba
    loss, was = (-np.log(p[np.arange(40), :, new_images[1]]).mean() for p in (run, before_that))
    assert loss < was - 0.05
