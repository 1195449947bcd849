"""The network trained under masks: it answers on every subset by itself, the wrapped model only on complete rows."""

import copy
import functools
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from askwise.acquisition import PolicyMasks
from askwise.epistemic import BeliefModel
from askwise.errors import AskwiseError, InvalidInput
from askwise.policy import Static
from askwise.predict import ImputedPredictor, MaskTrainedPredictor, wrap
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample

RELEVANCE = np.array([4.0, 3.0, 2.0, 1.0])


def planted(n=300, seed=0):
    """Two columns tell the label, two do not."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])]


def one_order(X):
    """Masks along one order of purchase."""
    predictor = ImputedPredictor(wrap(lambda X: np.tile([0.5, 0.5], (len(X), 1)), [0, 1])).fit(X, np.arange(len(X)) % 2)
    context: Any = SimpleNamespace(schema=predictor.schema_)  # all that a given ranking needs
    prices = Prices(None).resolve(predictor.schema_.features)
    return PolicyMasks(Static(RELEVANCE).fit(context), predictor.schema_, prices, BeliefModel(predictor))


MAKERS = {
    "random masks": lambda X: {},
    "masks of a policy": lambda X: {"masks": one_order(X)},
    "reparametrized": lambda X: {"reparametrized": True},
}


def network(**options):
    return MaskTrainedPredictor(
        LogisticRegression(), **{"width": 16, "epochs": 15, "learning_rate": 0.01, "random_state": 0, **options}
    )


@functools.cache
def fitted(name):
    X, y = planted()
    return network(**MAKERS[name](X)).fit(X, y)


@pytest.fixture(scope="module", params=MAKERS)
def predictor(request):
    return fitted(request.param)


def test_it_is_better_than_the_class_frequencies_on_new_rows(predictor):
    later, truth = planted(600, seed=1)
    mask = sample(600, 4, np.random.default_rng(2))
    frequencies = np.array([(truth == label).mean() for label in predictor.classes_])
    prior = log_loss(truth, np.tile(frequencies, (600, 1)), labels=predictor.classes_)
    loss = log_loss(truth, predictor.predict_proba(later, mask), labels=predictor.classes_)
    assert loss < prior - 0.15
    everything = log_loss(truth, predictor.predict_proba(later), labels=predictor.classes_)
    assert everything < loss - 0.2
    nothing = predictor.predict_proba(later[:1], np.zeros(4, dtype=bool))[0]
    assert_allclose(nothing, frequencies, atol=0.12)


def test_rows_are_distributions_and_hidden_cells_do_not_matter(predictor):
    X, _ = planted()
    mask = np.random.default_rng(3).random(X.shape) < 0.5
    proba = predictor.predict_proba(X, mask)
    assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-9)
    for filler in (1e6, np.nan):
        assert_array_equal(predictor.predict_proba(np.where(mask, X, filler), mask), proba)
    for r in range(5):
        assert_allclose(predictor.predict_proba(X[[r]], mask[[r]])[0], proba[r], rtol=0, atol=1e-12)


def test_the_full_prediction_is_the_wrapped_models(predictor):
    X, y = planted()
    assert_array_equal(predictor.predict_full(X), LogisticRegression().fit(X, y).predict_proba(X))
    assert np.abs(predictor.predict_full(X) - predictor.predict_proba(X)).max() > 0.01


def test_same_seed_same_numbers_whatever_others_draw(predictor):
    X, y = planted()
    before = torch.random.get_rng_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        again = predictor.__class__(**predictor.get_params(deep=False)).fit(X, y)
    mask = np.random.default_rng(3).random(X.shape) < 0.5
    assert_array_equal(again.predict_proba(X, mask), predictor.predict_proba(X, mask))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_settings_are_those_that_the_comparisons_state():
    made = MaskTrainedPredictor(LogisticRegression())
    settings = (made.width, made.epochs, made.batch_size, made.learning_rate, made.weight_decay, made.hidden)
    assert settings == (100, 100, 64, 1e-3, 1e-4, 64)


def test_another_seed_another_network():
    X, y = planted()
    one, other = (network(epochs=2, random_state=seed).fit(X, y) for seed in (0, 1))
    assert np.abs(one.predict_proba(X) - other.predict_proba(X)).max() > 1e-3


def test_masks_are_drawn_anew_in_each_epoch_of_what_is_there():
    X, y = planted(60)
    model = LogisticRegression().fit(X, y)
    X[::3, 1] = np.nan
    seen = []

    def draw(values, rng):
        assert_array_equal(values, X)
        seen.append(rng.random(values.shape) < 0.5)
        return seen[-1]

    predictor = MaskTrainedPredictor(model, masks=draw, epochs=3, width=8, random_state=0).fit(X, y)
    assert len(seen) >= 3
    assert not np.array_equal(seen[-1], seen[-2])
    assert np.isfinite(predictor.predict_proba(X)).all()


def test_a_policy_draws_the_beginnings_of_its_order():
    X, _ = planted()
    mask = one_order(X)(X, np.random.default_rng(0))
    assert_array_equal(np.sort(mask, axis=1)[:, ::-1], mask)  # the first so many columns, and no other
    sizes = np.bincount(mask.sum(axis=1), minlength=5)
    assert sizes[4] == 0
    assert (sizes[:4] > 45).all()


def test_trained_on_the_subsets_of_a_policy_it_is_best_there():
    """Of columns that the policy never reaches alone, nothing was learned alone."""
    later, truth = planted(600, seed=1)
    second_only = np.array([False, True, False, False])
    losses = {
        name: log_loss(truth, fitted(name).predict_proba(later, second_only), labels=fitted(name).classes_)
        for name in ("random masks", "masks of a policy")
    }
    assert losses["random masks"] < losses["masks of a policy"]


def test_the_reference_is_the_wrapped_model_or_the_network_itself():
    X, y = planted()
    own = network(reference="own").fit(X, y)
    assert_array_equal(own.predict_full(X), own.predict_proba(X))
    assert_array_equal(own.predict_proba(X), fitted("random masks").predict_proba(X))
    assert np.abs(own.predict_full(X) - fitted("random masks").predict_full(X)).max() > 0.01
    with pytest.raises(InvalidInput, match=r"reference must be one of \('wrapped', 'own'\); got 'mine'"):
        network(reference="mine").fit(X, y)


def test_the_reparametrized_network_starts_from_the_plain_one_and_reports():
    X, _ = planted()
    plain, changed = fitted("random masks"), fitted("reparametrized")
    for weight, other in zip(plain.network_.layers.weights, changed.network_.layers.weights, strict=True):
        assert_array_equal(weight, other)
    report = changed.adaptation_report_
    assert report["size"].tolist() == [0, 1, 2, 3, 4]
    assert_array_equal(report["kept"], changed.kept_)
    assert not hasattr(plain, "adaptation_report_")
    mask = np.random.default_rng(3).random(X.shape) < 0.5
    kept = changed.kept_[mask.sum(axis=1)]
    same = np.abs(changed.predict_proba(X, mask) - plain.predict_proba(X, mask)).max(axis=1) == 0
    assert_array_equal(same, ~kept)


def test_the_reparametrized_network_scales_and_shifts_its_own_last_layer():
    X, y = planted()
    changed = network(reparametrized=True, epochs=3).fit(X, y)
    changed.kept_ = np.ones(5, dtype=bool)
    mask = np.random.default_rng(3).random(X.shape) < 0.5
    layers = changed.network_.layers
    hidden = layers.hidden(changed.coder_(EncodedRows(X).masked(mask)))
    change = changed.adapter_.psi(mask.astype(float))
    logits = (hidden * (1 + change[:, :16])) @ layers.weights[-1] + layers.biases[-1] + change[:, 16:]
    assert_allclose(changed.predict_proba(X, mask), softmax(logits, axis=1), rtol=0, atol=1e-12)
    assert np.abs(change).max() > 1e-4


def test_a_table_of_all_kinds():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"city": rng.choice(["Ghent", "Lille", "Namur"], 200), "smoker": rng.random(200) < 0.5, "age": rng.random(200)}
    )
    y = (table["city"] == "Lille").astype(int).to_numpy()
    table.loc[::7, "city"] = np.nan

    class Constant:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.tile([0.5, 0.5], (len(X), 1))

    predictor = MaskTrainedPredictor(Constant(), width=16, epochs=30, learning_rate=0.02, random_state=0).fit(table, y)
    rows = table.iloc[1:7].assign(city=["Ghent", "Lille", "Namur"] * 2)
    found = predictor.predict_proba(rows)[:, 1]
    assert (found[[1, 4]] > 0.8).all()
    assert (found[[0, 2, 3, 5]] < 0.2).all()


def test_parameters_that_are_refused():
    masks: list[Any] = ["policy", None, 3, np.ones((3, 4), dtype=bool)]
    for value in masks:
        with pytest.raises(InvalidInput, match=r'masks must be "random" or a function \(values, generator\) -> mask'):
            network(masks=value).fit(*planted(60))
    for name, value in (("epochs", "a"), ("width", 0), ("learning_rate", -1), ("reparametrized", "yes")):
        with pytest.raises(InvalidInput, match=f"MaskTrainedPredictor: {name} must be .*got {value!r}"):
            network(**{name: value}).fit(*planted(60))


class Deep(torch.nn.Module):
    """A network of the user's own, with dropout and batch norm."""

    def __init__(self, n_inputs, n_classes):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(n_inputs, 24),
            torch.nn.BatchNorm1d(24),
            torch.nn.GELU(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(24, 24),
            torch.nn.GELU(),
            torch.nn.Linear(24, n_classes),
        )

    def forward(self, rows):
        return self.layers(rows)


def test_any_network_can_be_trained_under_masks():
    X, y = planted()
    later, truth = planted(600, seed=1)
    mask = sample(600, 4, np.random.default_rng(2))
    made = Deep(8, 3)
    before = copy.deepcopy(made.state_dict())
    for options in ({"network": Deep}, {"network": made}, {"network": Deep, "reparametrized": True}):
        predictor = network(**options).fit(X, y)
        proba = predictor.predict_proba(later, mask)
        assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-9)
        assert_allclose(predictor.predict_proba(later[:3], mask[:3]), proba[:3], rtol=0, atol=1e-5)
        assert log_loss(truth, proba, labels=predictor.classes_) < 1.0  # of the class frequencies: 1.1
        assert log_loss(truth, predictor.predict_proba(later), labels=predictor.classes_) < 0.6
        again = pickle.loads(pickle.dumps(clone(predictor).fit(X, y)))
        assert_allclose(again.predict_proba(later, mask), proba, rtol=0, atol=1e-6)
    assert all(torch.equal(before[name], value) for name, value in made.state_dict().items())  # a copy was trained


def test_networks_that_are_refused():
    refused: list[tuple[Any, str]] = [
        (3, "network must be a function .*got 3"),
        (lambda n_inputs, n_classes: "net", r"network must return a torch.nn.Module; got str"),
        (lambda n_inputs, n_classes: torch.nn.Linear(n_inputs, 2), r"network must return logits .*\(n, 3\)"),
        (lambda n_inputs, n_classes: torch.nn.Linear(5, n_classes), r"network must take .*\(n, 8\)"),
    ]
    for given, message in refused:
        with pytest.raises(InvalidInput, match=message):
            network(network=given).fit(*planted(60))


def test_masks_of_another_shape_are_refused():
    with pytest.raises(InvalidInput, match=r"masks? .*\(60, 4\)"):
        network(masks=lambda values, rng: np.ones((len(values), 3), dtype=bool)).fit(*planted(60))


def test_without_torch_it_says_what_to_use(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(AskwiseError, match=r"MaskTrainedPredictor .*askwise\[torch\].*ConditionalPredictor"):
        network().fit(*planted(60))
