"""What is chosen on unseen rows beside the temperatures: the kernel width of the answer, and the weights of pooling."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from askwise.calibrate.visited_states import (
    VisitedStates,
    calibrated,
    losses_by_size,
    sizes_visited,
    temperatures,
)
from askwise.epistemic import BeliefModel
from askwise.errors import AskwiseWarning
from askwise.predict.calibration import USUAL_FLOOR, Calibration, log_losses
from askwise.predict.conditional import ConditionalPredictor
from askwise.predict.pooled import PooledPredictor, fit_weights, pooled
from askwise.table.subsets import sample_of_sizes

Choices = dict[str, Any]

SPREAD = 0.2
"""Standard deviation of the log temperatures by which widths are compared; see `calibration.SPREADS`."""
CLEARLY, FEWEST_CASES = 2.0, 20
"""Standard errors by which a width must be better than the usual one, because on small tables the least loss is luck,
and cases without which these cannot be told."""
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
    if states.by_factor is None or not isinstance(predictor, ConditionalPredictor):
        return states, {}, {}
    losses, best = None, 0
    if predictor.factors:
        by_factor = states.by_factor.transpose(1, 0, 2)
        losses = np.stack([_losses_by_case(states, proba, n_features) for proba in by_factor])
        best = _clearly_best(losses)
        beliefs.settle(answer_factor_=predictor.factors[best])
    nothing = states.size[:, None] == 0  # there all training rows answer, whatever the width and the weights
    proba = np.where(nothing, states.proba, states.by_factor[:, best])
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
    others = len(predictor.pool_) > 1  # a row that is left out must be completed by others
    if seed is not None and predictor.factors and others and len(predictor.training_rows_for_models()):
        losses = _losses_of_reproduction(predictor, seed)
        beliefs.settle(answer_factor_=predictor.factors[_clearly_best(losses)])
    choices = {"answer": _width_described(predictor, losses, REPRODUCTION)}
    if isinstance(predictor, PooledPredictor):
        choices["pooling"] = _pooling_described(predictor, "default: there are no unseen rows")
    return choices


def _losses_of_reproduction(predictor: ConditionalPredictor, seed: int) -> np.ndarray:
    """(F, n) cross entropy of the answers on complete rows and on some of their features, completed by other rows."""
    rng, schema = np.random.default_rng(seed), predictor.schema_
    at = rng.permutation(predictor.training_rows_for_models())[:ROWS_TO_REPRODUCE]
    rows, n_features = predictor.training_rows_.take(at), len(schema.features)
    size = rng.choice(sizes_visited(n_features), size=len(at))
    known = rows.masked(schema.expand(sample_of_sizes(size, n_features, rng)))
    found = predictor.answers_by_factor(predictor.believe(known, leave_out=at), known)
    logs = np.log((1 - USUAL_FLOOR) * found + USUAL_FLOOR / found.shape[2])
    return np.asarray(-np.einsum("nc,nfc->fn", predictor.model_(rows), logs))


def _losses_by_case(states: VisitedStates, proba: np.ndarray, n_features: int) -> np.ndarray:
    """(cases,) mean log loss of each case once `proba` (N, C) are calibrated."""
    calibration, _ = temperatures(states, proba, n_features, [SPREAD])
    losses = pd.Series(log_losses(calibration.proba(proba, states.size), states.labels))
    return losses.groupby(states.case).mean().to_numpy()


def _clearly_best(losses: np.ndarray) -> int:
    """Position of the factor of least loss among those clearly better than the first, the usual one; 0 if none is.

    `losses` (F, n) are those of cases by each factor.
    """
    difference = losses - losses[0]
    error = difference.std(axis=1) / np.sqrt(difference.shape[1])
    clear = (difference.mean(axis=1) < -CLEARLY * error) & (difference.shape[1] >= FEWEST_CASES)
    clear[0] = True
    return int(np.where(clear, losses.mean(axis=1), np.inf).argmin())


def _width_described(predictor: ConditionalPredictor, losses: np.ndarray | None, by: str) -> Choices:
    """`losses` as in `_clearly_best`; None where there was nothing to choose from, or nothing to choose by."""
    fewest = min(map(len, predictor.schema_.feature_columns))  # columns of a feature
    ends = np.array([fewest, max(fewest, len(predictor.schema_.columns) - fewest)])
    narrowest, widest = predictor.answer_widths(ends).tolist()
    log_loss: dict[str, float] = {}
    if losses is None:
        by = "default" if predictor.answer_bandwidth in (None, "auto") else "given"
    else:
        log_loss = {f"{factor:g}": float(loss.mean()) for factor, loss in zip(predictor.factors, losses, strict=True)}
        if predictor.answer_factor_ == predictor.factors[0]:
            by = f"default, because no other width has a clearly lower {by}"
    factor = predictor.answer_factor_ if predictor.factors else None
    similar_rows = 0.0 if predictor.similar_ is None else float(predictor.similar_rows)
    width = {"factor": factor, "narrowest": narrowest, "widest": widest, "by": by, "log_loss": log_loss}
    return {**width, "similar_rows": similar_rows}


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
            AskwiseWarning,
            stacklevel=4,
        )
