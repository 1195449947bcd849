"""The forms of a flowchart: text, SVG, HTML and Mermaid, which names of features cannot break."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from askwise import DynamicFeatureSelector, Prices, wrap
from askwise.explain.drawing import BOX
from askwise.explain.lettering import text_width, wrapped
from askwise.explain.words import interval, price
from askwise.policy import Policy
from askwise.table.desk import percent

SVG = "{http://www.w3.org/2000/svg}"
NAMES = [
    "<script>alert('x')</script>",
    'a "quoted" [bracketed] {braced} | piped & name; #1 -->',
    "a_very_long_name_without_any_space_that_no_box_could_hold_in_one_line",
    "control \x1b[31m \x00 \u202e characters",
    "検査結果の値",
]
LABELS = np.array(["<b>benign</b>", 'malignant "type]"', "c"])


class InOrder(Policy):
    def scores(self, state):
        return np.where(state.mask, -np.inf, np.arange(len(NAMES), 0.0, -1.0))


def answer(X):
    """Three classes, by the first three columns."""
    X = np.asarray(X, dtype=float)
    which = np.where(X[:, 0] < 0, (X[:, 1] > 0.2).astype(int), np.where(X[:, 2] > -0.3, 2, (X[:, 3] > 0).astype(int)))
    return 0.1 + 0.7 * np.eye(3)[which]


@pytest.fixture(scope="module")
def chart():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(600, 5)), columns=NAMES)
    prices = Prices([2.5, 1.0, 12.25, 0.004, 1.0])
    y = LABELS[answer(X).argmax(axis=1)]
    model = wrap(answer, classes=LABELS.tolist())
    selector = DynamicFeatureSelector(
        model, costs=prices, policy=InOrder(), epistemic=None, random_state=0, progress=False
    )
    return selector.fit(X[:200], y[:200]).flowchart(X[200:])


def boxes(root):
    """(x, y, width, height) of questions and leaves."""
    found = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") in ("box", "leaf")]
    return np.array([[float(rect.attrib[key]) for key in ("x", "y", "width", "height")] for rect in found])


def test_the_picture_is_valid_and_no_boxes_overlap(chart):
    root = ET.fromstring(chart.to_svg())
    assert root.tag == f"{SVG}svg"
    drawn = boxes(root)
    n_questions = sum(rect.get("class") == "box" for rect in root.iter(f"{SVG}rect"))
    assert len(drawn) - n_questions == len(chart.leaves) >= 4
    assert n_questions >= 3
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for i, (x, y, w, h) in enumerate(drawn):
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
        for other in np.delete(drawn, i, axis=0):
            apart = x + w <= other[0] or other[0] + other[2] <= x or y + h <= other[1] or other[1] + other[3] <= y
            assert apart


def test_names_cannot_inject_markup_or_commands(chart):
    for page in (chart.to_svg(), chart.to_html()):
        assert "<script" not in page
        assert "<b>" not in page
        assert "\x1b" not in page
        assert "\x00" not in page
        assert "\u202e" not in page
    assert "&lt;script&gt;" in chart.to_svg()
    for text in (chart.to_text(), chart.to_mermaid(), repr(chart)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "<script" not in chart.to_mermaid()


def test_the_page_needs_nothing_and_follows_the_color_scheme(chart):
    class Links(HTMLParser):
        found: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag, attrs):
            self.found += [value for key, value in attrs if key in ("src", "href", "xlink:href")]

    page = chart.to_html()
    reader = Links()
    reader.feed(page)
    assert not reader.found
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in chart.to_svg()
    assert "@page { size: landscape" in page
    assert chart._repr_html_() == chart._repr_svg_() == chart.to_svg()


def test_what_was_measured_is_printed_on_every_form(chart):
    shown = percent(chart.measured.policy)
    for form in (chart.to_text(), chart.to_html(), chart.to_mermaid()):
        assert f"Decides like the policy in {shown} of {chart.measured.n_rows} rows held out" in form
    joined = " ".join("".join(text.itertext()) for text in ET.fromstring(chart.to_svg()).iter(f"{SVG}text"))
    assert f"average price of {price(chart.measured.price)}" in joined
    assert "12.25" in joined
    assert all(f"{leaf.n_rows} rows" in joined for leaf in chart.leaves)


def test_mermaid_is_a_list_of_nodes_and_arrows(chart):
    lines = [line for line in chart.to_mermaid().splitlines() if not line.startswith("%%")]
    assert lines[0] == "flowchart LR"
    label = r'"[^"\[\]{}|]*"'
    nodes, arrows = [], []
    for line in lines[1:]:
        node = re.fullmatch(rf"    (n\d+)(?:\[{label}\]|\(\[{label}\]\))", line)
        arrow = re.fullmatch(rf"    (n\d+) -->\|{label}\| (n\d+)", line)
        assert node or arrow, line
        if node:
            nodes.append(node[1])
        elif arrow:
            arrows.append((arrow[1], arrow[2]))
    assert len(set(nodes)) == len(nodes) == len(arrows) + 1
    assert {end for _, end in arrows} == set(nodes) - {nodes[0]}
    assert "#60;script#62;" in chart.to_mermaid()


def test_text_has_a_line_per_branch(chart):
    tree = chart.to_text().split("\n\n")[0]
    assert sum("=>" in line for line in tree.splitlines()) == len(chart.leaves)
    assert "(price 2.5)" in tree


def test_long_texts_are_wrapped_to_their_box():
    for text in (*NAMES, "many short words one after the other " * 5):
        lines = wrapped(text, 15, BOX)
        assert 1 <= len(lines) <= 3
        assert all(text_width(line, 15) <= BOX + 15 for line in lines)
    assert wrapped("two words", 15, 500) == ["two words"]
    assert wrapped(NAMES[2] * 3, 15, BOX)[-1].endswith("…")


def test_shares_and_prices_say_no_more_than_is_true():
    assert (percent(1.0), percent(0.9999), percent(0.125)) == ("100%", "99%", "12%")
    assert (price(0.0), price(2.0), price(2.5), price(0.004)) == ("free", "2", "2.5", "0.004")
    assert interval(1.0, 30)[1] == 1.0
    assert 0.85 < interval(1.0, 30)[0] < 0.9
