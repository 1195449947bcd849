"""What all displays share."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askwise.plotting import STYLE, svg

WIDTH = 6.2
NARROW = 3.5
"""Inches: on a desk, and on a phone, where a shrunk picture could not be read."""

POLICY_COLORS = {"askwise": "#3b6fd4", "static": "#e0793a", "random": "#7a828c"}


class Display:
    """What all displays share: drawing into axes that are given, or into a figure of their own."""

    ax_: Axes
    figure_: Figure
    legend_columns: ClassVar[tuple[int, int]] = (2, 1)  # in a wide figure, and in a narrow one
    legend_above: ClassVar[bool] = False  # in axes that are given: there is no room within what is drawn

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into `ax`, or into a new figure of pyplot."""
        with mpl.rc_context(STYLE):
            if ax is not None:
                self._keep(ax)
                self._draw(ax, narrow=False)
                self._legend(narrow=False, outside=False)
                return self
            import matplotlib.pyplot as plt

            return self._fill(plt.figure(figsize=(WIDTH, self._height(narrow=False)), layout="constrained"), WIDTH)

    def to_figure(self, width: float = WIDTH) -> Figure:
        """The picture as a figure of its own, unknown to pyplot; `width` in inches."""
        self._fill(Figure(figsize=(width, self._height(width < WIDTH)), layout="constrained"), width)
        return self.figure_

    def _fill(self, figure: Figure, width: float) -> Self:
        self._keep(figure.subplots())
        self._draw(self.ax_, narrow=width < WIDTH)
        self._legend(narrow=width < WIDTH, outside=True)
        return self

    def _keep(self, ax: Axes) -> None:
        self.ax_, self.figure_ = ax, ax.get_figure(root=True)  # type: ignore[assignment]

    def _legend(self, narrow: bool, outside: bool) -> None:
        handles, labels = self.ax_.get_legend_handles_labels()
        if not handles:
            return
        if outside:
            columns = self.legend_columns[narrow]
            self.figure_.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
        elif self.legend_above:
            place: dict[str, Any] = {
                "loc": "lower left",
                "bbox_to_anchor": (0, 1),
                "ncols": self.legend_columns[narrow],
            }
            self.ax_.legend(frameon=False, fontsize="small", **place)
        else:
            self.ax_.legend(frameon=False, fontsize="small")

    def _height(self, narrow: bool) -> float:
        """Inches."""
        return 3.8

    def _draw(self, ax: Axes, narrow: bool) -> None:
        raise NotImplementedError


def drawn(name: str, display: Display, width: float = WIDTH) -> Markup:
    """The picture as an SVG element for a page, whose ids begin with `name`."""
    return svg(name, display.to_figure, width)


def drawn_twice(name: str, display: Display) -> Markup:
    """The picture for a page that shows it wide on a desk and narrow on a phone; common.css chooses."""
    sizes = {"wide": WIDTH, "narrow": NARROW}
    parts = [f'<div class="{size}">{drawn(f"{size}-{name}", display, width)}</div>' for size, width in sizes.items()]
    return Markup("".join(parts))
