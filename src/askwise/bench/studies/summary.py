"""The data sets themselves: how large each is, and how accurate logistic regression is with every feature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from askwise.bench.grid.tasks import MADE, Task
from askwise.bench.grid.trials import Measurement
from askwise.datasets import load
from askwise.reference_models import make_model


def summary(task: Task, method: Any = None) -> Iterator[Measurement]:
    """Rows, features and classes of the whole table, and the accuracy of logistic regression (Appendix G).

    The model is trained on the training rows of `task` and tested on its test rows, like every method, but sees all of
    their features. The fitted method is not used.
    """
    X, y, groups = task.X_train, task.y_train, task.groups
    if task.data not in MADE:
        whole = load(task.data)
        X, y = whole.X, whole.y
    grouped = {column for members in (groups or {}).values() for column in members}
    yield Measurement("rows", len(X) if task.data not in MADE else len(task.X_train) + len(task.X_test))
    yield Measurement("features", len(groups or {}) + sum(column not in grouped for column in X.columns))
    yield Measurement("classes", len(set(y.tolist())))
    yield Measurement("training_rows", len(task.X_train))
    yield Measurement("test_rows", len(task.X_test))
    model = make_model("logistic", task.seed).fit(task.X_train, task.y_train)
    yield Measurement("logistic_accuracy", float((model.predict(task.X_test) == task.y_test).mean()))
