"""Small fitted selectors, one or more for each kind of predictor, policy, member, tree and stop."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector, Prices, epistemic, predict, trees, wrap_regressor
from askwise.constraints import at_most, only_if, pilot, requires
from askwise.errors import InvalidInput
from askwise.explain.growth import AtMost
from askwise.options import ADAPTATIONS
from askwise.policy import DQN, Distilled, Greedy
from askwise.reference_models import make_model
from askwise.stopping import Confidence

COLUMNS = ["a", "b", "c", "d"]
NEURAL: dict[str, Any] = {"epochs": 1, "batch_size": 32}


def make_rows(n=60, seed=0):
    """Four numbers, one of them whole, some cells missing; three classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=COLUMNS)
    X["d"] = np.rint(4 * X["d"])
    y = np.digitize(X["a"] + X["b"] + 0.3 * rng.normal(size=n), [-0.7, 0.7])
    return X, np.array(["low", "middle", "high"])[y]


def make_mixed(n=60, seed=0):
    """Numbers, text, a pandas category, a boolean and a nullable integer, some cells missing."""
    X, y = make_rows(n, seed)
    X["text"] = np.where(X["a"] > 0, "up", "down")
    X["kind"] = pd.Categorical(np.where(X["b"] > 0, "x", "y"), categories=["y", "x", "never"])
    X["flag"] = X["c"] > 0
    X["count"] = X.pop("d").astype("Int64")
    return X, y


def selector(model, **options):
    """A selector that is quiet and seeded."""
    return DynamicFeatureSelector(model, random_state=0, progress=False, **options)


def around_tables():
    """Pairs (name, fitted selector) that need no torch."""
    X, y = make_rows()
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y)
    boosted = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=5, random_state=0).fit(X, y)
    holed = X.mask(np.random.default_rng(1).random(X.shape) < 0.1)
    ensemble = epistemic.AuxiliaryEnsemble(2, center="mean", random_state=0)
    prices = Prices({"a": 2.0, "b": 3.0}, shared=[(["a", "b"], 1.0)])
    rules = [requires("a", "b"), at_most(1, of=["a", "pair"]), only_if("pair", "b", "> 0"), pilot("mood")]
    grouped = selector(logistic, costs=prices, groups={"pair": ["c", "d"]}, constraints=rules)
    yield "logistic", grouped.fit(holed, y)
    calibrated = selector(LogisticRegression()).fit(X.to_numpy(), y)
    unseen, labels = make_rows(50, seed=9)
    calibrated.calibrate_stop(unseen.to_numpy(), labels, average_price=1.5, budget=2)
    yield "array", calibrated
    yield "forest", selector(forest, epistemic="distance", costs=pd.Series({"a": 2.0})).fit(X, y)
    yield "boosted", selector(boosted, epistemic=ensemble, policy="static").fit(holed, y)
    yield "mean", selector(logistic, adaptation="mean", epistemic=None, policy="random").fit(X, y)
    marginal = predict.ImputedPredictor(tree, "marginal", 5, random_state=0)
    yield "marginal", selector(tree, adaptation=marginal).fit(X, y)
    yield "rules", selector(forest, adaptation="rules", epistemic=ensemble).fit(X, y)
    yield "pooled", selector(logistic, adaptation="pooled", groups={"pair": ["c", "d"]}).fit(holed, y)
    local = predict.LocalPredictor(tree, max_models=4)
    yield "local", selector(tree, adaptation=local, epistemic=None, policy="static").fit(X, y)
    yield "look-ahead", selector(tree, epistemic=None, policy="lookahead", costs=prices).fit(X, y)
    yield "planned", selector(tree, epistemic=None, policy="planned", costs=prices).fit(holed.fillna(0.0), y)
    small = Distilled(n_states=60, hidden=(4,), exact_share=0.3)
    yield "distilled", selector(logistic, policy=small).fit(X, y)
    yield "error costs", selector(logistic, error_costs=dict.fromkeys(("low", "middle", "high"), 9.0)).fit(X, y)
    number = X["a"] + X["b"] ** 2
    decides = wrap_regressor(LinearRegression().fit(X, number), [0.5, 1.5], X=X, y=number)
    yield "regressor", selector(decides, epistemic="distance").fit(X, decides.label(number))
    mixed, labels = make_mixed()
    steps = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    yield "mixed", selector(steps, epistemic=None).fit(mixed, labels)
    yield "pooled categories", selector(steps, adaptation="pooled", epistemic=None).fit(mixed, labels)


def around_trees():
    """Pairs (name, fitted selector): the trees of askwise with every adaptation that takes them."""
    X, y = make_rows()
    rules: list[tuple[dict[str, Any], Any]] = [
        ({"a": (0.3, None)}, "high"),
        ({"b": (None, -0.5), "d": [-2.0, 0.0, 2.0]}, None),
        ({"d": 1.0}, {"low": 0.5, "middle": 0.5}),
    ]
    for model in (
        trees.SubsetCartClassifier(max_depth=2),
        trees.FuzzyTreeClassifier(max_depth=2),
        trees.FuzzyTreeClassifier(max_depth=2, t_norm="minimum"),
        trees.RuleListClassifier(rules),
    ):
        model.fit(X, y)
        for adaptation in ADAPTATIONS:
            made = selector(model, adaptation=adaptation, epistemic=None, policy="static")
            try:
                with warnings.catch_warnings():  # of trees that are too simple
                    warnings.simplefilter("ignore", UserWarning)
                    made.fit(X, y)
            except InvalidInput:  # it needs a network
                if adaptation in ("last-layer", "low-rank"):
                    continue
                raise
            yield f"{model} {adaptation}", made


def around_reference_models():
    """Pairs (name, fitted selector): the reference model that wraps a booster in a class of its own."""
    X, y = make_rows()
    yield "xgboost", selector(make_model("xgboost", 0), epistemic=None, policy="static").fit(X, y)


def around_stops():
    """Pairs (name, fitted selector): every goal of a calibrated stop, and handovers with and without one."""
    X, y = make_rows()
    (unseen, labels), (others, other_labels) = make_rows(300, 9), make_rows(300, 11)
    model = LogisticRegression().fit(X, y)
    goals: list[dict[str, Any]] = [
        {"agreement": 0.8, "per_class": "auto"},
        {"agreement": 0.6, "per_class": True, "by_class": True},
        {"agreement": 0.6, "subgroups": np.where(np.arange(300) % 2, "ward", "clinic")},
        {"agreement": 0.6, "per_class": False, "conditional": True},
        {"accuracy_gap": 0.3, "per_class": False},
        {"recall": {"high": 0.5}},
        {"average_price": 1.5},
    ]
    for goal in goals:
        made = selector(model, epistemic="distance", policy="static").fit(X, y)
        made.calibrate_stop(unseen, labels, budget=2, **goal)
        yield f"stop {goal}", made
    for goal in goals[:2]:
        made = selector(model, epistemic="distance", policy="static").fit(X, y)
        made.calibrate_stop(unseen, labels, budget=2, **goal)
        made.calibrate_handover(others, other_labels, accuracy=0.8, budget=2)
        yield f"stop {goal} and handover", made
    costs = dict.fromkeys(("low", "middle", "high"), 9.0)
    for options, asked in (({}, {"accuracy": 0.85}), ({"error_costs": costs}, {"error_cost": 2.0})):
        made = selector(model, epistemic="distance", policy="static", **options).fit(X, y)
        made.calibrate_handover(others, other_labels, **asked, budget=2)
        yield f"handover {asked}", made
    made = selector(model, epistemic=None, policy="static").fit(X, y)
    made.stop_ = AtMost(2, Confidence(0.9))
    yield "a rule that is not calibrated", made


def around_networks():
    """Pairs (name, fitted selector) that need torch."""
    import torch

    X, y = make_rows()
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(5, 3)
    ).double()
    logistic = LogisticRegression().fit(X, y)
    yield "dropout", selector(net, policy="static").fit(X, y)
    for kind in ("output", "last-layer", "low-rank"):
        adapted = predict.ReparametrizedPredictor(net, kind, **NEURAL, gate=False, random_state=0)
        yield kind, selector(net, adaptation=adapted, policy="static").fit(X, y)
    masked = predict.MaskTrainedPredictor(logistic, **NEURAL, reparametrized=True, random_state=0)
    yield "masked", selector(logistic, adaptation=masked, epistemic=None, policy="static").fit(X, y)
    yield "q-network", selector(logistic, policy=DQN(n_episodes=4, hidden=4), epistemic=None).fit(X, y)
    yield "value network", selector(logistic, policy=Greedy("network")).fit(X[:30], y[:30])


def around_images():
    """Pairs (name, fitted selector) of images."""
    from torch import nn

    from askwise import vision

    rng = np.random.default_rng(0)
    images = rng.random((40, 1, 8, 8)).astype(np.float32), rng.integers(3, size=40)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(18, 5),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(5, 3),
    )
    grid = vision.PatchGrid(2, 2)
    value = vision.PatchValueNetwork(rounds=1, n_states=20, epochs=1, n_candidates=2, hidden=4, batch_size=16)
    adapted = vision.PatchNetwork(pretrain_epochs=1, adapter_epochs=1)
    yield "images", selector(net, groups=grid, policy="greedy").fit(*images)
    yield "default order", selector(net, groups=grid, policy=vision.BestOrder()).fit(*images)
    yield "patch network", selector(net, groups=grid, adaptation="mean", policy=Greedy(value)).fit(*images)
    yield (
        "adapted",
        selector(net, groups=grid, adaptation=adapted, policy=Greedy(vision.SimilarImageValue(10))).fit(*images),
    )
    in_turns = vision.AlternatingTraining(1, 1, random_state=0)
    yield "in turns", in_turns.applied(selector(net, groups=grid, adaptation="mean", policy="static").fit(*images))
