"""The HTML page, from numbers set by hand: no model is trained here."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from askwise.assessments import Recorded
from askwise.cli.comparison import Comparison, Story
from askwise.cli.console import make_console, print_curves
from askwise.cli.demo_report import Report, render, write_report
from askwise.cli.options import check_report_path
from askwise.cli.wording import shown_number, shown_value, warnings_of
from askwise.displays.cases import OTHER_COLOR, class_colors, order_shares
from askwise.epistemic import Assessment
from askwise.errors import AskwiseError, InvalidInput, short
from askwise.plotting import COLORS
from askwise.trajectory import Trajectory
from askwise.uncertainty import Uncertainty

EVIL = "<script>alert('x')</script>"
FEATURES = ["age", EVIL, "price in $ and $"]
ORDER = np.array([[1, 0, 2], [1, 2, -1]])


def make_trajectory(order: np.ndarray = ORDER, features: list[str] = FEATURES) -> Trajectory:
    n, steps = order.shape
    half = np.full(n, 0.5)
    even = np.full((n, 2), 0.5)
    found = Assessment(even, np.zeros(n, dtype=int), half, even, Uncertainty(*[half] * 7))
    return Trajectory(
        order=order,
        costs=np.ones(order.shape),
        said=Recorded([found] * (steps + 1)),
        start=np.zeros((n, len(features)), dtype=bool),
        features=features,
        classes=np.array(["no", "yes"]),
    )


def make_comparison(trajectory: Trajectory) -> Comparison:
    curves = pd.DataFrame(
        {
            "budget": [1.0, 2.0, 3.0],
            "askwise": [0.611, 0.822, 0.933],
            "static": [0.6, 0.7, 0.8],
            "random": [0.5, 0.6, 0.7],
            "random_low": [0.4, 0.5, 0.6],
            "random_high": [0.55, 0.65, 0.75],
            "log_loss": [0.9, 0.5, 0.1234],
        }
    )
    return Comparison(curves, 0.957, False, trajectory)


def make_step(feature: str | None, value: object, proba: dict[str, float], epistemic: float | None = None):
    return {
        "event": "answer" if feature else "start",
        "feature": feature,
        "value": value,
        "cost": 1.5 if feature else 0.0,
        "prediction": max(proba, key=lambda label: proba[label]),
        "probabilities": proba,
        "decision_is_final": 0.875,
        "uncertainty": {"total": 0.321, "epistemic": epistemic},
    }


@pytest.fixture
def report() -> Report:
    trace = [
        make_step(None, None, {"no": 0.6, "<b>yes</b>": 0.4}),
        make_step(EVIL, "<img src=x onerror=alert(1)>", {"no": 0.3, "<b>yes</b>": 0.7}),
        make_step("panel", {"height": 1.25, "weight": None}, {"no": 0.1, "<b>yes</b>": 0.9}),
    ]
    story = Story("Held-out case 7", trace, "<b>yes</b>")
    about = [("data", f"a table & {EVIL}"), ("seed", "0")]
    return Report(f"table {EVIL}", about, story, make_comparison(make_trajectory()))


def make_rule(words: list[str], then: str, confidence: float, **more: object) -> dict[str, object]:
    chances = {"no": 1 - confidence, "<b>yes</b>": confidence}
    return {
        "conditions": words,
        "then": then,
        "confidence": confidence,
        "probabilities": chances,
        "evidence": "42 rows given to fit",
        "n_trees": 1,
        "degree": 1.0,
        **more,
    }


@pytest.fixture
def ruled(report) -> Report:
    """The same story with rules: none fires at first, two at the end, where one of nine possible ones is listed."""
    yes = "<b>yes</b>"
    possible = make_rule([f"{EVIL} > 1.5"], "no", 0.875, open=["<i>hue</i> is high", "ash > 2"], n_trees=3)
    firing = [
        make_rule([f"{EVIL} > 1.5", "height <= 1.3"], yes, 0.9125, weight=0.6375),
        make_rule(["weight is low"], yes, 0.75, weight=0.3625, degree=0.42),
    ]
    rules = [
        {"firing": [], "possible": [possible], "n_firing": 0, "n_possible": 1},
        {"firing": firing[:1], "possible": [], "n_firing": 1, "n_possible": 0},
        {"firing": firing, "possible": [possible], "n_firing": 2, "n_possible": 9},
    ]
    trace = [{**step, "rules": behind} for step, behind in zip(report.story.trace, rules, strict=True)]
    return replace(report, story=replace(report.story, trace=trace))


def details(page: str) -> list[str]:
    return re.findall(r"<details.*?</details>", page, flags=re.DOTALL)


def seen(html: str) -> str:
    """The text of a piece of the page as a reader sees it."""
    return " ".join(unescape(re.sub(r"<[^<>]+>", " ", html)).split())


def pictures(page: str, size: str = "wide") -> list[ET.Element]:
    """Those for a desk, or the "narrow" ones for a phone."""
    page = "".join(re.findall(rf'<div class="{size}">(<svg.*?</svg>)\s*</div>', page, flags=re.DOTALL))
    return [ET.fromstring(picture) for picture in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)]


def texts(picture: ET.Element) -> list[str]:
    return ["".join(node.itertext()) for node in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_the_page_loads_nothing(report):
    page = render(report)
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!\#)""", page.replace("&lt;img src=x", ""))
    assert not re.findall(r"url\((?!\#)|@import|<link|<script|<iframe|<img", page)


def test_names_and_values_from_the_data_are_text(report):
    page = render(report)
    assert "<b>yes</b>" not in page.replace("<b>&lt;b&gt;yes&lt;/b&gt;</b>", "")
    assert page.count("&lt;script&gt;") >= 5  # title, heading, step, about, and both pictures
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_pictures_are_well_formed_and_label_everything(report):
    curves, order, story = pictures(render(report))
    assert {"askwise", "static order", "the model with everything"} <= set(texts(curves))
    assert set(FEATURES) <= set(texts(order))  # dollar signs are no mathematics
    assert f"1. {EVIL}" in texts(story)
    assert len(pictures(render(report), "narrow")) == 3


def test_savings_come_first_and_say_what_is_never_reached(report):
    ways = ("stop per case", "fixed budget", "static order")
    table = pd.DataFrame(
        [
            {"level": level, "way": way, "price": k + level, "low": k, "high": k + 2, "share": (k + level) / 8}
            for level in (0.9, 0.98)
            for k, way in enumerate(ways)
        ]
    )
    table.loc[5, ["price", "low", "high", "share"]] = np.nan
    page = render(replace(report, comparison=replace(report.comparison, savings=table)))
    assert page.index('id="savings"') < page.index('id="accuracy"')
    text = " ".join(pictures(page)[0].itertext())
    for words in (*ways, "everything", "98%", "0.98", "1.98", "never"):
        assert words in text
    assert 'id="savings"' not in render(report)


def test_curves_have_a_point_for_each_budget(report):
    curves = pictures(render(report))[0]
    for way in ("askwise", "static", "random"):
        line = next(node for node in curves.iter() if node.get("id") == f"wide-curves-curve-{way}")
        path = next(node for node in line if node.tag.endswith("path")).attrib["d"]
        assert len(re.findall(r"[ML] ", path)) == 3
    assert any(node.get("id") == "wide-curves-band-random" for node in curves.iter())


def test_ids_are_unique_and_references_resolve(report):
    page = render(report)
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_all_numbers_are_in_the_table(report):
    page = render(report)
    for number in ("61.1", "82.2", "93.3", "80.0", "55.0", "0.123", "95.7"):
        assert f">{number}" in page
    assert page.count(">88&nbsp;%</td>") == 3  # how likely the decision of each step is final


def test_a_wrong_prediction_is_marked(report):
    assert render(report).count('class="wrong"') == 1


def test_epistemic_uncertainty_is_shown_where_there_is_one(report):
    assert "epistemic" not in render(report)
    trace = [*report.story.trace[:-1], make_step("age", 3, {"no": 0.2, "<b>yes</b>": 0.8}, epistemic=0.0456)]
    page = render(replace(report, story=replace(report.story, trace=trace)))
    assert "epistemic" in page
    assert "0.046" in page


def test_rules_are_listed_step_by_step_the_last_one_open(ruled):
    start, first, last = details(render(ruled))
    assert [part.startswith("<details open>") for part in (start, first, last)] == [False, False, True]
    assert seen(start).startswith("before the first answer no 60 % 0 firing, 1 possible No rule fires yet")
    assert seen(first).startswith(f"1. {EVIL} = <img src=x onerror=alert(1)>")
    assert seen(first).endswith("No other rule is possible any more.")
    assert "2. panel <b>yes</b> 90 % 2 firing, 9 possible" in seen(last)
    assert "Still possible (1 of 9)" in seen(last)


def test_a_rule_shows_its_conditions_confidence_evidence_degree_and_weight(ruled):
    _, first, last = details(render(ruled))
    assert f"{EVIL} > 1.5 and height <= 1.3 <b>yes</b> 91 % 42 rows given to fit 64 %" in seen(first)
    assert "fires at" not in seen(first)
    assert "weight is low <b>yes</b> 75 % 42 rows given to fit 42 % 36 %" in seen(last)
    assert f"<i>hue</i> is high and ash > 2 given {EVIL} > 1.5 no 88 % 42 rows given to fit; in 3 trees" in seen(last)
    for width, color in ((91.25, COLORS[1]), (75, COLORS[1]), (87.5, COLORS[0]), (63.75, "var(--soft)")):
        assert f'<i style="width:{width:.2f}%;background:{color}"></i>' in last


def test_words_of_rules_are_text(ruled):
    page = render(ruled)
    assert "<script" not in page
    assert "<i>hue" not in page
    assert "<b>yes</b>" not in page.replace("<b>&lt;b&gt;yes&lt;/b&gt;</b>", "")
    assert page.count('<span class="chip open">') == 4
    assert page.count('<span class="chip">') == 7


def test_a_page_with_rules_differs_only_by_them(report, ruled):
    without, with_rules = render(report).splitlines(), render(ruled).splitlines()
    lines = iter(with_rules)
    assert all(line in lines for line in without)  # in this order
    for word in ("details", "chip", "rule"):
        assert word not in "\n".join(without)


def test_rules_for_a_class_that_has_no_color_of_its_own():
    proba = {f"class {c}": p for c, p in enumerate(np.linspace(1, 2, 14) / np.linspace(1, 2, 14).sum())}
    step = make_step(None, None, proba)
    step["rules"] = {
        "firing": [make_rule(["a > 1"], "class 0", 0.5, weight=1.0)],
        "possible": [],
        "n_firing": 1,
        "n_possible": 0,
    }
    (part,) = details(render(Report("wide", [], Story("Case", [step]))))
    assert f'style="background:{OTHER_COLOR}"></i>class 0</td>' in part


def test_a_story_alone_has_no_curves(report):
    page = render(replace(report, comparison=None))
    assert len(pictures(page)) == 1
    assert "Accuracy by budget" not in page


def test_the_same_content_gives_the_same_bytes(report):
    assert render(report) == render(report)


def test_many_features_and_classes_fit():
    features = [f"a rather long feature name, number {i}" for i in range(64)]
    trajectory = make_trajectory(np.tile(np.arange(40), (3, 1)), features)
    proba = {f"class {c}": p for c, p in enumerate(np.linspace(1, 2, 14) / np.linspace(1, 2, 14).sum())}
    story = Story("Case", [make_step(None, None, proba), make_step(features[0], 1.0, proba)])
    page = render(Report("wide", [], story, make_comparison(trajectory)))
    assert "34 features that are bought later are not drawn" in page
    assert ">other</span>" in page
    order = pictures(page)[1]
    assert len([text for text in texts(order) if text.endswith("…")]) == 30


def test_nothing_bought_is_a_page_too(report):
    assert render(replace(report, comparison=make_comparison(make_trajectory(np.empty((2, 0), dtype=int)))))


def test_order_shares_by_hand():
    features, share = order_shares(make_trajectory())
    assert features == [EVIL, "price in $ and $", "age"]  # mean positions 0, 1.5 and (1 + 3) / 2
    assert share.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.0]]


def test_few_classes_keep_their_own_colors():
    shown, colors = class_colors([make_step(None, None, {"b": 0.5, "a": 0.5})])
    assert shown == ["b", "a"]
    assert [colors[label] for label in shown] == list(COLORS[:2])


def test_writing_leaves_one_whole_file(report, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    assert write_report(path, report) == path
    assert path.read_text(encoding="utf-8") == render(report)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_places_that_cannot_be_written_are_refused(report, tmp_path):
    with pytest.raises(InvalidInput, match="is a folder"):
        write_report(tmp_path, report)
    with pytest.raises(InvalidInput, match="there is no folder"):
        write_report(tmp_path / "nowhere" / "page.html", report)


def test_a_failing_disk_leaves_the_old_page(report, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("askwise.cli.demo_report.os.replace", full)
    with pytest.raises(AskwiseError, match="No space left"):
        write_report(path, report)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_what_is_outside_everything_seen_is_told(report):
    outside = [
        {"feature": "age", "column": "age", "value": 300, "seen": [18, 96]},
        {"feature": "panel", "column": "hue", "value": "<b>", "seen": ["red", "blue"]},
    ]
    step = {**report.story.trace[1], "outside": outside, "novelty": 1.25}
    step["uncertainty"] = {"total": 0.3, "epistemic": "infinite"}
    page = render(replace(report, story=replace(report.story, trace=[report.story.trace[0], step])))
    assert "age 300 is outside everything seen in training (18 to 96)." in seen(page)
    assert "hue <b> is outside everything seen in training (red, blue)." in seen(page)
    assert "unlike the training rows (novelty 1.2;" in seen(page)
    assert ">infinite</td>" in page
    assert warnings_of({"outside": [], "novelty": 0.0}) == warnings_of({}) == []


def test_known_values_and_the_note_on_missing_cells_are_shown(report):
    story = replace(report.story, known={"age": 54})
    assert comparison_note(report) == ""
    noted = replace(report.comparison, note="Why 82.7 % is not 84.0 %.")
    page = seen(render(replace(report, story=story, comparison=noted)))
    assert "known: age 54" in page
    assert "Why 82.7 % is not 84.0 %." in page


def test_the_note_on_missing_cells_is_in_the_terminal_too(report):
    with (console := make_console()).capture() as shown:
        print_curves(console, replace(report.comparison, note="Why 82.7 % is not 84.0 %."))
    assert "Why 82.7 % is not 84.0 %." in shown.get()


def comparison_note(report: Report) -> str:
    assert report.comparison is not None
    return report.comparison.note


def test_pictures_follow_the_color_scheme(report):
    """No neutral color is fixed: paper, ink and lines are variables of the page, with a fallback."""
    page = render(report)
    for picture in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        bare = re.sub(r"var\(--\w+, #\w+\)", "", picture)
        assert not re.findall("#ffffff|#000000|#3c434c|#e6e9ee|#9aa1ab", bare)
        assert "var(--card, #ffffff)" in picture
        assert "var(--ink, #3c434c)" in picture
    assert "prefers-color-scheme: dark" in page
    assert "background: #fff;" not in page


def test_short_and_shown():
    assert short("\x1b[31mred\u202e") == "\\u001b[31mred\\u202e"
    assert [shown_number(number) for number in (None, "infinite", 0.12345)] == ["-", "infinite", "0.123"]
    assert short("two\nlines") == "two lines"
    assert short("x" * 40, 10) == "x" * 9 + "…"
    assert shown_value({"a": 1.23456789, "b": None}) == "1.23457, -"
    assert shown_value(True) == "True"


def test_drawing_does_not_touch_pyplot():
    code = "import sys, askwise.cli.demo_report; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_device_or_a_pipe_is_not_replaced_and_a_link_is_followed(tmp_path):
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInput, match="ordinary file"):
        check_report_path(pipe)
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    assert check_report_path(tmp_path / "link.html") == tmp_path / "real.html"
