"""Acquisition from Parquet in parts: the same result whoever works on it, and whatever is interrupted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.scale.tasks import always_dies, dies_once

from askwise import DynamicFeatureSelector
from askwise.errors import AskwiseError, InvalidInput
from askwise.scale import acquire_parquet, engines, parts, plan

pytest.importorskip("pyarrow")
pytest.importorskip("skops")

N, STEP = 130, 20


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A saved selector and its cases: two files, several row groups, none a multiple of the parts."""
    folder = tmp_path_factory.mktemp("scale")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N + 100, 4)), columns=list("abcd"))
    y = np.where(X["a"] + X["b"] > 0, "yes", "no")
    options: dict[str, Any] = {"policy": "static", "calibration": None, "random_state": 0, "progress": False}
    DynamicFeatureSelector(LogisticRegression(), **options).fit(X[:100], y[:100]).save(folder / "saved")
    cases = X[100:].reset_index(drop=True).mask(rng.random((N, 4)) < 0.1)
    cases = cases.assign(extra="not used", name=[f"case {i}" for i in range(N)])[["name", "extra", *"dcba"]]
    (folder / "cases").mkdir()
    cases[:75].to_parquet(folder / "cases" / "1.parquet", row_group_size=50)
    cases[75:].to_parquet(folder / "cases" / "2.parquet", row_group_size=30)
    return folder


def run(place, output, **options):
    settings = {"budget": 2, "rows_per_part": STEP, "progress": False, **options}
    return acquire_parquet(place / "saved", place / "cases", place / output, **settings)


@pytest.fixture(scope="module")
def whole(place):
    found = run(place, "whole.parquet", write="all")
    assert (found.n_cases, found.n_parts, found.n_resumed) == (N, 3 + 2 + 2 + 2, 0)
    return found.output


def test_it_equals_acquire_in_memory(place, whole):
    from askwise import load

    table, selector = pd.read_parquet(whole), load(place / "saved")
    cases = pd.concat([pd.read_parquet(file) for file in sorted((place / "cases").iterdir())], ignore_index=True)
    together = selector.acquire(cases[selector.features_], budget=2)
    assert table["case"].tolist() == list(range(N))
    assert table["prediction"].tolist() == together.predict().tolist()
    np.testing.assert_allclose(table["proba_yes"], together.proba[:, -1, 1], atol=1e-9)
    names = np.array(selector.features_)
    assert table["bought"].tolist() == [" > ".join(names[order[order >= 0]]) for order in together.order]
    assert (table["spent"] == table["n_bought"]).all()
    assert not (place / ".whole.parquet.parts").exists()


def test_workers_and_engines_write_the_same_bytes(place, whole):
    pytest.importorskip("distributed")
    ways: dict[str, dict[str, Any]] = {"two": {"workers": 2}, "dask": {"engine": "dask", "workers": 2}}
    for name, options in ways.items():
        found = run(place, f"{name}.parquet", write="all", **options)
        assert found.output.read_bytes() == whole.read_bytes(), name


@pytest.fixture(scope="module")
def spark():
    """PySpark and a Java: too large for the other test tools (0.5 GB), so it is installed by who wants it."""
    pytest.importorskip("pyspark", reason='PySpark is not installed: pip install "askwise[spark]"')
    try:
        engines.import_pyspark()
    except AskwiseError as error:
        pytest.skip(str(error))


def test_spark_writes_the_same_bytes(place, whole, spark, tmp_path):
    """`mapInPandas` on two local workers; errors are those of the other engines."""
    found = run(place, "spark.parquet", write="all", engine="spark", workers=2)
    assert found.output.read_bytes() == whole.read_bytes()
    cases = tmp_path / "cases"
    cases.mkdir()
    good = pd.read_parquet(place / "cases" / "1.parquet")
    good.to_parquet(cases / "1.parquet")
    good.drop(columns="a").to_parquet(cases / "2.parquet")
    with pytest.raises(InvalidInput, match=r"2.parquet has no column 'a'"):
        acquire_parquet(place / "saved", cases, tmp_path / "out.parquet", engine="spark", progress=False)


def test_the_share_of_a_killed_spark_worker_is_done_again(tmp_path, spark):
    tasks = [(str(tmp_path), number) for number in range(6)]
    with engines.spark_session(2, None):  # one for both: a session of the process is used
        assert sorted(engines.run_tasks(dies_once, tasks, "spark", 2, None)) == list(range(6))
        assert (tmp_path / "died").exists()
        with pytest.raises(AskwiseError, match=r"gave up a task \(.*failed 4 times.*Finished parts are kept"):
            list(engines.run_tasks(always_dies, [(0,), (1,)], "spark", 2, None))


def test_a_killed_run_is_resumed_and_nothing_is_lost_or_done_twice(place, whole, monkeypatch):
    done: list[Path] = []
    write_part = parts.write_part

    def interrupted(path, table):
        if len(done) == 4:
            raise KeyboardInterrupt
        write_part(path, table)
        done.append(path)

    with monkeypatch.context() as patched:
        patched.setattr(parts, "write_part", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(place, "resumed.parquet", write="all")
    assert not (place / "resumed.parquet").exists()
    finished = {path: path.stat().st_mtime_ns for path in done}
    monkeypatch.setattr(plan.Plan, "remove", lambda plan: None)
    with pytest.raises(InvalidInput, match="another selector, other cases or other options"):
        run(place, "resumed.parquet", write="all", budget=3)
    found = run(place, "resumed.parquet", write="all")
    assert found.n_resumed == 4
    assert found.output.read_bytes() == whole.read_bytes()
    assert {path: path.stat().st_mtime_ns for path in done} == finished


def test_the_share_of_a_killed_worker_is_done_again(tmp_path):
    pytest.importorskip("distributed")
    for engine in ("local", "dask"):
        (tmp_path / engine).mkdir()
        tasks = [(str(tmp_path / engine), number) for number in range(6)]
        assert sorted(engines.run_tasks(dies_once, tasks, engine, 2, None)) == list(range(6)), engine
        assert (tmp_path / engine / "died").exists()
    with pytest.raises(AskwiseError, match="killed again and again"):
        list(engines.run_tasks(always_dies, [(0,), (1,)], "local", 2, None))


def test_what_is_written_and_ids(place):
    order = pd.read_parquet(run(place, "order.parquet", write="order", id_column="name", known=["d"]).output)
    assert list(order) == ["case", "n_bought", "bought", "spent"]
    assert order["case"].tolist() == [f"case {i}" for i in range(N)]
    assert not order["bought"].str.contains("d").any()
    prediction = pd.read_parquet(run(place, "prediction.parquet").output)
    assert list(prediction)[4:] == ["prediction", "proba_no", "proba_yes"]


def test_cases_without_the_guarantee_are_marked(place, tmp_path):
    from askwise import load

    selector = load(place / "saved")
    rng = np.random.default_rng(1)
    selector.calibrate_stop(pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd")), agreement=0.8)
    selector.save(tmp_path / "saved")
    pd.DataFrame(rng.normal(size=(50, 4)), columns=list("abcd")).to_parquet(tmp_path / "cases.parquet")
    given = tmp_path / "saved", tmp_path / "cases.parquet", tmp_path / "out.parquet"
    options: dict[str, Any] = {"stop": "calibrated", "write": "order", "progress": False, "rows_per_part": STEP}
    with pytest.warns(UserWarning, match="50 of 50 cases: see the column departure") as warned:
        found = acquire_parquet(*given, known=["a"], **options)
    assert len(warned) == 1, "not once for each part"
    assert found.n_guaranteed == 0
    table = pd.read_parquet(found.output)
    assert set(table["departure"]) == {"'a' was known from the start"}
    assert not table["guaranteed"].any()
    assert acquire_parquet(*given, **{**options, "stop": None}).n_guaranteed is None


def test_bad_input_is_refused_before_anything_is_written(place, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("no table")
    saved, cases, output = place / "saved", place / "cases", tmp_path / "out.parquet"
    bad: list[tuple[Any, dict[str, Any], str]] = [
        ((saved, tmp_path / "empty", output), {}, "There is no Parquet file"),
        ((saved, tmp_path / "text.parquet", output), {}, "cannot be read as Parquet"),
        ((tmp_path, cases, output), {}, "no manifest.json"),
        ((saved, cases, output), {"write": "everything"}, "write must be one of"),
        ((saved, cases, output), {"engine": "ray"}, "engine must be one of"),
        ((saved, cases, output), {"address": "tcp://x"}, 'needs engine="dask"'),
        ((saved, cases, output), {"workers": 0}, "workers must be a whole number"),
        ((saved, cases, output), {"known": ["z"]}, "there is no feature 'z'"),
        ((saved, cases, output), {"id_column": "z"}, "has no column 'z'"),
        ((saved, cases, output), {"stop": "soon"}, "stop must be"),
        ((saved, cases, output), {"budget": -1}, "budget must be"),
    ]
    for given, options, said in bad:
        with pytest.raises(InvalidInput, match=said):
            acquire_parquet(*given, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "text.parquet"]
