"""A policy learned from another one: a small network that chooses in one pass, and asks the exact policy if unsure."""

from __future__ import annotations

import copy
from itertools import islice
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from askwise.acquisition import Acquisition, purchases
from askwise.errors import InvalidInput
from askwise.parameters import SHARE, WIDTHS, Limits, Whole, check_limits
from askwise.policy.base import Policy, PolicyContext
from askwise.policy.expected_saving import ExpectedSaving
from askwise.policy.greedy import Greedy
from askwise.policy.imitation import BeliefNetwork, LabeledStates, ScoreNetwork, StateInputs, targets_of
from askwise.policy.lookahead import Lookahead
from askwise.policy.planned import Planned
from askwise.policy.teachers import Teacher, teachers_of

EPOCHS = 20
"""Passes over all states in each round; the last round has twice as many."""
SHARPNESS_AT_THE_START = 0.3
"""Of the first round, in which features are drawn with chances that grow with their scores at the start."""
FULL_SHARE = 0.1
"""Rows with everything known, beside the states that are visited, as a share of these."""
BELIEF = 1
"""What tells the seed of the belief's network from that of the scores'."""
N_HELD_OUT, MOST_EPISODES = 400, 150
STEPS_COMPARED = (2, 5, 10)


class Distilled(Policy):
    """The choices of another policy, learned by a small network: one matrix product instead of K calls of the model.

    The network is trained on states that it visits itself, each labeled with the scores of the exact policy
    (dataset aggregation, DAgger): a mistake leads to states in which it has learned what to do next. Where the scores
    of its two best features are close, and at the start, the exact policy decides. Predictions and uncertainties are
    not needed to choose, so `acquire` and sessions compute them when they are read.

    A second network learns the belief in the same states: p(y | x_S), and how probably each class is what the full row
    is decided for. With both, `selector.quick()` runs whole cases without the wrapped model.

    It is fitted for one risk weight and for the prices of the selector. Labels come from training rows that the exact
    policy does not have in its pool, or, in tables that are no larger than the pool, from a policy whose pool lacks
    them.

    Parameters
    ----------
    exact
        The policy to learn from; None = what ``policy="auto"`` stands for, without plans and usual gains.
    n_states
        Number of states to learn from, each scored once by the exact policy: most of the time of `fit`.
    n_rounds
        Rounds in which the states are collected; after each the network is trained on all of them.
    hidden
        Widths of the hidden layers.
    exact_share
        Share of the decisions, on held-out rows, that is left to the exact policy: those with the smallest margins.

    Attributes
    ----------
    exact_ : the fitted exact policy
    margin_ : the margin below which the exact policy decides, in units of how far the best score is above the mean
    belief_ : the network that learned the belief
    belief_margin_ : the difference of the two highest probabilities below which the belief itself is asked
    report_ : dict, ready for JSON, on held-out rows: `agreement` (share of the decisions that are those of the exact
        policy), `regret` (share of its gain that is lost), `exact_share` (how often the exact policy decides), the
        `accuracy` of both policies after some purchases, and of the `belief`: `same_decision` (in that share of the
        states both decide alike), `regret` (probability of being right that is lost by deciding otherwise), `apart`
        (mean difference of the probability of the decision), `final_apart` (that of the decision being final), all
        where the network is asked, and `exact_share`, where it is not

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Distilled
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> policy = Distilled(n_states=200, n_rounds=1)
    >>> selector = DynamicFeatureSelector(model, costs=[1, 1, 2, 2], policy=policy, random_state=0)
    >>> selector = selector.fit(X, y)
    >>> selector.acquire(X[:2], budget=3).spent_after(-1).tolist()
    [3.0, 3.0]
    """

    reads_belief = False

    def __init__(
        self,
        exact: Policy | None = None,
        n_states: int = 6000,
        n_rounds: int = 3,
        hidden: tuple[int, ...] = (128, 64),
        exact_share: float = 0.02,
    ) -> None:
        self.exact = exact
        self.n_states = n_states
        self.n_rounds = n_rounds
        self.hidden = hidden
        self.exact_share = exact_share

    def fit(self, context: PolicyContext) -> Self:
        self._check(context)
        self.exact_ = self._fitted_exact(context)
        self.risk_weight_ = float(context.risk_weight)
        self.inputs_ = StateInputs(
            context.rows, context.schema, context.prices, self.exact_.depends_on_budget(context.prices)
        )
        rng = np.random.default_rng(context.random_state)
        n_features = len(context.schema.features)
        self.network_ = ScoreNetwork(self.inputs_.n_inputs, n_features, self.hidden, rng)
        self.margin_ = -np.inf
        per_round = -(-self.n_states // self.n_rounds)
        teachers = teachers_of(context, self.exact_, per_round, N_HELD_OUT, rng)
        seen = self._train(teachers, context, per_round, rng)
        self._train_belief(seen, teachers, context)
        self._examine(teachers, context, rng)
        self.quick_stop_ = None
        return self

    def _check(self, context: PolicyContext) -> None:
        limits: Limits = {"n_states": Whole(1), "n_rounds": Whole(1), "hidden": WIDTHS, "exact_share": SHARE}
        check_limits(self, limits)
        if self.exact is not None and (not isinstance(self.exact, Policy) or isinstance(self.exact, Distilled)):
            raise InvalidInput(
                f"Distilled: exact must be another Policy, such as Greedy(), or None; got {self.exact!r}."
            )
        if not context.schema.tabular:
            raise InvalidInput('policy="distilled" is for tables; for images, use "auto".')

    def _fitted_exact(self, context: PolicyContext) -> Policy:
        if self.exact is not None:
            fitted: Policy = clone(self.exact).fit(context)
            return fitted
        if context.beliefs.error_costs is not None:
            return ExpectedSaving().fit(context)
        return Lookahead().fit(context).settled()

    @property
    def reads_budget(self) -> bool:  # type: ignore[override]
        return self.inputs_.price_of_all is not None

    @property
    def value_(self) -> Any:
        """The value of features by which the exact policy chooses."""
        return getattr(self.exact_, "value_", None)

    def reads_members(self, risk_weight: float) -> bool:
        return self.exact_.reads_members(risk_weight)

    def with_rows(self, context: PolicyContext) -> Self:
        other = self._asking(self.exact_.with_rows(context))
        other.quick_stop_ = None
        return other

    def refitted(self, context: PolicyContext) -> Self:
        return self._asking(self.exact_.refitted(context))

    def _asking(self, exact: Policy) -> Self:
        other = copy.copy(self)
        other.exact_ = exact
        return other

    def scores(self, state: Acquisition) -> np.ndarray:
        if state.risk_weight != self.risk_weight_:
            raise InvalidInput(
                f'policy="distilled" was fitted for risk_weight={self.risk_weight_:g}, not {state.risk_weight:g}. Call '
                'fit again, or use policy="greedy", whose risk weight can change.'
            )
        found, margin = self.network_.scores(self.inputs_(state.rows, state.left), state.buyable())
        found[state.mask] = -np.inf
        unsure = (margin < self.margin_) | ~state.mask.any(axis=1)  # the start is the same for all: computed once
        if unsure.any():
            found[unsure] = self.exact_.scores(state.take(unsure))
        return found

    def gains(self, scores: np.ndarray, state: Acquisition) -> np.ndarray:
        if isinstance(self.exact_, Planned):  # the network does not know how far each score is that of a plan
            return self.exact_.gains(self.exact_.scores(state), state)
        return Greedy.gains(self.exact_, scores, state) if isinstance(self.exact_, Greedy) else scores

    def _train(
        self, teachers: list[Teacher], context: PolicyContext, n: int, rng: np.random.Generator
    ) -> list[LabeledStates]:
        start = teachers[0].start_scores()
        seen: list[LabeledStates] = []
        for number in range(self.n_rounds):
            visitor = _Sampled(self, None if number else start, rng)
            seen += [teacher.labeled(visitor, self.inputs_, n * teacher.share, rng) for teacher in teachers]
            states = LabeledStates.concatenated(seen)
            if states.open.any():
                epochs = 2 * EPOCHS if number == self.n_rounds - 1 else EPOCHS
                self.network_.train(states.inputs[states.open], states.scores[states.open], epochs, rng)
        return seen

    def _train_belief(self, seen: list[LabeledStates], teachers: list[Teacher], context: PolicyContext) -> None:
        """All states that were visited, and rows of which everything is known, which a policy hardly visits."""
        rng = np.random.default_rng([context.random_state, BELIEF])
        n_full = FULL_SHARE * self.n_states
        full = [teacher.everything_known(self.inputs_, n_full * teacher.share, rng) for teacher in teachers]
        states = LabeledStates.concatenated([*seen, *full])
        self.belief_ = BeliefNetwork(self.inputs_.n_inputs, states.proba.shape[1], self.hidden, rng)
        self.belief_.train(states.inputs, states.proba, states.final, 2 * EPOCHS, rng)

    def _examine(self, teachers: list[Teacher], context: PolicyContext, rng: np.random.Generator) -> None:
        """The margins below which the exact policy and its belief are asked, and the comparison on held-out rows."""
        parts = [teacher.held_out_states(self, N_HELD_OUT * teacher.share, rng) for teacher in teachers]
        states = LabeledStates.concatenated(
            [teacher.label(state, self.inputs_) for teacher, state in zip(teachers, parts, strict=True)]
        )
        exact = states.scores
        buyable = np.concatenate([state.buyable() & (state.weighed_now > 0) for state in parts])
        inputs = np.concatenate([self.inputs_(state.rows, state.left) for state in parts])
        open_ = (buyable & np.isfinite(exact)).any(axis=1)
        exact, buyable = np.where(buyable, exact, -np.inf)[open_], buyable[open_]
        found, margin = self.network_.scores(inputs[open_], buyable)
        threshold = float(np.quantile(margin, self.exact_share)) if len(margin) else -np.inf
        sure, chosen = margin >= threshold, np.where(buyable, found, -np.inf).argmax(axis=1)
        lost = exact.max(axis=1) - np.take_along_axis(exact, chosen[:, None], axis=1)[:, 0]
        lost = np.where(sure, np.nan_to_num(lost, posinf=0.0), 0.0)
        self.margin_ = threshold
        self.report_ = {
            "n_states": self.n_states,
            "n_held_out_states": len(margin),
            "agreement": float((lost <= 0).mean()),
            "regret": float(lost.sum() / max(np.abs(exact.max(axis=1)).sum(), 1e-12)),
            "exact_share": float((~sure).mean()),
            "accuracy": self._accuracies(teachers, context),
            "belief": self._examined_belief(states, inputs, context),
        }

    def _examined_belief(self, states: LabeledStates, inputs: np.ndarray, context: PolicyContext) -> dict[str, float]:
        proba, final = self.belief_(inputs)
        top = np.partition(proba, -2, axis=1)[:, -2:]
        margin = top[:, 1] - top[:, 0]
        self.belief_margin_ = float(np.quantile(margin, self.exact_share))
        sure = margin >= self.belief_margin_
        decisions = context.beliefs.decisions
        found, exact = decisions(proba)[sure], decisions(states.proba)[sure]
        of_found, of_exact = (np.take_along_axis(states.proba[sure], k[:, None], axis=1)[:, 0] for k in (found, exact))
        apart = np.take_along_axis(np.abs(proba - states.proba)[sure], exact[:, None], axis=1)
        final_apart = np.take_along_axis(np.abs(final - states.final)[sure], exact[:, None], axis=1)
        return {
            "same_decision": float((found == exact).mean()),
            "regret": float(np.maximum(of_exact - of_found, 0.0).mean()),
            "apart": float(apart.mean()),
            "final_apart": float(final_apart.mean()),
            "exact_share": float((~sure).mean()),
        }

    def _accuracies(self, teachers: list[Teacher], context: PolicyContext) -> list[dict[str, float]]:
        """The accuracy of held-out rows along both policies, after some numbers of purchases."""
        found: dict[str, list[np.ndarray]] = {"exact": [], "distilled": []}
        for teacher in teachers:
            at = teacher.held_out[: -(-MOST_EPISODES // len(teachers))]
            for name, policy in (("exact", teacher.exact), ("distilled", self._asking(teacher.exact))):
                found[name].append(_correct(teacher, at, policy, context.y[at]))
        means = {name: np.concatenate(parts).mean(axis=0) for name, parts in found.items()}
        return [
            {"purchases": float(step), **{name: float(mean[k]) for name, mean in means.items()}}
            for k, step in enumerate(_steps_compared(len(context.schema.features)))
        ]


class _Sampled(Policy):
    """Visits states: of every other case the best feature by the network, of the others one drawn by its weight."""

    def __init__(self, student: Distilled, start: np.ndarray | None, rng: np.random.Generator) -> None:
        self.student = student
        self.start = start
        self.rng = rng

    def scores(self, state: Acquisition) -> np.ndarray:
        noise = self.rng.gumbel(size=state.mask.shape)
        if self.start is not None:
            return SHARPNESS_AT_THE_START * np.log(np.maximum(targets_of(self.start).share, 1e-30)) + noise
        logits = self.student.network_.logits(self.student.inputs_(state.rows, state.left))
        return logits + noise * (state.ids % 2 == 1)[:, None]


def _steps_compared(n_features: int) -> list[int]:
    return [step for step in STEPS_COMPARED if step < n_features] or [1]


def _correct(teacher: Teacher, at: np.ndarray, policy: Policy, labels: np.ndarray) -> np.ndarray:
    """(n, steps) whether the decisions of training rows `at` are right after each of the numbers of purchases."""
    steps = _steps_compared(len(teacher.context.schema.features))
    state, truth = teacher.nothing_known(at)
    right = []
    bought = islice(purchases(state, truth.values, policy), steps[-1])
    for step in range(1, steps[-1] + 1):
        next(bought, None)
        if step in steps:
            right.append(teacher.beliefs.decisions(teacher.beliefs.proba(state.rows)) == labels)
    return np.stack(right, axis=1)
