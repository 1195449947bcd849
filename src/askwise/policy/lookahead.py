"""A policy that looks one purchase further: a feature may be worth most for what it says to ask next."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel
from askwise.policy.base import PolicyContext
from askwise.policy.greedy import Greedy
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.prices import Prices, affordable
from askwise.table.rows import EncodedRows
from askwise.uncertainty import SMALLEST
from askwise.value import NeighborValue, by_rule, per_cost
from askwise.value.gated import GatedGains
from askwise.value.lookahead import LabelsAhead, SecondGains, outcomes_of_seconds, second_gains, total_effects

AT_THE_START, LATER = 2000, 400
"""Completions from which two steps are estimated."""
MOST_FIRST = 40
"""First features whose followers are evaluated at the start; of more, those that tell or interact most."""
MOST_LATER = 8
"""Fewer than at the start, because every later state pays for it."""
N_STATES = 4
"""States after the first purchase that are examined for another feature to look ahead from."""
CLEARLY = 0.25
"""Share by which a two-step value must exceed that of the greedy choice. On wine, heart, breast_cancer and cirrhosis
noise gives up to 0.15; where one feature says which others matter, it is 1 and more."""
ANSWERS_TO_SCREEN = 20_000
"""Answers of the model, about, by which the first features are chosen where there are too many of them."""


class Lookahead(Greedy):
    r"""Greedy with the adaptive two-step value where features must be combined to tell anything.

    .. math:: value_i = gain_i + \sum_b P(x_i = b) \max_j gain_j(x_i = b)

    and the price is that of both. At the start it is estimated once, in `fit`, from up to 2,000 completions, for all
    features if there are at most 40; of more, for the 20 with the highest gains and the 20 that change the model's
    answers most in complete rows. The other features are valued as if the best single one followed.

    Features whose value clearly exceeds that of the greedy choice, at the start or after the first purchase, by the
    model's answers and by the labels of training rows, are called gates. Later purchases are valued this way where a
    gate is not known yet, for the gates and the features with the highest gains, at most 8 in all; otherwise the gain
    of a feature counts alone. Where the money left pays for only one more feature, it does as well. If a gate comes
    first, all later gains are those of the labels of similar training rows: models often have not learned well which
    features matter when. And once the gate that says most is known, half of a gain is what the feature tells beside
    what is known, as counted in all training rows in which this gate turned out alike (`gated_`): the few rows that
    resemble the case in everything do not say which features matter. ``policy="auto"`` uses `Lookahead` where there are
    gates; these are determined as if all prices were equal.

    Parameters
    ----------
    risk_weight, price_rule
        As in `Greedy`.

    Attributes
    ----------
    gates_ : (G,) positions of the features that it pays to look ahead from
    considered_ : (A,) positions of the features that were valued with their followers
    gated_ : what features tell after each outcome of the gate that says most, `GatedGains`; None without gates
    lookahead_ : dict, ready for JSON: whether it pays, the gates, what then tells most, and the first features compared

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.policy import Lookahead
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, costs=[1, 1, 2, 2], policy=Lookahead(), random_state=0)
    >>> selector = selector.fit(X, y)
    >>> selector.acquire(X[:2], budget=3).spent_after(-1).tolist()
    [3.0, 3.0]
    """

    reason = "It is expected to tell most for its price, counting what it says to ask next."
    gated_: GatedGains | None = None

    def __init__(self, risk_weight: float | None = None, price_rule: str = "auto") -> None:
        super().__init__("neighbors", risk_weight, price_rule)

    def fit(self, context: PolicyContext) -> Self:
        super().fit(context)
        assert isinstance(self.value_, NeighborValue)
        predictor = self.value_.predictor
        self._scaled = predictor.neighbors_.scale(predictor.pool_)
        self._outcomes = {
            n: outcomes_of_seconds(self._scaled, context.schema, min(n, len(predictor.pool_)), context.random_state)
            for n in (AT_THE_START, LATER)
        }
        start = self._examples(context, np.empty(0, dtype=int))
        self.considered_ = self._candidates(start)
        self._start = self._second_gains(start.rows, self.considered_, AT_THE_START)
        greedy = super().scores(start).argmax(axis=1)
        gates, best, usual = self._gates(start, [self._start])
        gates = self._confirmed(gates, greedy, np.empty(0, dtype=int))
        self.value_ = self.value_.by_labels() if len(gates) else self.value_
        first = self.considered_[[best]] if len(gates) else greedy
        later = self._examples(context, first)
        greedy = super().scores(later).argmax(axis=1)
        after = [
            self._second_gains(later.rows.take([r]), np.union1d(self.considered_, chosen), LATER)
            for r, chosen in enumerate(greedy)
        ]
        later_gates = self._confirmed(self._gates(later, after, usual)[0], greedy, first)
        self.gates_ = np.union1d(gates, later_gates).astype(int)
        self.gated_ = self._learned(predictor) if self.pays and context.schema.tabular else None
        self.lookahead_ = self._report(start, best)
        return self

    def _learned(self, predictor: ConditionalPredictor) -> GatedGains:
        return GatedGains.learned(self.gates_, predictor.pool_, predictor.pool_labels(), predictor.schema_)

    def weighed(self, discrepancy: np.ndarray, epistemic: np.ndarray, state: Acquisition) -> np.ndarray:
        found = super().weighed(discrepancy, epistemic, state)
        return found if self.gated_ is None else self.gated_.mixed(found, state.mask, state.rows.values)

    @property
    def pays(self) -> bool:
        """Whether some feature is clearly worth more for what it says to ask next."""
        return len(self.gates_) > 0

    def settled(self) -> Greedy:
        """Itself if it pays to look ahead, otherwise the greedy policy."""
        return self if self.lookahead_["pays"] else self.plainer()

    def plainer(self) -> Greedy:
        """The greedy policy around the same model, which does not look ahead, with the same report."""
        assert isinstance(self.value_, NeighborValue)
        greedy = Greedy(risk_weight=self.risk_weight, price_rule=self.price_rule)
        greedy.value_, greedy.lookahead_ = self.value_.by_answers(), self.lookahead_
        return greedy

    @property
    def reads_budget(self) -> bool:  # type: ignore[override]
        return True  # a follower must be affordable

    def scores(self, state: Acquisition) -> np.ndarray:
        scores = by_rule(*self._two_steps(state), self.price_rule, state.remaining[:, :1])
        return np.where(state.mask, -np.inf, scores)

    def gains(self, scores: np.ndarray, state: Acquisition) -> np.ndarray:
        return np.where(state.mask, -np.inf, per_cost(*self._two_steps(state)))

    def _two_steps(self, state: Acquisition) -> tuple[np.ndarray, np.ndarray]:
        """(n, M) value of each feature, and the price that it is compared with."""
        gain, price = self.worth(state), state.weighed_now.copy()
        buyable, amounts = state.buyable(), state.amounts_now
        begun = np.any(state.mask, axis=1)
        ahead = ~begun | buyable[:, self.gates_].any(axis=1)
        done: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}  # cases alike are valued once
        for r in np.flatnonzero(ahead).tolist():
            key = b"".join(part.tobytes() for part in (state.rows.values[r], buyable[r], state.remaining[r]))
            if key not in done:
                followed = self._followed(state, r, gain[r], buyable[r], bool(begun[r]))
                done[key] = _with_followers(
                    followed, gain[r], price[r], amounts[r], buyable[r], state, r, self.price_rule
                )
            gain[r], price[r] = done[key]
        return gain, price

    def _followed(self, state: Acquisition, r: int, gain: np.ndarray, buyable: np.ndarray, begun: bool) -> SecondGains:
        if not begun:
            return self._start
        best = np.argsort(np.where(buyable, -gain, np.inf), kind="stable")
        first = np.unique([*self.gates_[buyable[self.gates_]], *best[buyable[best]]][:MOST_LATER])
        return self._second_gains(state.rows.take([r]), first, LATER)

    def _second_gains(self, row: EncodedRows, first: np.ndarray, n_completions: int) -> SecondGains:
        assert isinstance(self.value_, NeighborValue)
        found = BeliefModel(self.value_.predictor.with_neighbors(n_completions)).believe(row).completions
        assert found is not None
        answers, outcomes = self.value_.answers(found)[0], self._outcomes[n_completions]
        return second_gains(found, answers, self._scaled, self.value_.schema, first, outcomes)

    def _examples(self, context: PolicyContext, known: np.ndarray) -> Acquisition:
        """Some pool rows, spread over the values of the feature that is `known`; of nothing, one is enough."""
        assert isinstance(self.value_, NeighborValue)
        pool, schema = self.value_.predictor.pool_, context.schema
        by_value = np.argsort(self._scaled[:, schema.feature_columns[known[0]][0]]) if len(known) else np.arange(1)
        at = by_value[np.unique(np.linspace(0, len(by_value) - 1, N_STATES + 2).astype(int)[1:-1])]
        mask = np.zeros((len(at), len(schema.features)), dtype=bool)
        mask[:, known] = True
        rows = EncodedRows(np.where(schema.expand(mask), pool[at], np.nan))
        # At equal prices: per price of both, a cheap feature before a good one looks better than it is.
        prices = Prices((np.asarray(context.prices.weighed.costs) > 0).astype(float))
        left, weight = np.full(len(at), np.inf), context.risk_weight
        return Acquisition(schema, prices, self.value_.beliefs, rows, mask, ~mask, left, risk_weight=weight)

    def _candidates(self, start: Acquisition) -> np.ndarray:
        """The features to value with their followers, ascending."""
        assert isinstance(self.value_, NeighborValue)
        scores = super().scores(start)[0]
        if len(scores) <= MOST_FIRST:
            return np.arange(len(scores))
        best = np.argsort(-scores, kind="stable")[: MOST_FIRST // 2]
        effects = total_effects(self.value_.predictor, self.value_.schema, ANSWERS_TO_SCREEN)
        effects[best] = -np.inf
        return np.union1d(best, np.argsort(-effects, kind="stable")[: MOST_FIRST - len(best)])

    def _gates(
        self, states: Acquisition, followed: list[SecondGains], usual: float = 0.0
    ) -> tuple[np.ndarray, int, float]:
        """The features that pay to look ahead from, on the average of the states; the best one; the greedy score.

        Later, the excess is also compared with the `usual` score at the start: of next to nothing, any share is noise.
        """
        greedy, gain = super().scores(states).argmax(axis=1), self.worth(states)
        found, instead = np.zeros((2, len(self.considered_))), np.zeros((2, 1))
        for r, seconds in enumerate(followed):
            value, price = _valued(seconds, gain[r], ~states.mask[r], states, r, self.price_rule)
            score = by_rule(value, price, self.price_rule)
            considered = np.isin(seconds.first, self.considered_)  # the greedy choice may be another one
            found += np.where(states.mask[r, seconds.first], 0.0, score)[:, considered]
            instead += score[:, seconds.first == greedy[r]]
        more = found / np.maximum(instead, SMALLEST) - 1
        # What tells something once a gate is known looks like one as well: its best follower is the gate.
        clearly = (more > CLEARLY).all(axis=0) & (more >= more.max(axis=1, keepdims=True) / 2).all(axis=0)
        clearly &= ((found - instead) / len(followed) > CLEARLY * usual).all(axis=0)
        clearly &= np.asarray(states.prices.costs)[self.considered_] > 0  # free features are acquired first anyway
        return self.considered_[clearly], int(found.sum(axis=0).argmax()), float(instead.mean() / len(followed))

    def _confirmed(self, gates: np.ndarray, instead: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The gates that labels confirm; images are not compared by their labels."""
        assert isinstance(self.value_, NeighborValue)
        schema = self.value_.schema
        if not len(gates) or not schema.tabular:
            return gates
        return LabelsAhead(self.value_.predictor, schema).confirmed(gates, instead, known, CLEARLY)

    def _report(self, start: Acquisition, best: int) -> dict[str, Any]:
        greedy, names = int(super().scores(start)[0].argmax()), start.schema.features
        value = _valued(self._start, self.worth(start)[0], ~start.mask[0], start, 0, self.price_rule)[0].mean(axis=0)
        instead = float(value[self.considered_ == greedy][0])
        known = {} if self.gated_ is None else {"once_a_gate_is_known": self.gated_.described(names)}
        return {
            "pays": self.pays,
            "gates": [names[i] for i in self.gates_],
            **known,
            "greedy_first": names[greedy],
            "two_step_gain_of_greedy_first": instead,
            "best_first": names[self.considered_[best]],
            "two_step_gain_of_best_first": float(value[best]),
            "n_considered": len(self.considered_),
            "n_features": len(names),
        }


def _valued(
    seconds: SecondGains, gain: np.ndarray, buyable: np.ndarray, state: Acquisition, r: int, rule: str
) -> tuple[np.ndarray, np.ndarray]:
    """(2, A) value of the first features of case `r` with their followers, and the price of both, from each half."""
    first = seconds.first
    had = np.repeat(state.mask[[r]], len(first), axis=0)
    had[np.arange(len(first)), first] = True
    pairs = [(part.now(state.mask[[r]])[0, first], part.now(had), left[r]) for part, left in state.purses]
    allowed = np.logical_and.reduce([affordable(own[:, None] + costs, left) for own, costs, left in pairs])
    own, costs = pairs[0][:2]
    if state.prices.weights:
        own, costs = state.prices.weighed.now(state.mask[[r]])[0, first], state.prices.weighed.now(had)
    allowed = allowed & (buyable if state.schema.rules is None else state.followers(r, first))
    value, price = seconds.values(gain, costs, allowed, rule, state.left[r])
    return value, own + price


def _with_followers(
    seconds: SecondGains,
    gain: np.ndarray,
    price: np.ndarray,
    amounts: np.ndarray,
    buyable: np.ndarray,
    state: Acquisition,
    r: int,
    rule: str,
) -> tuple[np.ndarray, np.ndarray]:
    """(M,) value and price of all features of case `r`; those not in `seconds` as if the best single one followed."""
    ranked = np.where(buyable, by_rule(gain, price, rule, state.left[r]), -np.inf)
    best = int(ranked.argmax())
    both = buyable & (np.arange(len(gain)) != best)
    both &= affordable(amounts + amounts[best], state.remaining[r]).all(axis=1)
    value, cost = gain + gain[best] * both, price + price[best] * both
    found = _valued(seconds, gain, buyable, state, r, rule)
    value[seconds.first], cost[seconds.first] = (part.mean(axis=0) for part in found)
    return value, cost
