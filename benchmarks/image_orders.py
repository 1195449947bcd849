"""The default order of patches beside the greedy choice, the middle first and random patches, on test images.

    python benchmarks/image_orders.py --data mnist --training 10000 --testing 500
    python benchmarks/image_orders.py --data imagenette --training 300 --testing 300

Imagenette is read as the maps of `askwise_bench.patch_maps` (extras `vision` and `images` of askwise-bench). Accuracy
in percent, averaged over 1 to 10 patches.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

from askwise import DynamicFeatureSelector
from askwise.vision import BestOrder
from askwise_bench.grid.images import trained_network
from askwise_bench.grid.tasks import Limits, make_task

ORDERS: dict[str, Any] = {
    "the default": "auto",
    "greedy": "greedy",
    "learned or middle": BestOrder(greedy=False),
    "middle first": "static",
    "random": "random",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mnist", choices=["mnist", "imagenette"])
    parser.add_argument("--training", type=int, default=10_000)
    parser.add_argument("--testing", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for seed in range(given.seeds):
        task = make_task(given.data, "uniform", seed, Limits(given.training, given.testing))
        network = trained_network(task)
        selector = DynamicFeatureSelector(
            network, groups=task.groups, epistemic=None, random_state=seed, progress=False
        ).fit(task.X_train, task.y_train)
        print(f"{given.data}, seed {seed}: {selector.choices_['policy']['compared']['why']}")
        done: dict[str, float] = {}
        for name, policy in ORDERS.items():
            other = selector if policy == "auto" else selector.with_policy(policy)
            key = repr(getattr(other.policy_, "relevance_", name))  # a fixed order is followed once
            if key not in done:
                table = other.evaluate(task.X_test, task.y_test, budgets=list(range(1, 11)))
                done[key] = 100 * float(table["accuracy"].mean())
            print(f"    {name}: {done[key]:.1f}", flush=True)


if __name__ == "__main__":
    main()
