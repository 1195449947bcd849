"""`askwise bench` and `askwise report`, run for real on a grid of one quick method."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier
from typer.testing import CliRunner

from askwise_bench.cli import app
from askwise_bench.grid.methods import METHODS, Method
from askwise_bench.grid.suites import SUITES
from askwise_bench.grid.tasks import known_data
from askwise_bench.grid.trials import Trial, read

TINY = ["--methods", "static-cmi", "--data", "wine", "--seeds", 1]


def run(*arguments: Any):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run from its beginning, and the folder that it made."""
    out = tmp_path_factory.mktemp("bench") / "new" / "folder"
    return run("bench", "uniform", "data", *TINY, "--out", out), out


@pytest.fixture
def copy(finished, tmp_path):
    return Path(shutil.copytree(finished[1], tmp_path / "copy"))


@pytest.fixture
def no_pictures(monkeypatch):
    """They take long and are not looked at."""
    monkeypatch.setattr("askwise_bench.report.report.pictures", lambda rows: [])


@pytest.fixture
def vip_breaks(monkeypatch):
    def broken(task):
        raise RuntimeError("no luck today")

    monkeypatch.setitem(METHODS, "vip", Method("broken", broken))


def test_the_path_of_the_rows_is_the_only_result(finished):
    result, out = finished
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out / 'rows.csv'}\n"
    rows = pd.read_csv(out / "rows.csv")
    assert rows[["data", "method", "prices", "seed"]].drop_duplicates().to_numpy().tolist() == [
        ["wine", "static-cmi", "uniform", 0]
    ]
    assert {"accuracy", "logistic_accuracy"} <= set(rows["metric"])


def test_progress_goes_to_standard_error(finished):
    assert finished[0].stderr.splitlines() == ["1/1  wine, static-cmi, uniform prices, seed 0"]


def test_a_larger_grid_says_what_is_left_and_does_not_repeat_what_is_finished(copy):
    before = (copy / "rows.csv").read_text()
    result = run("bench", "data", *TINY[:-1], 3, "--out", copy)
    assert result.exit_code == 0, result.output
    first, second = result.stderr.splitlines()
    assert first.startswith("2/3  wine, static-cmi, uniform prices, seed 1  (")
    assert first.endswith(" min left)")
    assert second == "3/3  wine, static-cmi, uniform prices, seed 2"
    assert set(before.splitlines()) < set((copy / "rows.csv").read_text().splitlines())


def test_a_finished_grid_is_not_run_again(copy, vip_breaks, monkeypatch):
    monkeypatch.setitem(METHODS, "static-cmi", METHODS["vip"])
    result = run("bench", "uniform", "data", *TINY, "--out", copy)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{copy / 'rows.csv'}\n", "")


def test_two_jobs_give_the_same_rows(finished, tmp_path):
    result = run("bench", "uniform", "data", *TINY, "--jobs", 2, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "rows.csv").read_bytes() == (finished[1] / "rows.csv").read_bytes()


def test_unknown_names_are_refused_with_what_is_known(tmp_path):
    out = tmp_path / "out"
    for arguments, message, known in [
        (["tables"], "There is no suite 'tables'.", [*SUITES, "all"]),
        (["uniform", "--methods", "static-cmi,gready-mlp"], "There is no method 'gready-mlp'.", METHODS),
        (["uniform", "--data", "wine, whine"], "There is no data set 'whine'.", known_data()),
    ]:
        result = run("bench", *arguments, "--out", out)
        assert (result.exit_code, result.stdout) == (2, "")
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"askwise: {message}")
        listed = line.split(" are: ")[1].rstrip(".").replace(" or ", " ")
        assert {name.strip() for name in listed.split(",")} == set(known)
        assert not out.exists()


def test_bad_usage_ends_with_2(tmp_path):
    out = tmp_path / "out"
    cases: list[tuple[list[Any], str]] = [
        ([], "SUITE"),
        (["uniform", "--seeds", 0], "--seeds"),
        (["uniform", "--jobs", 0], "--jobs"),
        (["uniform", "--profile", "slow"], "--profile"),
        (["uniform", "--methods", " , "], "--methods names nothing"),
        (["uniform", "--data", ","], "--data names nothing"),
        (["lambda", "--methods", "vip"], "Nothing to run"),
        (["prices", "--data", "wine"], "Nothing to run"),
    ]
    for arguments, message in cases:
        result = run("bench", *arguments, "--out", out)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
        assert not out.exists()


def test_the_choices_are_listed():
    result = run("bench", "--list")
    assert result.exit_code == 0, result.output
    for name in (*SUITES, *METHODS, *known_data()):
        assert re.search(rf"(^|[\s,]){name}\b", result.stdout), name


def test_what_a_suite_does_not_include_is_said(tmp_path):
    result = run("bench", "uniform", "bias", "prices", *TINY, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "bias takes the methods rl-remlp," in result.stderr
    assert "; not static-cmi." in result.stderr
    assert "prices takes the data hepatitis, heart; not wine." in result.stderr
    result = run("bench", "bias", *TINY, "--out", tmp_path)
    assert result.exit_code == 2
    assert "Nothing to run. bias takes the methods rl-remlp," in result.stderr


def test_a_failed_trial_ends_with_1_says_where_its_traceback_is_and_is_tried_again(tmp_path, vip_breaks, monkeypatch):
    out = tmp_path / f"a folder with a long name {'x' * 60}"
    command = ["bench", "uniform", "--methods", "vip,static-cmi", *TINY[2:], "--out", out]
    result = run(*command)
    assert (result.exit_code, result.stdout) == (1, f"{out / 'rows.csv'}\n")
    steps, said = result.stderr.splitlines()[:2], result.stderr.splitlines()[2:]
    assert steps[0].startswith("1/2  wine, static-cmi, uniform prices, seed 0  (")
    assert steps[1] == "2/2  wine, vip, uniform prices, seed 0: uniform failed"
    assert said[0] == "RuntimeError: no luck today"
    assert said[1:] == [
        f"1 of 2 trials failed; the tracebacks are in {out / 'trials'}. The same command tries the failed ones again."
    ]
    document = read(Trial("wine", "vip", "uniform", 0).file(out, "uniform"))
    assert document is not None
    assert document["error"].endswith("RuntimeError: no luck today\n")
    assert set(pd.read_csv(out / "rows.csv")["method"]) == {"static-cmi"}
    monkeypatch.setitem(METHODS, "vip", METHODS["static-cmi"])
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["2/2  wine, vip, uniform prices, seed 0"]
    assert set(pd.read_csv(out / "rows.csv")["method"]) == {"static-cmi", "vip"}


def test_stopped_by_hand_it_keeps_what_is_finished(tmp_path, monkeypatch):
    def interrupted(task):
        raise KeyboardInterrupt

    monkeypatch.setitem(METHODS, "vip", Method("interrupted", interrupted))
    command = ["bench", "variable", "--methods", "vip,static-cmi", *TINY[2:], "--out", tmp_path]
    result = run(*command)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.splitlines()[-1].startswith(f"askwise: stopped. Finished trials are kept in {tmp_path};")
    assert "Traceback" not in result.output
    monkeypatch.setitem(METHODS, "vip", METHODS["static-cmi"])
    assert run(*command).stderr.splitlines() == ["2/2  wine, vip, variable prices, seed 0"]


def test_an_interrupted_network_is_no_result(tmp_path, monkeypatch):
    """scikit-learn's MLP catches Ctrl-C itself and returns what it has, which must not pass for a finished trial."""

    def interrupted(self, *args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(MLPClassifier, "_backprop", interrupted)
    result = run("bench", "uniform", "--methods", "random-mlp", *TINY[2:], "--out", tmp_path)
    assert result.exit_code == 130
    assert not list((tmp_path / "trials").iterdir())


def test_report_of_a_run_that_was_stopped_has_what_is_finished(copy, no_pictures):
    before = (copy / "rows.csv").read_text()
    for lost in ("rows.csv", "timings.csv"):
        (copy / lost).unlink()
        assert run("report", copy).exit_code == 0
        assert (copy / "rows.csv").read_text() == before
    # As where a run was killed and its folder copied, so that all files are of the same age.
    for name, trial in (("rows.csv", ",summary,"), ("timings.csv", ",data,")):
        kept = [line for line in (copy / name).read_text().splitlines(keepends=True) if trial not in line]
        (copy / name).write_text("".join(kept))
    assert (copy / "rows.csv").read_text() != before
    assert run("report", copy).exit_code == 0
    assert (copy / "rows.csv").read_text() == before


def test_one_seed_does_not_judge_claims(copy, no_pictures):
    assert run("report", copy).exit_code == 0
    for name in ("report.html", "report.md"):
        text = (copy / name).read_text(encoding="utf-8")
        assert "The claims are not judged: that needs at least 2 seeds, and this run has one." in text
        assert "claims hold" not in text
        assert "undecided" not in text.split("</style>")[-1]


def test_an_older_folder_is_refused(copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "format": 1, "askwise": "0.0.1"}))
    before = {path: path.read_bytes() for path in copy.rglob("*.*")}
    for command in (["bench", "uniform", *TINY, "--out", copy], ["report", copy]):
        result = run(*command)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{copy} holds results in format 1, and this version of askwise" in result.stderr
        assert "--out" in result.stderr
        assert "0.0.1" in result.stderr
    assert {path: path.read_bytes() for path in copy.rglob("*.*")} == before


def test_files_of_another_kind_are_named_without_a_traceback(finished, tmp_path):
    binary, utf_16 = bytes(range(256)) * 40, "data,method\nwine,vip\n".encode("utf-16")
    nested = b"[" * 100_000 + b"]" * 100_000
    for k, (name, content) in enumerate(
        [(name, content) for name in ("rows.csv", "timings.csv") for content in (binary, utf_16, None)]
        + [("manifest.json", content) for content in (utf_16, nested, None)]
        + [("trials/data--wine--static-cmi--uniform--0.json", content) for content in (binary, nested)]
    ):
        folder = Path(shutil.copytree(finished[1], tmp_path / str(k)))
        (folder / name).unlink()
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
        for path in folder.rglob("*.json"):
            os.utime(path, (0, 0))  # the tables are newer than the results
        result = run("report", folder)
        assert result.exit_code in (1, 2), (name, content)
        assert result.stdout == ""
        assert isinstance(result.exception, SystemExit), result.exception
        assert Path(name).name in result.stderr
        assert len(result.stderr) < 1500


def test_results_of_other_parameters_are_not_mixed(copy):
    before = {path: path.read_bytes() for path in copy.rglob("*.*")}
    result = run("bench", "uniform", *TINY, "--profile", "paper", "--out", copy)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert f"{copy} holds results made with profile 'quick', not 'paper'" in line
    assert "--out" in line
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "askwise": "0.0.0"}))
    result = run("bench", "uniform", *TINY, "--out", copy)
    assert result.exit_code == 2
    assert "made with askwise '0.0.0'" in result.stderr
    (copy / "manifest.json").write_text(json.dumps(manifest, indent=1))
    assert {path: path.read_bytes() for path in copy.rglob("*.*")} == before


def test_a_folder_that_cannot_be_made_ends_with_1(tmp_path):
    (tmp_path / "file").touch()
    result = run("bench", "uniform", *TINY, "--out", tmp_path / "file" / "folder")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "cannot be created" in result.stderr


def test_report_writes_a_page_and_a_markdown_file(copy):
    result = run("report", copy)
    assert result.exit_code == 0, result.output
    names = ("report.html", "report.md", "report-tables.md")
    assert result.stdout.splitlines() == [str(copy / name) for name in names]
    html, first, tables = ((copy / name).read_text(encoding="utf-8") for name in names)
    markdown = first + tables
    rows = pd.read_csv(copy / "rows.csv")
    accuracy = f"{100 * rows.loc[rows['metric'] == 'accuracy', 'value'].mean():.2f}"
    logistic = f"{rows.loc[rows['metric'] == 'logistic_accuracy', 'value'].item():.3f}"
    for text in (html, markdown):
        assert accuracy in text
        assert logistic in text
    assert html.count("<svg") == 4 + 4  # accuracy, its calibration, against random, entropy; and the illustrations
    assert "askwise bench" in markdown  # the command that made it
    drawn = set(re.findall(r"\]\((figures/.+?)\)", markdown))
    assert len(drawn) == 8
    for name in drawn:
        assert ElementTree.parse(copy / name).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_report_of_no_results_is_refused(finished, tmp_path):
    for there in ("nothing", "an empty folder", "a file", "other columns", "no timings"):
        folder = tmp_path / there.replace(" ", "-")
        if there == "a file":
            folder.touch()
        elif there != "nothing":
            folder.mkdir()
        if there == "other columns":
            pd.DataFrame({"x": [1]}).to_csv(folder / "rows.csv", index=False)
        if there == "no timings":
            shutil.copy(finished[1] / "rows.csv", folder)
        before = sorted(tmp_path.rglob("*"))
        result = run("report", folder)
        assert (result.exit_code, result.stdout) == (2, "")
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"askwise: {folder}")
        assert "bench" in line
        assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    for manifest in ("[1]", '"text"', "5", "{}", '{"commands": null}', "precious"):
        (tmp_path / "manifest.json").write_text(manifest)
        result = run("bench", "uniform", *TINY, "--out", tmp_path)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--out" in result.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
        assert (tmp_path / "manifest.json").read_text() == manifest


def test_foreign_rows_are_not_written_over(tmp_path):
    (tmp_path / "trials").mkdir()
    (tmp_path / "rows.csv").write_text("my,own\n1,2\n")
    for command in (["bench", "uniform", *TINY, "--out", tmp_path], ["report", tmp_path]):
        assert run(*command).exit_code == 2
        assert (tmp_path / "rows.csv").read_text() == "my,own\n1,2\n"


def test_a_file_that_is_no_result_is_named_and_nothing_is_lost(copy):
    before = (copy / "rows.csv").read_text()
    for text in ("[]", "{}", '{"error": null}', "{", ""):
        (copy / "trials" / "mine.json").write_text(text)
        for command in (["bench", "uniform", *TINY[:-1], 2, "--out", copy], ["report", copy]):
            result = run(*command)
            assert (result.exit_code, result.stdout) == (1, "")
            assert "mine.json" in result.stderr
        assert (copy / "rows.csv").read_text() == before


def test_a_broken_result_is_made_again(copy):
    before = (copy / "rows.csv").read_text()
    path = copy / "trials" / "data--wine--static-cmi--uniform--0.json"
    text = path.read_text()
    for broken in (text[:300], text.replace('"seed": 0', '"seed": 7')):
        path.write_text(broken)
        result = run("bench", "data", *TINY, "--out", copy)
        assert result.exit_code == 0, result.output
        assert (copy / "rows.csv").read_text() == before


def test_rows_edited_by_hand_are_read_with_care(copy):
    lines = (copy / "rows.csv").read_text().splitlines()
    for column, value, said in (
        ("budget", "abc", "number or nothing; got 'abc'"),
        ("seed", "zero", "number; got 'zero'"),
        ("value", "", "got ''"),
        ("prices", "high", "prices must be variable, uniform, published"),
    ):
        fields = lines[3].split(",")
        fields[lines[0].split(",").index(column)] = value
        (copy / "rows.csv").write_text("\n".join([*lines[:3], ",".join(fields), *lines[4:]]) + "\n")
        result = run("report", copy)
        assert (result.exit_code, result.stdout) == (2, "")
        assert column == "prices" or f"rows.csv, line 4: {column} must be a" in result.stderr
        assert said in result.stderr
    (copy / "rows.csv").write_text("\n".join([*lines, lines[3].rsplit(",", 1)[0] + ",0.123"]) + "\n")
    assert "two values for" in run("report", copy).stderr


def test_report_where_every_trial_failed_is_refused(tmp_path, vip_breaks):
    assert run("bench", "uniform", "--methods", "vip", *TINY[2:], "--out", tmp_path).exit_code == 1
    result = run("report", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "must have at least one row" in result.stderr
