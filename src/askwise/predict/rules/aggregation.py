"""How the rules that fire under a mask are combined into one prediction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from askwise.predict.rules.reduction import Reduced, ReducedRules


def by_support(rules: ReducedRules, degrees: np.ndarray, reduced: Reduced, own: np.ndarray | None) -> np.ndarray:
    r"""Mean of the firing reduced rules' confidences, weighted by support and firing degree.

    .. math:: p(y \mid x_S) \propto \sum_r r_A^S(x_S) \; |X_{r_A^S}| \; \text{Confidence}(r^S \Rightarrow y)

    A rule whose conditions are all observed keeps its own value. If only such rules are still possible,
    nothing needs to be estimated: weighted by firing degree they give the model's own prediction.
    """
    support = np.maximum(reduced.counts.sum(axis=-1, keepdims=True), 1.0)
    whole = reduced.whole[..., None]
    # In one product: mass by class, and the degrees of rules that are not fully observed yet.
    said = np.concatenate([np.where(whole, rules.values * support, reduced.counts), ~whole], axis=-1)  # (L, C + 1)
    joined = degrees @ said if said.ndim == 2 else np.einsum("rl,rlc->rc", degrees, said)
    mass, settled = joined[:, :-1], joined[:, -1] == 0
    if own is not None:
        estimated = degrees * (reduced.kept & ~reduced.whole)
        mass[np.arange(len(mass)), own] -= (estimated**2).sum(axis=1)
        mass = np.maximum(mass, 0.0)
    if settled.any():
        mass[settled] = degrees[settled] @ rules.values
    return _distributions(mass, settled, rules, own)


def by_best(rules: ReducedRules, degrees: np.ndarray, reduced: Reduced, own: np.ndarray | None) -> np.ndarray:
    r"""The single best rule, as in the paper: :math:`\arg\max_r r_A^S(x_S) \max_y \text{Confidence}(r^S, y)`.

    If nothing needs to be estimated, it is the model's own prediction, as in `by_support`.
    """
    mass = best_rules(rules, degrees, reduced, own)[1]
    settled = np.all((degrees == 0) | reduced.whole, axis=1)
    mass[settled] = degrees[settled] @ rules.values
    return _distributions(mass, settled, rules, own)


def best_rules(
    rules: ReducedRules, degrees: np.ndarray, reduced: Reduced, own: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The best rule of each row (r,), and its confidences (r, C), which are 0 if no rule has any.

    Ties go to the rule with the larger support, then to the first.
    """
    counts = np.array(np.broadcast_to(reduced.counts, (*degrees.shape, reduced.counts.shape[-1])))  # (r, L, C)
    if own is not None:
        counts[np.arange(len(degrees)), :, own] -= degrees
    support = counts.sum(axis=2, keepdims=True)
    confidence = np.divide(counts, support, out=np.zeros_like(counts), where=support > 1e-9)
    confidence = np.where(reduced.whole[..., None], rules.values, confidence)
    quality = degrees * confidence.max(axis=2)
    highest = quality.max(axis=1, keepdims=True)
    best = np.where(quality == highest, reduced.counts.sum(axis=-1), -1.0).argmax(axis=1)
    mass = confidence[np.arange(len(degrees)), best] * (highest > 0)
    return best, np.maximum(mass, 0.0)


AGGREGATIONS: dict[str, Callable[..., np.ndarray]] = {"support": by_support, "best": by_best}


def _distributions(mass: np.ndarray, settled: np.ndarray, rules: ReducedRules, own: np.ndarray | None) -> np.ndarray:
    """Rows of `mass` (r, C) normalized to sum to one; the class prior for rows of zeros.

    If no rule can fire any more (`settled`), the default of the rule set is used instead.
    """
    ones = np.ones(mass.shape[1])  # a product is faster than a sum over a short axis
    silent = mass @ ones <= 1e-9
    if silent.any():
        prior = np.repeat(rules.prior[None], len(mass), axis=0)
        if own is not None:
            prior[np.arange(len(mass)), own] -= 1.0
            prior[prior.sum(axis=1) <= 0] = rules.prior
        if rules.rules.default is not None:
            prior[settled] = rules.rules.default
        mass = np.where(silent[:, None], prior, mass)
    return mass / (mass @ ones)[:, None]
