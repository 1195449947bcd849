"""Networks of photographs under masks, and orders of their patches, without value networks: minutes instead of hours.

    python benchmarks/photographs.py --training 1000 --testing 1000 --seeds 3

On the maps of Imagenette (`askwise_bench.patch_maps`; extras `vision` and `images` of askwise-bench), with the stages
of the profile "quick". Prints the accuracy in percent over 1 to 10 patches, a line per network and seed: along the
middle first, the better of that and a learned order (`BestOrder`), and random patches.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

from askwise import DynamicFeatureSelector
from askwise.vision import BestOrder, OnPolicyTraining, PatchNetwork
from askwise_bench.grid.images import FEW_PATCHES, trained_network
from askwise_bench.grid.tasks import Limits, make_task
from askwise_bench.image_baselines.stages import STAGES
from askwise_bench.image_baselines.two_networks import MOST_STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", type=int, default=1000)
    parser.add_argument("--testing", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for seed in range(given.seeds):
        measure(make_task("imagenette", "uniform", seed, Limits(given.training, given.testing)), seed)


def measure(task: Any, seed: int) -> None:
    """Print the lines of one seed."""
    network, few = trained_network(task), STAGES["DIME"]["quick"]

    def fitted(policy: Any, **adaptation: Any) -> DynamicFeatureSelector:
        options: dict[str, Any] = {"epistemic": None, "random_state": seed, "progress": False}
        predictor = PatchNetwork(random_state=seed, **adaptation)
        made = DynamicFeatureSelector(network, groups=task.groups, adaptation=predictor, policy=policy, **options)
        return made.fit(task.X_train, task.y_train)

    said(task, seed, "CNN", fitted(BestOrder(greedy=False)))
    adapted = fitted(BestOrder(greedy=False), pretrain_epochs=STAGES["AdCNN"]["quick"][0])
    said(task, seed, "AdCNN", adapted)
    start = fitted(BestOrder(greedy=False), pretrain_epochs=few[0], visible=FEW_PATCHES)
    training = OnPolicyTraining(1, few[2], most_patches=MOST_STEPS, random_state=seed)
    said(task, seed, "AdCNN, trained along its order", training.applied(start))
    if start.policy_.compared_["chosen"] != "middle first":
        along_middle = training.applied(start.with_policy("static"))
        said(task, seed, "AdCNN, trained along the middle first", along_middle, ("middle first",))


def said(
    task: Any,
    seed: int,
    name: str,
    selector: DynamicFeatureSelector,
    orders: tuple[str, ...] = ("middle first", "own order", "random"),
) -> None:
    """Print one line: the accuracies along the orders, and the differences of the paired images."""
    policies = {"middle first": "static", "own order": selector.policy, "random": "random"}
    right = {}
    for order in orders:
        other = selector if order == "own order" else selector.with_policy(policies[order])
        chosen = other.acquire(task.X_test, MOST_STEPS).proba[:, 1:].argmax(axis=2)
        right[order] = (selector.classes_[chosen] == task.y_test[:, None]).mean(axis=1)
    line = ", ".join(f"{order} {100 * share.mean():.2f}" for order, share in right.items())
    if "own order" in right:
        for order in ("middle first", "random"):
            more = right["own order"] - right[order]
            error = more.std(ddof=1) / np.sqrt(len(more))
            line += f"; own minus {order} {100 * more.mean():+.2f} (standard error {100 * error:.2f})"
        line += f"; {getattr(selector.policy_, 'compared_', {}).get('why', '')}"
    print(f"seed {seed}, {name}: {line} [{time.process_time():.0f} s]", flush=True)


if __name__ == "__main__":
    main()
