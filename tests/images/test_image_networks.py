"""The small network of images, and training."""

import subprocess
import sys

import pytest

from askwise.errors import InvalidInput

torch = pytest.importorskip("torch")

from askwise.vision import small_cnn, train_classifier  # noqa: E402


def test_the_small_network_takes_any_size():
    for channels, size in ((1, 28), (3, 32)):
        assert small_cnn(5, channels, width=2)(torch.zeros(2, channels, size, size)).shape == (2, 5)


def test_a_network_learns_its_images(images, new_images, network):
    with torch.no_grad():
        predicted = network(torch.as_tensor(new_images[0])).argmax(dim=1).numpy()
    assert (predicted == new_images[1]).mean() > 0.95
    with pytest.raises(InvalidInput, match="one label per image, 120 in all"):
        train_classifier(network, images[0], [0, 1])


def test_patches_do_not_wait_for_torch():
    code = "import sys, askwise, askwise.vision, askwise.images.grid; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
