"""One case, by feature name: ask, answer, undo, report."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.acquire.acquisition import Acquisition
from askwise.acquire.policies import Policy
from askwise.epistemic import EpistemicEstimator, assess
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.rules.explanation import Explanation
from askwise.prices import AFFORDABLE_WITHIN, Prices, check_budget
from askwise.schema import Schema


@dataclass(frozen=True)
class Suggestion:
    """The feature to acquire next, its price now, its expected gain per cost, and all that were considered.

    `ranking` lists (feature, price now, gain per cost), best first.
    """

    feature: str
    cost: float
    gain: float
    ranking: list[tuple[str, float, float]]


class Session:
    """One case being worked through; made by `DynamicFeatureSelector.start`."""

    def __init__(
        self,
        schema: Schema,
        prices: Prices,
        policy: Policy,
        predictor: SubsetPredictor,
        epistemic: EpistemicEstimator | None = None,
        known: Mapping[str, Any] | None = None,
        budget: float | None = None,
    ) -> None:
        self._schema = schema
        self._policy = policy
        self._predictor = predictor
        self._epistemic = epistemic
        n_features = len(schema.features)
        self._state = Acquisition(
            schema,
            prices,
            values=np.full((1, len(schema.columns)), np.nan),
            mask=np.zeros((1, n_features), dtype=bool),
            available=np.ones((1, n_features), dtype=bool),
            left=check_budget(budget, 1),
        )
        self._past: list[tuple[Acquisition, list[dict[str, Any]]]] = []
        self._trace: list[dict[str, Any]] = []
        self._suggestion: Suggestion | None = None
        self._thought = False  # whether `_suggestion` is that of the present state
        if known is not None and not isinstance(known, Mapping):
            raise InvalidInput(f"known must be a dict {{feature: value}}; got {known!r}.")
        for name, value in (known or {}).items():
            i = self._unknown_feature(name)
            self._state.mask[0, i] = True
            self._state.values[0, schema.feature_columns[i]] = schema.encode_feature(i, value)
        self._record("start", None, None, 0.0)

    @property
    def left(self) -> float | None:
        """Money left; None = unlimited."""
        return None if np.isinf(self._state.left[0]) else float(self._state.left[0])

    @property
    def known(self) -> dict[str, Any]:
        """What is known of the case, by feature."""
        had = np.flatnonzero(self._state.mask[0]).tolist()
        return {self._schema.features[i]: self._schema.show_feature(i, self._state.values[0]) for i in had}

    def suggest(self) -> Suggestion | None:
        """The feature to acquire next; None where nothing can be bought or nothing is left to ask."""
        if not self._thought:
            self._suggestion, self._thought = self._suggest(), True
        return self._suggestion

    def _suggest(self) -> Suggestion | None:
        state = self._state
        buyable = state.buyable(self._predictor)
        if not buyable.any():
            return None
        choice, scores = state.choose(self._policy, buyable)
        best = int(choice[0])
        if best < 0:
            return None
        now = state.prices.now(state.mask)[0]
        others = [i for i in np.argsort(-scores[0], kind="stable") if buyable[0, i] and i != best]
        ranking = [(self._schema.features[i], float(now[i]), float(scores[0, i])) for i in [best, *others]]
        return Suggestion(self._schema.features[best], float(now[best]), float(scores[0, best]), ranking)

    def answer(self, feature: str, value: Any) -> None:
        """A value came in: a scalar, or a dict of columns for a group. The feature is charged at its price now."""
        i = self._unknown_feature(feature)
        if not self._state.available[0, i]:
            raise InvalidInput(f"{feature!r} was marked as unavailable; undo() that first.")
        price = float(self._state.prices.now(self._state.mask)[0, i])
        if price > self._state.left[0] + AFFORDABLE_WITHIN:
            raise InvalidInput(
                f"{feature!r} costs {price:g} and only {self._state.left[0]:g} is left. What is known "
                "without paying is given to start(known=...)."
            )
        cells = np.full((1, len(self._schema.columns)), np.nan)
        cells[0, self._schema.feature_columns[i]] = self._schema.encode_feature(i, value)
        with self._all_or_nothing():
            paid = self._state.receive(np.array([i]), cells)
            self._record("answer", feature, self._schema.show_feature(i, self._state.values[0]), float(paid[0]))

    def unavailable(self, feature: str) -> None:
        """The feature cannot be had for this case; it is not suggested again and not charged."""
        i = self._unknown_feature(feature)
        if not self._state.available[0, i]:
            raise InvalidInput(f"{feature!r} is marked as unavailable already.")
        with self._all_or_nothing():
            self._state.available[0, i] = False
            self._record("unavailable", feature, None, 0.0)

    def undo(self) -> None:
        """Take back the last answer or `unavailable`, money included."""
        if not self._past:
            raise InvalidInput("There is nothing to undo: no feature has been answered or marked as unavailable yet.")
        self._state, self._trace = self._past.pop()
        self._thought = False

    def report(self) -> dict[str, Any]:
        """Everything about the case, ready for JSON: NaN is None, an unlimited budget is None."""
        suggestion = self.suggest()
        report = {
            **self._trace[-1]["state"],
            "known": self.known,
            "unavailable": [self._schema.features[i] for i in np.flatnonzero(~self._state.available[0])],
            "spent": float(sum(step["cost"] for step in self._trace)),
            "left": self.left,
            "suggestion": None if suggestion is None else suggestion.feature,
            "ranking": [
                {"feature": name, "cost": cost, "gain": _finite(gain)}
                for name, cost, gain in (suggestion.ranking if suggestion else [])
            ],
            "trace": [{**{k: v for k, v in step.items() if k != "state"}, **step["state"]} for step in self._trace],
        }
        return copy.deepcopy(report)

    def _record(self, event: str, feature: str | None, value: Any, cost: float) -> None:
        found, trust = assess(self._predictor, self._epistemic, self._state.values, self._state.column_mask)
        classes = self._predictor.classes_
        rules = self._predictor.explain(self._state.values, self._state.column_mask)
        trusted = {name: values[0] for name, values in trust.as_dict().items()}
        state = described(classes, found[0], trusted, None if rules is None else rules[0])
        self._trace.append({"event": event, "feature": feature, "value": value, "cost": cost, "state": state})

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """One step that can be undone; if it fails, the session is as it was."""
        self._past.append((self._state.copy(), list(self._trace)))
        self._thought = False
        try:
            yield
        except BaseException:
            self.undo()
            raise

    def _unknown_feature(self, feature: str) -> int:
        i = self._schema.position(feature)
        if self._state.mask[0, i]:
            value = self._schema.show_feature(i, self._state.values[0])
            raise InvalidInput(f"{feature!r} is known already ({value!r}); undo() back to before it to change it.")
        return i


def described(
    classes: np.ndarray, proba: np.ndarray, uncertainty: Mapping[str, float], rules: Explanation | None = None
) -> dict[str, Any]:
    """A prediction (C,), its uncertainties and the rules behind it, ready for JSON: NaN is None."""
    best = classes[proba.argmax()]
    explained = {} if rules is None else {"rules": rules.as_dict(classes)}
    return {
        "prediction": best.item() if isinstance(best, np.generic) else best,
        "probabilities": {str(label): float(p) for label, p in zip(classes, proba, strict=True)},
        "uncertainty": {name: _finite(float(value)) for name, value in uncertainty.items()},
        **explained,
    }


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None
