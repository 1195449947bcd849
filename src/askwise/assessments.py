"""What is said about cases after each purchase: recorded during the run, or computed when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from askwise.epistemic import Assessment, BeliefModel
from askwise.predict.belief import Belief
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.table.subsets import extended


class Assessments:
    """The assessment of n cases after each of `n_steps` purchases; subclasses implement `_after`."""

    n_steps: int

    def after(self, step: int) -> Assessment:
        """The assessment after `step` purchases; of a shorter run, the last one."""
        return self._after(min(step, self.n_steps))

    @cached_property
    def all(self) -> Assessment:
        """All assessments as one, whose arrays are (n, n_steps + 1) and (n, n_steps + 1, C)."""
        return self.up_to(self.n_steps)

    def up_to(self, step: int) -> Assessment:
        """Those after 0 to `step` purchases as one; the last ones are repeated if there were fewer purchases."""
        return Assessment.stacked([self.after(t) for t in range(step + 1)])

    def _after(self, step: int) -> Assessment:
        raise NotImplementedError


class Recorded(Assessments):
    """Assessments made during the run."""

    def __init__(self, steps: Sequence[Assessment]) -> None:
        self.steps = steps
        self.n_steps = len(steps) - 1

    def _after(self, step: int) -> Assessment:
        return self.steps[step]


class OnRequest(Assessments):
    """Assessments computed when they are read, because the run did not need them.

    Parameters
    ----------
    beliefs, schema
        As in `Acquisition`.
    truth
        The n encoded cases with all values that were acquired.
    available
        (n, M) features that could be acquired.
    start, order
        (n, M) features known at the start, and (n, T) features acquired, -1 = none.
    """

    def __init__(
        self,
        beliefs: BeliefModel,
        schema: Schema,
        truth: EncodedRows,
        available: np.ndarray,
        start: np.ndarray,
        order: np.ndarray,
    ) -> None:
        self.beliefs = beliefs
        self.schema = schema
        self.truth = truth
        self.available = available
        self.start = start
        self.order = order
        self.n_steps = order.shape[1]
        self._read: dict[int, Assessment] = {}

    def _after(self, step: int) -> Assessment:
        if step not in self._read:
            self._read[step] = self.beliefs.assess(*self._believed(step))
        return self._read[step]

    def up_to(self, step: int) -> Assessment:
        """As above; one step after another, because each extends the belief of the one before."""
        belief = None
        for t in range(min(step, self.n_steps) + 1):
            belief, rows = self._believed(t, belief)
            if t not in self._read:
                self._read[t] = self.beliefs.assess(belief, rows)
        return super().up_to(step)

    def _believed(self, step: int, previous: Belief | None = None) -> tuple[Belief, EncodedRows]:
        mask = self.start
        for t in range(step):
            mask = extended(mask, self.order[:, t])
        rows = self.truth.masked(self.schema.expand(mask))
        belief = self.beliefs.believe(rows, previous=previous)
        return self.beliefs.completed(belief, rows, (mask | ~self.available).all(axis=1)), rows


class Joined(Assessments):
    """The assessments of several blocks of cases."""

    def __init__(self, parts: Sequence[Assessments]) -> None:
        self.parts = parts
        self.n_steps = max(part.n_steps for part in parts)

    def _after(self, step: int) -> Assessment:
        return Assessment.concatenated([part.after(step) for part in self.parts])

    def up_to(self, step: int) -> Assessment:
        """As above, block by block."""
        return Assessment.concatenated([part.up_to(step) for part in self.parts])
