"""What is chosen on unseen rows beside the temperatures: the kernel width of the answer, and the weights of pooling."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from askwise.acquire.calibration.visited_states import (
    VisitedStates,
    calibrated,
    losses_by_size,
    sizes_visited,
    temperatures,
)
from askwise.epistemic import BeliefModel
from askwise.predict.calibration import USUAL_FLOOR, Calibration, log_losses
from askwise.predict.conditional import ConditionalPredictor
from askwise.predict.pooled import PooledPredictor, fit_weights, pooled

Choices = dict[str, Any]

SPREAD = 0.2
"""Standard deviation of the log temperatures by which widths are compared; see `calibration.SPREADS`."""
ROWS_TO_REPRODUCE = 300
LITTLE_WEIGHT = 0.2
"""A model that keeps a smaller share of the weights than this gets a warning."""
UNSEEN = "log loss on unseen rows"
REPRODUCTION = "cross entropy of the wrapped model's answers on training rows that are left out"


class Settled(NamedTuple):
    """The calibration in use, what was chosen and why (JSON-ready), and `adaptation_report_`, or None."""

    calibration: Calibration | None
    choices: Choices
    report: pd.DataFrame | None


def settle(beliefs: BeliefModel, states: VisitedStates | None, n_features: int, seed: int | None) -> Settled:
    """Choose width and weights for `beliefs`, and calibrate them.

    Parameters
    ----------
    states
        Those visited on unseen rows; None where there are none: then only the width is chosen, on training rows.
    n_features
        M.
    seed
        Of the choice of these rows; None leaves everything as it is.
    """
    trained = getattr(beliefs.predictor, "adaptation_report_", None)
    stages = {} if trained is None else {"adaptation": trained}
    if states is None:
        choices = {**_tune_on_training_rows(beliefs, seed), "calibration": None}
    else:
        states, choices, pooling = _tune(beliefs, states, n_features)
        beliefs.calibration, report = calibrated(states, n_features, beliefs.decisions)
        choices["calibration"] = _calibration_described(beliefs.calibration, report)
        stages |= {**pooling, "calibration": report}
    together = pd.concat(stages, names=["stage"]).reset_index("stage").reset_index(drop=True) if stages else None
    return Settled(beliefs.calibration, choices, together)


def _tune(
    beliefs: BeliefModel, states: VisitedStates, n_features: int
) -> tuple[VisitedStates, Choices, dict[str, pd.DataFrame]]:
    """Width and weights by the log loss of states, which are returned with the new answers.

    Widths are compared after their temperatures are fitted: otherwise a narrow kernel would be preferred merely because
    it makes the answers sharper, which temperatures do better.
    """
    predictor = beliefs.predictor
    if states.by_width is None or not isinstance(predictor, ConditionalPredictor):
        return states, {}, {}
    losses = [_calibrated_loss(states, proba, n_features) for proba in states.by_width.transpose(1, 0, 2)]
    best = int(np.argmin(losses))
    nothing = states.size[:, None] == 0  # there all training rows answer, whatever the width and the weights
    proba = np.where(nothing, states.proba, states.by_width[:, best])
    beliefs.settle(answer_bandwidth_=predictor.widths[best])
    choices = {"answer": _width_described(predictor, losses, UNSEEN)}
    if states.second is None or not isinstance(predictor, PooledPredictor):
        return replace(states, proba=proba), choices, {}
    weights = fit_weights(proba, states.second, states.labels, len(np.unique(states.case)))
    mixed = np.where(nothing, proba, pooled(proba, states.second, weights))
    beliefs.settle(pooling_weights_=weights)
    choices["pooling"] = _pooling_described(predictor, UNSEEN)
    _warn_if_little(choices["pooling"]["model_share"])
    report = losses_by_size(states.size, log_losses(proba, states.labels), log_losses(mixed, states.labels))
    stages = {"pooling": report.assign(model_share=choices["pooling"]["model_share"])}
    return replace(states, proba=mixed), choices, stages


def _tune_on_training_rows(beliefs: BeliefModel, seed: int | None) -> Choices:
    """The width by how well training rows that are left out reproduce the wrapped model's answers."""
    predictor = beliefs.predictor
    if not isinstance(predictor, ConditionalPredictor) or not predictor.schema_.tabular:
        return {}
    losses = None
    if seed is not None and len(predictor.widths) > 1 and len(predictor.training_rows_for_models()):
        losses = _losses_of_reproduction(predictor, seed)
        beliefs.settle(answer_bandwidth_=predictor.widths[int(np.argmin(losses))])
    choices = {"answer": _width_described(predictor, losses, REPRODUCTION)}
    if isinstance(predictor, PooledPredictor):
        choices["pooling"] = _pooling_described(predictor, "default: there are no unseen rows")
    return choices


def _losses_of_reproduction(predictor: ConditionalPredictor, seed: int) -> np.ndarray:
    """(W,) cross entropy of the answer on a complete row and that on some features, from completions by other rows."""
    rng, schema = np.random.default_rng(seed), predictor.schema_
    at = rng.permutation(predictor.training_rows_for_models())[:ROWS_TO_REPRODUCE]
    rows, n_features = predictor.training_rows_.take(at), len(schema.features)
    size = rng.choice(sizes_visited(n_features), size=len(at))
    mask = rng.random((len(at), n_features)).argsort(axis=1).argsort(axis=1) < size[:, None]
    completions = predictor.believe(rows.masked(schema.expand(mask)), leave_out=at).completions
    assert completions is not None
    found = predictor.answers_by_width(completions)
    logs = np.log((1 - USUAL_FLOOR) * found + USUAL_FLOOR / found.shape[2])
    return np.asarray(-np.einsum("nc,nwc->w", predictor.model_(rows), logs) / len(at))


def _calibrated_loss(states: VisitedStates, proba: np.ndarray, n_features: int) -> float:
    calibration, _ = temperatures(states, proba, n_features, [SPREAD])
    return float(log_losses(calibration.proba(proba, states.size), states.labels).mean())


def _width_described(predictor: ConditionalPredictor, losses: Any, by: str) -> Choices:
    if losses is None or len(losses) == 1:
        by = "default" if predictor.answer_bandwidth in (None, "auto") else "given"
    found = [] if losses is None else zip(predictor.widths, losses, strict=True)
    log_loss = {f"{width:g}": float(loss) for width, loss in found}
    return {"width": float(predictor.answer_bandwidth_), "by": by, "log_loss": log_loss}


def _pooling_described(predictor: PooledPredictor, by: str) -> Choices:
    first, second = predictor.pooling_weights_
    share, common_rows = first / max(first + second, 1e-12), predictor.gaussians_.common_rows
    kind = "one for all classes"
    if common_rows is not None:
        kind = f"one per class, shrunk towards the common one with the weight of {common_rows:g} rows"
    return {"model_weight": first, "second_weight": second, "model_share": share, "by": by, "covariance": kind}


def _calibration_described(calibration: Calibration, report: pd.DataFrame) -> Choices:
    losses = {stage: float(np.average(report[stage], weights=report["rows"])) for stage in ("before", "after")}
    kept = bool(report["kept"].all())
    return {"temperatures": calibration.temperatures.tolist(), "kept": kept, "by": UNSEEN, "log_loss": losses}


def _warn_if_little(share: float) -> None:
    if share < LITTLE_WEIGHT:
        warnings.warn(
            f"The wrapped model keeps {share:.0%} of the weight in the pooled answers: on unseen, incomplete rows a "
            "simple model of each class predicts better. It probably overfits (regularize it more) or is too simple.",
            stacklevel=4,
        )
