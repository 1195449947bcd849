"""The grid: resumable at any moment, failures recorded, results that must not be mixed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss

from askwise.datasets import load
from askwise.errors import AskwiseError, InvalidInput
from askwise.evaluation import default_budgets, final_states
from askwise.table.prices import Prices
from askwise_bench.grid import run as runner
from askwise_bench.grid import tasks
from askwise_bench.grid.methods import METHODS, fit_method
from askwise_bench.grid.store import COLUMNS
from askwise_bench.grid.suites import SUITES
from askwise_bench.grid.tasks import Limits, make_task
from askwise_bench.grid.trials import Measurement, Trial, read, read_result, work, write, write_whole

LIMITS = Limits(2000, 500)
GRID: dict[str, Any] = {"methods": ["static-cmi"], "data": ["wine"], "seeds": 2}


def finished(folder, **options):
    return list(runner.run(["data", "variable"], folder, **{**GRID, **options}))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    finished(folder)
    return folder


def test_rows_are_tidy_and_complete(undisturbed):
    rows = pd.read_csv(undisturbed / "rows.csv")
    assert tuple(rows.columns) == COLUMNS
    assert (rows["metric"] == "accuracy").sum() == 2 * 10
    assert not rows.duplicated([name for name in COLUMNS if name != "value"]).any()
    assert rows["bin"].notna().equals(rows["metric"] == "surplus")
    timings = pd.read_csv(undisturbed / "timings.csv")
    assert len(timings) == 4
    assert (timings["fit_seconds"] > 0).all()
    manifest = json.loads((undisturbed / "manifest.json").read_text())
    assert "scikit-learn" in manifest["versions"]


def test_the_columns_are_documented():
    docs = (Path(__file__).parents[2] / "docs/project/benchmarks-history.md").read_text(encoding="utf-8")
    assert [name for name in COLUMNS if f"| `{name}` |" not in docs] == []


def test_numbers_can_be_recomputed_by_others(undisturbed):
    rows = pd.read_csv(undisturbed / "rows.csv")
    task = make_task("wine", "variable", 1, LIMITS)
    method = fit_method("static-cmi", task)
    budget = default_budgets(method.prices_)[2]
    proba, spent, known, _ = final_states(method, task.X_test, [budget])[0]
    mine = rows[(rows["prices"] == "variable") & (rows["seed"] == 1) & (rows["budget"] == budget)]
    value = mine[mine["bin"].isna()].set_index("metric")["value"]
    assert value["accuracy"] == accuracy_score(task.y_test, method.classes_[proba.argmax(axis=1)])
    assert value["log_loss"] == pytest.approx(log_loss(task.y_test, proba, labels=method.classes_))
    surplus = mine.loc[mine["metric"] == "surplus", "value"]
    assert value["ece"] == pytest.approx(surplus.abs().sum() / len(task.y_test))
    assert value["features"] == known.sum(axis=1).mean()
    assert value["spent"] == pytest.approx(spent.mean())


def test_killed_at_any_moment_it_loses_nothing(undisturbed, tmp_path):
    program = (
        "from pathlib import Path; from askwise_bench.grid.run import run\n"
        f"for _ in run(['data', 'variable'], Path({str(tmp_path)!r}), **{GRID!r}): pass\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("trials/*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    kept = list(tmp_path.glob("trials/*.json"))
    assert len(kept) >= 2
    assert all(read_result(path) is not None for path in kept)
    finished(tmp_path)
    assert (tmp_path / "rows.csv").read_bytes() == (undisturbed / "rows.csv").read_bytes()


def test_a_killed_dask_worker_changes_nothing(undisturbed, tmp_path):
    pytest.importorskip("distributed")
    psutil = pytest.importorskip("psutil")
    steps = runner.run(["data", "variable"], tmp_path, engine="dask", jobs=2, **GRID)
    seen = [next(steps)]
    workers = [child for child in psutil.Process().children() if any("spawn_main" in part for part in child.cmdline())]
    assert len(workers) == 2
    workers[0].kill()
    assert len(list(tmp_path.glob("trials/*.json"))) < 4, "all trials were done before the worker was killed"
    seen += steps
    assert [step.errors for step in seen] == [{}] * 4
    assert len({step.trial for step in seen}) == 4
    assert (tmp_path / "rows.csv").read_bytes() == (undisturbed / "rows.csv").read_bytes()


def test_a_study_that_fails_leaves_the_others_of_its_trial(tmp_path):
    studies = {
        "good": lambda task, method: [Measurement("m", 1.0)],
        "bad": lambda task, method: [Measurement("m", 1 / 0)],
    }
    errors = work(Trial("wine", "x", "uniform", 0), studies, tmp_path, lambda trial: (None, None))
    assert errors["good"] is None
    assert "ZeroDivisionError" in str(errors["bad"])


def test_what_is_not_a_result_is_not_read_as_one(tmp_path):
    trial = Trial("wine", "x", "uniform", 0)
    measured = Measurement("ece", np.float64(0.1), 2.0, sigma=0.8)
    write(trial, "shift", "shift", tmp_path, [measured], {"fit": 0.0, "study": 0.0})
    path = trial.file(tmp_path, "shift")
    document = read(path)
    assert document is not None
    found = read_result(path)
    assert found is not None
    assert found["rows"] == [Measurement("ece", 0.1, 2.0, sigma=0.8)]
    good = document["rows"][0]
    for row in (
        {**good, "sigma": "0.8"},
        {**good, "metric": 3},
        {**good, "unheard": 1.0},
        {"metric": "ece"},
        [1],
        None,
    ):
        path.write_text(json.dumps({**document, "rows": [row]}))
        assert read_result(path) is None, row
    path.write_text("[" * 100_000)
    assert read_result(path) is None


def test_unknown_names_are_refused_with_what_is_known(tmp_path):
    cases: list[tuple[dict[str, Any], str]] = [
        ({"suites": ["tables"]}, r"There is no suite 'tables'\. The suites are: "),
        ({"methods": ["gready-mlp"]}, r"There is no method 'gready-mlp'\. The methods are: "),
        ({"data": ["whine"]}, r"There is no data set 'whine'\. The data sets are: "),
        ({"profile": "slow"}, "profile must be one of"),
        ({"seeds": 0}, "seeds must be a whole number"),
        ({"methods": [], "data": ["wine"]}, "Nothing to run"),
    ]
    for options, message in cases:
        given = {"suites": ["uniform"], **options}
        with pytest.raises(InvalidInput, match=message):
            runner.run(given.pop("suites"), tmp_path / "out", **given)
    assert not list(tmp_path.iterdir())


def test_a_file_or_a_folder_without_manifest_is_refused(undisturbed, tmp_path):
    (tmp_path / "rows.csv").write_text("")
    with pytest.raises(InvalidInput, match=r"manifest\.json is missing"):
        finished(tmp_path)
    with pytest.raises(InvalidInput, match="is a file; choose a folder"):
        finished(tmp_path / "rows.csv")


def test_a_full_disk_is_said_and_leaves_no_half_file(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(AskwiseError, match=r"No space left on device.*make room"):
        write_whole(tmp_path / "x.json", "{}")
    assert not list(tmp_path.iterdir())


def test_tasks_are_the_same_for_all_methods_and_differ_by_seed():
    one, two = (make_task("wine", "variable", 3, Limits(20, 10)) for _ in range(2))
    pd.testing.assert_frame_equal(one.X_train, two.X_train)
    np.testing.assert_array_equal(one.costs, two.costs)
    assert one.costs.min() >= 1
    assert one.costs.max() <= 10
    assert (len(one.X_train), len(one.X_test)) == (20, 10)
    assert not set(one.X_train.index) & set(one.X_test.index)
    assert set(one.y_test) <= set(one.y_train)
    assert not np.array_equal(one.costs, make_task("wine", "variable", 4, LIMITS).costs)
    for data, prices, message in (("whine", "uniform", "no data set"), ("wine", "high", "prices must be one of")):
        with pytest.raises(InvalidInput, match=message):
            make_task(data, prices, 0, LIMITS)


def test_published_prices_are_used_where_there_are_any(monkeypatch):
    with pytest.raises(InvalidInput, match="no published prices"):
        make_task("wine", "published", 0, LIMITS)
    prices = Prices(dict.fromkeys(load("wine").X.columns, 2.0))
    monkeypatch.setattr(tasks, "load", lambda name: replace(load(name), prices=prices))
    assert make_task("wine", "published", 0, LIMITS).costs is prices


def test_suites_name_known_methods_and_different_studies():
    for suite in SUITES.values():
        assert set(suite.methods) <= set(METHODS)
