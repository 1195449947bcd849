"""The commands on one's own files: from a table to a page, and every refusal by name."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import askwise
from askwise.cli.findings import find
from askwise.cli.manager_page import render
from askwise.cli.price_list import read_price_list
from askwise.cli.resumable import Resumable
from askwise.errors import InvalidInput
from askwise.persistence import saving
from askwise.scale import parts
from askwise.table.desk import Desk
from tests.commands import run

pytest.importorskip("skops")


def make_table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "dose": rng.normal(5, 2, n).round(2),
            "color": rng.choice(["red", "blue"], n),
            "noise": rng.normal(size=n).round(3),
        }
    )
    table["outcome"] = np.where(table["age"] + 8 * table["dose"] + 10 * (table["color"] == "red") > 95, "ill", "well")
    return table


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the files of a user, and the selector fitted on them."""
    folder = tmp_path_factory.mktemp("own")
    for seed, (name, n) in enumerate({"train": 150, "cal": 60, "test": 40}.items()):
        make_table(n, seed).to_csv(folder / f"{name}.csv", index=False)
    (folder / "groups.toml").write_text('"lab panel" = ["dose", "noise"]\n')
    (folder / "prices.csv").write_text(
        "feature,price,setup,setup_cost,label,unit,low,high,currency\n"
        "age,1,visit,0.5,Age,years,0,120,EUR\nlab panel,20,,,Lab panel,,,,EUR\ndose,,,,Dose,mg,,,EUR\n"
        "noise,,,,,,,,\ncolor,2,visit,0.5,Color,,,,EUR\noutcome,1,,,,,,,\n"
    )
    result = run(
        *("fit", folder / "train.csv", "--target", "outcome", "--train", "logistic", "-o", folder / "selector"),
        *("--prices", folder / "prices.csv", "--groups", folder / "groups.toml"),
        *("--calibrate", folder / "cal.csv", "--agreement", 0.9, "--json"),
    )
    return folder, json.loads(result.stdout)


def test_fit_saves_prices_labels_and_the_stop(files):
    folder, facts = files
    assert facts["classes"] == "ill, well"
    assert facts["stop"].startswith("Guaranteed with 90% confidence: at most 10%")
    selector = askwise.load(folder / "selector")
    assert dict(zip(selector.features_, selector.costs_.tolist(), strict=True)) == {
        "age": 1,
        "lab panel": 20,
        "color": 2,
    }
    assert len(selector.prices_.shared) == 1
    desk = Desk.load(folder / "selector", selector)
    assert (desk.currency, desk.target) == ("EUR", "outcome")
    assert (desk.features["age"].label, desk.features["age"].unit, desk.features["age"].high) == ("Age", "years", 120)
    assert desk.features["dose"].unit == "mg"
    assert selector.stop_ is not None


def test_evaluate_writes_one_page_with_everything_on_it(files, tmp_path):
    folder, _ = files
    page = tmp_path / "page.html"
    result = run("evaluate", folder / "selector", folder / "test.csv", "-o", page, "--json")
    found = json.loads(result.stdout)
    summary = found["summary"]
    assert summary["everything"] == pytest.approx(22.5)
    assert 0 < summary["low"] <= summary["price"] <= summary["high"] <= summary["everything"]
    assert summary["kept"] >= 0.8
    assert {"accuracy_askwise", "ece_static", "accuracy_random"} <= set(found["curves"][0])
    last = found["curves"][-1]
    assert last["budget"] == pytest.approx(22.5)  # the curves end where everything is bought
    assert last["kept"] == 1
    assert found["asked"][0]["asked"] == 1.0
    assert found["rejection"]["askwise"][-1] == pytest.approx(summary["accuracy"])
    text = page.read_text(encoding="utf-8")
    for words in ("EUR per case", "What is asked first, and why", "Lab panel", "Guaranteed with", "hand to a person"):
        assert words.replace(" per case", "") in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "<script" not in text


def test_training_rows_are_noticed_where_unseen_ones_are_needed(files, tmp_path):
    folder, _ = files
    seen = folder / "train.csv"
    said = run("evaluate", folder / "selector", seen, "-o", tmp_path / "page.html").stderr
    noticed = "train.csv: 150 of 150 rows were given to fit as well"
    assert noticed in " ".join(said.split())
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert noticed in page
    assert "that the model has not seen" not in page
    command = ["fit", seen, "--target", "outcome", "--train", "logistic", "-o", tmp_path / "other", "--calibrate", seen]
    said = " ".join(run(*command, code=2).stderr.split())
    assert "--calibrate" in said
    assert "X_cal" not in said


def test_the_order_of_the_columns_does_not_matter(files, tmp_path):
    folder, _ = files
    table = pd.read_csv(folder / "test.csv")
    table[table.columns[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    found = [
        json.loads(run("explain", folder / "selector", path, "--case", 7, "--json").stdout)["probabilities"]
        for path in (folder / "test.csv", tmp_path / "turned.csv")
    ]
    assert found[0] == found[1]


def test_columns_that_are_missing_extra_or_retyped_are_named(files, tmp_path):
    folder, _ = files
    table = pd.read_csv(folder / "test.csv")
    cases = [
        (table.drop(columns="age"), "Missing: 'age'"),
        (table.assign(ward=1), "not known: 'ward'"),
        (table.assign(age=["old", *table["age"][1:]]), "Column 'age' .* must hold numbers and holds 'old' (line 2)"),
        (table.assign(outcome="dead"), "the column 'outcome' holds 'dead'"),
    ]
    for changed, words in cases:
        changed.to_csv(tmp_path / "changed.csv", index=False)
        result = run("evaluate", folder / "selector", tmp_path / "changed.csv", "-o", tmp_path / "p.html", code=2)
        for part in words.split(" .* "):
            assert part in result.stderr
        assert not (tmp_path / "p.html").exists()
    table.drop(columns="outcome").assign(ward=1).to_csv(tmp_path / "changed.csv", index=False)
    run("acquire", folder / "selector", tmp_path / "changed.csv", "--drop", "ward", "-o", tmp_path / "out.csv")


def test_acquire_resumes_and_gives_the_same(files, tmp_path, monkeypatch):
    folder, _ = files
    pytest.importorskip("pyarrow")
    table = pd.read_csv(folder / "test.csv").assign(name=[f"case {k}" for k in range(40)])
    table.to_parquet(tmp_path / "cases.parquet")
    command = ["acquire", folder / "selector", tmp_path / "cases.parquet", "--id", "name", "--at-once", 15]
    whole = run(*command, "-o", tmp_path / "whole.parquet")
    assert "40 cases" in whole.stdout
    blocks, finished = Resumable._block, list[Any]()

    def interrupted(self, *given):
        if len(finished) == 2:
            raise KeyboardInterrupt
        finished.append(given)
        return blocks(self, *given)

    monkeypatch.setattr(Resumable, "_block", interrupted)
    result = run(*command, "-o", tmp_path / "again.parquet", code=130)
    assert "the same command resumes" in result.stderr
    assert not (tmp_path / "again.parquet").exists()
    monkeypatch.setattr(Resumable, "_block", blocks)
    found = json.loads(run(*command, "-o", tmp_path / "again.parquet", "--json").stdout)
    assert found["resumed"] == 30
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "again.parquet"), pd.read_parquet(tmp_path / "whole.parquet")
    )
    assert not list(tmp_path.glob(".*.parts"))
    first = pd.read_parquet(tmp_path / "whole.parquet").iloc[0]
    assert first["case"] == "case 0"
    assert first["n_bought"] == len(first["bought"].split(" > "))
    twice = table.assign(name="same")
    twice.to_parquet(tmp_path / "cases.parquet")
    assert "ids must differ" in run(*command, "-o", tmp_path / "x.csv", code=2).stderr


@pytest.mark.parametrize(("engine", "name"), [([], "out.csv"), (["--engine", "local"], "out.parquet")])
def test_a_second_run_into_the_same_output_is_refused(files, tmp_path, engine, name):
    folder, _ = files
    pytest.importorskip("pyarrow")
    table = make_table(400, 5)
    table.to_parquet(tmp_path / "cases.parquet", row_group_size=5)
    selector = askwise.load(folder / "selector")
    table.iloc[:40].to_parquet(tmp_path / "other.parquet")
    command = [sys.executable, "-m", "askwise", "acquire", folder / "selector", tmp_path / "cases.parquet", *engine]
    command += ["-o", tmp_path / name, *([] if engine else ["--at-once", 5])]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    first = subprocess.Popen([str(part) for part in command], **pipes)
    try:
        while not list(tmp_path.glob(".*.parts/*[0-9].*")):
            assert first.poll() is None
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGSTOP)  # in the middle of its work
        assert not (tmp_path / name).exists()
        second = subprocess.run([str(part) for part in command], check=False, **pipes)
        assert second.returncode == 1
        assert f"Another run is writing to {tmp_path / name}. Wait until it has ended" in second.stderr
        other = ["acquire", folder / "selector", tmp_path / "other.parquet", *engine, "-o", tmp_path / name]
        assert "Another run is writing" in run(*other, code=1).stderr
        os.kill(first.pid, signal.SIGCONT)
        output = first.communicate()
        assert first.returncode == 0, output
    finally:
        first.kill()
        first.communicate()
    done = pd.read_parquet(tmp_path / name) if engine else pd.read_csv(tmp_path / name)
    assert len(done) == 400
    assert done["prediction"].isin(selector.classes_).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.parquet", "other.parquet", name]


def test_a_killed_run_does_not_keep_others_out(files, tmp_path):
    folder, _ = files
    make_table(400, 5).to_csv(tmp_path / "cases.csv", index=False)
    command = ["acquire", folder / "selector", tmp_path / "cases.csv", "-o", tmp_path / "out.csv", "--at-once", 20]
    first = subprocess.Popen([sys.executable, "-m", "askwise", *map(str, command)])
    while not list(tmp_path.glob(".*.parts/*[0-9].json")):
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.communicate()
    assert not (tmp_path / "out.csv").exists()
    assert json.loads(run(*command, "--json").stdout)["resumed"] >= 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.csv", "out.csv"]


def test_acquire_by_steps_within_a_budget(files, tmp_path):
    folder, _ = files
    command = ["acquire", folder / "selector", folder / "test.csv", "--steps", "--known", "age", "--budget", 5]
    assert "add --no-stop" in run(*command, "-o", tmp_path / "steps.csv", code=2).stderr, "the stop promises otherwise"
    run(*command, "--no-stop", "-o", tmp_path / "steps.csv")
    table = pd.read_csv(tmp_path / "steps.csv")
    assert table["case"].min() == 1
    assert table["spent"].max() <= 5
    assert set(table["feature"].dropna()) == {"color"}, "age is known and the panel costs too much"


def test_nothing_that_is_read_is_overwritten(files, tmp_path):
    folder, _ = files
    cases, link = folder / "test.csv", tmp_path / "link.csv"
    link.symlink_to(cases)
    before = cases.read_bytes()
    for command in ("acquire", "evaluate"):
        for place in (cases, link, folder / "selector" / "out.csv"):
            assert "would overwrite or alter" in run(command, folder / "selector", cases, "-o", place, code=2).stderr
    assert cases.read_bytes() == before
    askwise.load(folder / "selector")
    twice = pd.read_csv(cases).assign(number=1)
    twice.to_csv(tmp_path / "twice.csv", index=False)
    result = run(
        *("acquire", folder / "selector", tmp_path / "twice.csv", "--id", "number", "-o", tmp_path / "o.csv"), code=2
    )
    assert "holds 1 more than once" in result.stderr


def test_acquire_says_for_which_cases_nothing_is_guaranteed(files, tmp_path):
    folder, _ = files
    command = ["acquire", folder / "selector", folder / "test.csv", "-o", tmp_path / "o.csv", "--json"]
    assert json.loads(run(*command, "--no-stop").stdout)["guaranteed"] is None
    plain = run(*command)
    table = pd.read_csv(tmp_path / "o.csv")
    assert json.loads(plain.stdout)["guaranteed"] == table["guaranteed"].sum() > 30
    pd.read_csv(folder / "test.csv").assign(age=5000).to_csv(tmp_path / "odd.csv", index=False)
    options: list[tuple[Any, ...]] = [("--known", "age"), ("--known", "age", "--steps")]
    for more in options:
        void = run(*command, *more)
        assert json.loads(void.stdout)["guaranteed"] == 0
        assert "does not hold for 40 of 40 cases (for example: 'age' was known from the start)" in void.stderr
        assert "UserWarning" not in void.stderr
        table = pd.read_csv(tmp_path / "o.csv")
        assert not table["guaranteed"].any()
        assert (table["departure"] == "'age' was known from the start").all()
    odd = ["acquire", folder / "selector", tmp_path / "odd.csv", "-o", tmp_path / "o.csv"]
    said = run(*odd)
    table = pd.read_csv(tmp_path / "o.csv")
    asked = table["bought"].str.contains("age")
    assert asked.any()
    assert not table["guaranteed"][asked].any()
    assert f"{(~table['guaranteed']).sum()} of 40 cases" in said.stderr


def test_ask_says_why_nothing_is_guaranteed_and_shows_no_share_beside_a_warning(files, tmp_path):
    folder, _ = files
    page = tmp_path / "page.html"
    early = run("ask", folder / "selector", "--report", page, text="q\n")
    reason = "No guarantee: the case was ended before its stopping rule stopped it."
    assert reason in " ".join(early.stdout.split())
    assert reason in page.read_text(encoding="utf-8")
    odd = run("ask", folder / "selector", "--yes", "--report", page, text="age = 5000\nq\n").stdout
    shown = odd[odd.index("5000") :]
    assert "Do not rely on this prediction" in shown
    assert "%" not in shown.partition("The case, step by step")[0].partition("Lab panel")[0]
    last = shown[shown.index("The case, step by step") :]
    assert "%" not in last[last.index("5000") :]
    text = page.read_text(encoding="utf-8")
    assert "unreliable" in text
    assert "The guarantee does not hold for this case: &#39;age&#39; was known from the start." in text


def test_ask_a_saved_selector(files):
    folder, _ = files
    lines = ["why?", "dose = 9", "-", "u", "color = red", "q"]
    result = run("ask", folder / "selector", "--known", "age=61", "--json", text="\n".join(lines))
    found = json.loads(result.stdout)
    said = " ".join(result.stderr.split())
    assert "of similar cases" in said
    before = said.partition("why:")[0]  # it is said at once, not only at the stop
    assert "The guarantee does not hold for this case: 'age' was known from the start." in before
    assert "Chosen:" not in said  # of use to who fits, not to who asks
    assert "(2 EUR" in said or "(1.50 EUR" in said
    assert found["known"]["age"] == 61
    assert found["known"]["color"] == "red"
    assert found["spent"] == 0
    assert found["why"]["text"]
    wrong = run("ask", folder / "selector", "--data", "wine", code=2)
    assert "leave out --data" in wrong.stderr


def test_ask_advises_to_stop_and_can_go_on(files):
    folder, _ = files
    selector = askwise.load(folder / "selector")
    lines = []
    session = selector.start(stop="calibrated")
    values: dict[str, Any] = {"age": 79, "color": "red", "lab panel": {"dose": 9.0, "noise": 0.0}}
    while (suggestion := session.suggest()) is not None:
        feature = suggestion.feature
        session.answer(feature, values[feature])
        lines += list(map(str, values[feature].values())) if feature == "lab panel" else [str(values[feature])]
    assert session.why()["advice"] == "stop", "this case is clear before everything is known"
    result = run("ask", folder / "selector", text="\n".join([*lines, "m", "q"]))
    said = " ".join(result.stdout.split())
    assert "Stop: further answers are unlikely to change the decision. Guaranteed with" in said
    assert "m ask for more" in said
    assert "Stopped." in said
    again = run("ask", folder / "selector", text="\n".join([*lines, "9", ""]))
    assert "Press Enter to finish, or type u" in again.stdout  # a typing error does not end the case
    assert "Stopped." not in again.stdout


def test_explain_a_row_by_number_or_id(files, tmp_path):
    folder, _ = files
    result = run("explain", folder / "selector", folder / "test.csv", "--case", 2)
    assert "Case 2 of test.csv: predicted " in result.stdout
    assert "The decision has been " in result.stdout
    assert "The stop would have ended it after" in " ".join(result.stdout.split())
    table = pd.read_csv(folder / "test.csv").assign(name=[f"case {k}" for k in range(40)], age=np.nan)
    table.to_csv(tmp_path / "named.csv", index=False)
    command = ["explain", folder / "selector", tmp_path / "named.csv", "--id", "name", "--json"]
    found = json.loads(run(*command, "--case", "case 3").stdout)
    assert set(found["known"]) == {"color", "lab panel"}
    assert found["why"]["feature"] == "age"
    table.assign(color="green").to_csv(tmp_path / "named.csv", index=False)
    assert "'color' holds 'green'" in run(*command, "--case", "case 3", code=2).stderr
    for case in ("case 99", "0"):
        assert "--case" in run(*command, "--case", case, code=2).stderr
    assert "1 to 40" in run("explain", folder / "selector", folder / "test.csv", "--case", "41", code=2).stderr


def test_prices_writes_a_list_that_fit_reads(files, tmp_path):
    folder, _ = files
    path = tmp_path / "list.csv"
    listed = ["prices", folder / "train.csv", "-o", path, "--groups", folder / "groups.toml", "--target", "outcome"]
    said = run(*listed, "--currency", "USD").stdout
    assert f"--target outcome --prices {path} --groups {folder / 'groups.toml'} -o selector" in said
    dropped = run(
        "prices", folder / "train.csv", "-o", tmp_path / "short.csv", "--target", "outcome", "--drop", "age"
    ).stdout
    assert "--drop age -o selector" in dropped
    table = pd.read_csv(path).set_index("feature")
    assert table["price"]["age"] == 1
    assert np.isnan(table["price"]["dose"])  # a column of the panel has no price of its own
    assert table["low"]["age"] >= 20
    assert "exists already" in run("prices", folder / "train.csv", "-o", path, code=2).stderr
    fit = ["fit", folder / "train.csv", "--target", "outcome", "--train", "logistic", "-o", tmp_path / "s"]
    fit += ["--groups", folder / "groups.toml", "--prices", path]
    good = path.read_text()
    for old, new, words in [
        ("age,1,", "age,-1,", "the price of 'age' must be a number >= 0"),
        ("age,1,", "agee,1,", "names what is no feature: 'agee'"),
        ("color,1,", "outcome,1,", "has no line for 'color'"),
        ("age,1,,,age,,", "age,1,visit,,age,,", "'visit' must have the same setup_cost"),
        ("feature,price", "feature,cost", "has no column 'price'"),
        ("color,1,,,color,,,,USD", "color,1,,,color,,,,EUR", "one currency; got EUR, USD"),
    ]:
        assert old in good
        path.write_text(good.replace(old, new))
        assert words in run(*fit, code=2).stderr


def test_nothing_is_promised_outside_of_everything_seen(files):
    """A value outside of everything seen: neither "over 99%" nor a guarantee stands beside the warning."""
    folder, _ = files
    lines = ["50", "red", "12500", "0", "", "q"]
    found = run("ask", folder / "selector", "--yes", text="\n".join(f"{name}" for name in ["age = 5000", "q"]))
    said = " ".join(found.stdout.split())
    assert "! Do not rely on this prediction." in said
    shown = said[said.index("prediction", said.index("age = 5000")) :]
    assert "The decision would stay the same" not in shown
    assert "Guaranteed with" not in shown
    assert "How likely the decision would stay the same with everything known cannot be said." in shown
    assert "The guarantee does not hold for this case" in shown
    asked = askwise.load(folder / "selector").start(stop="calibrated").suggest()
    assert asked is not None
    typed = {"age": "5000", "color": "red", "lab panel": "12500\n0"}[asked.feature]
    said = " ".join(run("ask", folder / "selector", "--yes", text="\n".join([typed, *lines])).stdout.split())
    assert "Guaranteed with" not in said


def test_a_reference_interval_is_shown_beside_the_range_of_training(files, tmp_path):
    folder, _ = files
    text = (folder / "prices.csv").read_text().splitlines()
    ends = {"age": "18,65", "dose": "2,8.5"}
    lines = [f"{line},{ends.get(line.split(',')[0], ',')}" for line in text[1:]]
    path = tmp_path / "prices.csv"
    header = f"{text[0]},reference_low,reference_high"
    path.write_text("\n".join([header, *lines]))
    fit = ["fit", folder / "train.csv", "--target", "outcome", "--train", "logistic", "-o", tmp_path / "s"]
    fit += ["--groups", folder / "groups.toml", "--prices", path]
    run(*fit)
    desk = Desk.load(tmp_path / "s", askwise.load(tmp_path / "s"))
    assert desk.reference == {"age": (18, 65), "dose": (2, 8.5)}
    assert desk.ranges("age") == "0 to 120 years expected, reference interval 18 to 65 years"
    assert "seen in training, reference interval 2 to 8.5 mg" in (desk.ranges("dose") or "")
    said = " ".join(run("ask", tmp_path / "s", text="color = red\nq\n").stdout.split())
    assert "reference interval" in said
    assert "usual" not in said
    for wrong, words in ((",18,65", ",65,18"), "low < high"), ((",18,65", ",18,"), "needs both ends"):
        path.write_text("\n".join([header, *lines]).replace(*wrong))
        assert words in run(*fit, code=2).stderr


def test_a_price_list_says_why_values_are_missing(files):
    folder, _ = files
    schema = askwise.load(folder / "selector").schema_
    text = (folder / "prices.csv").read_text().splitlines()
    path = folder / "reasons.csv"
    lines = [f"{text[0]},missing", *(f"{line},{'not available' * (line[:4] == 'age,')}" for line in text[1:])]
    path.write_text("\n".join(lines))
    _, desk = read_price_list(path, schema, ["outcome"])
    assert desk.reasons == {"age": "not available"}
    assert Desk.from_dict(desk.to_dict()) == desk
    path.write_text(path.read_text().replace("not available", "lost"))
    with pytest.raises(InvalidInput, match="must be not ordered or not available; got 'lost'"):
        read_price_list(path, schema, ["outcome"])
    path.write_text("\n".join(line + "not ordered" * line.startswith("dose,") for line in lines))
    with pytest.raises(InvalidInput, match="'dose' is a column of a group"):
        read_price_list(path, schema, ["outcome"])


def test_prices_and_labels_that_cannot_be_meant_are_refused(files, tmp_path):
    folder, _ = files
    good = (folder / "prices.csv").read_text()
    fit = ["fit", folder / "train.csv", "--target", "outcome", "--train", "logistic", "-o", tmp_path / "s"]
    fit += ["--groups", folder / "groups.toml", "--prices", tmp_path / "prices.csv"]
    for old, new, words in (
        ("age,1,", "age,True,", "'price'"),
        (",Age,", ",\u202eegA,", "of the feature 'age' holds U+202E, an invisible mark"),
        (",mg,", ",\u2066mg,", "of the feature 'dose' holds U+2066"),
    ):
        assert old in good
        (tmp_path / "prices.csv").write_text(good.replace(old, new), encoding="utf-8")
        said = run(*fit, code=2).stderr
        assert words in " ".join(said.split())


def test_a_calibrated_selector_is_not_replaced_without_a_word(files, tmp_path):
    folder, _ = files
    fit = ["fit", folder / "train.csv", "--target", "outcome", "--train", "logistic", "-o", tmp_path / "s"]
    stop = ["--calibrate", folder / "cal.csv", "--agreement", 0.9]
    assert "is replaced" not in run(*fit, *stop).stderr
    said = run(*fit, code=2).stderr
    assert "holds a selector with a calibrated stop, which would be lost" in said
    assert askwise.load(tmp_path / "s").stop_ is not None
    assert "with its calibrated stop is replaced" in run(*fit, *stop).stderr
    assert "with its calibrated stop is replaced" in run(*fit, "--force").stderr
    assert askwise.load(tmp_path / "s").stop_ is None
    assert f"the selector in {tmp_path / 's'} is replaced" in run(*fit).stderr


def test_the_page_says_where_a_fixed_order_is_cheaper(files, tmp_path):
    folder, _ = files
    selector = askwise.load(folder / "selector")
    desk = Desk.load(folder / "selector", selector)
    table = make_table(40, 2)
    found = find(selector, table.drop(columns="outcome"), table["outcome"].to_numpy(), desk, 0, lambda step: None)
    ways = ("stop per case", "fixed budget", "static order")
    prices = {0.9: (5.0, 6.0, 4.5), 0.95: (7.0, 7.0, 6.5), 0.99: (9.0, 9.5, 20.0)}
    rows = [
        {"level": level, "way": way, "price": price, "low": price, "high": price, "share": price / 22.5}
        for level, each in prices.items()
        for way, price in zip(ways, each, strict=True)
    ]
    dearer = replace(found, savings=pd.DataFrame(rows))
    assert dearer.cheaper == {"one fixed order": [(0.9, 5.0, 4.5), (0.95, 7.0, 6.5)]}
    page = render("Title", dearer, desk, [])
    said = (
        "On these cases one fixed order was cheaper than a stop per case at 90% of the decisions (4.50 EUR instead of "
    )
    assert said in page
    assert "5 EUR) and 95% of the decisions (6.50 EUR instead of 7 EUR)." in page
    for free, words in ((False, True), (True, False)):
        why = {**found.why, "price": 0.0 if free else 1.0, "reason": "It is free." if free else "It tells most."}
        assert ("comes first in every case" in render("Title", replace(dearer, why=why), desk, [])) == words
    assert page.count('class="narrow"') == page.count('class="wide"') == 3


def test_a_refused_folder_ends_with_3(files, tmp_path):
    folder, _ = files
    (tmp_path / "empty").mkdir()
    for command in (["evaluate"], ["acquire", "-o", tmp_path / "o.csv"], ["explain", "--case", 1]):
        result = run(command[0], tmp_path / "empty", folder / "test.csv", *command[1:], code=3)
        assert "holds no manifest.json" in result.stderr
    table = make_table(60, 0)
    array = askwise.DynamicFeatureSelector(LogisticRegression(), epistemic=None, calibration=None, policy="static")
    array.fit(table[["age", "dose"]].to_numpy(), table["outcome"]).save(tmp_path / "array")
    result = run("explain", tmp_path / "array", folder / "test.csv", "--case", 1, code=3)
    assert "fitted on a table with column names" in result.stderr
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    result = run("explain", folder / "selector", folder / "test.csv", "--case", 1, "--key-file", key, code=3)
    assert "is not signed" in result.stderr


def test_data_writes_files_that_the_other_commands_read(tmp_path):
    run("data", "wine", "-o", tmp_path / "wine")
    parts = {path.name: path for path in (tmp_path / "wine").iterdir()}
    assert set(parts) == {"train.csv", "calibrate.csv", "test.csv", "prices.csv"}
    sizes = [len(pd.read_csv(parts[f"{name}.csv"])) for name in ("train", "calibrate", "test")]
    assert sum(sizes) == 178
    assert "not an empty folder" in run("data", "wine", "-o", tmp_path / "wine", code=2).stderr
    assert "bupa, cirrhosis" in run("data", "nope", "-o", tmp_path / "nope", code=2).stderr
    run("data", "breast_cancer", "-o", tmp_path / "cancer")
    assert '"radius" = ["mean radius"' in (tmp_path / "cancer" / "groups.toml").read_text()


def test_acquire_streams_parquet_with_an_engine(files, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    folder, _ = files
    cases = make_table(60, 9).drop(columns="outcome")
    cases.to_parquet(tmp_path / "cases.parquet", row_group_size=20)
    run("acquire", folder / "selector", tmp_path / "cases.parquet", "-o", tmp_path / "plain.parquet")
    streamed = tmp_path / "streamed.parquet"
    given = ("acquire", folder / "selector", tmp_path / "cases.parquet", "-o", streamed, "--engine", "local")
    facts = json.loads(run(*given, "--workers", 2, "--json").stdout)
    assert (facts["cases"], facts["parts"], facts["stop"]) == (60, 3, "calibrated")
    load = Mock(side_effect=saving.load)
    for module in (parts, saving):
        monkeypatch.setattr(module, "load", load)
    parts.loaded.cache_clear()
    run(*given[:4], tmp_path / "again.parquet", "--engine", "local")
    assert load.call_count == 1
    plain, other = pd.read_parquet(tmp_path / "plain.parquet"), pd.read_parquet(streamed)
    for name in ("bought", "spent", "prediction"):
        assert plain[name].tolist() == other[name].tolist()
    np.testing.assert_allclose(plain["decision_is_final"], other["decision_is_final"])
    for more, words in (
        (("--engine", "ray"), "engine must be one of"),
        (("--engine", "local", "--steps"), "leave out --steps"),
        (("--engine", "local", "--separator", "tab"), "leave out the options of tables"),
        (("--engine", "local", "--key-file", folder / "test.csv"), "without a key"),
        (("--engine", "local", "--address", "tcp://127.0.0.1:1"), "Dask scheduler"),
    ):
        assert words in run(*given[:5], *more, code=2).stderr.replace("\n", " ")
    assert "must end in .parquet" in run(*given[:4], tmp_path / "x.csv", "--engine", "local", code=2).stderr


def test_rules_of_the_house_are_read_saved_and_obeyed(files, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('first = ["color"]\n[[pilot]]\nname = "mood"\n')
    options = ("--target", "outcome", "--train", "logistic", "--rules", rules, "-o", tmp_path / "ruled")
    table = files[0] / "train.csv"
    said = run("fit", table, *options, "--json")
    assert json.loads(said.stdout)["rules"] == "first('color'), pilot('mood', after=0, share=1)"
    asked = run("ask", tmp_path / "ruled", text="fine\nred\nq\n").output
    assert 0 < asked.index("mood") < asked.index("color")
    rules.write_text('requires = [["age", "color"], ["color", "age"]]')
    refused = run("fit", table, *options, "--force", code=2).output
    assert "requires('color', 'age')" in " ".join(refused.split())
