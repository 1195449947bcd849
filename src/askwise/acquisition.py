"""The state of an acquisition (what is known, what it cost, what can be acquired next), and the loop over its steps.

A batch of n rows and a session of one row use the same class. Arrays keep their size; the entries of a finished row
are carried forward.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.assessments import Assessments, OnRequest, Recorded
from askwise.epistemic import Assessment, BeliefModel
from askwise.errors import AskwiseError
from askwise.predict.belief import Belief
from askwise.progress import track
from askwise.table.prices import TIME, Prices, affordable
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.trajectory import Trajectory

if TYPE_CHECKING:
    from askwise.policy.base import Policy
    from askwise.stopping.rules import Stopping


class Acquisition:
    """The state of n cases: observed values, beliefs, acquired features, and the budget left.

    Parameters
    ----------
    schema, prices
        Features and their (resolved) prices.
    beliefs
        The model that predicts and estimates uncertainty.
    rows
        The n encoded cases, NaN in every cell that is not known.
    mask
        (n, M) features that are known; they are not charged.
    available
        (n, M) features that can be acquired.
    left
        (n,) money left, or (n, R) what is left of each resource of the prices.
    risk_weight
        The weight of epistemic uncertainty in a gain, for policies that do not set their own.
    ids
        (n,) number of each case, which seeds random policies; 0 to n - 1 by default.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import nothing_known
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> beliefs, schema, prices = selector.beliefs_, selector.schema_, selector.prices_
    >>> truth = schema.encode(X[:2])
    >>> state = nothing_known(schema, prices, beliefs, truth)
    >>> state.buyable().tolist(), state.belief.proba.shape
    ([[True, True, True, True], [True, True, True, True]], (2, 3))
    """

    def __init__(
        self,
        schema: Schema,
        prices: Prices,
        beliefs: BeliefModel,
        rows: EncodedRows,
        mask: np.ndarray,
        available: np.ndarray,
        left: np.ndarray,
        *,
        risk_weight: float = 0.0,
        ids: np.ndarray | None = None,
    ) -> None:
        self.schema = schema
        self.prices = prices
        self.beliefs = beliefs
        self.rows = rows
        self.mask = mask
        self.available = available
        if left.ndim == 1:
            left = np.column_stack([left, np.full((len(left), len(prices.resources) - 1), np.inf)])
        self.remaining = left
        self.risk_weight = risk_weight
        self.ids = np.arange(len(rows)) if ids is None else ids
        self.pending: np.ndarray | None = None  # (n, M) ordered and paid, not known yet; None = nothing
        self.waiting: np.ndarray | None = None  # (n, M) time until what is pending is back; None = nothing
        self.until: np.ndarray | None = None  # (n,) time until a deadline; None = there is none
        self._whole: tuple[Acquisition, np.ndarray] | None = None  # the state that this one is part of, and the rows
        self._priced: tuple[np.ndarray, np.ndarray | None, np.ndarray] | None = None  # amounts of a mask and of pending
        self._belief: Belief | None = None
        self._outdated = np.ones(len(rows), dtype=bool)

    def copy(self) -> Acquisition:
        """An independent copy, for undo."""
        other = copy.copy(self)
        other.available, other._outdated = self.available.copy(), self._outdated.copy()
        return other  # `receive` replaces the other arrays and never writes into them

    @property
    def left(self) -> np.ndarray:
        """(n,) money left; a policy that plans with the budget reads this."""
        return self.remaining[:, 0]

    @left.setter
    def left(self, money: np.ndarray) -> None:
        self.remaining = np.column_stack([money, self.remaining[:, 1:]])

    @property
    def purses(self) -> list[tuple[Prices, np.ndarray]]:
        """Each resource as prices of its own, with (n,) what is left of it, money first."""
        return [(part, self.remaining[:, k]) for k, part in enumerate(self.prices.parts)]

    @property
    def weighed_now(self) -> np.ndarray:
        """(n, M) what gains are divided by: money now, plus the weight of other resources times what they take now."""
        now = self.amounts_now
        return self.prices.weigh(now) if self.prices.weights else now[:, :, 0]

    @property
    def amounts_now(self) -> np.ndarray:
        """(n, M, R) what each feature takes of each resource now; computed once per state.

        What is out has paid the set-up, and itself.
        """
        if self._priced is None or self._priced[0] is not self.mask or self._priced[1] is not self.pending:
            now = np.empty((self.remaining.shape[1], *self.mask.shape))  # each resource is one block
            for k, prices in enumerate(self.prices.parts if len(now) > 1 else [self.prices]):
                if self.pending is None:
                    now[k] = prices.now(self.mask)
                else:
                    over = self.prices.resources[k] != TIME  # a set-up that is not over saves no time yet
                    now[k] = np.where(self.pending, 0.0, prices.now(self.mask | self.pending if over else self.mask))
            now.flags.writeable = False
            self._priced = self.mask, self.pending, now.transpose(1, 2, 0)
        return self._priced[2]

    @property
    def prices_now(self) -> np.ndarray:
        """(n, M) what each feature costs now, in money."""
        return self.amounts_now[:, :, 0]

    @property
    def complete(self) -> np.ndarray:
        """(n,) whether everything available is known."""
        return np.asarray((self.mask | ~self.available).all(axis=1))

    @property
    def belief(self) -> Belief:
        """The belief about all cases."""
        return self.belief_of(np.ones(len(self.rows), dtype=bool))

    def belief_of(self, rows: np.ndarray) -> Belief:
        """The belief about the cases that `rows` (n,) bool marks; computed once per state and shared."""
        if self._whole is not None:
            whole, at = self._whole
            wanted = np.zeros(len(whole.rows), dtype=bool)
            wanted[at[rows]] = True
            return whole.belief_of(wanted)
        new = rows & self._outdated
        if self._belief is None:
            new = self._outdated
            self._belief = self.beliefs.believe(self.rows)
        elif new.all():
            self._belief = self.beliefs.believe(self.rows, previous=self._belief)
        elif new.any():
            found = self.beliefs.believe(self.rows.take(new), previous=self._belief.take(new))
            self._belief = self._belief.put(new, found)
        self._outdated = self._outdated & ~new
        complete = (self.mask | ~self.available).all(axis=1) & ~self._outdated
        if complete.any():
            self._belief = self.beliefs.completed(self._belief, self.rows, complete)
        return self._belief if rows.all() else self._belief.take(rows)

    def take(self, rows: Any) -> Acquisition:
        """A separate state of some of the cases, by position or by a boolean mask."""
        taken = Acquisition(
            self.schema,
            self.prices,
            self.beliefs,
            self.rows.take(rows),
            self.mask[rows],
            self.available[rows],
            self.remaining[rows],
            risk_weight=self.risk_weight,
            ids=self.ids[rows],
        )
        taken.pending = None if self.pending is None else self.pending[rows]
        taken.waiting = None if self.waiting is None else self.waiting[rows]
        taken.until = None if self.until is None else self.until[rows]
        return taken

    def part(self, rows: np.ndarray) -> Acquisition:
        """The cases that `rows` (n,) bool marks, to be scored; their belief is shared with this state."""
        part = self.take(rows)
        part._whole = (self, np.flatnonzero(rows))
        return part

    def buyable(self) -> np.ndarray:
        """(n, M) features not yet known that are available, affordable, and can still matter to the predictor."""
        open_, rules = self._open(), self.schema.rules
        return open_ if rules is None else rules.allowed(open_, self.mask, self.rows.values, self.pending)

    def _open(self) -> np.ndarray:
        """(n, M) what `buyable` features would be without rules of the house."""
        within = self.within()
        matters = self.schema.any_column(self.beliefs.predictor.open_columns(self.rows))
        if self.schema.rules is not None:
            matters = matters | self.schema.rules.leading
        if self.pending is not None:
            matters = matters & ~self.pending
        return ~self.mask & self.available & within & matters

    def within(self) -> np.ndarray:
        """(n, M) features that what is left of every resource pays for, and whose results are back by the deadline."""
        now = self.amounts_now
        found = np.asarray(affordable(now, self.remaining[:, None])).all(axis=2)
        if self.until is not None:
            hours = now[:, :, self.prices.resources.index(TIME)] if self.prices.time is not None else 0.0
            found = found & affordable(hours, self.until[:, None])
        return np.asarray(found)

    def order(self, feature: int, hours: float | None = None) -> np.ndarray:
        """Pay for a feature of the one case now, whose value comes later by `receive`; returns (R,) what it takes.

        Time passes once the result is back, so that results that are out together take the longest. `hours` is how long
        it takes, None = as in the prices.
        """
        paid = self.amounts_now[0, feature].copy()
        wanted = np.zeros_like(self.mask)
        wanted[0, feature] = True
        charged = paid.copy()
        if self.prices.time is not None:
            k = self.prices.resources.index(TIME)
            paid[k] = paid[k] if hours is None else hours
            charged[k] = 0.0
            self.waiting = np.where(wanted, paid[k], 0.0 if self.waiting is None else self.waiting)
        self.pending = wanted if self.pending is None else self.pending | wanted
        self.remaining = np.maximum(self.remaining - charged, 0.0)
        return paid

    def barred(self) -> np.ndarray:
        """(n, M) unknown, available features that the rules of the house do not let come next."""
        unknown = ~self.mask & self.available
        if self.schema.rules is None:
            return np.zeros_like(unknown)
        return np.asarray(unknown & ~self.schema.rules.allowed(unknown, self.mask, self.rows.values))

    def required(self, buyable: np.ndarray) -> np.ndarray:
        """(n, M) which of the `buyable` features are acquired before any rule stops the case.

        Those that are free; and all, where something mandatory is still to come, because nothing else is buyable then.
        """
        free = buyable & (self.weighed_now == 0)
        if self.schema.rules is None or not self.schema.rules.must.any():
            return free
        obliged = self.schema.rules.obliged(self._open(), self.mask, self.rows.values)
        return free | (buyable & obliged[:, None])

    def followers(self, r: int, first: np.ndarray) -> np.ndarray:
        """(A, M) what the rules of the house let come after each of the features `first` (A,) in case `r`."""
        had = np.repeat(self.mask[[r]], len(first), axis=0)
        had[np.arange(len(first)), first] = True
        rules, open_ = self.schema.rules, ~had & self._open()[r]
        return (
            open_ if rules is None else rules.allowed(open_, had, np.repeat(self.rows.values[[r]], len(first), axis=0))
        )

    def choose(self, policy: Policy, buyable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The next feature of each row, (n,), -1 where nothing is buyable; and the scores, (n, M).

        Features that are free come first, then the highest score, ties to the lowest index; -inf is never acquired.
        """
        ranked, scores = self.ranked(policy, buyable)
        if self.schema.rules is not None:  # what is mandatory is also asked where the policy would rather not
            ranked = np.where(self.required(buyable) & np.isneginf(ranked), np.finfo(float).min, ranked)
        choice = ranked.argmax(axis=1)
        choice[np.isneginf(ranked.max(axis=1))] = -1
        return choice, scores

    def ranked(self, policy: Policy, buyable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scores of the `buyable` features, (n, M), inf for what is free and -inf for others; and as they are."""
        scores = np.full(self.mask.shape, -np.inf)
        buying = np.any(buyable, axis=1)
        if buying.any():
            scores[buying] = checked_scores(policy, self if buying.all() else self.part(buying))
        scores = np.where(buyable, scores, -np.inf)
        return np.where(buyable & (self.weighed_now == 0), np.inf, scores), scores

    def next_features(self, policy: Policy, buyable: np.ndarray) -> np.ndarray:
        """`choose` without the scores, (n,): they are only computed where there is something to choose between."""
        free = buyable & (self.weighed_now == 0)
        n_buyable, has_free = buyable.sum(axis=1), free.any(axis=1)
        choice = np.where(has_free[:, None], free, buyable).argmax(axis=1)
        choice[n_buyable == 0] = -1
        open_ = ~has_free & (n_buyable > (1 if policy.never_declines else 0))
        if open_.any():
            state = self if open_.all() else self.part(open_)
            choice[open_] = state.choose(policy, buyable[open_])[0]
        return choice

    def receive(self, features: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Acquire ``features[r]`` (-1 = nothing), whose cells are in `cells` (n, D); returns (n, R) what is paid."""
        rows = np.flatnonzero(features >= 0)
        paid = np.zeros(self.remaining.shape)
        paid[rows] = self.amounts_now[rows, features[rows]]
        if self.waiting is not None:  # time passes until a result is back, for all that is out
            time = self.prices.resources.index(TIME)
            paid[rows, time] += self.waiting[rows, features[rows]]
            self.waiting = np.maximum(self.waiting - paid[:, [time]], 0.0)
        self.remaining = np.maximum(self.remaining - paid, 0.0)
        mask = self.mask.copy()
        mask[rows, features[rows]] = True
        self.reveal(mask, cells)
        return paid

    def reveal(self, mask: np.ndarray, cells: np.ndarray) -> None:
        """Learn the features of `mask` (n, M) without paying for them; their cells are in `cells` (n, D)."""
        new = mask & ~self.mask
        self.rows = self.rows.with_values(np.where(self.schema.expand(new), cells, self.rows.values))
        self.mask = self.mask | mask
        if self.pending is not None:
            still = self.pending & ~self.mask
            self.pending = still if still.any() else None
        self._outdated = self._outdated | new.any(axis=1)


def checked_scores(policy: Policy, state: Acquisition) -> np.ndarray:
    """`policy.scores`, with its shape checked and NaN refused.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import checked_scores, nothing_known
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> beliefs, schema, prices = selector.beliefs_, selector.schema_, selector.prices_
    >>> truth = schema.encode(X[:2])
    >>> state = nothing_known(schema, prices, beliefs, truth)
    >>> checked_scores(selector.policy_, state).shape
    (2, 4)
    """
    scores = np.asarray(policy.scores(state), dtype=float)
    if scores.shape != state.mask.shape or np.isnan(scores).any():
        problem = "NaN" if scores.shape == state.mask.shape else f"shape {scores.shape}"
        raise AskwiseError(
            f"{type(policy).__name__}.scores must return numbers of shape {state.mask.shape} (rows, features); "
            f"got {problem}."
        )
    return scores


def purchases(
    state: Acquisition, truth: np.ndarray, policy: Policy, stop: Stopping | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Acquire until every row is finished; yields (features, what is paid (n, R)) after each step, -1 = no feature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import nothing_known, purchases
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> beliefs, schema, prices = selector.beliefs_, selector.schema_, selector.prices_
    >>> truth = schema.encode(X[:2])
    >>> state = nothing_known(schema, prices, beliefs, truth)
    >>> state.left[:] = 2
    >>> for features, prices_paid in purchases(state, truth.values, selector.policy_):
    ...     print(features.shape, prices_paid.tolist())
    (2,) [[1.0], [1.0]]
    (2,) [[1.0], [1.0]]
    """
    done = np.zeros(len(state.mask), dtype=bool)
    while True:
        buyable = state.buyable() & ~done[:, None]
        if stop is not None and not done.all():
            required = state.required(buyable).any(axis=1)
            going = ~done
            done[going] = stop.stops(state.part(going) if done.any() else state)
            done &= ~(going & required)
            buyable &= ~done[:, None]
        if not buyable.any():
            return
        choice = state.next_features(policy, buyable)
        done |= choice < 0
        if done.all():
            return
        yield choice, state.receive(choice, truth)


def steps(
    state: Acquisition, truth: np.ndarray, policy: Policy, stop: Stopping | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray, Assessment]]:
    """`purchases` with what is said after each: yields (features, what is paid, assessment), first the start.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import nothing_known, steps
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> beliefs, schema, prices = selector.beliefs_, selector.schema_, selector.prices_
    >>> truth = schema.encode(X[:2])
    >>> state = nothing_known(schema, prices, beliefs, truth)
    >>> state.left[:] = 1
    >>> for features, prices_paid, said in steps(state, truth.values, selector.policy_):
    ...     print(prices_paid.tolist(), said.proba.shape)
    [[0.0], [0.0]] (2, 3)
    [[1.0], [1.0]] (2, 3)
    """
    n = len(state.mask)
    found = state.beliefs.assess(state.belief, state.rows)
    yield np.full(n, -1), np.zeros_like(state.remaining), found
    for choice, paid in purchases(state, truth, policy, stop):
        bought = choice >= 0
        found = found.replaced(bought, state.beliefs.assess(state.belief_of(bought), state.rows.take(bought)))
        yield choice, paid, found


def run_episodes(
    state: Acquisition,
    truth: np.ndarray,
    policy: Policy,
    stop: Stopping | None = None,
    progress: bool | str = False,
) -> Trajectory:
    """Acquire features for all rows until budget or features run out or the stopping rule is met.

    `truth` (n, D) holds the cells that a purchase reveals; the policy only sees what is in `state`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import nothing_known, run_episodes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> beliefs, schema, prices = selector.beliefs_, selector.schema_, selector.prices_
    >>> truth = schema.encode(X[:2])
    >>> state = nothing_known(schema, prices, beliefs, truth)
    >>> state.left[:] = 2
    >>> run_episodes(state, truth.values, selector.policy_)
    <Trajectory: 2 cases, up to 2 purchases; to_frame() has a row per step>
    """
    start = state.mask.copy()
    most_steps = int((~start).sum(axis=1).max(initial=0)) + 1
    reads_belief = policy.reads_belief or stop is not None
    buying: Any = steps(state, truth, policy, stop) if reads_belief else purchases(state, truth, policy)
    done = list(track(buying, "acquiring", most_steps, progress))
    n, bought = len(start), done[1:] if reads_belief else done
    order = np.stack([step[0] for step in bought], axis=1) if bought else np.empty((n, 0), dtype=int)
    paid = np.stack([step[1] for step in bought], axis=1) if bought else np.empty((n, 0, len(state.prices.resources)))
    said: Assessments
    if reads_belief:
        said = Recorded([step[2] for step in done])
    else:
        said = OnRequest(state.beliefs, state.schema, state.rows, state.available, start, order)
    return Trajectory(
        order=order,
        costs=np.ascontiguousarray(paid[:, :, 0]),
        further={name: np.ascontiguousarray(paid[:, :, k]) for k, name in enumerate(state.prices.resources) if k},
        said=said,
        start=start,
        features=list(state.schema.features),
        classes=state.beliefs.predictor.classes_,
    )


class RunMemory:
    """The last runs of cases, so that several questions about the same cases share one.

    A run is recognized by the content of its rows and of all that it was made with, the wrapped model included: a model
    that was trained again in place, or an array that was altered, is another one. What has no content to compare, such
    as a model around a lambda or an open connection, runs every time; what a function reads besides its arguments is
    not seen. Runs are kept in memory only: not in a saved folder, a pickle or a copy.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import RunMemory, nothing_known, run_episodes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> beliefs, schema, prices = selector.beliefs_, selector.schema_, selector.prices_
    >>> truth, memory = schema.encode(X[:2]), RunMemory()
    >>> def run():
    ...     state = nothing_known(schema, prices, beliefs, truth)
    ...     return run_episodes(state, truth.values, selector.policy_)
    >>> made_with = (selector.policy_, beliefs, prices)
    >>> memory.run(truth, made_with, np.inf, run) is memory.run(truth, made_with, np.inf, run)
    True
    """

    MOST_RUNS = 4
    MOST_NUMBERS = 4_000_000
    """Probabilities in a run that is kept: of larger ones, none is."""

    def __init__(self) -> None:
        self._kept: list[tuple[tuple[bytes, str], np.ndarray, Trajectory]] = []

    def __reduce__(self) -> Any:
        return RunMemory, ()

    def run(
        self,
        truth: EncodedRows,
        made_with: Sequence[Any],
        budget: np.ndarray,
        run: Callable[[], Trajectory],
        or_longer: bool = False,
    ) -> Trajectory:
        """What `run` returns, or returned when it was last asked for the same.

        Parameters
        ----------
        truth
            The encoded cases.
        made_with
            All that decides what happens to them, besides the budget.
        budget
            (R,) the limit of each resource.
        or_longer
            Whether a run with more money will do: where money only decides how far it goes.
        """
        rows, made = _content(truth), _digest(made_with)
        for known, limit, kept in reversed(self._kept):
            if known == (rows, made) and (np.all(limit >= budget) if or_longer else np.all(limit == budget)):
                return kept
        found = run()
        made = _digest(made_with)  # again: a policy may keep a record of its own
        if made is not None and len(found.order) * (found.n_steps + 1) * len(found.classes) <= self.MOST_NUMBERS:
            self._kept = [*self._kept[1 - self.MOST_RUNS :], ((rows, made), budget, found)]
        return found


def _content(rows: EncodedRows) -> bytes:
    """What tells these rows from others, in their order."""
    shape = repr((rows.values.shape, sorted(rows.unseen.items()))).encode()
    return blake2b(np.ascontiguousarray(rows.values).tobytes() + shape).digest()


def _digest(parts: Sequence[Any]) -> str | None:
    """What tells these objects from others, by all that they hold; None where that cannot be read.

    Equal objects may have different digests, which costs a run; different ones never have the same.
    """
    content = blake2b()

    def add(array: pickle.PickleBuffer) -> None:
        content.update(array.raw())  # not copied; its shape and type are in what is pickled

    try:
        content.update(pickle.dumps(tuple(parts), protocol=5, buffer_callback=add))
    except Exception:  # what objects of users raise that cannot be pickled is theirs
        return None
    return content.hexdigest()


class PolicyMasks:
    """Draws the subsets that a policy visits: it acquires a random number of features for each row (Eq. 4).

    Parameters
    ----------
    policy
        A fitted policy.
    schema, prices, beliefs
        As in `Acquisition`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import numpy as np
    >>> from askwise.acquisition import PolicyMasks
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> masks = PolicyMasks(selector.policy_, selector.schema_, selector.prices_, selector.beliefs_)
    >>> masks(X[:3], np.random.default_rng(0)).shape
    (3, 4)
    """

    def __init__(self, policy: Policy, schema: Schema, prices: Prices, beliefs: BeliefModel) -> None:
        self.policy = policy
        self.schema = schema
        self.prices = prices
        self.beliefs = beliefs

    def __call__(self, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n, D) encoded rows -> mask per column."""
        state = nothing_known(self.schema, self.prices, self.beliefs, EncodedRows(values))
        n_features = len(self.schema.features)
        for left in rng.integers(0, n_features, size=len(values)) - np.arange(n_features)[:, None]:
            choice, _ = state.choose(self.policy, state.buyable() & (left > 0)[:, None])
            state.receive(choice, values)
        return state.rows.observed


def nothing_known(
    schema: Schema,
    prices: Prices,
    beliefs: BeliefModel,
    truth: EncodedRows,
    *,
    risk_weight: float = 0.0,
    ids: np.ndarray | None = None,
) -> Acquisition:
    """Cases of which nothing is known, with an unlimited budget; the features present in `truth` are available.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.acquisition import nothing_known
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, calibration=None, random_state=0).fit(X, y)
    >>> beliefs, schema, prices = selector.beliefs_, selector.schema_, selector.prices_
    >>> truth = schema.encode(X[:2])
    >>> state = nothing_known(schema, prices, beliefs, truth)
    >>> state.mask.any(axis=1).tolist(), state.left.tolist()
    ([False, False], [inf, inf])
    """
    n = len(truth)
    return Acquisition(
        schema,
        prices,
        beliefs,
        rows=truth.with_values(np.full_like(truth.values, np.nan)),
        mask=np.zeros((n, len(schema.features)), dtype=bool),
        available=schema.any_column(truth.observed),
        left=np.full(n, np.inf),
        risk_weight=risk_weight,
        ids=ids,
    )
