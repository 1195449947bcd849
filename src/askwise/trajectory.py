"""The record of an acquisition: the features acquired for each case, and the prediction after each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from askwise.assessments import Assessments, Joined
from askwise.epistemic import Assessment
from askwise.errors import InvalidInput, listed
from askwise.table.prices import MONEY
from askwise.table.subsets import extended
from askwise.uncertainty import Uncertainty


@dataclass(frozen=True, repr=False)
class Trajectory:
    """The features acquired for each row, in order, and the prediction after each step.

    What a policy that does not need them leaves out (`Static`, `Random`, `Distilled`), the predictions and
    uncertainties of each step, is computed when it is first read.

    Attributes
    ----------
    order
        (n, T) features in order of purchase, -1 = none.
    costs
        (n, T) price paid at each step, in money.
    further
        (n, T) what each step took of every other resource, by its name; `amounts` has money as well.
    said
        The assessments after each step, from which the properties below are taken.
    start
        (n, M) features known before the first purchase.
    features, classes
        Names of the features (mask order) and class labels (order of `proba`).
    index
        (n,) label of each case in `to_frame`: the index of a DataFrame; None = 0 to n - 1.
    departures
        Why the promise of a calibrated stop does not hold for a case, "" where it does; None without such a stop.
    handed_over
        (n,) the cases to hand to a person by the rule of `calibrate_handover`; None without one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DynamicFeatureSelector(GaussianNB().fit(X, y), epistemic=None, random_state=0).fit(X, y)
    >>> run = selector.acquire(X[:3], budget=2)
    >>> run.order.shape, run.proba.shape, run.spent_after(-1).tolist()
    ((3, 2), (3, 3, 3), [2.0, 2.0, 2.0])
    """

    order: np.ndarray
    costs: np.ndarray
    said: Assessments
    start: np.ndarray
    features: list[str]
    classes: np.ndarray
    index: pd.Index | None = None
    departures: Sequence[str] | None = None
    handed_over: np.ndarray | None = None
    further: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def amounts(self) -> dict[str, np.ndarray]:
        """(n, T) what each step took of each resource, by its name, "money" first."""
        return {MONEY: self.costs, **self.further}

    @property
    def proba(self) -> np.ndarray:
        """(n, T + 1, C) predictions; index 0 is before the first purchase."""
        return self.said.all.proba

    @property
    def decision(self) -> np.ndarray:
        """(n, T + 1) position in `classes` of the class decided for."""
        return self.said.all.decision

    @property
    def agreement(self) -> np.ndarray:
        """(n, T + 1) share of the completions on which the wrapped model decides alike (see `Assessment`)."""
        return self.said.all.agreement

    @property
    def final(self) -> np.ndarray:
        """(n, T + 1, C) probability that the full row is decided for a class."""
        return self.said.all.final

    @property
    def decision_is_final(self) -> np.ndarray:
        """(n, T + 1) probability that the full row is decided alike: the agreement, calibrated if possible."""
        return self.said.all.decision_is_final

    @property
    def uncertainty(self) -> Uncertainty:
        """`Uncertainty` whose arrays are (n, T + 1)."""
        return self.said.all.uncertainty

    @property
    def ends(self) -> Assessment:
        """The assessment of each case after its last purchase."""
        return self.said.after(self.n_steps)

    def __repr__(self) -> str:
        n = len(self.order)
        return f"<Trajectory: {n} cases, up to {self.n_steps} purchases; to_frame() has a row per step>"

    def _repr_html_(self) -> str:
        """A card of the first cases, as notebooks show it."""
        from askwise.cards import trajectory_card

        return trajectory_card(self)

    @property
    def n_steps(self) -> int:
        """T, the number of steps of the longest row."""
        return self.order.shape[1]

    def mask_after(self, t: int) -> np.ndarray:
        """(n, M) features known after `t` purchases."""
        return self.known_after(np.full(len(self.order), self._step(t)))

    def known_after(self, steps: np.ndarray) -> np.ndarray:
        """(n, M) features known of each case after its number of purchases in `steps` (n,)."""
        mask = self.start.copy()
        for step in range(int(steps.max(initial=0))):
            mask = extended(mask, np.where(step < steps, self.order[:, step], -1))
        return mask

    def spent_after(self, t: int, resource: str = MONEY) -> np.ndarray:
        """(n,) price paid after `t` purchases, or what they took of another resource."""
        if resource not in self.amounts:
            raise InvalidInput(
                f"spent_after: there is no resource {resource!r} in the prices, which have {listed(self.amounts)}."
            )
        return np.asarray(self.amounts[resource][:, : self._step(t)].sum(axis=1))

    def predict(self, t: int = -1) -> np.ndarray:
        """(n,) predicted class after `t` purchases; -1 = at the end."""
        return np.asarray(self.classes[self.said.after(self._step(t)).decision])

    def to_frame(self) -> pd.DataFrame:
        """One tidy row per case and step; step 0 is before the first purchase. `case` is the label of the row of X.

        `cost` and `spent` are money at the step and so far; other resources have a column each: what was spent so far.
        """
        n = len(self.order)
        bought = np.column_stack([np.zeros(n, dtype=int), self.order])
        names = np.array([*self.features, None], dtype=object)
        case, step = np.nonzero(np.column_stack([np.ones(n, dtype=bool), self.order >= 0]))
        paid = np.column_stack([np.zeros(n), self.costs])
        table: dict[str, Any] = {
            "case": case if self.index is None else self.index[case],
            "step": step,
            "feature": np.where(step == 0, None, names[bought[case, step]]),
            "cost": paid[case, step],
            "spent": paid.cumsum(axis=1)[case, step],
            **{
                name: np.column_stack([np.zeros(n), amounts]).cumsum(axis=1)[case, step]
                for name, amounts in self.further.items()
            },
            "prediction": self.classes[self.decision[case, step]],
            "agreement": self.agreement[case, step],
            "decision_is_final": self.decision_is_final[case, step],
        }
        for c, label in enumerate(self.classes):
            table[f"proba_{label}"] = self.proba[case, step, c]
        for name, values in self.uncertainty.as_dict().items():
            table[name] = values[case, step]
        if self.departures is not None:
            table["guaranteed"] = np.array([not why for why in self.departures])[case]
            table["departure"] = np.array(self.departures, dtype=object)[case]
        if self.handed_over is not None:
            table["handed_over"] = self.handed_over[case]
        return pd.DataFrame(table)

    @classmethod
    def concatenated(cls, runs: Sequence[Trajectory]) -> Trajectory:
        """Several blocks of cases as one; the shorter ones are padded with their last state."""
        longest = max(run.n_steps for run in runs)
        missing = [((0, 0), (0, longest - run.n_steps)) for run in runs]
        return replace(
            runs[0],
            order=np.concatenate([np.pad(r.order, m, constant_values=-1) for r, m in zip(runs, missing, strict=True)]),
            costs=np.concatenate([np.pad(run.costs, more) for run, more in zip(runs, missing, strict=True)]),
            further={
                name: np.concatenate([np.pad(run.further[name], more) for run, more in zip(runs, missing, strict=True)])
                for name in runs[0].further
            },
            said=Joined([run.said for run in runs]),
            start=np.concatenate([run.start for run in runs]),
        )

    def _step(self, t: int) -> int:
        if t == -1:
            return self.n_steps
        if not isinstance(t, int | np.integer) or not 0 <= t <= self.n_steps:
            raise InvalidInput(f"t must be a number of purchases from 0 to {self.n_steps} (-1 = the end); got {t!r}.")
        return t
