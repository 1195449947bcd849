"""How wide a text is in a picture, and its lines in a box.

Browsers differ in their fonts, so widths are estimated, rather too wide than too narrow.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

NARROW, WIDE = "iljtfr.,:;'|!()[] ", "mwMW@%—…"
MOST_LINES = 3


def wrapped(said: str, size: float, width: float, most: int = MOST_LINES) -> list[str]:
    """Lines no wider than `width`; words that are too long are broken, and what is too much ends with an ellipsis."""
    lines = [""]
    for word in said.split(" "):
        together = f"{lines[-1]} {word}".strip()
        if text_width(together, size) <= width:
            lines[-1] = together
            continue
        pieces = list(_pieces(word, size, width))
        lines = [*(line for line in lines if line), *pieces]
    if len(lines) > most:
        lines = [*lines[: most - 1], next(iter(_pieces(lines[most - 1], size, width - size))) + "…"]
    return lines


def _pieces(word: str, size: float, width: float) -> Iterator[str]:
    piece = ""
    for letter in word:
        if piece and text_width(piece + letter, size) > width:
            yield piece
            piece = ""
        piece += letter
    yield piece


def text_width(said: str, size: float) -> float:
    """Roughly how wide a text is in pixels, rather too wide than too narrow."""
    return size * sum(map(_em, said))


def _em(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in NARROW:
        return 0.36
    return 0.95 if letter in WIDE else 0.72 if letter.isupper() else 0.585
