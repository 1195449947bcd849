"""Equations as MathML, which browsers draw without a script; docutils translates the LaTeX."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(str(tex2mathml(node.astext())))
    raise nodes.SkipNode


def display(translator: Any, node: nodes.math_block) -> None:
    made = str(tex2mathml(node.astext(), as_block=True))
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    identifier = f' id="{node["ids"][0]}"' if node["ids"] else ""
    translator.body.append(f'<div class="math"{identifier} tabindex="0">{number}{made}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
