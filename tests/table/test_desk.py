"""What a desk sees of a selector: completed, saved, loaded, and refused where it is wrong."""

import json
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.persistence.layout import version_of

import askwise
from askwise.errors import InvalidInput
from askwise.table.desk import Desk, Shown


@pytest.fixture(scope="module")
def selector():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.integers(20, 80, 120), "a": rng.normal(size=120), "b": rng.choice(["x", "y"], 120), "c": 1.5}
    )
    y = np.where(X["age"] > 50, "old", "young")
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    wrapped = askwise.DynamicFeatureSelector(model, groups={"panel": ["a", "b"]}, epistemic=None, calibration=None)
    return wrapped.fit(X, y)


def test_what_is_not_given_comes_from_the_training_rows(selector):
    desk = Desk.of(selector, Desk("EUR", {"age": Shown("Age", "years", low=0), "panel": Shown("Lab panel")}))
    age = desk.features["age"]
    assert (age.label, age.unit, age.low, age.values) == ("Age", "years", 0, None)
    assert 70 <= (age.high or 0) < 80
    assert desk.features["panel"] == Shown("Lab panel")
    assert desk.features["b"].values == ["x", "y"]
    assert (desk.features["a"].low or 0) < 0 < (desk.features["a"].high or 0)
    assert Desk.of(selector).label("c") == "c"
    with pytest.raises(InvalidInput, match="no feature 'agee'"):
        Desk.of(selector, Desk(None, {"agee": Shown("Age")}))


def test_anything_else_than_a_desk_is_refused(selector, tmp_path):
    wrong: Any
    for wrong in ("desk", 5):
        for call in (selector.start().why, partial(selector.save, tmp_path / "x", "training", None)):
            with pytest.raises(InvalidInput, match=f"desk must be an askwise.table.desk.Desk or None; got {wrong!r}"):
                call(wrong)


def test_it_is_saved_with_the_selector_and_covered_by_its_checksums(selector, tmp_path):
    pytest.importorskip("safetensors")
    given = Desk("EUR", {"age": Shown("Age", "years")})
    selector.save(tmp_path / "with", desk=given)
    selector.save(tmp_path / "without")
    again = askwise.load(tmp_path / "with")
    assert Desk.load(tmp_path / "with", again) == Desk.of(selector, given)
    assert Desk.load(tmp_path / "without", again) == Desk.of(selector)
    manifest = json.loads((tmp_path / "with" / "manifest.json").read_text())
    assert "desk.json" in manifest["files"]
    path = version_of(tmp_path / "with") / "desk.json"
    path.write_text(path.read_text().replace("EUR", "USD"))
    for reading in (lambda: Desk.load(tmp_path / "with", again), lambda: askwise.load(tmp_path / "with")):
        with pytest.raises(InvalidInput, match="checksum differs"):
            reading()


def test_ranges_of_a_folder_without_training_rows_are_those_of_the_drawn_rows(selector, tmp_path, capsys):
    pytest.importorskip("safetensors")
    selector.save(tmp_path / "drawn", rows="synthetic", desk=Desk("EUR"))
    drawn = askwise.load(tmp_path / "drawn")
    low = json.loads((version_of(tmp_path / "drawn") / "desk.json").read_text())["features"]["a"]["low"]
    column = [c.name for c in drawn.schema_.columns].index("a")
    assert low == np.nanmin(drawn.predictor_.training_rows_.values[:, column])


def test_a_wrong_entry_is_refused():
    wrong: Any
    for wrong in ([], {"currency": "EUR"}, {"currency": None, "features": {"age": {"low": "young"}}}):
        with pytest.raises(InvalidInput, match=r"desk\.json"):
            Desk.from_dict(wrong)
    assert Desk.from_dict({"currency": None, "features": {"age": {"unit": "y"}}}).features["age"] == Shown("age", "y")


def test_amounts_in_words():
    desk = Desk("CAD")
    assert [desk.amount(x) for x in (0, 1, 7.2699, 1234.5, 0.001)] == [
        "0 CAD",
        "1 CAD",
        "7.27 CAD",
        "1,234.50 CAD",
        "0.001 CAD",
    ]
    assert desk.money(0) == "free"
