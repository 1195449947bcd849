"""Models of users from files, by their ending, through `askwise fit` and back."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import askwise
from askwise.cli.app import app
from askwise.errors import InvalidInput
from askwise.persistence.model_file import read_model, read_program

skops = pytest.importorskip("skops.io")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)).round(3), columns=["a", "b", "c"])
    y = np.where(X["a"] + X["b"] > 0, "yes", "no")
    folder = tmp_path_factory.mktemp("models")
    X[["c", "a", "b"]].assign(label=y).to_csv(folder / "train.csv", index=False)  # in another order
    return folder, X, y


def fitted(folder, name, *more, code=0):
    out = folder / f"selector-{name}"
    options = ["--target", "label", "--model", folder / name, "-o", out, *more]
    result = CliRunner().invoke(app, [str(option) for option in ["fit", folder / "train.csv", *options]])
    assert result.exit_code == code, result.output
    return result.stderr if code else out


def same(folder, X, expected, **given):
    """The saved selector predicts complete rows like the model."""
    selector = askwise.load(folder, **given)
    order = [column.name for column in selector.schema_.columns]
    assert sorted(order) == ["a", "b", "c"]
    yes = selector.classes_.tolist().index("yes")
    np.testing.assert_allclose(selector.predict_proba(X[order])[:, yes], expected, atol=1e-5)


def test_skops(rows):
    folder, X, y = rows
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    skops.dump(model, folder / "model.skops")
    same(fitted(folder, "model.skops"), X, model.predict_proba(X)[:, 1])
    assert "leave it out where the model knows its classes" in fitted(
        folder, "model.skops", "--classes", "no,yes", code=2
    )
    other = LogisticRegression().fit(X.rename(columns={"a": "alpha"}), y)
    skops.dump(other, folder / "other.skops")
    said = fitted(folder, "other.skops", code=2)
    assert "Missing: 'alpha'; not known to the model: 'a'" in said
    (folder / "broken.skops").write_bytes(b"no zip archive")
    assert "is not a skops file" in fitted(folder, "broken.skops", code=2)


def test_boosters(rows):
    folder, X, y = rows
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    codes = (y == "yes").astype(int)
    boosted = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(X, codes)
    for name in ("model.ubj", "model.json"):
        boosted.get_booster().save_model(folder / name)
        same(fitted(folder, name, "--classes", "no,yes"), X, boosted.predict_proba(X)[:, 1])
    light = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(X, codes)
    light.booster_.save_model(folder / "model.txt")
    same(fitted(folder, "model.txt", "--classes", "no,yes"), X, light.predict_proba(X)[:, 1])
    assert "--classes no,yes" in fitted(folder, "model.txt", code=2)
    assert "leaves out 'yes'" in fitted(folder, "model.txt", "--classes", "no,maybe", code=2)
    (folder / "broken.txt").write_text("not a booster")
    assert "no model that lightgbm can read" in fitted(folder, "broken.txt", "--classes", "no,yes", code=2)


def test_catboost(rows):
    folder, X, y = rows
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=3, verbose=False, allow_writing_files=False).fit(X, y)
    model.save_model(str(folder / "model.cbm"))
    same(fitted(folder, "model.cbm"), X, model.predict_proba(X)[:, 1])


def test_onnx(rows):
    folder, X, y = rows
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    order = ["c", "a", "b"]  # that of the table: an ONNX model of one matrix knows no names
    model = LogisticRegression().fit(X[order].to_numpy(), y)
    numbers = X[order].to_numpy(dtype=np.float32)
    made = skl2onnx.to_onnx(model, numbers[:1], options={"zipmap": False})
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    same(fitted(folder, "model.onnx", "--classes", "no,yes"), X, model.predict_proba(numbers)[:, 1])


def test_exported_torch_program(rows):
    folder, X, _ = rows
    torch = pytest.importorskip("torch")
    network = torch.nn.Linear(3, 2)
    network.load_state_dict({"weight": torch.tensor([[0.0, -1, -1], [0, 1, 1]]), "bias": torch.zeros(2)})
    example = torch.zeros(2, 3)
    program = torch.export.export(network, (example,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch.export.save(program, folder / "model.pt2")
    out = fitted(folder, "model.pt2", "--classes", "no,yes")
    with pytest.raises(InvalidInput, match="does not hold the wrapped model"):
        askwise.load(out)
    with torch.no_grad():
        cells = torch.as_tensor(X[["c", "a", "b"]].to_numpy(dtype=np.float32).copy())
        expected = torch.softmax(network(cells), dim=1)[:, 1].numpy()
    same(out, X, expected, model=read_program(folder / "model.pt2"))
    command = ["explain", out, folder / "train.csv", "--case", "1"]
    refused = CliRunner().invoke(app, [*map(str, command)])
    assert refused.exit_code == 3
    assert "--model-file FILE" in refused.stderr
    shown = CliRunner().invoke(app, [*map(str, command), "--model-file", str(folder / "model.pt2")])
    assert shown.exit_code == 0, shown.output


def test_numbers_as_classes(rows):
    folder, X, y = rows
    lightgbm = pytest.importorskip("lightgbm")
    codes = (y == "yes").astype(int)
    lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(X, codes).booster_.save_model(folder / "codes.txt")
    assert read_model(folder / "codes.txt", codes, None).classes == [0, 1]
    assert read_model(folder / "codes.txt", 5 * codes, ["5", "0"]).classes == [5, 0]
    with pytest.raises(InvalidInput, match="must be numbers"):
        read_model(folder / "codes.txt", codes, ["0", "1", "two"])
