"""Models of other libraries as functions: the same probabilities as the library gives, and faults by name."""

import builtins
import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import wrap
from askwise.errors import AskwiseError, InvalidInput
from askwise.predict import BoosterModel, OnnxModel

NAMES = ["age", "pulse", "iron"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=NAMES)
    return X, np.digitize(X["age"] + X["iron"], [-0.6, 0.6])


@pytest.fixture(scope="module")
def content(rows):
    """A logistic regression as ONNX, and itself."""
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    X, y = rows
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.to_numpy(), y)
    made = skl2onnx.to_onnx(model, X.to_numpy()[:1], options={"zipmap": False})
    return made.SerializeToString(), model


def by_column(rows, names=("age", "iron")):
    """An ONNX model with an input for each column, whose sum decides."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(name, kind, [None, 1]) for name in names]
    nodes = [
        helper.make_node("Sum", list(names), ["sum"]),
        helper.make_node("Sigmoid", ["sum"], ["second"]),
        helper.make_node("Sub", ["one", "second"], ["first"]),
        helper.make_node("Concat", ["first", "second"], ["proba"], axis=1),
    ]
    one = helper.make_tensor("one", kind, [1, 1], [1.0])
    output = helper.make_tensor_value_info("proba", kind, [None, 2])
    graph = helper.make_graph(nodes, "by column", inputs, [output], [one])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return OnnxModel(made.SerializeToString())


def test_onnx_says_what_the_model_says(rows, content, tmp_path):
    X, _ = rows
    data, model = content
    (tmp_path / "model.onnx").write_bytes(data)
    expected = model.predict_proba(X.to_numpy())
    for given in (data, tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        found = OnnxModel(given)(X)
        assert found.dtype == float
        assert_allclose(found, expected, atol=1e-5)
    assert_allclose(OnnxModel(data)(X.to_numpy()), expected, atol=1e-5)
    wrapped = wrap(OnnxModel(data), classes=["low", "middle", "high"])
    assert wrapped.predict(X).tolist() == np.array(["low", "middle", "high"])[expected.argmax(axis=1)].tolist()


def test_a_copy_opens_a_session_of_its_own(rows, content):
    X, _ = rows
    model = OnnxModel(content[0])
    model(X)
    assert model.__getstate__() == {"content": content[0], "_session": None}
    assert_allclose(copy.deepcopy(model)(X), model(X))


def test_onnx_inputs_by_name_are_found_in_any_order(rows):
    X, _ = rows
    model = by_column(rows)
    second = 1 / (1 + np.exp(-(X["age"] + X["iron"]).to_numpy()))
    for table in (X, X[NAMES[::-1]]):
        assert_allclose(model(table), np.column_stack([1 - second, second]), atol=1e-6)
    with pytest.raises(InvalidInput, match="has the input 'iron', and X no column of that name"):
        model(X[["age", "pulse"]])
    with pytest.raises(InvalidInput, match="has the input 'age'"):
        model(X.to_numpy())
    single = by_column(rows, ("age",))
    assert_allclose(single(X[["age"]])[:, 1], 1 / (1 + np.exp(-X["age"])), atol=1e-6)
    assert_allclose(single(X[["age"]].to_numpy()), single(X[["age"]]))


def test_onnx_models_that_cannot_be_used_are_refused(rows, tmp_path, monkeypatch):
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    X, y = rows
    with pytest.raises(InvalidInput, match=r"nowhere\.onnx cannot be read: No such file"):
        OnnxModel(tmp_path / "nowhere.onnx")
    with pytest.raises(InvalidInput, match="onnxruntime cannot read the model"):
        OnnxModel(b"no model")(X)
    numbers = X.to_numpy(dtype=np.float32)
    made = skl2onnx.to_onnx(LogisticRegression().fit(numbers, y), numbers[:1])
    with pytest.raises(InvalidInput, match="turn ZipMap off"):
        OnnxModel(made.SerializeToString())(X)

    importing = builtins.__import__

    def without(name, *rest):
        if name == "onnxruntime":
            raise ImportError
        return importing(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AskwiseError, match=r'needs onnxruntime: pip install "askwise\[onnx\]"'):
        OnnxModel(b"")(X)


def xgboost_of(X, y):
    xgboost = pytest.importorskip("xgboost")
    named = isinstance(X, pd.DataFrame)
    data = xgboost.DMatrix(np.asarray(X), y, feature_names=list(X.columns) if named else None)
    settings = {"objective": "multi:softprob", "num_class": 3, "nthread": 1, "max_depth": 2}
    return xgboost.train(settings, data, 3), lambda booster, cells: booster.predict(
        xgboost.DMatrix(cells, feature_names=booster.feature_names)
    )


def lightgbm_of(X, y):
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"objective": "multiclass", "num_class": 3, "num_threads": 1, "verbose": -1}
    return lightgbm.train(settings, lightgbm.Dataset(X, y), 3), lambda booster, cells: booster.predict(cells)


def catboost_of(X, y):
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    return catboost.CatBoostClassifier(**settings).fit(X, y), lambda model, cells: model.predict_proba(cells)


@pytest.mark.parametrize("train", [xgboost_of, lightgbm_of, catboost_of])
def test_a_booster_says_what_its_library_says(rows, train):
    X, y = rows
    booster, predict = train(X, y)
    model, expected = BoosterModel(booster), predict(booster, X.to_numpy())
    assert model.names == NAMES
    assert expected.shape == (120, 3)
    for given in (X, X[NAMES[::-1]], X.to_numpy()):  # matched by name, not by place
        assert_allclose(model(given), expected)
    unnamed = BoosterModel(train(X.to_numpy(), y)[0])
    assert unnamed.names is None
    assert_allclose(unnamed(X), expected, atol=1e-6)
    classes = wrap(model, classes=["low", "middle", "high"])
    assert_allclose(classes.predict_proba(X), expected, atol=1e-6)


def test_text_is_refused_by_boosters_of_numbers(rows):
    X, y = rows
    booster, _ = lightgbm_of(X, y)
    with pytest.raises(InvalidInput, match=r"takes numbers only .* Turn text into numbers first"):
        BoosterModel(booster)(X.assign(age="old"))
