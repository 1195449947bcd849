"""The default order of the patches: the middle first, unless another is clearly better on held-out training images."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from askwise.acquisition import Acquisition, nothing_known, purchases
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.images.grid import ImageSchema
from askwise.images.predictors import PatchNetwork
from askwise.images.similar_answers import SimilarImageValue
from askwise.images.value import PatchValueNetwork
from askwise.parameters import Flag, check_limits
from askwise.policy.base import Policy, PolicyContext, WithoutRows
from askwise.policy.greedy import Greedy
from askwise.policy.orders import Static
from askwise.predict.base import SubsetPredictor
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample
from askwise.value import held_out_states

LEVELS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the price of all patches after which predictions are compared: 1, 2, 4 and 8 of 16 patches."""
MOST_CASES = 400
HELD_OUT = 0.25
"""At most this share of the training images is held out."""
FEWEST_CASES = 20
"""With fewer, a standard error means little, and the plainest order is taken without a comparison."""
MOST_PIXELS = 120_000_000
"""What the wrapped network may read for more than the fewest cases: a thousand digits, or twenty photographs."""
MIDDLE, LEARNED, GREEDY = "middle first", "learned order", "greedy"
"""From the plainest on: nothing is learned, one order for all images, one for each image."""


class BestOrder(WithoutRows, Policy):
    r"""Buys the middle patches first, or in an order learned from training images, or greedily: whichever is best.

    Some training images are held out. On them each order is followed from no patch to half of the price of all, and
    judged by the mean probability of the class that the model decides for on the complete image. An order takes the
    place of a plainer one only if it is better by more than one standard error of the paired difference. How many
    images are held out follows from counts alone. It is ``policy="auto"`` for images, and `selector.choices_` reports
    what was compared.

    The learned order ranks patches by what they add, on average, to that probability in random subsets (a least-squares
    fit over training images that are not held out).

    Parameters
    ----------
    greedy
        Whether the greedy choice is compared as well. Without it only one order for all images can be taken, and with a
        `PatchNetwork` no value network is trained.

    Attributes
    ----------
    chosen_ : the `Static` or `Greedy` policy in use
    compared_ : dict, ready for JSON: the orders compared, which was taken, and why

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.vision import BestOrder, PatchGrid, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> selector = DynamicFeatureSelector(net, groups=PatchGrid(2, 2), policy=BestOrder(), random_state=0)
    >>> selector.fit(images, y).policy_.compared_["cases"]
    75
    """

    def __init__(self, greedy: bool = True) -> None:
        self.greedy = greedy

    def fit(self, context: PolicyContext) -> Self:
        check_limits(self, {"greedy": Flag()})
        if not isinstance(context.schema, ImageSchema):
            raise InvalidInput('BestOrder is for images; for tables, use policy="auto".')
        middle = Static(context.schema.grid.middle_first()).fit(context)
        n_cases = _n_cases(context)
        self.chosen_: Policy = middle
        self.compared_: dict[str, Any] = {"cases": n_cases, "chosen": MIDDLE}
        if n_cases < FEWEST_CASES:
            few = f"{len(context.rows)} training images are too few to hold some out and compare"
            self.compared_ = {"cases": 0, "chosen": MIDDLE, "why": few}
            return self
        shuffled = np.random.default_rng(context.random_state).permutation(len(context.rows))
        held, rest = np.sort(shuffled[:n_cases]), np.sort(shuffled[n_cases:])
        part = _only(context, rest)
        orders: dict[str, Policy] = {MIDDLE: middle, LEARNED: _learned(part, n_cases)}
        if self.greedy:
            orders[GREEDY] = Greedy(value_for(context.beliefs.predictor)).fit(part)
        kept = {name: _agreement(policy, part, context.rows.take(held)) for name, policy in orders.items()}
        self._take_best(orders, kept)
        taken = self.chosen_
        if isinstance(taken, Greedy) and not isinstance(taken.value, PatchValueNetwork):
            self.chosen_ = Greedy(taken.value).fit(context)  # what is trained stays as it was compared
        return self

    def settled(self) -> Policy:
        """The policy in use, with the report."""
        found = copy.copy(self.chosen_)
        found.compared_ = self.compared_
        return found

    def scores(self, state: Acquisition) -> np.ndarray:
        return self.chosen_.scores(state)

    def reads_members(self, risk_weight: float) -> bool:
        return self.chosen_.reads_members(risk_weight)

    def _take_best(self, orders: dict[str, Policy], kept: dict[str, np.ndarray]) -> None:
        chosen, told = MIDDLE, []
        for name in list(orders)[1:]:
            more = kept[name] - kept[chosen]
            mean, error = float(more.mean()), float(more.std(ddof=1) / np.sqrt(len(more)))
            better = mean > error
            told.append(f"{name} {100 * mean:+.1f} points (standard error {100 * error:.1f}) over {chosen}")
            chosen = name if better else chosen
        self.chosen_ = orders[chosen]
        self.compared_["agreement"] = {name: float(found.mean()) for name, found in kept.items()}
        self.compared_["chosen"] = chosen
        self.compared_["why"] = (
            f"On {len(kept[MIDDLE])} held-out training images, by the probability of the class decided for on the "
            f"complete image: {'; '.join(told)}. An order takes the place of a plainer one if it is better by more "
            "than one standard error."
        )


def value_for(predictor: SubsetPredictor) -> Any:
    """The unfitted value of the greedy policy around a predictor of images."""
    return PatchValueNetwork() if isinstance(predictor, PatchNetwork) else SimilarImageValue()


def _n_cases(context: PolicyContext) -> int:
    completions = getattr(context.beliefs.predictor, "n_neighbors", 1)
    pixels = 3 * len(LEVELS) * completions * len(context.schema.columns)
    return int(min(MOST_CASES, HELD_OUT * len(context.rows), max(FEWEST_CASES, MOST_PIXELS // pixels)))


def _only(context: PolicyContext, rows: np.ndarray) -> PolicyContext:
    """The context with some of the training images; what was trained on all of them is not trained again."""
    known, y, given = context.rows.take(rows), context.y[rows], context.beliefs.predictor
    if isinstance(given, PatchNetwork):
        predictor: SubsetPredictor = copy.copy(given)
        predictor.training_rows_, predictor.training_labels_ = known, y
    else:
        predictor = given.with_rows(known, y)
    beliefs = BeliefModel(predictor, context.beliefs.epistemic)
    return replace(context, rows=known, y=y, beliefs=beliefs, held_out=lambda: held_out_states(beliefs, context.schema))


def _learned(context: PolicyContext, n_cases: int) -> Static:
    """One order for all images, by what a patch adds on average: random subsets of as many images as are held out."""
    rng, n_patches = np.random.default_rng(context.random_state), len(context.schema.features)
    images = np.repeat(rng.permutation(len(context.rows))[:n_cases], len(LEVELS))
    rows = context.rows.take(images)
    mask = sample(len(images), n_patches, rng) & context.schema.any_column(rows.observed)
    kept = _probability_kept(context, rows, [mask], leave_out=images)[:, 0]
    known = mask.reshape(-1, len(LEVELS), n_patches).astype(float)
    within = (known - known.mean(axis=1, keepdims=True)).reshape(-1, n_patches)  # images differ in how hard they are
    kept = kept.reshape(-1, len(LEVELS))
    change = (kept - kept.mean(axis=1, keepdims=True)).reshape(-1)
    worth = np.linalg.solve(within.T @ within + np.eye(n_patches), within.T @ change)
    return Static(worth - worth.min() + 1e-6).fit(context)  # above 0, to be divided by prices


def _agreement(policy: Policy, context: PolicyContext, rows: EncodedRows) -> np.ndarray:
    """(n,) mean over `LEVELS` of the probability of the class decided for on the complete image."""
    plain = BeliefModel(context.beliefs.predictor, None)
    state = nothing_known(context.schema, context.prices, plain, rows, risk_weight=context.risk_weight)
    limits = np.array(LEVELS) * context.prices.total()
    masks, spent = [state.mask] * len(LEVELS), np.zeros(len(rows))
    for _, paid in purchases(state, rows.values, policy):
        spent = spent + paid[:, 0]
        masks = [
            np.where(spent[:, None] <= limit * (1 + 1e-9), state.mask, before)
            for limit, before in zip(limits, masks, strict=True)
        ]
        if (spent > limits[-1]).all():
            break
    return _probability_kept(context, rows, masks).mean(axis=1)


def _probability_kept(
    context: PolicyContext, rows: EncodedRows, masks: list[np.ndarray], leave_out: np.ndarray | None = None
) -> np.ndarray:
    """(n, K) probability, under each of K masks, of the class that is decided for on the complete image."""
    predictor, beliefs = context.beliefs.predictor, BeliefModel(context.beliefs.predictor, None)
    kept = np.empty((len(rows), len(masks)))
    step = beliefs.rows_at_once
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        some, own = rows.take(part), None if leave_out is None else leave_out[part]
        decided = predictor.full_proba(some).argmax(axis=1)
        for k, mask in enumerate(masks):
            known = some.masked(context.schema.expand(mask[part]))
            proba = beliefs.believe(known, members=False, leave_out=own).proba
            kept[part, k] = proba[np.arange(len(decided)), decided]
    return kept
