"""DynamicFeatureSelector on images: the same contract, patch by patch."""

import json
from typing import Any

import numpy as np
import pytest

from askwise import DynamicFeatureSelector
from askwise.errors import InvalidInput
from askwise.images.grid import PatchGrid
from askwise.policy.greedy import Greedy

torch = pytest.importorskip("torch")

from askwise.vision import PatchNetwork, PatchValueNetwork, SimilarImageValue  # noqa: E402

GRID = PatchGrid(2, 2)
QUICK: dict[str, Any] = {"rounds": 2, "n_states": 100, "epochs": 4, "n_candidates": 2, "hidden": 16, "batch_size": 16}
OPTIONS: dict[str, dict[str, Any]] = {
    "auto": {},
    "network": {"adaptation": "mean", "policy": Greedy(PatchValueNetwork(**QUICK))},
    "adapted": {
        "adaptation": PatchNetwork(pretrain_epochs=1, adapter_epochs=1),
        "policy": Greedy(SimilarImageValue(20)),
    },
}


@pytest.fixture(scope="module")
def selectors(images, network):
    return {
        name: DynamicFeatureSelector(network, groups=GRID, random_state=0, progress=False, **options).fit(*images)
        for name, options in OPTIONS.items()
    }


def patch(image, name):
    r, c = int(name[7]) - 1, int(name[9]) - 1
    return image[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4]


def test_patches_are_bought_and_predictions_follow(selectors, new_images):
    images, y = new_images
    for name, selector in selectors.items():
        assert selector.features_ == ["patch r1c1", "patch r1c2", "patch r2c1", "patch r2c2"]
        run = selector.acquire(images)
        assert run.order.shape == (40, 4)
        np.testing.assert_allclose(run.proba[:, -1], selector.predict_proba(images), atol=1e-5)
        assert (run.predict() == y).mean() > 0.9
        table = selector.evaluate(images, y, budgets=[1, 2, 4])
        assert table["features"].tolist() == [1, 2, 4]
        trust = selector.uncertainty(images)
        assert np.isfinite(trust.total).all()
        assert (trust.epistemic >= 0).all(), name


def test_policies_buy_patches_that_tell_the_classes_apart(selectors, new_images):
    """The last patch is noise in every class; two of the others are enough."""
    images, y = new_images
    for name, selector in selectors.items():
        run = selector.acquire(images, budget=2)
        assert (run.order[:, 0] != 3).all(), name
        assert (run.predict() == y).mean() > 0.9, name


def test_a_session_equals_its_row_in_a_batch(selectors, new_images):
    images = new_images[0]
    for selector in selectors.values():
        run = selector.acquire(images, budget=3)
        for row in (0, 7):
            session = selector.start(budget=3)
            for step in range(3):
                suggestion = session.suggest()
                assert suggestion.feature == selector.features_[run.order[row, step]]
                session.answer(suggestion.feature, patch(images[row], suggestion.feature))
                shown = session.report()
                found = [shown["probabilities"][str(c)] for c in selector.classes_]
                np.testing.assert_allclose(found, run.proba[row, step + 1], atol=1e-5)
                trust = shown["uncertainty"]["epistemic"]
                assert trust == pytest.approx(run.uncertainty.epistemic[row, step + 1], abs=1e-5)
            assert session.suggest() is None


def test_hidden_pixels_are_nan_and_known_masks_say_what_is_known(selectors, new_images):
    selector, images = selectors["auto"], new_images[0][:6]
    seen = images.copy()
    seen[:, :, :4, :] = np.nan
    assert set(selector.suggest(seen).tolist()) <= {0, 1}
    assert set(selector.suggest(seen, as_names=True)) <= {"patch r1c1", "patch r1c2"}
    known = np.array([False, False, True, True])
    run = selector.acquire(images, budget=0, known=known)
    np.testing.assert_allclose(run.proba[:, 0], selector.predict_proba(seen), atol=1e-6)
    assert np.isneginf(selector.ranking(seen)[:, 2:]).all()


def test_a_report_is_short_and_json(selectors, new_images):
    session = selectors["auto"].start(known={"patch r1c1": patch(new_images[0][0], "patch r1c1")})
    session.answer("patch r2c2", torch.as_tensor(patch(new_images[0][0], "patch r2c2")))
    text = json.dumps(session.report())
    assert "1 x 4 x 4 pixels" in text
    assert len(text) < 6000
    session.undo()
    assert session.known.keys() == {"patch r1c1"}


def test_images_of_bytes_are_taken(images, new_images, untrained):
    from askwise.vision import train_classifier

    as_bytes = [np.round(part * 255).astype(np.uint8) for part in (images[0], new_images[0])]

    class OfBytes(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self):
            super().__init__()
            self.inner = untrained()

        def forward(self, pixels):
            assert float(pixels.max()) > 1
            return self.inner(pixels / 255)

    net = train_classifier(
        OfBytes(), as_bytes[0], images[1], epochs=8, batch_size=8, learning_rate=5e-3, random_state=0
    )
    selector = DynamicFeatureSelector(net, groups=GRID, random_state=0, progress=False).fit(as_bytes[0], images[1])
    assert selector.evaluate(as_bytes[1], new_images[1], budgets=[3])["accuracy"][0] > 0.8
    session = selector.start()
    session.answer("patch r1c1", as_bytes[1][0, :, :4, :4])
    with pytest.raises(InvalidInput, match="0 to 255"):
        session.answer("patch r1c2", new_images[0][0, :, :4, 4:])


def test_tensors_are_taken(selectors, new_images):
    tensors = torch.as_tensor(new_images[0])
    for ask in (selectors["auto"].predict_proba, selectors["auto"].suggest):
        np.testing.assert_allclose(ask(tensors), ask(new_images[0]), atol=1e-6)


def test_images_unlike_all_that_was_seen_are_reported(selectors, new_images):
    selector = selectors["auto"]
    strange = new_images[0].copy()
    strange[0] = 1 - strange[0]  # a negative
    strange[1] *= 255
    novelty = selector.uncertainty(strange).novelty
    assert novelty[0] > 0.2
    assert novelty[1] > 10
    assert np.median(novelty[2:]) < 0.05
    session = selector.start()
    session.answer("patch r1c1", strange[1, :, :4, :4])
    outside = session.report()["outside"]
    assert [cell["feature"] for cell in outside] == ["patch r1c1"]


def test_bad_images_are_refused_with_a_reason(selectors, images, network):
    selector = selectors["auto"]
    for bad, message in (
        (np.zeros((2, 3, 8, 8), dtype=np.float32), r"as in fit; got \(3, 8, 8\)"),
        (np.zeros((2, 1, 8, 4), dtype=np.float32), r"as in fit; got \(1, 8, 4\)"),
        (np.zeros((2, 64), dtype=np.float32), r"\(N, C, H, W\)"),
        (np.zeros((2, 1, 8, 8), dtype=np.uint8), "scale the pixels"),
    ):
        for ask in (selector.predict_proba, selector.acquire, selector.suggest):
            with pytest.raises(InvalidInput, match=message):
                ask(bad)
    session = selector.start()
    with pytest.raises(InvalidInput, match=r"patch of shape \(1, 4, 4\)"):
        session.answer("patch r1c1", np.zeros((1, 8, 8)))
    with pytest.raises(InvalidInput, match="there is no feature 'patch r9c9'"):
        session.answer("patch r9c9", np.zeros((1, 4, 4)))
    for options, message in (
        ({"groups": PatchGrid(3, 3)}, "does not divide images of 8 x 8"),
        ({"groups": None}, "dim 4"),
        ({"adaptation": "rules"}, 'adaptation must be "auto"'),
        ({"epistemic": "ensemble"}, 'epistemic must be "auto"'),
        ({"policy": "rl"}, 'policy must be "auto"'),
    ):
        with pytest.raises(ValueError, match=message):
            DynamicFeatureSelector(network, **dict[str, Any]({"groups": GRID, "progress": False} | options)).fit(
                *images
            )
    with pytest.raises(InvalidInput, match="classes"):
        DynamicFeatureSelector(network, groups=GRID).fit(images[0], images[1] % 2)


def test_models_that_are_not_networks_are_taken(images, new_images):
    """A callable, and an unfitted classifier of images, which is cloned and fitted."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Brightest(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            means = np.stack([X[:, 0, :4, :4], X[:, 0, :4, 4:], X[:, 0, 4:, :4]]).mean(axis=(2, 3)).T
            return means**4 / (means**4).sum(axis=1, keepdims=True)

    pairs: list[Any] = [(Brightest(), "auto"), (Brightest().fit(*images).predict_proba, "static")]
    for model, policy in pairs:
        selector = DynamicFeatureSelector(model, groups=GRID, policy=policy, random_state=0, progress=False)
        selector.fit(*images)
        assert selector.evaluate(new_images[0], new_images[1], budgets=[3])["accuracy"][0] > 0.9
        assert np.isfinite(selector.uncertainty(new_images[0]).epistemic).all()


def test_value_targets_are_computed_in_bounded_batches(images, network, monkeypatch):
    """No more than so many images of S + i exist at once, whatever the number of states."""
    from askwise.value import targets

    largest = []
    believe = PatchNetwork.believe

    def watched(self, rows, **options):
        largest.append(len(rows))
        return believe(self, rows, **options)

    monkeypatch.setattr(PatchNetwork, "believe", watched)
    monkeypatch.setattr(targets, "CELLS_AT_ONCE", 64 * 32)
    DynamicFeatureSelector(network, groups=GRID, random_state=0, progress=False, **OPTIONS["network"]).fit(*images)
    assert sum(largest) > 300
    pairs = [n for n in largest if n != 100]  # the states themselves are small: no candidates
    assert max(pairs) <= 100
    assert 32 in pairs


def test_a_filmstrip_shows_every_step(selectors, new_images, tmp_path):
    from askwise.vision import filmstrip

    for selector in selectors.values():
        figure = filmstrip(selector, new_images[0][0], budget=3, label=new_images[1][0], path=tmp_path / "case.png")
        assert len(figure.axes) == 2 * 4 + 1
        assert (tmp_path / "case.png").stat().st_size > 5000
