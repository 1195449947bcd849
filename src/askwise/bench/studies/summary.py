"""The data sets themselves: how large each is, and how accurate logistic regression is with every feature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from askwise.bench.grid.tasks import Task, whole_table
from askwise.bench.grid.trials import Measurement
from askwise.reference_models import make_model


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
