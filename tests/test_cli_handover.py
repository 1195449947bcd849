"""A rare class and cases for a person, from the command line to the page: what is promised is shown everywhere."""

import json

import numpy as np
import pandas as pd
import pytest

import askwise
from askwise.table.desk import Desk
from askwise.web.cases import Cases
from askwise.web.database import migrate
from askwise.web.description import Description
from askwise.web.messages import CaseView, NewCase, NewEvent, SelectorView
from askwise.web.store import Store
from tests.commands import run

pytest.importorskip("skops")


def make_table(n: int, seed: int) -> pd.DataFrame:
    """Two tests and noise; one case in five is ill, and the tests leave some doubt."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.2
    shifts = {"tsh": 2.2, "iron": 1.2, "noise": 0.0}
    table = pd.DataFrame({name: (rng.normal(size=n) + shift * ill).round(3) for name, shift in shifts.items()})
    return table.assign(outcome=np.where(ill, "ill", "well"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handover")
    for seed, (name, n) in enumerate({"train": 300, "cal": 300, "over": 600, "test": 120}.items()):
        make_table(n, seed).to_csv(folder / f"{name}.csv", index=False)
    fitted = run(
        *("fit", folder / "train.csv", "--target", "outcome", "--train", "logistic", "-o", folder / "selector"),
        *("--calibrate", folder / "cal.csv", "--agreement", 0.9, "--per-class", "always"),
        *("--handover", folder / "over.csv", "--accuracy", 0.93, "--json"),
    )
    return folder, json.loads(fitted.stdout)


def test_fit_says_what_is_promised_of_each_class_and_of_decided_cases(files):
    folder, facts = files
    assert "those that all features decide for 'ill', and of those that all features decide for 'well'" in facts["stop"]
    assert facts["kept"].startswith("on the calibration rows, by class: ill ")
    assert "at least 93% are decided rightly" in facts["handover"]
    handover = askwise.load(folder / "selector").handover_
    assert handover is not None
    assert 0 < handover.handed_over < 1


def test_evaluate_shows_each_class_and_lists_the_cases(files):
    folder, _ = files
    page = folder / "page.html"
    found = json.loads(run("evaluate", folder / "selector", folder / "test.csv", "-o", page, "--json").stdout)
    truth = pd.read_csv(folder / "test.csv")["outcome"]
    by_class = {entry["class"]: entry for entry in found["by_class"]}
    assert {name: entry["cases"] for name, entry in by_class.items()} == truth.value_counts().to_dict()
    assert sum(entry["decided"] for entry in by_class.values()) == 120
    assert all(entry["low"] <= entry["kept"] <= entry["high"] for entry in by_class.values())
    over = found["handover"]["cases"]
    assert len(over) == round(120 * found["handover"]["share"]) > 0
    assert all(case["score"] > found["handover"]["threshold"] for case in over)
    text = page.read_text(encoding="utf-8")
    assert "What happens to each class" in text
    assert f"<b>{len(over)} of these 120 cases</b>" in text
    shown = run("evaluate", folder / "selector", folder / "test.csv", "-o", page).stdout
    assert f"To a person:      {len(over)} of 120 cases" in shown
    assert "  ill: " in shown

    acquired = folder / "out.csv"
    run("acquire", folder / "selector", folder / "test.csv", "-o", acquired)
    table = pd.read_csv(acquired)
    assert table.loc[table["handed_over"], "case"].tolist() == sorted(case["case"] for case in over)
    assert table["guaranteed"].all()


def test_a_case_in_doubt_is_handed_over_at_the_terminal_and_by_the_server(files, tmp_path):
    folder, _ = files
    selector = askwise.load(folder / "selector")
    table = pd.read_csv(folder / "test.csv")
    over = selector.acquire(table[selector.features_], stop="calibrated").handed_over
    doubtful, clear = (table.iloc[int(np.flatnonzero(over == wanted)[0])] for wanted in (True, False))
    url = f"sqlite:///{tmp_path}/cases.sqlite3"
    migrate(url)
    description = Description(selector, folder / "selector")
    assert selector.handover_ is not None
    described = SelectorView(**description.as_dict(), you={"name": "ann", "role": "clerk"})
    assert described.handover == selector.handover_.promise
    cases = Cases(selector, description, Store(url))
    for row, advice in ((doubtful, "hand over"), (clear, "decide")):
        view, typed = cases.start(NewCase(), "ann"), []
        assert view["report"]["handover"]["advice"] == "ask on"
        while (feature := view["report"]["suggestion"]) is not None:
            typed.append(str(row[feature]))
            event = NewEvent(type="answer", feature=feature, value=float(row[feature]), version=view["version"])
            view = cases.add(view["id"], event, "ann")
        assert view["report"]["handover"]["advice"] == advice
        assert CaseView(**view).advice == ("hand over" if advice == "hand over" else view["advice"])
        said = run("ask", folder / "selector", "--yes", text="\n".join([*typed, "", ""])).output
        assert ("Hand this case to a person" in said) is (advice == "hand over")
    why = selector.start(stop="calibrated").why(Desk.load(folder / "selector", selector))
    assert why["advice"] == "ask"


def test_options_that_do_not_fit_are_refused(files):
    folder, _ = files
    fit = ["fit", folder / "train.csv", "--target", "outcome", "--train", "logistic", "-o", folder / "other"]
    assert "--accuracy needs --handover FILE" in run(*fit, "--accuracy", 0.9, code=2).output
    over = ["--handover", folder / "over.csv", "--accuracy"]
    assert "--accuracy must be between 0 and 1" in run(*fit, *over, 1.5, code=2).output
    assert "--handover needs at least 3453 rows to promise this" in run(*fit, *over, 0.999, code=2).output
    twice = ["--calibrate", folder / "over.csv", "--agreement", 0.9, *over, 0.9]
    assert "given to --calibrate" in run(*fit, *twice, code=2).output.replace("\n", " ")
    few = make_table(45, 9)
    few[few["outcome"] == "well"].head(30).to_csv(folder / "one.csv", index=False)
    always = ["--calibrate", folder / "one.csv", "--agreement", 0.9, "--per-class", "always"]
    assert "or --per-class auto" in run(*fit, *always, code=2).output.replace("\n", " ")
    assert not (folder / "other").exists()
