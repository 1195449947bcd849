"""Whole cases without the wrapped model: the networks of a distilled policy choose, predict and stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.networks import CLIP
from askwise.policy.distilled import Distilled
from askwise.policy.imitation import SHARPNESS, StateInputs, as_belief, margins
from askwise.predict.base import SubsetPredictor
from askwise.stopping.guarantee import FullRuns, class_certainty
from askwise.table.columns import Column, plain
from askwise.table.prices import MONEY, Prices, affordable
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class QuickStop:
    """When quick cases stop, calibrated on their own runs.

    Attributes
    ----------
    threshold, shares
        As in `CalibratedStop`.
    budget
        The budget that it was calibrated for: with another one, quick cases do not stop by it.
    promise
        What is promised, in words.
    """

    threshold: float
    shares: np.ndarray | None
    budget: float
    promise: str

    def stops(self, final: np.ndarray, decision: np.ndarray) -> np.ndarray:
        """Whether cases with `final` (n, C) and `decision` (n,) stop, (n,)."""
        return _certainty(final, decision, self.shares) >= self.threshold


@dataclass(frozen=True, eq=False)
class QuickRun:
    """Cases along the distilled policy, as arrays.

    Attributes
    ----------
    order, costs
        (n, T) features acquired, -1 = none, and the prices paid.
    proba, final
        (n, T + 1, C) what is said of cases that end after each number of purchases; of a run that was not asked to say
        it of each, (n, 1, C) at the end.
    certainty
        (n, T + 1) by which a stop would decide after each; of a run that was not asked, empty.
    asked
        (n, 2) how often the exact policy decided, and whether the exact belief had the last word.
    """

    order: np.ndarray
    costs: np.ndarray
    proba: np.ndarray
    final: np.ndarray
    certainty: np.ndarray
    asked: np.ndarray


class QuickSelector:
    """A selector that answers from the networks of its distilled policy; made by `selector.quick()`.

    The networks choose the next feature, predict, and say how probably the decision is final. What they are unsure of
    is left to the selector itself: the choice where the two best features are close, and the prediction at the end of
    a case where its two most probable classes are, or where everything is known (`exact_share` of `Distilled` is how
    often the first two happen on held-out states).

    Answers are those of the networks, not of the wrapped model: ``choices_["policy"]["distilled"]["belief"]`` says how
    far apart they are, and a stop must be calibrated on quick cases: ``calibrate_stop(X_cal, ..., quick=True)``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> selector = DynamicFeatureSelector(GaussianNB(), policy="distilled", epistemic=None, random_state=0)
    >>> quick = selector.fit(X[::2], y[::2]).quick()
    >>> case = quick.start(budget=2)
    >>> for _ in range(2):
    ...     feature = case.suggest()
    ...     case.answer(feature, X.loc[1, feature])
    >>> case.suggest() is None, case.spent
    (True, 2.0)
    """

    def __init__(
        self,
        policy: Distilled,
        beliefs: BeliefModel,
        schema: Schema,
        prices: Prices,
        classes: np.ndarray,
        risk_weight: float,
        budget: Any,
        encode: Callable[[Any], EncodedRows],
    ) -> None:
        if schema.rules is not None or type(beliefs.predictor).open_columns is not SubsetPredictor.open_columns:
            raise InvalidInput(
                "quick() knows neither rules of the house nor features that no longer matter (as in rule lists); use "
                "start() and acquire()."
            )
        if any(prices.weights.values()):
            raise InvalidInput("quick() ranks by money alone, and these prices weigh other resources; use acquire().")
        self.policy, self.beliefs, self.schema, self.prices = policy, beliefs.without_members(), schema, prices
        self.classes_, self.features_ = classes, schema.features
        self.risk_weight, self._encode = risk_weight, encode
        self.budget = self._money(budget)
        self.costs = np.asarray(prices.costs, dtype=float)
        self.shared = [
            (together, float(saving.get(MONEY, 0.0) if isinstance(saving, Mapping) else saving))
            for together, saving in prices.of(MONEY).shared
        ]
        self.set_ups: dict[int, list[int]] = {}
        for set_up, (together, _) in enumerate(self.shared):
            for i in together:
                self.set_ups.setdefault(int(i), []).append(set_up)
        self.position = {name: i for i, name in enumerate(schema.features)}
        scores, belief = policy.network_.layers, policy.belief_.layers
        self.n_hidden = len(scores.biases[0])
        # Both networks read the same inputs: one product for both.
        self.into = np.hstack([scores.weights[0], belief.weights[0]])
        self.bias = np.concatenate([scores.biases[0], belief.biases[0]])
        self.of_scores = list(zip(scores.weights[1:], scores.biases[1:], strict=True))
        self.of_belief = list(zip(belief.weights[1:], belief.biases[1:], strict=True))
        self.effects = _effects(policy.inputs_, self.into, schema)
        self.encode = _encoders(schema)
        self.price_of_all = policy.inputs_.price_of_all
        at = len(schema.columns) + len(policy.inputs_.numbers)  # where the money left is an input
        self.of_budget = np.zeros(0) if self.price_of_all is None else self.into[at]
        nothing = self._state(np.full((1, len(schema.columns)), np.nan), np.full(1, np.inf))
        self.at_start = policy.scores(nothing)[0]
        found = nothing.belief
        self.believed_at_start = found.proba[0], self.beliefs.final(found)[0]

    @property
    def stop_(self) -> QuickStop | None:
        """The stop of ``calibrate_stop(..., quick=True)``, also after saving and loading."""
        found: QuickStop | None = self.policy.quick_stop_
        return found

    def _money(self, budget: Any) -> float:
        """A budget as an amount of money."""
        limit = self.prices.limits(budget, 1)[0]
        if np.isfinite(limit[1:]).any():
            raise InvalidInput(
                f"quick(): the budget must be an amount of money; got {budget!r}. Use acquire() for others."
            )
        return float(limit[0])

    def stop_for(self, budget: float) -> QuickStop | None:
        """The stop, if it was calibrated for this budget."""
        return self.stop_ if self.stop_ is not None and self.stop_.budget == budget else None

    def start(self, known: Mapping[str, Any] | None = None, budget: float | None = None) -> QuickCase:
        """A case of which the features in `known` are known and cost nothing.

        It stops by the stop that was calibrated for quick cases, if there is one, or where `budget` is used up.
        """
        if known is not None and not isinstance(known, Mapping):
            raise InvalidInput(f"known must be a dict {{feature: value}}; got {known!r}.")
        case = QuickCase(self, self.budget if budget is None else self._money(budget))
        for name, value in (known or {}).items():
            case.know(name, value)
        return case

    def run(
        self, cases: EncodedRows, budget: float, every_step: bool = False, shares: np.ndarray | None = None
    ) -> QuickRun:
        """Encoded cases along the policy until they stop; `every_step`: they never do, and it is said after each."""
        parts = [
            self._run(cases.take(slice(k, k + ROWS_AT_ONCE)), budget, every_step, shares)
            for k in range(0, len(cases), ROWS_AT_ONCE)
        ]
        steps, said = (max(getattr(part, name).shape[1] for part in parts) for name in ("order", "proba"))
        return QuickRun(
            np.concatenate([_padded(part.order, steps, -1) for part in parts]),
            np.concatenate([_padded(part.costs, steps, 0.0) for part in parts]),
            np.concatenate([_padded(part.proba, said, None) for part in parts]),
            np.concatenate([_padded(part.final, said, None) for part in parts]),
            np.concatenate([_padded(part.certainty, said, None) for part in parts]),
            np.concatenate([part.asked for part in parts]),
        )

    def acquire(self, X: Any, budget: float | None = None) -> pd.DataFrame:
        """A row per case: what was acquired, at what price, what is said in the end, and what the selector was asked.

        `X` holds the true values, NaN = unavailable. `asked_policy` counts the choices that were left to the exact
        policy; `asked_belief` is 1 where the last word was that of the exact belief.
        """
        run = self.run(self._encode(X), self.budget if budget is None else self._money(budget))
        proba, final = run.proba[:, -1], run.final[:, -1]
        decision = self.beliefs.decisions(proba)
        names = np.array([*self.features_, ""], dtype=object)
        table = {
            "n_bought": (run.order >= 0).sum(axis=1),
            "bought": [" > ".join(names[order[order >= 0]]) for order in run.order],
            "spent": run.costs.sum(axis=1),
            "prediction": self.classes_[decision],
            "decision_is_final": np.take_along_axis(final, decision[:, None], axis=1)[:, 0],
        }
        table |= {f"proba_{label}": proba[:, c] for c, label in enumerate(self.classes_)}
        return pd.DataFrame(table | {"asked_policy": run.asked[:, 0], "asked_belief": run.asked[:, 1]})

    def full_runs(self, truth: EncodedRows, exact: FullRuns, budget: float, shares: np.ndarray | None) -> FullRuns:
        """What any stop would see of quick cases that never stop; `exact` has the runs of `acquire`."""
        run, n = self.run(truth, self._money(budget), every_step=True, shares=shares), len(truth)
        free_next = np.column_stack([(run.order >= 0) & (run.costs == 0), np.zeros(n, dtype=bool)])
        return FullRuns(
            certainty=np.where(free_next, -np.inf, run.certainty),
            decision=self.beliefs.decisions(run.proba),
            spent=np.column_stack([np.zeros(n), run.costs.cumsum(axis=1)]),
            n_steps=(run.order >= 0).sum(axis=1),
            full=exact.full,
            labels=exact.labels,
            proba=None if exact.labels is None else run.proba,
            final=run.final,
        )

    def _run(self, cases: EncodedRows, budget: float, every_step: bool, shares: np.ndarray | None) -> QuickRun:
        n, n_features = len(cases), len(self.features_)
        at, available = np.arange(n), self.schema.any_column(cases.observed)
        mask, left = np.zeros((n, n_features), dtype=bool), np.full(n, budget)
        stop = None if every_step else self.stop_for(budget)
        asked, going = np.zeros((n, 2), dtype=int), np.ones(n, dtype=bool)
        orders, costs, said = [], [], []
        proba, final = (np.tile(one, (n, 1)) for one in self.believed_at_start)
        for step in range(n_features + 1):
            if every_step:
                settled = self._settled(proba, final, cases, mask, left, asked)
                said.append((*settled, _certainty(final, self.beliefs.decisions(proba), shares)))
            price = self.prices.now(mask)
            open_ = ~mask & available & affordable(price, left[:, None]) & going[:, None]
            free = open_ & (price == 0)
            if stop is not None:
                stops = stop.stops(final, self.beliefs.decisions(proba))
                open_ &= free | ~(stops & ~free.any(axis=1))[:, None]
            going = open_.any(axis=1)
            if not going.any():
                break
            choice = np.full(n, -1)
            if step == 0:
                choice[going] = np.where(open_, self.at_start, -np.inf)[going].argmax(axis=1)
            else:
                self._choose(choice, going, open_, cases, mask, left, asked)
            choice = np.where(free.any(axis=1), free.argmax(axis=1), choice)
            paid = np.where(choice >= 0, price[at, choice], 0.0)
            left = np.maximum(left - paid, 0.0)
            mask[at[choice >= 0], choice[choice >= 0]] = True
            orders.append(choice)
            costs.append(paid)
            proba, final = proba.copy(), final.copy()
            proba[going], final[going] = self._believed(cases.take(going), mask[going], left[going])
        if not every_step:
            said.append((*self._settled(proba, final, cases, mask, left, asked), np.empty(n)))
        order = np.column_stack(orders) if orders else np.empty((n, 0), dtype=int)
        paid = np.column_stack(costs) if costs else np.empty((n, 0))
        probas, finals, certainty = (np.stack(parts, axis=1) for parts in zip(*said, strict=True))
        return QuickRun(order, paid, probas, finals, certainty, asked)

    def _choose(
        self,
        choice: np.ndarray,
        going: np.ndarray,
        open_: np.ndarray,
        cases: EncodedRows,
        mask: np.ndarray,
        left: np.ndarray,
        asked: np.ndarray,
    ) -> None:
        """Set the `choice` of those that are `going`: of the network, or of the exact policy where that is unsure."""
        rows = self._known(cases.take(going), mask[going])
        logits = self.policy.network_.logits(self.policy.inputs_(rows, left[going]))
        logits = np.where(open_[going], logits, -np.inf)
        picked = logits.argmax(axis=1)
        unsure = (margins(logits) < self.policy.margin_) & (open_[going].sum(axis=1) > 1)
        if unsure.any():
            of_unsure = self.schema.any_column(cases.observed)[going][unsure]
            scores = self.policy.exact_.scores(self._state(rows.values[unsure], left[going][unsure], of_unsure))
            picked[unsure] = np.where(open_[going][unsure], scores, -np.inf).argmax(axis=1)
            asked[np.flatnonzero(going)[unsure], 0] += 1
        choice[going] = picked

    def _settled(
        self,
        proba: np.ndarray,
        final: np.ndarray,
        cases: EncodedRows,
        mask: np.ndarray,
        left: np.ndarray,
        asked: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is said of cases that end here: where the network is unsure what to decide, what the belief says."""
        proba, final = proba.copy(), final.copy()
        top = np.partition(proba, -2, axis=1)[:, -2:]
        available = self.schema.any_column(cases.observed)
        unsure = (top[:, 1] - top[:, 0] < self.policy.belief_margin_) | (mask | ~available).all(axis=1)
        unsure &= mask.any(axis=1)
        if unsure.any():
            values = self._known(cases.take(unsure), mask[unsure]).values
            state = self._state(values, left[unsure], available[unsure])
            proba[unsure], final[unsure] = state.belief.proba, self.beliefs.final(state.belief)
            asked[unsure, 1] += 1
        return proba, final

    def _believed(self, cases: EncodedRows, mask: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.policy.belief_(self.policy.inputs_(self._known(cases, mask), left))

    def _known(self, cases: EncodedRows, mask: np.ndarray) -> EncodedRows:
        return cases.masked(self.schema.expand(mask))

    def _state(self, values: np.ndarray, left: np.ndarray, available: np.ndarray | None = None) -> Acquisition:
        """Cases as the exact policy and its belief see them."""
        rows = EncodedRows(values)
        mask = self.schema.any_column(rows.observed)
        available = np.ones_like(mask) if available is None else available
        state = Acquisition(self.schema, self.prices, self.beliefs, rows, mask, available, left)
        state.risk_weight = self.risk_weight
        return state


class QuickCase:
    """One case; made by `QuickSelector.start`. A group is answered by a dict of its columns.

    Examples
    --------
    See `QuickSelector`:

    >>> from askwise.case.quick import QuickCase
    >>> QuickCase.answer.__doc__
    'Enter the value of a feature; its price is taken off the budget.'
    """

    def __init__(self, owner: QuickSelector, budget: float) -> None:
        self.owner = owner
        self.known: dict[int, Sequence[float]] = {}
        """The encoded cells of each feature that is known, by its position."""
        self.left, self.spent = budget, 0.0
        self.stop = owner.stop_for(budget)
        self.asked = [0, 0]
        """How often the exact policy, and the exact belief, had to be asked."""
        self._hidden = owner.bias
        self._prices = owner.costs.copy()  # NaN where a feature is known or unavailable
        self._unavailable: set[int] = set()
        self._paid: set[int] = set()  # set-ups
        self._thought: tuple[np.ndarray, np.ndarray] | None = owner.believed_at_start
        self._settled = True

    def suggest(self) -> str | None:
        """The feature to acquire next; None where the case stops, or nothing more can be had."""
        owner = self.owner
        usable = affordable(self._prices, np.float64(self.left)).nonzero()[0]
        if not len(usable):
            return None
        prices = self._prices[usable]
        if not prices.min():  # what is free comes first
            return owner.features_[usable[prices.argmin()]]
        if self.stop is not None and self._stops(self.stop):
            return None
        if len(usable) == 1:
            return owner.features_[usable[0]]
        if not self.known:
            return owner.features_[usable[owner.at_start[usable].argmax()]]
        logits = _through(owner.of_scores, self._inner()[: owner.n_hidden])[usable]
        best = logits.argmax()
        highest, logits[best] = logits[best], -np.inf
        if (highest - logits.max()) / SHARPNESS < owner.policy.margin_:
            self.asked[0] += 1
            best = owner.policy.exact_.scores(self._state())[0, usable].argmax()
        return owner.features_[usable[best]]

    def answer(self, feature: str, value: Any) -> None:
        """Enter the value of a feature; its price is taken off the budget."""
        at = self.owner.position.get(feature)
        price = 0.0 if at is None else float(self._prices[at])
        if price > 0 and not affordable(price, self.left):
            raise InvalidInput(
                f"{feature!r} costs {price:g} and only {self.left:g} is left. Pass values that are known without "
                "paying to start(known=...)."
            )
        self._close(self._enter(feature, value))
        self.left, self.spent = max(self.left - price, 0.0), self.spent + price

    def know(self, feature: str, value: Any) -> None:
        """Enter the value of a feature that costs nothing in this case."""
        self._close(self._enter(feature, value))

    def unavailable(self, feature: str) -> None:
        """Say that a feature cannot be had."""
        i = self.owner.schema.position(feature)
        self._unavailable.add(i)
        self._prices[i] = np.nan
        self._settled = False

    def _enter(self, feature: str, value: Any) -> int:
        """Let the networks know a value; returns the position of the feature."""
        owner = self.owner
        i = owner.position.get(feature, -1)
        if i < 0 or i in self.known:
            owner.schema.position(feature)
            raise InvalidInput(f"{feature!r} is known already.")
        cells = owner.encode[i](value)
        hidden = self._hidden.copy()
        for effect, cell in zip(owner.effects[i], cells, strict=True):
            if cell == cell:  # part of a group may be missing
                effect(hidden, cell)
        self._hidden, self.known[i] = hidden, cells
        self._thought, self._settled = None, False
        return i

    def _close(self, i: int) -> None:
        """A feature that is known cannot be bought again, and what shares its set-up is cheaper now."""
        for set_up in self.owner.set_ups.get(i, ()):
            if set_up not in self._paid:
                self._paid.add(set_up)
                together, saving = self.owner.shared[set_up]
                self._prices[together] = np.maximum(self._prices[together] - saving, 0.0)
        self._prices[i] = np.nan
        self._unavailable.discard(i)

    def predict_proba(self) -> np.ndarray:
        """(C,) the probabilities of the classes; of the exact belief where the network is unsure what to decide."""
        return self._end()[0]

    def predict(self) -> Any:
        """The class to decide for."""
        return plain(self.owner.classes_[self._decision(self._end()[0])])

    @property
    def decision_is_final(self) -> float:
        """The probability that knowing everything would not change the decision."""
        proba, final = self._end()
        return float(final[self._decision(proba)])

    def _decision(self, proba: np.ndarray) -> int:
        beliefs = self.owner.beliefs
        return int(proba.argmax() if beliefs.error_costs is None else beliefs.decisions(proba))

    def _inner(self) -> np.ndarray:
        """What comes out of the first layers: inputs are added to it as they are answered."""
        owner, inner = self.owner, self._hidden
        if owner.price_of_all is not None:
            inner = inner + min(self.left / owner.price_of_all, 1.0) * owner.of_budget
        return np.maximum(inner, 0.0)

    def _believed(self) -> tuple[np.ndarray, np.ndarray]:
        if self._thought is None:
            self._thought = as_belief(_through(self.owner.of_belief, self._inner()[self.owner.n_hidden :]))
        return self._thought

    def _end(self) -> tuple[np.ndarray, np.ndarray]:
        proba, final = self._believed()
        if not self._settled:
            self._settled = True
            top = proba.max()
            second = np.partition(proba, -2)[-2]
            complete = len(self.known) + len(self._unavailable) == len(self.owner.features_)
            if complete or top - second < self.owner.policy.belief_margin_:
                self.asked[1] += 1
                belief = self._state().belief
                self._thought = proba, final = belief.proba[0], self.owner.beliefs.final(belief)[0]
        return proba, final

    def _stops(self, stop: QuickStop) -> bool:
        proba, final = self._believed()
        decision = self._decision(proba)
        if stop.shares is None:
            return bool(final[decision] >= stop.threshold)
        times = final / stop.shares
        times[decision] = 0.0
        return bool(1 - times.max() >= stop.threshold)

    def _state(self) -> Acquisition:
        values = np.full((1, len(self.owner.schema.columns)), np.nan)
        for i, cells in self.known.items():
            values[0, self.owner.schema.feature_columns[i]] = cells
        available = np.ones((1, len(self.owner.features_)), dtype=bool)
        available[0, list(self._unavailable)] = False
        return self.owner._state(values, np.array([self.left]), available)


@dataclass(frozen=True, eq=False)
class _Number:
    """What a value of a number adds to what comes out of the first layers."""

    known: np.ndarray
    weight: np.ndarray
    mean: float
    scale: float

    def __call__(self, hidden: np.ndarray, value: float) -> None:
        hidden += self.known
        hidden += max(-CLIP, min(CLIP, (value - self.mean) / self.scale)) * self.weight


@dataclass(frozen=True, eq=False)
class _Category:
    """What a category adds."""

    by_code: np.ndarray

    def __call__(self, hidden: np.ndarray, value: float) -> None:
        hidden += self.by_code[int(min(value, len(self.by_code) - 1))]


def _effects(inputs: StateInputs, into: np.ndarray, schema: Schema) -> list[list[_Number | _Category]]:
    """For each feature, what its columns add."""
    found: dict[int, _Number | _Category] = {}
    for k, j in enumerate(inputs.numbers.tolist()):
        weights = into[j], into[len(schema.columns) + k]
        found[j] = _Number(*weights, float(inputs.mean[k]), float(inputs.scale[k]))
    rows = np.vstack([into, np.zeros(into.shape[1])])  # the last one is for what has no input
    for k, j in enumerate(inputs.categories.tolist()):
        found[j] = _Category(into[j] + rows[inputs.position[k]])
    return [[found[int(j)] for j in columns] for columns in schema.feature_columns]


def _encoders(schema: Schema) -> list[Callable[[Any], Sequence[float]]]:
    """For each feature, the encoded cells of an answer."""

    def of_one(column: Column) -> Callable[[Any], Sequence[float]]:
        return lambda value: (column.encode_answer(value),)

    def of_group(i: int) -> Callable[[Any], Sequence[float]]:
        return lambda value: schema.encode_feature(i, value).tolist()

    return [
        of_one(schema.columns[columns[0]]) if len(columns) == 1 else of_group(i)
        for i, columns in enumerate(schema.feature_columns)
    ]


def _certainty(final: np.ndarray, decision: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
    """(n,) how certain decisions (n,) are by `final` (n, C), measured by the `shares` of the classes if these count."""
    if shares is not None:
        return class_certainty(final, decision, shares)
    return np.asarray(np.take_along_axis(final, decision[:, None], axis=1)[:, 0])


def _through(layers: list[tuple[np.ndarray, np.ndarray]], active: np.ndarray) -> np.ndarray:
    """The outputs of one row, from what its first layer gives."""
    for weights, biases in layers[:-1]:
        active = np.maximum(active @ weights + biases, 0.0)
    weights, biases = layers[-1]
    return np.asarray(active @ weights + biases)


def _padded(array: np.ndarray, steps: int, fill: float | None) -> np.ndarray:
    """A shorter run as long as others: with `fill`, or the last entry again."""
    more = steps - array.shape[1]
    if not more:
        return array
    shape = (len(array), more, *array.shape[2:])
    tail = np.repeat(array[:, -1:], more, axis=1) if fill is None else np.full(shape, fill, dtype=array.dtype)
    return np.concatenate([array, tail], axis=1)
