"""A selector without training rows: drawn ones take their place, and what that costs and hides is measured."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput
from askwise.persistence.synthetic import TableModel
from askwise.persistence.tree_checks import every_object
from askwise.predict.similarity import Neighbors
from askwise.selector import DynamicFeatureSelector
from askwise.stopping.pays_off import PaysOff
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample

MOST_DRAWN, MOST_MEASURED, MOST_SUGGESTED = 10_000, 500, 100
HOLDING = {"_fit_X", "X_fit_", "support_vectors_", "X_train_"}
"""Attributes in which models of scikit-learn's kind keep training rows."""
HOLDERS = {"KernelDensity", "LabelPropagation", "LabelSpreading", "Nystroem", "TabPFNClassifier"}
CHANCE, FACTOR, FEWEST_FOUND = 0.05, 3, 3


@dataclass(frozen=True)
class SyntheticReport:
    """What drawn rows in place of the training rows change.

    Attributes
    ----------
    n_rows, n_training_rows
        Rows drawn, and training rows that are not in the folder.
    accuracy_before, accuracy_after, log_loss_before, log_loss_after
        Of p(y | x_S) for random subsets of training rows, each left out of its own prediction.
    same_decision, same_suggestion
        Share of these states with the same class, and the same next feature.
    nearest_synthetic, nearest_real
        5 % quantile and median of the distance of drawn rows to the nearest training row, and of training rows to
        the nearest other one, in normal scores per column.
    copies, copies_among_real
        Share of drawn rows that equal a training row, and of training rows that equal another one.
    dropped
        What was fitted to the training rows and is not in the folder.
    """

    n_rows: int
    n_training_rows: int
    accuracy_before: float
    accuracy_after: float
    log_loss_before: float
    log_loss_after: float
    same_decision: float
    same_suggestion: float
    nearest_synthetic: tuple[float, float]
    nearest_real: tuple[float, float]
    copies: float
    copies_among_real: float
    dropped: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows} drawn rows in place of {self.n_training_rows} training rows",
            f"accuracy on random subsets: {self.accuracy_before:.3f} before, {self.accuracy_after:.3f} after; "
            f"log loss {self.log_loss_before:.3f} before, {self.log_loss_after:.3f} after",
            f"same decision {self.same_decision:.1%}, same next feature {self.same_suggestion:.1%}",
            "distance to the nearest training row (5 % quantile, median): "
            f"drawn rows {self.nearest_synthetic[0]:.3f}, {self.nearest_synthetic[1]:.3f}; "
            f"training rows {self.nearest_real[0]:.3f}, {self.nearest_real[1]:.3f}",
            f"equal to a training row: {self.copies:.1%} of the drawn rows, {self.copies_among_real:.1%} of the others",
            *(f"not saved: {what}" for what in self.dropped),
        ]
        return "\n".join(lines)


def without_training_rows(selector: FeatureAcquirer) -> tuple[DynamicFeatureSelector, SyntheticReport]:
    """A copy of the selector around drawn rows, and what it changes."""
    if not isinstance(selector, DynamicFeatureSelector) or not selector.schema_.tabular:
        raise InvalidInput(
            'rows="synthetic" is for a DynamicFeatureSelector on a table; save this one with rows="training".'
        )
    refuse_models_with_rows(selector)
    predictor = selector.predictor_
    rows, y = predictor.training_rows_, predictor.training_labels_
    rng = np.random.default_rng(selector._seeds["predictor"])
    model = TableModel(rows, y, predictor.full_proba(rows), selector.schema_)
    drawn, labels = model.draw(min(len(rows), MOST_DRAWN), rng)
    other = _with_rows(selector, drawn, labels)
    dropped: tuple[str, ...] = ()
    if selector.stop_ is not None:
        dropped = ("the calibrated stop, which holds for the training rows; call calibrate_stop after loading",)
    if selector.handover_ is not None:
        dropped += ("the rule of which cases to hand to a person; call calibrate_handover after loading",)
    return other, _measured(selector, other, drawn, dropped, rng)


def _with_rows(selector: DynamicFeatureSelector, rows: EncodedRows, y: np.ndarray) -> DynamicFeatureSelector:
    """A selector with the same model and members, and other training rows."""
    other = copy.copy(selector)
    other.beliefs_ = selector.beliefs_.with_rows(rows, y, selector._seeds["predictor"])
    other.predictor_, other.epistemic_ = other.beliefs_.predictor, other.beliefs_.epistemic
    other._sample_weight, other.calibrated_on_ = None, None
    context, saving = other._policy_context(other.beliefs_), selector.pays_off_
    other.policy_ = selector.policy_.with_rows(context)
    other.stop_ = other.handover_ = None  # they hold for the policy of these rows
    if saving is not None:
        shared = saving.policy is selector.policy_
        other.pays_off_ = PaysOff(other.policy_ if shared else saving.policy.with_rows(context))
    return other


def refuse_models_with_rows(selector: DynamicFeatureSelector) -> None:
    """An error if the wrapped model or a member keeps training rows itself."""
    members = getattr(selector.epistemic_, "estimators_", [])
    for thing in every_object([selector.estimator_, *members]):
        if type(thing).__name__ in HOLDERS or HOLDING & set(getattr(thing, "__dict__", ())):
            raise InvalidInput(
                f'{type(thing).__name__} holds training rows itself, so rows="synthetic" would not keep them in the '
                "house. Wrap a model without them (a forest, boosting, logistic regression, a network), or save with "
                'rows="training".'
            )


def check_arrays(arrays: Iterable[tuple[str, np.ndarray]], real: EncodedRows, drawn: EncodedRows) -> None:
    """An error if an array holds more training rows than chance explains: a last look at what is written."""
    known = {row.tobytes() for row in real.values}
    by_chance = float(np.mean([row.tobytes() in known for row in drawn.values]))
    for path, array in arrays:
        if array.dtype != np.float64 or array.ndim != 2 or real.values.shape[1] not in array.shape:
            continue
        table = array if array.shape[1] == real.values.shape[1] else array.T
        found = [row.tobytes() in known for row in np.ascontiguousarray(table)]
        if sum(found) >= FEWEST_FOUND and np.mean(found) > FACTOR * by_chance + CHANCE:
            raise InvalidInput(
                f'{path} holds {sum(found)} training rows, so rows="synthetic" cannot save it. Fit without it, or save '
                'with rows="training".'
            )


def _measured(
    selector: DynamicFeatureSelector,
    other: DynamicFeatureSelector,
    drawn: EncodedRows,
    dropped: tuple[str, ...],
    rng: np.random.Generator,
) -> SyntheticReport:
    rows, y = selector.predictor_.training_rows_, selector.predictor_.training_labels_
    asked = rng.permutation(len(rows))[:MOST_MEASURED]
    states = rows.take(asked).masked(selector.schema_.expand(sample(len(asked), len(selector.features_), rng)))
    before = selector.predictor_.proba(states, leave_out=asked)
    after = other.predictor_.proba(states)
    of_label = np.arange(len(asked)), y[asked]
    few = states.take(slice(MOST_SUGGESTED))
    chosen = [_suggested(one, few) for one in (selector, other)]
    synthetic, real = _nearest(selector, drawn.take(slice(MOST_MEASURED)), asked)
    return SyntheticReport(
        n_rows=len(drawn),
        n_training_rows=len(rows),
        accuracy_before=float((before.argmax(axis=1) == y[asked]).mean()),
        accuracy_after=float((after.argmax(axis=1) == y[asked]).mean()),
        log_loss_before=float(-np.log(np.maximum(before[of_label], 1e-12)).mean()),
        log_loss_after=float(-np.log(np.maximum(after[of_label], 1e-12)).mean()),
        same_decision=float((before.argmax(axis=1) == after.argmax(axis=1)).mean()),
        same_suggestion=float((chosen[0] == chosen[1]).mean()),
        nearest_synthetic=_summary(synthetic),
        nearest_real=_summary(real),
        copies=float((synthetic == 0).mean()),
        copies_among_real=float((real == 0).mean()),
        dropped=dropped,
    )


def _suggested(selector: DynamicFeatureSelector, states: EncodedRows) -> np.ndarray:
    state = selector._state(states, np.inf, None)
    return state.choose(selector.policy_, state.buyable())[0]


def _nearest(selector: DynamicFeatureSelector, drawn: EncodedRows, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of drawn rows to the nearest training row, and of the rows `asked` to the nearest other one."""
    rows = selector.predictor_.training_rows_
    search = Neighbors(rows, selector.schema_.is_category, 1, 1.0)
    to_others = search.squared_distances(rows.take(asked))
    to_others[np.arange(len(asked)), asked] = np.inf
    found = [search.squared_distances(drawn).min(axis=1), to_others.min(axis=1)]
    sizes = [np.maximum(part.observed.sum(axis=1), 1) for part in (drawn, rows.take(asked))]
    synthetic, real = (np.sqrt(squared / size) for squared, size in zip(found, sizes, strict=True))
    return synthetic, real


def _summary(distances: np.ndarray) -> tuple[float, float]:
    low, middle = np.quantile(distances, [0.05, 0.5])
    return float(low), float(middle)
