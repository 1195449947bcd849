"""Networks for images: ResNet-18 in the layout of torchvision's, and a small one for quick runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from askwise.datasets.home import data_home
from askwise.errors import InvalidInput
from askwise.networks import import_torch

DROPOUT = 0.2
RESNET18_FILE = "resnet18-f37072fd.pth"
"""torchvision's ImageNet weights; in the folder `models` of the data home, or in the data home itself."""


def small_cnn(n_classes: int, n_channels: int = 1, width: int = 16) -> Any:
    """A small torch network of any image size for runs without a GPU, with dropout (0.2) before its last layer.

    Two convolutions, then max pooling to a 4 x 4 grid, which keeps the positions of patches. On one core an image of
    28 x 28 takes 0.2 ms, and 0.5 ms in training.
    """
    import_torch("small_cnn", "a classifier of your own")
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(n_channels, width, 5, stride=2, padding=2),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * width, 128),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(128, n_classes),
    )


def resnet18(
    n_classes: int, n_channels: int = 3, *, small_images: bool = False, weights: str | Path | None = None
) -> Any:
    """ResNet-18 (He et al. 2016) with the parameter names and shapes of torchvision's, as a torch module.

    Parameters
    ----------
    n_classes, n_channels
        Outputs, and channels of the images.
    small_images
        A first convolution of 3 x 3 without stride or pooling, for images of about 30 x 30 pixels.
    weights
        None: random. ``"imagenet"``: the file `resnet18-f37072fd.pth` in the data home. A path: a state dict in that
        layout. A last layer for another number of classes is initialized at random; so is the first convolution
        if `small_images` is set or the channels differ.
    """
    import_torch("resnet18", "a classifier of your own")
    network = _resnet18(n_classes, n_channels, small_images)
    if weights is not None:
        load_weights(network, _weights_file(weights), may_differ=("conv1.", "fc."))
    return network


def load_weights(network: Any, path: Path, may_differ: tuple[str, ...] = ()) -> None:
    """Load a state dict strictly; layers whose names begin with `may_differ` are skipped where shapes differ."""
    import torch

    if not path.is_file():
        raise InvalidInput(f"There is no file {path}. Put the state dict there, or leave `weights` out.")
    state = torch.load(path, map_location="cpu", weights_only=True)
    own = network.state_dict()
    for name in [name for name in state if name.startswith(may_differ)] if may_differ else []:
        if name in own and state[name].shape != own[name].shape:
            state[name] = own[name]
    try:
        network.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise InvalidInput(f"{path} does not hold the weights of this network: {error}") from None


def _weights_file(weights: str | Path) -> Path:
    if weights != "imagenet":
        return Path(weights)
    places = [data_home() / "models" / RESNET18_FILE, data_home() / RESNET18_FILE]
    return next((place for place in places if place.is_file()), places[0])


def _resnet18(n_classes: int, n_channels: int, small_images: bool) -> Any:
    from torch import nn

    block = _basic_block()

    def stage(n_in: int, n_out: int, stride: int) -> Any:
        return nn.Sequential(block(n_in, n_out, stride), block(n_out, n_out, 1))

    class ResNet18(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            size, stride = (3, 1) if small_images else (7, 2)
            self.conv1 = nn.Conv2d(n_channels, 64, size, stride, padding=size // 2, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.relu = nn.ReLU()
            self.maxpool: Any = nn.Identity() if small_images else nn.MaxPool2d(3, 2, padding=1)
            self.layer1, self.layer2 = stage(64, 64, 1), stage(64, 128, 2)
            self.layer3, self.layer4 = stage(128, 256, 2), stage(256, 512, 2)
            self.avgpool = nn.AdaptiveAvgPool2d(1)
            self.dropout = nn.Dropout(DROPOUT)  # has no parameters: the layout stays torchvision's
            self.fc = nn.Linear(512, n_classes)

        def forward(self, images: Any) -> Any:
            maps = self.maxpool(self.relu(self.bn1(self.conv1(images))))
            maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
            return self.fc(self.dropout(self.avgpool(maps).flatten(1)))

    return ResNet18()


def _basic_block() -> Any:
    from torch import nn

    class BasicBlock(nn.Module):
        def __init__(self, n_in: int, n_out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(n_out)
            self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(n_out)
            self.relu = nn.ReLU()
            self.downsample: Any = None
            if stride != 1 or n_in != n_out:
                self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

        def forward(self, maps: Any) -> Any:
            straight = maps if self.downsample is None else self.downsample(maps)
            maps = self.relu(self.bn1(self.conv1(maps)))
            return self.relu(self.bn2(self.conv2(maps)) + straight)

    return BasicBlock
