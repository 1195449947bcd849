"""How good predictions are under each budget, by own and by random choices; of images by patches; and the data sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from askwise.acquirer import FeatureAcquirer
from askwise.evaluation import default_budgets, final_states, measures
from askwise.metrics import calibration_surplus, expected_calibration_error
from askwise.policy.base import Policy
from askwise.policy.orders import Random, Static
from askwise.predict.base import class_positions
from askwise.reference_models import make_model
from askwise.uncertainty import entropy
from askwise_bench.baselines import StaticBest
from askwise_bench.grid.tasks import Task, whole_table
from askwise_bench.grid.trials import Measurement


def accuracy(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Measures by budget, of the method and of its predictor under random orders (metrics that begin with random).

    The best fixed subset is not tried under random orders. ``surplus`` by bin is the calibration error before absolute
    values are taken, so that it can be pooled over seeds.
    """
    budgets = default_budgets(method.prices_)
    y = class_positions(method.classes_, task.y_test)
    yield Measurement("test_rows", len(y))
    for budget, end in zip(budgets, final_states(method, task.X_test, budgets), strict=True):
        yield from (Measurement(name, value, budget) for name, value in measures(y, end).items())
        yield Measurement("entropy", float(entropy(end[0]).mean()), budget)
        surplus = calibration_surplus(y, end[0])
        yield from (Measurement("surplus", surplus[k], budget, bin=int(k)) for k in np.flatnonzero(surplus))
    if isinstance(method, StaticBest):
        return  # it would train a forest for every random subset
    at_random = final_states(method, task.X_test, budgets, Random(task.seed))
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
    budgets, y = default_budgets(method.prices_), class_positions(method.classes_, task.y_test)
    for budget, end in zip(budgets, final_states(method, X, budgets, policy), strict=True):
        yield Measurement(metric, share_right(end.proba, y), budget, **at)  # type: ignore[arg-type]


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
        for k, end in zip(budgets, final_states(method, task.X_test, budgets, order), strict=True):
            yield Measurement(f"{name}_accuracy", share_right(end.proba, y), k)


def _ranked(relevance: np.ndarray) -> Static:
    policy = Static(relevance)
    policy.relevance_ = relevance  # a given ranking has nothing to learn
    return policy


def summary(task: Task, method: Any = None) -> Iterator[Measurement]:
    """Rows, features and classes of the whole table, and the accuracy of logistic regression (Appendix G).

    The model is trained and tested on the rows of `task`, with all of their features. The fitted method is not used.
    """
    whole = whole_table(task.data, task.seed)
    yield Measurement("rows", len(whole.X))
    yield Measurement("features", whole.n_features)
    yield Measurement("classes", len(np.unique(whole.y)))
    yield Measurement("training_rows", len(task.X_train))
    yield Measurement("test_rows", len(task.X_test))
    model = make_model("logistic", task.seed).fit(task.X_train, task.y_train)
    yield Measurement("logistic_accuracy", float((model.predict(task.X_test) == task.y_test).mean()))
