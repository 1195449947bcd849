"""Shared by all HTML pages: colors, the style of figures, figures as inline SVG, and page templates.

Figures follow the color scheme of the page: neutral colors become CSS variables of ``common.css``,
with the light color as the fallback for a standalone figure.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import jinja2
import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

COLORS = ("#3b6fd4", "#e0793a", "#3a9d6e", "#c2475b", "#7d5fc0", "#8a6a4f", "#d27bb4", "#5c6570", "#b3a529", "#35a3b8")
"""As many colors as can be distinguished."""

PAPER, INK, SOFT, GRID = "#ffffff", "#3c434c", "#9aa1ab", "#e6e9ee"
_VARIABLES = {PAPER: "--card", INK: "--ink", SOFT: "--soft", GRID: "--line"}
_NEUTRAL = re.compile("|".join(_VARIABLES))
_TAG = re.compile(r"<[^<>]+>")
_ID = re.compile(r'(\bid="|href="#|url\(#)')
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 10,
    "text.color": INK,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
}


def svg(name: str, draw: Callable[[Any], Figure], content: Any) -> Markup:
    """A drawing as an SVG element whose ids begin with `name`, so that one page can hold several."""
    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # A name in a script that is missing from matplotlib's font: the browser has the glyphs.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        draw(content).savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    return Markup(_TAG.sub(lambda tag: _themed(_ID.sub(rf"\g<1>{name}-", tag[0])), text[text.index("<svg") :]))


def template(name: str, package: str = "askwise", **filters: Callable[..., str]) -> jinja2.Template:
    """A page template of a package, which escapes its values; an undefined name is an error.

    Templates of another package may extend and include those of askwise.
    """
    pages = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in dict.fromkeys((package, "askwise"))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(filters)
    return pages.get_template(name)


def _themed(tag: str) -> str:
    return _NEUTRAL.sub(lambda color: f"var({_VARIABLES[color[0]]}, {color[0]})", tag)
