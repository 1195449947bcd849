"""Accuracy for the price beside rivals: what a frozen model gives, how honest it is, and how long it takes."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss

from askwise.acquirer import FeatureAcquirer
from askwise.evaluation import default_budgets, final_states
from askwise.metrics import calibration_surplus
from askwise.predict.base import class_positions
from askwise.selector import DynamicFeatureSelector
from askwise_bench.grid.tasks import Task
from askwise_bench.grid.trials import Measurement
from askwise_bench.studies.accuracy import share_right

N_DRAWS = 50
"""Sets of labels drawn from the predictions themselves: how large a calibration error is by chance."""

TIMED_CASES, TIMED_STEPS = 4, 3


def rivals(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Accuracy and log loss by budget, calibration over all budgets, the model with everything, and times.

    ``surplus`` by budget and bin is the calibration error before absolute values are taken, and ``surplus_by_chance``
    (of ours) the same for labels drawn from the predictions, all budgets together but for those that buy everything: at
    ``price_of_everything`` the wrapped model itself answers. ``full_accuracy`` and ``full_log_loss`` are those with
    every feature. Seconds: ``batch_seconds`` of a case under all budgets; of ours also
    ``decision_*`` of one step of a single case, and ``fit_*`` of the parts of a fit (first seed, equal prices).
    """
    budgets, y = default_budgets(method.prices_), class_positions(method.classes_, task.y_test)
    ends, seconds = timed(lambda: final_states(method, task.X_test, budgets))
    probas = [normalized(end.proba) for end in ends]
    yield Measurement("test_rows", len(y))
    for budget, proba in zip(budgets, probas, strict=True):
        yield Measurement("accuracy", share_right(proba, y), budget)
        yield Measurement("log_loss", loss_of(proba, y), budget)
        yield from _by_bin("surplus", calibration_surplus(y, proba), budget)
    yield Measurement("price_of_everything", method.prices_.total())
    full = normalized(method.predict_proba(task.X_test))
    yield Measurement("full_accuracy", share_right(full, y))
    yield Measurement("full_log_loss", loss_of(full, y))
    yield Measurement("batch_seconds", seconds / len(y))
    if isinstance(method, DynamicFeatureSelector):
        complete = np.array(budgets) >= method.prices_.total()
        if not complete.all():
            yield from _surplus_by_chance(task, [probas[k] for k in np.flatnonzero(~complete)])
        for k in np.flatnonzero(complete):
            yield from _surplus_by_chance(task, [probas[k]], budgets[k])
        yield from _decision_times(task, method)
        if task.seed == 0 and task.prices == "uniform":
            yield from _fit_times(task, method)


def own_labels(proba: np.ndarray, rows: np.ndarray, draw: int) -> np.ndarray:
    """(n,) labels drawn from `proba` (n, C).

    A row of the table, by number in `rows` (n,), has one label in all states and splits, as in truth: one uniform
    number per row and `draw` decides.
    """
    level = np.random.default_rng(draw).random(int(rows.max()) + 1)[rows]
    return (proba.cumsum(axis=1) < level[:, None]).sum(axis=1).clip(max=proba.shape[1] - 1)


def normalized(proba: np.ndarray) -> np.ndarray:
    """Rows that sum to one in double precision."""
    exact = proba.astype(float)
    return exact / exact.sum(axis=1, keepdims=True)


def loss_of(proba: np.ndarray, y: np.ndarray) -> float:
    """Mean log loss in nats, with `y` (n,) the positions of the true classes."""
    return float(log_loss(y, proba, labels=np.arange(proba.shape[1])))


def timed(act: Callable[[], Any]) -> tuple[Any, float]:
    """What `act` returns, and the seconds that it takes."""
    start = time.perf_counter()
    return act(), time.perf_counter() - start


def _surplus_by_chance(task: Task, probas: list[np.ndarray], budget: float | None = None) -> Iterator[Measurement]:
    """What the calibration error of `probas`, one (n, C) per budget, would be if they were calibrated perfectly."""
    rows, proba = np.tile(task.X_test.index.to_numpy(), len(probas)), np.concatenate(probas)
    for draw in range(N_DRAWS):
        surplus = calibration_surplus(own_labels(proba, rows, draw), proba)
        yield from _by_bin("surplus_by_chance", surplus, budget, draw)


def _by_bin(metric: str, surplus: np.ndarray, budget: float | None, draw: int | None = None) -> Iterator[Measurement]:
    yield from (Measurement(metric, surplus[k], budget, bin=int(k), draw=draw) for k in np.flatnonzero(surplus))


def _decision_times(task: Task, method: DynamicFeatureSelector) -> Iterator[Measurement]:
    """Seconds of a suggestion, of entering a value, and of one prediction of the model; medians over a few steps."""
    seconds: dict[str, list[float]] = {"model": [], "choice": [], "answer": []}
    for case in task.X_test.index[:TIMED_CASES]:
        row = task.X_test.loc[[case]]
        seconds["model"].append(timed(partial(method.estimator_.predict_proba, row))[1])
        for part, spent in _steps(method, row):
            seconds[part].append(spent)
    yield from (Measurement(f"decision_{part}", float(np.median(spent))) for part, spent in seconds.items() if spent)


def _steps(method: DynamicFeatureSelector, row: Any) -> Iterator[tuple[str, float]]:
    """Part and seconds of each step of a session with the true values of `row`; it refuses unseen categories."""
    session, schema, rows = method.start(), method.schema_, method.schema_.encode(row)
    available = schema.any_column(rows.observed)[0]
    for _ in range(TIMED_STEPS):
        suggestion, seconds = timed(session.suggest)
        yield "choice", seconds
        if suggestion is None:
            return
        feature = method.features_.index(suggestion.feature)
        if available[feature] and not any(rows.unseen.get(j) for j in schema.feature_columns[feature]):
            value = schema.show_feature(feature, rows.values[0])
            yield "answer", timed(partial(session.answer, suggestion.feature, value))[1]
        else:
            session.unavailable(suggestion.feature)


def _fit_times(task: Task, method: DynamicFeatureSelector) -> Iterator[Measurement]:
    """Seconds of fitting the model, and of fitting the selector around it: in all, and its parts once more."""
    model, predictor = method.estimator_, method.predictor_
    rows, labels = predictor.training_rows_, predictor.training_labels_
    parts = {
        "model": lambda: clone(model).fit(task.X_train, task.y_train),
        "total": lambda: clone(method).set_params(estimator=model).fit(task.X_train, task.y_train),
        "answer": lambda: copy.copy(predictor).fit_encoded(predictor.model_, rows, labels),
        "policy": lambda: method.with_policy(method.policy),
    }
    if (members := method.epistemic_) is not None:
        parts["members"] = lambda: copy.copy(members).fit(predictor)
    for name, act in parts.items():
        yield Measurement(f"fit_{name}", timed(act)[1])
