"""The front door with its networks: adaptations, members and policies together, and served without torch."""

import copy
import functools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

import askwise
import askwise.policy.greedy
from askwise import AskwiseError, DynamicFeatureSelector, wrap
from askwise.epistemic import AuxiliaryEnsemble, FeatureDistance, MCDropout
from askwise.policy import DQN, Greedy, Policy
from askwise.predict import ConditionalPredictor, ReparametrizedPredictor
from askwise.value import HeldOutStates, ValueEstimator

COLUMNS = ["age", "iron", "scan", "pulse"]


def data(n=90, seed=0):
    """The scan decides, iron helps."""
    X = pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 4)), columns=COLUMNS)
    return X, np.array(["ill", "well"])[(3 * X["scan"] + X["iron"] > 0).astype(int)]


@functools.cache
def regression():
    return LogisticRegression().fit(*data())


def module() -> Any:
    """A network that knows the answer, with dropout and in training mode."""
    net: Any = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2), nn.Linear(4, 2))
    with torch.no_grad():
        net[0].weight.copy_(torch.eye(4))
        net[0].bias.zero_()
        net[2].weight.copy_(torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 3.0, 0.0]]))
        net[2].bias.zero_()
    return net


def selector(estimator=None, **options):
    options = {
        "random_state": 0,
        "progress": False,
        "epistemic": None,
        "policy": "static",
        "calibration": None,
        **options,
    }
    return DynamicFeatureSelector(regression() if estimator is None else estimator, **options)


def tiny(kind):
    """A short training."""
    return ReparametrizedPredictor(None, kind, epochs=2, random_state=0)


@pytest.fixture
def quick(monkeypatch):
    """Value networks that are trained briefly."""
    brief = functools.partial(ValueEstimator, n_states=200, epochs=5, hidden=16)
    monkeypatch.setattr(askwise.policy.greedy, "ValueEstimator", brief)


def unknown(n=1):
    return pd.DataFrame(np.full((n, 4), np.nan), columns=COLUMNS)


# How p(y | x_S) is answered


@pytest.mark.parametrize(
    ("adaptation", "make"),
    [
        ("output", regression),
        ("last-layer", regression),
        ("output", module),
        ("last-layer", module),
        ("low-rank", module),
    ],
)
def test_trained_adaptations_by_name(adaptation, make):
    X, y = data()
    owner = selector(make(), adaptation=adaptation).fit(X, y)
    assert isinstance(owner.predictor_, ReparametrizedPredictor)
    assert owner.predictor_.kind == adaptation
    report = owner.adaptation_report_
    assert report["size"].tolist() == [0, 1, 2, 3, 4]
    assert report["kept"].dtype == bool
    run = owner.acquire(X[:10], budget=2)
    assert_allclose(run.proba.sum(axis=2), 1, rtol=0, atol=1e-9)
    assert_array_equal(owner.predict_proba(X[:10]), owner.predictor_.predict_proba(X[:10]))
    assert owner.evaluate(X, y, budgets=[2])["accuracy"][0] > 0.85


@pytest.mark.parametrize("adaptation", ["auto", "mean", "conditional"])
def test_nothing_is_reported_where_nothing_is_trained(adaptation):
    assert not hasattr(selector(adaptation=adaptation).fit(*data()), "adaptation_report_")


def test_a_trained_adaptation_may_be_given_with_its_options():
    owner = selector(adaptation=tiny("last-layer")).fit(*data())
    assert owner.predictor_.epochs == 2
    assert owner.predictor_.estimator_ is regression()
    assert len(owner.adaptation_report_) == 5


def test_the_module_is_left_as_it_was_through_everything():
    X, y = data()
    net = module()
    net[0].eval()
    weights, modes = copy.deepcopy(net.state_dict()), [part.training for part in net.modules()]
    for options in (
        {"adaptation": tiny("low-rank"), "epistemic": "distance", "policy": "greedy"},
        {"adaptation": "mean", "epistemic": "dropout", "policy": DQN(n_episodes=8, hidden=8)},
    ):
        owner = selector(net, **options).fit(X, y)
        owner.acquire(X[:5], budget=2)
        owner.uncertainty(X[:5])
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, weights[name])
    assert [part.training for part in net.modules()] == modes
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
    assert all(parameter.grad is None for parameter in net.parameters())


# How far to trust it

MEMBERS: dict[str, tuple[Any, Any, Any]] = {
    "ensemble": (regression, "ensemble", AuxiliaryEnsemble),
    "dropout": (module, "dropout", MCDropout),
    "auto, regression": (regression, "auto", AuxiliaryEnsemble),
    "auto, module": (module, "auto", MCDropout),
    "own": (regression, AuxiliaryEnsemble(2, center="mean", random_state=0), AuxiliaryEnsemble),
}
NO_MEMBERS: dict[str, tuple[Any, Any, Any]] = {
    "distance": (regression, "distance", FeatureDistance),
    "auto, function": (lambda: regression().predict_proba, "auto", FeatureDistance),
    "nothing": (regression, None, type(None)),
}


@functools.cache
def trusted(name):
    make, epistemic, _ = {**MEMBERS, **NO_MEMBERS}[name]
    return selector(make(), epistemic=epistemic, policy="greedy").fit(*data())


@pytest.mark.parametrize("name", [*MEMBERS, *NO_MEMBERS])
def test_uncertainties_are_numbers_where_there_are_members_and_unknown_elsewhere(name):
    X, _ = data()
    owner = trusted(name)
    assert isinstance(owner.epistemic_, {**MEMBERS, **NO_MEMBERS}[name][2])
    found = owner.uncertainty(X.where(np.random.default_rng(0).random(X.shape) < 0.5)).as_dict()
    known = {"total", "confidence_gap", "novelty"}
    if name in MEMBERS:
        known = set(found)
    elif name != "nothing":
        known.add("epistemic")
    for field, numbers in found.items():
        assert numbers.shape == (90,)
        assert np.isfinite(numbers).all() if field in known else np.isnan(numbers).all()
        assert field not in known or (numbers >= 0).all()
    if name != "nothing":
        assert found["epistemic"].max() > 0


@pytest.mark.parametrize("name", [*MEMBERS, *NO_MEMBERS])
def test_uncertainties_along_the_way(name):
    X, _ = data()
    owner = trusted(name)
    run = owner.acquire(X[:12], budget=3)
    assert run.uncertainty.epistemic.shape == (12, 4)
    for t in range(4):
        seen = X[:12].where(run.mask_after(t))
        now = owner.uncertainty(seen)
        assert_allclose(run.uncertainty.epistemic[:, t], now.epistemic, rtol=0, atol=1e-6)
        assert_allclose(run.uncertainty.total[:, t], now.total, rtol=0, atol=1e-6)
    assert run.to_frame()["epistemic"].notna().all() == (name != "nothing")


@pytest.mark.parametrize("name", [*MEMBERS, *NO_MEMBERS])
def test_a_session_reports_numbers_or_nothing_but_never_nan(name):
    session = trusted(name).start(budget=2)
    session.answer("scan", 0.4)
    report = json.loads(json.dumps(session.report(), allow_nan=False))
    for state in (report, *report["trace"]):
        epistemic = state["uncertainty"]["epistemic"]
        assert epistemic is None if name == "nothing" else epistemic >= 0
        assert (state["uncertainty"]["mutual_information"] is None) == (name in NO_MEMBERS)


def test_members_that_are_given_are_used_as_they_are():
    """Trained members are trained members: no clone of them is."""
    X, y = data()
    members = [LogisticRegression(C=c).fit(X, y) for c in (0.01, 0.1)]
    mine = AuxiliaryEnsemble(estimators=members)
    owner = selector(epistemic=mine, policy="greedy").fit(X, y)
    assert all(one is other for one, other in zip(owner.epistemic_.estimators_, members, strict=True))
    assert owner.uncertainty(X).epistemic.mean() > 1e-4
    assert mine.estimators is members


def test_frozen_members_survive_cross_validation():
    X, y = data()
    members = [FrozenEstimator(LogisticRegression(C=c).fit(X, y)) for c in (0.01, 0.1)]
    owner = selector(FrozenEstimator(regression()), epistemic=AuxiliaryEnsemble(estimators=members), policy="greedy")
    scores = cross_val_score(owner.set_params(budget=1), X, y, cv=2, error_score="raise")
    assert (scores > 0.7).all()


def test_an_estimator_of_uncertainty_that_is_given_is_not_fitted_itself():
    mine = AuxiliaryEnsemble(2, random_state=0)
    selector(epistemic=mine).fit(*data())
    assert not hasattr(mine, "estimators_")


# Which feature next

POLICIES: dict[str, Any] = {
    "greedy": lambda: "greedy",
    "network": lambda: Greedy("network"),
    "rl": lambda: "rl",
    "short rl": lambda: DQN(n_episodes=400, hidden=32, reward="area"),
}


@functools.cache
def choosing(name, fitted=True):
    options = {"adaptation": "mean", "policy": POLICIES[name](), "epistemic": "ensemble"}
    return selector(regression() if fitted else LogisticRegression(), **options).fit(*data())


@pytest.mark.parametrize("name", POLICIES)
def test_what_decides_is_asked_first(name):
    X, _ = data()
    owner = choosing(name)
    assert owner.features_[owner.suggest(unknown())[0]] == "scan"
    assert owner.start().suggest().feature == "scan"
    run = owner.acquire(X[:20])
    assert_array_equal(np.sort(run.order, axis=1), np.tile(np.arange(4), (20, 1)))
    later, truth = data(200, seed=1)
    assert owner.evaluate(later, truth, budgets=[1])["accuracy"][0] > 0.8
    scores = owner.ranking(X.where(X > 0))
    assert_array_equal(np.isneginf(scores), X > 0)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("make", [regression, LogisticRegression], ids=["fitted", "unfitted"])
@pytest.mark.parametrize("policy", [lambda: Greedy("network"), lambda: DQN(n_episodes=8, hidden=8), lambda: "random"])
def test_another_policy_around_the_same_members(policy, make):
    """As if it had been fitted with that policy, and the selector it comes from stays as it is."""
    X, y = data()
    owner = selector(make(), epistemic="ensemble", policy="greedy").fit(X, y)
    known = X.where(X > 0)
    before = owner.ranking(known)
    other = owner.with_policy(policy())
    assert other.epistemic_ is owner.epistemic_
    expected = selector(owner.estimator, epistemic="ensemble", policy=policy()).fit(X, y)
    assert_array_equal(other.ranking(known), expected.ranking(known))
    assert_array_equal(owner.ranking(known), before)
    assert owner.policy == "greedy"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("policy", [lambda: Greedy("network"), lambda: DQN(n_episodes=40, hidden=8)])
def test_same_seed_same_result_from_end_to_end(policy):
    X, y = data()
    known = X.where(X > 0)
    one, two, other = (
        selector(LogisticRegression(), epistemic="ensemble", policy=policy(), random_state=seed)
        .fit(X, y)
        .ranking(known)
        for seed in (0, 0, 1)
    )
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("policy", [lambda: "rl", lambda: Greedy("network"), lambda: DQN("paper", n_episodes=4)])
def test_networks_go_with_trained_adaptations_members_prices_and_groups(policy):
    X, y = data()
    owner = selector(
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
        adaptation=tiny("last-layer"),
        epistemic=AuxiliaryEnsemble(2, random_state=0),
        policy=policy(),
        costs={"scan": 5, "both": 0},
        groups={"both": ["age", "pulse"]},
    ).fit(X, y)
    run = owner.acquire(X[:6], budget=6)
    assert (run.order[:, 0] == 0).all()  # free
    assert_array_equal(run.spent_after(run.n_steps), np.full(6, 6.0))
    assert np.isfinite(run.uncertainty.epistemic).all()


@pytest.mark.usefixtures("quick")
def test_the_risk_weight_can_be_changed_after_fitting():
    for policy in ("greedy", Greedy("network")):
        owner = selector(epistemic="ensemble", policy=policy, risk_weight=0.0).fit(*data())
        careless = owner.ranking(unknown())
        owner.risk_weight = 5.0
        careful = owner.ranking(unknown())
        assert np.abs(careful - careless).max() > 1e-6
        owner.risk_weight = 0.0
        assert_array_equal(owner.ranking(unknown()), careless)


def logistic(*weights):
    """A model of known weights, as a black box."""

    def proba(X):
        positive = 1 / (1 + np.exp(-np.asarray(X, dtype=float) @ np.asarray(weights)))
        return np.column_stack([1 - positive, positive])

    return wrap(proba, ["ill", "well"])


def at_odds(**options):
    """The first column and the second tell about as much, but members do not agree on the second."""
    members = [logistic(1.0, 1.2 + d, 0.0, 0.0) for d in (-1.5, 1.5)]
    options = {"epistemic": AuxiliaryEnsemble(estimators=members, **options), "policy": "greedy"}
    X, y = data()
    return selector(logistic(1.0, 1.2, 0.0, 0.0), **options).fit(X, y)


def test_a_risk_weight_avoids_what_the_members_do_not_agree_on_and_a_negative_one_seeks_it():
    X, _ = data(60, seed=1)
    owner = at_odds()
    first, epistemic = {}, {}
    for weight in (-1.0, 0.0, 1.0):
        owner.risk_weight = weight
        run = owner.acquire(X, budget=1)
        first[weight], epistemic[weight] = run.order[:, 0], run.uncertainty.epistemic[:, 1].mean()
    assert (first[-1.0] == 1).all()
    assert (first[0.0] == 1).all()
    assert (first[1.0] == 0).all()
    assert epistemic[1.0] < 0.5 * epistemic[-1.0]


def test_members_that_agree_with_each_other_are_no_risk_around_their_mean():
    """They differ from the model and not from each other: their mutual information is 0, before and after."""
    X, y = data()
    other = logistic(0.2, 3.0, 0.0, 0.0)
    scores = {}
    for center in ("primary", "mean"):
        around = AuxiliaryEnsemble(estimators=[other, other], center=center)
        owner = selector(logistic(1.0, 1.2, 0.0, 0.0), epistemic=around, policy="greedy", risk_weight=0.0).fit(X, y)
        careless = owner.ranking(unknown())
        owner.risk_weight = 2.0
        scores[center] = np.abs(owner.ranking(unknown()) - careless).max()
    assert scores["primary"] > 0.01
    assert scores["mean"] < 1e-9


# Training rows met as if they were new


class Watching(Policy):
    """Keeps the held-out states that a policy would learn from."""

    met: HeldOutStates | None = None

    def fit(self, context):
        Watching.met = context.held_out()
        return self

    def scores(self, state):
        return np.where(state.mask, -np.inf, 0.0)


def met(owner, X, y, **fit_options) -> HeldOutStates:
    owner.set_params(policy=Watching()).fit(X, y, **fit_options)
    assert Watching.met is not None
    return Watching.met


def test_a_model_fitted_here_is_rehearsed_without_each_row():
    X, y = data()
    held_out = met(selector(LogisticRegression(), epistemic="ensemble"), X, y)
    assert held_out.fold is not None
    assert np.bincount(held_out.fold).tolist() == [30, 30, 30]
    for k in range(3):
        held = held_out.fold == k
        model = LogisticRegression().fit(X[~held], y[~held])
        assert_allclose(held_out.full[held], model.predict_proba(X[held]), rtol=0, atol=1e-9)
        assert isinstance(held_out.beliefs[k].epistemic, AuxiliaryEnsemble)
        assert len(held_out.beliefs[k].predictor.training_rows_) == 60


def test_a_model_used_as_it_is_is_not_refitted():
    X, y = data()
    for model in (regression(), FrozenEstimator(regression()), module(), regression().predict_proba):
        held_out = met(selector(model), X, y)
        assert held_out.fold is None
        assert len(held_out.beliefs) == 1
        assert isinstance(held_out.beliefs[0].predictor, ConditionalPredictor)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["network", "short rl"])
def test_networks_learn_from_the_folds_of_an_unfitted_model(name, monkeypatch):
    folds = []
    own = HeldOutStates.state

    def spy(self, rows, mask, risk=True):
        folds.append(self.fold)
        return own(self, rows, mask, risk)

    monkeypatch.setattr(HeldOutStates, "state", spy)
    for estimator, expected in ((LogisticRegression(), True), (regression(), False)):
        folds.clear()
        policy = Greedy("network") if name == "network" else DQN(n_episodes=4, hidden=8)
        selector(estimator, adaptation="mean", policy=policy).fit(*data())
        assert folds
        assert all((fold is not None) == expected for fold in folds)


def test_text_means_the_same_in_every_fold():
    """A city that lives in one row is unknown to the fold without it: the others must keep their names."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Ghent", "Lille", "Namur"], 60), "pet": rng.choice(["cat", "dog"], 60)})
    y = (table["city"] == "Lille").astype(int).to_numpy()
    table.loc[5, "city"] = "Aalst"  # the first of all names, so that every code after it would move
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), LogisticRegression())
    held_out = met(selector(model), table, y)
    assert held_out.fold is not None
    for k in range(3):
        held = held_out.fold == k
        own = clone(model).fit(table[~held], y[~held])
        assert_allclose(held_out.full[held], own.predict_proba(table[held]), rtol=0, atol=1e-9)


def test_a_column_that_hardly_anybody_has_may_be_empty_in_a_fold():
    X, y = data()
    holes = X.copy()
    holes.loc[1:, "age"] = np.nan
    model = make_pipeline(SimpleImputer(keep_empty_features=True), LogisticRegression())
    owner = selector(model, policy=DQN(n_episodes=4, hidden=8)).fit(holes, y)
    assert owner.acquire(holes[:5]).n_steps == 4


def test_weights_count_in_the_folds_too():
    X, y = data()
    weights = np.where(X["age"] > 0, 20.0, 0.05)
    held_out = met(selector(LogisticRegression()), X, y, sample_weight=weights)
    assert held_out.fold is not None
    for k in range(3):
        held = held_out.fold == k
        model = LogisticRegression().fit(X[~held], y[~held], sample_weight=weights[~held])
        assert_allclose(held_out.full[held], model.predict_proba(X[held]), rtol=0, atol=1e-9)


# Without torch

SERVE = """
import json, pickle, sys
with open(sys.argv[1], "rb") as file:
    selectors, X = pickle.load(file)
found = []
for selector in selectors:
    session = selector.start(budget=2)
    session.answer(session.suggest().feature, 0.3)
    report = session.report()
    found.append({
        "gains": selector.gains(X).tolist(),
        "suggest": selector.suggest(X, budget=2).tolist(),
        "order": selector.acquire(X, budget=3).order.tolist(),
        "epistemic": selector.uncertainty(X).epistemic.tolist(),
        "next": report["suggestion"],
    })
assert "torch" not in sys.modules, "torch was imported"
print(json.dumps(found))
"""


def test_what_torch_trained_is_served_without_it(tmp_path):
    X, y = data()
    adapted = selector(
        regression(),
        adaptation=tiny("last-layer"),
        epistemic=AuxiliaryEnsemble(2, random_state=0),
        policy=DQN(n_episodes=4, hidden=8),
    ).fit(X, y)
    served = [choosing("network"), choosing("rl"), adapted]
    X = X[:8].where(np.random.default_rng(0).random((8, 4)) < 0.4)
    (tmp_path / "in.pickle").write_bytes(pickle.dumps((served, X)))
    environment = {**os.environ, "PYTHONPATH": str(Path(askwise.__file__).parents[1])}
    command = [sys.executable, "-c", SERVE, str(tmp_path / "in.pickle")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for owner, found in zip(served, json.loads(done.stdout), strict=True):
        assert_allclose(found["gains"], owner.gains(X), rtol=0, atol=1e-12)
        assert found["suggest"] == owner.suggest(X, budget=2).tolist()
        assert found["order"] == owner.acquire(X, budget=3).order.tolist()
        assert_allclose(found["epistemic"], owner.uncertainty(X).epistemic, rtol=0, atol=1e-12)
        assert found["next"] in COLUMNS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": "rl"}, r'policy="rl".*askwise\[torch\].*policy="greedy"'),
        ({"policy": DQN()}, r'policy="rl".*askwise\[torch\].*policy="greedy"'),
        ({"policy": Greedy("network")}, r'value="network".*askwise\[torch\].*value="neighbors".*policy="greedy"'),
        ({"adaptation": "output"}, r'adaptation="output".*askwise\[torch\].*adaptation="conditional" or "mean"'),
        ({"adaptation": "last-layer"}, r'adaptation="last-layer".*askwise\[torch\].*adaptation="conditional"'),
    ],
)
def test_without_torch_the_error_names_the_extra_and_the_alternative(monkeypatch, options, words):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(AskwiseError, match=words):
        selector(**options).fit(*data())


def test_without_torch_everything_else_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = data()
    for epistemic in ("auto", "ensemble", "distance", None):
        for policy in ("greedy", "static", "random"):
            owner = selector(epistemic=epistemic, policy=policy).fit(X, y)
            owner.acquire(X[:3], budget=2)
            owner.start().report()
