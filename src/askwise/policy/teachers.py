"""Who labels states for a policy that is learned: the exact policy, without the rows that it labels in its pool."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from askwise.acquisition import Acquisition, nothing_known
from askwise.epistemic import BeliefModel
from askwise.policy.base import Policy, PolicyContext
from askwise.policy.imitation import LabeledStates, StateInputs
from askwise.table.rows import EncodedRows

N_PARTS = 3
"""Pools of tables in which every row is in the pool: each lacks one part of the rows."""
HELD_OUT_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Teacher:
    """An exact policy and the training rows whose states it may label, because its pool lacks them.

    Attributes
    ----------
    context, beliefs, exact
        What the policy was fitted with, and the policy.
    rows, held_out
        Positions of training rows to learn from, and of those to compare the policies on.
    share
        Of all states, those that this teacher labels.
    """

    context: PolicyContext
    beliefs: BeliefModel
    exact: Policy
    rows: np.ndarray
    held_out: np.ndarray
    share: float

    def nothing_known(self, at: np.ndarray) -> tuple[Acquisition, EncodedRows]:
        """The state of training rows of which nothing is known, and their values."""
        truth, context = self.context.rows.take(at), self.context
        weight = context.risk_weight
        beliefs = self.beliefs if self.exact.reads_members(weight) else self.beliefs.without_members()
        return nothing_known(context.schema, context.prices, beliefs, truth, risk_weight=weight), truth

    def start_scores(self) -> np.ndarray:
        """(1, M) scores of the exact policy where nothing is known."""
        return self.exact.scores(self.nothing_known(self.rows[:1])[0])

    def labeled(self, visitor: Policy, inputs: StateInputs, n: float, rng: np.random.Generator) -> LabeledStates:
        """About `n` states that the visitor reaches, with the scores of the exact policy and the belief."""
        n_rows = round(n)
        at = rng.choice(self.rows, n_rows, replace=n_rows > len(self.rows))
        return self.label(self._visited(at, visitor, rng), inputs)

    def everything_known(self, inputs: StateInputs, n: float, rng: np.random.Generator) -> LabeledStates:
        """About `n` states of which all is known that can be had."""
        at = rng.choice(self.rows, min(round(n), len(self.rows)), replace=False)
        state, truth = self.nothing_known(at)
        state.reveal(state.available, truth.values)
        return self.label(state, inputs)

    def label(self, state: Acquisition, inputs: StateInputs) -> LabeledStates:
        """States with the scores of the exact policy and the belief."""
        step, said = self.beliefs.rows_at_once, []
        for start in range(0, len(state.mask), step):
            part = state.take(slice(start, start + step))
            scores, belief = self.exact.scores(part), part.belief
            said.append((scores, belief.proba, self.beliefs.final(belief)))
        labels = [np.concatenate(parts) for parts in zip(*said, strict=True)]
        return LabeledStates(inputs(state.rows, state.left).astype(np.float32), *labels)

    def held_out_states(self, visitor: Policy, n: float, rng: np.random.Generator) -> Acquisition:
        """About `n` states that the visitor reaches on the rows held out."""
        return self._visited(np.resize(self.held_out, round(n)), visitor, rng)

    def _visited(self, at: np.ndarray, visitor: Policy, rng: np.random.Generator) -> Acquisition:
        """The state after random numbers of purchases, small ones more often, under random budgets if those matter."""
        state, truth = self.nothing_known(at)
        if self.exact.depends_on_budget(self.context.prices):
            limited = rng.random(len(at)) < 0.5
            state.left = np.where(limited, rng.random(len(at)) * self.context.prices.total(), np.inf)
        wanted = (state.mask.shape[1] ** rng.random(len(at))).astype(int) - (rng.random(len(at)) < 0.1)
        for step in range(int(wanted.max(initial=0))):
            buyable = state.buyable() & (step < wanted)[:, None]
            if not buyable.any():
                break
            choice, _ = state.choose(visitor, buyable)
            state.receive(choice, truth.values)
        return state


def teachers_of(
    context: PolicyContext, exact: Policy, n_needed: int, n_held_out: int, rng: np.random.Generator
) -> list[Teacher]:
    """The exact policy for the rows outside its pool if there are enough, else one for each part of the rows."""
    beliefs = copy.copy(context.beliefs)
    beliefs.novelty = None  # not needed for scores, and slow to fit for other rows
    predictor = getattr(getattr(exact, "value_", None), "predictor", beliefs.predictor)
    position = getattr(predictor, "pool_position_", None)
    n = len(context.rows)
    outside = np.arange(n) if position is None else np.flatnonzero(position < 0)
    if len(outside) >= n_needed or len(outside) == n or n < 2 * N_PARTS:
        usable = outside if len(outside) else np.arange(n)
        return [_teacher(context, beliefs, exact, usable, n_held_out, 1.0, rng)]
    found = []
    for part in np.array_split(rng.permutation(n), N_PARTS):
        rest = np.setdiff1d(np.arange(n), part)
        rows, y = context.rows.take(rest), context.y[rest]
        around = beliefs.with_rows(rows, y, context.random_state)
        policy = exact.with_rows(replace(context, rows=rows, y=y, beliefs=around))
        found.append(_teacher(context, around, policy, part, n_held_out // N_PARTS, 1 / N_PARTS, rng))
    return found


def _teacher(
    context: PolicyContext,
    beliefs: BeliefModel,
    exact: Policy,
    usable: np.ndarray,
    n_held_out: int,
    share: float,
    rng: np.random.Generator,
) -> Teacher:
    at = rng.permutation(usable)
    n_held = max(1, min(n_held_out, int(HELD_OUT_SHARE * len(at))))
    rest = at[n_held:] if len(at) > n_held else at
    return Teacher(context, beliefs, exact, rest, at[:n_held], share)
