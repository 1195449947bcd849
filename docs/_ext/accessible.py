"""Mends what a screen reader stumbles over in the pages that Sphinx and the theme write."""

from __future__ import annotations

import html
import re
from typing import Any

EMPTY_HEADING = re.compile(r"<th\b[^>]*>\s*(?:<p>\s*</p>)?\s*</th>")
SIGNATURE = re.compile(r'<dl>\s*(?:<dd><em class="sig-param">.*?</dd>\s*)+</dl>', re.DOTALL)
LIST, LINES = re.compile("(</?)d[ld]\\b"), '<span class="sig-lines"'
BRANCH = re.compile(r"(<a [^>]*>)(.*?)(</a>\s*<details[^>]*>\s*<summary)>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")


def mended(body: str) -> str:
    """Cells instead of headings without a text, and the lists of parameters that have no terms as plain lines."""
    body = EMPTY_HEADING.sub("<td></td>", body)
    return SIGNATURE.sub(lambda found: LIST.sub(r"\1span", found[0]).replace("<span", LINES, 1), body)


def named(sidebar: str) -> str:
    """The navigation with a name on each button that unfolds the pages below one."""

    def name(found: re.Match[str]) -> str:
        text = html.escape(html.unescape(TAG.sub("", found[2])).strip())
        return f'{found[1]}{found[2]}{found[3]} aria-label="Pages below {text}">'

    return BRANCH.sub(name, sidebar)


def mend(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = mended(context["body"])
    if draw := context.get("generate_toctree_html"):
        context["generate_toctree_html"] = lambda *given, **options: named(str(draw(*given, **options)))


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", mend, priority=1000)  # after the theme, which adds the navigation
    return {"parallel_read_safe": True, "parallel_write_safe": True}
