"""The commands, run for real on small tables."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from askwise.cli.app import Model, app
from askwise.cli.console import make_console, print_rules
from askwise.datasets import Dataset
from askwise.datasets.home import data_home
from askwise.reference_models import MODELS, MOST_TEST_ROWS, MOST_TRAINING_ROWS, TEST_SHARE, make_model, split_rows

QUICK = ["--model", "logistic", "--budget", "2"]


def run(*arguments: Any, text: str | None = None):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)


def make_table(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size, color = rng.normal(size=n), rng.choice(["red", "blue", "u"], n)
    table = pd.DataFrame(
        {
            "size": size.round(3),
            "color [hue]": color,
            "flag": rng.choice([True, False], n).astype(object),
            "count": rng.integers(0, 9, n).astype(float),
            "answer": np.where(size + (color == "red") > 0.3, "yes", "no"),
        }
    )
    for column in ("size", "color [hue]", "flag", "count"):
        table.loc[rng.random(n) < 0.15, column] = np.nan
    return table


@pytest.fixture
def csv(tmp_path):
    """Writes a table, or the mixed one with one column replaced, and gives the path."""

    def write(table: pd.DataFrame | None = None, **columns: Any):
        path = tmp_path / "table.csv"
        (make_table() if table is None else table).assign(**columns).to_csv(path, index=False)
        return path

    return write


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    page = tmp_path_factory.mktemp("wine") / "wine.html"
    return run("demo", "--model", "logistic", "--report", page), page


def test_demo_compares_and_walks_and_writes(wine):
    result, page = wine
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines() if line.count("%") == 3]
    assert [row[0] for row in rows] == [str(k) for k in range(1, 11)]
    askwise = [float(row[1].rstrip("*%")) for row in rows]
    assert askwise[-1] >= 90 > askwise[0]
    assert "The model with everything: " in result.stdout
    assert "Held-out case" in result.stdout
    assert f"Report: {page}" in result.stdout
    assert "Accuracy by budget" in page.read_text(encoding="utf-8")


def test_progress_is_not_among_the_results(wine):
    result, _ = wine
    assert "asking at random, 5 of 5" in result.stderr
    assert "asking at random" not in result.stdout


def test_demo_json_of_a_mixed_table_with_missing_cells(csv, tmp_path):
    page = tmp_path / "page.html"
    result = run("demo", "--csv", csv(), "--target", "answer", "--report", page, "--json", *QUICK)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [row["budget"] for row in found["curves"]] == [1.0, 2.0]
    assert all(row["random_low"] <= row["random"] <= row["random_high"] for row in found["curves"])
    assert found["full_accuracy"] > 0.7
    trace = found["story"]["trace"]
    assert len(trace) == 3
    assert all(sum(step["probabilities"].values()) == pytest.approx(1) for step in trace)
    assert trace[-1]["prediction"] == found["story"]["truth"]
    assert sum(step["cost"] for step in trace) == 2
    assert page.exists()
    again = run("demo", "--csv", csv(), "--target", "answer", "--report", page, "--json", *QUICK)
    assert json.loads(again.stdout) == found


def test_demo_spends_money_where_there_are_prices(tmp_path):
    if not (data_home() / "tabular/heart/processed.cleveland.data").exists():
        pytest.skip("the heart data are not in the data home")
    result = run(
        "demo", "--data", "heart", "--model", "logistic", "--budget", "20", "--json", "--report", tmp_path / "p.html"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["curves"][-1]["budget"] == 20
    assert 0 < found["curves"][-1]["spent"] <= 20 + 1e-9
    assert any(step["cost"] not in (0.0, 1.0) for step in found["story"]["trace"])


def test_demo_trains_xgboost_on_text_labels(csv, tmp_path):
    pytest.importorskip("xgboost")
    result = run(
        "demo",
        "--csv",
        csv(),
        "--target",
        "answer",
        "--model",
        "xgboost",
        "--budget",
        1,
        "--report",
        tmp_path / "p.html",
    )
    assert result.exit_code == 0, result.output
    assert "true label yes" in result.stdout or "true label no" in result.stdout


def test_demo_of_a_tree_prints_the_rules_of_the_last_step(tmp_path):
    page = tmp_path / "p.html"
    result = run("demo", "--model", "tree", "--budget", 2, "--report", page)
    assert result.exit_code == 0, result.output
    after = result.stdout.split("Held-out case")[1]
    said = after[after.index("Rules that fire") : after.index("Report:")]
    firing, possible = (part.count("- if ") for part in said.split("Could still decide"))
    assert 1 <= firing <= 3
    assert 1 <= possible <= 3
    one = r"- if \S+ [<>]=? [\d.]+.*?: [012], confidence \d+% \(\d+ training rows?\), weight \d+%"
    assert len(re.findall(one, " ".join(said.split()))) == firing
    assert max(len(line) for line in said.splitlines()) <= 80
    assert "The rules behind it" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("model", ["tree", "subset-tree", "fuzzy-tree"])
def test_rules_in_json_make_up_the_prediction_of_their_step(model, csv, tmp_path):
    """Crisp or fuzzy, the rules that fire, weighted, are the probabilities; the last column asked is in the words."""
    page = tmp_path / "p.html"
    case = ["--csv", csv(), "--target", "answer", "--budget", 3, "--report", page, "--json"]
    result = run("demo", "--model", model, *case)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["adaptation"] == "rules"
    start, *steps = found["story"]["trace"]
    assert (start["rules"]["firing"], start["rules"]["n_firing"]) == ([], 0)
    assert all(rule["if"] == [] and rule["open"] for rule in start["rules"]["possible"])
    asked: list[str] = []
    for step in steps:
        asked.append(step["feature"])
        rules = step["rules"]
        words = [word for rule in [*rules["firing"], *rules["possible"]] for word in rule["if"]]
        assert words
        assert all(any(name in word for name in asked) for word in words)
        assert all(step["feature"] not in word for rule in rules["possible"] for word in rule["open"])
        if rules["firing"] and rules["n_firing"] == len(rules["firing"]):
            for label, share in step["probabilities"].items():
                mean = sum(rule["weight"] * rule["probabilities"][label] for rule in rules["firing"])
                assert mean == pytest.approx(share)
    assert any(step["rules"]["firing"] for step in steps)


def test_the_adaptation_can_be_chosen(csv, tmp_path):
    case = ["--csv", csv(), "--target", "answer", "--report", tmp_path / "p.html", "--json"]
    for model, chosen, used in [
        ("tree", "auto", "rules"),
        ("tree", "mean", "mean"),
        ("tree", "conditional", "conditional"),
        ("logistic", "auto", "auto"),
        ("logistic", "mean", "mean"),
    ]:
        result = run("ask", "--model", model, "--adaptation", chosen, *case, text="q\n")
        assert result.exit_code == 0, result.output
        assert ("rules" in json.loads(result.stdout)) == (used == "rules")
        page = (tmp_path / "p.html").read_text(encoding="utf-8")
        assert (f"<dt>adaptation</dt><dd>{used}</dd>" in page) == (used != "auto")


@pytest.mark.parametrize("command", ["demo", "ask"])
def test_rules_of_a_model_without_rules_are_refused(command, csv, tmp_path):
    page = tmp_path / "p.html"
    case = ["--csv", csv(), "--target", "answer", "--model", "logistic", "--report", page]
    result = run(command, *case, "--adaptation", "rules", text="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert 'adaptation="rules" needs a decision tree' in result.stderr.splitlines()[-1]
    assert "got LogisticRegression" in result.stderr
    assert not page.exists()
    result = run(command, *case, "--adaptation", "low-rank", text="")
    assert result.exit_code == 2
    assert "--adaptation" in result.stderr


def test_ask_shows_two_rules_of_each_kind_after_every_answer():
    result = run("ask", "--model", "tree", text="1.1\nu\n1.2\n?\nq\n")
    assert result.exit_code == 0, result.output
    shown = result.stdout.split("prediction ")[1:-1]  # the last is the table of the story
    assert len(shown) == 5
    for turn in (0, 2):
        assert "No rule fires yet" in shown[turn]
    for turn in (1, 3, 4):
        assert "Rules that fire" in shown[turn]
        assert "- if flavanoids" in shown[turn]
    for part in shown:
        assert "Could still decide (2 of " in part
        assert part.split("Could still decide")[1].count("- if ") == 2
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_ask_gives_the_rules_in_json_and_none_without_rules(csv):
    case = ["ask", "--csv", csv(), "--target", "answer", "--json"]
    found = json.loads(run(*case, "--model", "fuzzy-tree", text="q\n").stdout)
    assert found["rules"]["n_possible"] >= 2
    assert found["trace"][0]["rules"] == found["rules"]
    result = run(*case, "--model", "logistic", text="q\n")
    assert "rules" not in json.loads(result.stdout)
    assert "Could still decide" not in result.stderr


def rule(words: list[str], **more: Any) -> dict[str, Any]:
    return {"if": words, "then": "[bold]", "confidence": 0.97, "support": 42.0, "degree": 1.0, "weight": 0.61, **more}


def printed(firing: list[dict[str, Any]], possible: list[dict[str, Any]], **counts: int) -> str:
    rules = {"firing": firing, "possible": possible, "n_firing": len(firing), "n_possible": len(possible), **counts}
    with (console := make_console()).capture() as shown:
        print_rules(console, {"rules": rules}, most=2)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def test_rules_in_words():
    firing = [rule(["flavanoids > 1.6", "proline > 755"]), rule([], support=1.0, degree=0.4, weight=0.39)]
    possible = [rule(["ash > 2"], open=["[hue] > 3.8"], support=3.14)]
    assert printed(firing, possible).splitlines() == [
        "Rules that fire:",
        "  - if flavanoids > 1.6 and proline > 755: [bold], confidence 97% (42 training",
        "    rows), weight 61%",
        "  - always: [bold], confidence 97% (1 training row), fires to 40%, weight 39%",
        "Could still decide:",
        "  - if [hue] > 3.8: [bold], confidence 97% (3.1 rows)",
    ]


def test_many_rules_and_long_ones_are_cut():
    said = printed([rule(["x" * 200, *"abcdef"])] * 3, [rule([], open=["y <= 1"])] * 5, n_firing=30, n_possible=7)
    assert "Rules that fire (2 of 30):" in said
    assert "Could still decide (2 of 7):" in said
    assert said.count("- if ") == 4
    assert "… and a and b and c and 3 more: [bold]" in " ".join(said.split())
    assert max(len(line) for line in said.splitlines()) <= 80


def test_no_rule_is_said_too():
    assert printed([], []).splitlines() == [
        "No rule fires yet: each class has its share of the training rows.",
        "No other rule is possible any more.",
    ]
    with (console := make_console()).capture() as shown:
        print_rules(console, {"prediction": "yes"}, most=2)
    assert shown.get() == ""


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    result = run("demo", "--model", "xgboost", "--report", tmp_path / "p.html")
    assert result.exit_code == 1
    assert 'pip install "askwise[boosting]"' in result.stderr


@pytest.mark.parametrize(
    ("columns", "target", "message"),
    [
        ({}, "nope", r"no column 'nope'. Its columns are: size, color \[hue\], flag, count, answer"),
        ({"answer": ["yes", None] * 40}, "answer", r"missing in 40 of 80 rows .*the first is row 2"),
        ({"answer": "yes"}, "answer", "two or more classes"),
        ({"answer": np.linspace(0, 1, 80)}, "answer", "regression"),
        ({"answer": [f"case {i}" for i in range(80)]}, "answer", "not a class"),
        ({"name": [f"Smith {i}" for i in range(80)]}, "answer", r"'name' .*--drop 'name'"),
        ({"day": pd.date_range("2020-01-01", periods=80).astype(str)}, "answer", r"'day' .* date into a number"),
        ({"empty": np.nan}, "answer", "'empty' .* is empty"),
        ({"far": np.inf}, "answer", "'far' holds an infinite value"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_by_name(csv, tmp_path, columns, target, message):
    result = run("demo", "--csv", csv(**columns), "--target", target, "--report", tmp_path / "p.html")
    assert result.exit_code == 2
    assert result.stdout == ""
    said = result.stderr.splitlines()[-1]
    assert said.startswith("askwise: ")
    assert pd.Series([said]).str.contains(message).item(), said


def test_files_that_are_no_tables_are_refused(csv, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.touch()
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00\x81\n" * 30)
    semicolons = tmp_path / "semicolons.csv"
    make_table().to_csv(semicolons, index=False, sep=";")
    short = tmp_path / "short.csv"
    make_table(5).to_csv(short, index=False)
    for path, message in [
        (tmp_path / "none.csv", "there is no file"),
        (empty, "is empty"),
        (tmp_path, "cannot be read"),
        (binary, "cannot be read"),
        (semicolons, "separated by ';'"),
        (short, "at least 20"),
        (csv(make_table()[["answer"]]), "no columns besides the target"),
    ]:
        result = run("demo", "--csv", path, "--target", "answer", "--report", tmp_path / "p.html")
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr, result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nope"], "breast_cancer, bupa, cirrhosis"),
        (["--data", "wine", "--csv", "x.csv", "--target", "y"], "exclude each other"),
        (["--csv", "x.csv"], "--csv needs --target"),
        (["--target", "y"], "add --csv FILE"),
        (["--budget", "-1"], "--budget must be a finite number"),
        (["--budget", "nan"], "--budget must be a finite number"),
        (["--report", "nowhere/page.html"], "there is no folder"),
        (["--model", "svm"], "logistic"),
    ],
)
def test_bad_usage_ends_with_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_dropped_columns_are_not_asked_for_and_row_numbers_are_noticed(csv):
    path = csv(number=range(80), name=[f"Smith {i}" for i in range(80)])
    result = run("ask", "--csv", path, "--target", "answer", "--drop", "name", *QUICK, "--json", text="q\n")
    assert result.exit_code == 0, result.output
    assert "column 'number' numbers the rows" in result.stderr
    asked = {entry["feature"] for entry in json.loads(result.stdout)["ranking"]}
    assert asked == {"size", "color [hue]", "flag", "count", "number"}


def test_ask_takes_answers_and_bad_text_and_undo_and_stop():
    result = run(
        "ask", "--model", "logistic", "--budget", "3", "--json", text="abc\n\n2.5\nu\nu\n2.6\n?\n1e999\n4.2\nq\n"
    )
    assert result.exit_code == 0, result.output
    for said in ("must be a number; got 'abc'", "Type a value", "nothing to undo", "finite number", "Stopped."):
        assert said in result.stderr
    found = json.loads(result.stdout)
    first, second, third = found["trace"][1:]
    assert (first["event"], first["value"]) == ("answer", 2.6)
    assert second["event"] == "unavailable"
    assert (third["event"], third["value"]) == ("answer", 4.2)
    assert found["unavailable"] == [second["feature"]]
    assert (found["spent"], found["left"]) == (2.0, 1.0)


def test_ask_ends_where_the_input_does_and_where_the_money_does():
    result = run("ask", *QUICK, text="2.5\n")
    assert result.exit_code == 0, result.output
    assert "Stopped." in result.stdout
    assert "spent 1, left 1" in result.stdout
    result = run("ask", *QUICK, text="2.5\n3\n")
    assert "Nothing more can be bought." in result.stdout
    assert "spent 2, left 0" in result.stdout


def test_ask_reads_categories_and_values_spelled_like_commands(csv):
    """Columns are asked for in the order of the policy, so each question is answered by its name."""
    result = run("ask", "--csv", csv(), "--target", "answer", "--model", "logistic", "--json", text="?\n" * 4)
    hue = [step["feature"] for step in json.loads(result.stdout)["trace"]].index("color [hue]") - 1
    lines = ["?"] * hue + ["green", "=u", "q"]
    result = run("ask", "--csv", csv(), "--target", "answer", "--model", "logistic", "--json", text="\n".join(lines))
    assert result.exit_code == 0, result.output
    assert "has no value 'green'" in result.stderr
    assert "for the value u type =u" in result.stderr
    assert json.loads(result.stdout)["known"] == {"color [hue]": "u"}


def test_ask_goes_through_the_columns_of_a_group(tmp_path):
    page = tmp_path / "case.html"
    lines = ["500", "u", "450", "?", "800", "?", "?", "?", "1", "q"]
    result = run(
        "ask", "--data", "breast_cancer", "--model", "logistic", "--json", "--report", page, text="\n".join(lines)
    )
    assert result.exit_code == 0, result.output
    answered, unavailable = json.loads(result.stdout)["trace"][1:]
    assert list(answered["value"].values()) == [450.0, None, 800.0]
    assert unavailable["event"] == "unavailable"
    assert "The story of one case" in page.read_text(encoding="utf-8")


def test_ctrl_c_is_clean(monkeypatch, tmp_path):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("askwise.reference_models.train_reference_model", interrupted)
    result = run("demo", "--report", tmp_path / "p.html")
    assert result.exit_code == 130
    assert "stopped" in result.stderr
    assert "Traceback" not in result.output


def test_the_module_is_an_entry_point_and_starts_without_the_heavy_libraries():
    code = (
        "import sys, askwise.cli.app; sys.exit(bool({'sklearn', 'matplotlib', 'torch', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    command = [sys.executable, "-m", "askwise.cli.app"]
    shown = subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout
    assert "demo" in shown
    assert "ask" in shown
    failed = subprocess.run([*command, "demo", "--data", "nope"], check=False, capture_output=True, text=True)
    assert failed.returncode == 2
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_an_interrupt_from_outside_ends_with_130(tmp_path):
    command = [
        sys.executable,
        "-m",
        "askwise.cli.app",
        "demo",
        "--model",
        "forest",
        "--report",
        str(tmp_path / "p.html"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the first step has begun
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_the_models_of_the_command_line_are_those_that_can_be_made():
    assert tuple(model.value for model in Model) == MODELS
    for name in MODELS:
        assert hasattr(make_model(name, seed=0), "fit")


def test_split_keeps_every_class_in_training_and_caps_rows():
    y = np.repeat(["many", "few", "one"], [4000, 3, 1])
    data = Dataset("made", pd.DataFrame({"x": np.arange(len(y))}), y, None, None, "")
    train, test = split_rows(data, seed=0)
    assert not set(train) & set(test)
    assert set(y[train]) == {"many", "few", "one"}
    assert (len(train), len(test)) == (MOST_TRAINING_ROWS, MOST_TEST_ROWS)
    assert np.array_equal(test, split_rows(data, seed=0)[1])
    assert not np.array_equal(test, split_rows(data, seed=1)[1])
    train, test = split_rows(data, seed=0, limited=False)
    assert sorted([*train, *test]) == list(range(len(y)))
    assert len(test) == round(4000 * TEST_SHARE) + 1


def test_split_keeps_row_groups_together():
    groups = np.repeat(np.arange(50), 4)
    y = np.tile(["a", "b"], 100)
    data = Dataset("made", pd.DataFrame({"x": np.arange(200)}), y, None, None, "", row_groups=groups)
    train, test = split_rows(data, seed=0)
    assert len(train) + len(test) == 200
    assert not set(groups[train]) & set(groups[test])
