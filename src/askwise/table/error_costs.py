"""What a wrong decision costs, as a matrix [true class, class decided for] in the unit of the prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from askwise.errors import InvalidInput, listed
from askwise.parameters import Number

FORMS = (
    "a matrix with a row per true class and a column per class decided for, {true class: cost of a wrong decision} "
    "or {true class: {class decided for: cost}}"
)


def as_matrix(error_costs: Any, classes: np.ndarray) -> np.ndarray | None:
    """`error_costs` of the public interface as a (C, C) matrix in the order of `classes`; None stays None.

    Examples
    --------
    >>> as_matrix({"ill": 100.0, "well": {"ill": 20.0}}, np.array(["ill", "well"])).tolist()
    [[0.0, 100.0], [20.0, 0.0]]
    """
    if error_costs is None:
        return None
    if isinstance(error_costs, Mapping):
        return _from_names(error_costs, classes)
    shape = (len(classes), len(classes))
    try:
        given = np.asarray(error_costs)
    except ValueError:  # ragged
        given = np.empty(0, dtype=object)
    if given.dtype.kind not in "iuf" or given.shape != shape:
        raise InvalidInput(
            f"error_costs must be {FORMS}; with the classes {listed(classes.tolist())} a matrix has the shape "
            f"{shape}. Got {error_costs!r}."
        )
    matrix = given.astype(float)
    for true, decided in np.argwhere(~(np.isfinite(matrix) & (matrix >= 0))).tolist():
        _cost(matrix[true, decided], classes[true], classes[decided])
    return matrix


def decide(proba: np.ndarray, error_costs: np.ndarray | None) -> np.ndarray:
    """(..., C) -> (...) position of the class to decide for: of least expected cost; None = the most probable one."""
    return np.asarray(proba.argmax(axis=-1) if error_costs is None else (proba @ error_costs).argmin(axis=-1))


def _from_names(error_costs: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    lacking = [label for label in classes.tolist() if label not in error_costs]
    if lacking:
        raise InvalidInput(
            f"error_costs must name every class; {listed(lacking)} is not named. A class whose errors cost nothing "
            "has the cost 0."
        )
    matrix = np.zeros((len(classes), len(classes)))
    for label, costs in error_costs.items():
        true = _position(label, classes)
        if not isinstance(costs, Mapping):
            matrix[true] = np.where(np.arange(len(classes)) == true, 0.0, _cost(costs, label, "any other class"))
            continue
        absent = [other for other in classes.tolist() if other != classes[true] and other not in costs]
        if absent:
            raise InvalidInput(
                f"error_costs: the costs where {label!r} is true must name every other class; {listed(absent)} is not "
                "named."
            )
        for decided, cost in costs.items():
            matrix[true, _position(decided, classes)] = _cost(cost, label, decided)
    return matrix


def _position(label: Any, classes: np.ndarray) -> int:
    if label not in classes.tolist():
        raise InvalidInput(f"error_costs: there is no class {label!r}. The classes are: {listed(classes.tolist())}.")
    return classes.tolist().index(label)


def _cost(cost: Any, true: Any, decided: Any) -> float:
    if not Number().allows(cost):
        raise InvalidInput(
            f"error_costs: the cost of deciding for {decided} where {true} is true must be a finite number >= 0, in "
            f"the unit of the prices; got {cost!r}."
        )
    return float(cost)
