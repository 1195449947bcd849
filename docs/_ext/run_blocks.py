"""Run the Python blocks of a page while the site is built, and show below each what it prints and draws.

A page asks for it with ``run: true`` at its top. Its blocks share their names, as the cells of a notebook do. A block
that fails is a warning, which stops the build, so that no page can show what does not work.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
from docutils import nodes
from sphinx.util import logging

mpl.use("agg")
LOGGER = logging.getLogger(__name__)
TABLE = re.compile(r"\S {2,}\S")
"""What prints like a table is scrolled; other long lines are wrapped."""
LARGEST = 500_000
"""Bytes of a drawing beyond which it is shown as pixels."""


def run_page(app: Any, doctree: nodes.document) -> None:
    page = app.env.docname
    if not app.env.metadata[page].get("run") or app.builder.format != "html":
        return
    from askwise.plotting import STYLE

    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = [node for node in doctree.findall(nodes.literal_block) if node.get("language") == "python"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), mpl.rc_context(STYLE):
        for number, block in enumerate(blocks):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    shown = run_block(block.astext(), names, f"{page}, block {number + 1}")
            except Exception:
                LOGGER.warning("%s", traceback.format_exc(limit=-3), location=block)
                break
            for node in (*shown, *pictures(app, f"{page.replace('/', '-')}-{number + 1}")):
                place(block, node)


def run_block(code: str, names: dict[str, Any], where: str) -> list[nodes.Node]:
    """What a block prints, and the value of its last line if that is an expression without a semicolon."""
    tree, last = ast.parse(code, where), None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        value = None if last is None else eval(compile(last, where, "eval"), names)
    rich = value._repr_html_() if hasattr(value, "_repr_html_") and not type(value).__module__.startswith("mat") else ""
    if value is not None and not rich and not hasattr(value, "figure_") and "matplotlib" not in type(value).__module__:
        printed.write(repr(value))
    found: list[nodes.Node] = []
    if printed.getvalue().strip():
        text = printed.getvalue().rstrip()
        classes = ["output"] if TABLE.search(text) else ["output", "prose"]
        found.append(nodes.literal_block(text, text, language="none", classes=classes))
    if rich:
        found.append(nodes.raw("", f'<div class="output-html" tabindex="0">{rich}</div>', format="html"))
    return found


def pictures(app: Any, name: str) -> list[nodes.Node]:
    """The figures that are open, written beside the page's pictures, and closed."""
    import matplotlib.pyplot as plt

    folder, found = Path(app.outdir) / "_images", []
    for k, number in enumerate(plt.get_fignums()):
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}-{k}.svg"
        figure = plt.figure(number)
        axes = figure.get_axes()
        figure.savefig(file, metadata={"Date": None})
        if file.stat().st_size > LARGEST:
            file.unlink()
            file = file.with_suffix(".png")
            figure.savefig(file, dpi=160)
        plt.close(figure)
        says = ", ".join(filter(None, (ax.get_xlabel() or ax.get_title("left") for ax in axes))) or "figure"
        root = os.path.relpath(folder, Path(app.outdir) / Path(app.env.docname).parent)
        picture = f'<img class="output-picture" src="{Path(root).as_posix()}/{file.name}" alt="Picture: {says}">'
        found.append(nodes.raw("", picture, format="html"))
    return found


def place(block: nodes.Node, node: nodes.Node) -> None:
    """After a block and what was placed there before."""
    parent = block.parent
    at = parent.index(block) + 1
    while at < len(parent) and parent[at].get("placed"):
        at += 1
    node["placed"] = True
    parent.insert(at, node)


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", run_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
