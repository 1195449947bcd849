"""Equations as MathML, which browsers draw without a script; docutils translates the LaTeX."""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def translated(node: nodes.Element, as_block: bool = False) -> str:
    """The equation as MathML; one that docutils cannot translate is a warning, and is shown as LaTeX."""
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        LOGGER.warning("%s in the equation %s", error, node.astext(), location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(translated(node))
    raise nodes.SkipNode


def display(translator: Any, node: nodes.math_block) -> None:
    made = translated(node, as_block=True)
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    identifier = f' id="{node["ids"][0]}"' if node["ids"] else ""
    translator.body.append(f'<div class="math"{identifier} tabindex="0">{number}{made}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
