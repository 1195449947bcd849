"""A torch module runs on a private copy: the user's own is not touched, whoever uses it at the same time."""

import copy
import pickle
import threading
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from torch import nn

from askwise import DynamicFeatureSelector, InvalidInput, wrap
from askwise.epistemic import AuxiliaryEnsemble, BeliefModel, MCDropout
from askwise.model.final_layer import final_layer
from askwise.model.modules import FrozenModule
from askwise.predict import ImputedPredictor, ReparametrizedPredictor
from askwise.table.rows import EncodedRows

X = np.random.default_rng(0).normal(size=(90, 4))
Y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.7])
MASK = np.random.default_rng(5).random(X.shape) < 0.5


def module(*last, n_outputs=3) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, n_outputs), *last
        )


def members_of(estimator, predictor, rows):
    """(k, n, C) answers of the members of `estimator` around `predictor`."""
    return BeliefModel(predictor, estimator.fit(predictor)).believe(EncodedRows(rows)).members


def tensor(rows):
    return torch.as_tensor(rows, dtype=torch.float32)


def own_answers(net, rows=X):
    with torch.no_grad():
        return copy.deepcopy(net).eval()(tensor(rows)).double().numpy()


def state_of(net):
    return {
        "modes": [part.training for part in net.modules()],
        "hooks": [(len(part._forward_hooks), len(part._forward_pre_hooks)) for part in net.modules()],
        "state": {name: tensor.clone() for name, tensor in net.state_dict().items()},
        "gradients": [parameter.grad for parameter in net.parameters()],
        "trainable": [parameter.requires_grad for parameter in net.parameters()],
    }


def assert_untouched(net, before):
    now = state_of(net)
    states = now.pop("state"), before.pop("state")
    assert now == before
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())


def test_threads_do_not_disturb_each_other_or_the_users_module():
    """Plain calls, members under dropout and a low-rank adaptation at once, on one selector."""
    net = module().eval()
    selector = DynamicFeatureSelector(net, epistemic=MCDropout(5, random_state=0), random_state=0).fit(X, Y)
    adapted = ReparametrizedPredictor(net, "low-rank", epochs=2, random_state=0).fit(X, Y)
    adapted.kept_ = np.ones(5, dtype=bool)
    rows = tensor(X[:20])
    shown = np.where(MASK[:20], X[:20], np.nan)
    asked = {
        "plain": lambda: net(rows).detach().numpy(),
        "members": lambda: selector.uncertainty(shown).epistemic,
        "adapted": lambda: adapted.predict_proba(X[:20], MASK[:20]),
        "layer": lambda: final_layer(adapted.model_, EncodedRows(X[:20])).features(EncodedRows(X[:20])),
        "model": lambda: selector.predict_proba(X[:20]),
    }
    expected = {name: ask() for name, ask in asked.items()}
    before = state_of(net)
    wrong, start = [], threading.Barrier(2 * len(asked))

    def keep_asking(name):
        start.wait()
        for _ in range(8):
            try:
                if not np.array_equal(asked[name](), expected[name]):
                    wrong.append(name)
            except Exception as error:
                wrong.append((name, error))

    threads = [threading.Thread(target=keep_asking, args=(name,)) for name in [*asked, *asked]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert_untouched(net, before)


def test_a_module_in_training_mode_stays_there_also_while_it_is_asked():
    seen = []

    class Watching(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = module()

        def forward(self, rows):
            seen.append((self.training, net.training, [len(part._forward_hooks) for part in net.modules()]))
            return self.layers(rows)

    net = Watching().train()
    before = state_of(net)
    predictor = ImputedPredictor(net).fit(X, Y)
    members_of(MCDropout(3, random_state=0), predictor, np.where(MASK, X, np.nan))
    for kind in ("last-layer", "low-rank"):
        ReparametrizedPredictor(net, kind, epochs=1, random_state=0).fit(X, Y).predict_proba(X, MASK)
    assert {(own, users) for own, users, _ in seen} == {(False, True)}
    assert not any(sum(hooks) for _, _, hooks in seen)
    assert_untouched(net, before)


def test_further_training_and_conversion_of_the_module_are_seen():
    net = module()
    box = wrap(net, [0, 1, 2])
    first = box.predict_proba(X)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    nn.functional.cross_entropy(net(tensor(X)), torch.as_tensor(Y)).backward()  # moves running statistics too
    optimizer.step()
    assert np.abs(box.predict_proba(X) - first).max() > 1e-3
    assert_allclose(box.predict_proba(X), softmax(own_answers(net), axis=1), rtol=0, atol=1e-6)
    net.double()  # puts other tensors in the place of its own
    with torch.no_grad():
        net[0].weight *= 2
        expected = torch.softmax(copy.deepcopy(net).eval()(torch.as_tensor(X)), dim=1)
    assert_allclose(box.predict_proba(X), expected.numpy(), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning", "ignore:.*jit.*:DeprecationWarning")
def test_modules_that_are_hard_to_copy():
    """Weights that are computed before each pass, TorchScript, modules in plain lists, tied weights."""

    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.drop, self.last = nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 3)
            self.last.weight = nn.Parameter(self.first.weight[:3].detach())
            self.order = [self.first, self.drop, self.last]

        def forward(self, rows):
            for part in self.order:
                rows = part(rows)
            return rows

    normed = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 3)))
    normed(tensor(X))  # leaves a tensor that belongs to a graph
    parametrized = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    scripted = torch.jit.script(module())
    for net in (normed, parametrized, Listed(), scripted):
        modes = [part.training for part in net.modules()]
        box = wrap(net, [0, 1, 2])
        box.predict_proba(X)
        with torch.no_grad():
            next(net.parameters()).mul_(2)
            quiet = net.eval()(tensor(X)).double().numpy()
            net.train()
        assert_allclose(box.predict_proba(X), softmax(quiet, axis=1), rtol=0, atol=1e-6)
        assert [part.training for part in net.modules()] == modes


def test_a_module_that_cannot_be_copied_is_refused_with_advice():
    net = module()
    net.lock = threading.Lock()
    with pytest.raises(InvalidInput, match=r"Sequential cannot be copied.*askwise.wrap\(function, classes\)"):
        wrap(net, [0, 1, 2]).predict_proba(X)


def test_a_failing_pass_leaves_nothing_behind():
    net = module().train()
    box = wrap(net, [0, 1, 2])
    before, expected = state_of(net), box.predict_proba(X)
    with pytest.raises(RuntimeError):
        box.frozen_module.logits(np.zeros((2, 7)), lambda name, part, given, output: 0 * output)
    assert_untouched(net, before)
    assert_array_equal(box.predict_proba(X), expected)


# What a module returns


def test_a_module_that_ends_in_softmax_gives_probabilities_and_it_is_said_once():
    net = module(nn.Softmax(dim=1))
    with pytest.warns(UserWarning, match='returns probabilities, not logits.*outputs="logits"') as said:
        selector = DynamicFeatureSelector(net, random_state=0).fit(X, Y)
    assert len([one for one in said if "not logits" in str(one.message)]) == 1
    expected = own_answers(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(selector.predict_proba(X), expected, rtol=0, atol=1e-6)
        again = pickle.loads(pickle.dumps(selector.estimator_))  # what was decided is kept
        assert_allclose(again.predict_proba(X[:1]), expected[:1], rtol=0, atol=1e-6)
        for kind in ("last-layer", "low-rank"):
            untrained = ReparametrizedPredictor(selector.estimator_, kind, epochs=0, random_state=0).fit(X, Y)
            untrained.kept_ = np.ones(5, dtype=bool)
            assert_allclose(untrained.predict_proba(X), expected, rtol=0, atol=1e-5)


def test_log_probabilities_are_logits_and_the_user_may_say_what_they_are():
    log = module(nn.LogSoftmax(dim=1))
    net = module(nn.Softmax(dim=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(wrap(log, [0, 1, 2]).predict_proba(X), np.exp(own_answers(log)), rtol=0, atol=1e-6)
        given = own_answers(net)
        told = wrap(net, [0, 1, 2], outputs="probabilities").predict_proba(X)
        assert_allclose(told, given, rtol=0, atol=1e-6)
        taken = wrap(net, [0, 1, 2], outputs="logits").predict_proba(X)
        assert_allclose(taken, softmax(given, axis=1), rtol=0, atol=1e-6)
    with pytest.raises(InvalidInput, match="must return probabilities >= 0 that sum to one"):
        wrap(module(), [0, 1, 2], outputs="probabilities").predict_proba(X)


def test_what_a_module_returns_is_decided_by_the_training_rows_not_by_the_batch():
    """A first row whose logits look like a distribution decides nothing once the model is fitted."""

    class Passing(nn.Module):
        def forward(self, rows):
            return rows[:, :3]

    rows = np.vstack([[0.2, 0.3, 0.5, 0.0], X])
    box = wrap(Passing(), [0, 1, 2])
    predictor = ImputedPredictor(box).fit(X, Y)
    assert_allclose(predictor.predict_proba(rows[:1]), softmax(rows[:1, :3], axis=1), rtol=0, atol=1e-6)
    assert_allclose(predictor.predict_proba(rows)[0], softmax(rows[0, :3]), rtol=0, atol=1e-6)
    members = members_of(AuxiliaryEnsemble(estimators=[Passing()]), predictor, rows[:1])
    assert_allclose(members[0], softmax(rows[:1, :3], axis=1), atol=1e-6)


def test_one_logit_or_one_probability_per_row_is_that_of_the_second_class():
    y = (Y > 1).astype(int)
    flat = nn.Flatten(0)
    for last in ([], [flat]):
        net = module(*last, n_outputs=1)
        predictor = ImputedPredictor(net).fit(X, y)
        second = expit(own_answers(net).reshape(-1))
        assert_allclose(predictor.predict_proba(X), np.column_stack([1 - second, second]), rtol=0, atol=1e-6)
        dropped = members_of(MCDropout(3, random_state=0), predictor, np.where(MASK, X, np.nan))
        assert dropped.shape == (3, 90, 2)
        for kind in ("last-layer", "low-rank"):
            untrained = ReparametrizedPredictor(net, kind, epochs=0, random_state=0).fit(X, y)
            untrained.kept_ = np.ones(5, dtype=bool)
            assert_allclose(untrained.predict_proba(X), predictor.predict_proba(X), rtol=0, atol=1e-5)
    sure = module(nn.Sigmoid(), n_outputs=1)
    with pytest.warns(UserWarning, match="returns probabilities, not logits"):
        found = ImputedPredictor(sure).fit(X, y).predict_proba(X)
    assert_allclose(found[:, 1], own_answers(sure)[:, 0], rtol=0, atol=1e-6)
    with pytest.raises(InvalidInput, match=r"one logit per row for two classes; got \(90, 1\).*3 classes"):
        wrap(module(n_outputs=1), [0, 1, 2]).predict_proba(X)


def test_a_frozen_module_is_pickled_without_its_copy():
    frozen = FrozenModule(module(), 3)
    expected = frozen.proba(X)
    assert frozen.__getstate__()["_copied"] is None
    assert_array_equal(pickle.loads(pickle.dumps(frozen)).proba(X), expected)
