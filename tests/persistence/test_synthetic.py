"""Saving without training rows: none is in the folder, and what that changes is measured."""

import json

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from tests.persistence import cases
from tests.persistence.layout import version_of

import askwise
from askwise import predict
from askwise.errors import InvalidInput
from askwise.persistence.synthetic import TableModel
from askwise.policy import DQN, Greedy
from askwise.stopping import Confidence
from askwise.table.rows import EncodedRows
from askwise.table.schema import read_table

safetensors = pytest.importorskip("safetensors.numpy")
pytest.importorskip("skops")


def test_no_value_of_a_training_row_is_in_the_folder(tmp_path, capsys):
    """The numbers have so many digits that none comes up again by chance."""
    pytest.importorskip("torch")
    X, y = cases.make_rows(80)
    X = X.drop(columns="d")
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    masked = predict.MaskTrainedPredictor(tree, **cases.NEURAL, random_state=0)
    for options in (
        {},
        {"epistemic": "distance"},
        {"adaptation": "rules"},
        {"adaptation": predict.ImputedPredictor(tree, "marginal", 20, random_state=0)},
        {"adaptation": predict.LocalPredictor(tree), "policy": "static"},
        {"adaptation": masked, "policy": "static"},
        {"policy": Greedy("network"), "epistemic": None},
        {"policy": DQN(n_episodes=4, hidden=4), "epistemic": None},
    ):
        given = cases.selector(forest if not options else tree, **options).fit(X, y)
        report = given.save(tmp_path / "saved", rows="synthetic")
        assert str(report) in capsys.readouterr().out
        numbers = set(X.to_numpy().ravel().tolist())
        version = version_of(tmp_path / "saved")
        for name, array in safetensors.load((version / "arrays.safetensors").read_bytes()).items():
            assert not numbers & set(array.ravel().tolist()), f"{options}: array {name}"
        assert not [number for number in numbers if repr(number) in (version / "state.json").read_text()]
        manifest = json.loads((tmp_path / "saved" / "manifest.json").read_text())
        assert manifest["training_rows"] == 0
        assert manifest["synthetic"]["n_training_rows"] == 80
        loaded = askwise.load(tmp_path / "saved")
        assert loaded.predict_proba(X).shape == (80, 3)
        assert loaded.start(budget=1).suggest() is not None


def test_what_it_costs_and_hides_is_measured(tmp_path):
    X, y = cases.make_mixed(300)
    steps = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    X = X.assign(a=X["a"].mask(X["b"] > 1), text=X["text"].where(X["c"] < 1))
    given = cases.selector(steps, epistemic=None).fit(X, y)
    given.stop_ = Confidence(0.9)
    report = given.save(tmp_path / "saved", rows="synthetic")
    assert report.n_rows == 300
    assert report.accuracy_before - 0.08 < report.accuracy_after <= 1
    assert report.same_decision > 0.7
    assert report.copies == 0
    assert report.nearest_synthetic[1] > 0.5 * report.nearest_real[1]
    assert "calibrated stop" in report.dropped[0]
    loaded = askwise.load(tmp_path / "saved")
    assert loaded.stop_ is None
    rows = loaded.predictor_.training_rows_
    there = given.predictor_.training_rows_.observed.mean(axis=0)
    np.testing.assert_allclose(rows.observed.mean(axis=0), there, atol=0.08)
    assert set(np.unique(rows.values[:, list(X).index("flag")])) == {0.0, 1.0}


def test_the_model_of_the_table_keeps_distributions_and_correlations():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    first = rng.normal(size=2000) + 2 * y
    second = np.exp(first + 0.5 * rng.normal(size=2000))
    few = np.rint(first).clip(-1, 3)
    values = np.column_stack([first, second, few])
    drawn, labels = TableModel(EncodedRows(values), y, np.eye(2)[y], read_table(values)[0]).draw(2000, rng)
    for label in (0, 1):
        real, made = values[y == label], drawn.values[labels == label]
        np.testing.assert_allclose(np.median(made, axis=0), np.median(real, axis=0), rtol=0.15, atol=0.15)
        assert np.corrcoef(made[:, 0], np.log(made[:, 1]))[0, 1] > 0.8
    assert set(np.unique(drawn.values[:, 2])) <= set(np.unique(few))
    assert not set(first) & set(drawn.values[:, 0])


def test_models_that_hold_rows_are_refused(tmp_path):
    X, y = cases.make_rows()
    imputed = make_pipeline(KNNImputer(), LogisticRegression())
    vectors = CalibratedClassifierCV(SVC(), cv=2)
    for model in (KNeighborsClassifier(), vectors, GaussianProcessClassifier(), imputed):
        given = cases.selector(model, epistemic=None, policy="static").fit(X, y)
        with pytest.raises(InvalidInput, match="holds training rows itself"):
            given.save(tmp_path / "saved", rows="synthetic")
    assert not (tmp_path / "saved").exists()
    holding = cases.selector(LogisticRegression(), epistemic=None).fit(X, y)
    holding.notes_ = X.to_numpy()
    with pytest.raises(InvalidInput, match=r"selector\.notes_ holds 60 training rows"):
        holding.save(tmp_path / "saved", rows="synthetic")
