"""The Q-network: its parts by hand, what it learns on planted problems, and that numpy serves it."""

import functools
import sys
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import askwise
import askwise.policy.dqn
from askwise.epistemic import BeliefModel
from askwise.errors import AskwiseError, InvalidInput
from askwise.networks import ReplayBuffer, dueling, folded
from askwise.policy import DQN
from askwise.policy.base import PolicyContext
from askwise.policy.dqn import _Episode, _update
from askwise.predict import ImputedPredictor, wrap
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.value import HeldOutStates


def model(X):
    """Reads the second of three columns."""
    positive = np.where(np.nan_to_num(np.asarray(X, dtype=float))[:, 1] > 0, 0.9, 0.1)
    return np.column_stack([1 - positive, positive])


class Worth:
    """Held-out states in which each feature takes its worth off the discrepancy, whatever else is known."""

    def __init__(self, worth):
        self.worth = np.asarray(worth, dtype=float)

    def state(self, rows, mask, risk=True):
        return self.worth.sum() - mask @ self.worth, np.zeros(len(rows))


def problem(worth=(0.0, 1.0, 0.0), costs=None, shared=(), random_state=0, available=None, **changes) -> PolicyContext:
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(40, len(worth)))
    y = (X[:, 1] > 0).astype(int)
    predictor = ImputedPredictor(wrap(model, [0, 1])).fit(X, y)
    stub: Any = Worth(worth)
    parts: dict[str, Any] = {
        "rows": EncodedRows(X if available is None else np.where(available, X, np.nan)),
        "y": y,
        "schema": predictor.schema_,
        "prices": Prices(costs, shared).resolve(predictor.schema_.features),
        "beliefs": BeliefModel(predictor),
        "risk_weight": 0.0,
        "held_out": lambda: stub,
        "random_state": random_state,
        "progress": False,
    }
    return PolicyContext(**{**parts, **changes})


def learned() -> PolicyContext:
    """The real held-out states of a model that reads the second column alone."""
    made = problem()
    real = HeldOutStates(made.rows, made.y, made.schema, [made.beliefs])
    return problem(held_out=lambda: real)


@functools.cache
def fitted(preset="batched", **options):
    return DQN(preset, **{"n_episodes": 480, "hidden": 32, **dict(options)}).fit(learned())


def known(X, mask) -> Any:
    """Cases of which the cells in `mask` are known: all that the network looks at."""
    return SimpleNamespace(rows=EncodedRows(np.where(mask, X, np.nan)), mask=mask)


def nothing(n=1, m=3) -> Any:
    return known(np.zeros((n, m)), np.zeros((n, m), dtype=bool))


def half_known():
    X = np.random.default_rng(1).choice([-1.0, 1.0], size=(30, 3))
    return known(X, np.random.default_rng(2).random((30, 3)) < 0.5)


# What it learns


def test_what_informs_is_asked_first():
    paper: dict[str, Any] = {"preset": "paper", "n_episodes": 96}
    for options in ({}, {"reward": "area"}, paper, {"gamma": 0.9}, {"gamma": 0.0}):
        scores = fitted(**options).scores(nothing())
        assert scores.shape == (1, 3)
        assert scores[0].argmax() == 1, options


def test_scores_are_the_gain_that_is_expected():
    """The second column takes all discrepancy away, the others none, and there is nothing after it."""
    policy = DQN(n_episodes=1600, hidden=32, gamma=0.0).fit(problem(worth=[0.0, 1.0, 0.0]))
    assert_allclose(policy.scores(nothing())[0], [0, 1, 0], atol=0.2)


def test_later_gains_count_by_the_discount():
    """Wherever it begins, the episode ends with everything bought: Q = own gain + discounted best of the rest."""
    policy = DQN(n_episodes=1600, hidden=32, gamma=0.5).fit(problem(worth=[0.0, 1.0, 0.0]))
    assert_allclose(policy.scores(nothing())[0], [0.5, 1, 0.5], atol=0.2)


def test_of_two_equal_gains_the_cheaper_is_bought_first():
    policy = DQN(n_episodes=1600, hidden=32).fit(problem(worth=[1.0, 1.0, 0.0], costs=[5.0, 1.0, 1.0]))
    scores = policy.scores(nothing())[0]
    assert scores.argmax() == 1
    # 1/1 + 0.4 * 1/5 and 1/5 + 0.4 * 1
    assert_allclose(scores[:2], [0.6, 1.08], atol=0.2)


def test_what_was_had_is_never_scored():
    state = half_known()
    scores = fitted().scores(state)
    assert_array_equal(np.isneginf(scores), state.mask)
    assert np.isfinite(scores[~state.mask]).all()


def test_a_row_has_its_own_scores_and_nothing_is_changed():
    policy, state = fitted(), half_known()
    copies = state.rows.values.copy(), state.mask.copy()
    scores = policy.scores(state)
    assert_array_equal(state.rows.values, copies[0])
    assert_array_equal(state.mask, copies[1])
    for r in range(4):
        alone = policy.scores(known(state.rows.values[[r]], state.mask[[r]]))[0]
        assert_allclose(alone[~state.mask[r]], scores[r][~state.mask[r]], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("exploration", "greedy"), [(0.0, True), (1.0, False)])
def test_a_step_explores_as_often_as_it_is_told(exploration, greedy):
    made, policy = problem(), fitted()
    episode = _Episode(made, made.held_out(), np.arange(30) % len(made.rows), policy)

    def second(inputs):  # values the second feature most, whatever is known
        return torch.tensor([[0.0, 1.0, 0.0]]).repeat(len(inputs), 1)

    _, action, *_ = episode.step(second, exploration, np.random.default_rng(0))
    assert (len(set(action.tolist())) == 1) == greedy
    assert not greedy or action[0] == 1


# The reward


def test_every_episode_has_a_return_in_order():
    for n in (1, 64, 70):
        assert DQN(n_episodes=n, hidden=8).fit(problem()).returns_.shape == (n,)


def test_returns_are_gains_divided_by_the_price_paid():
    found = DQN(n_episodes=30, hidden=8).fit(problem(worth=[1.0, 2.0, 3.0], costs=[1.0, 2.0, 4.0])).returns_
    assert_allclose(found, np.full(30, 1 + 2 / 2 + 3 / 4))


def test_losses_are_multiplied_by_the_price_paid():
    found = DQN(n_episodes=30, hidden=8).fit(problem(worth=[1.0, -2.0, 0.0], costs=[2.0, 3.0, 1.0])).returns_
    assert_allclose(found, np.full(30, 1 / 2 - 2 * 3))


def test_the_price_paid_is_the_price_at_the_time():
    """The first of two tests pays for the needle, the second does not: 1/4 + 1/1 whichever comes first."""
    made = problem(worth=[1.0, 1.0, 0.0], costs=[4.0, 4.0, 1.0], shared=[([0, 1], 3.0)])
    assert_allclose(DQN(n_episodes=30, hidden=8).fit(made).returns_, np.full(30, 1 / 4 + 1))


def test_with_equal_prices_the_return_is_what_was_gained_in_all():
    """The paper's reward telescopes; that of the area pays an early gain again at every later step."""
    made = problem(worth=[0.0, 1.0, 0.0])
    assert_allclose(DQN(n_episodes=64, hidden=8).fit(made).returns_, np.ones(64))
    area = DQN(n_episodes=200, hidden=8, reward="area").fit(made).returns_
    assert set(area.round(9)) == {1.0, 2.0, 3.0}


def test_the_risk_weight_is_in_the_reward():
    class Risky(Worth):
        def state(self, rows, mask, risk=True):
            assert risk
            return np.zeros(len(rows)), 3.0 - mask.sum(axis=1)

    made = problem(risk_weight=0.5, held_out=lambda: Risky([0.0, 0.0, 0.0]))
    assert_allclose(DQN(n_episodes=10, hidden=8).fit(made).returns_, np.full(10, 1.5))


def test_without_a_risk_weight_members_are_not_asked():
    class Careless(Worth):
        def state(self, rows, mask, risk=True):
            assert not risk
            return super().state(rows, mask, risk)

    DQN(n_episodes=10, hidden=8).fit(problem(held_out=lambda: Careless([0.0, 1.0, 0.0])))


def test_features_that_a_row_lacks_are_not_bought():
    available = np.ones((40, 3), dtype=bool)
    available[:20, 2] = False
    available[20:30] = False
    found = DQN(n_episodes=60, hidden=8).fit(problem(worth=[1.0, 1.0, 50.0], available=available)).returns_
    assert set(found.round(9)) == {2.0, 0.0, 52.0}


# Learning at all


def counted_updates(monkeypatch):
    batches = []

    def spy(online, target, optimizer, batch, gamma):
        batches.append((len(batch[0]), gamma))
        return _update(online, target, optimizer, batch, gamma)

    monkeypatch.setattr(askwise.policy.dqn, "_update", spy)
    return batches


def test_presets_have_their_own_schedule(monkeypatch):
    updates = counted_updates(monkeypatch)
    DQN("paper", n_episodes=64, hidden=8).fit(problem())
    assert set(updates) == {(32, 0.99)}
    assert len(updates) == 2 * 3 * 32  # one for every step of every episode
    updates.clear()
    DQN("batched", n_episodes=640, hidden=8, gamma=0.7).fit(problem())
    assert updates[-1] == (256, 0.7)
    assert 40 <= len(updates) <= 60  # two for every round of purchases


def test_a_small_memory_or_a_few_episodes_still_teach(monkeypatch):
    """A network that was never updated would be random weights, sold as a policy."""
    updates = counted_updates(monkeypatch)
    for n_episodes, buffer_size in ((640, 100), (20, 10_000)):
        updates.clear()
        DQN(hidden=8, n_episodes=n_episodes, buffer_size=buffer_size).fit(problem())
        assert updates, n_episodes


def test_same_seed_same_scores_whatever_others_draw():
    before = torch.random.get_rng_state()
    numpy_before = joblib.hash(np.random.get_state())  # noqa: NPY002
    runs = []
    for elsewhere, seed in ((98, 0), (99, 0), (99, 1)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(elsewhere)
            policy = DQN(n_episodes=320, hidden=8).fit(problem(random_state=seed))
        runs.append((policy.scores(half_known()), policy.returns_))
    assert_array_equal(runs[0][0], runs[1][0])
    assert_array_equal(runs[0][1], runs[1][1])
    assert not np.array_equal(runs[0][0], runs[2][0])
    assert torch.equal(torch.random.get_rng_state(), before)
    assert joblib.hash(np.random.get_state()) == numpy_before  # noqa: NPY002


def test_fitting_adds_what_is_learned_and_keeps_the_parameters():
    mine = DQN("paper", n_episodes=2, gamma=0.5, hidden=8, buffer_size=50, reward="area")
    before = dict(vars(mine))
    assert mine.fit(problem()) is mine
    assert mine.get_params() == before
    assert set(vars(mine)) - set(before) == {"coder_", "layers_", "returns_"}


# The parts


def test_folded_layers_give_what_the_network_gives():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = dueling([7, 16, 16], 5).double()
    inputs = np.random.default_rng(0).normal(size=(50, 7))
    with torch.no_grad():
        expected = network(torch.as_tensor(inputs)).numpy()
    assert_allclose(folded(network)(inputs), expected, rtol=0, atol=1e-12)
    assert len(folded(network).weights) == 3


def test_value_and_advantage_are_told_apart_by_the_mean():
    """Dueling: the mean over features is the value of the state."""
    network = dueling([4, 8, 8], 3)
    inputs = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = network(inputs)
        seen = torch.relu(network.body[1](torch.relu(network.body[0](inputs))))
        value = network.value(seen)[:, 0]
    assert_allclose(found.mean(dim=1).numpy(), value.numpy(), atol=1e-6)


def transitions(numbers):
    """One transition per number, recognizable in every part."""
    numbers = np.asarray(numbers, dtype=float)
    return (
        np.column_stack([numbers, numbers]),
        numbers.astype(int),
        numbers / 2,
        np.column_stack([-numbers, -numbers]),
        np.column_stack([numbers % 2 == 0] * 3),
    )


def test_the_ring_keeps_the_last_transitions():
    ring = ReplayBuffer(5)
    ring.add(*transitions([0, 1, 2]))
    assert (ring.size, ring.next) == (3, 3)
    ring.add(*transitions([3, 4, 5, 6]))
    assert (ring.size, ring.next) == (5, 2)
    assert ring.parts[1].tolist() == [5, 6, 2, 3, 4]
    ring.add(*transitions([]))
    assert (ring.size, ring.next) == (5, 2)
    for r in range(5):
        expected = transitions([ring.parts[1][r]])
        for part, want in zip(ring.parts, expected, strict=True):
            assert_array_equal(part[r], want[0])


def test_more_transitions_than_the_ring_holds_leave_the_last_ones():
    ring = ReplayBuffer(4)
    ring.add(*transitions(range(11)))
    assert ring.size == 4
    assert sorted(ring.parts[1].tolist()) == [7, 8, 9, 10]
    ring.add(*transitions([11]))
    assert sorted(ring.parts[1].tolist()) == [8, 9, 10, 11]


def test_the_ring_draws_only_what_was_put_in():
    ring = ReplayBuffer(100)
    ring.add(*transitions([3, 4]))
    inputs, action, reward, later, buyable = ring.draw(50, np.random.default_rng(0))
    assert set(action.tolist()) == {3, 4}
    assert_array_equal(inputs[:, 0].numpy(), action.numpy())
    assert_array_equal(reward.numpy(), action.numpy() / 2)
    assert_array_equal(later[:, 1].numpy(), -action.numpy())
    assert_array_equal(buyable[:, 0].numpy(), action.numpy() % 2 == 0)
    assert action.dtype == torch.int64
    assert inputs.dtype == torch.float32


def table_network(q):
    """Q-values in a table: one state per row of `q`."""
    network = nn.Linear(len(q), len(q[0]), bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.tensor(q).T)
    return network


def one_update(online_q, target_q, state, action, reward, later, buyable, gamma):
    """The table after one step of gradient descent, and the step that Eq. 10 asks for."""
    online, target = table_network(online_q), table_network(target_q)
    states = torch.eye(len(online_q))
    batch = [
        states[[state]],
        torch.tensor([action]),
        torch.tensor([reward]),
        states[[later]],
        torch.tensor([buyable]),
    ]
    _update(online, target, torch.optim.SGD(online.parameters(), lr=1.0), batch, gamma)
    return online.weight.detach().T.numpy()


ONLINE = [[0.0, 0.0, 0.0], [0.3, 0.1, 0.9]]
TARGET = [[7.0, 7.0, 7.0], [0.2, 0.5, 0.8]]


def test_an_update_steps_towards_reward_and_the_best_that_can_be_bought_after():
    for buyable, expected in (
        ([False, False, False], 0.25),  # the end: nothing follows
        ([True, True, False], 0.25 + 0.5 * 0.2),  # best by the online network, valued by the target network
        ([False, True, False], 0.25 + 0.5 * 0.5),
        ([True, True, True], 0.25 + 0.5 * 0.8),
    ):
        found = one_update(ONLINE, TARGET, state=0, action=1, reward=0.25, later=1, buyable=buyable, gamma=0.5)
        after = np.array(ONLINE)
        after[0, 1] = expected  # a full step at rate 1, since the error is below 1
        assert_allclose(found, after, atol=1e-6, err_msg=str(buyable))


def test_the_network_sees_the_observed_cells_and_the_mask():
    policy = DQN(n_episodes=1, hidden=8).fit(problem())
    assert_array_equal(policy.coder_(nothing().rows), np.zeros((1, 6)))
    seen = policy.coder_(EncodedRows(np.array([[np.nan, 1.0, np.nan]])))[0]
    assert_array_equal(seen[3:], [0, 1, 0])
    assert_array_equal(seen[[0, 2]], [0, 0])
    assert seen[1] > 0.5


# What is refused


def test_options_that_are_refused():
    """By `fit`, as everywhere in scikit-learn."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"preset": "fast"}, r"preset must be one of \('batched', 'paper'\).*got 'fast'"),
        ({"preset": None}, "preset must be one of"),
        ({"reward": "accuracy"}, '"gain" or "area".*\'accuracy\''),
        ({"reward": None}, '"gain" or "area"'),
        ({"n_episodes": 0}, "n_episodes must be a whole number of at least 1; got 0"),
        ({"n_episodes": 2.5}, "n_episodes must be a whole number of at least 1; got 2.5"),
        ({"buffer_size": 0}, "buffer_size must be a whole number of at least 1; got 0"),
        ({"hidden": "wide"}, "hidden must be a whole number of at least 1; got 'wide'"),
        ({"gamma": 1.5}, r"gamma must be a number in \[0, 1\]; got 1.5"),
        ({"gamma": "half"}, r"gamma must be a number in \[0, 1\]; got 'half'"),
    ]
    for options, message in cases:
        with pytest.raises(InvalidInput, match=message):
            DQN(**options).fit(problem())


def test_without_torch_it_says_what_to_use(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(AskwiseError, match=r'policy="rl".*askwise\[torch\].*policy="greedy"'):
        DQN().fit(problem())
