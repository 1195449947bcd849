"""Rows being bought: what is known, what it cost, what can be had next; and the loop that buys.

A batch of n rows and a session of one run through the same class. Arrays stay full size; a row that is done is
carried forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from askwise.epistemic import EpistemicEstimator, assess
from askwise.errors import AskwiseError, InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.prices import AFFORDABLE_WITHIN, Prices
from askwise.progress import track
from askwise.schema import Schema
from askwise.subsets import extended
from askwise.uncertainty import Uncertainty

if TYPE_CHECKING:
    from askwise.acquire.policies import Policy
    from askwise.acquire.stopping import Stopping


class Acquisition:
    """The state of n rows: observed cells, features had, and money left.

    Parameters
    ----------
    schema, prices
        Features and their (resolved) prices.
    values
        (n, D) encoded cells that are known now, NaN elsewhere.
    mask
        (n, M) features that are known now; they are not charged.
    available
        (n, M) features that can be had.
    left
        (n,) money.
    """

    def __init__(
        self,
        schema: Schema,
        prices: Prices,
        values: np.ndarray,
        mask: np.ndarray,
        available: np.ndarray,
        left: np.ndarray,
    ) -> None:
        self.schema = schema
        self.prices = prices
        self.values = values
        self.mask = mask
        self.available = available
        self.left = left

    def copy(self) -> Acquisition:
        """An independent copy, for undo."""
        return Acquisition(
            self.schema,
            self.prices,
            self.values.copy(),
            self.mask.copy(),
            self.available.copy(),
            self.left.copy(),
        )

    @property
    def column_mask(self) -> np.ndarray:
        """(n, D) observed cells."""
        return self.schema.expand(self.mask) & ~np.isnan(self.values)

    def buyable(self, predictor: SubsetPredictor | None = None) -> np.ndarray:
        """(n, M) features not yet had that are available, affordable, and can still matter to the predictor."""
        affordable = self.prices.now(self.mask) <= self.left[:, None] + AFFORDABLE_WITHIN
        buyable = ~self.mask & self.available & affordable
        if predictor is not None:
            buyable &= self.schema.any_column(predictor.candidates(self.values, self.column_mask))
        return buyable

    def choose(self, policy: Policy, buyable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The next feature of each row, (n,), -1 where nothing is buyable; and the scores, (n, M).

        What is free now is taken first; then the highest score, ties to the lowest index; -inf is never bought.
        """
        scores = checked_scores(policy, self.values, self.mask, self.left)
        scores = np.where(buyable, scores, -np.inf)
        free = buyable & (self.prices.now(self.mask) == 0)
        ranked = np.where(free, np.inf, scores)
        choice = ranked.argmax(axis=1)
        choice[np.isneginf(ranked.max(axis=1))] = -1
        return choice, scores

    def receive(self, features: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Buy ``features[r]`` (-1 = nothing), whose cells are in `cells` (n, D); returns the prices paid, (n,)."""
        rows = np.flatnonzero(features >= 0)
        paid = np.zeros(len(features))
        paid[rows] = self.prices.now(self.mask)[rows, features[rows]]
        after = extended(self.mask, features)
        new = self.schema.expand(after & ~self.mask)
        self.values = np.where(new, cells, self.values)
        self.mask = after
        self.left = np.maximum(self.left - paid, 0.0)
        return paid


def checked_scores(policy: Policy, values: np.ndarray, mask: np.ndarray, left: np.ndarray) -> np.ndarray:
    """`policy.scores`, with its shape checked and NaN refused."""
    scores = np.asarray(policy.scores(values, mask, left), dtype=float)
    if scores.shape != mask.shape or np.isnan(scores).any():
        problem = "NaN" if scores.shape == mask.shape else f"shape {scores.shape}"
        raise AskwiseError(
            f"{type(policy).__name__}.scores must return numbers of shape {mask.shape} (rows, features); got {problem}."
        )
    return scores


@dataclass(frozen=True)
class Trajectory:
    """What was bought for each row, in order, and what was predicted after each step.

    Attributes
    ----------
    order
        (n, T) features in order of purchase, -1 = none.
    costs
        (n, T) price paid at each step.
    proba
        (n, T + 1, C) predictions; index 0 is before the first purchase.
    uncertainty
        `Uncertainty` whose arrays are (n, T + 1).
    start
        (n, M) features known before the first purchase.
    features, classes
        Names of the features (mask order) and class labels (order of `proba`).
    """

    order: np.ndarray
    costs: np.ndarray
    proba: np.ndarray
    uncertainty: Uncertainty
    start: np.ndarray
    features: list[str]
    classes: np.ndarray

    @property
    def n_steps(self) -> int:
        """T, the number of steps of the longest row."""
        return self.order.shape[1]

    def mask_after(self, t: int) -> np.ndarray:
        """(n, M) features known after `t` purchases."""
        mask = self.start
        for step in range(self._step(t)):
            mask = extended(mask, self.order[:, step])
        return mask.copy()

    def spent_after(self, t: int) -> np.ndarray:
        """(n,) money spent after `t` purchases."""
        return np.asarray(self.costs[:, : self._step(t)].sum(axis=1))

    def predict(self, t: int = -1) -> np.ndarray:
        """(n,) predicted class after `t` purchases; -1 = at the end."""
        return np.asarray(self.classes[self.proba[:, self._step(t)].argmax(axis=1)])

    def to_frame(self) -> pd.DataFrame:
        """One tidy row per case and step; step 0 is before the first purchase, and a row ends where its buying does."""
        n = len(self.order)
        bought = np.column_stack([np.zeros(n, dtype=int), self.order])
        names = np.array([*self.features, None], dtype=object)
        case, step = np.nonzero(np.column_stack([np.ones(n, dtype=bool), self.order >= 0]))
        paid = np.column_stack([np.zeros(n), self.costs])
        table: dict[str, Any] = {
            "case": case,
            "step": step,
            "feature": np.where(step == 0, None, names[bought[case, step]]),
            "cost": paid[case, step],
            "spent": paid.cumsum(axis=1)[case, step],
            "prediction": self.classes[self.proba.argmax(axis=2)][case, step],
        }
        for c, label in enumerate(self.classes):
            table[f"proba_{label}"] = self.proba[case, step, c]
        for name, values in self.uncertainty.as_dict().items():
            table[name] = values[case, step]
        return pd.DataFrame(table)

    def _step(self, t: int) -> int:
        if t == -1:
            return self.n_steps
        if not isinstance(t, int | np.integer) or not 0 <= t <= self.n_steps:
            raise InvalidInput(f"t must be a number of purchases from 0 to {self.n_steps} (-1 = the end); got {t!r}.")
        return t


def purchases(
    state: Acquisition,
    truth: np.ndarray,
    policy: Policy,
    predictor: SubsetPredictor,
    wants_to_stop: Callable[[], np.ndarray] | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Buy until no row can or wants to; yields (features, prices paid) after each step, a feature of -1 = none."""
    done = np.zeros(len(state.mask), dtype=bool)
    while True:
        buyable = state.buyable(predictor) & ~done[:, None]
        if wants_to_stop is not None:
            has_free = (buyable & (state.prices.now(state.mask) == 0)).any(axis=1)
            done |= wants_to_stop() & ~has_free
            buyable &= ~done[:, None]
        if not buyable.any():
            return
        choice, _ = state.choose(policy, buyable)
        done |= choice < 0
        if done.all():
            return
        yield choice, state.receive(choice, truth)


def steps(
    state: Acquisition,
    truth: np.ndarray,
    policy: Policy,
    predictor: SubsetPredictor,
    epistemic: EpistemicEstimator | None = None,
    stop: Stopping | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]]:
    """`purchases` with what is predicted after each: yields (features, paid, proba, uncertainties), first as it was."""
    n = len(state.mask)
    proba, found = assess(predictor, epistemic, state.values, state.column_mask)
    uncertainty = found.as_dict()
    yield np.full(n, -1), np.zeros(n), proba, uncertainty
    wants_to_stop = None if stop is None else lambda: stop.stops(state, proba)
    for choice, paid in purchases(state, truth, policy, predictor, wants_to_stop):
        bought = choice >= 0
        new_proba, found = assess(predictor, epistemic, state.values[bought], state.column_mask[bought])
        proba = _replaced(proba, bought, new_proba)
        uncertainty = {name: _replaced(uncertainty[name], bought, new) for name, new in found.as_dict().items()}
        yield choice, paid, proba, uncertainty


def run_episodes(
    state: Acquisition,
    truth: np.ndarray,
    policy: Policy,
    predictor: SubsetPredictor,
    epistemic: EpistemicEstimator | None = None,
    stop: Stopping | None = None,
    progress: bool | str = False,
) -> Trajectory:
    """Buy features for all rows until money, features or the stopping rule end it.

    `truth` (n, D) holds the cells that a purchase reveals; the policy sees only what is in `state`.
    """
    start = state.mask.copy()
    most_steps = int((~start).sum(axis=1).max(initial=0)) + 1
    buying = track(steps(state, truth, policy, predictor, epistemic, stop), "acquiring", most_steps, progress)
    chosen, paid, probas, uncertainties = zip(*buying, strict=True)
    names = uncertainties[0]
    return Trajectory(
        order=np.stack(chosen, axis=1)[:, 1:],
        costs=np.stack(paid, axis=1)[:, 1:],
        proba=np.stack(probas, axis=1),
        uncertainty=Uncertainty(**{name: np.stack([step[name] for step in uncertainties], axis=1) for name in names}),
        start=start,
        features=list(state.schema.features),
        classes=predictor.classes_,
    )


class PolicyMasks:
    """Draws the subsets that a policy visits: each row is bought for a random number of steps (Eq. 4)."""

    def __init__(self, policy: Policy, schema: Schema, prices: Prices) -> None:
        self.policy = policy
        self.schema = schema
        self.prices = prices

    def __call__(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n, D) encoded rows -> mask per column."""
        n, n_features = len(values), len(self.schema.features)
        available = self.schema.any_column(~np.isnan(values))
        nothing = np.zeros((n, n_features), dtype=bool)
        state = Acquisition(
            self.schema, self.prices, np.full_like(values, np.nan), nothing, available, np.full(n, np.inf)
        )
        for left in rng.integers(0, n_features, size=n) - np.arange(n_features)[:, None]:
            choice, _ = state.choose(self.policy, state.buyable() & (left > 0)[:, None])
            state.receive(choice, values)
        return state.column_mask


def _replaced(old: np.ndarray, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    out = old.copy()
    out[rows] = new
    return out
