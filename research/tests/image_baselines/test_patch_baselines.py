"""DIME, VIP and GDFS on patches, and the stages of the paper."""

from typing import Any

import numpy as np
import pytest

from askwise.errors import InvalidInput
from askwise.images.grid import PatchGrid

torch = pytest.importorskip("torch")

from askwise_bench.image_baselines import METHODS, PatchDIME, PatchGDFS, PatchVIP, method  # noqa: E402
from askwise_bench.image_baselines.stages import STAGES  # noqa: E402

GRID = PatchGrid(2, 2)


def test_baselines_learn_to_buy_patches(images, new_images, network):
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    for baseline in (PatchDIME, PatchVIP, PatchGDFS):
        options: dict[str, Any] = {
            "pretrain_epochs": 3,
            "epochs": 12,
            "hidden": (16,),
            "policy_learning_rate": 1e-2,
            "batch_size": 16,
        }
        fitted = baseline(network, groups=GRID, random_state=0, **options).fit(*images)
        accuracy = fitted.evaluate(new_images[0], new_images[1], budgets=[1, 2, 4])["accuracy"].to_numpy()
        assert accuracy[1] > 0.85, baseline.__name__
        run = fitted.acquire(new_images[0])
        assert (np.sort(run.order, axis=1) == np.arange(4)).all()
        assert (run.order[:, 0] != 3).all(), "the patch without information is not the first"
        one = fitted.acquire(new_images[0][5:6])
        np.testing.assert_allclose(one.proba[0], run.proba[5], atol=1e-5)
        again = baseline(network, groups=GRID, random_state=0, **options).fit(*images)
        np.testing.assert_allclose(again.predict_proba(new_images[0]), fitted.predict_proba(new_images[0]), atol=1e-5)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_baselines_refuse_what_they_cannot_use(images, network):
    for wrong, message in (
        (PatchVIP(lambda pixels: pixels, groups=GRID), r"network must be a torch\.nn\.Module"),
        (PatchDIME(network, groups=GRID, hidden=(0,)), "hidden must be"),
        (PatchDIME(network, groups=GRID, epochs=-1), "epochs must be"),
        (PatchGDFS(network, groups=PatchGrid(3, 2)), "does not divide"),
    ):
        with pytest.raises(InvalidInput, match=message):
            wrong.fit(*images)
    with pytest.raises(InvalidInput, match="groups must be a PatchGrid"):
        PatchGDFS(network).fit(np.random.default_rng(0).random((6, 3)), [0, 1] * 3)


def test_the_stages_of_the_paper_are_100_epochs():
    for name, epochs in STAGES.items():
        assert sum(epochs["paper"]) == 100, name
    assert set(STAGES) == set(METHODS)


def test_methods_have_the_settings_of_the_paper(network):
    adapted = method("AdReCNN", network, profile="paper")
    predictor, value = adapted.adaptation, adapted.policy.value
    assert (predictor.pretrain_epochs, predictor.adapter_epochs, value.rounds * value.epochs) == (40, 40, 20)
    assert (predictor.learning_rate, predictor.batch_size, predictor.hidden) == (1e-3, 64, 64)
    assert predictor.visible == (0.2, 1.0)
    assert (value.learning_rate, value.hidden, value.dropout, value.l1) == (1e-4, 256, 0.3, 0.1)
    assert adapted.epistemic.n_samples == 30
    dime, vip = (method(name, network, profile="paper") for name in ("DIME", "VIP"))
    assert (dime.default_hidden, dime.dropout, dime.policy_learning_rate) == ((512, 256), 0.3, 1e-4)
    assert (vip.default_hidden, vip.pretrain_epochs, vip.epochs) == ((1000, 500), 0, 100)
    for wrong in (("CNNs", "paper"), ("CNN", "fast")):
        with pytest.raises(InvalidInput, match="name must be one of"):
            method(wrong[0], network, profile=wrong[1])


def test_every_method_runs(images, new_images, network):
    for name in METHODS:
        fitted = method(name, network, GRID, random_state=0)
        if hasattr(fitted, "policy"):
            fitted.policy.value.set_params(n_states=50, rounds=1, epochs=1)
        else:
            fitted.set_params(hidden=(8,), epochs=1, pretrain_epochs=1)
        table = fitted.fit(images[0][:60], images[1][:60]).evaluate(new_images[0], new_images[1], budgets=[4])
        assert table["accuracy"][0] > 0.5, name
