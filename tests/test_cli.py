"""The commands, run for real on small tables."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from askwise.cli.app import app
from askwise.cli.comparison import missing_note
from askwise.cli.console import make_console
from askwise.cli.dialog import Dialog
from askwise.cli.elsewhere import add_commands
from askwise.cli.options import Model
from askwise.cli.steps import print_rules, print_warnings
from askwise.cli.wording import choices_in_words, shown_number
from askwise.datasets import Dataset
from askwise.policy import Policy
from askwise.reference_models import (
    MODELS,
    MOST_TEST_ROWS,
    MOST_TRAINING_ROWS,
    TEST_SHARE,
    make_model,
    train_reference_model,
)
from askwise.selector import DynamicFeatureSelector
from askwise.table.desk import Desk, Shown
from tests import commands

QUICK = ["--model", "logistic", "--budget", "2"]


run = partial(commands.run, code=None)


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


@pytest.fixture(autouse=True)
def fewer_random_orders(monkeypatch):
    """One is as good as five where the comparison is not looked at."""
    monkeypatch.setattr("askwise.cli.comparison.RANDOM_ORDERS", 1)


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    page = tmp_path_factory.mktemp("wine") / "wine.html"
    return run("demo", "--data", "wine", "--report", page), page


def test_demo_compares_and_walks_and_writes(wine):
    result, page = wine
    assert result.exit_code == 0, result.output
    table = result.stdout.split("Accuracy on")[1]
    rows = [line.split() for line in table.splitlines() if line.count("%") == 3]
    assert [row[0] for row in rows] == [str(k) for k in range(1, 11)]
    askwise = [float(row[1].rstrip("*%")) for row in rows]
    assert askwise[-1] >= 90 > askwise[0]
    assert "The model with everything: " in result.stdout
    assert "Budgets of 1 to 10 of the 13 features are compared." in result.stdout
    assert "Held-out case" in result.stdout
    assert f"Report: {page}" in result.stdout
    text = page.read_text(encoding="utf-8")
    assert "Accuracy by budget" in text
    assert "The policy on one page" not in text  # one question settles nearly every wine: a chart says nothing


def test_demo_draws_the_policy_where_it_asks_more_than_one_question(tmp_path):
    page = tmp_path / "tree.html"
    assert run("demo", "--data", "wine", "--model", "tree", "--budget", "3", "--report", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "The policy on one page" in text
    assert "Decides like the policy in" in text


def test_progress_is_not_among_the_results(wine):
    result, _ = wine
    assert "asking at random, 5 of 5" in result.stderr
    assert "asking at random" not in result.stdout


def test_choices_are_told_with_their_reasons():
    ahead = {"gates": [], "n_considered": 40, "n_features": 500}
    choices: dict[str, Any] = {
        "policy": {"name": "Greedy", "by": "default", "lookahead": ahead},
        "calibration": None,
        "settling": {"refits": 2, "cut_short": True},
    }
    policy, cut = choices_in_words(choices)
    assert policy == "policy Greedy (looking ahead, tried from 40 of 500 features, would gain little)"
    assert cut == "on part of the rows only, to save time (2 refits of the model)"
    choices["policy"] = {"name": "Planned", "lookahead": {**ahead, "n_considered": 500}, "plans": []}
    plans = "looking ahead would gain little; under a budget, what its rest can buy counts as well"
    assert choices_in_words(choices)[0] == f"policy Planned ({plans})"
    choices["policy"] = {"name": "Lookahead", "lookahead": {**ahead, "gates": ["switch"]}}
    choices["settling"]["cut_short"] = False
    assert choices_in_words(choices) == ["policy Lookahead (switch: worth most for what to acquire next)"]


def test_demo_json_of_a_mixed_table_with_missing_cells(csv, tmp_path):
    page = tmp_path / "page.html"
    result = run("demo", "--csv", csv(), "--target", "answer", "--report", page, "--json", *QUICK)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [row["budget"] for row in found["curves"]] == [1.0, 2.0]
    assert all(row["random_low"] <= row["random"] <= row["random_high"] for row in found["curves"])
    assert found["full_accuracy"] > 0.7
    assert found["choices"]["policy"].items() >= {"name": "Greedy", "by": "default"}.items()
    assert f"{found['choices']['answer']['factor']:g}" in found["choices"]["answer"]["log_loss"]
    trace = found["story"]["trace"]
    assert len(trace) == 3
    assert all(sum(step["probabilities"].values()) == pytest.approx(1) for step in trace)
    assert trace[-1]["prediction"] == found["story"]["truth"]
    assert sum(step["cost"] for step in trace) == 2
    assert found["flowchart"]["held_out"]["policy_average_price"] <= 2  # the budget holds there, too
    assert page.exists()
    again = run("demo", "--csv", csv(), "--target", "answer", "--report", page, "--json", *QUICK)
    assert json.loads(again.stdout) == found


def test_demo_spends_money_where_there_are_prices(tmp_path):
    result = run(
        "demo", "--data", "heart", "--model", "logistic", "--budget", "20", "--json", "--report", tmp_path / "p.html"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["curves"][-1]["budget"] == 20
    assert 0 < found["curves"][-1]["spent"] <= 20 + 1e-9
    assert 0 < found["flowchart"]["held_out"]["policy_average_price"] <= 20 + 1e-9
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
    result = run("demo", "--data", "wine", "--model", "tree", "--budget", 2, "--report", page)
    assert result.exit_code == 0, result.output
    after = result.stdout.split("Held-out case")[1]
    said = after[after.index("Rules that fire") : after.index("Report:")]
    firing, possible = (part.count("- if ") for part in said.split("Could still decide"))
    assert 1 <= firing <= 3
    assert 1 <= possible <= 3
    one = (
        r"- if (?:[\d.]+ < )?\S+ [<>]=? [\d.]+.*?: [012], confidence \d+% \(.*?\d+ rows? given to fit.*?\), weight \d+%"
    )
    assert len(re.findall(one, " ".join(said.split()))) == firing
    assert max(len(line) for line in said.splitlines()) <= 80
    assert "The rules behind it" in page.read_text(encoding="utf-8")


def conditions(rule: dict[str, Any]) -> list[str]:
    return rule["conditions"]


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
    assert all(conditions(rule) == [] and rule["open"] for rule in start["rules"]["possible"])
    asked: list[str] = []
    for step in steps:
        asked.append(step["feature"])
        rules = step["rules"]
        words = [word for rule in [*rules["firing"], *rules["possible"]] for word in conditions(rule)]
        assert words
        assert all(any(name in word for name in asked) for word in words)
        assert all(step["feature"] not in word for rule in rules["possible"] for word in rule["open"])
        if rules["firing"] and rules["n_firing"] == len(rules["firing"]):
            for label, share in rules["probabilities"].items():
                mean = sum(rule["weight"] * rule["probabilities"][label] for rule in rules["firing"])
                assert mean == pytest.approx(share)
            said, shown = rules["probabilities"], step["probabilities"]
            assert max(said, key=said.get) == max(shown, key=shown.get)  # calibration changes no decision
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
    result = run("ask", "--data", "wine", "--model", "tree", text="1.1\nu\n1.2\n-\nq\n")
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
    return {
        "conditions": words,
        "then": "[bold]",
        "confidence": 0.97,
        "evidence": "42 rows given to fit",
        "n_trees": 1,
        "degree": 1.0,
        "weight": 0.61,
        **more,
    }


def printed(firing: list[dict[str, Any]], possible: list[dict[str, Any]], **counts: int) -> str:
    rules = {"firing": firing, "possible": possible, "n_firing": len(firing), "n_possible": len(possible), **counts}
    with (console := make_console()).capture() as shown:
        print_rules(console, {"rules": rules}, most=2)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def test_rules_in_words():
    firing = [rule(["flavanoids > 1.6", "proline > 755"]), rule([], n_trees=3, degree=0.4, weight=0.39)]
    possible = [rule(["ash > 2"], open=["[hue] > 3.8"], evidence="no row given to fit"), rule([], open=["y <= 1"])]
    assert printed(firing, possible).splitlines() == [
        "Rules that fire:",
        "  - if flavanoids > 1.6 and proline > 755: [bold], confidence 97% (42 rows given",
        "    to fit), weight 61%",
        "  - always: [bold], confidence 97% (42 rows given to fit; in 3 trees), fires at",
        "    40%, weight 39%",
        "Could still decide:",
        "  - if [hue] > 3.8, given ash > 2: [bold], confidence 97% (no row given to fit)",
        "  - if y <= 1: [bold], confidence 97% (42 rows given to fit)",
    ]


def test_many_rules_and_long_ones_are_cut():
    firing = [rule([f"{k}{'x' * 200}", *"abcdef"]) for k in range(3)]
    said = printed(firing, [rule([], open=[f"y <= {k}"]) for k in range(5)], n_firing=30, n_possible=7)
    assert "Rules that fire (2 of 30):" in said
    assert "Could still decide (2 of 7):" in said
    assert said.count("- if ") == 4
    assert "… and a and b and c and 3 more: [bold]" in " ".join(said.split())
    assert max(len(line) for line in said.splitlines()) <= 80


def test_different_rules_never_look_equal():
    """Neither where they differ in what is known only, nor where they differ in a condition that would be cut off."""
    same_open = [rule([f"x > {k}"], open=["y <= 1"]) for k in range(2)]
    long = [rule([*"abcdef", f"x > {k}"]) for k in range(2)]
    for found in (printed([], same_open), printed(long, [])):
        for k in range(2):
            assert f"x > {k}: [bold]" in " ".join(found.split())


def test_warnings_and_control_characters_in_the_terminal():
    outside = [{"feature": "age", "column": "a\x1b[2Jge", "value": 300, "seen": [18, 96]}]
    with (console := make_console()).capture() as shown:
        print_warnings(console, {"outside": outside, "novelty": "infinite"})
        print_warnings(console, {})
    said = " ".join(shown.get().split())
    assert "! a\\u001b[2Jge 300 is outside everything seen in training (18 to 96)." in said
    assert "novelty infinite" in said
    assert said.endswith("! Do not rely on this prediction.")


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


def test_tables_that_cannot_be_used_are_refused_by_name(csv, tmp_path):
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({}, "nope", r"no column 'nope'. Its columns are: size, color \[hue\], flag, count, answer"),
        ({"answer": ["yes", None] * 40}, "answer", r"missing in 40 of 80 rows .*the first is row 2"),
        ({"answer": "yes"}, "answer", "two or more classes"),
        ({"answer": np.linspace(0, 1, 80)}, "answer", "regression"),
        ({"answer": [f"case {i}" for i in range(80)]}, "answer", "not a class"),
        ({"name": [f"Smith {i}" for i in range(80)]}, "answer", r"'name' .*--drop 'name'"),
        ({"day": pd.date_range("2020-01-01", periods=80).astype(str)}, "answer", r"'day' .* date into a number"),
        ({"empty": np.nan}, "answer", "'empty' .* is empty"),
        ({"far": np.inf}, "answer", "'far' holds an infinite value"),
        ({"age": [*range(79), "n/d"]}, "answer", r"'age' .*'n/d' \(first in line 81\).*--missing 'n/d'"),
    ]
    for columns, target, message in cases:
        result = run("demo", "--csv", csv(**columns), "--target", target, "--report", tmp_path / "p.html")
        assert (result.exit_code, result.stdout) == (2, "")
        said = result.stderr.splitlines()[-1]
        assert said.startswith("askwise: ")
        assert re.search(message, said), said


def test_files_that_are_no_tables_are_refused(csv, tmp_path):
    short = tmp_path / "short.csv"
    make_table(5).to_csv(short, index=False)
    for path, message in [
        (tmp_path / "none.csv", "There is no file"),
        (tmp_path, "is a folder"),
        (short, "at least 20"),
        (csv(make_table()[["answer"]]), "no columns besides the target"),
    ]:
        result = run("demo", "--csv", path, "--target", "answer", "--report", tmp_path / "p.html")
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr, result.stderr


def test_a_table_of_another_kind_is_read_and_what_was_found_out_is_told(tmp_path):
    path = tmp_path / "table.csv"
    table = make_table().rename(columns={"size": "größe", "color [hue]": "hue\x1b[2J"}).assign(extra="01")
    table["count"] = ["n/d", *(str(k) for k in range(1, 80))]
    path.write_bytes(table.to_csv(index=False, sep=";", decimal=",").encode("latin-1"))
    options = ["--missing", "n/d", "--number", "extra", "--text", "flag", "--target", "answer", "--json"]
    result = run("ask", "--csv", path, *options, "--model", "logistic", text="q\n")
    assert result.exit_code == 0, result.output
    assert "separated by semicolon, a comma as decimal mark, encoding cp1252" in result.stderr
    assert "numbers: größe, count, extra" in result.stderr
    assert "text: hue\\u001b[2J, flag, answer" in result.stderr
    assert "\x1b[2J" not in result.output
    assert {entry["feature"] for entry in json.loads(result.stdout)["ranking"]} >= {"größe", "flag", "count"}


USAGE_PROGRAM = """
import contextlib, io, json, sys
from askwise.cli.app import app
said = []
for arguments in json.loads(sys.argv.pop()):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            app(arguments)
        except SystemExit as end:
            said.append([end.code, errors.getvalue()])
heavy = {"pandas", "numpy", "sklearn", "matplotlib", "torch"} & set(sys.modules)
print(json.dumps([said, sorted(heavy)]))
"""


def test_bad_usage_is_refused_before_heavy_imports(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    (tmp_path / "m.pkl").write_text("")
    fit = ["fit", "t.csv", "--target", "y", "-o", "s"]
    cases = [
        (["demo", "--csv", "x.csv", "--target", "y"], 2, "There is no file x.csv"),
        (["demo", "--data", "wine", "--csv", "x.csv", "--target", "y"], 2, "exclude each other"),
        (["demo", "--csv", "x.csv"], 2, "--csv needs --target"),
        (["demo", "--target", "y"], 2, "add --csv FILE"),
        (["demo", "--missing", "?"], 2, "add --csv FILE"),
        (["demo", "--budget", "-1"], 2, "--budget must be a finite number"),
        (["demo", "--budget", "nan"], 2, "--budget must be a finite number"),
        (["demo", "--report", "nowhere/page.html"], 2, "there is no folder"),
        (["demo", "--model", "svm"], 2, "logistic"),
        (["fit", "none.csv", "--target", "y", "-o", "s"], 2, "There is no file none.csv"),
        ([*fit, "--model", "m.pkl"], 2, "A pickle or joblib file can run any code"),
        ([*fit, "--model", "m.onnx", "--train", "mlp"], 2, "exclude each other"),
        ([*fit, "--agreement", "0.9"], 2, "--agreement needs --calibrate"),
        ([*fit, "--classes", "a,b"], 2, "--classes is for boosters"),
        ([*fit[:-1], "nowhere/s"], 2, "there is no folder"),
        (["evaluate", "none", "t.csv"], 3, "none is not a folder"),
        (["acquire", "none", "t.csv", "-o", "o.csv"], 3, "none is not a folder"),
        (["explain", "none", "t.csv", "--case", "1"], 3, "none is not a folder"),
        (["ask", "none"], 3, "none is not a folder"),
        (["prices", "none.csv"], 2, "There is no file none.csv"),
    ]
    given = json.dumps([arguments for arguments, _, _ in cases])
    command = [sys.executable, "-c", USAGE_PROGRAM, given]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    said, heavy = json.loads(done.stdout)
    assert heavy == []
    for (arguments, code, words), (found, message) in zip(cases, said, strict=True):
        assert found == code, (arguments, message)
        assert words in message, arguments
    result = run("demo", "--data", "nope")
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert "breast_cancer, bupa, cirrhosis" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "m.pkl"}


def test_dropped_columns_are_not_asked_for_and_row_numbers_are_noticed(csv):
    path = csv(number=range(80), name=[f"Smith {i}" for i in range(80)])
    result = run("ask", "--csv", path, "--target", "answer", "--drop", "name", *QUICK, "--json", text="q\n")
    assert result.exit_code == 0, result.output
    assert "column 'number' numbers the rows" in result.stderr
    asked = {entry["feature"] for entry in json.loads(result.stdout)["ranking"]}
    assert asked == {"size", "color [hue]", "flag", "count", "number"}


def test_ask_takes_answers_and_bad_text_and_undo_and_stop():
    lines = ["abc", "", "2,5", "u", "u", "1,234", "2.6", "-", "?", "1e999", "nan", "foo = 3", "4.2", "q"]
    result = run("ask", "--data", "wine", "--model", "logistic", "--budget", "3", "--json", text="\n".join(lines))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    for words in (
        "Chosen: policy Greedy (looking ahead would gain little); predictions: the model's average over missing ",
        "must be a number; got 'abc'",
        "Type a value",
        "nothing to undo",
        "1,234 may be 1.234 or 1234",
        "finite number",
        "type - if it is unavailable",
        "There is no column 'foo'",
        "Not known yet: ",
        "why: It is expected to tell most for its price.",
        "Next best: ",
        "Stopped.",
    ):
        assert words in said
    found = json.loads(result.stdout)
    first, second, third = found["trace"][1:]
    assert (first["event"], first["value"]) == ("answer", 2.6)
    assert second["event"] == "unavailable"
    assert (third["event"], third["value"]) == ("answer", 4.2)
    assert found["unavailable"] == [second["feature"]]
    assert found["spent"] == 2.0


def test_ask_says_what_to_order_together():
    lines = ["set 2", "set 0,5", "set -1", "set much", "SET 1", "q"]
    result = run("ask", "--data", "wine", "--model", "logistic", text="\n".join(lines))
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    for words in ("(price 2, expected gain 0.", "(price 1, expected gain", "Nothing within that price"):
        assert words in said
    for typed in ("-1", "much"):
        assert f"set needs a price >= 0, such as set 20; got {typed}." in said


def test_ask_ends_where_the_input_does_and_where_the_money_does():
    result = run("ask", "--data", "wine", *QUICK, text="2.5\n")
    assert result.exit_code == 0, result.output
    assert "Stopped." in result.stdout
    assert "spent 1, left 1" in result.stdout
    result = run("ask", "--data", "wine", *QUICK, text="2.5\n3\n")
    assert "Nothing more can be bought" in result.stdout
    assert "spent 2, left 0" in result.stdout


def test_what_is_known_already_is_volunteered_at_no_charge():
    lines = ["Proline = 1000", "hue: 0,9", "u", "alcohol = 13,9", "proline = 3", "u", "2.5", "q"]
    case = [
        "ask",
        "--yes",
        "--data",
        "wine",
        "--model",
        "logistic",
        "--budget",
        1.5,
        "--json",
        "--known",
        "ALCOHOL=13,2",
    ]
    result = run(*case, text="\n".join(lines))
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["known"] == {"alcohol": 13.9, "proline": 1000.0, found["trace"][1]["feature"]: 2.5}  # hue was undone
    assert found["spent"] == 1.0
    assert re.search(r"known: +.*alcohol", " ".join(result.stderr.split()))
    for known, message in [
        ("nope=1", "--known must be NAME=VALUE with the name of a column (alcohol,"),
        ("hue", "got 'hue'"),
        ("hue=red", "--known hue=red: The answer for 'hue' must be a number"),
    ]:
        result = run("ask", "--data", "wine", "--model", "logistic", "--known", known, text="q\n")
        assert result.exit_code == 2
        assert message in result.stderr


def test_the_feature_asked_for_is_volunteered_by_its_name():
    case = ["ask", "--yes", "--data", "wine", "--model", "logistic", "--budget", "1", "--json"]
    asked = json.loads(run(*case, text="q\n").stdout)["suggestion"]
    result = run(*case, text=f"{asked} = 2.5\n3\nq\n")
    found = json.loads(result.stdout)
    assert (found["known"][asked], found["spent"]) == (2.5, 1.0)  # only the 3 was paid for
    answered = found["trace"][-1]["feature"]
    result = run(*case[:4], "--json", text=f"{asked} = 2.5\n3\n{answered} = 4\nq\n")
    assert f"'{answered}' was answered already; type u" in " ".join(result.stderr.split())
    case = ["ask", "--yes", "--data", "breast_cancer", "--model", "logistic", "--json"]
    asked = json.loads(run(*case, text="q\n").stdout)["suggestion"]
    for lines, spent in (([f"mean {asked} = 9", "-", "-"], 0.0), ([f"mean {asked} = 9", "2", "-"], 1.0)):
        found = json.loads(run(*case, text="\n".join([*lines, "q"])).stdout)
        assert (list(found["known"]), found["spent"]) == ([asked], spent)


def test_an_unknown_name_is_not_taken_for_a_category(csv):
    lines = ["-"] * 3 + ["foo=3", "q"]
    case = ["ask", "--csv", csv(make_table()[["color [hue]", "answer"]]), "--target", "answer", "--model", "logistic"]
    said = " ".join(run(*case, text="\n".join(lines[3:])).stdout.split())
    assert "There is no column 'foo'. The columns are: color [hue]." in said


def test_ask_says_why_nothing_more_can_be_bought():
    said = " ".join(run("ask", "--data", "wine", "--model", "logistic", "--budget", "0").stdout.split())
    assert "Nothing more can be bought: 0 of the budget is left, and the cheapest feature" in said
    assert "costs 1." in said


class NoiseTellsNothing(Policy):
    def fit(self, context):
        return self

    def scores(self, state):
        return np.tile([0.5, -8e-21], (len(state.mask), 1))


def test_a_free_feature_that_tells_nothing_is_no_reason_to_stop(capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["signal", "noise"])
    y = (X["signal"] > 0).to_numpy()
    selector = DynamicFeatureSelector(
        LogisticRegression(), costs={"noise": 0}, policy=NoiseTellsNothing(), epistemic=None, progress=False
    )
    dialog = Dialog(make_console(), selector.fit(X, y), Desk(), {}, None)
    suggestion = dialog.session.suggest()
    assert suggestion is not None
    assert (suggestion.feature, suggestion.gain) == ("noise", 0.0)
    dialog._advise(suggestion)
    said = capsys.readouterr().out
    assert "You could stop" not in said
    assert "why: It is free. Next best: signal." in said


def test_a_person_at_a_terminal_confirms_an_unusual_value(monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 80, 80), "sex": rng.choice(["f", "m"], 80)})
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    selector = DynamicFeatureSelector(model, epistemic=None, progress=False).fit(X, X["age"] > 50)
    asked = "Age is 175; 20 to 79 seen in training. Keep it? [y/N]"
    for typed, known in (
        (["175", "n", "33", "q"], {"age": 33}),
        (["175", "", "q"], {}),
        (["age = 175", "y", "q"], {"age": 175}),
    ):
        desk = Desk.of(selector, Desk(None, {"age": Shown("Age", low=20, high=79)}))
        dialog = Dialog(make_console(), selector, desk, {}, None)
        lines = iter(typed)
        monkeypatch.setattr(dialog.console, "input", lambda prompt, lines=lines: next(lines))
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        dialog.run()
        assert dialog.session.known == known
        assert asked in capsys.readouterr().out


def test_input_that_nobody_can_confirm_is_refused():
    """What a terminal asks to confirm ends a command that reads from a pipe, unless --yes accepts it."""
    quick = ["ask", "--data", "wine", "--model", "logistic"]
    feature = "flavanoids"
    for arguments, text in (([], f"{feature} = 1250\nq\n"), (["--known", f"{feature}=1250"], "q\n")):
        refused = run(*quick, *arguments, text=text)
        assert refused.exit_code == 2
        said = " ".join(refused.stderr.split())
        assert f"{feature} is 1250; 0.34 to 5.08 seen in training." in said
        assert "add --yes" in said
        taken = run(*quick, *arguments, "--yes", text=text)
        assert taken.exit_code == 0, taken.output
        assert f"{feature} 1250 is outside everything seen in training" in " ".join(taken.stdout.split())


def test_no_advice_to_stop_under_a_warning():
    result = run("ask", "--data", "wine", "--model", "logistic", "--known", "proline=99999", "--yes", text="q\n")
    assert "! Do not rely on this prediction." in result.stdout
    assert "You could stop" not in result.stdout


def test_rounding_error_reads_as_zero():
    assert [shown_number(number) for number in (-8e-21, 0.0, -0.25, None, "infinite")] == [
        "0.000",
        "0.000",
        "-0.250",
        "-",
        "infinite",
    ]


def test_what_was_volunteered_late_is_marked_in_the_record():
    result = run(
        "ask",
        "--yes",
        "--data",
        "wine",
        "--model",
        "logistic",
        "--json",
        "--known",
        "hue=1",
        text="2.5\nalcohol = 13\nq\n",
    )
    said = " ".join(result.stderr.split())
    assert "The earlier steps are computed again, as if alcohol had been known from the start." in said
    assert "Volunteered, and shown as known from the start: alcohol." in said
    assert json.loads(result.stdout)["volunteered"] == ["alcohol"]


def test_prices_are_given_by_name(csv):
    case = ["ask", "--yes", "--csv", csv(), "--target", "answer", "--model", "logistic", "--json"]
    found = json.loads(run(*case, "--price", "size=2.5", "--price", "color [hue] = 0", text="q\n").stdout)
    assert {entry["feature"]: entry["cost"] for entry in found["ranking"]} == {
        "size": 2.5,
        "color [hue]": 0.0,
        "flag": 1.0,
        "count": 1.0,
    }
    for given, message in (
        ("sise=2", "--price must be NAME=PRICE with the name of a feature (size,"),
        ("size", "got 'size'"),
        ("size=much", "--price size=much: the price must be a number"),
        ("size=-1", "'size'"),
    ):
        result = run(*case, f"--price={given}", text="q\n")
        assert result.exit_code == 2
        assert message in result.stderr
        assert "training" not in result.stderr


def test_all_unusable_columns_are_named_at_once(csv):
    names = [f"Smith {i}" for i in range(80)]
    result = run("demo", "--csv", csv(name=names, other=names), "--target", "answer")
    assert result.exit_code == 2
    assert "--drop 'name'" in result.stderr
    assert "--drop 'other'" in result.stderr
    result = run("demo", "--csv", csv(), "--target", "anwser", "--drop", "nope")
    assert "has no column 'anwser', 'nope'" in result.stderr
    assert "training" not in result.stderr


def test_flags_take_no_value_in_the_help():
    shown = run("ask", "--help").output
    line = next(line for line in shown.splitlines() if "--json" in line)
    assert "bool" not in line


def test_small_tables_are_used_whole():
    table = pd.DataFrame({"x": np.arange(900), "y": np.arange(900) % 7})
    data = Dataset("made", table, np.tile(["a", "b"], 450), None, None, "")
    assert "not used" not in train_reference_model(data, "tree", 0).split


def test_ask_says_when_one_could_stop():
    known = ["proline=1400", "flavanoids=3.2", "alcohol=14.2", "color_intensity=6"]
    for n_known, said in [
        (0, None),
        (2, "You could stop: the model gives 0 "),
        (4, "You could stop: the model gives 0 "),
    ]:
        result = run(
            "ask",
            "--data",
            "wine",
            "--model",
            "logistic",
            *(f"--known={value}" for value in known[:n_known]),
            text="q\n",
        )
        assert result.exit_code == 0, result.output
        shown = " ".join(result.stdout.split())
        assert said in shown if said else "You could stop" not in shown, shown


def test_an_answer_on_which_the_model_fails_is_taken_back():
    result = run("ask", "--yes", "--data", "wine", "--model", "tree", "--json", text="1e160\n2.5\nq\n")
    assert result.exit_code == 0, result.output
    assert "Check the value and its unit" in " ".join(result.stderr.split())
    assert [step["value"] for step in json.loads(result.stdout)["trace"]] == [None, 2.5]


def test_ask_reads_categories_in_any_case_and_values_spelled_like_commands(csv):
    case = ["ask", "--yes", "--csv", csv(), "--target", "answer", "--model", "logistic", "--json"]
    lines = ["color [hue] = green", "color [hue] = RED", "u", "color [HUE]: =u", "color [hue]: u", "Flag=true", "q"]
    result = run(*case, text="\n".join(lines))
    assert result.exit_code == 0, result.output
    assert "has no value 'green' in the training rows" in " ".join(result.stderr.split())
    assert json.loads(result.stdout)["known"] == {"color [hue]": "u", "flag": "True"}
    asked = run(*case, text="-\n" * 4)
    hue = [step["feature"] for step in json.loads(asked.stdout)["trace"]].index("color [hue]") - 1
    result = run(*case, text="\n".join(["-"] * hue + ["=u", "q"]))
    assert "for the value u type =u" in result.stderr
    assert json.loads(result.stdout)["known"] == {"color [hue]": "u"}


def test_ask_goes_through_the_columns_of_a_group(tmp_path):
    page = tmp_path / "case.html"
    lines = ["500", "u", "450", "-", "800", "-", "-", "-", "1", "q"]
    result = run(
        "ask",
        "--yes",
        "--data",
        "breast_cancer",
        "--model",
        "logistic",
        "--json",
        "--report",
        page,
        text="\n".join(lines),
    )
    assert result.exit_code == 0, result.output
    answered, unavailable = json.loads(result.stdout)["trace"][1:]
    assert list(answered["value"].values()) == [450.0, None, 800.0]
    assert unavailable["event"] == "unavailable"
    assert "The story of one case" in page.read_text(encoding="utf-8")


def test_columns_of_a_group_are_volunteered_together():
    case = ["ask", "--yes", "--data", "breast_cancer", "--model", "logistic", "--json"]
    asked = json.loads(run(*case, text="-\n-\n-\nq\n").stdout)["trace"][1]["feature"]
    other = "smoothness" if asked != "smoothness" else "symmetry"
    lines = [f"mean {other} = 0.1", "u", f"mean {other} = 0.1", "-", f"worst {other} = 0,2", "q"]
    result = run(*case, text="\n".join(lines))
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert list(found["known"]) == [other]
    assert list(found["known"][other].values()) == [0.1, None, 0.2]
    assert found["spent"] == 0
    # A value turns up for a feature that was marked as unavailable.
    lines = ["-", "-", "-", f"mean {asked} = 9", "-", "-", "q"]
    found = json.loads(run(*case, text="\n".join(lines)).stdout)
    assert (found["unavailable"], list(found["known"])) == ([], [asked])


def test_everything_bought_and_the_model_with_everything_are_told_apart():
    table = make_table()
    for X, differs in ((table.drop(columns="answer"), True), (table[["size"]].fillna(0.0), False)):
        notes = []
        for seed in range(6):
            rows = train_reference_model(
                Dataset("made", X, table["answer"].to_numpy(str), None, None, ""), "tree", seed
            )
            selector = DynamicFeatureSelector(rows.estimator, epistemic=None, random_state=0, progress=False)
            selector.fit(rows.X_train, rows.y_train)
            notes.append(
                missing_note(selector, rows, float(np.mean(rows.estimator.predict(rows.X_test) == rows.y_test)))
            )
        assert any(notes) == differs
        assert all("held-out rows have cells that are missing for real" in note for note in notes if note)


def test_ctrl_c_is_clean(monkeypatch, tmp_path):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("askwise.cli.prepare.train_reference_model", interrupted)
    result = run("demo", "--report", tmp_path / "p.html")
    assert result.exit_code == 130
    assert "stopped" in result.stderr
    assert "Traceback" not in result.output


def test_ctrl_c_in_the_training_of_a_network_is_not_swallowed(monkeypatch, tmp_path):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn.neural_network.MLPClassifier._backprop", interrupted)
    for command in ("demo", "ask"):
        result = run(command, "--model", "mlp", "--report", tmp_path / "p.html", text="q\n")
        assert result.exit_code == 130, result.output


def test_the_module_is_an_entry_point_and_starts_without_the_heavy_libraries():
    command = [sys.executable, "-X", "importtime", "-m", "askwise", "--help"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "demo" in done.stdout
    assert "ask" in done.stdout
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not {"sklearn", "matplotlib", "torch", "pandas"} & imported


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_an_interrupt_from_outside_ends_with_130(tmp_path):
    command = [
        sys.executable,
        "-m",
        "askwise",
        "demo",
        "--model",
        "forest",
        "--report",
        str(tmp_path / "p.html"),
    ]
    # A shell without job control starts background jobs with the signal ignored, which children inherit.
    heed = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=heed, **pipes) as process:
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


def test_the_reference_model_is_tested_on_other_rows_and_a_demo_takes_fewer():
    y = np.repeat(["many", "few", "one"], [4000, 3, 1])
    data = Dataset("made", pd.DataFrame({"x": np.arange(len(y))}), y, None, None, "")
    quick, same, other = (train_reference_model(data, "tree", seed) for seed in (0, 0, 1))
    assert set(quick.y_train) == {"many", "few", "one"}
    assert (len(quick.y_train), len(quick.y_test)) == (MOST_TRAINING_ROWS, MOST_TEST_ROWS)
    assert "2,354 of 4,004 rows are not used" in quick.split
    assert quick.X_test.equals(same.X_test)
    assert not quick.X_test.equals(other.X_test)
    whole = train_reference_model(data, "tree", 0, limited=False)
    assert sorted([*whole.X_train["x"], *whole.X_test["x"]]) == list(range(len(y)))
    assert len(whole.y_test) == round(4000 * TEST_SHARE) + 1


def test_rows_of_one_group_are_not_on_both_sides_of_the_reference_model():
    groups, y = np.repeat(np.arange(50), 4), np.tile(["a", "b"], 100)
    data = Dataset("made", pd.DataFrame({"x": np.arange(200)}), y, None, None, "", row_groups=groups)
    rows = train_reference_model(data, "tree", 0)
    assert len(rows.y_train) + len(rows.y_test) == 200
    assert not set(groups[rows.X_train["x"]]) & set(groups[rows.X_test["x"]])
    assert "by row group" in rows.split


def test_h_is_help_in_every_command():
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        short, long = run(name, "-h"), run(name, "--help")
        assert short.exit_code == 0, short.output
        assert short.stdout == long.stdout
    assert run("-h").stdout == run("--help").stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_told_in_one_line(tmp_path):
    for command in (["--help"], ["--version"], ["data", "wine", "-o", str(tmp_path / "wine")]):
        with open("/dev/full", "w") as full:
            ended = subprocess.run(
                [sys.executable, "-m", "askwise", *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
            )
        assert ended.returncode == 1
        assert ended.stderr == "askwise: the output cannot be written: No space left on device.\n"


def test_a_closed_pipe_is_no_error():
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "askwise", "fit", "-h"], stdout=write, stderr=subprocess.PIPE, timeout=120
    )
    os.close(write)
    assert ended.stderr == b""


def test_commands_that_are_not_installed_say_how_to_install_them(monkeypatch):
    monkeypatch.setattr("askwise.cli.elsewhere.entry_points", lambda group: ())
    alone = typer.Typer()
    add_commands(alone)
    for arguments in (["bench", "uniform", "--seeds", "2"], ["bench", "--list"], ["report", "folder"]):
        result = CliRunner().invoke(alone, arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (
            f"askwise: {arguments[0]} is a command of askwise-bench, which is not installed. Install it with: "
            "pip install askwise-bench\n"
        )
    listed = CliRunner().invoke(alone, ["--help"]).stdout
    assert "bench " in listed
    assert listed.count("not installed") == 2
