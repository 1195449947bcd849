"""How `AlternatingTraining` was chosen: on training images of MNIST that are held out, never on test images.

    python benchmarks/alternating.py --seeds 100 101
    python benchmarks/alternating.py --seeds 100 --rounds 6 --epochs 2 --random-share 0.2

A seed draws 10,000 training images, and 4,000 others of the 60,000 to compare on. Prints the accuracy in percent after
1 to 10 patches, of DIME and of AdCNN trained in turns with its choices, around the same network.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from askwise import DynamicFeatureSelector
from askwise.datasets.images import load_images
from askwise.vision import AlternatingTraining, PatchNetwork
from askwise_bench.grid.images import FEW_PATCHES, trained_network
from askwise_bench.grid.tasks import Limits, make_task
from askwise_bench.image_baselines import method
from askwise_bench.image_baselines.stages import STAGES
from askwise_bench.image_baselines.two_networks import MOST_STEPS

TRAINING, COMPARED = 10_000, 4000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--exploration", type=float, default=0.3)
    parser.add_argument("--random-share", type=float, default=0.0)
    given = vars(parser.parse_args())
    torch.set_num_threads(1)
    for seed in given.pop("seeds"):
        task = held_out(seed)
        network = trained_network(task)
        adaptation = PatchNetwork(pretrain_epochs=STAGES["DIME"]["quick"][0], visible=FEW_PATCHES, random_state=seed)
        options: dict[str, Any] = {"epistemic": None, "policy": "static", "calibration": None, "random_state": seed}
        selector = DynamicFeatureSelector(network, groups=task.groups, adaptation=adaptation, **options)
        training = AlternatingTraining(**given, most_patches=MOST_STEPS, random_state=seed)
        said(task, f"seed {seed}, in turns", training.applied(selector.fit(task.X_train, task.y_train)))
        dime = method("DIME", network, task.groups, random_state=seed)
        said(task, f"seed {seed}, DIME", dime.fit(task.X_train, task.y_train))


def held_out(seed: int) -> Any:
    """The task of a seed, with training images that it has not drawn in place of test images."""
    task, found = make_task("mnist", "uniform", seed, Limits(TRAINING, 1)), load_images("mnist")
    rest = np.random.default_rng(seed).permutation(len(found.y))[TRAINING : TRAINING + COMPARED]
    return replace(task, X_test=found.images[rest], y_test=found.y[rest])


def said(task: Any, name: str, fitted: Any) -> None:
    """Print one line."""
    chosen = fitted.acquire(task.X_test, MOST_STEPS).proba[:, 1:].argmax(axis=2)
    accuracy = 100 * (fitted.classes_[chosen] == task.y_test[:, None]).mean(axis=0)
    line = " ".join(f"{each:.1f}" for each in accuracy)
    print(f"{name}: {accuracy.mean():.2f}, 2-10 {accuracy[1:].mean():.2f} | {line} [{time.process_time():.0f} s]")


if __name__ == "__main__":
    main()
