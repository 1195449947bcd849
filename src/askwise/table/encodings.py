"""In which encoding a text file is written: UTF-8 where it is, otherwise the one whose letters look like a language.

A table has few letters beyond ASCII, and each byte is a letter in many encodings: the French ``hypothyroïdie`` is also
a string of Czech letters. Statistics of long texts are no help there, but alphabets are.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise

ENCODINGS = [
    *(f"cp125{page}" for page in (2, 0, 1, 3, 4, 5, 6, 7)),
    *("utf_16_le", "utf_16_be", "utf_32_le", "utf_32_be"),
    *("mac_roman", "koi8_r", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]
"""Encodings of tables besides UTF-8. A short text also fits many rare encodings, which are not guessed."""

WESTERN = "cp1252"
BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\0\0": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
ALPHABETS = (
    "áéíñóúüªº",  # Spanish
    "áâãàçéêíóôõúüªº",  # Portuguese
    "àâæçéèêëîïôœùûüÿ",  # French
    "äöüßé",  # German
    "çğıöşüâîûi̇",  # Turkish  # noqa: RUF001
    "àèéìîòù",  # Italian
    "ąćęłńóśźż",  # Polish
    "éëïöüèêç",  # Dutch
    "ăâîșțşţ",  # Romanian
    "áéíóöőúüű",  # Hungarian
    "áčďéěíňóřšťúůýž",  # Czech
    "åäöæøéü",  # Danish, Norwegian, Swedish, Finnish
    "àçèéíïòóúü",  # Catalan
    "čćđšž",  # Croatian, Slovene
    "áäčďéíĺľňóôŕšťúýž",  # Slovak
    "ąčęėįšųūž",  # Lithuanian
    "āčēģīķļņšūž",  # Latvian
    "äõöüšž",  # Estonian
    "áðéíóúýþæö",  # Icelandic
)
"""Letters beyond ASCII by language, the one with most speakers first."""

SCRIPTS = re.compile(
    "[Ͱ-Ͽἀ-῿]+|[Ѐ-ӿ]+|[\u0590-\u05ff]+|[\u0600-\u06ff]+|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|[\uac00-\ud7af]+"
)
"""Words in scripts other than the Latin one: Greek, Cyrillic, Hebrew, Arabic, Chinese and Japanese, Korean."""

_WORD = re.compile(r"(?:[^\W\d_]|[^\x00-\x7f\s])*[^\x00-\x7f\s](?:[^\W\d_]|[^\x00-\x7f\s])*")
_LONG_RUN = re.compile(r"[^\x00-\x7f]{3}")
MARKS = "°µ€£§©®™²³¹½¼¾±×÷«»‹›“”„‘’‚–—…•·¿¡\xa0"  # noqa: RUF001
"""What is no letter and common in tables of any language."""


def decoded(content: bytes, usual: str | None = None) -> tuple[str, str, dict[str, str]]:
    """The text of a file, its encoding, and a word as each encoding that is as likely would read it.

    `usual` is the encoding of files of the same origin; UTF-8 with letters beyond ASCII is recognized nevertheless.
    Raises UnicodeError where no encoding gives a text.
    """
    marked = next((name for mark, name in BYTE_ORDER_MARKS.items() if content.startswith(mark)), None)
    first = marked or ("utf-8" if usual is None or not content.isascii() else usual)
    for encoding in (first, *([usual] if usual and not marked else [])):
        with suppress(UnicodeError):
            text = content.decode(encoding)
            if not looks_binary(text):
                return text.removeprefix("\ufeff"), encoding, {}
    if marked:
        raise UnicodeError(f"it begins with the mark of {marked} and is not in it")
    return _likeliest(content)


def _likeliest(content: bytes) -> tuple[str, str, dict[str, str]]:
    from charset_normalizer import from_bytes

    matches = {match.encoding: str(match) for match in from_bytes(content, cp_isolation=ENCODINGS)}
    texts: dict[str, str] = {}
    for encoding in (WESTERN, *matches, *(name for name in ENCODINGS if name.startswith(("cp125", "koi8")))):
        with suppress(UnicodeError):
            text = matches.get(encoding) or content.decode(encoding)
            if not looks_binary(text) and text not in texts.values():
                texts.setdefault(encoding, text)
    if not texts:
        raise UnicodeError("it looks binary")
    scores = {encoding: plausibility(text) for encoding, text in texts.items()}
    best = max(
        scores, key=lambda name: (scores[name][0], name != "mac_roman", *scores[name][1:])
    )  # the first of equals
    alike = [name for name in scores if scores[name][0] == scores[best][0]]
    if len(alike) == 1:
        return texts[best], best, {}
    words = {name: _WORD.findall(texts[name]) for name in (best, *(name for name in alike if name != best))}
    different = (read for read in zip(*words.values(), strict=False) if len(set(read)) > 1)
    return texts[best], best, dict(zip(words, next(different, ()), strict=False))


def plausibility(text: str) -> tuple[float, int, int]:
    """The share of the letters beyond ASCII that one language would have where they stand; 1 where there are none.

    Then, to choose among equals: fewest capitals in other scripts than the Latin one, the language of most speakers.

    >>> plausibility("hypothyroïdie") > plausibility("hypothyroďdie") > plausibility("hypothyro³die")
    True
    """
    latin, other, strange, capitals = list[str](), 0, 0, 0
    for word in set(_WORD.findall(text)):
        letters = [letter for letter in word if letter > "\x7f" and letter not in MARKS]
        if SCRIPTS.fullmatch(word):
            other += len(letters)
            capitals += sum(letter.isupper() for letter in letters)
        elif _LONG_RUN.search(word.strip(MARKS)) or _is_mixed(word):
            strange += max(1, len(letters))
        else:
            latin += letters
    counts = [sum(letter.lower() in alphabet for letter in latin) for alphabet in ALPHABETS]
    total = len(latin) + other + strange
    return (max(counts) + other) / total if total else 1.0, -capitals, -counts.index(max(counts))


def _is_mixed(word: str) -> bool:
    """Whether a word has a mark between letters, or a capital letter after a small one."""
    inner = word.strip("".join(set(MARKS) - set("¹²³¼½¾")))
    marks = any(a in MARKS and b.isalpha() for a, b in pairwise(inner))
    capital = any(a.islower() and b.isupper() and (a > "\x7f" or b > "\x7f") for a, b in pairwise(word))
    return marks or capital


def looks_binary(text: str) -> bool:
    """Whether a text holds what no table does: null characters, or many that cannot be printed."""
    start = text[:20_000]
    odd = sum(not character.isprintable() and character not in "\t\r\n" for character in start)
    return "\0" in text or odd > len(start) // 10
