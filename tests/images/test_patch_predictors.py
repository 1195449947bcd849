"""PatchNetwork (CNN, ReCNN, AdCNN, AdReCNN), completions from similar images, and dropout members."""

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.images.grid import PatchGrid
from askwise.predict import ConditionalPredictor

torch = pytest.importorskip("torch")

from askwise.vision import PatchDropout, PatchNetwork, SimilarImagePredictor  # noqa: E402

GRID = PatchGrid(2, 2)
KINDS: dict[str, dict[str, Any]] = {
    "CNN": {},
    "gray": {"fill": "gray"},
    "ReCNN": {"adapter_epochs": 4, "refresh": 2},
    "AdCNN": {"pretrain_epochs": 2},
    "AdReCNN": {"pretrain_epochs": 1, "adapter_epochs": 2},
}


@pytest.fixture(scope="module")
def fitted(images, network):
    """Every kind of predictor, fitted."""
    made = {name: PatchNetwork(network, random_state=0, **options) for name, options in KINDS.items()}
    made["similar"] = ConditionalPredictor(network, n_neighbors=5, bandwidth=0.5, random_state=0)
    made["auto"] = SimilarImagePredictor(network, 5, random_state=0)
    return {name: predictor.fit(*images, groups=GRID) for name, predictor in made.items()}


def hidden(images, mask):
    """Images with NaN in the patches that `mask` (n, 4) hides."""
    out = images.copy()
    for i, (r, c) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        out[~mask[:, i], :, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4] = np.nan
    return out


def masks(n):
    """Random masks, the empty and the full one among them."""
    drawn = np.random.default_rng(3).random((n, 4)) < 0.5
    drawn[0], drawn[1] = False, True
    return drawn


def logits_of(network, images):
    with torch.no_grad():
        return network(torch.as_tensor(images)).numpy()


def test_every_predictor_keeps_the_promises(fitted, new_images, network):
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    seen = hidden(new_images[0], masks(40))
    given = seen.copy()
    for name, predictor in fitted.items():
        proba = predictor.predict_proba(seen)
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(predictor.predict_proba(seen[7:9]), proba[7:9], atol=1e-5, err_msg=name)
        np.testing.assert_array_equal(seen, given)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert not network.training


def test_a_frozen_network_is_itself_on_complete_images(fitted, new_images, network):
    expected = softmax(logits_of(network, new_images[0]), axis=1)
    for name in ("CNN", "gray", "ReCNN", "similar", "auto"):
        np.testing.assert_allclose(fitted[name].predict_proba(new_images[0]), expected, atol=1e-5, err_msg=name)
        rows = fitted[name].schema_.encode(new_images[0])
        np.testing.assert_allclose(fitted[name].full_proba(rows), expected, atol=1e-5, err_msg=name)
    assert np.abs(fitted["AdCNN"].predict_proba(new_images[0]) - expected).max() > 1e-4  # a network of its own


def test_hidden_patches_hold_the_mean_image_or_gray(fitted, images, new_images, network):
    mask = masks(40)
    for name, fill in (("CNN", images[0].mean(axis=0)), ("gray", np.full((1, 8, 8), images[0].mean()))):
        seen = hidden(new_images[0], mask)
        filled = np.where(np.isnan(seen), fill, seen).astype(np.float32)
        expected = softmax(logits_of(network, filled), axis=1)
        np.testing.assert_allclose(fitted[name].predict_proba(seen), expected, atol=1e-4)


def test_adaptation_lowers_the_loss_under_masks(fitted, new_images):
    mask = np.random.default_rng(5).random((40, 4)) < 0.5
    seen, labels = hidden(new_images[0], mask), new_images[1]

    def loss(name):
        return -np.log(fitted[name].predict_proba(seen)[np.arange(40), labels] + 1e-9).mean()

    for name in ("ReCNN", "AdCNN", "similar", "auto"):
        assert loss(name) < loss("CNN"), name


def test_training_is_repeatable(images, network):
    options: dict[str, Any] = {"pretrain_epochs": 1, "adapter_epochs": 1, "random_state": 3}
    first, second = (PatchNetwork(network, **options).fit(*images, groups=GRID) for _ in range(2))
    seen = hidden(images[0][:5], masks(5))
    np.testing.assert_allclose(first.predict_proba(seen), second.predict_proba(seen), atol=1e-6)


def test_any_classifier_of_images_can_be_reparametrized(images, network):
    def function(pixels):
        assert pixels.shape[1:] == (1, 8, 8)
        return softmax(logits_of(network, np.asarray(pixels, dtype=np.float32)), axis=1)

    seen = hidden(images[0][:6], masks(6))
    of_function = PatchNetwork(function, random_state=0).fit(*images, groups=GRID)
    of_module = PatchNetwork(network, random_state=0).fit(*images, groups=GRID)
    np.testing.assert_allclose(of_function.predict_proba(seen), of_module.predict_proba(seen), atol=1e-5)
    adapted = PatchNetwork(function, adapter_epochs=2, random_state=0).fit(*images, groups=GRID)
    assert np.isfinite(adapted.predict_proba(seen)).all()
    with pytest.raises(InvalidInput, match=r"pretrain_epochs need a torch\.nn\.Module"):
        PatchNetwork(function, pretrain_epochs=1).fit(*images, groups=GRID)


def test_similar_images_are_found_by_the_patches_that_are_known(fitted, images):
    search = fitted["similar"].neighbors_
    schema = fitted["similar"].schema_
    rows = schema.encode(images[0])
    mask = np.zeros((len(rows), 4), dtype=bool)
    assert (search.squared_distances(rows.take(slice(3)).masked(schema.expand(mask[:3]))) == 0).all()
    mask[:, 0] = True
    known = rows.masked(schema.expand(mask))
    bright = images[1] == 0  # class 0 is bright in the first patch
    nearest = search.nearest(search.squared_distances(known))[0]
    pool_is_bright = np.empty(len(rows), dtype=bool)
    pool_is_bright[fitted["similar"].pool_position_] = bright
    assert (pool_is_bright[nearest] == bright[:, None]).all()


def test_distances_grow_patch_by_patch_exactly(fitted, new_images):
    search, schema = fitted["similar"].neighbors_, fitted["similar"].schema_
    rows = schema.encode(new_images[0])
    less, more = np.zeros((40, 4), dtype=bool), np.ones((40, 4), dtype=bool)
    less[:, 1] = True
    first = rows.masked(schema.expand(less))
    grown = search.squared_distances(rows, search.squared_distances(first), first.observed)
    np.testing.assert_allclose(grown, search.squared_distances(rows.masked(schema.expand(more))), atol=1e-9)
    one = search.squared_distances(first.take([4]))
    np.testing.assert_array_equal(one[0], search.squared_distances(first)[4])  # whatever the batch


def test_dropout_members_are_thinned_last_layers(fitted, new_images):
    rows = fitted["CNN"].schema_.encode(hidden(new_images[0], masks(40)))
    for name in ("CNN", "ReCNN", "AdReCNN", "similar", "auto"):
        predictor = fitted[name]
        beliefs = BeliefModel(predictor, PatchDropout(6, random_state=0).fit(predictor))
        belief: Any = beliefs.believe(rows)
        assert belief.members.shape == (6, 40, 3)
        np.testing.assert_allclose(belief.members.sum(axis=2), 1, atol=1e-6)
        np.testing.assert_allclose(belief.proba, predictor.proba(rows), atol=1e-6)
        assert (beliefs.uncertainty(belief).epistemic > 0).mean() > 0.8, name
        alone: Any = beliefs.believe(rows.take([9]))
        np.testing.assert_allclose(alone.members[:, 0], belief.members[:, 9], atol=1e-5, err_msg=name)


def test_dropout_elsewhere_in_the_network_is_honored(images, untrained):
    from torch import nn

    network = untrained()
    deep = nn.Sequential(*network[:2], nn.Dropout2d(0.5), *network[2:])
    for module, elsewhere in ((network.eval(), False), (deep.eval(), True), (untrained(dropout=0.0).eval(), False)):
        predictor = PatchNetwork(module).fit(*images, groups=GRID)
        epistemic = PatchDropout(4, random_state=0).fit(predictor)
        assert bool(epistemic._thinned) == elsewhere
        belief: Any = BeliefModel(predictor, epistemic).believe(predictor.schema_.encode(images[0][:3]))
        assert belief.members.std(axis=0).max() > 0
    with pytest.raises(InvalidInput, match=r"needs a torch\.nn\.Module"):
        PatchDropout().fit(PatchNetwork(lambda pixels: np.full((len(pixels), 3), 1 / 3)).fit(*images, groups=GRID))


def test_bad_parameters_are_refused(images, network):
    for options, message in (
        ({"fill": "black"}, "fill must be one of"),
        ({"visible": (0.9, 0.2)}, "least, largest"),
        ({"visible": 0.5}, "visible must be"),
        ({"pretrain_epochs": -1}, "pretrain_epochs must be"),
        ({"batch_size": 0}, "batch_size must be"),
    ):
        with pytest.raises(InvalidInput, match=message):
            PatchNetwork(network, **options).fit(*images, groups=GRID)
    with pytest.raises(InvalidInput, match="groups=PatchGrid"):
        PatchNetwork(lambda X: np.full((len(X), 2), 0.5)).fit(np.random.default_rng(0).random((6, 3)), [0, 1] * 3)


def test_the_dtype_of_the_network_is_kept(images, network):
    import copy

    double = copy.deepcopy(network).double()
    predictor = PatchNetwork(double, pretrain_epochs=1, random_state=0).fit(*images, groups=GRID)
    assert next(predictor.layer_.model.estimator.function.parameters()).dtype == torch.float64
    assert next(double.parameters()).dtype == torch.float64


def test_a_network_that_ends_in_a_softmax_is_taken_as_it_is(images, network):
    from torch import nn

    ending = nn.Sequential(*network, nn.Softmax(dim=1)).eval()
    seen = hidden(images[0][:6], masks(6))
    plain = PatchNetwork(network).fit(*images, groups=GRID)
    with pytest.warns(UserWarning, match="returns probabilities"):
        predictor = PatchNetwork(ending).fit(*images, groups=GRID)
    np.testing.assert_allclose(predictor.predict_proba(seen), plain.predict_proba(seen), atol=1e-5)
    rows = predictor.schema_.encode(seen)
    beliefs = BeliefModel(predictor, PatchDropout(4, random_state=0).fit(predictor))
    members: Any = beliefs.believe(rows).members
    assert np.abs(members.mean(axis=0) - plain.predict_proba(seen)).max() < 0.3
    with pytest.warns(UserWarning, match="returns probabilities"), pytest.raises(InvalidInput, match="one logit for"):
        PatchNetwork(ending, pretrain_epochs=1).fit(*images, groups=GRID)
