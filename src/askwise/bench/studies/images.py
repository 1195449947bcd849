"""What patches of an image are worth: accuracy, calibration and uncertainty by their number (Table 4, Figures 2, 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.policies.base import Policy
from askwise.acquire.policies.orders import Random, Static
from askwise.bench.grid.tasks import Task
from askwise.bench.grid.trials import Measurement
from askwise.bench.studies.accuracy import share_right
from askwise.metrics import expected_calibration_error
from askwise.predict.base import class_positions
from askwise.uncertainty import entropy

MOST_PATCHES = 10


def images(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Accuracy, ECE and mean uncertainties by the number of patches that the method chose, which is the budget.

    Metrics that begin with random and middle are of the same predictor when patches come in a random order, or those
    in the middle first. Methods without members have neither aleatoric nor epistemic uncertainty.
    """
    y = class_positions(method.classes_, task.y_test)
    yield Measurement("training_rows", len(task.y_train))
    yield Measurement("test_rows", len(y))
    yield Measurement("full_accuracy", share_right(method.predictor_.predict_full(task.X_test), y))
    run = method.acquire(task.X_test, MOST_PATCHES)
    parts = run.uncertainty.as_dict()
    for k in range(1, run.n_steps + 1):
        proba = run.proba[:, k]
        yield Measurement("accuracy", share_right(proba, y), k)
        yield Measurement("ece", float(expected_calibration_error(y, proba)), k)
        yield Measurement("entropy", float(entropy(proba).mean()), k)
        for name in ("aleatoric", "epistemic", "mutual_information"):
            if np.isfinite(mean := float(parts[name][:, k].mean())):
                yield Measurement(name, mean, k)
    groups: Any = task.groups
    orders: dict[str, Policy] = {"random": Random(task.seed), "middle": _ranked(groups.middle_first())}
    budgets = list(range(1, run.n_steps + 1))
    for name, order in orders.items():
        for k, end in zip(budgets, method.final_states(task.X_test, budgets, order), strict=True):
            yield Measurement(f"{name}_accuracy", share_right(end.proba, y), k)


def _ranked(relevance: np.ndarray) -> Static:
    policy = Static(relevance)
    policy.relevance_ = relevance  # a given ranking has nothing to learn
    return policy
