"""Pipelines around the boosting libraries through the commands, and what must be trusted by name."""

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import askwise
from tests.commands import run

skops = pytest.importorskip("skops.io")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.normal(size=150), "c": rng.choice(["u", "v"], 150)}).round(3)
    y = (X["a"] + X["b"] + (X["c"] == "u") > 0.5).astype(int).to_numpy()
    folder = tmp_path_factory.mktemp("boosting")
    X[:100].assign(label=y[:100]).to_csv(folder / "train.csv", index=False)
    X[100:].assign(label=y[100:]).to_csv(folder / "test.csv", index=False)
    return folder, X, y


def halved(cells: pd.DataFrame) -> pd.DataFrame:
    """A function of a user's own, which a file may name only if it is trusted."""
    return cells / 2


def classifier(library: str) -> Any:
    module = pytest.importorskip(library)
    if library == "xgboost":
        return module.XGBClassifier(n_estimators=3, max_depth=2)
    if library == "lightgbm":
        return module.LGBMClassifier(n_estimators=3, verbose=-1)
    return module.CatBoostClassifier(iterations=3, verbose=False, allow_writing_files=False)


def pipeline(model: Any) -> Any:
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["c"]))
    return make_pipeline(columns, model)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_pipelines_load_in_every_command_without_being_named(rows, library, tmp_path):
    folder, X, y = rows
    model = pipeline(classifier(library)).fit(X[:100], y[:100])
    skops.dump(model, tmp_path / "model.skops")
    saved, test = tmp_path / "selector", folder / "test.csv"
    fit = ["fit", folder / "train.csv", "--target", "label", "--model", tmp_path / "model.skops", "-o", saved]
    run(*fit, "--json")
    given = X[100:].assign(c=X["c"][100:].astype(object))
    np.testing.assert_array_equal(askwise.load(saved).predict_proba(given), model.predict_proba(X[100:]))
    run("evaluate", saved, test, "-o", tmp_path / "page.html")
    found = json.loads(run("ask", saved, "--json", text="0.1\n0.2\nu\n").stdout)
    assert set(found["probabilities"]) == {"0", "1"}
    run("acquire", saved, test, "-o", tmp_path / "out.csv")
    assert len(pd.read_csv(tmp_path / "out.csv")) == 50
    run("explain", saved, test, "--case", 1)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_boosting_inside_other_estimators_loads_too(rows, library, tmp_path):
    folder, X, y = rows
    model = CalibratedClassifierCV(pipeline(classifier(library)), cv=2).fit(X[:100], y[:100])
    skops.dump(model, tmp_path / "model.skops")
    fit = ["fit", folder / "train.csv", "--target", "label", "--model", tmp_path / "model.skops"]
    run(*fit, "-o", tmp_path / "selector")
    loaded = askwise.load(tmp_path / "selector")
    np.testing.assert_array_equal(loaded.predict_proba(X[100:]), model.predict_proba(X[100:]))


def test_messages_advise_the_option_of_the_command(rows, tmp_path):
    """A function of a user is refused by every command until it is named with --trust."""
    folder, X, y = rows
    columns = make_column_transformer((FunctionTransformer(halved), ["a", "b"]), (OneHotEncoder(), ["c"]))
    model = make_pipeline(columns, classifier("lightgbm")).fit(X[:100], y[:100])
    skops.dump(model, tmp_path / "model.skops")
    name = f"{__name__}.halved"
    fit = ["fit", folder / "train.csv", "--target", "label", "--model", tmp_path / "model.skops"]
    said = run(*fit, "-o", tmp_path / "selector", code=2).stderr
    assert f"name them: --trust {name}." in said
    assert "askwise.load" not in said
    said = run(*fit, "-o", tmp_path / "selector", "--trust", name).stdout
    assert f"add --trust {name}" in said
    saved, test = tmp_path / "selector", folder / "test.csv"
    for command in (
        ["evaluate", saved, test, "-o", tmp_path / "page.html"],
        ["ask", saved],
        ["explain", saved, test, "--case", 1],
        ["acquire", saved, test, "-o", tmp_path / "out.csv"],
        ["serve", saved, "--port", 0],
    ):
        said = run(*command, code=3).stderr
        assert f"--trust {name}." in said, command
        assert "askwise.load" not in said
        if command[0] != "serve":
            run(*command, "--trust", name, text="q\n")


def test_one_name_for_trust_in_every_command():
    for command in ("fit", "evaluate", "ask", "explain", "acquire", "serve"):
        said = run(command, "-h").stdout
        assert "--trust" in said
        assert not re.search(r"--trusted(?![-\w])", said)
    said = run("serve", "nowhere", "--trusted", "a.B", code=3).stderr
    assert "is not a folder" in said
