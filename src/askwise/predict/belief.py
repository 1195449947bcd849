"""Belief: everything derived from what is known about some cases, computed once and shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from askwise.table.rows import ByRow


@dataclass(frozen=True, eq=False)
class Completions(ByRow):
    """K completions of each row: the pool rows used, their weights, and the answers of the model (and members)."""

    index: np.ndarray  # (n, K)
    weights: np.ndarray  # (n, K)
    answers: np.ndarray  # (n, K, 1 + k, C), the wrapped model first

    def mean(self, narrowing: np.ndarray | None = None) -> np.ndarray:
        """p(y | x_S) by the model and by each member, (n, 1 + k, C), or (n, F, 1 + k, C).

        `narrowing`, (n,) or (n, F), divides the width of the Gaussian kernel by which a row's completions are weighted.
        """
        weights = self.weights
        if narrowing is not None:
            relative = weights / weights.max(axis=1, keepdims=True)
            weights = relative.reshape(len(weights), *[1] * (narrowing.ndim - 1), -1) ** narrowing[..., None] ** 2
            weights = weights / weights.sum(axis=-1, keepdims=True)
        means = np.einsum("n...k,nkc->n...c", weights, self.answers.reshape(*self.weights.shape, -1))
        return means.reshape(*means.shape[:-1], *self.answers.shape[2:])


@dataclass(frozen=True, eq=False)
class Belief(ByRow):
    """Everything derived from what is observed of n cases.

    Attributes
    ----------
    answers
        (n, 1 + k, C): p(y | x_S) by the wrapped model, then by the k members around it.
    completions
        The completions behind the answers, where they are averages over completions and were kept.
    distances
        (n, N) squared distances to the pool rows over the observed columns, extended as further columns are observed.
    weighted_distances
        The same with learned column weights, where the predictor has them.
    observed
        (n, D) the columns that both cover.
    similar
        (n, 1 + k, C) what the model and the members say of similar rows of the pool as they are, where that is used.
    epistemic
        (n,) epistemic uncertainty where it does not come from members (distance to the training data).
    features
        (n, H) inputs of the last layer of a network, where the predictor keeps them for members and policies.
    complete
        (n,) whether nothing more will become known about a case, so that its decision is final.
    """

    answers: np.ndarray
    completions: Completions | None = None
    distances: np.ndarray | None = None
    weighted_distances: np.ndarray | None = None
    observed: np.ndarray | None = None
    similar: np.ndarray | None = None
    epistemic: np.ndarray | None = None
    features: np.ndarray | None = None
    complete: np.ndarray | None = None

    @property
    def proba(self) -> np.ndarray:
        """(n, C) the prediction."""
        return self.answers[:, 0]

    @property
    def members(self) -> np.ndarray | None:
        """(k, n, C) the members' predictions; None where there are none."""
        return self.answers[:, 1:].transpose(1, 0, 2) if self.answers.shape[1] > 1 else None

    def with_members(self, others: Sequence[np.ndarray]) -> Belief:
        """The same belief with the members' predictions (n, C) beside the model's."""
        return replace(self, answers=np.concatenate([self.answers, np.stack(others, axis=1)], axis=1))
