"""A fitted selector is shared: threads do not disturb each other, and no question changes it."""

import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from askwise import DynamicFeatureSelector
from askwise.predict import ReparametrizedPredictor
from tests.made import at_once

FEATURES = ["age", "iron", "scan", "pulse"]
N_THREADS = 4


def data(n=50):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 4)), columns=FEATURES)
    return X, (2 * X["scan"] + X["iron"] > 0).astype(int).to_numpy()


def module() -> Any:
    torch = pytest.importorskip("torch")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))


def selector(model, **options):
    options = {"random_state": 0, "progress": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DynamicFeatureSelector(model, **options).fit(*data())


def answers(owner, number):
    """What one thread asks, different from what the others ask, as arrays."""
    X, _ = data()
    rng = np.random.default_rng(number)
    rows = X.iloc[rng.integers(len(X), size=3)]
    known = rows.where(rng.random(rows.shape) < 0.5)
    run = owner.acquire(rows, budget=2)
    session = owner.start(budget=2)
    while (suggestion := session.suggest()) is not None:
        session.answer(suggestion.feature, float(rows.iloc[0][suggestion.feature]))
    return [
        owner.predict_proba(known),
        owner.uncertainty(known).epistemic,
        owner.gains(known),
        owner.suggest(known),
        run.order,
        run.proba,
        run.uncertainty.epistemic,
        np.array(list(session.report()["probabilities"].values())),
    ]


def check_threads(owner, name, ask=answers):
    """Threads that `ask` at once get what `answers` gives each alone."""
    for number, found in enumerate(at_once(lambda number: ask(owner, number), N_THREADS, 1e-4)):
        assert not isinstance(found, Exception), f"{name}: {found!r}"
        for ours, alone in zip(found, answers(owner, number), strict=True):
            assert_allclose(ours, alone, rtol=0, atol=1e-6, err_msg=f"{name}, thread {number}")


def test_threads_that_share_a_selector_get_what_each_would_get_alone():
    network = MLPClassifier((8,), max_iter=30, random_state=0)
    check_threads(selector(make_pipeline(StandardScaler(), network), epistemic="ensemble"), "network with an ensemble")
    forest = RandomForestClassifier(3, random_state=0)
    check_threads(selector(forest, adaptation="rules", epistemic=None), "rules of a forest")
    check_threads(selector(LogisticRegression(), adaptation="mean", epistemic="distance"), "mean, distance")


def test_threads_that_share_a_torch_module_do_not_disturb_each_other_or_its_owner():
    torch = pytest.importorskip("torch")
    rows = torch.as_tensor(data()[0].to_numpy(copy=True), dtype=torch.float32)
    for options in (
        {"epistemic": "dropout"},
        {"adaptation": ReparametrizedPredictor(None, "low-rank", epochs=2, random_state=0), "epistemic": "distance"},
        {"adaptation": ReparametrizedPredictor(None, "last-layer", epochs=2, random_state=0), "epistemic": None},
    ):
        net = module().eval()
        owner = selector(net, **options)
        with torch.no_grad():
            expected = net(rows)

        def ask(owner, number, net=net, expected=expected, options=options):
            """Every other thread calls the module itself as well, as its owner may."""
            with torch.no_grad():
                plain = [net(rows) for _ in range(10 * (number % 2))]
            found = answers(owner, number)
            with torch.no_grad():
                plain += [net(rows) for _ in range(10 * (number % 2))]
            assert all(torch.equal(one, expected) for one in plain), f"{options}: the owner's own calls"
            return found

        check_threads(owner, str(options), ask)


def mixed(n=60):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "city": rng.choice(["Ghent", "Lille"], n),
            "smoker": rng.random(n) < 0.5,
            "age": rng.normal(size=n),
            "ward": pd.Categorical(rng.choice(["a", "b", "c"], n)),
        }
    )
    return X, (X["age"] + X["smoker"] > 0.5).astype(int).to_numpy()


def ask_everything(owner, X, y):
    owner.predict_proba(X)
    owner.uncertainty(X)
    owner.gains(X)
    owner.suggest(X)
    owner.acquire(X, budget=2)
    owner.evaluate(X, y, budgets=[1, 2])
    session = owner.start({"age": 300.0}, budget=2)
    session.answer(session.suggest().feature, {"city": "Lille", "smoker": True, "ward": "b"}[session.suggest().feature])
    session.report()


def test_no_question_changes_a_fitted_selector():
    """Neither known rows, nor rows with categories that training lacks, nor impossible numbers."""
    X, y = mixed()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "smoker", "ward"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, LogisticRegression()).fit(X, y)
    strange = X[:6].assign(city=[f"city {r}" for r in range(6)], ward=pd.Categorical(list("xyzabc")), age=1e9)
    tree = make_pipeline(encoder, RandomForestClassifier(3, max_depth=3, random_state=0)).fit(X, y)
    for estimator, options in (
        (model, {}),
        (model, {"policy": "static", "epistemic": None}),  # not "distance": scikit-learn's KDTree counts its queries
        (tree, {"adaptation": "mean", "policy": "random"}),
    ):
        owner = DynamicFeatureSelector(estimator, random_state=0, progress=False, **options).fit(X, y)
        before = joblib.hash(owner)
        nothing = owner.predict_proba(X[:1].assign(city=None, smoker=None, age=np.nan, ward=None))
        ask_everything(owner, X[:8].where(np.random.default_rng(0).random((8, 4)) < 0.6), y[:8])
        ask_everything(owner, strange, y[:6])
        assert joblib.hash(owner) == before, options
        again = owner.predict_proba(X[:1].assign(city=None, smoker=None, age=np.nan, ward=None))
        assert_allclose(again, nothing, rtol=0, atol=1e-12)
