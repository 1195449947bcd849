"""Images in the grid: the task that one seed draws, and the methods of Table 4 around a network trained first."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.datasets.images import load_images
from askwise.errors import InvalidInput
from askwise.networks import seeded
from askwise.selector import DynamicFeatureSelector
from askwise.vision import AlternatingTraining, BestOrder, OnPolicyTraining, PatchGrid, small_cnn, train_classifier
from askwise_bench.image_baselines import method
from askwise_bench.image_baselines.stages import STAGES
from askwise_bench.image_baselines.two_networks import MOST_STEPS
from askwise_bench.image_networks import last_stage, resnet18
from askwise_bench.patch_maps import patch_maps

if TYPE_CHECKING:
    from askwise.acquirer import FeatureAcquirer
    from askwise_bench.grid.tasks import Limits, Settings, Task

IMAGES = ("mnist", "cifar10", "imagenette")
GRID = (4, 4)
CHANNELS = {"mnist": 1, "cifar10": 3, "imagenette": 3}
NETWORK_EPOCHS = {"quick": 8, "paper": 10}
"""Passes over complete images that train the network to be wrapped; they come before the paper's 100."""

IMAGENET_MEAN, IMAGENET_SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def draw_images(data: str, prices: str, seed: int, limits: Limits, settings: Settings) -> dict[str, Any]:
    """The fields of a `Task`: a random sample of the training images and one of the test images.

    Under the settings "quick" those of Imagenette are maps, of which the last stage of a network is trained.
    """
    if prices != "uniform":
        raise InvalidInput(f"The patches of {data} have equal prices; got prices {prices!r}.")
    found, rng = load_images(data), np.random.default_rng(seed)
    train = np.sort(rng.permutation(len(found.y))[: limits.training])
    test = np.sort(rng.permutation(len(found.test_y))[: limits.testing])
    given, asked = found.images, found.test_images
    as_maps = data == "imagenette" and settings.images == "quick"
    return {
        "X_train": patch_maps("imagenette-train", given, train) if as_maps else given[train],
        "y_train": found.y[train],
        "X_test": patch_maps("imagenette-test", asked, test) if as_maps else asked[test],
        "y_test": found.test_y[test],
        "groups": PatchGrid(*GRID),
        "settings": settings,
    }


_TRAINED: dict[tuple[Any, ...], Any] = {}
"""The last networks that methods started from, by task: every method of a seed starts from the same one."""
MOST_KEPT = 5


def trained_network(task: Task, make: Callable[[int], Any] | None = None) -> Any:
    """The network that all methods of a seed start from, or one that `make` makes for a number of classes."""
    if make is not None:
        return _trained_network(task, make)
    key = (
        task.data,
        task.seed,
        task.settings.images,
        task.X_train.shape,
        task.X_train[:3].tobytes(),
        task.y_train.tobytes(),
    )
    if key not in _TRAINED:
        while len(_TRAINED) >= MOST_KEPT:
            _TRAINED.pop(next(iter(_TRAINED)))
        _TRAINED[key] = _trained_network(task)
    return copy.deepcopy(_TRAINED[key])


def _trained_network(task: Task, make: Callable[[int], Any] | None = None) -> Any:
    n_classes = len(np.unique(task.y_train))
    with seeded(task.seed):
        network = make(n_classes) if make else _network(task.data, task.settings.images, n_classes)
    epochs = NETWORK_EPOCHS[task.settings.images]
    return train_classifier(network, task.X_train, task.y_train, epochs=epochs, random_state=task.seed)


def _network(data: str, profile: str, n_classes: int) -> Any:
    """The paper's ResNet-18, from scratch on MNIST and else from ImageNet; or one that two cores can train."""
    if profile == "paper" and data == "mnist":
        return resnet18(n_classes, 1, small_images=True)
    if profile == "paper":
        return _standardized(resnet18(n_classes, weights="imagenet"))
    return last_stage(n_classes) if data == "imagenette" else small_cnn(n_classes, CHANNELS[data])


def _standardized(network: Any) -> Any:
    """`network` for pixels of 0 to 255, which it gets as ImageNet's weights expect them."""
    import torch
    from torch import nn

    class Standardized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(3, 1, 1))
            self.register_buffer("spread", torch.tensor(IMAGENET_SPREAD).view(3, 1, 1))
            self.network = network

        def forward(self, images: Any) -> Any:
            return self.network((images / 255 - self.mean) / self.spread)

    return Standardized()


def _fit_paper_method(name: str, task: Task) -> FeatureAcquirer:
    return _paper_method(name, task).fit(task.X_train, task.y_train)


def _paper_method(name: str, task: Task) -> Any:
    made = method(name, trained_network(task), task.groups, profile=task.settings.images, random_state=task.seed)
    if task.settings.images == "quick" and task.data == "imagenette" and isinstance(made, DynamicFeatureSelector):
        made.set_params(policy__value__n_states=len(task.y_train) // 2)  # fewer images, and fewer states
    return made


def _fit_longer(task: Task) -> FeatureAcquirer:
    """AdCNN trained under masks for as many epochs as DIME and GDFS train their predictor in both of their stages."""
    profile = task.settings.images
    pretrain, _, joint = STAGES["DIME"][profile]
    made = method("AdCNN", trained_network(task), task.groups, profile=profile, random_state=task.seed)
    return made.set_params(adaptation__pretrain_epochs=pretrain + joint).fit(task.X_train, task.y_train)


def _fit_few(task: Task) -> FeatureAcquirer:
    """AdCNN whose network is trained on the shares of patches that are asked for, 0 to 65 %, instead of 20 to 100 %."""
    return _on_few_patches(task).fit(task.X_train, task.y_train)


def _fit_on_policy(task: Task) -> FeatureAcquirer:
    """`_fit_few`, trained further on the patches that its policy chooses: as many epochs as DIME and GDFS in all."""
    _, _, joint = STAGES["DIME"][task.settings.images]
    epochs = max(1, joint // ON_POLICY_ROUNDS)
    training = OnPolicyTraining(ON_POLICY_ROUNDS, epochs, most_patches=MOST_STEPS, random_state=task.seed)
    return training.applied(_on_few_patches(task).fit(task.X_train, task.y_train))


def _fit_alternating(task: Task) -> FeatureAcquirer:
    """`_fit_few`, then its network and values in turns: it sees each image as often as that of DIME or GDFS does."""
    _, _, joint = STAGES["DIME"][task.settings.images]
    given = _on_few_patches(task).set_params(policy="static").fit(task.X_train, task.y_train)
    training = AlternatingTraining(SEEN_PER_EPOCH * joint, most_patches=MOST_STEPS, random_state=task.seed)
    return training.applied(given)


def _fit_own_order(name: str, task: Task) -> FeatureAcquirer:
    """The network of a paper's method with one order for all images: learned or the middle first."""
    made = _paper_method(name, task).set_params(policy=BestOrder(greedy=False))
    return made.fit(task.X_train, task.y_train)


def _fit_order(task: Task) -> FeatureAcquirer:
    """`_fit_on_policy` with one order for all images: learned or the middle first, whichever is better."""
    _, _, joint = STAGES["DIME"][task.settings.images]
    given = _on_few_patches(task).set_params(policy=BestOrder(greedy=False)).fit(task.X_train, task.y_train)
    return OnPolicyTraining(1, joint, most_patches=MOST_STEPS, random_state=task.seed).applied(given)


def _on_few_patches(task: Task) -> DynamicFeatureSelector:
    pretrain = STAGES["DIME"][task.settings.images][0]
    made = _paper_method("AdCNN", task)
    return made.set_params(adaptation__pretrain_epochs=pretrain, adaptation__visible=FEW_PATCHES)


def _fit_resnet(task: Task) -> FeatureAcquirer:
    network = trained_network(task, lambda n_classes: resnet18(n_classes, CHANNELS[task.data]))
    made = method("AdCNN", network, task.groups, profile=task.settings.images, random_state=task.seed)
    return made.fit(task.X_train, task.y_train)


def _fit_default(task: Task) -> FeatureAcquirer:
    selector = DynamicFeatureSelector(trained_network(task), groups=task.groups, random_state=task.seed)
    return selector.fit(task.X_train, task.y_train)


FEW_PATCHES = (0.0, 0.65)
"""Shares of the patches that are visible in training: up to the ten of sixteen that are bought."""
ON_POLICY_ROUNDS = 2
SEEN_PER_EPOCH = 2
"""In an epoch DIME and GDFS show their network each image twice: before and after a purchase."""

IMAGE_METHODS: dict[str, tuple[str, Callable[[Task], FeatureAcquirer]]] = {
    "cnn": ("images: greedy, a frozen network", partial(_fit_paper_method, "CNN")),
    "recnn": ("images: greedy, its last layer reparametrized", partial(_fit_paper_method, "ReCNN")),
    "adcnn": ("images: greedy, the network trained under masks", partial(_fit_paper_method, "AdCNN")),
    "adrecnn": ("images: greedy, both", partial(_fit_paper_method, "AdReCNN")),
    "adcnn-on-policy": ("images: greedy, the network trained on few patches and on its choices", _fit_on_policy),
    "adcnn-alternating": ("images: greedy, network and values trained in turns on its choices", _fit_alternating),
    "patch-askwise": ("images: the defaults of this library", _fit_default),
    "patch-dime": ("images: DIME", partial(_fit_paper_method, "DIME")),
    "patch-vip": ("images: VIP", partial(_fit_paper_method, "VIP")),
    "patch-gdfs": ("images: GDFS", partial(_fit_paper_method, "GDFS")),
}
"""Title, and how it is fitted on a task."""

IMAGE_VARIANTS: dict[str, tuple[str, Callable[[Task], FeatureAcquirer]]] = {
    "cnn-own-order": ("images: CNN, one order for all images", partial(_fit_own_order, "CNN")),
    "adcnn-own-order": ("images: AdCNN, one order for all images", partial(_fit_own_order, "AdCNN")),
    "adcnn-few": ("images: AdCNN, trained on 0 to 65 % of the patches", _fit_few),
    "adcnn-order": ("images: AdCNN, trained along the better of a learned order and the middle first", _fit_order),
    "adcnn-longer": ("images: AdCNN, as many epochs under masks as DIME and GDFS", _fit_longer),
    "adcnn-resnet18": ("images: AdCNN around a ResNet-18 trained from scratch", _fit_resnet),
}
"""Other settings of AdCNN: why the baselines are ahead of it, and the paper's network with less training."""
