"""How good the predictions are under each budget, with the method's own choices and with random ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.evaluation import measures
from askwise.acquire.policies.base import Policy
from askwise.acquire.policies.orders import Random
from askwise.baselines import StaticBest
from askwise.bench.grid.tasks import Task
from askwise.bench.grid.trials import Measurement
from askwise.metrics import calibration_surplus
from askwise.predict.base import class_positions
from askwise.uncertainty import entropy


def accuracy(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Measures by budget, of the method and of its predictor under random orders (metrics that begin with random).

    The best fixed subset is not tried under random orders. ``surplus`` by bin is the calibration error before absolute
    values are taken, so that it can be pooled over seeds.
    """
    budgets = method.default_budgets()
    y = class_positions(method.classes_, task.y_test)
    yield Measurement("test_rows", len(y))
    for budget, end in zip(budgets, method.final_states(task.X_test, budgets), strict=True):
        yield from (Measurement(name, value, budget) for name, value in measures(y, end).items())
        yield Measurement("entropy", float(entropy(end[0]).mean()), budget)
        surplus = calibration_surplus(y, end[0])
        yield from (Measurement("surplus", surplus[k], budget, bin=int(k)) for k in np.flatnonzero(surplus))
    if isinstance(method, StaticBest):
        return  # it would train a forest for every random subset
    at_random = method.final_states(task.X_test, budgets, Random(task.seed))
    for budget, end in zip(budgets, at_random, strict=True):
        yield Measurement("random_accuracy", share_right(end.proba, y), budget)
        yield Measurement("random_entropy", float(entropy(end.proba).mean()), budget)


def share_right(proba: np.ndarray, y: np.ndarray) -> float:
    """Accuracy of the predictions (n, C), with `y` (n,) the positions of the true classes."""
    return float((proba.argmax(axis=1) == y).mean())


def accuracies(
    task: Task, method: FeatureAcquirer, X: Any, metric: str = "accuracy", policy: Policy | None = None, **at: float
) -> Iterator[Measurement]:
    """The accuracy on `X` in place of the test rows under the usual budgets, by the method's choices or a policy's."""
    budgets, y = method.default_budgets(), class_positions(method.classes_, task.y_test)
    for budget, end in zip(budgets, method.final_states(X, budgets, policy), strict=True):
        yield Measurement(metric, share_right(end.proba, y), budget, **at)  # type: ignore[arg-type]
