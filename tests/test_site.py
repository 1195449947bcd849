"""What builds the site: the checks of its links, the pages of the API, the blocks that are run, graphs."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import askwise

DOCS = Path(__file__).parents[1] / "docs"


def module(name):
    path = next(path for path in (DOCS / f"{name}.py", DOCS / "_ext" / f"{name}.py") if path.exists())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_public_module_has_a_page_with_all_its_names():
    pages = module("api_pages")
    assert {f"askwise.{name}" for name in askwise._MODULES} <= set(pages.PUBLIC)
    for name, title in pages.PUBLIC.items():
        if name.startswith("askwise_bench"):
            continue
        text = pages.page(name, title)
        for item in pages.names_of(importlib.import_module(name)):
            assert re.search(rf"^   {item}$|autodata:: {item}$", text, re.MULTILINE), (name, item)


def test_broken_links_and_foreign_scripts_are_found(tmp_path):
    check = module("check_site")
    (tmp_path / "a.html").write_text('<a href="b.html#there">1</a><h1 id="top"></h1><a href="#top">2</a>')
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="https://elsewhere.org">fine</a>')
    assert check.problems(tmp_path) == []
    (tmp_path / "c.html").write_text(
        '<a href="b.html#gone">3</a><a href="d.html">4</a><script src="https://cdn.example/x.js"></script>'
    )
    assert [line.split(" ", 1)[1] for line in check.problems(tmp_path)] == [
        "links to b.html#gone, which is not there",
        "links to d.html, which is not there",
        "loads https://cdn.example/x.js",
    ]


def test_what_has_no_name_is_found(tmp_path):
    check = module("check_site")
    (tmp_path / "a.html").write_text(
        '<a href="#">1</a><a href="#"><i></i></a><button aria-label="Go"></button><summary><b></b></summary>'
        '<th>x</th><th></th><img src="data:,"><a href="#"><img src="data:," alt="Up"></a><a id="there"></a>'
    )
    assert [line.split(" has ")[1] for line in check.problems(tmp_path)] == [
        '<a href="#"> without a name',
        "<summary> without a name",
        "<th> without a name",
        '<img src="data:,"> without a name',
    ]


def test_pages_are_mended_for_screen_readers():
    mend = module("accessible")
    assert mend.mended('<tr><th class="head"><p></p></th><th>n</th></tr>') == "<tr><td></td><th>n</th></tr>"
    listed = '<dt>f(\n<dl>\n<dd><em class="sig-param">x</em>,</dd>\n</dl>\n)</dt>'
    assert mend.mended(listed) == (
        '<dt>f(\n<span class="sig-lines">\n<span><em class="sig-param">x</em>,</span>\n</span>\n)</dt>'
    )
    assert mend.mended("<dl><dt>a</dt><dd>b</dd></dl>") == "<dl><dt>a</dt><dd>b</dd></dl>"
    branch = '<a class="x" href="p.html">A &amp; <code>b</code></a><details><summary><i></i></summary>'
    assert '<summary aria-label="Pages below A &amp; b"><i>' in mend.named(branch)


def test_blocks_share_names_and_show_what_they_print(monkeypatch):
    pytest.importorskip("sphinx")
    blocks = module("run_blocks")
    names: dict[str, object] = {}
    assert blocks.run_block("a = 2", names, "page") == []
    (shown,) = blocks.run_block("print('a is', a)\na + 1", names, "page")
    assert shown.astext() == "a is 2\n3"
    with pytest.raises(ZeroDivisionError):
        blocks.run_block("1 / 0", names, "page")


def test_a_graph_is_drawn_with_every_box_and_arrow():
    pytest.importorskip("grandalf")
    pytest.importorskip("sphinx")
    graphs = module("graphs")
    edges = graphs.edges_of("graph TD\n    a --> b\n    b --> c\n    a --> c\n")
    picture = graphs.drawn(edges)
    assert edges == [("a", "b"), ("b", "c"), ("a", "c")]
    assert picture.count("<rect") == 3
    assert picture.count('<path d="M') == 3


def test_pages_that_run_say_so():
    """A page with Python blocks runs them; one that cannot writes ``py`` instead."""
    for path in [*DOCS.glob("start/*.md"), *DOCS.glob("howto/*.md"), DOCS / "understand" / "method.md"]:
        text = path.read_text(encoding="utf-8")
        assert ("```python\n" in text) == text.startswith("---\nrun: true\n"), path
