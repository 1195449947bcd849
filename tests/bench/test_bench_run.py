"""The grid: resumable at any moment, failures recorded, results that are not to be mixed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss

from askwise.bench.grid import run as runner
from askwise.bench.grid.methods import METHODS, Method, fit_method
from askwise.bench.grid.suites import SUITES
from askwise.bench.grid.tasks import Limits, make_task
from askwise.bench.grid.trials import Cell, Measurement, read, work, write_whole
from askwise.errors import AskwiseError, InvalidInput

LIMITS = Limits(2000, 500)
GRID = {"methods": ["static-cmi"], "data": ["wine"], "seeds": 3}


def finished(folder, **options):
    return list(runner.run(["uniform", "variable"], folder, **{**GRID, **options}))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    start = time.perf_counter()
    finished(folder)
    return folder, time.perf_counter() - start


def test_rows_are_tidy_and_complete(undisturbed):
    rows = pd.read_csv(undisturbed[0] / "rows.csv")
    assert list(rows.columns) == ["data", "method", "prices", "seed", "budget", "metric", "value"]
    accuracy = rows[rows["metric"] == "accuracy"]
    assert len(accuracy) == 2 * 3 * 10
    assert not rows.duplicated(["data", "method", "prices", "seed", "budget", "metric"]).any()
    timings = pd.read_csv(undisturbed[0] / "timings.csv")
    assert len(timings) == 6
    assert (timings["fit_seconds"] > 0).all()
    manifest = json.loads((undisturbed[0] / "manifest.json").read_text())
    assert "scikit-learn" in manifest["versions"]


def test_numbers_can_be_recomputed_by_others(undisturbed):
    rows = pd.read_csv(undisturbed[0] / "rows.csv")
    task = make_task("wine", "uniform", 2, LIMITS)
    rival = fit_method("static-cmi", task)
    proba = rival.final_states(task.X_test, [3.0])[0][0]
    mine = rows[(rows["prices"] == "uniform") & (rows["seed"] == 2) & (rows["budget"] == 3.0)].set_index("metric")[
        "value"
    ]
    assert mine["accuracy"] == accuracy_score(task.y_test, rival.classes_[proba.argmax(axis=1)])
    assert mine["log_loss"] == pytest.approx(log_loss(task.y_test, proba, labels=rival.classes_))
    surplus = mine[mine.index.str.startswith("surplus_")]
    assert mine["ece"] == pytest.approx(surplus.abs().sum() / len(task.y_test))


def test_killed_at_any_moment_it_loses_nothing(undisturbed, tmp_path):
    reference, seconds = undisturbed
    rng = np.random.default_rng(0)
    program = (
        "from pathlib import Path; from askwise.bench.grid.run import run; print('ready', flush=True)\n"
        f"for _ in run(['uniform', 'variable'], Path({str(tmp_path)!r}), **{GRID!r}): pass\n"
    )
    n_before = 0
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, seconds / 3))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kept = sorted((tmp_path / "cells").glob("*.json")) if (tmp_path / "cells").exists() else []
        assert all(read(path) is not None for path in kept)
        assert len(kept) >= n_before
        n_before = len(kept)
    finished(tmp_path)
    assert (tmp_path / "rows.csv").read_bytes() == (reference / "rows.csv").read_bytes()


def test_what_is_finished_is_not_run_again(undisturbed):
    assert finished(undisturbed[0]) == []


def test_a_larger_grid_adds_to_a_smaller_one(tmp_path):
    finished(tmp_path, seeds=1)
    first = (tmp_path / "rows.csv").read_text()
    done = finished(tmp_path, seeds=2)
    assert {step.cell.seed for step in done} == {1}
    assert set(first.splitlines()) < set((tmp_path / "rows.csv").read_text().splitlines())


def test_parallel_cells_give_the_same_rows(undisturbed, tmp_path):
    finished(tmp_path, jobs=2)
    assert (tmp_path / "rows.csv").read_bytes() == (undisturbed[0] / "rows.csv").read_bytes()


def test_a_failed_cell_is_recorded_and_the_rest_goes_on(tmp_path, monkeypatch):
    def broken(task):
        raise RuntimeError("no luck today")

    monkeypatch.setitem(METHODS, "vip", Method("broken", broken))
    steps = list(runner.run(["uniform"], tmp_path, methods=["vip", "static-cmi"], data=["wine"], seeds=1))
    failed = {step.cell.method: step.errors for step in steps}
    assert "no luck today" in failed["vip"]["uniform"]
    assert not failed["static-cmi"]
    document = read(Cell("wine", "vip", "uniform", 0).file(tmp_path, "uniform"))
    assert document is not None
    assert "RuntimeError" in document["error"]
    assert set(pd.read_csv(tmp_path / "rows.csv")["method"]) == {"static-cmi"}
    monkeypatch.undo()
    monkeypatch.setitem(METHODS, "vip", METHODS["static-cmi"])
    again = list(runner.run(["uniform"], tmp_path, methods=["vip", "static-cmi"], data=["wine"], seeds=1))
    assert [step.cell.method for step in again] == ["vip"]
    assert not again[0].errors


def test_a_study_that_fails_leaves_the_others_of_its_cell(tmp_path):
    (tmp_path / "cells").mkdir()
    cell = Cell("wine", "x", "uniform", 0)
    studies = {
        "good": lambda task, method: [Measurement("m", 1.0)],
        "bad": lambda task, method: [Measurement("m", 1 / 0)],
    }
    errors = work(cell, studies, tmp_path, lambda cell: (None, None))
    assert errors["good"] is None
    assert "ZeroDivisionError" in str(errors["bad"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suites": ["tables"]}, "There is no suite 'tables'. The suites are: "),
        ({"methods": ["gready-mlp"]}, "There is no method 'gready-mlp'. The methods are: "),
        ({"data": ["whine"]}, "There is no data set 'whine'. The data sets are: "),
        ({"profile": "slow"}, "profile must be one of"),
        ({"methods": [], "data": ["wine"]}, "Nothing to run"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(tmp_path, options, message):
    given = {"suites": ["uniform"], **options}
    with pytest.raises(InvalidInput, match=message.replace(".", r"\.")):
        list(runner.run(given.pop("suites"), tmp_path, **given))


def test_results_of_other_parameters_are_not_mixed(tmp_path):
    finished(tmp_path, seeds=1)
    with pytest.raises(InvalidInput, match=r"made with profile 'quick', not 'paper'.*--out"):
        finished(tmp_path, seeds=1, profile="paper")
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(InvalidInput, match=r"no manifest.json of a run"):
        finished(tmp_path, seeds=1)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AskwiseError, match="cannot be made"):
        finished(tmp_path / "file" / "folder")


def test_a_full_disk_is_said_and_leaves_no_half_file(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(AskwiseError, match=r"No space left on device.*make room"):
        write_whole(tmp_path / "x.json", "{}")
    assert not list(tmp_path.iterdir())


def test_tasks_are_the_same_for_all_methods_and_hold_every_class():
    one, two = (make_task("yeast", "variable", 3, LIMITS) for _ in range(2))
    pd.testing.assert_frame_equal(one.X_train, two.X_train)
    np.testing.assert_array_equal(one.costs, two.costs)
    assert one.costs.min() >= 1
    assert one.costs.max() <= 10
    assert not set(one.X_train.index) & set(one.X_test.index)
    assert set(one.y_test) <= set(one.y_train)
    assert not np.array_equal(one.costs, make_task("yeast", "variable", 4, LIMITS).costs)


def test_rows_that_belong_together_stay_together():
    task = make_task("diabetes130", "uniform", 0, Limits(300, 200))
    from askwise.datasets import load

    groups = load("diabetes130").row_groups
    assert groups is not None
    assert not set(groups[task.X_train.index]) & set(groups[task.X_test.index])
    assert len(task.X_train) == 300


def test_published_prices_are_used_where_there_are_any():
    assert make_task("heart", "published", 0, LIMITS).costs is not None
    with pytest.raises(InvalidInput, match="no published prices"):
        make_task("wine", "published", 0, LIMITS)


def test_suites_name_methods_that_there_are():
    for suite in SUITES.values():
        assert set(suite.methods) <= set(METHODS)
