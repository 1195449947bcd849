"""The parts of a fitted model, the steps of a Pipeline and the classifier at its end, and how they are asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from askwise.errors import InvalidInput

WITHOUT_LABELS = {"compose", "decomposition", "impute", "pipeline", "preprocessing"}
"""Parts of scikit-learn whose preparations take no labels, but for those that say they require them."""


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """(the fitted steps before, or None; the classifier) of a model that may be a Pipeline or frozen."""
    before: list[tuple[str, Any]] = []
    while isinstance(estimator, Pipeline | FrozenEstimator):  # one may hold another
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
            continue
        steps = [step for _, step in estimator.steps[:-1] if not _resamples(step)]
        before += [(f"{len(before) + k}", step) for k, step in enumerate(steps)]
        estimator = estimator.steps[-1][1]
    return (Pipeline(before) if before else None), estimator


def has_resampling(estimator: Any) -> bool:
    """Whether a Pipeline of imbalanced-learn resamples the rows that it is trained on."""
    estimator = unfrozen(estimator)
    return isinstance(estimator, Pipeline) and any(_resamples(s) or has_resampling(s) for _, s in estimator.steps)


def reads_no_labels(steps: Pipeline | None) -> bool:
    """Whether the steps before a classifier are known to be fitted without looking at labels."""
    if steps is None:
        return True
    parts = [part for part in steps.get_params().values() if hasattr(part, "fit") or hasattr(part, "fit_transform")]
    origins = [type(part).__module__.split(".") for part in parts]
    known = all(origin[0] == "sklearn" and origin[1] in WITHOUT_LABELS for origin in origins)
    return known and not any(get_tags(part).target_tags.required for part in parts)


def _resamples(step: Any) -> bool:
    return hasattr(step, "fit_resample")  # such steps are skipped when predicting


def dense(inputs: Any) -> np.ndarray:
    """Rows of any kind of table, sparse ones included, as an array of floats."""
    return np.asarray(inputs.toarray() if hasattr(inputs, "toarray") else inputs, dtype=float)


def unfrozen(estimator: Any) -> Any:
    """What a FrozenEstimator holds; anything else as it is."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def asked(estimator: Any, method: str, table: Any) -> Any:
    """What `method` of a fitted estimator returns; a ValueError that it raises becomes `InvalidInput`."""
    try:
        return getattr(estimator, method)(table)
    except InvalidInput:
        raise
    except ValueError as error:
        steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
        names = ", ".join(type(step).__name__ for step in steps)
        raise InvalidInput(
            f"{names} cannot take these rows ({method}: {str(error).strip().rstrip('.')}). Check the values and their "
            "units, or add a step that clips them before the model."
        ) from error
