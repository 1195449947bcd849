"""Tiny images whose class is in a known patch, and tiny networks of them."""

import numpy as np
import pytest


def make_images(n, seed=0, channels=1):
    """(n, channels, 8, 8) images of three classes: class c is bright in patch r1c1, r1c2 or r2c1 of a 2 x 2 grid."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    images = rng.random((n, channels, 8, 8)) * 0.3
    for c, (r, k) in enumerate([(0, 0), (0, 1), (1, 0)]):
        images[y == c, :, 4 * r : 4 * r + 4, 4 * k : 4 * k + 4] += 0.7
    return images.astype(np.float32), y


def make_network(channels=1, dropout=0.2, seed=0):
    """An untrained network of 8 x 8 images."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 12),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(12, 3),
    )


@pytest.fixture(scope="session")
def images():
    """Training images and labels."""
    return make_images(120)


@pytest.fixture(scope="session")
def new_images():
    """Images and labels that were not trained on."""
    return make_images(40, seed=1)


@pytest.fixture(scope="session")
def network(images):
    """A network trained on the training images."""
    pytest.importorskip("torch")
    from askwise.vision import train_classifier

    return train_classifier(make_network(), *images, epochs=12, batch_size=8, learning_rate=5e-3, random_state=0)


@pytest.fixture
def untrained():
    """A function that makes an untrained network."""
    pytest.importorskip("torch")
    return make_network
