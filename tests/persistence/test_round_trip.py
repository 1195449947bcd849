"""What is loaded equals what was saved, bit for bit, for every class of the package."""

import importlib
import json
import pkgutil
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.persistence import cases
from tests.persistence.layout import change_manifest, rewrite, version_of
from tests.persistence.round_trips import classes_that_come_back, same, some_rows

import askwise
from askwise import (
    DynamicFeatureSelector,
    case,
    epistemic,
    explain,
    policy,
    predict,
    stopping,
    trees,
    value,
    vision,
)
from askwise.acquirer import FeatureAcquirer
from askwise.acquisition import Acquisition, PolicyMasks
from askwise.epistemic import EpistemicEstimator
from askwise.errors import AskwiseError, InvalidInput
from askwise.persistence.classes import MOVED, present_name
from askwise.policy import Policy
from askwise.predict import SubsetPredictor
from askwise.stopping import Stopping
from askwise.trajectory import Trajectory
from askwise.trees.growth import ProbableClassifier

pytest.importorskip("safetensors")
pytest.importorskip("skops")

FAMILIES = (SubsetPredictor, EpistemicEstimator, Policy, Stopping, FeatureAcquirer, ProbableClassifier)
PACKAGES = (case, epistemic, explain, policy, predict, stopping, trees, value, vision)
ABSTRACT = {
    *(family.__name__ for family in FAMILIES),
    "_AnsweredPool",
}
NOT_KEPT = {
    "Acquisition": "a run",
    "Answer": "a result",
    "Assessment": "a result",
    "BoosterModel": "a model from a file, tested with those",
    "Flowchart": "a result",
    "Grouping": "a protocol",
    "HeldOutStates": "while a value network is trained",
    "AlternatingTraining": "a way of training",
    "OnPolicyTraining": "a way of training",
    "OncePerState": "while budgets are compared",
    "OnnxModel": "a model from a file, tested below",
    "Next": "a result",
    "PolicyMasks": "while a network is trained",
    "QuickCase": "a case",
    "QuickSelector": "made from a selector, which is saved",
    "Reasons": "a result",
    "Report": "a result",
    "SeenGains": "while usual gains are learned",
    "Session": "a case",
    "State": "a protocol",
    "StopMonitor": "watches served cases",
    "SuggestedSet": "a result",
    "Suggestion": "a result",
    "Trajectory": "a result",
    "Value": "a protocol",
    "_Exploring": "while a network is trained",
    "_NotingGains": "while usual gains are learned",
    "_Sampled": "while a network is trained",
}
"""Classes that are not part of a fitted selector, and why; every other one must have a case in cases.py."""


def every_class():
    """All concrete classes of the families of a fitted selector, public or not, and all other public classes."""
    for module in pkgutil.walk_packages(askwise.__path__, "askwise."):
        if module.name.split(".")[1] != "cli":
            importlib.import_module(module.name)
    public = [getattr(package, name) for package in PACKAGES for name in package.__all__]
    public += [Acquisition, PolicyMasks, Trajectory]  # of modules that are no packages
    found, open_classes = {kind.__name__ for kind in public if isinstance(kind, type)}, list(FAMILIES)
    while open_classes:
        kind = open_classes.pop()
        open_classes += kind.__subclasses__()
        if kind.__module__.startswith("askwise."):
            found.add(kind.__name__)
    return found - ABSTRACT


def test_every_class_comes_back_bit_for_bit(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("xgboost")
    families = (
        *(cases.around_tables, cases.around_trees, cases.around_reference_models, cases.around_stops),
        *(cases.around_networks, cases.around_images),
    )
    seen = classes_that_come_back(families, tmp_path)
    missing = every_class() - seen - set(NOT_KEPT)
    assert not missing, f"add a case for {missing} to cases.py, so that it is known to be saved"
    kept = seen & set(NOT_KEPT)
    assert not kept, f"{kept} are kept after all"
    gone = set(NOT_KEPT) - every_class()
    assert not gone, f"{gone} do not exist"


def test_rules_of_stops_and_handovers_hold_after_loading(tmp_path):
    handed_over = []
    for path, saved in cases.around_stops():
        saved.save(tmp_path / "saved")
        loaded = askwise.load(tmp_path / "saved")
        X = cases.make_rows(60, 5)[0]
        runs = [one.acquire(X, budget=2, stop=one.stop_) for one in (saved, loaded)]
        pd.testing.assert_frame_equal(runs[0].to_frame(), runs[1].to_frame(), check_exact=True, obj=path)
        if saved.handover_ is not None:
            assert loaded.handover_ is not None
            assert loaded.handover_.stop is loaded.stop_  # else the rule would never be used
            handed_over.append(runs[1].handed_over)
    assert len(handed_over) == 4
    assert all(np.any(found) for found in handed_over)


def test_earlier_names_of_modules_are_read(tmp_path):
    X, y = cases.make_rows()
    saved = cases.selector(LogisticRegression(), error_costs=[[0, 9, 9], [9, 0, 9], [9, 9, 0]]).fit(X, y)
    saved.save(tmp_path / "saved")
    state = (version_of(tmp_path / "saved") / "state.json").read_text()
    for old, new in MOVED.items():
        state = state.replace(f'"{new}', f'"{old}')
    named = {node["class"] for node in json.loads(state)["nodes"] if "class" in node}
    assert "askwise.acquire.stopping.pays_off.ExpectedSaving" in named
    assert "askwise.rows.EncodedRows" in named
    assert not {name for name in named if present_name(name) == name and name.startswith(tuple(MOVED.values()))}
    rewrite(tmp_path / "saved", "state.json", state.encode())
    change_manifest(tmp_path / "saved", format_version=6)
    same(saved, askwise.load(tmp_path / "saved"), some_rows(saved), "earlier names")


def test_what_is_shared_stays_shared(tmp_path):
    X, y = cases.make_rows()
    saved = cases.selector(DecisionTreeClassifier(random_state=0)).fit(X, y)
    saved.save(tmp_path / "saved")
    loaded = askwise.load(tmp_path / "saved")
    assert loaded.beliefs_.predictor is loaded.predictor_
    assert loaded.beliefs_.novelty is not None
    assert loaded.predictor_.neighbors_ is loaded.beliefs_.novelty.neighbors
    assert loaded.predictor_.model_.estimator is loaded.estimator_
    assert loaded.policy_.value_.beliefs is loaded.beliefs_
    assert loaded.schema_ is loaded.predictor_.schema_
    again = loaded.fit(X, y)  # a loaded selector is a selector like any other
    np.testing.assert_array_equal(again.predict_proba(X), saved.predict_proba(X))


def test_boosters_are_saved_in_their_own_formats(tmp_path):
    X, y = cases.make_rows()
    codes = np.unique(y, return_inverse=True)[1]
    models = []
    for module, name, options in (
        ("xgboost", "XGBClassifier", {"n_estimators": 2, "max_depth": 2}),
        ("lightgbm", "LGBMClassifier", {"n_estimators": 2, "min_child_samples": 5, "verbose": -1}),
        ("catboost", "CatBoostClassifier", {"iterations": 2, "verbose": 0, "allow_writing_files": False}),
    ):
        try:
            models.append(getattr(importlib.import_module(module), name)(**options).fit(X, codes))
        except ImportError:
            continue
    if not models:
        pytest.skip("no booster is installed")
    members = [make_pipeline(StandardScaler(), type(models[0])(**models[0].get_params())).fit(X, codes)]
    for model in models:
        ensemble = epistemic.AuxiliaryEnsemble(estimators=members)
        saved = cases.selector(model, epistemic=ensemble).fit(X, codes)
        saved.save(tmp_path / "saved")
        same(saved, askwise.load(tmp_path / "saved"), some_rows(saved), type(model).__name__)


def test_functions_and_own_modules_are_given_again(tmp_path):
    torch = pytest.importorskip("torch")
    X, y = cases.make_rows()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)

    class Net(torch.nn.Module):  # type: ignore[name-defined, misc, unused-ignore]
        def __init__(self):
            super().__init__()
            self.body, self.head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 3)

        def forward(self, rows):
            return self.head(torch.tanh(self.body(rows)))

    torch.manual_seed(1)
    net = Net()
    other = Net()
    for model, given in ((tree.predict_proba, tree.predict_proba), (net, other), (net, Net)):
        saved = cases.selector(model, policy="static").fit(X, y)
        saved.save(tmp_path / "saved")
        with pytest.raises(InvalidInput, match=r"does not hold the wrapped model.*model="):
            askwise.load(tmp_path / "saved")
        same(saved, askwise.load(tmp_path / "saved", model=given), some_rows(saved), "given")
    assert not torch.equal(other.body.weight, net.body.weight)  # what was given is not changed
    cases.selector(tree.predict_proba, policy="static").fit(X, y).save(tmp_path / "tree")
    with pytest.raises(InvalidInput, match="not the one that was saved"):
        askwise.load(tmp_path / "tree", model=LogisticRegression().fit(X, y).predict_proba)
    with pytest.raises(InvalidInput, match="not of the structure"):
        askwise.load(tmp_path / "saved", model=torch.nn.Linear(4, 3))
    members = epistemic.AuxiliaryEnsemble(estimators=[askwise.wrap(tree.predict_proba, tree.classes_)])
    two = cases.selector(net, epistemic=members).fit(X, y)
    with pytest.raises(InvalidInput, match="second function or module"):
        two.save(tmp_path / "saved")


def test_an_onnx_model_is_in_the_folder(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    X, y = cases.make_rows()
    logistic = LogisticRegression().fit(X.to_numpy(), y)
    content = skl2onnx.to_onnx(logistic, X.to_numpy(), options={"zipmap": False}).SerializeToString()
    (tmp_path / "model.onnx").write_bytes(content)
    model = predict.OnnxModel(tmp_path / "model.onnx")
    saved = cases.selector(askwise.wrap(model, logistic.classes_), policy="static").fit(X, y)
    np.testing.assert_allclose(saved.predict_proba(X), logistic.predict_proba(X.to_numpy()), atol=1e-5)
    saved.save(tmp_path / "saved")
    same(saved, askwise.load(tmp_path / "saved"), some_rows(saved), "onnx")


def test_classes_of_users_must_be_trusted(tmp_path):
    X, y = cases.make_rows()
    saved = cases.selector(LogisticRegression(), policy=Alphabetical(), epistemic=None).fit(X, y)
    saved.save(tmp_path / "saved")
    name = f"{Alphabetical.__module__}.Alphabetical"
    assert json.loads((tmp_path / "saved" / "manifest.json").read_text())["trusted"] == [name]
    with pytest.raises(InvalidInput, match=rf"trusted=\['{name}'\]"):
        askwise.load(tmp_path / "saved")
    for trusted in ([name], [Alphabetical]):
        same(saved, askwise.load(tmp_path / "saved", trusted=trusted), some_rows(saved), "trusted")


def test_what_cannot_be_saved_is_named(tmp_path):
    X, y = cases.make_rows()
    saved = cases.selector(LogisticRegression()).fit(X, y)
    saved.extra_ = [1, lambda x: x]
    with pytest.raises(InvalidInput, match=r"selector\.extra_\[1\] is a function"):
        saved.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    with pytest.raises(InvalidInput, match="rows must be one of"):
        saved.save(tmp_path / "saved", rows="none")
    with pytest.raises(Exception, match="not fitted"):
        DynamicFeatureSelector(LogisticRegression()).save(tmp_path / "saved")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    X, y = cases.make_rows()
    saved = cases.selector(LogisticRegression(), epistemic=None, policy="static").fit(X, y)
    for package in ("skops.io", "safetensors"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, package, None)
            with pytest.raises(AskwiseError, match=r"askwise\[persistence\]"):
                saved.save(tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_the_manifest_says_what_is_inside(tmp_path):
    X, y = cases.make_mixed()
    steps = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    cases.selector(steps, epistemic=None).fit(X, y).save(tmp_path / "saved")
    manifest = json.loads((tmp_path / "saved" / "manifest.json").read_text())
    assert manifest["training_rows"] == len(X)
    assert manifest["askwise"] == askwise.__version__
    assert {"numpy", "scikit-learn", "skops"} <= set(manifest["libraries"])
    assert [column["name"] for column in manifest["schema"]["columns"]] == list(X)
    assert manifest["schema"]["columns"][3]["categories"] == ["down", "up"]
    assert set(manifest["files"]) == {path.name for path in version_of(tmp_path / "saved").iterdir()}
    assert isinstance(askwise.load(tmp_path / "saved").schema_.columns[4].dtype, pd.CategoricalDtype)


class Alphabetical(Policy):
    """A policy of a user."""

    def scores(self, state):
        return np.where(state.mask, -np.inf, -np.arange(state.mask.shape[1], dtype=float))
