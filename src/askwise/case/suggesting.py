"""What to acquire next for rows of a table: gains, scores, the next feature, and a set to order together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.acquisition import Acquisition, checked_scores
from askwise.case.suggested_set import SuggestedSet, check_price, suggested_set
from askwise.policy.base import Policy
from askwise.table.rows import EncodedRows


class Suggesting:
    """Mixin of `FeatureAcquirer`."""

    features_: list[str]
    policy_: Policy

    def gains(self, X: Any) -> np.ndarray:
        """Expected gain per price of each feature, (n, M), whatever rule the policy ranks by; -inf for those known."""
        return np.concatenate([self.policy_.gains(_scores(self.policy_, part), part) for part in self._parts(X)])

    def scores(self, X: Any) -> np.ndarray:
        """The scores by which the policy ranks the features, (n, M); -inf for those that are known."""
        return np.concatenate([_scores(self.policy_, part) for part in self._parts(X)])

    def suggest(self, X: Any, budget: Any = None, available: Any = None, *, as_names: bool = False) -> np.ndarray:
        """Index of the next feature for rows with NaN for what is not known, (n,); -1 = stop.

        Parameters
        ----------
        budget
            Budget left, one number or one per row. Known features are not charged, and count for shared savings.
        available
            (n, M) or (M,) bool: features that can be acquired.
        as_names
            Return names instead of positions, None = stop.
        """
        parts = self._parts(X, budget, available)
        choice = np.concatenate([part.choose(self.policy_, part.buyable())[0] for part in parts])
        return np.array([*self.features_, None], dtype=object)[choice] if as_names else choice

    def suggest_set(self, X: Any, price: float, available: Any = None) -> list[SuggestedSet]:
        """The features to order together for each row, within a price; see `Session.suggest_set`.

        Parameters
        ----------
        price
            The most that the set may cost, one number >= 0; shared set-up costs count once.
        available
            (n, M) or (M,) bool: features that can be acquired.
        """
        check_price(price)
        parts = self._parts(X, price, available)
        return [suggested_set(part, self.policy_, r, price) for part in parts for r in range(len(part.rows))]

    def _parts(self, X: Any, budget: Any = np.inf, available: Any = None) -> list[Acquisition]:
        state = self._state(self._encode(X), budget, available)
        return [state.take(part) for part in self._blocks(len(state.mask))]

    if TYPE_CHECKING:  # methods of FeatureAcquirer

        def _encode(self, X: Any) -> EncodedRows: ...

        def _blocks(self, n: int, n_jobs: int = 1) -> list[slice]: ...

        def _state(self, rows: EncodedRows, budget: Any, available: Any) -> Acquisition: ...


def _scores(policy: Policy, state: Acquisition) -> np.ndarray:
    return np.where(state.mask, -np.inf, checked_scores(policy, state))
